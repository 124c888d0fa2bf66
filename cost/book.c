/* cost/book.c - price books: each alone, but for the lines it says it takes */
#include "cost/book.h"

#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/reader.h"
#include "base/text.h"

struct reading {
	struct arena *mem;
	struct books *books;
	struct ft_error *err;
};

static const struct book *read_one(struct reading *in, const char *name,
				   const struct ft_mark *at);

const char *books_whose(const struct books *books, const struct node *line)
{
	for (size_t i = 1; i < books->n; i++)
		if (!strcmp(line->mark.file, books->book[i].file))
			return books->book[i].name;
	return books->book[0].name;
}

/* A line as it counts where it stands: with the provenance of its block when it has
 * none of its own, as the block stays behind when the line is taken elsewhere. */
static struct node *line_of(struct arena *mem, const struct node *block,
			    struct node *line)
{
	const struct node *of_block = node_get(block, "provenance");
	struct node *copy;

	if (!line || !of_block || line->provenance || node_get(line, "provenance"))
		return line;
	copy = ARENA_NEW(mem, struct node);
	*copy = *line;
	copy->provenance = of_block;
	return copy;
}

/* ITEM: {from: NAME}, replaced by that book's line. */
static struct node *taken(struct reading *in, const char *section, const char *item,
			  const struct node *line)
{
	const struct node *from = node_get(line, "from");
	const struct book *other;
	struct node *block, *found;

	if (from->kind != NODE_SCALAR || line->n != 1) {
		ft_fail(in->err, &line->mark,
			"%s: a line that is taken from another book says {from: NAME} "
			"and nothing else",
			item);
		return NULL;
	}
	other = read_one(in, from->text, &from->mark);
	if (!other)
		return NULL;
	block = node_get(other->map, section);
	found = line_of(in->mem, block, node_get(block, item));
	if (!found)
		ft_fail(in->err, &from->mark, "book %s has no %s in its %s",
			other->name, item, section);
	return found;
}

/* The lines of a section that stand elsewhere, fetched. */
static bool fetch(struct reading *in, struct node *map, const char *section)
{
	struct node *block = node_get(map, section);

	for (size_t i = 0; block && block->kind == NODE_MAP && i < block->n; i++) {
		if (block->item[i]->kind != NODE_MAP ||
		    !node_get(block->item[i], "from"))
			continue;
		block->item[i] = taken(in, section, block->key[i], block->item[i]);
		if (!block->item[i])
			return false;
	}
	return true;
}

/* A book upon another: each line replaces the other's whole, its source and date with
 * it; all that is no section replaces too. */
static struct node *lay(struct arena *mem, const struct node *under,
			const struct node *book)
{
	struct node *out = node_map(mem, &book->mark);

	for (size_t i = 0; i < under->n; i++)
		node_put(mem, out, under->key[i], &under->key_mark[i], under->item[i]);
	for (size_t i = 0; i < book->n; i++) {
		struct node *base = node_get(under, book->key[i]);
		struct node *over = book->item[i], *both;

		if (!base || base->kind != NODE_MAP || over->kind != NODE_MAP ||
		    !strcmp(book->key[i], "provenance")) {
			node_put(mem, out, book->key[i], &book->key_mark[i], over);
			continue;
		}
		both = node_map(mem, &over->mark);
		for (size_t k = 0; k < base->n; k++)
			if (strcmp(base->key[k], "provenance"))
				node_put(mem, both, base->key[k], &base->key_mark[k],
					 line_of(mem, base, base->item[k]));
		for (size_t k = 0; k < over->n; k++)
			node_put(mem, both, over->key[k], &over->key_mark[k],
				 over->item[k]);
		node_put(mem, out, book->key[i], &book->key_mark[i], both);
	}
	return out;
}

/* Prices of one year upon those of another would look like one market. */
static bool same_year(struct reading *in, const struct book *book,
		      const struct book *other)
{
	const struct node *at = node_get(book->map, "extends");

	return !strncmp(book->date, other->date, 4) ||
	       ft_fail(in->err, &at->mark,
		       "extends: a book of %s cannot extend %s, which is of %s; take "
		       "the lines that are as good as then one by one, as ITEM: {from: %s}",
		       book->date, other->name, other->date, other->name);
}

/* Electricity that a book states itself is paid for: no colocation includes it, the other book's neither. */
static bool power_is_paid(struct reading *in, const struct book *book,
			  const struct node *own)
{
	const struct node *facility = node_get(own, "facility");
	const struct node *with =
		node_get(node_get(book->map, "facility"), "colocation_includes_power");
	bool includes = with && (node_says(with, "true") || node_says(with, "True"));

	for (size_t i = 0;
	     includes && facility && facility->kind == NODE_MAP && i < facility->n; i++)
		if (!strcmp(facility->key[i], "electricity") &&
		    !node_is_null(facility->item[i]))
			return ft_fail(
				in->err, &facility->key_mark[i],
				"electricity has no effect: the colocation includes power; "
				"leave it out, or give a colocation that does not and say "
				"colocation_includes_power: false");
	return true;
}

static const char *const sections[] = { "prices", "rent", "facility", "operation" };

enum { SECTIONS = sizeof(sections) / sizeof(*sections) };

static const struct book *complete(struct reading *in, struct book *book,
				   struct node *map)
{
	const struct node *extends = node_get(map, "extends");
	struct reader r = reader_open(map, in->err);
	const struct book *other = NULL;

	book->name = read_name(&r, "name", book->name);
	book->date = read_date(&r, "date", "");
	for (size_t i = 0; !r.failed && i < SECTIONS; i++)
		r.failed = !fetch(in, map, sections[i]);
	if (r.failed)
		return NULL;
	if (extends && extends->kind != NODE_SCALAR) {
		reader_fail(&r, "extends", "should be the name of a book");
		return NULL;
	}
	if (extends) {
		other = read_one(in, extends->text, &extends->mark);
		if (!other)
			return NULL;
		if (!*book->date)
			book->date = other->date;
	}
	if (!*book->date) {
		reader_fail(&r, NULL, "lacks the key 'date': the date of its prices");
		return NULL;
	}
	book->map = map;
	if (other && !same_year(in, book, other))
		return NULL;
	book->under = other ? other->map : NULL;
	if (other)
		book->map = lay(in->mem, other->map, map);
	return power_is_paid(in, book, map) ? book : NULL;
}

static const struct book *read_one(struct reading *in, const char *name,
				   const struct ft_mark *at)
{
	const char *path = file_find(in->mem, "cost/prices", name, at, in->err);
	struct books *all = in->books;
	struct book *book;
	struct node *map;

	for (size_t i = 0; path && i < all->n; i++)
		if (!strcmp(all->book[i].file, path)) {
			if (all->book[i].map)
				return &all->book[i];
			ft_fail(in->err, at, "%s leads back to itself", name);
			return NULL;
		}
	if (path && all->n == BOOKS_MOST) {
		ft_fail(in->err, at, "one book cannot lead to more than %d others",
			BOOKS_MOST - 1);
		return NULL;
	}
	map = path ? node_read_file(in->mem, path, in->err) : NULL;
	if (!map)
		return NULL;
	if (map->kind != NODE_MAP) {
		ft_fail(in->err, &map->mark, "a price book is a map");
		return NULL;
	}
	book = &all->book[all->n++];
	*book = (struct book){ .file = path, .name = name };
	return complete(in, book, map);
}

const struct book *books_read(struct arena *mem, struct books *books, const char *name,
			      const struct ft_mark *at, struct ft_error *err)
{
	struct reading in = { mem, books, err };

	books->n = 0;
	return read_one(&in, name, at);
}
