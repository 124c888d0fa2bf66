/* recorded/names.c - what the names of the runtimes' calls mean, CUDA's and HIP's */
#include "base/text.h"
#include "recorded/recording.h"

#include <string.h>

/* Without the prefix that says whose call it is, and without version suffixes. */
static const struct {
	const char *name; /* names that begin so */
	enum ft_rec_call_kind kind;
} calls[] = {
	{ "Memcpy", FT_REC_LAUNCH },
	{ "Memset", FT_REC_LAUNCH },
	{ "EventRecord", FT_REC_RECORD },
	{ "StreamWaitEvent", FT_REC_WAIT },
	{ "EventSynchronize", FT_REC_SYNC_EVENT },
	{ "StreamSynchronize", FT_REC_SYNC_STREAM },
	{ "DeviceSynchronize", FT_REC_SYNC_DEVICE },
	{ "CtxSynchronize", FT_REC_SYNC_DEVICE },
	{ "ThreadSynchronize", FT_REC_SYNC_DEVICE },
	{ "Malloc", FT_REC_ALLOCATION },
	{ "Free", FT_REC_ALLOCATION },
	{ "MemAlloc", FT_REC_ALLOCATION },
	{ "MemFree", FT_REC_ALLOCATION },
	{ "MemCreate", FT_REC_ALLOCATION },
	{ "MemMap", FT_REC_ALLOCATION },
	{ "MemUnmap", FT_REC_ALLOCATION },
	{ "MemRelease", FT_REC_ALLOCATION },
};

enum ft_rec_call_kind call_kind(const char *name, size_t len)
{
	static const char *const owners[] = { "cuda", "cu", "hip" };
	size_t skip = 0;

	if (memmem(name, len, "aunch", 5)) /* cudaLaunchKernel, cuGraphLaunch ... */
		return FT_REC_LAUNCH;
	for (size_t i = 0; !skip && i < sizeof(owners) / sizeof(*owners); i++) {
		size_t n = strlen(owners[i]);

		if (len > n && !memcmp(name, owners[i], n) && name[n] >= 'A' &&
		    name[n] <= 'Z')
			skip = n;
	}
	if (!skip)
		return FT_REC_CALL_KINDS;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		size_t n = strlen(calls[i].name);

		if (len - skip >= n && !memcmp(name + skip, calls[i].name, n))
			return calls[i].kind;
	}
	return FT_REC_CALL_KINDS;
}

/* ---- classes -------------------------------------------------------------------------- */

static const char *const class_names[FT_REC_CLASSES] = {
	"gemm", "attention", "memory", "optimizer", "collective", "copy", "other"
};

const char *ft_rec_class_name(enum ft_rec_class c)
{
	return class_names[c];
}

bool ft_rec_class_find(const char *name, enum ft_rec_class *c)
{
	size_t i = text_place(name, class_names, FT_REC_CLASSES);

	if (i == FT_REC_CLASSES)
		return false;
	*c = (enum ft_rec_class)i;
	return true;
}
