/* study/row_pack.c - a row of a sweep's table as bytes, and back */
#include "study/row_pack.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

static const uint32_t NONE = UINT32_MAX;

void pack_release(struct pack *p)
{
	free(p->bytes);
	*p = (struct pack){ 0 };
}

void pack_bytes(struct pack *p, const void *bytes, size_t n)
{
	if (p->n + n > p->cap) {
		p->cap = 2 * (p->n + n);
		p->bytes = allocated(realloc(p->bytes, p->cap));
	}
	memcpy(p->bytes + p->n, bytes, n);
	p->n += n;
}

static void pack_text(struct pack *p, const char *text)
{
	uint32_t n = text ? (uint32_t)strlen(text) : NONE;

	pack_bytes(p, &n, sizeof(n));
	if (text)
		pack_bytes(p, text, n);
}

/* Each number of an answer, where it lies in a struct ft_outcome. */
static size_t next_number(size_t *field, int *part)
{
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);

	while (*field < n) {
		const struct ft_outcome_field *x = &f[*field];
		size_t at[3] = { x->value, x->low, x->high };

		if (*part < (x->high ? 3 : 1))
			return at[(*part)++];
		++*field;
		*part = 0;
	}
	return SIZE_MAX;
}

void pack_row(struct pack *p, const struct sweep_row *row, size_t n_values)
{
	size_t field = 0, at;
	int part = 0;

	pack_bytes(p, row->key, sizeof(row->key));
	pack_text(p, row->label);
	pack_text(p, row->settings);
	pack_text(p, row->error);
	for (size_t i = 0; i < n_values; i++)
		pack_text(p, row->value[i]);
	if (row->error)
		return;
	pack_bytes(p, &row->outcome.fits, sizeof(row->outcome.fits));
	while ((at = next_number(&field, &part)) != SIZE_MAX)
		pack_bytes(p, (const char *)&row->outcome + at, sizeof(double));
}

void unpack_bytes(struct unpack *u, void *to, size_t n)
{
	u->bad |= n > u->n;
	if (u->bad) {
		memset(to, 0, n);
		return;
	}
	memcpy(to, u->at, n);
	u->at += n;
	u->n -= n;
}

static const char *unpack_text(struct unpack *u, struct arena *mem)
{
	const char *text;
	uint32_t n;

	unpack_bytes(u, &n, sizeof(n));
	u->bad |= n != NONE && n > u->n;
	if (u->bad || n == NONE)
		return NULL;
	text = arena_text_n(mem, u->at, n);
	u->at += n;
	u->n -= n;
	return text;
}

bool unpack_row(struct unpack *u, struct arena *mem, struct sweep_row *row,
		size_t n_values)
{
	size_t field = 0, at;
	int part = 0;

	unpack_bytes(u, row->key, sizeof(row->key));
	row->label = unpack_text(u, mem);
	row->settings = unpack_text(u, mem);
	row->error = unpack_text(u, mem);
	row->value = ARENA_ARRAY(mem, n_values + 1, const char *);
	for (size_t i = 0; i < n_values; i++)
		row->value[i] = unpack_text(u, mem);
	row->outcome.run = NULL;
	row->outcome.bom = NULL;
	row->outcome.memory_svg = NULL;
	if (row->error)
		return !u->bad && row->settings;
	unpack_bytes(u, &row->outcome.fits, sizeof(row->outcome.fits));
	while ((at = next_number(&field, &part)) != SIZE_MAX)
		unpack_bytes(u, (char *)&row->outcome + at, sizeof(double));
	return !u->bad && row->settings;
}
