/* reports/emit.h - lines of a framework's arguments, for the frameworks' own files */
#ifndef REPORTS_EMIT_H
#define REPORTS_EMIT_H

#include "foretoken/reports.h"

struct sheet {
	FILE *out;
	enum ft_framework of;
	const struct ft_scenario *s;
	const struct ft_plan *p;
};

/* A name as the framework writes it: --a-b VALUE, a_b: VALUE, a_b = VALUE. A value of "" is a
 * flag. */
void emit(struct sheet *t, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void emit_int(struct sheet *t, const char *name, int64_t value);
/* What the framework has no name for. */
void emit_unknown(struct sheet *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Do all stages have as many layers? And: has the model experts? */
bool emit_even_stages(const struct ft_plan *p);
bool emit_routed(const struct sheet *t);

/* reports/emit_formats.c */
enum ft_context_parallel emit_context(
	const struct sheet *t); /* how keys and values travel */
void emit_megatron_precision(struct sheet *t);
void emit_megatron_narrow(struct sheet *t);
void emit_megatron_gradients(struct sheet *t);
void emit_megatron_context(struct sheet *t);
void emit_megatron_sequence(struct sheet *t);

/* reports/emit_state.c */
void emit_megatron_state(struct sheet *t);
void emit_megatron_offload(struct sheet *t);

/* reports/emit_titan.c */
void emit_titan(struct sheet *t);

#endif
