/* calibrate/export.c - a store as CSV that `foretoken validate` reads */
#include <string.h>

#include "base/csv.h"
#include "calibrate/fit.h"
#include "calibrate/store.h"

static void kernel_row(const struct ft_measurement *m, const char *gpu, FILE *out)
{
	bool memory = measurement_is(m, "memory");
	/* PyTorch's probe stacks two sources of m rows: kernel rows count both */
	double rows =
		fit_from_torch(m) && !strcmp(m->kernel, "concat") ? 2 * m->m : m->m;

	fprintf(out, "%s,%s,%s,%s,%s,%s,%.0f,%.0f,%.0f,%s,%s,",
		memory ? m->kernel : m->kind, gpu, m->dtype, m->warm ? "true" : "false",
		m->sustained ? "sustained" : "burst", m->layout, rows, m->n, m->k,
		m->impl, m->pass);
	fprintf(out, "%.0f,%.0f,%.0f,%.0f,%.0f,%s,%.5g,%s%s %s\n", m->batch, m->heads,
		m->kv_heads, m->sequence, m->head_dim, m->causal ? "true" : "false",
		m->time_us, m->in_step ? "in step: " : "",
		m->in_step ? m->kind : m->backend, memory ? m->kernel : m->dtype);
}

bool ft_store_export(struct ft_store *s, const char *device, int64_t run,
		     const char *gpu, const char *what, FILE *out, struct ft_error *err)
{
	bool collectives = !strcmp(what, "collectives");
	const struct ft_measurement *m;
	size_t n;

	m = ft_store_measurements(s, device, run, &n, err);
	if (!m)
		return false;
	fputs(collectives ? "op,gpu,gpus,fabric,bytes,measured.time_us,group\n" :
			    "kernel,gpu,dtype,warm,clock,layout,m,n,k,impl,pass,"
			    "batch,heads,kv_heads,sequence_length,head_dim,"
			    "causal,measured.time_us,group\n",
	      out);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(m[i].status, "ok"))
			continue;
		if (collectives && measurement_is(&m[i], "collective"))
			fprintf(out, "%s,%s,%.0f,%s,%.0f,%.5g,%s%s %.0f\n", m[i].kernel,
				gpu, m[i].gpus, m[i].fabric, m[i].bytes, m[i].time_us,
				m[i].in_step ? "in step: " : "", m[i].kernel,
				m[i].gpus);
		if (!collectives && !m[i].accumulate &&
		    (measurement_is(&m[i], "gemm") ||
		     measurement_is(&m[i], "attention") ||
		     measurement_is(&m[i], "memory")))
			kernel_row(&m[i], gpu, out);
	}
	return !ferror(out) || ft_fail(err, NULL, "the output cannot be written");
}
