/*
 * cli/commands.h - one function per command, and what they share
 *
 * Each command parses its own arguments with argp (those that several take are in
 * cli/shared.c), calls, prints, and returns an exit status: 0 done, 1 failed, 64 wrong
 * usage (argp's own).
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/limits.h"
#include "base/progress.h"
#include "foretoken/base.h"

int cmd_simulate(int argc, char **argv);
int cmd_validate(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_bom(int argc, char **argv);
int cmd_prices(int argc, char **argv);
int cmd_collective(int argc, char **argv);
int cmd_kernel(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_sweep(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);
int cmd_runs(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_new(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_serve(int argc, char **argv);

/* A list of argument strings; they are argv's own. */
struct words {
	const char *word[LIMIT_OPTION_WORDS];
	size_t n;
};

/* Add one; too many ends the program with status 64. */
void words_add(struct words *w, const char *word, const struct argp_state *state);

/* What commands about scenarios share; `what`, `least` and `most` are given. Put one
 * of the argps below among a command's children, or take one of the lists of children,
 * and at ARGP_KEY_INIT put the struct into child_inputs, once for each child. A word that
 * is missing is named, with status 64. */
struct shared {
	const char *what; /* a word's name in messages: "SCENARIO" */
	size_t least, most;
	struct words word, set; /* --price is one of set: "--price ITEM=USD" */
	bool json, quiet;
	char text[8192]; /* of what --price and --tokens make */
	size_t n_text;
};

extern const struct argp shared_argp;	  /* words, --set, --json, --quiet */
extern const struct argp shared_set_argp; /* words, --set, --quiet */
extern const struct argp price_argp;	  /* --price, beside one of these */
/* shared_argp and --price; and with --tokens, --days ... as well */
extern const struct argp_child priced_children[], asked_children[];

/* "file:line:column: error: text", the line and a caret; returns 1. */
int complain(const struct ft_error *err);

struct ft_scenario;
/* On stderr: keys of its training that may stand and do nothing. */
void remark_idle_keys(const struct ft_scenario *s, const char *label);

/* The command line as one would type it; the caller frees it. */
char *command_line(int argc, char **argv);

/* Where a file of ours lies beside this program, or where `make install` puts it: path, of n
 * bytes; false: nowhere. */
bool beside_program(const char *leaf, char *path, size_t n);

/* Files that a command reads, beside the words and values of --set that name one, and files that it writes; NULL: none. */
struct own_files {
	const struct shared *shared;
	const char *in[3], *out[3];
};

/* Is no file to be written one that is read, or another to be written? To be asked before any is written. What is no file, as
 * the name of a GPU, or no regular one, as a pipe, is apart from all. */
bool files_apart(const struct own_files *f, struct ft_error *err)
	__attribute__((warn_unused_result));

/* stdout must have taken all of it: else an error and 1. */
int finish_output(void);

/* The same when the program ends otherwise (--help): exit 1 then. */
void check_output(void);

/* argp_parse; what it cannot do (out of memory) ends the program with status 1. */
void parse_arguments(const struct argp *argp, int argc, char **argv, void *input);

/* A whole number from `least` to `most`; false: it is none. */
bool whole_argument(const char *text, int64_t least, int64_t most, int64_t *out);

/* Of work that begins now, told on stderr: a bar, where that is a terminal. */
struct progress progress_begin(const char *what);
/* What progress_say is told; context: a struct progress. */
void progress_tell(void *context, size_t finished, size_t fresh, size_t total);
#endif
