/* stacks/extends.c - `extends` resolved */
#include "stacks/extends.h"

#include "base/file.h"

enum { DEEPEST = 8 };

static struct node *gather(struct arena *mem, const char *folder, const char *name,
			   const struct ft_mark *at, int depth, struct ft_error *err)
{
	const char *path = file_find(mem, folder, name, at, err);
	struct node *own = path ? node_read_file(mem, path, err) : NULL;
	struct node *parent, *below;

	if (!own)
		return NULL;
	parent = node_get(own, "extends");
	if (!parent)
		return own;
	if (parent->kind != NODE_SCALAR || depth == DEEPEST) {
		ft_fail(err, &parent->mark,
			depth == DEEPEST ?
				"files extend each other in a circle" :
				"extends: should be the name of another of its kind");
		return NULL;
	}
	below = gather(mem, folder, parent->text, &parent->mark, depth + 1, err);
	return below ? node_overlay(mem, below, own) : NULL;
}

struct node *extends_gather(struct arena *mem, const char *folder, const char *name,
			    const struct ft_mark *at, struct ft_error *err)
{
	return gather(mem, folder, name, at, 0, err);
}
