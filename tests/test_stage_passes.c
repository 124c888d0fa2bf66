/*
 * tests/test_stage_passes.c - drawn stages of a pipeline, of which is known how many kernels each pass has:
 * the passes are found again by what the stage sends and receives, or by numbers of kernels
 */
#include <math.h>

#include "base/arena.h"
#include "recorded/stages.h"
#include "tests/check.h"

enum { DRAWS = 1500, STAGES = 4, CHUNKS = 3, SLOTS = 2 * 12 * CHUNKS, MOST = 6 };

static uint64_t seed = 12;

/* How its receives were recorded: each before its pass, not at all, or only some of them. */
enum receives { ALL, NONE, SOME };

/* A stage as it ran. */
struct ran {
	struct ft_replay p;
	struct rank rank;
	struct ft_recording r;
	struct layout l;
	struct stage stage[STAGES];
	int64_t here;
	enum receives receives;
	bool alike;		/* are the passes of all chunks? */
	size_t n_of[2][CHUNKS]; /* kernels of a pass, forward and backward */
	bool received[SLOTS], sent[SLOTS];
	size_t n[SLOTS], update; /* kernels of each slot, and behind all */
	uint32_t n_ops;
};

/* Where a pass's result goes; or comes from. -1: nowhere. */
static int64_t peer_of(const struct ran *x, int64_t stage, const struct ft_slot *s,
		       bool to, int64_t *chunk)
{
	bool up = (s->kind == FT_SLOT_FORWARD) == to;
	int64_t place = s->chunk * x->l.plan.pp + stage + (up ? 1 : -1);

	if (place < 0 || place >= x->l.plan.pp * x->l.plan.vpp)
		return -1;
	*chunk = place / x->l.plan.pp;
	return place % x->l.plan.pp;
}

static uint32_t add_op(struct ran *x)
{
	struct ft_rec_op *op = table_add(&x->r.mem, &x->r.op);

	*op = (struct ft_rec_op){ .start = 1000 * x->n_ops,
				  .duration = 1 + rnd_below(&seed, 900) };
	return x->n_ops++;
}

static void add_cut(struct ran *x, int64_t peer, bool sends)
{
	struct stage *s = &x->stage[x->here];

	if (s->n_cuts == s->cut_cap)
		s->cut = ARENA_GROW(&x->l.scratch, s->cut, &s->cut_cap);
	s->cut[s->n_cuts++] = (struct cut){ add_op(x), s->kernel.n, peer, sends };
	s->n_sends += sends;
}

static void run_slot(struct ran *x, size_t k)
{
	struct stage *s = &x->stage[x->here];
	const struct ft_slot *of = &s->slot[k];
	int64_t chunk, from = peer_of(x, x->here, of, false, &chunk);
	int64_t to = peer_of(x, x->here, of, true, &chunk);

	x->received[k] = from >= 0 && (x->receives == ALL ||
				       (x->receives == SOME && rnd_below(&seed, 3)));
	x->sent[k] = to >= 0;
	x->n[k] = x->n_of[of->kind][of->chunk];
	if (x->received[k])
		add_cut(x, from, false);
	for (size_t i = 0; i < x->n[k]; i++)
		add_kernel(&x->l.scratch, &s->kernel, add_op(x));
	if (x->sent[k])
		add_cut(x, to, true);
}

static void draw_plan(struct ran *x)
{
	struct ft_plan *plan = &x->l.plan;

	plan->schedule = rnd_below(&seed, 2) ? FT_1F1B : FT_GPIPE;
	plan->pp = 2 + rnd_below(&seed, STAGES - 1);
	plan->vpp = rnd_below(&seed, 2) ? 1 : 1 + rnd_below(&seed, CHUNKS);
	plan->micro_batches =
		plan->vpp > 1 ? plan->pp * (1 + rnd_below(&seed, 12 / (int)plan->pp)) :
				1 + rnd_below(&seed, 12);
	x->l.n = (size_t)plan->pp;
	x->l.n_places = (size_t)(plan->micro_batches * plan->vpp);
	x->here = rnd_below(&seed, (int)plan->pp);
	for (int64_t i = 0; i < plan->pp; i++) {
		x->stage[i].rank = i == x->here ? 0 : NO_RANK;
		x->stage[i].slot = ARENA_ARRAY(&x->l.scratch, ft_plan_most_slots(plan),
					       struct ft_slot);
		x->stage[i].n_slots = ft_plan_slots(plan, i, x->stage[i].slot);
		assert_true(x->stage[i].n_slots <= SLOTS);
	}
}

