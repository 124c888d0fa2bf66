/* base/reader.c - one map against its keys, the first mistake kept */
#include "base/reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/text.h"

struct reader reader_open(const struct node *map, struct ft_error *err)
{
	struct reader r = { .map = map, .err = err };

	if (node_is_null(map)) {
		r.map = NULL;
	} else if (map->kind != NODE_MAP) {
		ft_fail(err, &map->mark, "should be a map of keys and values");
		r.failed = true;
		r.map = NULL;
	}
	return r;
}

struct ft_mark reader_mark(const struct reader *r, const char *key)
{
	const struct node *n = key ? node_get(r->map, key) : NULL;

	if (n)
		return n->mark;
	return r->map ? r->map->mark : (struct ft_mark){ 0 };
}

static bool fail_at(struct reader *r, const char *key, const struct ft_mark *at,
		    const char *fmt, va_list args)
{
	char text[sizeof(r->err->text)];

	if (r->failed)
		return false;
	r->failed = true;
	vsnprintf(text, sizeof(text), fmt, args);
	if (key)
		return ft_fail(r->err, at, "%s: %s", key, text);
	return ft_fail(r->err, at, "%s", text);
}

bool reader_fail(struct reader *r, const char *key, const char *fmt, ...)
{
	struct ft_mark at = reader_mark(r, key);
	va_list args;

	va_start(args, fmt);
	fail_at(r, key, &at, fmt, args);
	va_end(args);
	return false;
}

bool reader_fail_node(struct reader *r, const char *key, const struct node *node,
		      const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fail_at(r, key, &node->mark, fmt, args);
	va_end(args);
	return false;
}

bool reader_knows(const struct reader *r, const char *key)
{
	for (size_t i = 0; i < r->n_known; i++)
		if (text_same(r->known[i], key))
			return true;
	return false;
}

void reader_allow(struct reader *r, const char *key)
{
	if (reader_knows(r, key))
		return;
	if (r->n_known < READER_KEYS)
		r->known[r->n_known++] = key;
	else
		reader_fail(r, NULL, "holds more than %d keys", (int)READER_KEYS);
}

struct node *read_node(struct reader *r, const char *key)
{
	struct node *n;

	reader_allow(r, key);
	n = node_get(r->map, key);
	return r->failed || node_is_null(n) ? NULL : n;
}

bool read_has(struct reader *r, const char *key)
{
	return read_node(r, key) != NULL;
}

/* A key of the map that nobody has asked for and that was probably meant for the one that is missing:
 * the nearest, or one that is a part of it (batch_size for global_batch_size); n: there is none. */
static size_t misspelt(const struct reader *r, const char *missing)
{
	const char *unknown[READER_KEYS] = { NULL }, *near;
	size_t n = 0, all = r->map ? r->map->n : 0;

	for (size_t i = 0; i < all && n < READER_KEYS; i++)
		if (!reader_knows(r, r->map->key[i]) &&
		    !(r->is_name && r->is_name(r->map->key[i])))
			unknown[n++] = r->map->key[i];
	near = text_nearest(missing, unknown, n);
	for (size_t i = 0; !near && i < n; i++)
		if (strlen(unknown[i]) >= 4 && strstr(missing, unknown[i]))
			near = unknown[i];
	for (size_t i = 0; near && i < all; i++)
		if (r->map->key[i] == near)
			return i;
	return all;
}

static bool refuse_key(struct reader *r, size_t i, const char *meant)
{
	struct arena mem = { 0 };

	r->failed = true;
	if (meant)
		ft_fail(r->err, &r->map->key_mark[i],
			"unknown key '%.80s'; did you mean '%s'?", r->map->key[i],
			meant);
	else
		ft_fail(r->err, &r->map->key_mark[i], "unknown key '%.80s'; known: %s",
			r->map->key[i], text_join(&mem, r->known, r->n_known));
	arena_release(&mem);
	return false;
}

/* A missing key is often a misspelt one: then that is said instead. */
static void tell_missing(struct reader *r)
{
	struct ft_mark at = reader_mark(r, NULL);
	const char *own = r->own ? r->own : r->missing;
	size_t i = misspelt(r, own), n = r->map ? r->map->n : 0;
	size_t k = r->own ? misspelt(r, r->missing) : n;

	if (i < n)
		refuse_key(r, i, own);
	else if (k < n)
		refuse_key(r, k, r->missing);
	else
		ft_fail(r->err, &at, "lacks the key '%s'%s%s", own,
			r->lacking ? "; " : "", r->lacking ? r->lacking : "");
	r->failed = true;
}

static void lacks(struct reader *r, const char *key)
{
	r->missing = key;
	tell_missing(r);
}

struct node *read_need(struct reader *r, const char *key)
{
	struct node *n = read_node(r, key);

	if (!n && !r->failed)
		lacks(r, key);
	return n;
}

static const char *scalar(struct reader *r, const char *key)
{
	const struct node *n = read_node(r, key);

	if (n && n->kind != NODE_SCALAR) {
		reader_fail(r, key, "should be a single value");
		return NULL;
	}
	return n ? n->text : NULL;
}

