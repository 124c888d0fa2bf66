/* tests/test_alike.c - recordings that are not of the same steps of one job are refused, in words */
#include "tests/made_recording.h"

/* Both are freed; made with the same words but "rank". */
static void refused(struct ft_recording *a, struct ft_recording *b, const char *why)
{
	const struct ft_recording *both[2] = { a, b };
	struct ft_error err;
	struct ft_replay *p = ft_replay_build(both, 2, &err);

	if (p)
		fail_msg("taken, though '%s'", why);
	if (!strstr(err.text, why))
		fail_msg("said '%s', not '%s'", err.text, why);
	ft_recording_free(a);
	ft_recording_free(b);
}

static void taken(struct ft_recording *a, struct ft_recording *b)
{
	const struct ft_recording *both[2] = { a, b };
	struct ft_error err;
	struct ft_replay *p = ft_replay_build(both, 2, &err);

	ok_or_say(p, err);
	ft_replay_free(p);
	ft_recording_free(a);
	ft_recording_free(b);
}

/* Eight all-reduces, one each `every` us; those from `moved` on come so much later. */
static struct made reduces(int rank, double every, int moved, double later)
{
	struct made m = begin(rank);

	for (int i = 0; i < 8; i++) {
		double at = 100 + every * i + (i >= moved ? later : 0);

		call(&m, "cudaLaunchKernel", 1 + i, at - 20, 5);
		kernel(&m, "ncclDevKernel_AllReduce", 1 + i, 20, at, 50);
	}
	return m;
}

static struct ft_recording *reducing(int rank, double every, int moved, double later)
{
	struct made m = reduces(rank, every, moved, later);

	return end(&m);
}

/* The clocks of a job's ranks may be apart, and may drift; a rank may come late. */
static void ranks_of_one_job_are_taken(void **state)
{
	(void)state;
	taken(reducing(0, 5000, 8, 0), reducing(1, 5000, 8, 0));
	taken(reducing(0, 5000, 8, 0), reducing(1, 5000, 0, 70000));
	taken(reducing(0, 5000, 8, 0), reducing(1, 5100, 8, 0));
	taken(reducing(0, 5000, 8, 0), reducing(1, 5000, 7, 9000));
}

/* Of two jobs with the same collectives no clock makes all of them overlap. */
static void two_jobs_are_not_one(void **state)
{
	(void)state;
	refused(reducing(0, 5000, 8, 0), reducing(1, 7000, 8, 0),
		"end on one rank before they begin on another");
	refused(reducing(0, 5000, 8, 0), reducing(1, 5000, 5, 9000), "3 of 8");
}

/* One rank's collectives, and the other's products: nothing that they share is wrong, as they share nothing. A single
 * collective may be cut off at an end. */
static struct ft_recording *working(int rank, int reductions)
{
	struct made m = begin(rank);

	for (int i = 0; i < 8; i++) {
		call(&m, "cudaLaunchKernel", 1 + i, 80 + 5000 * i, 5);
		kernel(&m, i < reductions ? "ncclDevKernel_AllReduce" : "gemm", 1 + i,
		       20, 100 + 5000 * i, 50);
	}
	return end(&m);
}

static void jobs_that_share_nothing_are_not_one(void **state)
{
	(void)state;
	refused(working(0, 0), working(1, 8),
		"none of its 8 collectives is in the recordings of the other ranks");
	refused(working(0, 2), working(1, 0), "none of its 2 collectives");
	taken(working(0, 0), working(1, 1));
	taken(working(0, 1), working(1, 8));
	taken(working(0, 0), working(1, 0));
}

/* The third of eight is launched, and not there: those behind it meet the ones before. */
static void a_lost_collective_is_told(void **state)
{
	struct made m = begin(1);

	(void)state;
	for (int i = 0; i < 8; i++) {
		call(&m, "cudaLaunchKernel", 1 + i, 80 + 5000 * i, 5);
		if (i != 2)
			kernel(&m, "ncclDevKernel_AllReduce", 1 + i, 20, 100 + 5000 * i,
			       50);
	}
	refused(reducing(0, 5000, 8, 0), end(&m), "the profiler lost operations");
}

static void with_rank(char text[512], const char *rank)
{
	snprintf(
		text, 512,
		"{%s\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\","
		"\"pid\":0,\"tid\":7,\"ts\":10,\"dur\":5,\"args\":{\"stream\":7}}]}",
		rank);
}

static struct ft_recording *alone(const char *rank)
{
	char text[512];

	with_rank(text, rank);
	return read_text(text);
}

static void what_they_say_of_themselves_must_fit(void **state)
{
	static const char two[] = "\"distributedInfo\":{\"rank\":1,\"world_size\":2},",
			  eight[] =
				  "\"distributedInfo\":{\"rank\":0,\"world_size\":8},",
			  untold[] = "\"distributedInfo\":{\"rank\":0},";

	(void)state;
	refused(alone(""), alone(""), "does not tell its rank, nor does");
	refused(alone(eight), alone(two), "is of a job of 2 ranks, and");
	refused(alone(eight), alone(untold), "is rank 0, and so is");
	taken(alone(untold), alone(two));
	refused(alone(""), alone(two),
		"does not tell its rank: of several recordings each must");
	refused(alone(two), alone(""),
		"does not tell its rank: of several recordings each must");
}

