/*
 * tests/test_fit_files.c - the CSV files beside a fitted profile, line by line: drawn rows of a store, ours and
 * others', and those that stood beside the profile it was made from (calibrate/fit_rows.c, fit_published.c)
 */
#include "foretoken/hw.h"
#include "tests/check.h"
#include "tests/scratch.h"

enum { DRAWS = 60, ROWS = 48, OLD = 24, LINES = ROWS + OLD, LINE = 256 };

static uint64_t seed = 17;

static const char *const kinds[] = { "gemm", "attention", "collective" };
static const char *const files[] = { "gemm", "attention", "collectives" };
static const char *const dtypes[] = { "bf16", "fp8" };
static const char *const codes[] = { "a1", "b2", "tune" };
static const char *const old_codes[] = { "a1", "c3", "tuned", "probe-then-2025-01-01" };
static const char *const dates[] = { "2026-01-02", "2025-12-31", "2026-11-01" };

/* A row with what its line says in front of the time, and the number that stands there. */
struct row {
	struct ft_measurement m;
	char head[160];
	double said;
	bool old; /* stood beside the profile of the base */
};

struct made {
	struct row row[LINES];
	size_t n;
	struct ft_measurement store[ROWS];
	struct fit_input in;
	struct ft_fit_options options;
	struct ft_gpu base;
	struct arena mem;
	char base_path[96];
	bool quiet; /* one fabric is of others alone */
};

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

static void draw_shape(struct row *r, int kind)
{
	static const char *const layouts[] = { "forward", "dgrad" };
	static const char *const passes[] = { "forward", "backward" };
	static const char *const fabrics[] = { "nvlink", "pcie" };
	static const char *const ops[] = { "all_reduce", "all_gather" };
	struct ft_measurement *m = &r->m;

	if (kind == 0) {
		m->dtype = PICK(dtypes);
		m->layout = PICK(layouts);
		m->m = 64 << rnd_below(&seed, 3);
		m->n = 512 << rnd_below(&seed, 2);
		m->k = 512 << rnd_below(&seed, 2);
		snprintf(r->head, sizeof(r->head), "%s,%s,%d,%d,%d", m->dtype,
			 m->layout, (int)m->m, (int)m->n, (int)m->k);
	} else if (kind == 1) {
		m->dtype = "bf16";
		m->impl = "cudnn";
		m->pass = PICK(passes);
		m->causal = rnd_below(&seed, 2);
		m->head_dim = 64 << rnd_below(&seed, 2);
		m->sequence = 1024 << rnd_below(&seed, 2);
		m->batch = 1 + rnd_below(&seed, 2);
		m->heads = 8;
		m->kv_heads = 8 >> rnd_below(&seed, 2);
		snprintf(r->head, sizeof(r->head), "bf16,cudnn,%s,%s,%d,%d,%d,8,%d",
			 m->pass, m->causal ? "true" : "false", (int)m->head_dim,
			 (int)m->sequence, (int)m->batch, (int)m->kv_heads);
	} else {
		m->fabric = PICK(fabrics);
		m->kernel = PICK(ops);
		m->gpus = 2 << rnd_below(&seed, 2);
		m->bytes = (4096 << rnd_below(&seed, 3)) + rnd_below(&seed, 2);
		snprintf(r->head, sizeof(r->head), "%s,%s,%d,%d", m->fabric, m->kernel,
			 (int)m->gpus, (int)m->bytes);
	}
}

/* Products of 2 m n k, attention of two such over the pairs that it looks at, thrice backward (and
 * half of it again). */
static double flop_of(const struct ft_measurement *m)
{
	double s = m->sequence, pairs = m->causal ? s * s / 2 : s * s;

	return 4 * m->head_dim * m->batch * m->heads * pairs *
	       (strcmp(m->pass, "backward") ? 1 : 2.5);
}

