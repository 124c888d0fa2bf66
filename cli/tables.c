/* cli/tables.c - rows out of the tables of documents: cells, names, words without marks */
#include "cli/tables.h"

#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/text.h"

static const struct {
	const char *path, *text;
} pages[] = {
	{ "docs/reading-the-output.md", page_reading_the_output_md },
	{ "docs/glossary.md", page_glossary_md },
};

enum { PAGES = sizeof(pages) / sizeof(*pages), CELLS = 8, NAMES = 32 };

struct reading {
	struct arena *mem;
	struct table_row *row;
	size_t n, cap;
	const char *page, *section;
	bool in_table; /* its head was read */
	int json;      /* the column of keys in JSON; 0: the table has none */
};

struct names {
	const char *of[NAMES + 1];
	size_t n;
};

/* The cells of "| a | b |" as they stand, "\|" within them; how many. */
static size_t split(struct arena *mem, const char *line, char *cell[CELLS])
{
	size_t n = 0;

	while (*line == '|' && n < CELLS) {
		const char *end = ++line;
		size_t len;

		while (*end && (*end != '|' || end[-1] == '\\'))
			end++;
		if (!*end)
			break;
		line += strspn(line, " ");
		for (len = (size_t)(end - line); len && line[len - 1] == ' ';)
			len--;
		cell[n++] = arena_text_n(mem, line, len);
		line = end;
	}
	return n;
}

/* Does a link begin here: "[text](address)"? */
static bool is_link(const char *p)
{
	const char *end = *p == '[' ? strchr(p, ']') : NULL;

	return end && end[1] == '(';
}

/* Without backquotes; a link becomes its text, "\|" a bar. */
static const char *plain(struct arena *mem, const char *cell)
{
	char *out = arena_text(mem, cell), *to = out;
	bool link = false;

	for (const char *p = cell; *p; p++) {
		if (is_link(p)) {
			link = true;
		} else if (link && *p == ']') {
			link = false;
			p += strcspn(p, ")");
			if (!*p)
				break;
		} else if (*p != '`' && !(*p == '\\' && p[1] == '|')) {
			*to++ = *p;
		}
	}
	*to = '\0';
	return out;
}

static void add_name(struct arena *mem, struct names *names, const char *from,
		     size_t len)
{
	for (; len && *from == ' '; len--)
		from++;
	while (len && from[len - 1] == ' ')
		len--;
	if (len && names->n < NAMES)
		names->of[names->n++] = arena_text_n(mem, from, len);
}

static void add_quoted(struct arena *mem, struct names *names, const char *cell)
{
	for (const char *p = strchr(cell, '`'); p; p = strchr(p, '`')) {
		size_t len = strcspn(p + 1, "`");

		add_name(mem, names, p + 1, len);
		p += len + 1;
		p += *p == '`';
	}
}

static void add_parts(struct arena *mem, struct names *names, const char *cell)
{
	while (*cell) {
		size_t len = strcspn(cell, ",:;()");

		add_name(mem, names, cell, len);
		cell += len + (cell[len] != '\0');
	}
}

static const char *about_of(struct reading *r, char *const *cell, size_t n)
{
	const char *about = "";

	for (size_t i = 1; i < n; i++)
		if ((int)i != r->json)
			about = arena_printf(r->mem, "%s%s%s", about,
					     *about && *cell[i] ? ": " : "",
					     plain(r->mem, cell[i]));
	return about;
}

static void add_row(struct reading *r, char *const *cell, size_t n)
{
	struct names names = { .n = 0 };
	bool json = r->json && (size_t)r->json < n;
	size_t parts, within;
	const char *words = plain(r->mem, cell[0]), **own;

	add_name(r->mem, &names, words, strlen(words));
	add_quoted(r->mem, &names, cell[json ? r->json : 0]);
	parts = names.n;
	if (!strchr(cell[0], '`'))
		add_parts(r->mem, &names, words);
	within = names.n;
	for (size_t i = 1; i < n; i++)
		if (!json || i != (size_t)r->json)
			add_quoted(r->mem, &names, cell[i]);
	own = ARENA_ARRAY(r->mem, names.n + 1, const char *);
	memcpy(own, names.of, names.n * sizeof(*own));
	own[names.n] = NULL;
	if (r->n == r->cap)
		r->row = ARENA_GROW(r->mem, r->row, &r->cap);
	r->row[r->n++] =
		(struct table_row){ .page = r->page,
				    .section = r->section,
				    .words = words,
				    .json = json ? plain(r->mem, cell[r->json]) : NULL,
				    .about = about_of(r, cell, n),
				    .names = own,
				    .parts = parts,
				    .within = within };
}

static void take_line(struct reading *r, const char *line)
{
	char *cell[CELLS];
	size_t n;

	if (*line == '#')
		r->section =
			plain(r->mem, line + strspn(line, "#") + (line[1] != '\0'));
	if (*line != '|') {
		r->in_table = false;
		return;
	}
	n = split(r->mem, line, cell);
	if (!r->in_table) {
		r->in_table = true;
		r->json = 0;
		for (size_t i = 1; i < n; i++)
			if (text_begins_with(cell[i], "JSON"))
				r->json = (int)i;
	} else if (n > 1 && strspn(cell[0], "-") != strlen(cell[0])) {
		add_row(r, cell, n);
	}
}

struct table_row *tables_rows(struct arena *mem, size_t *n)
{
	struct reading r = { .mem = mem };

	for (size_t i = 0; i < PAGES; i++) {
		const char *p = pages[i].text;

		r.page = pages[i].path;
		r.section = "";
		r.in_table = false;
		while (*p) {
			size_t len = strcspn(p, "\n");

			take_line(&r, arena_text_n(mem, p, len));
			p += len + (p[len] == '\n');
		}
	}
	*n = r.n;
	return r.row;
}

static bool name_meant(const char *name, const char *word, size_t len)
{
	size_t all = strlen(name);

	if (all < len || *word == '.')
		return false;
	return (!strncasecmp(name, word, len) && (!name[len] || name[len] == '.')) ||
	       (!strncasecmp(name + all - len, word, len) && all > len &&
		name[all - len - 1] == '.');
}

enum table_meant table_row_meant(const struct table_row *row, const char *word)
{
	const char *pass = strstr(word, " (");
	size_t len = pass ? (size_t)(pass - word) : strlen(word);

	for (size_t i = 0; len && row->names[i]; i++)
		if (!strcasecmp(row->names[i], word) ||
		    name_meant(row->names[i], word, len))
			return i < row->parts  ? TABLE_WHOLE :
			       i < row->within ? TABLE_IN_PART :
						 TABLE_WITHIN;
	return TABLE_NOT;
}