/* Nothing else says which rank it is: it is the first. */
static void one_alone_need_not_tell_its_rank(void **state)
{
	struct ft_recording *r = alone("");
	struct ft_error err;
	struct ft_replay *p = ft_replay_build(one(r), 1, &err);

	(void)state;
	ok_or_say(p, err);
	ft_replay_free(p);
	ft_recording_free(r);
}

static void not_read(const char *told, const char *why)
{
	char text[512];
	struct ft_error err;
	struct ft_recording *r;

	with_rank(text, told);
	r = ft_recording_read(put(text, strlen(text)), &err);
	if (r)
		fail_msg("taken, though it '%s'", why);
	if (!strstr(err.text, why))
		fail_msg("said '%s', not '%s'", err.text, why);
}

/* Ranks of N are 0 to N - 1; a job whose size is not told may have any. */
static void a_rank_is_below_the_number_of_ranks(void **state)
{
	(void)state;
	not_read("\"distributedInfo\":{\"rank\":5,\"world_size\":2},",
		 "states rank 5 of a job of 2 ranks: ranks count from 0");
	not_read("\"distributedInfo\":{\"rank\":2,\"world_size\":2},",
		 "states rank 2 of a job of 2 ranks: ranks count from 0");
	not_read("\"distributedInfo\":{\"rank\":-2,\"world_size\":2},",
		 "states rank -2: ranks count from 0");
	ft_recording_free(alone("\"distributedInfo\":{\"rank\":1,\"world_size\":2},"));
	ft_recording_free(alone("\"distributedInfo\":{\"rank\":5},"));
}

/* A recording of many steps stands beside none that is of one. */
static void steps_must_be_the_same(void **state)
{
	static const char step[] = "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":"
				   "\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,\"ts\":%d,"
				   "\"dur\":15000},\n";
	struct made many = reduces(0, 5000, 8, 0), one_step = reduces(0, 5000, 8, 0);

	(void)state;
	add(&many, step, 3, 50);
	add(&many, step, 4, 15100);
	refused(end(&many), reducing(1, 5000, 8, 0), "as many steps (1) as");
	add(&one_step, step, 3, 50);
	taken(end(&one_step), reducing(1, 5000, 8, 0));
}

/* Of two ranks: the steps of these numbers, of two collectives each. */
static struct ft_recording *stepping(int rank, const int *numbers, int n)
{
	struct made m = reduces(rank, 5000, 2 * n, 0);

	for (int i = 0; i < n; i++)
		add(&m,
		    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":"
		    "\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,\"ts\":%d,"
		    "\"dur\":9000},\n",
		    numbers[i], 50 + 10000 * i);
	return end(&m);
}

/* Its last step may be missing, but none before that: collectives of others would meet. */
static void a_rank_lacks_no_step_between_others(void **state)
{
	static const int all[] = { 3, 4, 5, 6 }, hole[] = { 3, 4, 6 };

	(void)state;
	taken(stepping(0, all, 4), stepping(1, all, 4));
	taken(stepping(0, all, 4), stepping(1, all, 3));
	refused(stepping(0, all, 4), stepping(1, hole, 3),
		"goes on with ProfilerStep#6, and");
	refused(stepping(0, hole, 3), stepping(1, all, 4),
		"goes on with ProfilerStep#5, and");
	refused(stepping(0, all, 4), stepping(1, hole + 1, 2),
		"begins with ProfilerStep#4, and");
}

/* Of two ranks: four marked steps, of which one launches nothing. */
static struct ft_recording *idling(int rank, int idle)
{
	struct made m = begin(rank);

	for (int i = 0; i < 4; i++) {
		double at = 100 + 10000 * i;

		add(&m,
		    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":"
		    "\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,\"ts\":%d,"
		    "\"dur\":9000},\n",
		    3 + i, 50 + 10000 * i);
		if (i == idle)
			continue;
		call(&m, "cudaLaunchKernel", 1 + i, at - 20, 5);
		kernel(&m, "ncclDevKernel_AllReduce", 1 + i, 20, at, 50);
	}
	return end(&m);
}

static void ranks_launch_nothing_in_the_same_steps(void **state)
{
	(void)state;
	taken(idling(0, 1), idling(1, 1));
	taken(idling(0, 3), idling(1, 4));
	refused(idling(0, 4), idling(1, 1), "goes on with ProfilerStep#5, and");
	refused(idling(0, 1), idling(1, 4),
		"(a step in which a rank launches no operation is left out)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_lacks_no_step_between_others),
		cmocka_unit_test(ranks_launch_nothing_in_the_same_steps),
		cmocka_unit_test(ranks_of_one_job_are_taken),
		cmocka_unit_test(two_jobs_are_not_one),
		cmocka_unit_test(jobs_that_share_nothing_are_not_one),
		cmocka_unit_test(a_lost_collective_is_told),
		cmocka_unit_test(one_alone_need_not_tell_its_rank),
		cmocka_unit_test(a_rank_is_below_the_number_of_ranks),
		cmocka_unit_test(what_they_say_of_themselves_must_fit),
		cmocka_unit_test(steps_must_be_the_same),
	};
	int failed = cmocka_run_group_tests_name("recorded/alike", tests, NULL, NULL);

	unlink(made_path());
	return failed;
}
