/*
 * tests/test_meet_drawn.c - which collectives of several ranks are one: drawn programs, of which each rank leaves some
 * out or runs them otherwise, against partners that are looked for here, turn by turn
 */
#include "tests/made_recording.h"

enum { DRAWS = 250, RANKS = 4, ITEMS = 12, GROUPS = 5, PARTS = 2, BEFORE = 3 };
enum {
	ALL = ITEMS + 2
}; /* as many that all ranks meet in, so that clocks are set by them */
enum { KERNELS = ALL + ITEMS + BEFORE };
enum { APART_US = 200, LONG_US = 100, CLOCK_US = 10 };

static uint64_t seed = 101;

/* What a kernel says of one collective. */
struct part {
	bool transfer, sends;
	int group, peer; /* of a collective; of a transfer */
	int name, elements, size;
	bool told; /* its ranks are */
};

struct kernel {
	struct part part[PARTS];
	int parts, launch_us, start_us, dur_us;
	bool before; /* launched before the recording began */
	/* what is found: of its parts' partners, rank and kernel */
	int ranks, of_rank, of_kernel;
	bool parted;
};

struct drawn {
	int ranks;
	bool given[RANKS];
	int offset_us[RANKS];
	int n[RANKS];
	struct kernel kernel[RANKS][KERNELS];
};

/* Some of one name, some of the same ranks. */
static const struct group {
	const char *name, *ranks;
	int of[RANKS]; /* which ranks are in it */
} groups[GROUPS] = {
	{ "0", "[0, 1, 2, 3]", { 1, 1, 1, 1 } }, { "1", "[0, 1]", { 1, 1, 0, 0 } },
	{ "1", "[0, 2, 3]", { 1, 0, 1, 1 } },	 { "2", "[0, 1]", { 1, 1, 0, 0 } },
	{ "3", "[1, 2, 3]", { 0, 1, 1, 1 } },
};

static const char *const names[] = { "allreduce", "_allgather_base", "alltoall" };

/* ---- drawn ------------------------------------------------------------------------------ */

static struct kernel *launch(struct drawn *d, int rank, int item)
{
	struct kernel *k = &d->kernel[rank][d->n[rank]++];

	*k = (struct kernel){ .parts = 1,
			      .launch_us = 10 * item,
			      .start_us = 1000 + APART_US * item };
	k->start_us += rnd_below(&seed, LONG_US / 2);
	k->dur_us =
		1000 + APART_US * item + LONG_US - k->start_us; /* all end at once */
	return k;
}

static void draw_collective(struct drawn *d, int item, int group, bool all_alike)
{
	struct part p = { .group = group,
			  .name = rnd_below(&seed, 3),
			  .elements = 8 * (1 + rnd_below(&seed, 2)),
			  .size = 4,
			  .told = all_alike || rnd_below(&seed, 8) };

	if (!all_alike)
		p.size = rnd_below(&seed, 4) ? 4 : 1 + rnd_below(&seed, 3);
	for (int rank = 0; rank < d->ranks; rank++) {
		struct part own = p;

		if (!groups[group].of[rank] || (!all_alike && !rnd_below(&seed, 12)))
			continue; /* left out */
		if (!all_alike && !rnd_below(&seed, 12))
			own.elements += 8;
		if (!all_alike && !rnd_below(&seed, 12))
			own.name = (own.name + 1) % 3;
		launch(d, rank, item)->part[0] = own;
	}
}

/* What one sends another receives; of some kernels there and back, or something of a third, too. A
 * receive may begin long after what was sent has gone. */
