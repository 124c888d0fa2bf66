/* reports/stages.c - what each stage of a pipeline keeps, and where its step goes */
#include "reports/stages.h"

#include "base/arena.h"
#include "base/quantity.h"
#include "reports/json.h"
#include "reports/table.h"

enum { SHORT_PIPELINE = 8, PARTS = 5 };

/* In the order of the columns of table and page. */
static void parts_of(const struct ft_breakdown *b, double part[PARTS])
{
	part[0] = b->compute_s;
	part[1] = b->exposed_communication_s;
	part[2] = b->bubble_s;
	part[3] = b->host_s;
	part[4] = b->optimizer_s;
}

static double per_gpu(const struct ft_scenario *s, double bytes_per_rank)
{
	return bytes_per_rank * (double)s->cluster->gpu->ranks_per_gpu;
}

/* Of all stages the one that keeps most, and the one that computes longest; the first of equals. */
static void extremes(const struct ft_run *run, size_t *fullest, size_t *busiest)
{
	*fullest = *busiest = 0;
	for (size_t i = 1; i < run->n_stages; i++) {
		const struct ft_stage_result *r = &run->stage[i];

		if (r->peak_total_bytes > run->stage[*fullest].peak_total_bytes)
			*fullest = i;
		if (r->breakdown.compute_s > run->stage[*busiest].breakdown.compute_s)
			*busiest = i;
	}
}

static void stage_row(struct table *t, const struct ft_scenario *s, size_t stage,
		      const struct ft_stage_result *r)
{
	double part[PARTS];
	char buf[64];

	parts_of(&r->breakdown, part);
	table_row(t);
	table_put(t, "%zu", stage);
	table_put(t, "%s",
		  quantity_text(per_gpu(s, r->peak_total_bytes), DIM_BYTES, buf,
				sizeof(buf)));
	for (size_t i = 0; i < PARTS; i++)
		table_put(t, "%s", quantity_text(part[i], DIM_S, buf, sizeof(buf)));
}

void stages_table(FILE *out, const struct ft_scenario *s, const struct ft_outcome *o)
{
	const struct ft_run *run = o->run;
	struct table t;
	size_t fullest, busiest;

	if (run->n_stages < 2)
		return;
	extremes(run, &fullest, &busiest);
	t = TABLE_OPEN(out, "pipeline stage", ">memory", ">compute",
		       ">exposed communication", ">bubble", ">host", ">optimizer");
	for (size_t i = 0; i < run->n_stages; i++)
		if (run->n_stages <= SHORT_PIPELINE || !i || i + 1 == run->n_stages ||
		    i == fullest || i == busiest)
			stage_row(&t, s, i, &run->stage[i]);
	table_close(&t);
	if (run->n_stages > SHORT_PIPELINE)
		fputs("Shown are the first stage, the last, the one that keeps most and the one that computes longest; --json has all.\n",
		      out);
	putc('\n', out);
}

json_t *stages_json(const struct ft_scenario *s, const struct ft_outcome *o)
{
	json_t *list = json_array();

	for (size_t i = 0; i < o->run->n_stages; i++) {
		const struct ft_stage_result *r = &o->run->stage[i];
		json_t *stage = json_object(), *memory = json_object();

		json_put_int(stage, "stage", (int64_t)i);
		json_put(memory, "total", per_gpu(s, r->peak_total_bytes));
		for (int m = 0; m < FT_MEMORIES; m++)
			json_put(memory, ft_memory_name((enum ft_memory)m),
				 per_gpu(s, r->peak_bytes[m]));
		json_object_set_new(stage, "memory_bytes_per_gpu", memory);
		json_object_set_new(stage, "breakdown_s",
				    json_of_breakdown(&r->breakdown));
		json_array_append_new(list, stage);
	}
	return list;
}

void stages_html(struct page *p, size_t scenario)
{
	static const char *const columns[] = { "stage",	   "memory",
					       "compute",  "exposed communication",
					       "bubble",   "host",
					       "optimizer" };
	const struct ft_scenario *s = p->a->scenario[scenario];
	const struct ft_run *run = p->a->outcome[scenario].run;

	if (run->n_stages < 2)
		return;
	html_columns(p,
		     arena_printf(p->mem,
				  "Stages of the pipeline of %s: GB per GPU, seconds "
				  "of a step",
				  p->a->label[scenario]),
		     columns, sizeof(columns) / sizeof(*columns));
	for (size_t i = 0; i < run->n_stages; i++) {
		const struct ft_stage_result *r = &run->stage[i];
		double part[PARTS];

		parts_of(&r->breakdown, part);
		html_row(p, arena_printf(p->mem, "%zu", i));
		fprintf(p->out, "<td>%.1f</td>",
			per_gpu(s, r->peak_total_bytes) * 1e-9);
		for (size_t k = 0; k < PARTS; k++)
			fprintf(p->out, "<td>%.4g</td>", part[k]);
		html_row_end(p);
	}
	html_table_end(p);
}
