/* hw/gpu_attention.c - the block of a profile about attention: its model's constants, which
 * kernels implementations have, and its rows */
#include <string.h>

#include "base/arena.h"
#include "base/reader.h"
#include "base/text.h"
#include "hw/gpu.h"

enum { WIDEST_HEAD = 4096, HEAD_STEP = 32 };

/* NAME of NAME-VERSION. */
static bool same_library(const char *a, const char *b)
{
	size_t n = strcspn(a, "-");

	return n == strcspn(b, "-") && !strncmp(a, b, n);
}

bool ft_attention_known(const struct ft_gpu *gpu, const char *impl)
{
	for (size_t i = 0; i < gpu->n_impls; i++)
		if (same_library(gpu->impl[i].name, impl))
			return true;
	return same_library(gpu->attention_impl, impl);
}

bool ft_attention_version_known(const struct ft_gpu *gpu, const char *impl)
{
	bool known = !strchr(impl, '-') || !strcmp(gpu->attention_impl, impl);

	for (size_t i = 0; i < gpu->n_impls; i++)
		known |= !strcmp(gpu->impl[i].name, impl);
	for (size_t i = 0; i < gpu->n_attention; i++)
		known |= !strcmp(gpu->attention[i].impl, impl);
	return known;
}

const char *ft_attention_names(struct arena *mem, const struct ft_gpu *gpu)
{
	const char **name = ARENA_ARRAY(mem, gpu->n_impls + 1, const char *);

	for (size_t i = 0; i < gpu->n_impls; i++)
		name[i] = gpu->impl[i].name;
	if (!gpu->n_impls)
		name[0] = gpu->attention_impl;
	return text_join(mem, name, gpu->n_impls ? gpu->n_impls : 1);
}

const struct ft_attention_kernels *ft_attention_kernels(const struct ft_gpu *gpu,
							const char *impl)
{
	const struct ft_attention_kernels *of_name = NULL;

	for (size_t i = 0; impl && i < gpu->n_kernels; i++) {
		const struct ft_attention_kernels *k = &gpu->kernels[i];

		if (!strcmp(k->impl, impl))
			return k;
		if (!strchr(k->impl, '-') && same_library(k->impl, impl))
			of_name = k;
	}
	return of_name;
}

double ft_attention_kernel_size(const struct ft_gpu *gpu, const char *impl,
				double head_dim)
{
	const struct ft_attention_kernels *k = ft_attention_kernels(gpu, impl);

	for (size_t i = 0; k && i < k->n_sizes; i++)
		if ((double)k->size[i] >= head_dim)
			return (double)k->size[i];
	return head_dim;
}

static void read_passes(struct reader *outer, struct arena *mem, const char *key,
			struct ft_number out[2])
{
	struct reader r = gpu_open_block(outer, mem, read_need(outer, key));

	out[0] = read_number(&r, mem, "forward", DIM_NONE);
	out[1] = read_number(&r, mem, "backward", DIM_NONE);
	if (!strcmp(key, "efficiency") || !strcmp(key, "scores")) {
		reader_bound(&r, "forward", &out[0], 0.001, 10);
		reader_bound(&r, "backward", &out[1], 0.001, 10);
	}
	if (!strcmp(key, "fill_tokens")) {
		reader_bound(&r, "forward", &out[0], 0, 4096);
		reader_bound(&r, "backward", &out[1], 0, 4096);
	}
	gpu_close_block(&r, outer);
}

static void read_impls(struct reader *outer, struct arena *mem, struct ft_gpu *gpu)
{
	const struct node *map = read_node(outer, "impl_rate");
	struct reader r = gpu_open_block(outer, mem, map);

	gpu->n_impls = 0;
	if (!r.map) {
		outer->failed = r.failed;
		return;
	}
	gpu->impl = ARENA_ARRAY(mem, r.map->n + 1, struct ft_attention_impl);
	for (size_t i = 0; i < r.map->n; i++) {
		struct ft_attention_impl *impl = &gpu->impl[gpu->n_impls];

		if (!strcmp(r.map->key[i], "provenance"))
			continue;
		impl->name = r.map->key[i];
		impl->rate = read_positive(&r, mem, impl->name, DIM_NONE);
		reader_bound(&r, impl->name, &impl->rate, 0.001, 100);
		gpu->n_impls++;
	}
	gpu_close_block(&r, outer);
}