static void draw_transfer(struct drawn *d, int item)
{
	int from = rnd_below(&seed, d->ranks);
	int to = (from + 1 + rnd_below(&seed, d->ranks - 1)) % d->ranks;
	int third = rnd_below(&seed, RANKS), elements = 8 * (1 + rnd_below(&seed, 3));
	struct kernel *a = launch(d, from, item), *b = launch(d, to, item);

	a->part[0] = (struct part){ .transfer = true,
				    .sends = true,
				    .peer = to,
				    .elements = elements,
				    .size = 4,
				    .told = true };
	b->part[0] = a->part[0];
	b->part[0].sends = false;
	b->part[0].peer = from;
	if (!rnd_below(&seed, 8))
		b->part[0].elements += 8;
	if (rnd_below(&seed, 2)) {
		a->parts = b->parts = 2;
		a->part[1] = b->part[0];
		a->part[1].peer = to;
		b->part[1] = a->part[0];
		b->part[1].peer = from;
		if (!rnd_below(&seed, 3) && third != from)
			a->part[1].peer = third;
	} else if (rnd_below(&seed, 2)) {
		a->dur_us = 1; /* buffered, where the other begins late */
		a->start_us =
			b->start_us - 2 * CLOCK_US + rnd_below(&seed, 3 * CLOCK_US);
	}
}

static void draw_before(struct drawn *d, int rank)
{
	int n = rnd_below(&seed, BEFORE + 1);

	for (int i = 0; i < n; i++) {
		struct kernel *k = launch(d, rank, 0);

		k->part[0] = (struct part){
			.group = 0, .elements = 8, .size = 4, .told = true
		};
		k->before = true;
		k->start_us = 100 + 100 * i;
		k->dur_us = 90;
	}
}

static void draw(struct drawn *d)
{
	int n = 0;

	*d = (struct drawn){ .ranks = 2 + rnd_below(&seed, RANKS - 1) };
	for (int rank = 0; rank < d->ranks; rank++) {
		d->given[rank] = rank < 2 || rnd_below(&seed, 4);
		d->offset_us[rank] = rnd_below(&seed, 300);
		draw_before(d, rank);
	}
	for (int i = 0; i < ALL; i++)
		draw_collective(d, n++, 0, true);
	for (int i = 0; i < ITEMS; i++, n++)
		if (rnd_below(&seed, 2))
			draw_collective(d, n, 1 + rnd_below(&seed, GROUPS - 1), false);
		else
			draw_transfer(d, n);
}

/* ---- written ---------------------------------------------------------------------------- */

static void put_part(FILE *out, const struct part *p)
{
	fprintf(out,
		"\"Collective name\":\"%s\",\"In msg nelems\":%d,\"Out msg nelems\":%d,"
		"\"Group size\":%d,\"dtype\":\"Float\",\"Process Group Name\":\"%s\","
		"\"Process Group Ranks\":\"%s\"",
		p->transfer ? p->sends ? "send" : "recv" : names[p->name], p->elements,
		p->elements, p->size, p->transfer ? "9" : groups[p->group].name,
		!p->told    ? "" :
		p->transfer ? "[0, 1, 2, 3]" :
			      groups[p->group].ranks);
	if (p->transfer)
		fprintf(out, ",\"%s\":%d", p->sends ? "Dst Rank" : "Src Rank", p->peer);
}

/* Its parts are told by calls of the host in front of its launch, where it has several. */
static void put_one(FILE *out, const struct kernel *k, int i, int offset_us)
{
	int at = offset_us + k->launch_us;

	for (int p = 0; k->parts > 1 && p < k->parts; p++) {
		fprintf(out,
			"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\","
			"\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":1,\"args\":{\"External "
			"id\":%d,",
			at + p, 100 + 10 * i + p);
		put_part(out, &k->part[p]);
		fprintf(out, "}},\n");
	}
	if (!k->before)
		fprintf(out,
			"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":"
			"\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":1,"
			"\"args\":{\"correlation\":%d}},\n",
			at + 5, i);
	fprintf(out,
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_SendRecv\",\"pid\":"
		"0,\"tid\":7,\"ts\":%d,\"dur\":%d,\"args\":{\"stream\":7,"
		"\"correlation\":%d",
		offset_us + k->start_us, k->dur_us, k->before ? 5000 + i : i);
	if (k->parts == 1) {
		fputs(",", out);
		put_part(out, &k->part[0]);
	}
	fputs("}},\n", out);
}