static void draw(struct ran *x)
{
	struct stage *s;

	*x = (struct ran){ .receives = (enum receives)(rnd_below(&seed, 5) % 3),
			   .alike = rnd_below(&seed, 2),
			   .update = (size_t)rnd_below(&seed, 4),
			   .r = { .op = { .row_bytes = sizeof(struct ft_rec_op) } } };
	x->rank.r = &x->r;
	x->p.rank = &x->rank;
	x->p.n_ranks = 1;
	x->l.p = &x->p;
	x->l.stage = x->stage;
	draw_plan(x);
	for (int back = 0; back < 2; back++)
		for (int c = 0; c < CHUNKS; c++)
			x->n_of[back][c] = x->alike && c ?
						   x->n_of[back][0] :
						   1 + (size_t)rnd_below(&seed, MOST);
	s = &x->stage[x->here];
	for (size_t k = 0; k < s->n_slots; k++)
		run_slot(x, k);
	for (size_t i = 0; i < x->update; i++)
		add_kernel(&x->l.scratch, &s->kernel, add_op(x));
}

static void drop(struct ran *x)
{
	arena_release(&x->p.mem);
	arena_release(&x->r.mem);
	arena_release(&x->l.scratch);
}

/* ---- what is to be found ----------------------------------------------------------------- */

/* Kernels that each slot is to be given, from its first on; 0: none, as nothing tells them. */
struct found {
	size_t from[SLOTS], n[SLOTS];
	size_t usual
		[2]
		[CHUNKS]; /* of a pass that stands alone, or of the first one found */
	double all,
		off; /* kernels given; and by how many they are not the usual ones */
	bool broken;
	int by_receives, by_numbers, untold;
};

static size_t *usual_of(const struct ran *x, struct found *f, size_t slot)
{
	const struct ft_slot *s = &x->stage[x->here].slot[slot];

	return &f->usual[s->kind][s->chunk];
}

/* The slots from first to last, all silent but for the last if it sends, of so many kernels: told
 * by their receives, or the silent ones share what the one that sends leaves. */
static bool tell(const struct ran *x, struct found *f, size_t first, size_t last,
		 size_t kernels)
{
	size_t slots = last + 1 - first,
	       sends = x->sent[last] ? *usual_of(x, f, last) : 0;
	size_t silent = x->sent[last] ? slots - 1 : slots, each;
	bool received = slots > 1;

	for (size_t k = first + 1; k <= last; k++)
		received = received && x->received[k];
	for (size_t k = first; k <= last; k++)
		f->n[k] = x->n[k];
	if (received && !x->sent[last] && x->n[last] + x->update > x->n[first])
		f->n[last] = x->n[first]; /* the rest is the update */
	else if (received && !x->sent[last])
		f->n[last] += x->update;
	f->by_receives += received;
	if (received || !silent)
		return true;
	if (x->sent[last] && (!sends || sends >= kernels))
		return false;
	each = x->sent[last] ? (kernels - sends) / silent : *usual_of(x, f, first);
	for (size_t k = first; k < first + silent; k++)
		f->n[k] = each;
	if (x->sent[last]) {
		f->n[last] = sends;
		f->n[last - 1] += kernels - sends - silent * each;
	}
	f->by_numbers += slots > 1 && each;
	return each > 0;
}

static void give(const struct ran *x, struct found *f, size_t first, size_t last,
		 size_t from, size_t kernels)
{
	bool known = x->sent[last] && *usual_of(x, f, last);
	size_t sum = 0;

	if (!tell(x, f, first, last, kernels)) {
		for (size_t k = first; k <= last; k++)
			f->n[k] = 0;
		f->broken = first == last || known;
		f->untold++;
		return;
	}
	for (size_t k = first; k <= last; k++) {
		size_t *of = usual_of(x, f, k);

		f->from[k] = from + sum;
		sum += f->n[k];
		*of = *of ? *of : f->n[k];
		f->all += (double)f->n[k];
		f->off += fabs((double)f->n[k] - (double)*of);
	}
	f->broken = sum > kernels;
	for (size_t k = first; f->broken && k <= last; k++)
		f->n[k] = 0;
}