/* head_dim: 128 or [72, 128]; v_head_dim: as wide, unless it is given. */
static void read_shapes(struct reader *outer, struct arena *mem,
			const struct node *item, struct ft_attention_taken *t)
{
	struct reader r = gpu_open_block(outer, mem, item);
	const struct node *dims = read_need(&r, "head_dim");
	int64_t *to[2] = { &t->least, &t->most };
	bool list = dims && dims->kind == NODE_LIST;

	for (size_t i = 0; dims && !r.failed && i < 2; i++)
		if ((list && dims->n != 2) ||
		    !node_whole(list ? dims->item[i] : dims, 1, WIDEST_HEAD, to[i]))
			reader_fail(&r, "head_dim",
				    "is a whole number from 1 to %d, or [least, most]",
				    (int)WIDEST_HEAD);
	if (!r.failed && t->least > t->most)
		reader_fail(&r, "head_dim", "is [least, most], the least first");
	t->v_head_dim = read_int(&r, "v_head_dim", 0, WIDEST_HEAD, 0);
	t->windows = read_bool(&r, "windows", false);
	gpu_close_block(&r, outer);
}

/* sizes: [64, 128, 256], rising; work is counted in steps of 32 */
static void read_sizes(struct reader *r, struct arena *mem,
		       struct ft_attention_kernels *k)
{
	const struct node *list = read_node(r, "sizes");
	bool rising = !list || list->kind == NODE_LIST;

	if (!list || r->failed)
		return;
	if (rising)
		k->size = ARENA_ARRAY(mem, list->n + 1, int64_t);
	for (; rising && k->n_sizes < list->n; k->n_sizes++)
		rising = node_whole(list->item[k->n_sizes], 1, WIDEST_HEAD,
				    &k->size[k->n_sizes]) &&
			 k->size[k->n_sizes] % HEAD_STEP == 0 &&
			 (!k->n_sizes || k->size[k->n_sizes] > k->size[k->n_sizes - 1]);
	if (!rising)
		reader_fail(r, "sizes", "is a rising list of multiples of %d, up to %d",
			    (int)HEAD_STEP, (int)WIDEST_HEAD);
}

/* forward, backward: lists of shapes */
static void read_taken(struct reader *r, struct arena *mem, int pass,
		       struct ft_attention_kernels *k)
{
	const char *name = ft_pass_name((enum ft_pass)pass);
	const struct node *list = read_node(r, name);

	if (!list || r->failed)
		return;
	if (list->kind != NODE_LIST)
		reader_fail(r, name, "is a list of shapes");
	else if (!k->otherwise[0])
		reader_fail(r, name, "needs 'else': what runs other shapes");
	else
		k->taken[pass] =
			ARENA_ARRAY(mem, list->n + 1, struct ft_attention_taken);
	for (size_t i = 0; !r->failed && i < list->n; i++)
		if (list->item[i]->kind == NODE_MAP)
			read_shapes(r, mem, list->item[i],
				    &k->taken[pass][k->n_taken[pass]++]);
		else
			reader_fail_node(r, name, list->item[i], "is a list of shapes");
}

/* A name that nothing else has would be a misspelt one. */
static void check_name(struct reader *r, const char *key, const struct ft_gpu *gpu,
		       const char *name)
{
	if (!ft_attention_known(gpu, name) && !r->failed)
		reader_fail(r, key, "is no implementation of impl_rate");
}

/* `else` leads from one implementation to another, and must come to an end. */
static void check_ends(struct reader *r, const struct ft_gpu *gpu)
{
	for (size_t i = 0; !r->failed && i < 2 * gpu->n_kernels; i++) {
		const struct ft_attention_kernels *first = &gpu->kernels[i / 2],
						  *k = first;
		size_t met = 0;

		while (k && (k->taken[i % 2] || k->widest) && met++ < gpu->n_kernels)
			k = ft_attention_kernels(gpu, k->otherwise);
		if (met > gpu->n_kernels)
			reader_fail(r, first->impl, "comes back to itself by 'else'");
	}
}

