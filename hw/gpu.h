/*
 * hw/gpu.h - the parts of a GPU profile's loader: blocks of the YAML file, and
 * the tables of measured rows that lie beside it
 *
 * A profile may lack rows that a kin of it has (the same die with other memory,
 * say). `rows_of: KIN` in a block takes the rows that the kin goes by (its own, those of
 * what it extends, and those of its own kin), and a profile that `extends` another takes that one's; each table keeps a
 * pointer to the GPU that it was measured on, so that sim/ can carry over the
 * ratio to that GPU's own arithmetic instead of the seconds.
 */
#ifndef HW_GPU_H
#define HW_GPU_H

#include "foretoken/hw.h"

struct arena;
struct reader;
struct rows_desk;

enum { GPU_KINS = 2 };

/* Where the rows of a block are and what they count for. */
struct gpu_rows {
	const char *file; /* CSV beside the profile, or NULL */
	/* profiles to take rows from, or NULL: the one that is extended, `rows_of` */
	const char *kin[GPU_KINS];
	struct ft_mark kin_mark[GPU_KINS];
	const struct ft_provenance *from;
};

struct gpu_wanted {
	struct gpu_rows gemm, attention, collectives;
};

/* A map within one: provenance goes over, and mistakes go back when it is closed. */
struct reader gpu_open_block(struct reader *outer, struct arena *mem,
			     const struct node *map);
void gpu_close_block(struct reader *block, struct reader *outer);

/* What the YAML file says beside its head: hw/gpu_gemm.c, hw/gpu_blocks.c, hw/gpu_attention.c, hw/gpu_interference.c. */
void gpu_read_interference(struct reader *outer, struct arena *mem, struct ft_gpu *gpu);
void gpu_read_rows(struct reader *r, struct gpu_rows *rows);
void gpu_read_gemm(struct reader *outer, struct arena *mem, struct ft_gpu *gpu,
		   struct gpu_rows *rows);
void gpu_read_attention(struct reader *outer, struct arena *mem, struct ft_gpu *gpu,
			struct gpu_rows *rows);
/* A profile that is extended, directly or not: its memory's bandwidth, and units x clock of vectors,
 * are those of the one that extends it over so much. */
struct gpu_below {
	const char *file;
	double memory, die;
	const struct gpu_below *next; /* the one that it extends; or NULL */
};

/* A curve's rates that a profile below says run as many times as fast as its memory, `strided` as its die. */
void gpu_read_memory(struct reader *outer, struct arena *mem, struct ft_gpu *gpu,
		     const struct gpu_below *below);
void gpu_read_collectives(struct reader *outer, struct arena *mem, struct ft_gpu *gpu,
			  struct gpu_rows *rows);

/* A file of rows beside a profile, and whose they become: gpu's, measured on `on`. */
struct gpu_file {
	struct arena *mem;
	const char *path;
	const struct ft_gpu *on;
	const struct ft_provenance *from;
	struct ft_gpu *gpu;
	struct rows_desk *desk;
	int kin; /* so many rows_of away */
};

/* hw/gpu.c: all but rows, and where those are. */
bool gpu_read_profile(const struct node *map, struct arena *mem, struct ft_gpu *gpu,
		      struct gpu_wanted *wanted, struct ft_error *err);

/* hw/gpu_kin.c: its own rows, those of the one that it extends, and those of its kin. asked: bits of
 * FT_GPU_... parts. */
bool gpu_load_all_rows(const struct gpu_file *own, const struct node *map,
		       const struct gpu_wanted *wanted, int asked,
		       struct ft_error *err);

/* hw/gpu_rows.c: CSV to tables. */
bool gpu_load_gemm(const struct gpu_file *f, struct ft_error *err);
bool gpu_load_attention(const struct gpu_file *f, struct ft_error *err);

/* hw/gpu_collectives.c: the same, read at once. */
bool gpu_load_collectives(const struct gpu_file *f, struct ft_error *err);

#endif
