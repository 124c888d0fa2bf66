/*
 * stacks/flags.h - the keys of a layout that are true or false
 */
#ifndef STACKS_FLAGS_H
#define STACKS_FLAGS_H

struct ft_layout_rules;
struct reader;

/* Each key of them, or what goes without saying. A mistake is the reader's. */
void flags_read(struct reader *r, struct ft_layout_rules *l);

#endif
