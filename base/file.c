/* base/file.c - reading whole, writing beside and renaming, finding our data */
#include "base/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/text.h"

bool file_fail(struct ft_error *err, const struct ft_mark *at, const char *what,
	       int why)
{
	if (why == ENOMEM)
		out_of_memory();
	ft_fail(err, at, "%s%s", what, strerror(why));
	err->of_system = why != ENOENT && why != ENOTDIR && why != EISDIR &&
			 why != EACCES && why != ENAMETOOLONG;
	err->missing = !err->of_system;
	return false;
}

static bool fail_path(struct ft_error *err, const char *path, const char *what)
{
	struct ft_mark at = { .file = path };

	return ft_fail(err, &at, "%s", what);
}

/* A file that is read: how large it seems to be, and may be. */
struct asked {
	const char *path;
	size_t cap, limit;
};

/* What is left to read, up to n bytes of it; -1: an error, with errno. */
static ssize_t read_most(int fd, char *to, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t k = read(fd, to + done, n - done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -1;
		if (!k)
			break;
		done += (size_t)k;
	}
	return (ssize_t)done;
}

/* All of the file, ended with a NUL; NULL on error, which is told. */
static char *read_all(struct arena *mem, int fd, struct asked a, size_t *len,
		      struct ft_error *err)
{
	struct ft_mark at = { .file = a.path };
	char *text = arena_bytes(mem, a.cap), *more;
	size_t n = 0;

	for (;;) {
		ssize_t k = read_most(fd, text + n, a.cap - n);

		if (k < 0) {
			file_fail(err, &at, "cannot be read: ", errno);
			return NULL;
		}
		n += (size_t)k;
		if (n > a.limit) {
			ft_fail(err, &at,
				"is too large: more than "
				"%zu bytes",
				a.limit);
			return NULL;
		}
		if (n < a.cap) {
			text[n] = '\0';
			*len = n;
			return text;
		}
		a.cap = 2 * a.cap > a.limit + 2 ? a.limit + 2 : 2 * a.cap;
		more = arena_bytes(mem, a.cap);
		memcpy(more, text, n);
		text = more;
	}
}

char *file_read(struct arena *mem, const char *path, size_t limit, size_t *len,
		struct ft_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct asked a = { path, 4096, limit };
	struct stat st;
	char *text;

	if (fd < 0) {
		struct ft_mark at = { .file = *path ? path : "''" };

		file_fail(err, &at, "", errno);
		return NULL;
	}
	if (fstat(fd, &st))
		st.st_mode = S_IFIFO;
	if (S_ISDIR(st.st_mode)) {
		fail_path(err, path, "is a folder, not a file");
		close(fd);
		return NULL;
	}
	if (!S_ISREG(st.st_mode) && limit > LIMIT_STREAM_BYTES)
		a.limit = LIMIT_STREAM_BYTES;
	else if (st.st_size > 0 && (uintmax_t)st.st_size <= limit)
		a.cap = (size_t)st.st_size + 2;
	text = read_all(mem, fd, a, len, err);
	close(fd);
	if (text)
		digest_bytes(&mem->read, text, *len);
	return text;
}

/* ---- writing ------------------------------------------------------------------- */

/* path + ".part" and random letters, so that nobody can lay a link there. */
static bool name_beside(struct file_out *f)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	unsigned char random[12];
	size_t n = strlen(f->path);

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	memcpy(f->beside, f->path, n);
	memcpy(f->beside + n, ".part", 5);
	for (size_t i = 0; i < sizeof(random); i++)
		f->beside[n + 5 + i] = letters[random[i] % 36];
	f->beside[n + 5 + sizeof(random)] = '\0';
	return true;
}

static void folder_of(const char *path, char *folder, size_t n)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		snprintf(folder, n, ".");
	else
		snprintf(folder, n, "%.*s", slash == path ? 1 : (int)(slash - path),
			 path);
}

/* A file without a name until it is complete, so that a kill leaves nothing; where
 * the file system has no such thing, one beside. What is no regular file (a pipe, a
 * device) is written to as it is. What another program wrote can be read again. */
static int open_out(struct file_out *f)
{
	char folder[sizeof(f->path)];
	struct stat st;
	int fd;

	if (!name_beside(f))
		return -1;
	if (!stat(f->path, &st) && !S_ISREG(st.st_mode)) {
		f->direct = true;
		return open(f->path, O_WRONLY | O_CLOEXEC);
	}
	folder_of(f->path, folder, sizeof(folder));
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	f->nameless = fd >= 0;
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
		fd = open(f->beside, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC,
			  0666);
	return fd;
}

