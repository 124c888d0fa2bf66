/* base/csv_write.c - cells, written so that others read them back */
#include "base/csv.h"

#include <string.h>

static void put_quoted(FILE *out, const char *before, const char *text)
{
	fprintf(out, "\"%s", before);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}

void csv_put(FILE *out, const char *text, bool last)
{
	if (strpbrk(text, ",\"\n\r"))
		put_quoted(out, "", text);
	else
		fputs(text, out);
	putc(last ? '\n' : ',', out);
}

void csv_cell(FILE *out, const char *text)
{
	put_quoted(out, *text && strchr("=+-@", *text) ? "'" : "", text);
}