static bool parse(struct reader *r, const char *key, const struct node *n,
		  enum dimension dim, double *value)
{
	char why[200];

	if (n->kind != NODE_SCALAR)
		return reader_fail(r, key, "should be a single value");
	if (quantity_parse(n->text, dim, value, why, sizeof(why)))
		return true;
	return reader_fail_node(r, key, n, "%s", why);
}

double read_quantity(struct reader *r, const char *key, enum dimension dim,
		     double fallback)
{
	const struct node *n = read_node(r, key);
	double value = fallback;

	if (!n || !parse(r, key, n, dim, &value))
		return fallback;
	if (value < 0)
		reader_fail(r, key, "%s is negative", n->text);
	else if (value == 0 && fallback != 0 && dim != DIM_NONE && dim != DIM_FRAC)
		reader_fail(r, key, "%s is zero", n->text);
	return value;
}

int64_t read_int(struct reader *r, const char *key, int64_t min, int64_t max,
		 int64_t fallback)
{
	const char *text = scalar(r, key);
	int64_t value;
	bool beyond, whole;

	if (!text)
		return fallback;
	whole = text_whole(text, &value, &beyond);
	if (!whole && !beyond) {
		reader_fail(r, key, "'%.40s' is not a whole number", text);
		return fallback;
	}
	if (beyond || value < min || value > max) {
		reader_fail(r, key, "%.40s is not between %" PRId64 " and %" PRId64,
			    text, min, max);
		return fallback;
	}
	return value;
}

bool read_bool(struct reader *r, const char *key, bool fallback)
{
	const char *text = scalar(r, key);

	if (!text)
		return fallback;
	if (!strcmp(text, "true") || !strcmp(text, "True"))
		return true;
	if (!strcmp(text, "false") || !strcmp(text, "False"))
		return false;
	reader_fail(r, key, "'%.40s' is neither true nor false", text);
	return fallback;
}

const char *read_text(struct reader *r, const char *key, const char *fallback)
{
	const char *text = scalar(r, key);

	return text ? text : fallback;
}

const char *read_name(struct reader *r, const char *key, const char *fallback)
{
	const char *text = scalar(r, key);

	if (!text)
		return fallback;
	if (*text && !text_is_name(text))
		reader_fail(r, key, "'%.70s' " TEXT_NAME_RULE, text,
			    (int)LIMIT_NAME_BYTES);
	return text;
}

int read_choice(struct reader *r, const char *key, const char *const *names, size_t n,
		int fallback)
{
	const char *text = scalar(r, key), *near;
	struct arena mem = { 0 };
	size_t place;

	if (!text)
		return fallback;
	place = text_place(text, names, n);
	if (place < n)
		return (int)place;
	near = text_nearest(text, names, n);
	reader_fail(r, key, "'%.40s' is not one of %s%s%s%s", text,
		    text_join(&mem, names, n), near ? "; did you mean '" : "",
		    near ? near : "", near ? "'?" : "");
	arena_release(&mem);
	return fallback;
}

/* "2026", "2026-11" or "2026-11-22" after today (of the latest time zone); a clock
 * that was never set knows no future. */
bool reader_in_future(const char *date)
{
	time_t now = time(NULL) + 86400;
	char today[32];
	struct tm tm;

	if (strspn(date, "0123456789-") != strlen(date) || !gmtime_r(&now, &tm) ||
	    tm.tm_year < 126 || !strftime(today, sizeof(today), "%Y-%m-%d", &tm))
		return false;
	return strncmp(date, today, strlen(date)) > 0;
}

/* Of two digits; months and days count from 1. */
static bool is_up_to(const char *digits, int most)
{
	int n = 10 * (digits[0] - '0') + digits[1] - '0';

	return n >= 1 && n <= most;
}

/* "2026", "2026-11", "2026-11-22" */
bool reader_is_date(const char *text)
{
	static const char form[] = "dddd-dd-dd";
	size_t n = strlen(text);

	if (n != 4 && n != 7 && n != 10)
		return false;
	for (size_t i = 0; i < n; i++)
		if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != '-')
			return false;
	return (n < 7 || is_up_to(text + 5, 12)) && (n < 10 || is_up_to(text + 8, 31));
}

const char *read_date(struct reader *r, const char *key, const char *fallback)
{
	const char *text = scalar(r, key);

	if (!text)
		return fallback;
	if (!reader_is_date(text))
		reader_fail(r, key,
			    "'%.40s' is no date: write 2026, 2026-11 or 2026-11-22",
			    text);
	else if (reader_in_future(text))
		reader_fail(r, key, "%s lies in the future", text);
	return text;
}

