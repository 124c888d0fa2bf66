/*
 * cost/history.c - an item's price in many books: those of the tree, or an SQLite file
 *
 * One table, prices: a row for each line of each book at each date. The file is ours by
 * its application_id; another program's is refused.
 */
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/plain.h"
#include "base/text.h"
#include "foretoken/cost_history.h"

enum { APPLICATION = 0x46545052 /* "FTPR" */, SCHEMA = 1, PATIENCE_MS = 60000 };

struct owned {
	struct ft_price_history history;
	size_t cap;
	struct arena mem;
};

void ft_price_history_free(struct ft_price_history *history)
{
	struct arena mem;

	if (!history)
		return;
	mem = ((struct owned *)history)->mem;
	arena_release(&mem);
}

static int by_date(const void *a, const void *b)
{
	const struct ft_price_point *x = a, *y = b;
	int order = strcmp(x->date, y->date);

	if (!order)
		order = strcmp(x->book, y->book);
	return order ? order : strcmp(x->item, y->item);
}

/* The history ordered; or an error with the nearest of the names. */
static struct ft_price_history *done(struct owned *to, const char *item,
				     const char *const *name, size_t n,
				     struct ft_error *err)
{
	struct arena mem = to->mem;
	const char *near;

	if (to->history.n) {
		qsort(to->history.point, to->history.n, sizeof(*to->history.point),
		      by_date);
		return &to->history;
	}
	near = text_nearest(item, name, n);
	ft_fail(err, NULL, "no book has a price of '%.64s'%s%s%s", item,
		near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	arena_release(&mem);
	return NULL;
}

/* ---- books ------------------------------------------------------------------------- */

static const struct ft_price *lines_of(const struct ft_prices *book, size_t *n)
{
	*n = book->n_rents ? book->n_rents : book->n_prices;
	return book->n_rents ? book->rent : book->price;
}

static void keep(struct owned *to, const struct ft_prices *book,
		 const struct ft_price *line)
{
	struct ft_price_history *h = &to->history;

	if (h->n == to->cap)
		h->point = ARENA_GROW(&to->mem, h->point, &to->cap);
	h->point[h->n++] = (struct ft_price_point){
		.item = arena_text(&to->mem, line->item),
		.book = arena_text(&to->mem, book->name),
		.buyer = arena_text(&to->mem, book->buyer),
		.vendor = arena_text(&to->mem, line->vendor),
		.date = arena_text(&to->mem, line->usd.from->date),
		.source = arena_text(&to->mem, line->usd.from->source),
		.address = arena_text(&to->mem, line->usd.from->address),
		.kind = line->kind,
		.rent = book->n_rents > 0,
		.usd = line->usd.value,
		.low = line->usd.low,
		.high = line->usd.high,
	};
}

/* Names of all items, to be suggested. */
struct names {
	const char **name;
	size_t n, cap;
};

/* The item's line in a book, when it is that book's own; all names are collected. */
static bool look_into(struct owned *to, const char *name, const char *item,
		      struct names *known, struct ft_error *err)
{
	struct ft_prices *book = ft_prices_load(name, NULL, err);
	const struct ft_price *line;
	size_t n;

