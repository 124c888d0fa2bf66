/* base/csv_write.c - cells, written so that others read them back */
#include "base/csv.h"

#include <string.h>

void csv_put(FILE *out, const char *text, bool last)
{
	if (strpbrk(text, ",\"\n\r")) {
		putc('"', out);
		for (; *text; text++) {
			if (*text == '"')
				putc('"', out);
			putc(*text, out);
		}
		putc('"', out);
	} else {
		fputs(text, out);
	}
	putc(last ? '\n' : ',', out);
}

void csv_cell(FILE *out, const char *text)
{
	putc('"', out);
	if (*text && strchr("=+-@", *text))
		putc('\'', out);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}