static const struct ft_provenance *provenance(struct reader *r, struct arena *mem,
					      const struct node *node)
{
	static const char *const kinds[] = { "measured", "published", "derived",
					     "assumed" };
	struct ft_provenance *p = ARENA_NEW(mem, struct ft_provenance);
	struct reader in = reader_open(node, r->err);

	p->kind = (enum ft_provenance_kind)read_choice(&in, "kind", kinds, 4, 3);
	if (!in.failed && !node_get(node, "kind"))
		reader_fail(&in, NULL, "lacks the key 'kind'");
	p->source = read_text(&in, "source", "");
	p->date = read_text(&in, "date", "");
	p->note = read_text(&in, "note", "");
	p->address = read_text(&in, "address", "");
	if (!in.failed && reader_in_future(p->date))
		reader_fail(&in, "date", "%.20s lies in the future", p->date);
	if (!in.failed && p->kind != FT_ASSUMED && !p->source[0])
		reader_fail(&in, NULL, "lacks the key 'source'");
	if (!reader_close(&in))
		r->failed = true;
	return p;
}

void read_provenance(struct reader *r, struct arena *mem)
{
	const struct node *n = read_node(r, "provenance");

	if (n)
		r->from = provenance(r, mem, n);
}

static void read_parts(struct reader *r, struct arena *mem, const char *key,
		       const struct node *n, enum dimension dim, struct ft_number *out)
{
	struct reader in = reader_open(n, r->err);
	const struct node *value = read_need(&in, "value");
	const struct node *low = read_node(&in, "low");
	const struct node *high = read_node(&in, "high");

	in.from = out->from;
	if (value && parse(&in, key, value, dim, &out->value))
		out->low = out->high = out->value;
	if (low)
		(void)parse(&in, key, low, dim, &out->low);
	if (high)
		(void)parse(&in, key, high, dim, &out->high);
	read_provenance(&in, mem);
	out->from = in.from;
	if (!in.failed && (out->low > out->value || out->high < out->value))
		reader_fail(&in, "value", "lies outside low and high");
	if (!reader_close(&in))
		r->failed = true;
}

/* What no number of its dimension is, whatever it is of. */
static bool sane(const struct ft_number *n, enum dimension dim)
{
	switch (dim) {
	case DIM_S:
		return n->high <= 366 * 86400.0; /* a year */
	case DIM_FRAC:
		return n->high <= 100;
	case DIM_BYTES_PER_S:
	case DIM_FLOP_PER_S:
		return n->value == 0 || (n->value >= 1 && n->high <= 1e21);
	case DIM_NONE:
		return n->high <= 1e9;
	case DIM_W:
		return n->high <= 1e9;
	default:
		return n->high <= 1e21;
	}
}

void reader_bound(struct reader *r, const char *key, const struct ft_number *n,
		  double least, double most)
{
	if (!r->failed && read_has(r, key) && (n->low < least || n->high > most))
		reader_fail(r, key, "%g is not between %g and %g",
			    n->low < least ? n->low : n->high, least, most);
}

void reader_range(struct reader *r, const char *key, const struct ft_number *n,
		  double nothing)
{
	if (!r->failed && n->low < n->high && !(n->low > nothing))
		reader_fail(r, key,
			    "has a range that begins at %g, where a logarithm has no "
			    "end; write a low above it, or no range",
			    nothing);
}

struct ft_number read_positive(struct reader *r, struct arena *mem, const char *key,
			       enum dimension dim)
{
	struct ft_number n = read_number(r, mem, key, dim);

	if (!r->failed && !(n.value > 0))
		reader_fail(r, key, "should be above 0");
	return n;
}

struct ft_number read_number_or(struct reader *r, struct arena *mem, const char *key,
				enum dimension dim, double fallback)
{
	struct ft_number out = { fallback, fallback, fallback, r->from };
	const struct node *n = read_node(r, key);
	double v;

	if (!n)
		return out;
	if (n->provenance)
		out.from = provenance(r, mem, n->provenance);
	if (n->kind == NODE_MAP)
		read_parts(r, mem, key, n, dim, &out);
	else if (parse(r, key, n, dim, &v))
		out.value = out.low = out.high = v;
	if (!r->failed && out.low < 0)
		reader_fail(r, key, "is negative");
	if (!r->failed && !sane(&out, dim))
		reader_fail(r, key, "is out of range%s",
			    dim == DIM_S ? ": longer than a year" : "");
	if (!r->failed && !out.from)
		reader_fail(r, key,
			    "has no provenance; add provenance: "
			    "{kind, source, date} to it or its block");
	return out;
}

struct ft_number read_number(struct reader *r, struct arena *mem, const char *key,
			     enum dimension dim)
{
	struct ft_number out = read_number_or(r, mem, key, dim, 0);

	if (!r->failed && node_is_null(node_get(r->map, key)))
		lacks(r, key);
	return out;
}

bool reader_close(struct reader *r)
{
	if (r->missing) /* now that all keys are known that were asked for */
		tell_missing(r);
	for (size_t i = 0; !r->failed && r->map && i < r->map->n; i++) {
		const char *key = r->map->key[i];

		if (!reader_knows(r, key))
			return refuse_key(r, i,
					  text_nearest(key, r->known, r->n_known));
	}
	return !r->failed;
}
