/* recorded/input.c - the bytes of a file, unpacked while they are read */
#include "recorded/input.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "base/limits.h"

enum packing { PLAIN, GZIP, ZSTD };
enum { PACKED_BYTES = 1 << 17, MIB = 1 << 20 };

struct input {
	FILE *file;
	const char *path;
	enum packing packing;
	z_stream gzip;
	ZSTD_DStream *zstd;
	ZSTD_inBuffer left;	   /* of zstd */
	size_t frame;		   /* what zstd's frame still wants; 0: complete */
	bool ended;		   /* gzip's member is complete */
	uint64_t packed, unpacked; /* bytes so far */
	unsigned char buffer[PACKED_BYTES];
};

static bool fail(const struct input *in, struct ft_error *err, const char *why)
{
	return ft_fail(err, &(struct ft_mark){ .file = in->path }, "%s", why);
}

static bool fill(struct input *in, size_t *n, struct ft_error *err)
{
	*n = fread(in->buffer, 1, sizeof(in->buffer), in->file);
	in->packed += *n;
	if (!ferror(in->file))
		return true;
	fail(in, err, strerror(errno));
	err->of_system = true;
	return false;
}

static bool within_bounds(const struct input *in, struct ft_error *err)
{
	struct ft_mark at = { .file = in->path };

	if (in->unpacked / MIB >= LIMIT_TRACE_MIB)
		return ft_fail(err, &at, "unpacks to more than %d MiB",
			       (int)LIMIT_TRACE_MIB);
	if (in->packing == PLAIN || in->unpacked / MIB < LIMIT_TRACE_FREE_MIB ||
	    in->unpacked / LIMIT_TRACE_RATIO < in->packed)
		return true;
	return ft_fail(err, &at,
		       "unpacks to more than %d times its size: no profiler writes "
		       "such a trace",
		       (int)LIMIT_TRACE_RATIO);
}

static bool start_unpacking(struct input *in, struct ft_error *err)
{
	if (in->packing == GZIP && inflateInit2(&in->gzip, 15 + 16) != Z_OK)
		return fail(in, err, "zlib cannot start");
	if (in->packing == ZSTD) {
		in->zstd = ZSTD_createDStream();
		if (!in->zstd || ZSTD_isError(ZSTD_initDStream(in->zstd)))
			return fail(in, err, "libzstd cannot start");
	}
	return true;
}

struct input *input_of(struct arena *mem, FILE *from, const char *called,
		       struct ft_error *err)
{
	static const unsigned char zstd_magic[] = { 0x28, 0xb5, 0x2f, 0xfd };
	struct input *in = ARENA_NEW(mem, struct input);
	unsigned char first[4];
	size_t n;

	in->path = called;
	in->file = from;
	rewind(in->file);
	n = fread(first, 1, sizeof(first), in->file);
	if (n >= 2 && first[0] == 0x1f && first[1] == 0x8b)
		in->packing = GZIP;
	else if (n == 4 && !memcmp(first, zstd_magic, 4))
		in->packing = ZSTD;
	rewind(in->file);
	if (start_unpacking(in, err))
		return in;
	input_close(in);
	return NULL;
}

struct input *input_open(struct arena *mem, const char *path, struct ft_error *err)
{
	struct ft_mark at = { .file = path };
	struct stat st;
	FILE *file;

	if (stat(path, &st)) {
		ft_fail(err, &at, "%s", strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		ft_fail(err, &at,
			"is not a regular file; write the trace to a file first");
		return NULL;
	}
	file = fopen(path, "rbe");
	if (!file) {
		ft_fail(err, &at, "%s", strerror(errno));
		return NULL;
	}
	return input_of(mem, file, path, err);
}

static bool read_plain(struct input *in, void *to, size_t n, size_t *got,
		       struct ft_error *err)
{
	*got = fread(to, 1, n, in->file);
	if (!ferror(in->file))
		return true;
	fail(in, err, strerror(errno));
	err->of_system = true;
	return false;
}

/* A file may hold several members, one behind another. */
static bool read_gzip(struct input *in, void *to, size_t n, size_t *got,
		      struct ft_error *err)
{
	z_stream *z = &in->gzip;

	z->next_out = to;
	z->avail_out = (uInt)n;
	while (z->avail_out) {
		int status;

		if (!z->avail_in) {
			size_t more;

			if (!fill(in, &more, err))
				return false;
			z->next_in = in->buffer;
			z->avail_in = (uInt)more;
			if (!more && in->ended)
				break;
			if (!more)
				return fail(in, err,
					    "the gzip file ends in the middle");
		}
		if (in->ended) {
			inflateReset(z);
			in->ended = false;
		}
		status = inflate(z, Z_NO_FLUSH);
		in->ended = status == Z_STREAM_END;
		if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
			return fail(in, err, "the gzip file is damaged");
	}
	*got = n - z->avail_out;
	return true;
}

static bool read_zstd(struct input *in, void *to, size_t n, size_t *got,
		      struct ft_error *err)
{
	ZSTD_outBuffer out = { to, n, 0 };

	while (out.pos < out.size) {
		size_t before = out.pos;

		if (in->left.pos == in->left.size) {
			size_t more;

			if (!fill(in, &more, err))
				return false;
			in->left = (ZSTD_inBuffer){ in->buffer, more, 0 };
			if (!more && !in->frame)
				break;
		}
		in->frame = ZSTD_decompressStream(in->zstd, &out, &in->left);
		if (ZSTD_isError(in->frame))
			return fail(in, err, "the zstd file is damaged");
		if (!in->left.size && out.pos == before)
			return fail(in, err, "the zstd file ends in the middle");
	}
	*got = out.pos;
	return true;
}

bool input_read(struct input *in, void *to, size_t n, size_t *got, struct ft_error *err)
{
	bool ok;

	switch (in->packing) {
	case GZIP:
		ok = read_gzip(in, to, n, got, err);
		break;
	case ZSTD:
		ok = read_zstd(in, to, n, got, err);
		break;
	default:
		ok = read_plain(in, to, n, got, err);
	}
	if (!ok)
		return false;
	in->unpacked += *got;
	return within_bounds(in, err);
}

bool input_packed(const struct input *in)
{
	return in->packing != PLAIN;
}

void input_close(struct input *in)
{
	if (!in)
		return;
	if (in->packing == GZIP)
		inflateEnd(&in->gzip);
	ZSTD_freeDStream(in->zstd);
	if (in->file)
		fclose(in->file);
	in->file = NULL;
}
