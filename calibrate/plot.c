/*
 * calibrate/plot.c - a profile against its measurements, drawn by gnuplot
 *
 * gemm.svg: rate of each product over its intensity, under the two roofs.
 * residuals.svg: histogram of predicted / measured - 1. busbw.svg: collectives.
 * The .gp and .dat files stay beside them, so that a figure can be redrawn.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/gnuplot.h"
#include "base/plain.h"
#include "calibrate/fit.h"
#include "calibrate/store.h"
#include "foretoken/hw.h"

struct plot {
	const char *folder;
	const struct ft_gpu *gpu;
	const struct ft_measurement *row;
	size_t n;
	struct ft_error *err;
	struct arena mem;
};

static bool begin(struct plot *p, const char *leaf, struct file_out *f)
{
	return file_begin(f, arena_printf(&p->mem, "%s/%s", p->folder, leaf), p->err);
}

static bool usable(const struct ft_measurement *m, const char *kind)
{
	return measurement_is(m, kind) && !strcmp(m->status, "ok") && m->time_us > 0;
}

static bool gemm_data(struct plot *p, struct file_out *f)
{
	static const char *const dtypes[] = { "bf16", "fp8", "fp32" };

	for (int d = 0; d < 3; d++) {
		enum ft_dtype dtype = FT_BF16;
		double e;

		(void)ft_dtype_find(dtypes[d], &dtype);
		e = ft_dtype_bytes(dtype);
		fprintf(f->out, "# %s: flop/byte, measured, predicted TFLOP/s\n",
			dtypes[d]);
		fprintf(f->out, "0.01 0.0001 0.0001\n"); /* never empty */
		for (size_t i = 0; i < p->n; i++) {
			const struct ft_measurement *m = &p->row[i];
			double flop = 2 * m->m * m->n * m->k, us;

			if (!usable(m, "gemm") || strcmp(m->dtype, dtypes[d]))
				continue;
			us = measurement_predict_us(p->gpu, m);
			fprintf(f->out, "%.4g %.4g %.4g\n",
				flop / (e * (m->m * m->k + m->n * m->k) +
					2 * m->m * m->n),
				flop / m->time_us * 1e-6,
				us > 0 ? flop / us * 1e-6 : 0);
		}
		fputs("\n\n", f->out);
	}
	return file_commit(f, p->err);
}

static bool residual_data(struct plot *p, struct file_out *f)
{
	static const char *const kinds[] = { "gemm", "attention", "memory",
					     "collective" };

	for (int k = 0; k < 4; k++) {
		double count[41] = { 0 };

		for (size_t i = 0; i < p->n; i++) {
			double us, off;

			if (!usable(&p->row[i], kinds[k]))
				continue;
			us = measurement_predict_us(p->gpu, &p->row[i]);
			off = us / p->row[i].time_us - 1;
			if (us > 0)
				count[(int)fmin(40,
						fmax(0, 20 + floor(off * 50 + 0.5)))]++;
		}
		fprintf(f->out, "# %s\n", kinds[k]);
		for (int b = 0; b < 41; b++)
			fprintf(f->out, "%d %g\n", (b - 20) * 2, count[b]);
		fputs("\n\n", f->out);
	}
	return file_commit(f, p->err);
}

/* The rows of one operation among so many ranks: bytes, measured and predicted
 * bus bandwidth in GB/s; false when there are none. */
static bool bus_block(struct plot *p, FILE *out, enum ft_collective op, int64_t ranks)
{
	double factor = ft_collective_bus_factor(op, ranks);
	bool any = false;

	for (size_t i = 0; i < p->n; i++) {
		const struct ft_measurement *m = &p->row[i];
		double us;

		if (!usable(m, "collective") ||
		    strcmp(m->kernel, ft_collective_name(op)) ||
		    (int64_t)m->gpus != ranks)
			continue;
		any = true;
		us = measurement_predict_us(p->gpu, m);
		fprintf(out, "%.0f %.5g %.5g\n", m->bytes,
			m->bytes * factor / m->time_us * 1e-3,
			us > 0 ? m->bytes * factor / us * 1e-3 : 0);
	}
	if (any)
		fputs("\n\n", out);
	return any;
}

/* A panel for each operation, in script; points are measured, lines predicted. */
static bool bus_data(struct plot *p, struct file_out *f, FILE *script, int *blocks)
{
	*blocks = 0;
	for (int op = 0; op < FT_COLLECTIVES; op++) {
		enum ft_collective which = (enum ft_collective)op;
		int colour = 0;

		for (int64_t ranks = 2; ranks <= 64; ranks *= 2) {
			if (!bus_block(p, f->out, which, ranks))
				continue;
			if (!colour++)
				fprintf(script, "set title '%s'\nplot ",
					ft_collective_name(which));
			fprintf(script,
				"%s'busbw.dat' index %d using 1:2 with "
				"points pt 7 ps 0.4 lt %d title '%d', '' index "
				"%d using 1:3 smooth unique with lines lt %d "
				"notitle",
				colour > 1 ? ", " : "", *blocks, colour, (int)ranks,
				*blocks, colour);
			(*blocks)++;
		}
		if (colour)
			fputc('\n', script);
	}
	return file_commit(f, p->err);
}

