/* reports/emit_lines.c - one line of a framework's arguments, as that framework writes it */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "reports/emit.h"

void emit(struct sheet *t, const char *name, const char *fmt, ...)
{
	char *value = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&value, fmt, args) < 0)
		out_of_memory();
	va_end(args);
	switch (t->of) {
	case FT_MEGATRON:
		fputs("--", t->out);
		for (const char *c = name; *c; c++)
			putc(*c == '_' ? '-' : *c, t->out);
		fprintf(t->out, "%s%s\n", *value ? " " : "", value);
		break;
	case FT_TORCHTITAN:
		fprintf(t->out, "%s = %s\n", name, *value ? value : "true");
		break;
	case FT_PRIMUS:
		fprintf(t->out, "      %s: %s\n", name, *value ? value : "true");
		break;
	default:
		fprintf(t->out, "  %s: %s\n", name, *value ? value : "true");
	}
	free(value);
}

void emit_int(struct sheet *t, const char *name, int64_t value)
{
	emit(t, name, "%" PRId64, value);
}

void emit_unknown(struct sheet *t, const char *fmt, ...)
{
	va_list args;

	fputs("# not mapped: ", t->out);
	va_start(args, fmt);
	vfprintf(t->out, fmt, args);
	va_end(args);
	putc('\n', t->out);
}