static void find(const struct ran *x, struct found *f)
{
	size_t n = x->stage[x->here].n_slots, first = 0, from = 0, kernels = 0;

	*f = (struct found){ .broken = false };
	for (size_t k = 0; k < n; k++)
		if (x->sent[k] && (!k || x->sent[k - 1]))
			*usual_of(x, f, k) = x->n[k];
	for (size_t k = 0; k < n && !f->broken; k++) {
		kernels += x->n[k];
		if (!x->sent[k] && k + 1 < n)
			continue;
		if (!x->sent[k])
			kernels += x->update;
		give(x, f, first, k, from, kernels);
		first = k + 1;
		from += kernels;
		kernels = 0;
	}
}

/* ---- what is found ------------------------------------------------------------------------- */

static void has_passes(const struct ran *x, const struct found *f)
{
	const struct stage *s = &x->stage[x->here];

	for (size_t k = 0; k < s->n_slots; k++) {
		size_t at = s->pass[s->slot[k].kind][place_of(&x->l, &s->slot[k])];
		const struct ft_rec_op *first, *last;
		const struct pass *pass;

		if (!f->n[k]) {
			assert_true(at == NO_PASS);
			continue;
		}
		assert_true(at < x->p.n_passes);
		pass = &x->p.pass[at];
		assert_int_equal(pass->rank, 0);
		assert_int_equal(pass->n, f->n[k]);
		assert_memory_equal(pass->op, s->kernel.op + f->from[k],
				    f->n[k] * sizeof(*pass->op));
		first = op_of(&x->r, pass->op[0]);
		last = op_of(&x->r, pass->op[pass->n - 1]);
		assert_int_equal(pass->duration,
				 last->start + last->duration - first->start);
		if (x->alike && x->receives == ALL && !x->update)
			assert_int_equal(pass->n, x->n[k]);
	}
}

/* The n-th transfer of a stage that sends, or that comes from a peer; or NO_OP. */
static uint32_t nth(const struct stage *s, bool sends, int64_t peer, size_t n)
{
	for (size_t i = 0; i < s->n_cuts; i++)
		if (s->cut[i].sends == sends && (sends || s->cut[i].peer == peer) &&
		    !n--)
			return s->cut[i].op;
	return NO_OP;
}

static void has_transfers(const struct ran *x)
{
	const struct stage *s = &x->stage[x->here];
	size_t sent = 0;
	int64_t chunk = 0;

	for (size_t k = 0; k < s->n_slots; k++) {
		const struct ft_slot *of = &s->slot[k];
		uint32_t op = s->send[is_back(of)][place_of(&x->l, of)];

		assert_int_equal(op, x->sent[k] ? nth(s, true, 0, sent) : NO_OP);
		sent += x->sent[k];
	}
	for (int64_t peer = 0; peer < x->l.plan.pp; peer++) {
		size_t n = 0;

		for (size_t k = 0; k < x->stage[peer].n_slots; k++) {
			struct ft_slot of = x->stage[peer].slot[k];

			if (peer == x->here ||
			    peer_of(x, peer, &of, true, &chunk) != x->here)
				continue;
			of.chunk = chunk;
			assert_int_equal(s->receive[is_back(&of)][place_of(&x->l, &of)],
					 nth(s, false, peer, n++));
		}
	}
}

static void passes_are_found_by_transfers_or_numbers(void **state)
{
	static struct ran x; /* large */
	int receives = 0, numbers = 0, untold = 0, broken = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct found f;
		double unlike;

		draw(&x);
		find(&x, &f);
		unlike = passes_unlike(&x.l, x.here);
		near_frac(1 + unlike,
			  1 + (f.broken	 ? 2 :
			       f.all > 0 ? f.off / f.all :
					   0),
			  1e-12);
		passes_take(&x.l, x.here);
		has_passes(&x, &f);
		has_transfers(&x);
		receives += f.by_receives;
		numbers += f.by_numbers;
		untold += f.untold;
		broken += f.broken;
		drop(&x);
	}
	assert_true(receives > DRAWS / 3 && numbers > DRAWS / 3);
	assert_true(untold > DRAWS / 10 && broken > DRAWS / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes_are_found_by_transfers_or_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
