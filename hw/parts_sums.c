/*
 * hw/parts_sums.c - what the lines of a table of parts add up to: watts, rack units, carbon, failures
 *
 * Of a line as many pieces count as are bought, idle ones included; but those that are idle stop no job.
 * A GPU's watts and a spare's are sums of their own, as they draw by what the job does, or nothing.
 */
#include <string.h>

#include "foretoken/hw.h"

/* Of all pieces, what one of a line has of something. */
static double sum(const struct ft_parts *parts,
		  double (*of)(const struct ft_part_line *))
{
	double all = 0;

	for (size_t i = 0; i < parts->n; i++)
		if (parts->line[i].part)
			all += (double)parts->line[i].count * of(&parts->line[i]);
	return all;
}

static double other_w(const struct ft_part_line *l)
{
	return l->gpu || l->part_class == FT_PART_SPARE ? 0 : l->part->max_w.value;
}

static double other_typical_w(const struct ft_part_line *l)
{
	return other_w(l) * l->part->typical_frac.value;
}

static double gpu_w(const struct ft_part_line *l)
{
	return l->gpu ? l->part->max_w.value : 0;
}

static double spare_w(const struct ft_part_line *l)
{
	return l->part_class == FT_PART_SPARE ? l->part->max_w.value : 0;
}

static double rack_units(const struct ft_part_line *l)
{
	return l->part->rack_units.value;
}

static double carbon_kg(const struct ft_part_line *l)
{
	return l->part->carbon_kg.value;
}

int64_t ft_parts_modules(const struct ft_parts *parts)
{
	int64_t n = 0;

	for (size_t i = 0; i < parts->n; i++)
		if (!strncmp(parts->line[i].role, "optics ", strlen("optics ")))
			n += parts->line[i].count;
	return n;
}

double ft_parts_w(const struct ft_parts *parts)
{
	return sum(parts, other_w);
}

double ft_parts_typical_w(const struct ft_parts *parts)
{
	return sum(parts, other_typical_w);
}

double ft_parts_gpus_w(const struct ft_parts *parts)
{
	return sum(parts, gpu_w);
}

const struct ft_part *ft_parts_gpu(const struct ft_parts *parts)
{
	size_t i = 0;

	while (!parts->line[i].gpu)
		i++;
	return parts->line[i].part;
}

double ft_parts_spares_w(const struct ft_parts *parts)
{
	return sum(parts, spare_w);
}

double ft_parts_rack_units(const struct ft_parts *parts)
{
	return sum(parts, rack_units);
}

double ft_parts_carbon_kg(const struct ft_parts *parts)
{
	return sum(parts, carbon_kg);
}

double ft_parts_failures_per_hour(const struct ft_parts *parts,
				  enum ft_part_class part_class)
{
	double rate = 0;

	for (size_t i = 0; i < parts->n; i++) {
		const struct ft_part_line *l = &parts->line[i];

		if (l->part && l->part_class == part_class &&
		    l->part->mttf_years.value > 0)
			rate += (double)(l->count - l->idle) /
				(8760 * l->part->mttf_years.value);
	}
	return rate;
}

double ft_parts_job_failures_per_hour(const struct ft_parts *parts)
{
	return ft_parts_failures_per_hour(parts, FT_PART_SERVER) +
	       ft_parts_failures_per_hour(parts, FT_PART_NETWORK) +
	       ft_parts_failures_per_hour(parts, FT_PART_SERVICE);
}
