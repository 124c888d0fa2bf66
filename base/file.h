/*
 * base/file.h - whole files in, whole files out, and where our data lies
 *
 * A file is written beside its final name and renamed when it is complete, so
 * that a reader never sees half of it and a failure leaves the old one.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "foretoken/base.h"

struct arena;

/* The whole file, with a NUL behind its *len bytes; NULL on error. Larger than
 * limit bytes is an error. */
char *file_read(struct arena *mem, const char *path, size_t limit, size_t *len,
		struct ft_error *err) __attribute__((warn_unused_result));

/* A file being written. Print to ->out, then file_commit or file_abandon. */
struct file_out {
	FILE *out;
	char path[4096], beside[4200];
	bool nameless; /* has no name yet: a kill leaves nothing */
	bool direct;   /* a pipe or a device: written as it is */
};

bool file_begin(struct file_out *f, const char *path, struct ft_error *err)
	__attribute__((warn_unused_result));
bool file_commit(struct file_out *f, struct ft_error *err)
	__attribute__((warn_unused_result));
void file_abandon(struct file_out *f);

/* Make the folder unless it is there. */
bool file_folder(const char *path, struct ft_error *err)
	__attribute__((warn_unused_result));

/* The world's failure, with errno; little memory ends the program. */
bool file_fail(struct ft_error *err, const struct ft_mark *at, const char *what,
	       int why);

/* An error where SQLite would take the path of this option for a database in memory, or for a URI that may
 * name one: what is written there is lost. */
bool file_for_sqlite(const char *option, const char *path, struct ft_error *err)
	__attribute__((warn_unused_result));

bool file_exists(const char *path);

/* What a path of an input means: "-" is standard input. */
const char *file_input(const char *path);

/* Is name a path (it holds a '/' or ends in .yaml, .yml or .json), not one of ours? */
bool file_is_path(const char *name);
/* May what stands there name a file? All may but what came from elsewhere: texts read under
 * a name of FILE_FOREIGN and whatever follows it name presets only. */
#define FILE_FOREIGN "<"
bool file_may_name(const struct ft_mark *at);
/* leaf in $TMPDIR, or in /tmp. */
char *file_temporary(struct arena *mem, const char *leaf);

/* Where folder/name.yaml of ours is: name itself when it is a path (it holds a
 * '/' or ends in .yaml, .yml or .json), else below $FORETOKEN_DATA, the tree
 * whose build/ holds the program, or the install prefix; never the current folder.
 * An unknown name is an error at *at that names the nearest known one. */
const char *file_find(struct arena *mem, const char *folder, const char *name,
		      const struct ft_mark *at, struct ft_error *err)
	__attribute__((warn_unused_result));

/* The names of all folder/NAME.yaml, sorted; *n of them. NULL on error. */
const char **file_list(struct arena *mem, const char *folder, size_t *n,
		       struct ft_error *err) __attribute__((warn_unused_result));

/* The file's own name without what says its format (behind the last dot, letters alone): versions
 * in a name stay. */
const char *file_stem(struct arena *mem, const char *path);
/* "DIR/leaf", DIR being the folder of path. */
char *file_beside(struct arena *mem, const char *path, const char *leaf);

#endif
