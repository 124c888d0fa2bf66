/* sim/passes.c - passes followed from stage to stage by what they send */
#include "sim/passes.h"

#include <string.h>

#include "base/arena.h"

enum { FORWARD, BACKWARD };

struct pass {
	size_t begin, end; /* calls */
	int64_t layers;
	int64_t number;	  /* of its micro-batch, if it begins one, */
	int64_t received; /* else of what it receives; -1: it begins one */
};

struct line { /* a class's passes in one direction */
	struct pass *pass;
	size_t *sender; /* of each send, in order */
	size_t n, n_sends;
	bool lost; /* a micro-batch begins and no pass follows: two run side by side */
};

static const char *const names[] = { "forward", "backward" };
static const char *const begins[] = { "embed.", "head_back." };

static bool starts(const struct ft_segment *s, const char *with)
{
	return !strncmp(s->name, with, strlen(with));
}

static bool is_pass(const struct ft_segment *s, int way)
{
	return starts(s, way == FORWARD ? "forward." : "backward.");
}

static size_t sends(const struct ft_segment *s, int way)
{
	int stream = way == FORWARD ? FT_STREAM_SEND_FORWARD : FT_STREAM_SEND_BACKWARD;
	size_t n = 0;

	for (size_t i = 0; i < s->n_ops; i++)
		n += s->op[i].stream == stream;
	return n;
}

static size_t all_sends(const struct ft_graph *g, const struct ft_class *c, int way)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_calls; i++)
		n += c->call[i].repeat * sends(&g->segment[c->call[i].segment], way);
	return n;
}

static struct line line_of(const struct ft_graph *g, const struct ft_class *c, int way,
			   struct arena *mem)
{
	struct line l = { .pass = ARENA_ARRAY(mem, c->n_calls + 1, struct pass) };
	int64_t begun = 0, received = 0;
	bool fresh = false, open = false;

	l.sender = ARENA_ARRAY(mem, all_sends(g, c, way) + 1, size_t);
	for (size_t i = 0; i < c->n_calls; i++) {
		const struct ft_segment *s = &g->segment[c->call[i].segment];

		if (!is_pass(s, way)) {
			open = false;
			if (starts(s, begins[way])) {
				l.lost |= fresh;
				fresh = true;
			}
		} else if (!open) {
			l.pass[l.n++] = (struct pass){
				.begin = i,
				.number = fresh ? begun++ : 0,
				.received = fresh ? -1 : received++,
			};
			open = true;
			fresh = false;
		}
		if (open) {
			l.pass[l.n - 1].end = i + 1;
			l.pass[l.n - 1].layers += c->call[i].repeat;
		}
		for (size_t k = c->call[i].repeat * sends(s, way); k && l.n; k--)
			l.sender[l.n_sends++] = l.n - 1;
	}
	return l;
}

/* Back to where the micro-batch began: its number, and the layers on the way; -1: the
 * graph's sends do not lead there, or layers of two run in one segment. */
static int64_t follow(const struct line *line, size_t classes, int way, size_t class,
		      size_t pass, int64_t *before)
{
	size_t most = 0;

	*before = 0;
	for (size_t c = 0; c < classes; c++) {
		if (line[c].lost)
			return -1;
		most += line[c].n;
	}
	for (const struct pass *p = &line[class].pass[pass]; most--;
	     p = &line[class].pass[pass], *before += p->layers) {
		if (p->received < 0)
			return p->number;
		class = (way == FORWARD ? class + classes - 1 : class + 1) % classes;
		if ((size_t)p->received >= line[class].n_sends)
			return -1;
		pass = line[class].sender[p->received];
	}
	return -1;
}

static void put(const struct ft_class *c, const struct pass *p, int way,
		int64_t micro_batch, int64_t layer, struct pass_call *to)
{
	for (size_t i = p->begin; i < p->end; i++) {
		to[i] = (struct pass_call){ names[way], micro_batch, layer };
		layer += way == FORWARD ? c->call[i].repeat :
					  -(int64_t)c->call[i].repeat;
	}
}

/* layers: of the model; the forward passes tell how many there are. */
static void put_all(const struct ft_graph *g, int way, int64_t *layers,
		    struct pass_call **to, struct arena *mem)
{
	struct line *line = ARENA_ARRAY(mem, g->n_classes, struct line);

	for (size_t c = 0; c < g->n_classes; c++)
		line[c] = line_of(g, &g->rank_class[c], way, mem);
	for (size_t c = 0; c < g->n_classes; c++)
		for (size_t k = 0; k < line[c].n; k++) {
			const struct pass *p = &line[c].pass[k];
			int64_t before;
			int64_t number = follow(line, g->n_classes, way, c, k, &before);

			if (way == FORWARD && number >= 0 &&
			    before + p->layers > *layers)
				*layers = before + p->layers;
			put(&g->rank_class[c], p, way, number,
			    way == FORWARD ? before : *layers - 1 - before, to[c]);
		}
}

struct pass_call **passes_of(const struct ft_graph *g, struct arena *mem)
{
	struct pass_call **to = ARENA_ARRAY(mem, g->n_classes, struct pass_call *);
	int64_t layers = 0;

	for (size_t c = 0; c < g->n_classes; c++) {
		to[c] = ARENA_ARRAY(mem, g->rank_class[c].n_calls + 1,
				    struct pass_call);
		for (size_t i = 0; i < g->rank_class[c].n_calls; i++)
			to[c][i].micro_batch = -1;
	}
	put_all(g, FORWARD, &layers, to, mem);
	put_all(g, BACKWARD, &layers, to, mem);
	return to;
}
