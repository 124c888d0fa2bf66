/* base/base.c - time, errors, and the names of what all rooms share */
#include "foretoken/base.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/text.h"

_Static_assert(FT_PS_LONGEST == LIMIT_STEP_DAYS * INT64_C(86400000000000000), "days");

ft_ps ft_ps_from_s(double s)
{
	return ft_ps_from_double(s < 0 ? -1 :
					 ceil(s * 1e12 - 1e-6)); /* 1e-6: rounding */
}

ft_ps ft_ps_from_double(double ps)
{
	if (!(ps >= 0) || ps >= (double)FT_PS_LONGEST)
		return FT_PS_LONGEST;
	return (ft_ps)ps;
}

double ft_s_from_ps(ft_ps t)
{
	return (double)t * 1e-12;
}

bool ft_fail(struct ft_error *err, const struct ft_mark *at, const char *fmt, ...)
{
	char text[sizeof(err->text)];
	va_list args;

	*err = (struct ft_error){ 0 };
	if (at && at->file) {
		snprintf(err->file, sizeof(err->file), "%s", at->file);
		err->line = at->line;
		err->column = at->column;
	}
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	text_visible(text, err->text, sizeof(err->text));
	text_mend(err->text);
	return false;
}

const char *ft_provenance_kind_name(enum ft_provenance_kind kind)
{
	static const char *const names[] = { "measured", "published", "derived",
					     "assumed" };

	return names[kind];
}

static const char *const dtypes[FT_DTYPES] = {
	"bf16", "fp16", "fp32", "fp8", "fp8-block128", "mxfp8", "nvfp4", "mxfp4",
};

const char *ft_dtype_name(enum ft_dtype dtype)
{
	return dtypes[dtype];
}

bool ft_dtype_find(const char *name, enum ft_dtype *dtype)
{
	size_t i = text_place(name, dtypes, FT_DTYPES);

	if (i == FT_DTYPES)
		return false;
	*dtype = (enum ft_dtype)i;
	return true;
}

double ft_dtype_bytes(enum ft_dtype dtype)
{
	static const double bytes[FT_DTYPES] = { 2, 2, 4, 1, 1, 1, 0.5, 0.5 };

	return bytes[dtype];
}

static const char *const collectives[FT_COLLECTIVES] = {
	"all_reduce", "all_gather", "reduce_scatter",
	"all_to_all", "broadcast",  "sendrecv",
};

const char *ft_collective_name(enum ft_collective op)
{
	return collectives[op];
}

bool ft_collective_find(const char *name, enum ft_collective *op)
{
	size_t i = text_place(name, collectives, FT_COLLECTIVES);

	if (i == FT_COLLECTIVES)
		return false;
	*op = (enum ft_collective)i;
	return true;
}

double ft_collective_bus_factor(enum ft_collective op, int64_t n)
{
	double share = n > 1 ? (double)(n - 1) / (double)n : 1;

	switch (op) {
	case FT_ALL_REDUCE:
		return n > 1 ? 2 * share : 1;
	case FT_ALL_GATHER:
	case FT_REDUCE_SCATTER:
	case FT_ALL_TO_ALL:
		return share;
	default:
		return 1;
	}
}