static struct ft_recording *recorded(const struct drawn *d, int rank)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	struct ft_recording *r;

	fprintf(out,
		"{\"distributedInfo\":{\"rank\":%d,\"world_size\":%d},\"traceEvents\":[\n",
		rank, RANKS);
	for (int i = 0; i < d->n[rank]; i++)
		put_one(out, &d->kernel[rank][i], i, d->offset_us[rank]);
	fputs("{\"ph\":\"M\",\"name\":\"end\"}]}\n", out);
	fclose(out);
	r = read_text(text);
	free(text);
	return r;
}

/* ---- looked for --------------------------------------------------------------------------- */

static bool same_group(const struct part *a, const struct part *b)
{
	return !a->transfer && !b->transfer && b->told && b->size > 1 &&
	       a->group == b->group;
}

/* How many of its kind a rank launched before. */
static int turn_of(const struct drawn *d, int rank, int kernel)
{
	const struct part *p = &d->kernel[rank][kernel].part[0];
	int n = 0;

	for (int i = 0; i < kernel; i++)
		n += !d->kernel[rank][i].before &&
		     same_group(p, &d->kernel[rank][i].part[0]);
	return n;
}

static const struct kernel *of_turn(const struct drawn *d, int rank,
				    const struct part *p, int turn)
{
	for (int i = 0; i < d->n[rank]; i++)
		if (!d->kernel[rank][i].before &&
		    same_group(p, &d->kernel[rank][i].part[0]) && !turn--)
			return &d->kernel[rank][i];
	return NULL;
}

static void find_collective(struct drawn *d, int rank, int kernel)
{
	struct kernel *k = &d->kernel[rank][kernel];
	const struct part *p = &k->part[0];
	int turn = turn_of(d, rank, kernel), n = 0, size = 0;
	bool agree = true;

	if (k->before || !p->told || p->size < 2)
		return;
	for (int other = 0; other < d->ranks; other++) {
		const struct kernel *x =
			d->given[other] ? of_turn(d, other, p, turn) : NULL;

		if (!x)
			continue;
		size = n ? size : x->part[0].size; /* as the first says */
		agree &= x->part[0].name == p->name &&
			 x->part[0].elements == p->elements;
		n++;
	}
	k->ranks = agree && n > 1 && n <= size ? n : 0;
}

/* The how-manieth part that sends to a rank, or receives from it. */
static bool is_like(const struct part *p, bool sends, int peer)
{
	return p->transfer && p->sends == sends && p->peer == peer;
}

/* false: the other has no such part. */
static bool find_other_end(const struct drawn *d, int rank, int kernel, int part,
			   int *of_kernel, const struct part **other)
{
	const struct part *p = &d->kernel[rank][kernel].part[part];
	int turn = 0;

	if (p->peer >= d->ranks || !d->given[p->peer])
		return false;
	for (int i = 0; i <= kernel; i++)
		for (int k = 0; k < (i < kernel ? d->kernel[rank][i].parts : part); k++)
			turn += is_like(&d->kernel[rank][i].part[k], p->sends, p->peer);
	for (int i = 0; i < d->n[p->peer]; i++)
		for (int k = 0; k < d->kernel[p->peer][i].parts; k++)
			if (is_like(&d->kernel[p->peer][i].part[k], !p->sends, rank) &&
			    !turn--) {
				*of_kernel = i;
				*other = &d->kernel[p->peer][i].part[k];
				return true;
			}
	return false;
}