bool file_begin(struct file_out *f, const char *path, struct ft_error *err)
{
	struct ft_mark at = { .file = path };
	int fd;

	*f = (struct file_out){ 0 };
	if (strlen(path) >= sizeof(f->path))
		return fail_path(err, path, "is too long a path");
	memcpy(f->path, path, strlen(path) + 1);
	fd = open_out(f);
	f->out = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!f->out) {
		ft_fail(err, &at, "cannot be written: %s", strerror(errno));
		if (fd >= 0) {
			close(fd);
			if (!f->nameless && !f->direct)
				unlink(f->beside);
		}
		return false;
	}
	return true;
}

/* The new name must outlive a loss of power: it lies in the folder. */
static bool keep_folder(const char *path)
{
	char folder[sizeof(((struct file_out *)0)->path)];
	int fd, why = 0;

	folder_of(path, folder, sizeof(folder));
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES; /* a folder that may be written, not read */
	if (fsync(fd) && errno != EINVAL)
		why = errno;
	close(fd);
	errno = why;
	return !why;
}

/* Give a nameless file its name beside the final one. */
static bool give_name(struct file_out *f)
{
	char self[64];

	if (!f->nameless)
		return true;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fileno(f->out));
	if (linkat(AT_FDCWD, self, AT_FDCWD, f->beside, AT_SYMLINK_FOLLOW))
		return false;
	f->nameless = false;
	return true;
}

/* All that was written is with the kernel; of a file that gets its name later, on
 * the disk and under its name beside. False, with errno set. */
static bool is_written(struct file_out *f)
{
	if (ferror(f->out)) { /* why, one more byte of what is thrown away may say */
		clearerr(f->out);
		if (f->direct || (fputc('\n', f->out) != EOF && !fflush(f->out)))
			errno = EIO;
		return false;
	}
	if (fflush(f->out))
		return false;
	if (f->direct)
		return true;
	return (!fsync(fileno(f->out)) || errno == EINVAL) && give_name(f);
}

/* False, with errno set. */
static bool take_place(const struct file_out *f)
{
	return f->direct || (!rename(f->beside, f->path) && keep_folder(f->path));
}

bool file_commit(struct file_out *f, struct ft_error *err)
{
	struct ft_mark at = { .file = f->path };
	int why = is_written(f) ? 0 : errno;

	if (fclose(f->out) && !why)
		why = errno;
	f->out = NULL;
	if (!why && take_place(f))
		return true;
	ft_fail(err, &at, "cannot be written: %s", strerror(why ? why : errno));
	if (!f->nameless && !f->direct)
		unlink(f->beside);
	return false;
}

void file_abandon(struct file_out *f)
{
	if (!f->out)
		return;
	fclose(f->out);
	f->out = NULL;
	if (!f->nameless && !f->direct)
		unlink(f->beside);
}

/* ---- our data ------------------------------------------------------------------- */

char *file_temporary(struct arena *mem, const char *leaf)
{
	const char *folder = getenv("TMPDIR");

	return arena_printf(mem, "%s/%s", folder && *folder ? folder : "/tmp", leaf);
}

bool file_folder(const char *path, struct ft_error *err)
{
	struct ft_mark at = { .file = path };

	if (!mkdir(path, 0777) || errno == EEXIST)
		return true;
	return ft_fail(err, &at, "cannot be made: %s", strerror(errno));
}

const char *file_input(const char *path)
{
	return strcmp(path, "-") ? path : "/dev/stdin";
}

bool file_for_sqlite(const char *option, const char *path, struct ft_error *err)
{
	bool lost =
		!*path || !strcmp(path, ":memory:") || text_begins_with(path, "file:");

	return !lost || ft_fail(err, NULL, "%s needs the path of a file, not '%s'",
				option, path);
}

bool file_exists(const char *path)
{
	struct stat st;

	return !stat(path, &st);
}

const char *file_stem(struct arena *mem, const char *path)
{
	const char *slash = strrchr(path, '/'), *leaf = slash ? slash + 1 : path;
	const char *dot = strrchr(leaf, '.');

	for (const char *c = dot; dot && *++c;)
		if (!isalpha((unsigned char)*c))
			dot = NULL;
	return arena_text_n(mem, leaf, dot ? (size_t)(dot - leaf) : strlen(leaf));
}

char *file_beside(struct arena *mem, const char *path, const char *leaf)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return arena_text(mem, leaf);
	return arena_printf(mem, "%.*s/%s", (int)(slash - path), path, leaf);
}
