/*
 * hw/gpu_later.h - rows of a profile that are read when they are asked for first
 *
 * A table knows from the start how many rows it has, and where they stand in the text of
 * its file, which stays in the GPU's memory. Threads share profiles: the first that asks
 * reads, under the desk's lock, and all others see what it read. A mistake is kept, and told
 * to everyone who asks.
 */
#ifndef HW_GPU_LATER_H
#define HW_GPU_LATER_H

#include <pthread.h>
#include <stdatomic.h>

#include "foretoken/hw_rows.h"
#include "hw/gpu_sheet.h"

/* Of one GPU: who reads, and where to. */
struct rows_desk {
	pthread_mutex_t lock;
	struct arena *mem;
};

struct ft_rows_later {
	struct rows_desk *desk;
	const struct sheet *sheet; /* the file, opened */
	size_t n_runs, cap;
	struct sheet_run *run;
	atomic_int state;
	const struct ft_error *why; /* of a mistake */
	/* what is made of them: one of these, all but its rows set from the start */
	struct ft_gemm_table gemm;
	struct ft_attention_table attention;
};

/* mem: in which rows are put; it may move until the first are asked for. */
void rows_desk_open(struct rows_desk *d, struct arena *mem);
void rows_desk_close(struct rows_desk *d);

struct ft_rows_later *rows_later(struct arena *mem, struct rows_desk *desk,
				 const struct sheet *sheet);
void rows_add(struct arena *mem, struct ft_rows_later *l, const struct sheet_run *run);

typedef bool rows_reader(struct ft_rows_later *l, struct ft_error *err);

/* Calls read once, whoever asks; false: a mistake. */
bool rows_read(struct ft_rows_later *l, rows_reader *read, struct ft_error *err);

#endif
