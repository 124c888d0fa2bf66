/*
 * traces/schedule.c - when a stage runs which forward and which backward
 *
 * 1f1b: min(pp-1-s, m) forwards, then one forward and one backward in turn, then
 * the backwards left. interleaved: the same over vpp chunks of layers, micro-
 * batches taken in groups of pp, with 2(pp-1-s) + (vpp-1)pp forwards first
 * (Narayanan et al., SC21). gpipe: all forwards, then all backwards.
 *
 * zero-bubble (ZB-H1; Qi et al., ICLR 2024, arXiv 2401.10241): forwards and backwards as
 * 1f1b or interleaved have them, but a backward gives the gradient of its input alone, for
 * which the stage before waits, and stage s computes that of its weights s backwards later.
 * So all stages keep what pp micro-batches need, as 1f1b's first stage does. With equal
 * times F, B, W of the three on all stages, W <= F and B, nothing to send, and pp <= m:
 *
 *   1f1b         step = m (F + B + W) + (pp-1) (F + B + W)
 *   zero-bubble  step = m (F + B + W) + (pp-1) (F + B - W)
 *
 * zbv (ZB-V, the same paper, section 6): two chunks a stage, the second in the order of
 * stages backwards, so that loss and first backward are on the stage that began. With equal
 * F, B and W of a chunk and m >= 2 pp - 1 a stage never waits from its first pass to its
 * last, and stage s begins s F late: step = 6 m F + (pp-1) F. It keeps what 2 pp chunks
 * need, as much as 1f1b's first stage. A step of fewer micro-batches is that of 2 pp - 1
 * less the passes that it does not have.
 *
 * dualpipev (DualPipe of DeepSeek-V3, arXiv 2412.19437, cut in half: DualPipeV of
 * github.com/deepseek-ai/DualPipe): chunks as under zbv. Between ramps a stage runs a forward
 * of one chunk with a backward of the other, whole, of another micro-batch: side by side
 * where micro-batches run in pairs (overlap.ep), else in this order. Backwards are cut in two
 * where the pipeline fills and where it drains. With times F = B >= W of a chunk, F&B of a
 * pair, no more than F + B + W, and m >= 2 pp, the last stage waits
 *
 *   (pp-1) (F&B + (B + W) - 3 W)
 *
 * and none waits longer. Without pairs, and F = B = W, the step is that of zbv, 6 m F +
 * (pp-1) F: inputs of a pair need not both be there. Each stage keeps what 2 pp + 1 chunks
 * need.
 *
 * A step that flushes its pipeline more than once runs such a schedule so many times, each over
 * its share of the micro-batches, behind one another: no stage begins the next run before its
 * own passes of this one, so that each run has its own bubble.
 */
#include <string.h>

#include "traces/sharding.h"
#include "traces/stage.h"

bool plan_splits(const struct ft_plan *p)
{
	return ft_schedule_splits(p->schedule) && p->pp > 1;
}

/* Equal F, B and W: the closed forms above, in units of a stage's passes. */
double ft_plan_bubble(const struct ft_plan *p)
{
	bool folds = ft_schedule_folds(p->schedule);
	double passes = folds ? 6 : p->schedule == FT_ZERO_BUBBLE ? 3 : 1;
	double waits = p->schedule == FT_DUALPIPEV && ft_plan_pairs(p) ? 2 : 1;

	if (!folds)
		passes *= (double)p->vpp;
	return waits * (double)(p->pp - 1) / (passes * (double)ft_plan_run(p));
}

size_t ft_plan_most_slots(const struct ft_plan *p)
{
	return (size_t)((plan_splits(p) ? 3 : 2) * p->micro_batches * p->vpp);
}

/* A stage's i-th forward: groups of pp micro-batches, chunk by chunk. */
static struct ft_slot forward_of(const struct ft_plan *p, size_t i)
{
	int64_t at, width;

	if (p->vpp == 1)
		return (struct ft_slot){ FT_SLOT_FORWARD, 0, (int64_t)i };
	at = (int64_t)i / (p->pp * p->vpp) * p->pp; /* the group's first micro-batch */
	width = p->micro_batches - at < p->pp ? p->micro_batches - at : p->pp;
	return (struct ft_slot){ FT_SLOT_FORWARD, ((int64_t)i - at * p->vpp) / width,
				 at + ((int64_t)i - at * p->vpp) % width };
}

/* How many forwards a stage runs before its first backward. */
static size_t forwards_ahead(const struct ft_plan *p, int64_t stage, size_t total)
{
	int64_t ahead = p->pp - 1 - stage;
	size_t warm = (size_t)(p->schedule == FT_GPIPE && p->pp > 1 ? (int64_t)total :
			       p->vpp > 1 ? 2 * ahead + (p->vpp - 1) * p->pp :
					    ahead);

	return warm < total ? warm : total;
}