static const char terminal[] = "size 900,600 dynamic noenhanced";

static const char head[] = "set grid\nset key outside\n";

/* "NAME: what", quoted for a script. */
static const char *title(struct plot *p, const char *what)
{
	return gnuplot_quote(
		&p->mem, arena_printf(&p->mem, "%s: %s", p->gpu->name, what), p->err);
}

static bool draw(struct plot *p, const char *name, const char *size, const char *script)
{
	return gnuplot_script(&p->mem, p->folder, name, size, script, p->err) &&
	       gnuplot_run(&p->mem, p->folder, name, p->err);
}

static bool draw_gemm(struct plot *p)
{
	double peak = p->gpu->peak_flop_per_s[FT_BF16].value * 1e-12;
	double small = p->gpu->peak_flop_per_s[FT_FP8].value * 1e-12;
	const char *called = title(p, "matrix products");
	struct file_out f;

	return called && begin(p, "gemm.dat", &f) && gemm_data(p, &f) &&
	       draw(p, "gemm", terminal,
		    arena_printf(&p->mem,
				 "%sset logscale xy\n"
				 "set xrange [1:20000]\nset yrange [0.1:%g]\n"
				 "set xlabel 'FLOP per byte'\nset ylabel 'TFLOP/s'\n"
				 "set title %s\n"
				 "roof(x, p) = x * %g < p ? x * %g : p\n"
				 "plot for [i=0:2] 'gemm.dat' index i using 1:2 with "
				 "points pt 7 ps 0.3 lt i + 1 title word('bf16 fp8 "
				 "fp32', i + 1), roof(x, %g) lt 1 title 'bf16 roof', "
				 "roof(x, %g) lt 2 title 'fp8 roof'",
				 head, 2 * fmax(peak, small) + 1, called,
				 p->gpu->memory_bytes_per_s.value * 1e-12,
				 p->gpu->memory_bytes_per_s.value * 1e-12, peak,
				 small));
}

static bool draw_residuals(struct plot *p)
{
	const char *called = title(p, "residuals");
	struct file_out f;

	return called && begin(p, "residuals.dat", &f) && residual_data(p, &f) &&
	       draw(p, "residuals", terminal,
		    arena_printf(&p->mem,
				 "%sset xlabel 'predicted / measured - 1, %% (the "
				 "ends: beyond)'\n"
				 "set ylabel 'cells'\nset title %s\n"
				 "plot for [i=0:3] 'residuals.dat' index i with "
				 "histeps lw 2 title word('gemm attention memory "
				 "collective', i + 1)",
				 head, called));
}

/* bus: were collectives measured, and drawn? */
static bool draw_bus(struct plot *p, bool *bus)
{
	const char *called = title(p, "collectives; points measured, lines predicted");
	struct file_out f;
	char *panels = NULL;
	size_t size;
	FILE *script;
	int blocks;
	bool ok;

	if (!called || !begin(p, "busbw.dat", &f))
		return false;
	script = allocated(open_memstream(&panels, &size));
	ok = bus_data(p, &f, script, &blocks);
	memory_close(script, &panels);
	*bus = blocks > 0;
	if (ok && *bus)
		ok = draw(
			p, "busbw", "size 1200,800 dynamic noenhanced",
			arena_printf(
				&p->mem,
				"%sset logscale x 2\n"
				"set format x '%%.0b %%BB'\nset xtics rotate by -40\n"
				"set key inside left top reverse Left title 'GPUs'\n"
				"set ylabel 'bus bandwidth, GB/s'\nset multiplot layout "
				"2,3 title %s\n%sunset multiplot",
				head, called, panels));
	free(panels);
	return ok;
}

static bool holds_any(const struct plot *p, const char *device)
{
	static const char *const kinds[] = { "gemm", "attention", "memory",
					     "collective" };

	for (size_t i = 0; i < p->n; i++)
		for (int k = 0; k < 4; k++)
			if (usable(&p->row[i], kinds[k]))
				return true;
	return ft_fail(p->err, NULL, "the store holds no measurements%s%s to draw",
		       device ? " of the device " : "", device ? device : "");
}

bool ft_calibrate_plot(struct ft_store *store, const char *gpu, const char *device,
		       const char *folder, bool *bus, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct plot p = { .folder = folder, .err = err };
	struct ft_gpu *g = ft_gpu_load(gpu, NULL, err);
	bool ok;

	p.gpu = g;
	p.row = g ? ft_store_measurements(store, device, 0, &p.n, err) : NULL;
	ok = p.row && holds_any(&p, device);
	if (ok)
		(void)mkdir(folder, 0777); /* writing says when it cannot be */
	ok = ok && draw_gemm(&p) && draw_residuals(&p) && draw_bus(&p, bus);
	ft_gpu_free(g);
	arena_release(&p.mem);
	return ok;
}
