/* hw/gpu_kin.c - the rows of a profile: those beside it, of the one that it extends, and of its kin */
#include <string.h>

#include "base/arena.h"
#include "base/extends.h"
#include "base/file.h"
#include "hw/gpu.h"

/* The rows that lie beside a profile: what it names, and which of them. */
struct beside {
	const char *path;
	const struct gpu_wanted *wanted;
	int parts;
};

typedef bool load_file(const struct gpu_file *f, struct ft_error *err);

/* file: whose they become, and what they were measured on. */
static bool load_rows(const struct gpu_file *file, const struct beside *b,
		      struct ft_error *err)
{
	static load_file *const load[] = { gpu_load_gemm, gpu_load_attention,
					   gpu_load_collectives };
	const struct gpu_rows *rows[] = { &b->wanted->gemm, &b->wanted->attention,
					  &b->wanted->collectives };

	for (int i = 0; i < 3; i++) {
		struct gpu_file f = *file;

		if (!(b->parts & 1 << i) || !rows[i]->file)
			continue;
		f.path = file_beside(f.mem, b->path, rows[i]->file);
		f.from = rows[i]->from;
		if (!load[i](&f, err))
			return false;
	}
	return true;
}

/* Whose rows are there: none comes twice, though kins name each other. */
struct taken {
	const char *file;
	int parts;
	struct taken *before;
};

static int still_to_take(const struct taken *t, const char *file, int parts)
{
	for (; t; t = t->before)
		if (!strcmp(t->file, file))
			parts &= ~t->parts;
	return parts;
}

static void note_taken(struct arena *mem, struct taken **t, const char *file, int parts)
{
	struct taken *one = ARENA_NEW(mem, struct taken);

	*one = (struct taken){ file, parts, *t };
	*t = one;
}

static bool take_from_kin(const struct gpu_file *taker, const struct gpu_wanted *wanted,
			  int asked, int k, struct taken **taken, struct ft_error *err);

/* The head of a kin: what arithmetic needs. Its rows go to the taker, and so do those that it goes by
 * where it is named; who extends it has its key `rows_of` or another. */
static bool take_from(const struct gpu_file *taker, const struct gpu_rows *rows, int k,
		      int parts, struct taken **taken, struct ft_error *err)
{
	struct ft_gpu *kin = ARENA_NEW(taker->mem, struct ft_gpu);
	struct gpu_wanted wanted = { 0 };
	struct gpu_file f = *taker;
	const struct node *map = extends_file(f.mem, "hw/gpus", rows->kin[k],
					      &rows->kin_mark[k], EXTENDS_DERIVED, err);

	f.on = kin;
	f.kin += k;
	parts = map ? still_to_take(*taken, map->mark.file, parts) : 0;
	if (!parts)
		return map;
	note_taken(f.mem, taken, map->mark.file, parts);
	if (!gpu_read_profile(map, f.mem, kin, &wanted, err) ||
	    !load_rows(&f, &(struct beside){ map->mark.file, &wanted, parts }, err))
		return false;
	return !k || (take_from_kin(&f, &wanted, parts, 0, taken, err) &&
		      take_from_kin(&f, &wanted, parts, 1, taken, err));
}

/* Blocks that name the same kin read it once. */
static bool take_from_kin(const struct gpu_file *taker, const struct gpu_wanted *wanted,
			  int asked, int k, struct taken **taken, struct ft_error *err)
{
	const struct gpu_rows *rows[] = { &wanted->gemm, &wanted->attention,
					  &wanted->collectives };
	int done = 0;

	for (int i = 0; i < 3; i++) {
		int parts = 0;

		if (!rows[i]->kin[k] || done & 1 << i)
			continue;
		for (int j = i; j < 3; j++)
			if (rows[j]->kin[k] &&
			    !strcmp(rows[i]->kin[k], rows[j]->kin[k]))
				parts |= 1 << j;
		done |= parts;
		if (parts & asked &&
		    !take_from(taker, rows[i], k, parts & asked, taken, err))
			return false;
	}
	return true;
}

/* Its own rows, those of the one that it extends, and those of its kin. */
bool gpu_load_all_rows(const struct gpu_file *own, const struct node *map,
		       const struct gpu_wanted *wanted, int asked, struct ft_error *err)
{
	struct taken *taken = NULL;

	note_taken(own->mem, &taken, map->mark.file, asked);
	return load_rows(own, &(struct beside){ map->mark.file, wanted, asked }, err) &&
	       take_from_kin(own, wanted, asked, 0, &taken, err) &&
	       take_from_kin(own, wanted, asked, 1, &taken, err);
}
