/* cli/pages.c - keys out of manual pages: entries, their defaults, their words without macros */
#include "cli/pages.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"

static const struct {
	const char *kind, *of, *page, *text;
} pages[] = {
	{ "stack", "a stack", "foretoken-stack", page_foretoken_stack_5 },
	{ "gpu", "a GPU", "foretoken-gpu", page_foretoken_gpu_5 },
	{ "node", "a node", "foretoken-node", page_foretoken_node_5 },
	{ "fabric", "a fabric", "foretoken-fabric", page_foretoken_fabric_5 },
	{ "site", "a site", "foretoken-site", page_foretoken_site_5 },
	{ "ccl", "a communication library", "foretoken-ccl", page_foretoken_ccl_5 },
	{ "prices", "a price book", "foretoken-prices", page_foretoken_prices_5 },
};

enum { PAGES = sizeof(pages) / sizeof(*pages), DEEP = 4, LINE = 1024, ABOUT = 4096 };

struct reading {
	struct arena *mem;
	struct page_key *key;
	size_t n, cap, first; /* keys; the first of the entry that is open */
	const char *section;  /* its keys' prefix, or NULL */
	const char *below[DEEP];
	size_t depth;
	char about[ABOUT], bold[ABOUT];
	size_t page;
	bool in_entry, names_next, section_next;
};

/* The escape at *line, behind which *line is left at its last character; what it stands for, or 0. */
static char escaped(const char **line)
{
	const char *p = *line;

	*line += p[1] == '(' && p[2] && p[3] ? 3 : 1;
	return p[1] == '(' && p[2] && p[3] ? '\0' : p[1] == '&' ? '\0' : p[1];
}

/* A line without its macro, quotes and escapes. tight: of .BR and the like, whose words
 * stand beside each other. */
static void plain_line(const char *line, char out[LINE])
{
	bool macro = line[0] == '.', tight = false, quoted = false;
	size_t n = 0;

	if (macro) {
		size_t len = strcspn(line, " ");

		tight = len == 3; /* .BR .BI .IR, not .B or .I */
		line += len + (line[len] == ' ');
	}
	for (; *line && n + 1 < LINE; line++) {
		char c = *line;

		if (macro && c == '"') {
			quoted = !quoted;
			continue;
		}
		if (c == '\\' && line[1])
			c = escaped(&line);
		else if (tight && c == ' ' && !quoted)
			continue;
		if (c)
			out[n++] = c;
	}
	out[n] = '\0';
}

/* An entry's words are added to all its keys. */
static void close_entry(struct reading *r)
{
	const char *about = arena_text(r->mem, r->about);
	const char *bold = arena_printf(r->mem, "%s ", r->bold);

	for (size_t i = r->first; r->in_entry && i < r->n; i++) {
		r->key[i].about = about;
		r->key[i].bold = bold;
	}
	r->in_entry = false;
	r->about[0] = r->bold[0] = '\0';
}

static const char *path_of(struct reading *r, const char *name, size_t len)
{
	const char *path = r->section;

	for (size_t i = 0; i < r->depth; i++)
		path = path ? arena_printf(r->mem, "%s.%s", path, r->below[i]) :
			      r->below[i];
	return path ? arena_printf(r->mem, "%s.%.*s", path, (int)len, name) :
		      arena_text_n(r->mem, name, len);
}

static void add_key(struct reading *r, const char *name, size_t len)
{
	if (r->n == r->cap)
		r->key = ARENA_GROW(r->mem, r->key, &r->cap);
	r->key[r->n++] = (struct page_key){ pages[r->page].of,
					    pages[r->page].page,
					    path_of(r, name, len),
					    NULL,
					    "",
					    "" };
}