static void draw_row(struct made *x, int kind, bool old)
{
	struct row *r = &x->row[x->n++];
	bool others = old || rnd_below(&seed, x->quiet ? 8 : 2);
	char text[16];

	*r = (struct row){ .old = old };
	r->m = (struct ft_measurement){ .kind = kinds[kind],
					.kernel = "",
					.dtype = "",
					.layout = "",
					.impl = "",
					.pass = "",
					.fabric = "",
					.status = "ok",
					.date = PICK(dates),
					.source = old	 ? PICK(old_codes) :
						  others ? PICK(codes) :
							   "",
					.provenance = others ? "published" : "measured",
					.sustained = !old && rnd_below(&seed, 9) == 0 };
	draw_shape(r, kind);
	if (x->quiet && !others &&
	    !strcmp(r->m.fabric, "pcie")) { /* nobody measured it */
		r->m.provenance = "published";
		r->m.source = codes[0];
	}
	/* as many digits as a source prints, six at most */
	snprintf(text, sizeof(text), "%.*g", 2 + rnd_below(&seed, 5),
		 1 + rnd_below(&seed, 1000000) * 1e-3);
	r->said = strtod(text, NULL);
	r->m.time_us = kind == 1 ? flop_of(&r->m) / r->said * 1e-6 : r->said;
}

static void draw(struct made *x, const char *folder, int kind)
{
	static const char *const headers[] = {
		"dtype,layout,m,n,k,time_us,source",
		"dtype,impl,pass,causal,head_dim,sequence_length,batch,heads,kv_heads,"
		"tflops,source",
		"fabric,op,gpus,bytes,time_us,source"
	};
	static const char *tuned[] = { "tune", "tuned" };
	char path[128];
	FILE *f;

	*x = (struct made){ .quiet = rnd_below(&seed, 2) };
	for (int i = rnd_below(&seed, 4) ? 0 : ROWS / 2; i < ROWS; i++)
		draw_row(x, kind, false);
	for (size_t i = 0; i < x->n; i++)
		x->store[i] = x->row[i].m;
	x->base.gemm_tuned.n_sources = 2;
	x->base.gemm_tuned.source = tuned;
	snprintf(x->base_path, sizeof(x->base_path), "%s/base.yaml", folder);
	x->options = (struct ft_fit_options){ .name = "mine", .base = x->base_path };
	x->in = (struct fit_input){ .options = &x->options,
				    .row = x->store,
				    .n = x->n,
				    .base = &x->base,
				    .families = FT_FIT_GEMM | FT_FIT_ATTENTION |
						FT_FIT_COLLECTIVES,
				    .own_base = rnd_below(&seed, 2),
				    .only_tuned = rnd_below(&seed, 4) == 0 };
	x->in.keep[FT_BF16] = rnd_below(&seed, 3) > 0;
	x->in.keep[FT_FP8] = rnd_below(&seed, 3) > 0;
	fit_list_codes(&x->in, &x->mem);
	for (int i = 0; i < OLD; i++)
		draw_row(x, kind, true);
	fclose(fopen(x->base_path, "w"));
	for (int k = 0; k < 3; k++) {
		snprintf(path, sizeof(path), "%s/base.%s.csv", folder, files[k]);
		f = fopen(path, "w");
		fprintf(f, "# then\n%s\n", headers[k]);
		for (size_t i = 0; k == kind && i < x->n; i++)
			if (x->row[i].old)
				fprintf(f, "%s,%.6g,%s\n", x->row[i].head,
					x->row[i].said, x->row[i].m.source);
		fclose(f);
	}
}

/* ---- what the file is to hold ----------------------------------------------------------- */

struct line {
	char head[160], source[40];
	double said;
};

struct lines {
	struct line of[LINES];
	size_t n;
};

static void expect(struct lines *to, const char *head, double said, const char *source)
{
	struct line *l = &to->of[to->n++];

	snprintf(l->head, sizeof(l->head), "%s", head);
	snprintf(l->source, sizeof(l->source), "%s", source);
	l->said = said;
}

static bool ours(const struct row *r)
{
	return !r->old && !strcmp(r->m.provenance, "measured");
}

/* Is this row of ours for that file? Products of seconds are of no burst. */
static bool counts(const struct made *x, const struct row *r, int kind, int fold)
{
	(void)x;
	return ours(r) && !(kind == 0 && r->m.sustained) && fit_fold(&r->m) != fold;
}

/* Each shape once, its times' mean by their product; in the order of their text. A collective's
 * time is any of its rows': all but the fastest are gone before. */
