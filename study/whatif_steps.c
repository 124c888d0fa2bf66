/* study/whatif_steps.c - which steps of a recording are asked for, and what is said of them */
#include <stdint.h>
#include <string.h>

#include "study/whatif.h"

/* A rank may lack the last ones of another. */
static size_t shared_steps(const struct ft_replay *p)
{
	size_t least = SIZE_MAX;

	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		size_t n = ft_recording_steps(ft_replay_recording(p, k));

		least = n < least ? n : least;
	}
	return least;
}

bool whatif_is_step(const char *asked, const struct ft_replay *p, size_t rank, size_t s)
{
	const struct ft_recording *r = ft_replay_recording(p, rank);
	const char *name = ft_recording_text(r, ft_recording_step(r, s)->name);
	const char *number = strchr(name, '#');
	size_t shared = shared_steps(p);

	if (!asked)
		return s < shared && (s || shared == 1);
	return !strcmp(asked, name) || (number && !strcmp(asked, number + 1));
}

struct ft_rec_skew ft_study_skew(const struct ft_replay *p, const struct ft_replayed *t,
				 size_t rank, const char *step)
{
	const struct ft_recording *r = ft_replay_recording(p, rank);
	struct ft_rec_skew sum = { .clock_s = 0 };
	double n = 0;

	for (size_t s = 0; s < ft_recording_steps(r); s++)
		n += whatif_is_step(step, p, rank, s);
	for (size_t s = 0; s < ft_recording_steps(r); s++) {
		struct ft_rec_skew x;

		if (!whatif_is_step(step, p, rank, s))
			continue;
		x = ft_replay_skew(p, t, rank, ft_replay_step(p, t, rank, s));
		sum.waiting_s += x.waiting_s / n;
		sum.transfer_s += x.transfer_s / n;
		sum.met += x.met / n;
		sum.last += x.last / n;
		sum.clock_s = x.clock_s;
	}
	return sum;
}

/* The last of the steps that are asked for, as the first rank numbers them. */
static size_t last_step(const struct ft_replay *p, const char *step)
{
	const struct ft_recording *r = ft_replay_recording(p, 0);
	size_t s = ft_recording_steps(r) - 1;

	while (s > 0 && !whatif_is_step(step, p, 0, s))
		s--;
	return s;
}

struct ft_rec_kernel *ft_study_step_kernels(const struct ft_replay *p, const char *step,
					    struct arena *mem, size_t *n)
{
	struct ft_replayed t = ft_replay_as_recorded(p, mem);

	return ft_replay_kernels(p, 0, &t, ft_replay_step(p, &t, 0, last_step(p, step)),
				 mem, n);
}
