/* calibrate/export.c - a store as CSV that `foretoken validate` reads */
#include <string.h>

#include "base/csv.h"
#include "base/plain.h"
#include "calibrate/fit.h"
#include "calibrate/store.h"

static void words(FILE *out, const char *const *word, size_t n)
{
	for (size_t i = 0; i < n; i++)
		csv_put(out, word[i], false);
}

/* "in step: a b", the last cell of a row. */
static void group(FILE *out, const struct ft_measurement *m, const char *a,
		  const char *b)
{
	struct arena mem = { 0 };

	csv_put(out, arena_printf(&mem, "%s%s %s", m->in_step ? "in step: " : "", a, b),
		true);
	arena_release(&mem);
}

static void kernel_row(const struct ft_measurement *m, const char *gpu, FILE *out)
{
	bool memory = measurement_is(m, "memory");
	/* PyTorch's probe stacks two sources of m rows: kernel rows count both */
	double rows =
		fit_from_torch(m) && !strcmp(m->kernel, "concat") ? 2 * m->m : m->m;
	const char *const first[] = { memory ? m->kernel : m->kind,
				      gpu,
				      m->dtype,
				      m->warm ? "true" : "false",
				      m->sustained ? "sustained" : "burst",
				      m->layout };
	const char *const second[] = { m->impl, m->pass };

	words(out, first, 6);
	fprintf(out, "%.0f,%.0f,%.0f,", rows, m->n, m->k);
	words(out, second, 2);
	fprintf(out, "%.0f,%.0f,%.0f,%.0f,%.0f,%s,", m->batch, m->heads, m->kv_heads,
		m->sequence, m->head_dim, m->causal ? "true" : "false");
	if (memory && !(m->m > 0)) /* its size is in bytes alone */
		fprintf(out, "%.0f", m->bytes);
	fprintf(out, ",%.5g,", m->time_us);
	group(out, m, m->in_step ? m->kind : m->backend, memory ? m->kernel : m->dtype);
}

static void collective_row(const struct ft_measurement *m, const char *gpu, FILE *out)
{
	const char *const first[] = { m->kernel, gpu };
	char gpus[32];

	snprintf(gpus, sizeof(gpus), "%.0f", m->gpus);
	words(out, first, 2);
	fprintf(out, "%s,", gpus);
	csv_put(out, m->fabric, false);
	fprintf(out, "%.0f,%.5g,", m->bytes, m->time_us);
	group(out, m, m->kernel, gpus);
}

bool ft_store_export(struct ft_store *s, const struct ft_export *x, FILE *out,
		     struct ft_error *err)
{
	PLAIN_NUMBERS;
	bool collectives = !strcmp(x->what, "collectives");
	const struct ft_measurement *m;
	size_t n;

	m = ft_store_measurements(s, x->device, x->run, &n, err);
	if (!m)
		return false;
	fputs(collectives ? "op,gpu,gpus,fabric,bytes,measured.time_us,group\n" :
			    "kernel,gpu,dtype,warm,clock,layout,m,n,k,impl,pass,"
			    "batch,heads,kv_heads,sequence_length,head_dim,"
			    "causal,bytes,measured.time_us,group\n",
	      out);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(m[i].status, "ok"))
			continue;
		if (collectives && measurement_is(&m[i], "collective"))
			collective_row(&m[i], x->gpu, out);
		if (!collectives && !m[i].accumulate &&
		    (measurement_is(&m[i], "gemm") ||
		     measurement_is(&m[i], "attention") ||
		     measurement_is(&m[i], "memory")))
			kernel_row(&m[i], x->gpu, out);
	}
	return !ferror(out) || ft_fail(err, NULL, "the output cannot be written");
}