/* The i-th forward's turn in a backward, which begins with the last chunk. */
static struct ft_slot turned(const struct ft_plan *p, size_t i, enum ft_slot_kind kind)
{
	struct ft_slot s = forward_of(p, i);

	return (struct ft_slot){ kind, p->vpp - 1 - s.chunk, s.micro_batch };
}

/* Passes of a V as they are put: the next micro-batch of each kind and chunk. */
struct vee {
	struct ft_slot *slot;
	size_t n, owed; /* put; before it no weights are left to do (dualpipev) */
	int64_t micro_batches;
	int64_t next[FT_SLOT_UPDATE][2];
};

static void vee_put(struct vee *v, enum ft_slot_kind kind, int64_t chunk)
{
	int64_t m = v->next[kind == FT_SLOT_WHOLE ? FT_SLOT_BACKWARD : kind][chunk]++;

	if (m < v->micro_batches)
		v->slot[v->n++] = (struct ft_slot){ kind, chunk, m };
}

static void vee_back(struct vee *v, int64_t chunk)
{
	vee_put(v, FT_SLOT_BACKWARD, chunk);
	vee_put(v, FT_SLOT_WEIGHTS, chunk);
}

static size_t vee_slots(const struct ft_plan *p, int64_t stage, struct ft_slot *slot)
{
	int64_t least = 2 * p->pp - 1, left = p->pp - stage;
	int64_t m = p->micro_batches > least ? p->micro_batches : least;
	struct vee v = { .slot = slot, .micro_batches = p->micro_batches };

	for (int64_t i = 0; i < 2 * left - 1; i++)
		vee_put(&v, FT_SLOT_FORWARD, 0);
	for (int64_t i = 0; i < stage; i++) {
		vee_put(&v, FT_SLOT_FORWARD, 1);
		vee_put(&v, FT_SLOT_FORWARD, 0);
	}
	for (int64_t i = 0; i < left; i++) {
		vee_put(&v, FT_SLOT_FORWARD, 1);
		vee_back(&v, 1);
	}
	while (v.next[FT_SLOT_FORWARD][1] < m) {
		if (v.next[FT_SLOT_FORWARD][0] < m)
			vee_put(&v, FT_SLOT_FORWARD, 0);
		vee_back(&v, 0);
		vee_put(&v, FT_SLOT_FORWARD, 1);
		vee_back(&v, 1);
	}
	for (int64_t i = 0; i < stage; i++) {
		vee_put(&v, FT_SLOT_BACKWARD, 0);
		vee_put(&v, FT_SLOT_BACKWARD, 1);
	}
	for (int64_t i = 0; i < left; i++)
		vee_back(&v, 0);
	for (int64_t chunk = 2; chunk-- > 0;)
		while (v.next[FT_SLOT_WEIGHTS][chunk] < m)
			vee_put(&v, FT_SLOT_WEIGHTS, chunk);
	return v.n;
}

/* Weights' gradients of the split backward that has waited longest, if one does. */
static bool vee_oldest_weights(struct vee *v)
{
	while (v->owed < v->n && v->slot[v->owed].kind != FT_SLOT_BACKWARD)
		v->owed++;
	if (v->owed == v->n)
		return false;
	v->slot[v->n] = v->slot[v->owed++];
	v->slot[v->n++].kind = FT_SLOT_WEIGHTS;
	return true;
}

/* A forward of one chunk, and beside it a backward of the other. */
static void vee_both(struct vee *v, int64_t forward)
{
	vee_put(v, FT_SLOT_FORWARD, forward);
	vee_put(v, FT_SLOT_WHOLE, 1 - forward);
}

static size_t dualpipe_slots(const struct ft_plan *p, int64_t stage,
			     struct ft_slot *slot)
{
	int64_t least = 2 * p->pp, behind = p->pp - 1 - stage;
	int64_t m = p->micro_batches > least ? p->micro_batches : least;
	struct vee v = { .slot = slot, .micro_batches = p->micro_batches };

	for (int64_t i = 0; i < 2 * behind; i++)
		vee_put(&v, FT_SLOT_FORWARD, 0);
	for (int64_t i = 0; i <= stage; i++) {
		vee_put(&v, FT_SLOT_FORWARD, 0);
		vee_put(&v, FT_SLOT_FORWARD, 1);
	}
	for (int64_t i = 0; i < behind; i++) {
		vee_put(&v, FT_SLOT_BACKWARD, 1);
		vee_oldest_weights(&v);
		vee_put(&v, FT_SLOT_FORWARD, 1);
	}
	for (int64_t i = 0; i < m - least + stage + 1; i++) {
		vee_both(&v, 0);
		vee_both(&v, 1);
	}
	for (int64_t i = 0; i < behind; i++) {
		vee_put(&v, FT_SLOT_WHOLE, 1);
		vee_both(&v, 1);
	}
	for (int64_t i = 0; i < 2 * (stage + 1); i++)
		vee_put(&v, i > stage ? FT_SLOT_BACKWARD : FT_SLOT_WHOLE, 1 - i % 2);
	for (int64_t i = 0; i < behind; i++) {
		vee_oldest_weights(&v);
		vee_put(&v, FT_SLOT_BACKWARD, 0);
	}
	while (vee_oldest_weights(&v))
		;
	return v.n;
}

