/* models/schedule.c - pipeline schedules: their names, where chunks lie, how often they drain */
#include "models/schedule.h"

#include "base/limits.h"
#include "base/reader.h"

static const char *const names[] = { "1f1b",	    "interleaved", "gpipe",
				     "zero-bubble", "zbv",	   "dualpipev" };

void schedule_read(struct reader *training, struct ft_plan *plan)
{
	plan->schedule = (enum ft_schedule)read_choice(training, "schedule", names,
						       FT_SCHEDULES, FT_1F1B);
	plan->flushes = read_int(training, "pipeline_flushes", 1, LIMIT_BATCH, 1);
}

int64_t ft_plan_run(const struct ft_plan *p)
{
	return p->pp > 1 && p->flushes > 1 ? p->micro_batches / p->flushes :
					     p->micro_batches;
}

bool schedule_flushes(const struct ft_plan *p)
{
	return p->pp == 1 || p->flushes <= 1 ||
	       (p->micro_batches % p->flushes == 0 &&
		p->last_micro_batch == p->micro_batch);
}

const char *ft_schedule_name(enum ft_schedule schedule)
{
	return names[schedule];
}

bool ft_schedule_folds(enum ft_schedule schedule)
{
	return schedule == FT_ZBV || schedule == FT_DUALPIPEV;
}

bool ft_schedule_splits(enum ft_schedule schedule)
{
	return schedule == FT_ZERO_BUBBLE || ft_schedule_folds(schedule);
}

int64_t ft_plan_place(const struct ft_plan *p, int64_t stage, int64_t chunk)
{
	bool back = ft_schedule_folds(p->schedule) && chunk % 2;

	return chunk * p->pp + (back ? p->pp - 1 - stage : stage);
}

int64_t ft_plan_stage(const struct ft_plan *p, int64_t place)
{
	int64_t at = place % p->pp;

	return ft_schedule_folds(p->schedule) && place / p->pp % 2 ? p->pp - 1 - at :
								     at;
}