/* Whom all of a kernel's parts that have another end have it with. */
static void find_transfer(struct drawn *d, int rank, int kernel)
{
	struct kernel *k = &d->kernel[rank][kernel];

	k->of_rank = -1;
	for (int i = 0; i < k->parts; i++) {
		const struct part *other;
		int of_kernel, of_rank = k->part[i].peer;

		if (!find_other_end(d, rank, kernel, i, &of_kernel, &other) ||
		    other->elements != k->part[i].elements)
			continue;
		k->parted |= k->of_rank >= 0 &&
			     (k->of_rank != of_rank || k->of_kernel != of_kernel);
		k->of_rank = of_rank;
		k->of_kernel = of_kernel;
	}
}

static bool is_buffered(const struct kernel *a, const struct kernel *b)
{
	int begin = a->start_us > b->start_us ? a->start_us : b->start_us;
	int ends = a->start_us + a->dur_us, end = b->start_us + b->dur_us;

	return begin > (end < ends ? end : ends) + CLOCK_US;
}

static void settle_transfer(struct drawn *d, int rank, int kernel)
{
	struct kernel *k = &d->kernel[rank][kernel], *other;

	if (k->of_rank < 0)
		return;
	other = &d->kernel[k->of_rank][k->of_kernel];
	if (!k->parted && !other->parted && !is_buffered(k, other))
		k->ranks = 2;
}

static void look_for_all(struct drawn *d)
{
	for (int rank = 0; rank < d->ranks; rank++)
		for (int i = 0; d->given[rank] && i < d->n[rank]; i++)
			if (d->kernel[rank][i].part[0].transfer)
				find_transfer(d, rank, i);
			else
				find_collective(d, rank, i);
	for (int rank = 0; rank < d->ranks; rank++)
		for (int i = 0; d->given[rank] && i < d->n[rank]; i++)
			if (d->kernel[rank][i].part[0].transfer)
				settle_transfer(d, rank, i);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void is_found(const struct drawn *d, const struct ft_replay *p, size_t k,
		     int rank, int64_t *matched, int64_t *unmatched)
{
	for (int i = 0; i < d->n[rank]; i++) {
		const struct kernel *x = &d->kernel[rank][i];

		if (ft_replay_meets(p, k, (size_t)i) != (size_t)x->ranks)
			fail_msg("rank %d: kernel %d is found on %zu ranks, wanted %d",
				 rank, i, ft_replay_meets(p, k, (size_t)i), x->ranks);
		*matched += x->ranks > 0;
		*unmatched += !x->ranks && (x->part[0].transfer ||
					    (x->part[0].told && x->part[0].size > 1));
	}
}

/* false: partners of different moments make a circle, which is told. */
static bool is_as_looked_for(const struct drawn *d)
{
	struct ft_recording *r[RANKS];
	int64_t matched = 0, unmatched = 0;
	struct ft_replay *p;
	struct ft_error err;
	size_t n = 0, n_given = 0;

	for (int rank = 0; rank < d->ranks; rank++)
		if (d->given[rank])
			r[n_given++] = recorded(d, rank);
	p = ft_replay_build((const struct ft_recording *const *)r, n_given, &err);
	if (!p)
		assert_non_null(strstr(err.text, "goes round in a circle"));
	for (int rank = 0; p && rank < d->ranks; rank++)
		if (d->given[rank])
			is_found(d, p, n++, rank, &matched, &unmatched);
	if (p) {
		assert_int_equal(ft_replay_counts(p)->matched, matched);
		assert_int_equal(ft_replay_counts(p)->unmatched, unmatched);
	}
	ft_replay_free(p);
	for (size_t i = 0; i < n_given; i++)
		ft_recording_free(r[i]);
	return p != NULL;
}

static void partners_are_found_by_their_turns(void **state)
{
	int n = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct drawn d;

		draw(&d);
		look_for_all(&d);
		n += is_as_looked_for(&d);
	}
	assert_in_range(n, DRAWS / 2, DRAWS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(partners_are_found_by_their_turns),
	};
	int status = cmocka_run_group_tests_name("meetings", tests, NULL, NULL);

	unlink(made_path());
	return status;
}