/* "fused_qkv, fused_gate_up (true)": names, and behind them the default of those before. */
static void open_entry(struct reading *r, const char *line)
{
	char text[LINE];
	size_t told = r->n;

	plain_line(line, text);
	r->first = r->n;
	r->in_entry = true;
	for (const char *p = text; *p;) {
		size_t len = strspn(p, "abcdefghijklmnopqrstuvwxyz"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

		if (*p == '(') {
			len = strcspn(p, ")");
			for (; told < r->n; told++)
				r->key[told].usual =
					arena_text_n(r->mem, p + 1, len - 1);
		} else if (len) {
			add_key(r, p, len);
		}
		p += len ? len : 1;
	}
}

/* Appends a text, with a space between; a text that does not fit is left out. */
static void put_behind(char *there, const char *text)
{
	size_t n = strlen(there), len;

	text += strspn(text, " ");
	len = strlen(text);
	if (n + len + 2 > ABOUT)
		return;
	if (n)
		there[n++] = ' ';
	memcpy(there + n, text, len + 1);
}

static void add_words(struct reading *r, const char *line)
{
	char text[LINE];

	if (!r->in_entry || !strcmp(line, ".nf") || !strcmp(line, ".fi"))
		return;
	plain_line(line, text);
	put_behind(r->about, text);
	if (text_begins_with(line, ".B "))
		put_behind(r->bold, text);
}

/* A section that begins with its own name has its keys below that. */
static void begin_section(struct reading *r, const char *title)
{
	char *low = arena_text(r->mem, title);

	for (char *p = low; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	r->section = low;
	r->section_next = true;
}

static void settle_section(struct reading *r, const char *line)
{
	const char *own = r->section;

	r->section = NULL;
	r->section_next = false;
	if (!text_begins_with(line, ".B ") || strcmp(line + 3, own) != 0)
		return;
	open_entry(r, line); /* what the section says before its keys */
	r->section = own;
}

static void nest(struct reading *r, bool deeper)
{
	const char *path = r->n ? r->key[r->n - 1].path : "", *dot = strrchr(path, '.');

	if (!deeper)
		r->depth -= r->depth > 0;
	else if (r->depth < DEEP)
		r->below[r->depth++] = dot ? dot + 1 : path;
}

static void take_line(struct reading *r, const char *line)
{
	if (r->section_next)
		settle_section(r, line);
	if (r->names_next) {
		r->names_next = false;
		open_entry(r, line);
	} else if (text_begins_with(line, ".SH ")) {
		close_entry(r);
		begin_section(r, line + 4);
	} else if (!strcmp(line, ".TP")) {
		close_entry(r);
		r->names_next = true;
	} else if (!strcmp(line, ".RS") || !strcmp(line, ".RE")) {
		close_entry(r);
		nest(r, line[2] == 'S');
	} else if (text_begins_with(line, ".PP") || text_begins_with(line, ".IP")) {
		close_entry(r);
	} else {
		add_words(r, line);
	}
}

struct page_key *pages_keys(struct arena *mem, size_t *n)
{
	struct reading r = { .mem = mem };

	for (r.page = 0; r.page < PAGES; r.page++) {
		const char *p = pages[r.page].text;

		r.section = NULL;
		r.depth = 0;
		while (*p) {
			size_t len = strcspn(p, "\n");

			take_line(&r, arena_text_n(mem, p, len));
			p += len + (p[len] == '\n');
		}
		close_entry(&r);
	}
	*n = r.n;
	return r.key;
}

/* The word behind the kind of its file, if it begins with one; NULL: with another's. */
static const char *within(const struct page_key *key, const char *word)
{
	for (size_t i = 0; i < PAGES; i++) {
		size_t len = strlen(pages[i].kind);

		if (strncmp(word, pages[i].kind, len) || word[len] != '.')
			continue;
		return strcmp(key->page, pages[i].page) ? NULL : word + len + 1;
	}
	return word;
}

bool page_key_meant(const struct page_key *key, const char *word)
{
	const char *own = within(key, word);
	size_t len = own ? strlen(own) : 0, all = strlen(key->path);

	return own && len <= all && !strcmp(key->path + all - len, own) &&
	       (len == all || key->path[all - len - 1] == '.');
}

static bool is_of_key(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Bold or with a _ it is a key wherever it stands, else between braces. */
bool page_key_names(const struct page_key *key, const char *word)
{
	const char *leaf = text_last_word(word);
	const char *text[] = { key->bold, key->about };
	size_t len = strlen(leaf);

	if (!within(key, word))
		return false;
	for (int i = 0; i < 2 && len; i++) {
		int braces = i == 0 || strchr(leaf, '_');

		for (const char *p = text[i]; *p; p++) {
			braces += (*p == '{') - (*p == '}');
			if (braces > 0 && !strncmp(p, leaf, len) &&
			    (p == text[i] || !is_of_key(p[-1])) && !is_of_key(p[len]))
				return true;
		}
	}
	return false;
}
