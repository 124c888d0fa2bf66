/*
 * models/config.h - what each model_type calls its shape, and what it implies
 *
 * A type decides gating, norms, positions, biases and tying; a config only
 * states numbers, under names of that type's own. config_rename turns those
 * into the names of llama's config.json, so that a config and the keys laid
 * upon it meet under one name; config_read makes the model of the result.
 */
#ifndef MODELS_CONFIG_H
#define MODELS_CONFIG_H

#include "foretoken/models.h"

struct arena;
struct family;
struct reader;

/* The family of a `model_type`; an unknown one is an error that says which family the
 * keys of its map (may be NULL) fit, or, in a file that others wrote, whose layers it may have. */
const struct family *config_family(const struct node *type, const struct node *map,
				   bool published, struct ft_error *err)
	__attribute__((warn_unused_result));

/* A file without a model_type is refused: what it seems to be, and what to say instead. */
bool config_typeless(const struct node *map, struct ft_error *err);

/* Keys of a config.json that config_rename leaves out; *n of them. */
const char **config_passed_over(struct arena *mem, const struct family *family,
				const struct node *map, size_t *n);

/* Is it said, and not to say that there is none? */
bool config_says_something(const struct node *n);

/* Put keys of maps inside that have a common name of their own under it. */
void config_lift_inside(struct arena *mem, const struct family *family,
			const struct node *map, struct node *out);

/* The i-th key of a map's maps that says something and that the family does not read, as one with a dot, and where it stands;
 * NULL behind the last. */
const char *config_unread_inside(struct arena *mem, const struct family *family,
				 const struct node *map, size_t i,
				 const struct ft_mark **mark);

/* A key of a map inside that its type does not read is a mistake in what a scenario says (map may be NULL). */
bool config_known_inside(struct arena *mem, const struct family *family,
			 const struct node *map, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Two names of one thing in a map (may be NULL) say the same. */
bool config_named_once(const struct family *family, const struct node *map,
		       struct ft_error *err) __attribute__((warn_unused_result));

/* A shallow copy of map under common names; lenient drops what it does not
 * know. */
struct node *config_rename(struct arena *mem, const struct family *family,
			   const struct node *map, bool lenient);

/* What the type's class sets where the map (under common names) says nothing. */
void config_complete(struct arena *mem, const struct family *family, struct node *map);

/* Keys under common names that made no difference to a model of its type. */
struct config_idle {
	const char **key;
	size_t n;
};

/* All keys under common names, and the file upon whose keys those of a scenario were laid, or NULL. */
struct config_keys {
	const struct node *map;
	const char *base;
};

/* Fill the model, but for its name. */
bool config_read(struct arena *mem, const struct family *family,
		 const struct config_keys *in, struct ft_model *model,
		 struct config_idle *idle, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Common names in a mistake become those under which the scenario's map, or else the file's, has them. */
void config_spell(const struct family *family, const struct node *over,
		  const struct node *base, struct ft_error *err);

/* Is common among them? */
void config_find_idle(struct arena *mem, const struct reader *r,
		      struct config_idle *idle);
bool config_is_idle(const struct config_idle *idle, const char *common);

/* A key that the scenario lays upon a model is refused where it is of another kind of model. */
bool config_no_idle(const struct family *family, const struct node *over,
		    const struct config_idle *idle, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
