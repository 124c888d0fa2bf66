/* base/progress.c - a bar or a line: done, total, time left at the pace so far */
#include "base/progress.h"

/* "1:02:03", "4 s" */
static void put_time(FILE *to, double s)
{
	long t = (long)(s + 0.5);

	if (t < 60)
		fprintf(to, "%ld s", t);
	else if (t < 3600)
		fprintf(to, "%ld:%02ld", t / 60, t % 60);
	else
		fprintf(to, "%ld:%02ld:%02ld", t / 3600, t / 60 % 60, t % 60);
}

static void note_phase(struct progress *p, double now_s, size_t fresh)
{
	if (fresh < p->last) {
		p->pace_s = now_s;
		p->from = fresh;
	}
	p->last = fresh;
}

/* How far it is and, at the pace of this phase, how long it will take. */
static void put_counts(const struct progress *p, double now_s, size_t finished,
		       size_t total)
{
	fprintf(p->to, "%s %zu of %zu", p->what, finished, total);
	if (p->last == p->from)
		return;
	fputs(", ", p->to);
	put_time(p->to, (now_s - p->pace_s) * (double)(total - finished) /
				(double)(p->last - p->from));
	fputs(" left", p->to);
}

static void put_bar(struct progress *p, double now_s, size_t finished, size_t total)
{
	enum { WIDTH = 30 };
	size_t full = WIDTH * finished / total;

	fputs("\r[", p->to);
	for (size_t i = 0; i < WIDTH; i++)
		putc(i < full ? '#' : '.', p->to);
	fputs("] ", p->to);
	put_counts(p, now_s, finished, total);
	fputs("\033[K", p->to);
}

void progress_say(struct progress *p, double now_s, size_t finished, size_t fresh,
		  size_t total)
{
	double since_s = now_s - p->told_s;

	note_phase(p, now_s, fresh);
	if (p->quiet)
		return;
	if (finished == total) {
		if (!p->lines && p->terminal && p->told_s > p->begun_s)
			fputs("\r\033[K", p->to);
		return;
	}
	if (p->lines && since_s >= 30) {
		fputs("foretoken: ", p->to);
		put_counts(p, now_s, finished, total);
		putc('\n', p->to);
	} else if (!p->lines && p->terminal && now_s - p->begun_s >= 1 &&
		   since_s >= 0.25) {
		put_bar(p, now_s, finished, total);
	} else {
		return;
	}
	p->told_s = now_s;
}
