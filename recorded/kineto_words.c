/* recorded/kineto_words.c - words and numbers of Kineto's JSON */
#include <stdlib.h>
#include <string.h>

#include "recorded/kineto.h"

struct word {
	const char *text;
	enum key key;
};

static const struct word of_event[] = {
	{ "ph", K_PHASE }, { "cat", K_CATEGORY }, { "name", K_NAME },
	{ "pid", K_PID },  { "tid", K_TID },	  { "ts", K_TS },
	{ "dur", K_DUR },  { "args", K_ARGS },	  { NULL, K_NONE },
};

static const struct word of_args[] = {
	{ "correlation", K_CORRELATION },
	{ "External id", K_EXTERNAL },
	{ "external id", K_EXTERNAL },
	{ "stream", K_STREAM },
	{ "device", K_DEVICE },
	{ "wait_on_cuda_event_record_corr_id", K_WAIT_RECORD },
	{ "Input Dims", K_KEPT },
	{ "Input type", K_KEPT },
	{ "Input Strides", K_KEPT },
	{ "Concrete Inputs", K_KEPT },
	{ "Collective name", K_KEPT },
	{ "In msg nelems", K_KEPT },
	{ "Out msg nelems", K_KEPT },
	{ "Group size", K_KEPT },
	{ "dtype", K_KEPT },
	{ "Process Group Name", K_KEPT },
	{ "Process Group Description", K_KEPT },
	{ "Process Group Ranks", K_KEPT },
	{ "Src Rank", K_KEPT },
	{ "Dst Rank", K_KEPT },
	{ "bytes", K_KEPT },
	{ "Pass", K_KEPT },
	{ "Layer", K_KEPT },
	{ "Micro-batch", K_KEPT },
	{ "name", K_LABEL },
	{ NULL, K_NONE },
};

static const struct word of_distributed[] = { { "rank", K_RANK },
					      { "world_size", K_WORLD },
					      { NULL, K_NONE } };

static enum key find(const struct word *w, const char *text, size_t len)
{
	for (; w->text; w++)
		if (w->text[0] == text[0] && !strncmp(w->text, text, len) &&
		    !w->text[len])
			return w->key;
	return K_NONE;
}

enum key key_of_event(const char *text, size_t len)
{
	return find(of_event, text, len);
}

enum key key_of_args(const char *text, size_t len)
{
	return find(of_args, text, len);
}

enum key key_of_distributed(const char *text, size_t len)
{
	return find(of_distributed, text, len);
}

enum category category_of(const char *text, size_t len)
{
	static const struct {
		const char *text;
		enum category is;
	} known[] = {
		{ "kernel", C_KERNEL },
		{ "Kernel", C_KERNEL },
		{ "gpu_memcpy", C_MEMCPY },
		{ "gpu_memset", C_MEMCPY },
		{ "Memcpy", C_MEMCPY },
		{ "Memset", C_MEMCPY },
		{ "cuda_runtime", C_RUNTIME },
		{ "cuda_driver", C_RUNTIME },
		{ "Runtime", C_RUNTIME },
		{ "hip_runtime", C_RUNTIME },
		{ "cpu_op", C_OPERATOR },
		{ "Operator", C_OPERATOR },
		{ "user_annotation", C_ANNOTATION },
		{ "cuda_sync", C_SYNC },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (len == strlen(known[i].text) && !memcmp(text, known[i].text, len))
			return known[i].is;
	return C_NONE;
}

struct moment moment_of(const char *text, size_t len, bool *negative)
{
	struct moment m = { 0, 0, true };
	int64_t unit = 1000000;
	size_t i = 0;
	bool point = false;

	*negative = len && text[0] == '-';
	for (i = *negative; i < len; i++) {
		if (text[i] == '.' && !point) {
			point = true;
		} else if (text[i] < '0' || text[i] > '9' ||
			   (!point && m.us > INT64_MAX / 20)) {
			char copy[64] = "";
			double v;

			memcpy(copy, text, len < 63 ? len : 63);
			v = strtod(copy, NULL);
			*negative = v < 0;
			v = v < 0 ? -v : v;
			m.us = v < 9e18 ? (int64_t)v : INT64_MAX;
			m.ps = v < 9e15 ? (int64_t)((v - (double)m.us) * 1e6) : 0;
			return m;
		} else if (!point) {
			m.us = 10 * m.us + (text[i] - '0');
		} else if (unit > 1) {
			unit /= 10;
			m.ps += unit * (text[i] - '0');
		}
	}
	return m;
}

int64_t whole_of(const char *text, size_t len)
{
	bool negative;
	struct moment m = moment_of(text, len, &negative);

	return negative ? -m.us : m.us;
}
