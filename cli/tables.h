/*
 * cli/tables.h - the tables of docs/reading-the-output.md and docs/glossary.md, which the build
 * embeds: what each says of a row, an item, a column or a word
 *
 * The two pages are the one place that tells what the words of an answer mean; `foretoken
 * explain` reads it there. A row's names are its first cell as a whole, and what stands in
 * backquotes in it or, where a column's head begins with JSON, in that column. Without
 * backquotes, what commas, colons, semicolons and parentheses divide are parts of its name. What
 * stands in backquotes in its other cells is told within it.
 */
#ifndef CLI_TABLES_H
#define CLI_TABLES_H

#include <stdbool.h>
#include <stddef.h>

extern const char page_reading_the_output_md[], page_glossary_md[];

struct arena;

struct table_row {
	const char *page;	  /* "docs/glossary.md" */
	const char *section;	  /* "The step" */
	const char *words;	  /* its first cell */
	const char *json;	  /* its key in JSON; NULL: it has none */
	const char *about;	  /* the other cells, one behind the other */
	const char *const *names; /* ends with NULL */
	size_t parts;		  /* from this one on they are parts of its name, */
	size_t within;		  /* and from this one on words of its other cells */
};

enum table_meant { TABLE_NOT, TABLE_WITHIN, TABLE_IN_PART, TABLE_WHOLE };

/* All rows of all tables, in their order, in plain words. */
struct table_row *tables_rows(struct arena *mem, size_t *n);

/* Is this row meant by the word: a name of its, whatever the case of letters; the last words of a
 * dotted one, or its first; a part of its name; or a word of its other cells? A pass behind the word, as in
 * "expert_up (wgrad)", does not count. */
enum table_meant table_row_meant(const struct table_row *row, const char *word);

#endif