	if (!book)
		return false;
	line = lines_of(book, &n);
	for (size_t i = 0; i < n; i++) {
		if (known->n == known->cap)
			known->name = ARENA_GROW(&to->mem, known->name, &known->cap);
		known->name[known->n++] = arena_text(&to->mem, line[i].item);
		if (!strcmp(line[i].item, item) && !strcmp(line[i].book, book->name))
			keep(to, book, &line[i]);
	}
	ft_prices_free(book);
	return true;
}

static struct ft_price_history *of_books(const char *item, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct owned *to = ARENA_NEW(&mem, struct owned);
	struct names known = { NULL, 0, 0 };
	const char **name;
	size_t n;

	to->mem = mem;
	name = file_list(&to->mem, "cost/prices", &n, err);
	for (size_t i = 0; name && i < n; i++)
		if (!look_into(to, name[i], item, &known, err))
			name = NULL;
	if (name)
		return done(to, item, known.name, known.n, err);
	mem = to->mem;
	arena_release(&mem);
	return NULL;
}

/* ---- SQLite ------------------------------------------------------------------------ */

static bool db_fail(const char *path, sqlite3 *db, struct ft_error *err)
{
	struct ft_mark at = { .file = path };

	return ft_fail(err, &at, "SQLite: %s",
		       db ? sqlite3_errmsg(db) : "out of memory");
}

static bool ask(sqlite3 *db, const char *sql, int *value)
{
	sqlite3_stmt *q = NULL;
	bool ok = sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK &&
		  sqlite3_step(q) == SQLITE_ROW;

	if (ok)
		*value = sqlite3_column_int(q, 0);
	sqlite3_finalize(q);
	return ok;
}

/* Ours, or empty. */
static bool ours(const char *path, sqlite3 *db, struct ft_error *err)
{
	struct ft_mark at = { .file = path };
	int tables, application, version;

	if (!ask(db, "SELECT count(*) FROM sqlite_schema", &tables) ||
	    !ask(db, "PRAGMA application_id", &application) ||
	    !ask(db, "PRAGMA user_version", &version))
		return db_fail(path, db, err);
	if (!tables && !application)
		return true;
	if (application != APPLICATION || version != SCHEMA)
		return ft_fail(err, &at,
			       "is no history of prices of this version; take another "
			       "file");
	return true;
}

static sqlite3 *open_db(const char *path, bool write, struct ft_error *err)
{
	sqlite3 *db = NULL;
	int how = write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE :
			  SQLITE_OPEN_READONLY;

	if (sqlite3_open_v2(path, &db, how, NULL) == SQLITE_OK &&
	    sqlite3_busy_timeout(db, PATIENCE_MS) == SQLITE_OK) {
		if (ours(path, db, err))
			return db;
	} else {
		db_fail(path, db, err);
	}
	sqlite3_close(db);
	return NULL;
}

static const char table[] =
	"CREATE TABLE IF NOT EXISTS prices (book TEXT NOT NULL, book_date TEXT NOT NULL, "
	"item TEXT NOT NULL, buyer TEXT NOT NULL, vendor TEXT NOT NULL, date TEXT NOT "
	"NULL, source TEXT NOT NULL, address TEXT NOT NULL, kind INTEGER NOT NULL, rent "
	"INTEGER NOT NULL, usd REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL, "
	"PRIMARY KEY (book, book_date, item)) STRICT, WITHOUT ROWID;";

static bool put_row(sqlite3_stmt *q, const struct ft_prices *book,
		    const struct ft_price *p)
{
	const struct ft_provenance *from = p->usd.from;
	const char *text[] = { book->name, book->date, p->item,	     book->buyer,
			       p->vendor,  from->date, from->source, from->address };
	double number[] = { p->usd.value, p->usd.low, p->usd.high };
	bool ok = true;

	for (int i = 0; i < 8; i++)
		ok &= sqlite3_bind_text(q, i + 1, text[i], -1, SQLITE_TRANSIENT) ==
		      SQLITE_OK;
	ok &= sqlite3_bind_int(q, 9, (int)p->kind) == SQLITE_OK;
	ok &= sqlite3_bind_int(q, 10, book->n_rents > 0) == SQLITE_OK;
	for (int i = 0; i < 3; i++)
		ok &= sqlite3_bind_double(q, i + 11, number[i]) == SQLITE_OK;
	return ok && sqlite3_step(q) == SQLITE_DONE && sqlite3_reset(q) == SQLITE_OK;
}

/* All rows of the book and date anew, within one transaction. */
static bool put_rows(sqlite3 *db, const struct ft_prices *book, size_t *n)
{
	sqlite3_stmt *drop = NULL, *insert = NULL;
	size_t lines;
	const struct ft_price *line = lines_of(book, &lines);
	bool ok = sqlite3_prepare_v2(
			  db, "DELETE FROM prices WHERE book = ?1 AND book_date = ?2",
			  -1, &drop, NULL) == SQLITE_OK &&
		  sqlite3_prepare_v2(
			  db,
			  "INSERT INTO prices (book, book_date, item, buyer, vendor, "
			  "date, source, address, kind, rent, usd, low, high) VALUES "
			  "(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)",
			  -1, &insert, NULL) == SQLITE_OK &&
		  sqlite3_bind_text(drop, 1, book->name, -1, SQLITE_TRANSIENT) ==
			  SQLITE_OK &&
		  sqlite3_bind_text(drop, 2, book->date, -1, SQLITE_TRANSIENT) ==
			  SQLITE_OK &&
		  sqlite3_step(drop) == SQLITE_DONE;

	*n = 0;
	for (size_t i = 0; ok && i < lines; i++) {
		if (strcmp(line[i].book, book->name) != 0)
			continue;
		ok = put_row(insert, book, &line[i]);
		*n += ok;
	}
	sqlite3_finalize(drop);
	sqlite3_finalize(insert);
	return ok;
}

static bool import(const char *path, sqlite3 *db, const struct ft_prices *book,
		   size_t *n, struct ft_error *err)
{
	char set[96];

	snprintf(set, sizeof(set), "PRAGMA application_id=%d; PRAGMA user_version=%d;",
		 APPLICATION, SCHEMA);
	if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK &&
	    sqlite3_exec(db, set, NULL, NULL, NULL) == SQLITE_OK &&
	    sqlite3_exec(db, table, NULL, NULL, NULL) == SQLITE_OK &&
	    put_rows(db, book, n) &&
	    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
		return true;
	return db_fail(path, db, err);
}

bool ft_price_history_import(const char *path, const char *name, size_t *n,
			     struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct ft_prices *book = ft_prices_load(name, NULL, err);
	sqlite3 *db = book && file_for_sqlite("--db", path, err) ?
			      open_db(path, true, err) :
			      NULL;
	bool ok = db && import(path, db, book, n, err);

	sqlite3_close(db);
	ft_prices_free(book);
	return ok;
}

static const char *column(struct arena *mem, sqlite3_stmt *q, int i)
{
	const char *text = (const char *)sqlite3_column_text(q, i);

	return arena_text(mem, text ? text : "");
}

static bool get_rows(struct owned *to, sqlite3 *db, const char *item)
{
	struct ft_price_history *h = &to->history;
	struct arena *mem = &to->mem;
	sqlite3_stmt *q = NULL;
	int step = SQLITE_ERROR;

	if (sqlite3_prepare_v2(db,
			       "SELECT item, book, buyer, vendor, date, source, "
			       "address, kind, rent, usd, low, high FROM prices WHERE "
			       "item = ?1 ORDER BY date, book, book_date LIMIT 100000",
			       -1, &q, NULL) == SQLITE_OK &&
	    sqlite3_bind_text(q, 1, item, -1, SQLITE_TRANSIENT) == SQLITE_OK)
		while ((step = sqlite3_step(q)) == SQLITE_ROW) {
			int kind = sqlite3_column_int(q, 7);

			if (h->n == to->cap)
				h->point = ARENA_GROW(mem, h->point, &to->cap);
			h->point[h->n++] = (struct ft_price_point){
				.item = column(mem, q, 0),
				.book = column(mem, q, 1),
				.buyer = column(mem, q, 2),
				.vendor = column(mem, q, 3),
				.date = column(mem, q, 4),
				.source = column(mem, q, 5),
				.address = column(mem, q, 6),
				.kind = kind >= 0 && kind < FT_PRICE_KINDS ?
						(enum ft_price_kind)kind :
						FT_PRICE_GUESSED,
				.rent = sqlite3_column_int(q, 8) != 0,
				.usd = sqlite3_column_double(q, 9),
				.low = sqlite3_column_double(q, 10),
				.high = sqlite3_column_double(q, 11),
			};
		}
	sqlite3_finalize(q);
	return step == SQLITE_DONE;
}

/* The names of all items, to say which one is near. */
static size_t names_of(struct arena *mem, sqlite3 *db, const char ***name)
{
	sqlite3_stmt *q = NULL;
	size_t n = 0, cap = 0;

	*name = NULL;
	if (sqlite3_prepare_v2(db, "SELECT DISTINCT item FROM prices LIMIT 100000", -1,
			       &q, NULL) == SQLITE_OK)
		while (sqlite3_step(q) == SQLITE_ROW) {
			if (n == cap)
				*name = ARENA_GROW(mem, *name, &cap);
			(*name)[n++] = column(mem, q, 0);
		}
	sqlite3_finalize(q);
	return n;
}

static struct ft_price_history *of_db(const char *item, const char *path,
				      struct ft_error *err)
{
	sqlite3 *db = open_db(path, false, err);
	struct arena mem = { 0 };
	struct ft_price_history *history = NULL;
	struct owned *to;
	const char **name;
	size_t n;

	if (!db)
		return NULL;
	to = ARENA_NEW(&mem, struct owned);
	to->mem = mem;
	if (get_rows(to, db, item)) {
		n = names_of(&to->mem, db, &name);
		history = done(to, item, name, n, err);
	} else {
		db_fail(path, db, err);
		mem = to->mem;
		arena_release(&mem);
	}
	sqlite3_close(db);
	return history;
}

struct ft_price_history *ft_price_history_load(const char *item, const char *db,
					       struct ft_error *err)
{
	PLAIN_NUMBERS;
	return db ? of_db(item, db, err) : of_books(item, err);
}
