/* models/layer_lists.c - numbers and lists by which a config says what its layers are */
#include "models/layer_lists.h"

#include <string.h>

#include "base/arena.h"
#include "base/reader.h"
#include "base/text.h"
#include "models/family.h"

int64_t read_size(struct reader *r, const char *key, int64_t least, int64_t fallback)
{
	return read_int(r, key, least, family_key_most(key), fallback);
}

/* A list, or nothing. */
static const struct node *read_list(struct reader *r, const char *key)
{
	const struct node *n = read_node(r, key);

	if (n && n->kind != NODE_LIST)
		reader_fail(r, key, "should be a list");
	return n && n->kind == NODE_LIST ? n : NULL;
}

const struct node *read_number_list(struct reader *r, const char *key, int64_t most)
{
	const struct node *list = read_list(r, key);
	int64_t ignored;

	for (size_t i = 0; list && i < list->n && !r->failed; i++)
		if (!node_whole(list->item[i], 0, most, &ignored))
			reader_fail_node(r, key, list->item[i],
					 "should be whole numbers from 0 to %lld",
					 (long long)most);
	return list;
}

const struct node *read_word_list(struct reader *r, const char *key,
				  const char *const *known, size_t n)
{
	const struct node *list = read_list(r, key);
	struct arena mem = { 0 };

	for (size_t i = 0; list && i < list->n && !r->failed; i++) {
		const char *text = list->item[i]->text;
		size_t k = 0;

		while (k < n && text && strcmp(text, known[k]) != 0)
			k++;
		if (!text || k == n)
			reader_fail_node(r, key, list->item[i],
					 "%.40s is no layer that is simulated; those "
					 "are: %s",
					 text ? text : "a value of this kind",
					 text_join(&mem, known, n));
	}
	arena_release(&mem);
	return list;
}

static const char defaults[] = "models/class_values.c";

bool laid_upon(const struct reader *r, const char *key)
{
	const struct node *n = node_get(r->map, key);

	return !node_is_null(n) && strcmp(n->mark.file, defaults) != 0 &&
	       (!r->base || strcmp(n->mark.file, r->base) != 0);
}

void check_hidden(struct reader *r, const char *key, const char *by)
{
	if (laid_upon(r, key) && read_has(r, by))
		reader_fail(r, key, "does nothing beside %s; say null for that", by);
}

bool said_beside(const struct reader *r, const struct node *taken,
		 const struct node *other)
{
	if (node_is_null(taken) || node_is_null(other) ||
	    !strcmp(taken->mark.file, defaults) || !strcmp(other->mark.file, defaults))
		return false;
	return !r->base || strcmp(other->mark.file, r->base) != 0 ||
	       !strcmp(taken->mark.file, r->base);
}

void check_length(struct reader *r, const char *key, size_t n, int64_t layers)
{
	if (n > (size_t)layers && said_beside(r, node_get(r->map, "num_hidden_layers"),
					      node_get(r->map, key)))
		reader_fail(r, key, "names %zu layers, but num_hidden_layers is %lld",
			    n, (long long)layers);
}

void check_list_within(struct reader *r, const char *key, const struct node *list,
		       int64_t from, int64_t layers)
{
	const struct node *said = node_get(r->map, "num_hidden_layers");
	int64_t layer;

	for (size_t i = 0; list && i < list->n && !r->failed; i++)
		if (node_whole(list->item[i], layers + from, INT64_MAX, &layer) &&
		    said_beside(r, said, list))
			reader_fail_node(r, key, list->item[i],
					 "there is no layer %lld: num_hidden_layers is "
					 "%lld, and layers are counted from %lld",
					 (long long)layer, (long long)layers,
					 (long long)from);
}

void check_list_covers(struct reader *r, const char *key, const struct node *list,
		       int64_t layers)
{
	if (list && list->n > 1 && list->n < (size_t)layers)
		reader_fail(r, key,
			    "names %zu of the %lld layers; write an item for each, or "
			    "one for all",
			    list->n, (long long)layers);
}

void check_list_fits(struct reader *r, const char *key, const struct node *list,
		     int64_t layers)
{
	check_list_covers(r, key, list, layers);
	if (list && list->n > 1)
		check_length(r, key, list->n, layers);
}

const char *list_word(const struct node *list, int64_t i)
{
	const char *text;

	if (!list || !list->n)
		return NULL;
	text = list->item[list->n == 1 ? 0 : (size_t)i]->text;
	return text ? text : "";
}

bool list_has(const struct node *list, int64_t i)
{
	int64_t layer;

	for (size_t k = 0; list && k < list->n; k++)
		if (node_whole(list->item[k], i, i, &layer))
			return true;
	return false;
}

int64_t read_needed(struct reader *r, const char *key)
{
	return read_need(r, key) ? read_size(r, key, 1, 1) : 1;
}