static void expect_ours(const struct made *x, int kind, int fold, struct lines *to)
{
	const char *last = "";

	for (;;) {
		const struct row *next = NULL;
		const char *date = "";
		double product = 0, n = 0;
		char source[40];

		for (size_t i = 0; i < x->n; i++)
			if (counts(x, &x->row[i], kind, fold) &&
			    strcmp(x->row[i].head, last) > 0 &&
			    (!next || strcmp(x->row[i].head, next->head) < 0))
				next = &x->row[i];
		if (!next)
			return;
		last = next->head;
		for (size_t i = 0; i < x->n; i++)
			if (counts(x, &x->row[i], kind, fold) &&
			    !strcmp(x->row[i].head, last)) {
				product += log2(x->row[i].said);
				n++;
				if (strcmp(x->row[i].m.date, date) > 0)
					date = x->row[i].m.date;
			}
		snprintf(source, sizeof(source), "probe-mine-%s", date);
		expect(to, last, exp2(product / n), source);
	}
}

/* By words, then by numbers, the rest, the time and the source. */
static int before(const struct row *a, const struct row *b, int kind)
{
	const struct ft_measurement *x = &a->m, *y = &b->m;
	const double gemm[][2] = { { x->n, y->n }, { x->k, y->k }, { x->m, y->m } };
	const double attention[][2] = { { x->causal, y->causal },
					{ x->head_dim, y->head_dim },
					{ x->sequence, y->sequence },
					{ x->batch, y->batch },
					{ x->kv_heads, y->kv_heads } };
	const double collective[][2] = { { x->gpus, y->gpus }, { x->bytes, y->bytes } };
	const double(*of)[2] = kind == 0 ? gemm : kind == 1 ? attention : collective;
	int n = kind == 0 ? 3 : kind == 1 ? 5 : 2, word;

	word = kind == 0 ? strcmp(x->dtype, y->dtype) :
	       kind == 1 ? strcmp(x->pass, y->pass) :
			   strcmp(x->fabric, y->fabric);
	if (!word)
		word = strcmp(x->kernel, y->kernel);
	for (int i = 0; !word && i < n; i++)
		word = (of[i][0] > of[i][1]) - (of[i][0] < of[i][1]);
	if (!word)
		word = strcmp(x->layout, y->layout);
	if (!word)
		word = (x->time_us > y->time_us) - (x->time_us < y->time_us);
	return word ? word : strcmp(x->source, y->source);
}

static bool any_of_ours(const struct made *x, const char *fabric)
{
	for (size_t i = 0; i < x->n; i++)
		if (ours(&x->row[i]) &&
		    (!fabric || !strcmp(x->row[i].m.fabric, fabric)))
			return true;
	return false;
}

static bool kept(const struct made *x, const struct ft_measurement *m, int kind)
{
	if (kind == 2)
		return !any_of_ours(x, m->fabric);
	return kind == 1 || x->in.keep[!strcmp(m->dtype, "fp8") ? FT_FP8 : FT_BF16];
}

/* Others' rows of the store, by shape. */
static void expect_others(const struct made *x, int kind, int fold, struct lines *to)
{
	bool done[LINES] = { false };

	for (;;) {
		size_t next = LINES;

		for (size_t i = 0; i < x->n; i++) {
			const struct row *r = &x->row[i];

			if (done[i] || r->old || ours(r) || r->m.sustained ||
			    fit_fold(&r->m) == fold || !kept(x, &r->m, kind) ||
			    (x->in.only_tuned &&
			     (kind != 0 || strncmp(r->m.source, "tune", 4) != 0)))
				continue;
			if (next == LINES || before(r, &x->row[next], kind) < 0)
				next = i;
		}
		if (next == LINES)
			return;
		done[next] = true;
		expect(to, x->row[next].head, x->row[next].said, x->row[next].m.source);
	}
}

static bool in_store(const struct made *x, const char *code)
{
	for (size_t i = 0; i < x->n; i++)
		if (!x->row[i].old && !ours(&x->row[i]) &&
		    !strcmp(x->row[i].m.source, code))
			return true;
	return false;
}