static void read_kernels(struct reader *outer, struct arena *mem, struct ft_gpu *gpu)
{
	const struct node *map = read_node(outer, "kernels");
	struct reader r = gpu_open_block(outer, mem, map);

	if (r.map)
		gpu->kernels =
			ARENA_ARRAY(mem, r.map->n + 1, struct ft_attention_kernels);
	for (size_t i = 0; r.map && i < r.map->n; i++) {
		struct ft_attention_kernels *k = &gpu->kernels[gpu->n_kernels];
		struct reader in;

		if (!strcmp(r.map->key[i], "provenance"))
			continue;
		k->impl = r.map->key[i];
		check_name(&r, k->impl, gpu, k->impl);
		in = gpu_open_block(&r, mem, read_node(&r, k->impl));
		k->otherwise = read_name(&in, "else", "");
		if (k->otherwise[0])
			check_name(&in, "else", gpu, k->otherwise);
		k->widest = read_int(&in, "widest", 0, WIDEST_HEAD, 0);
		if (k->widest && !k->otherwise[0])
			reader_fail(&in, "widest",
				    "needs 'else': what runs wider heads");
		read_sizes(&in, mem, k);
		for (int pass = 0; pass < FT_PASS_BOTH; pass++)
			read_taken(&in, mem, pass, k);
		gpu->n_kernels++;
		gpu_close_block(&in, &r);
	}
	check_ends(&r, gpu);
	gpu_close_block(&r, outer);
}

/* gathered: {efficiency:, fill_tokens: and scores: {forward:, backward:} each, heads:} */
static void read_gathered(struct reader *outer, struct arena *mem,
			  struct ft_gathered_model *m)
{
	struct reader r = gpu_open_block(outer, mem, read_node(outer, "gathered"));

	*m = (struct ft_gathered_model){ .known = r.map != NULL };
	if (m->known) {
		read_passes(&r, mem, "efficiency", m->efficiency);
		read_passes(&r, mem, "scores", m->scores);
		read_passes(&r, mem, "fill_tokens", m->fill);
		m->heads = read_number_or(&r, mem, "heads", DIM_NONE, 1);
		reader_bound(&r, "heads", &m->heads, 1, 256);
	}
	gpu_close_block(&r, outer);
}

void gpu_read_attention(struct reader *outer, struct arena *mem, struct ft_gpu *gpu,
			struct gpu_rows *rows)
{
	struct ft_attention_model *m = &gpu->attention_model;
	struct reader r = gpu_open_block(outer, mem, read_need(outer, "attention"));

	gpu->attention_spread = read_number(&r, mem, "spread", DIM_FRAC);
	gpu->attention_impl = read_name(&r, "impl", "");
	gpu->attention_plain = read_name(&r, "plain_impl", gpu->attention_impl);
	m->start_s = read_number(&r, mem, "start", DIM_S);
	read_passes(&r, mem, "efficiency", m->efficiency);
	read_passes(&r, mem, "ramp_tokens", m->ramp);
	read_passes(&r, mem, "edge_tokens", m->edge);
	m->wave_frac = read_number(&r, mem, "wave_loss", DIM_FRAC);
	m->narrow_frac = read_positive(&r, mem, "head_dim_64_rate", DIM_FRAC);
	m->wide_frac = read_positive(&r, mem, "head_dim_256_rate", DIM_FRAC);
	reader_bound(&r, "wave_loss", &m->wave_frac, 0, 1);
	reader_bound(&r, "head_dim_64_rate", &m->narrow_frac, 0.01, 10);
	reader_bound(&r, "head_dim_256_rate", &m->wide_frac, 0.01, 10);
	read_impls(&r, mem, gpu);
	read_kernels(&r, mem, gpu);
	read_gathered(&r, mem, &gpu->gathered);
	gpu_read_rows(&r, rows);
	gpu_close_block(&r, outer);
}
