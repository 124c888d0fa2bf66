/*
 * models/layer_lists.h - numbers and lists by which a config says what its layers are: words for each, or numbers of
 * layers; mistakes are kept in the reader
 */
#ifndef MODELS_LAYER_LISTS_H
#define MODELS_LAYER_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct node;
struct reader;

/* A whole number from least to family_key_most of the key, or the fallback, which is not checked: not given. */
int64_t read_size(struct reader *r, const char *key, int64_t least, int64_t fallback);

/* A size >= 1 that a config of this kind cannot do without. */
int64_t read_needed(struct reader *r, const char *key);

/* A list of whole numbers up to most, or NULL: not given. */
const struct node *read_number_list(struct reader *r, const char *key, int64_t most);

/* A list of words of what layers are, of n that are known, or NULL: not given. */
const struct node *read_word_list(struct reader *r, const char *key,
				  const char *const *known, size_t n);

/* Does the scenario say it, upon a file or alone? */
bool laid_upon(const struct reader *r, const char *key);

/* A scenario's key that another one hides: a factor of which a width is not made, or a number beside one for each layer. */
void check_hidden(struct reader *r, const char *key, const char *by);

/* Were both said, and neither upon the other? What a scenario lays upon a file overrides what the file says; the values
 * that a class has for what a config leaves out (config_complete) contradict nothing. */
bool said_beside(const struct reader *r, const struct node *taken,
		 const struct node *other);

/* What to do about it, where they differ. */
#define SAY_ONE "leave one of them out, or say null for it"

/* n items of a key are one for each of the model's layers; more are a mistake, but where a scenario cuts the model of a file
 * to fewer layers, which are the first. */
void check_length(struct reader *r, const char *key, size_t n, int64_t layers);

/* A list has an item for each of the model's layers, or one for all. No list and an empty one are none. */
void check_list_covers(struct reader *r, const char *key, const struct node *list,
		       int64_t layers);

/* The same, and no more than that. */
void check_list_fits(struct reader *r, const char *key, const struct node *list,
		     int64_t layers);

/* Numbers of a list are those of layers, counted from `from`; others are a mistake, but as above. */
void check_list_within(struct reader *r, const char *key, const struct node *list,
		       int64_t from, int64_t layers);

/* Layer i's word of a list that covers the layers; NULL: no list. */
const char *list_word(const struct node *list, int64_t i);

/* Is layer i one of a list of numbers? No list has none. */
bool list_has(const struct node *list, int64_t i);

#endif