/* Those of the base, as they stood, but for what is measured or published anew. */
static void expect_old(const struct made *x, int kind, int fold, struct lines *to)
{
	for (size_t i = 0; x->in.own_base && i < x->n; i++) {
		const struct row *r = &x->row[i];
		bool probe = !strncmp(r->m.source, "probe-", 6);

		if (!r->old || (probe && any_of_ours(x, NULL)) ||
		    in_store(x, r->m.source) || !kept(x, &r->m, kind) ||
		    (kind != 2 && fit_fold(&r->m) == fold) ||
		    (kind == 0 && x->in.only_tuned &&
		     strncmp(r->m.source, "tune", 4) != 0))
			continue;
		expect(to, r->head, r->said, r->m.source);
	}
}

static void is_file(const char *path, const struct lines *want)
{
	FILE *f = fopen(path, "r");
	char text[LINE];
	size_t n = 0;

	assert_non_null(f);
	for (int head = 0; head < 2; head++)
		assert_non_null(fgets(text, sizeof(text), f));
	while (fgets(text, sizeof(text), f)) {
		const struct line *l = &want->of[n++];
		size_t length = strlen(l->head);
		char *rest;

		assert_true(n <= want->n);
		if (strncmp(text, l->head, length) != 0 || text[length] != ',')
			fail_msg("line %zu is %s, not of %s", n, text, l->head);
		near_frac(strtod(text + length + 1, &rest), l->said, 6e-5);
		assert_int_equal(*rest, ',');
		rest[strcspn(rest, "\n")] = '\0';
		assert_string_equal(rest + 1, l->source);
	}
	assert_int_equal(n, want->n);
	fclose(f);
}

/* Of one collective, among as many, whose shares are of as many whole numbers of 16 bit. */
static bool same_share(const struct ft_measurement *a, const struct ft_measurement *b)
{
	int64_t each = 2 * (int64_t)a->gpus;

	return !strcmp(a->fabric, b->fabric) && !strcmp(a->kernel, b->kernel) &&
	       (int64_t)a->gpus == (int64_t)b->gpus &&
	       (int64_t)a->bytes / each == (int64_t)b->bytes / each;
}

/* Of ours none stays that is slower than another of its share, and one does; the others' all stay. */
static void keep_fastest(struct made *x)
{
	struct ft_measurement all[ROWS];
	size_t was = x->in.n, n = 0, others = 0;

	memcpy(all, x->store, was * sizeof(*all));
	x->in.n = fit_fastest(x->store, was);
	for (size_t i = 0; i < was; i++) {
		int as_fast = 0;

		others += fit_published(&all[i]);
		for (size_t k = 0; k < x->in.n && !fit_published(&all[i]); k++)
			if (!fit_published(&x->store[k]) &&
			    same_share(&x->store[k], &all[i])) {
				assert_true(x->store[k].time_us <= all[i].time_us);
				as_fast++;
			}
		assert_int_equal(as_fast, !fit_published(&all[i]));
	}
	for (size_t k = 0; k < x->in.n; k++)
		others -= fit_published(&x->store[k]);
	assert_int_equal(others, 0);
	for (size_t k = 0; k < x->n; k++) { /* the rows go as the store's do */
		bool there = x->row[k].old;

		for (size_t i = 0; i < x->in.n; i++)
			there = there || !memcmp(&x->store[i], &x->row[k].m,
						 sizeof(x->store[i]));
		if (there)
			x->row[n++] = x->row[k];
	}
	x->n = n;
}

static void files_hold_every_row_that_stands(void **state)
{
	const struct scratch *s = *state;
	size_t lines = 0;

	for (int i = 0; i < DRAWS; i++) {
		static struct made x; /* large */
		static struct lines want;
		int kind = i % 3, fold = rnd_below(&seed, 2) ? -1 : rnd_below(&seed, 5);
		struct ft_error err;
		char path[128];

		draw(&x, s->folder, kind);
		if (kind == 2)
			keep_fastest(&x);
		want.n = 0;
		expect_ours(&x, kind, fold, &want);
		expect_others(&x, kind, fold, &want);
		expect_old(&x, kind, fold, &want);
		ok_or_say(fit_write_rows(&x.in, fold, s->folder, &err), err);
		snprintf(path, sizeof(path), "%s/mine.%s.csv", s->folder, files[kind]);
		is_file(path, &want);
		lines += want.n;
		arena_release(&x.mem);
	}
	assert_true(lines > 20 * DRAWS);
}

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(files_hold_every_row_that_stands) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
