/* calibrate/probes/write.c - JSON lines out, ids of finished cells in */
#include "calibrate/probes/write.h"

#include <stdlib.h>
#include <string.h>

static void text(FILE *out, const char *key, const char *value)
{
	if (!value || !value[0])
		return;
	fprintf(out, ",\"%s\":\"", key);
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			putc(c, out);
	}
	putc('"', out);
}

static void whole(FILE *out, const char *key, int64_t value)
{
	if (value)
		fprintf(out, ",\"%s\":%lld", key, (long long)value);
}

static void real(FILE *out, const char *key, double value)
{
	if (value >= 0)
		fprintf(out, ",\"%s\":%.6g", key, value);
}

static bool end_line(FILE *out)
{
	fputs("}\n", out);
	return !fflush(out) && !ferror(out);
}

bool probe_write_run(FILE *out, const struct probe_backend *backend,
		     const struct probe_device *d, const struct probe_method *m,
		     const char *date)
{
	fprintf(out, "{\"record\":\"run\",\"format\":%d", PROBE_FORMAT);
	text(out, "backend", backend->name);
	text(out, "date", date);
	text(out, "device", d->name);
	whole(out, "devices", d->devices);
	whole(out, "compute_units", d->compute_units);
	real(out, "memory_bytes", d->memory_bytes);
	real(out, "cache_bytes", d->cache_bytes);
	text(out, "fabric", d->fabric);
	text(out, "driver", d->driver);
	text(out, "runtime", d->runtime);
	text(out, "blas", d->blas);
	text(out, "attention_library", d->attention);
	text(out, "ccl", d->ccl);
	whole(out, "warm_up", m->warm_up);
	real(out, "cell_s", m->cell_s);
	whole(out, "seed", (int64_t)m->seed);
	return end_line(out);
}

static void shape(FILE *out, const struct probe_cell *c)
{
	text(out, "kernel", c->kernel);
	text(out, "dtype", c->dtype);
	text(out, "layout", c->layout);
	text(out, "impl", c->impl);
	text(out, "pass", c->pass);
	whole(out, "m", c->m);
	whole(out, "n", c->n);
	whole(out, "k", c->k);
	whole(out, "batch", c->batch);
	whole(out, "heads", c->heads);
	whole(out, "kv_heads", c->kv_heads);
	whole(out, "sequence_length", c->sequence);
	whole(out, "head_dim", c->head_dim);
	whole(out, "bytes", c->bytes);
	whole(out, "gpus", c->gpus);
	if (c->from != c->to)
		fprintf(out, ",\"from\":%d,\"to\":%d", (int)c->from, (int)c->to);
	if (c->causal)
		fputs(",\"causal\":true", out);
	if (c->warm)
		fputs(",\"warm\":true", out);
	if (c->accumulate)
		fputs(",\"accumulate\":true", out);
	if (c->sustained)
		fputs(",\"clock\":\"sustained\"", out);
}

bool probe_write_cell(FILE *out, const struct probe_cell *cell,
		      enum probe_status status, const struct probe_time *t,
		      const char *why)
{
	static const char *const words[] = { "ok",    "unsupported", "no-memory",
					     "wrong", "failed",	     "absent" };
	char id[PROBE_CELL_ID];

	probe_cell_id(cell, id);
	fputs("{\"record\":\"measurement\"", out);
	text(out, "cell", id);
	text(out, "kind", probe_kind_name(cell->kind));
	shape(out, cell);
	text(out, "status", words[status]);
	if (status != PROBE_OK) {
		text(out, "why", why);
		return end_line(out);
	}
	real(out, "time_us", t->median_us);
	real(out, "p10_us", t->p10_us);
	real(out, "p90_us", t->p90_us);
	whole(out, "reps", t->reps);
	real(out, "relative_error", t->relative_error);
	if (cell->kind == PROBE_BESIDE) {
		real(out, "alone_us", t->alone_us);
		real(out, "other_us", t->other_us);
		real(out, "other_alone_us", t->other_alone_us);
	}
	real(out, "clock_mhz", t->clock_mhz);
	real(out, "power_w", t->power_w);
	real(out, "temperature_c", t->temperature_c);
	return end_line(out);
}

/* ---- what is done ----------------------------------------------------------- */

static bool keep(struct probe_done *done, const char *id, size_t len)
{
	if (done->n == done->cap) {
		size_t cap = done->cap ? 2 * done->cap : 256;
		char **grown = realloc(done->id, cap * sizeof(*grown));

		if (!grown)
			return false;
		done->id = grown;
		done->cap = cap;
	}
	done->id[done->n] = strndup(id, len);
	return done->id[done->n] && ++done->n;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A line that broke off has no closing brace: it is measured again. Cells that
 * failed are tried again as well; unsupported ones are not. */
static bool read_line(struct probe_done *done, const char *line, size_t len)
{
	const char *id = strstr(line, "\"cell\":\""), *end;

	if (line[0] != '{')
		return len == 0 || keep(done, line, len);
	if (!id || line[len - 1] != '}' ||
	    (!strstr(line, "\"status\":\"ok\"") &&
	     !strstr(line, "\"status\":\"unsupported\"")))
		return true;
	id += 8;
	end = strchr(id, '"');
	return !end || keep(done, id, (size_t)(end - id));
}

bool probe_done_read(struct probe_done *done, FILE *in)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;
	bool ok = true;

	while (ok && (len = getline(&line, &cap, in)) >= 0) {
		while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
			line[--len] = '\0';
		ok = read_line(done, line, (size_t)len);
	}
	free(line);
	if (done->n)
		qsort(done->id, done->n, sizeof(*done->id), by_name);
	return ok && !ferror(in);
}

bool probe_done_has(const struct probe_done *done, const char *id)
{
	return done->n && bsearch(&id, done->id, done->n, sizeof(*done->id), by_name);
}

void probe_done_free(struct probe_done *done)
{
	for (size_t i = 0; i < done->n; i++)
		free(done->id[i]);
	free(done->id);
	*done = (struct probe_done){ 0 };
}
