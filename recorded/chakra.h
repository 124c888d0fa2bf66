/*
 * recorded/chakra.h - execution traces of MLCommons' Chakra: a file a rank
 *
 * Each call and each operation is a node with what it depends on, so that simulators of
 * others can run it; attributes of ours ("foretoken." and a name) keep what a node of
 * theirs does not hold, so that what is written is read back as it was.
 */
#ifndef RECORDED_CHAKRA_H
#define RECORDED_CHAKRA_H

#include "recorded/recording.h"

/* Values of Node.type. */
enum { CHAKRA_COMPUTE = 4, CHAKRA_SEND = 5, CHAKRA_RECEIVE = 6, CHAKRA_COLLECTIVE = 7 };

/* An attribute of the metadata for each annotation: "START DURATION PROCESS THREAD NAME",
 * times in picoseconds. */
#define CHAKRA_ANNOTATION "foretoken.annotation"

/* Of the attribute comm_type, by enum ft_collective; -1: none. */
int chakra_comm_type(enum ft_collective op);

bool chakra_read(struct ft_recording *r, const char *path, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
