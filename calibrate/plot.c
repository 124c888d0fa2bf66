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
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
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
	return file_begin(f, arena_printf(&p->mem, "%s/%s", p->folder, leaf),
			  p->err);
}

static bool usable(const struct ft_measurement *m, const char *kind)
{
	return measurement_is(m, kind) && !strcmp(m->status, "ok") &&
	       m->time_us > 0;
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
				count[(int)fmin(40, fmax(0, 20 + floor(
						off * 50 + 0.5)))]++;
		}
		fprintf(f->out, "# %s\n", kinds[k]);
		for (int b = 0; b < 41; b++)
			fprintf(f->out, "%d %g\n", (b - 20) * 2, count[b]);
		fputs("\n\n", f->out);
	}
	return file_commit(f, p->err);
}

static bool bus_data(struct plot *p, struct file_out *f, char *titles, size_t n)
{
	titles[0] = '\0';
	for (int op = 0; op < FT_COLLECTIVES; op++)
		for (int64_t ranks = 2; ranks <= 64; ranks *= 2) {
			const char *name =
				ft_collective_name((enum ft_collective)op);
			double factor = ft_collective_bus_factor(
				(enum ft_collective)op, ranks);
			bool any = false;

			for (size_t i = 0; i < p->n; i++) {
				const struct ft_measurement *m = &p->row[i];

				if (!usable(m, "collective") ||
				    strcmp(m->kernel, name) ||
				    (int64_t)m->gpus != ranks)
					continue;
				any = true;
				fprintf(f->out, "%.0f %.5g\n", m->bytes,
					m->bytes * factor / m->time_us * 1e-3);
			}
			if (!any)
				continue;
			fputs("\n\n", f->out);
			snprintf(titles + strlen(titles), n - strlen(titles),
				 ", '%s, %d'", name, (int)ranks);
		}
	return file_commit(f, p->err);
}

static bool gnuplot(struct plot *p, const char *script)
{
	struct ft_mark at = { arena_printf(&p->mem, "%s/%s", p->folder, script),
			      0, 0 };
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		if (!chdir(p->folder))
			execlp("gnuplot", "gnuplot", script, (char *)NULL);
		_exit(127);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	return ft_fail(p->err, &at, WIFEXITED(status) &&
			       WEXITSTATUS(status) == 127 ?
			       "gnuplot is not installed; the data are written" :
			       "gnuplot failed");
}

static bool write_script(struct plot *p, const char *leaf, const char *text)
{
	struct file_out f;

	if (!begin(p, leaf, &f))
		return false;
	fputs(text, f.out);
	return file_commit(&f, p->err);
}

static const char head[] =
	"set terminal svg size 900,600 dynamic\nset grid\nset key outside\n";

static bool draw_gemm(struct plot *p)
{
	double peak = p->gpu->peak_flop_per_s[FT_BF16].value * 1e-12;
	double small = p->gpu->peak_flop_per_s[FT_FP8].value * 1e-12;
	struct file_out f;

	return begin(p, "gemm.dat", &f) && gemm_data(p, &f) &&
	       write_script(p, "gemm.gp", arena_printf(&p->mem,
			"%sset output 'gemm.svg'\nset logscale xy\n"
			"set xrange [1:20000]\nset yrange [0.1:%g]\n"
			"set xlabel 'FLOP per byte'\nset ylabel 'TFLOP/s'\n"
			"set title '%s: matrix products'\n"
			"roof(x, p) = x * %g < p ? x * %g : p\n"
			"plot for [i=0:2] 'gemm.dat' index i using 1:2 with "
			"points pt 7 ps 0.3 title word('bf16 fp8 fp32', i + 1),"
			" roof(x, %g) title 'bf16 roof', roof(x, %g) title "
			"'fp8 roof'\n", head, 2 * fmax(peak, small) + 1,
			p->gpu->name, p->gpu->memory_bytes_per_s.value * 1e-12,
			p->gpu->memory_bytes_per_s.value * 1e-12, peak,
			small)) &&
	       gnuplot(p, "gemm.gp");
}

static bool draw_residuals(struct plot *p)
{
	struct file_out f;

	return begin(p, "residuals.dat", &f) && residual_data(p, &f) &&
	       write_script(p, "residuals.gp", arena_printf(&p->mem,
			"%sset output 'residuals.svg'\n"
			"set xlabel 'predicted / measured - 1, %%'\n"
			"set ylabel 'cells'\nset title '%s: residuals'\n"
			"plot for [i=0:3] 'residuals.dat' index i with "
			"histeps lw 2 title word('gemm attention memory "
			"collective', i + 1)\n", head, p->gpu->name)) &&
	       gnuplot(p, "residuals.gp");
}

static bool draw_bus(struct plot *p)
{
	char titles[2048];
	struct file_out f;

	if (!begin(p, "busbw.dat", &f) ||
	    !bus_data(p, &f, titles, sizeof(titles)))
		return false;
	if (!titles[0])
		return true; /* no collectives measured */
	return write_script(p, "busbw.gp", arena_printf(&p->mem,
			"%sset output 'busbw.svg'\nset logscale x 2\n"
			"set xlabel 'bytes'\nset ylabel 'bus bandwidth, GB/s'\n"
			"set title '%s: collectives'\narray t = [%s]\n"
			"plot for [i=1:|t|] 'busbw.dat' index i-1 with "
			"linespoints ps 0.3 title t[i]\n", head, p->gpu->name,
			titles + 2)) &&
	       gnuplot(p, "busbw.gp");
}

bool ft_calibrate_plot(struct ft_store *store, const char *gpu,
		       const char *device, const char *folder,
		       struct ft_error *err)
{
	struct plot p = { .folder = folder, .err = err };
	struct ft_gpu *g = ft_gpu_load(gpu, NULL, err);
	bool ok;

	p.gpu = g;
	p.row = g ? ft_store_measurements(store, device, 0, &p.n, err) : NULL;
	(void)mkdir(folder, 0777); /* writing says when it cannot be */
	ok = p.row && draw_gemm(&p) && draw_residuals(&p) && draw_bus(&p);
	ft_gpu_free(g);
	arena_release(&p.mem);
	return ok;
}
