/*
 * calibrate/broom.h - a temporary folder that goes when the program does, whatever ends it
 *
 * A child makes the folder, waits until this program closes its end of a socket or is ended, and then removes
 * it: there is no moment at which the folder is there and nobody would remove it.
 */
#ifndef CALIBRATE_BROOM_H
#define CALIBRATE_BROOM_H

#include <stdbool.h>
#include <sys/types.h>

struct broom {
	pid_t child;
	int end;
};

/* Removes what is in the folder, and the folder; called in the child. */
typedef void broom_remove(const char *folder, void *of);

/* folder: a template of mkdtemp(), filled in. false: errno says why there is none. */
bool broom_take(struct broom *b, char *folder, broom_remove *remove, void *of)
	__attribute__((warn_unused_result));

/* The folder is gone when this returns. */
void broom_sweep(const struct broom *b);

#endif
