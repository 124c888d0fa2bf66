/* traces/routed.h - how many copies of tokens a rank routes, sends and computes in one routed MLP */
#ifndef TRACES_ROUTED_H
#define TRACES_ROUTED_H

#include "traces/block.h"

struct routed {
	int64_t tokens, copies;	 /* this rank routes; copies it computes: */
	int64_t rows;		 /* of its arrays: */
	int64_t gathered;	 /* of so many ranks' (etp) */
	int64_t h, width, local; /* h: of what experts read and write */
	double bytes;		 /* of one exchange, this rank's buffer */
	struct ft_fanout fanout;
	bool gated, direct; /* direct: by a kernel that sends a token once */
};

struct routed routed_of(const struct builder *b, const struct ft_layer *l);

#endif