/* The slots of a stage in a step with one flush; how many. */
static size_t run_slots(const struct ft_plan *p, int64_t stage, struct ft_slot *slot)
{
	size_t total = (size_t)(p->micro_batches * p->vpp), n = 0, weights = 0;
	size_t warm = forwards_ahead(p, stage, total);
	bool splits = plan_splits(p);

	if (p->schedule == FT_ZBV && p->pp > 1)
		return vee_slots(p, stage, slot);
	if (p->schedule == FT_DUALPIPEV && p->pp > 1)
		return dualpipe_slots(p, stage, slot);
	for (size_t f = 0, back = 0; back < total;) {
		/* in turn: forward number warm+i comes before backward number i */
		if (f < total && (f < warm || f - warm <= back)) {
			slot[n++] = forward_of(p, f++);
			continue;
		}
		slot[n++] = turned(p, back++, FT_SLOT_BACKWARD);
		if (splits && back > (size_t)stage)
			slot[n++] = turned(p, weights++, FT_SLOT_WEIGHTS);
	}
	while (splits && weights < total)
		slot[n++] = turned(p, weights++, FT_SLOT_WEIGHTS);
	return n;
}

size_t ft_plan_slots(const struct ft_plan *p, int64_t stage, struct ft_slot *slot)
{
	struct ft_plan one = *p;
	size_t n = 0;

	one.micro_batches = ft_plan_run(p);
	for (int64_t at = 0; at < p->micro_batches; at += one.micro_batches) {
		size_t begin = n;

		n += run_slots(&one, stage, slot + begin);
		for (size_t i = begin; i < n; i++)
			slot[i].micro_batch += at;
	}
	return n;
}

size_t ft_slots_by_autograd(int64_t stage, struct ft_slot *slot, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct ft_slot s = slot[i];
		bool whole = stage == 0 && s.chunk == 0;

		if (whole && s.kind == FT_SLOT_BACKWARD)
			continue;
		if (whole && s.kind == FT_SLOT_WEIGHTS)
			s.kind = FT_SLOT_WHOLE;
		slot[kept++] = s;
	}
	return kept;
}

bool ends_run(const struct ft_plan *p, int64_t micro_batch)
{
	return (micro_batch + 1) % ft_plan_run(p) == 0;
}

bool opens_sums(const struct builder *b, int64_t micro_batch)
{
	return micro_batch == 0 || (flush_reduces(b) && reduces_last(b) &&
				    micro_batch % ft_plan_run(b->plan) == 0);
}

bool ends_sums(const struct builder *b, int64_t micro_batch)
{
	return flush_reduces(b) ? ends_run(b->plan, micro_batch) :
				  micro_batch == b->plan->micro_batches - 1;
}

bool joins_shards(const struct builder *b, int64_t micro_batch)
{
	return flush_reduces(b) && reduces_last(b) &&
	       micro_batch >= ft_plan_run(b->plan);
}

size_t stage_most_slots(const struct ft_plan *p)
{
	return ft_plan_most_slots(p) + (size_t)(p->micro_batches / ft_plan_run(p));
}

/* Slots with those of flushes, from the last one on, as there is room behind them. */
static size_t with_flushes(const struct builder *b, int64_t number,
			   struct ft_slot *slot, size_t n)
{
	const struct ft_plan *p = b->plan;
	bool last = ft_plan_stage(p, p->pp * p->vpp - 1) == number;
	int64_t run = ft_plan_run(p), runs = p->micro_batches / run;
	size_t each = n / (size_t)runs, kept = 0;
	struct ft_slot flush[] = { { FT_SLOT_FLUSH, 0, 0 } };

	for (int64_t r = 0; r < runs; r++)
		kept += flush_works(b, last, (r + 1) * run - 1);
	n += kept;
	for (int64_t r = runs; r-- > 0 && kept;) {
		size_t to = (size_t)r * each + kept;

		flush->micro_batch = (r + 1) * run - 1;
		if (flush_works(b, last, flush->micro_batch)) {
			slot[to + each - 1] = *flush;
			kept--;
			to--;
		}
		memmove(slot + to, slot + (size_t)r * each, each * sizeof(*slot));
	}
	return n;
}

size_t stage_order(const struct builder *b, int64_t number, struct ft_slot *slot)
{
	size_t n = ft_plan_slots(b->plan, number, slot);

	if (plan_splits(b->plan) && b->rules->autograd_split)
		n = ft_slots_by_autograd(number, slot, n);
	return with_flushes(b, number, slot, n);
}
