/*
 * study/kernel_columns.h - the columns that rows of kernels and of collectives may have:
 * foretoken-runs(5)
 */
#ifndef STUDY_KERNEL_COLUMNS_H
#define STUDY_KERNEL_COLUMNS_H

static const char *const kernel_columns[] = {
	"kernel",
	"gpu",
	"dtype",
	"warm",
	"clock",
	"layout",
	"m",
	"n",
	"k",
	"groups",
	"accumulate",
	"impl",
	"pass",
	"batch",
	"heads",
	"kv_heads",
	"sequence_length",
	"head_dim",
	"v_head_dim",
	"causal",
	"bytes",
	"measured.time_us",
	"measured.tflops",
	"id",
	"group",
	"source",
	"notes",
};

static const char *const collective_columns[] = {
	"op",
	"gpu",
	"gpus",
	"nodes",
	"fabric",
	"bytes",
	"measured.time_us",
	"measured.busbw_gb_per_s",
	"id",
	"group",
	"source",
	"notes",
};

#endif
