/* study/whatif_words.c - what the words of a recorded group say: its ranks, its description */
#include <stdlib.h>
#include <string.h>

#include "study/whatif.h"

int64_t ranks_stride(const char *ranks)
{
	char *end;
	long long a, b;

	a = strtoll(ranks + strcspn(ranks, "0123456789"), &end, 10);
	if (*end != ',')
		return 1;
	b = strtoll(end + 1, &end, 10);
	return b > a && b - a < INT32_MAX ? b - a : 1;
}

int64_t ranks_up_to(const char *ranks)
{
	int64_t most = 0;

	for (ranks += strcspn(ranks, "0123456789"); *ranks;
	     ranks += strcspn(ranks, "0123456789")) {
		char *end;
		long long rank = strtoll(ranks, &end, 10);

		if (rank < INT32_MAX && rank >= most)
			most = rank + 1;
		ranks = end;
	}
	return most;
}

bool says_tp(const char *about)
{
	return strstr(about, "tp") || strstr(about, "tensor") ||
	       strstr(about, "TENSOR");
}

static bool holds(const char *about, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(about, words[i]))
			return true;
	return false;
}

static bool of_experts(const char *about)
{
	static const char *const words[] = { "expert", "EXPERT", "expt", "edp" };

	return holds(about, words, sizeof(words) / sizeof(*words));
}

static bool of_data(const char *about)
{
	static const char *const words[] = { "dp",   "DP",   "data",  "DATA",
					     "Data", "fsdp", "shard", "replica" };

	return !says_tp(about) && holds(about, words, sizeof(words) / sizeof(*words));
}

bool says_dp(const char *about)
{
	return of_data(about) && !of_experts(about);
}

bool says_expert_dp(const char *about)
{
	return of_data(about) && of_experts(about);
}
