/*
 * study/row_pack.h - a row of a sweep's table as bytes, and back
 *
 * For processes of one build on machines of one kind: numbers as they lie in memory. What
 * comes back holds what the table has, no more.
 */
#ifndef STUDY_ROW_PACK_H
#define STUDY_ROW_PACK_H

#include "study/sweep_db.h"

struct pack {
	char *bytes;
	size_t n, cap;
};

void pack_release(struct pack *pack);
void pack_bytes(struct pack *pack, const void *bytes, size_t n);
void pack_row(struct pack *pack, const struct sweep_row *row, size_t n_values);

/* What is left to be read. */
struct unpack {
	const char *at;
	size_t n;
	bool bad; /* it ended too early; what was asked for is 0 */
};

void unpack_bytes(struct unpack *from, void *to, size_t n);
/* Texts and values in mem. false: these are no such bytes. */
bool unpack_row(struct unpack *from, struct arena *mem, struct sweep_row *row,
		size_t n_values) __attribute__((warn_unused_result));

#endif
