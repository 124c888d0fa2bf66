/* study/search_db.c - simulated plans kept in a sweep's table, and known from it */

#include "base/clock.h"
#include "base/digest.h"
#include "base/node.h"
#include "study/crew.h"
#include "study/search.h"

static const double COMMIT_S = 1;

bool search_knows(struct search_job *j, const char key[33], struct ft_outcome *o)
{
	struct ft_error why;
	int found;

	*o = (struct ft_outcome){ 0 };
	found = sweep_db_get(j->db, key, o, &why);
	if (found < 0)
		search_fail(j, &why);
	j->n_known += found > 0;
	return found > 0;
}

bool search_known(struct search_job *j, const struct ft_scenario *s,
		  struct ft_outcome *o)
{
	char key[33];
	bool known;

	if (!j->db)
		return false;
	digest_hex(&s->digest, key);
	pthread_mutex_lock(&j->lock);
	known = search_knows(j, key, o);
	pthread_mutex_unlock(&j->lock);
	return known;
}

/* "key=value ..." of all that the plan decides. */
static const char *settings(struct arena *mem, const char **value)
{
	const char *text = "";

	for (int i = 0; i < AXES; i++)
		if (value[i])
			text = arena_printf(mem, "%s%s%s=%s", text, *text ? " " : "",
					    space_key((size_t)i), value[i]);
	return text;
}

struct sweep_row search_row(const struct ft_scenario *s, const struct ft_outcome *o,
			    struct arena *mem)
{
	struct sweep_row r = { .label = arena_text(mem, s->label), .outcome = *o };

	digest_hex(&s->digest, r.key);
	r.value = ARENA_ARRAY(mem, AXES, const char *);
	for (int i = 0; i < AXES; i++) {
		const struct node *n = node_path(s->resolved, space_key((size_t)i));

		if (n)
			r.value[i] = n->kind == NODE_SCALAR ? arena_text(mem, n->text) :
							      node_flow(mem, n);
	}
	r.settings = settings(mem, r.value);
	r.outcome.run = NULL;
	r.outcome.bom = NULL;
	return r;
}

void search_keep_row(struct search_job *j, struct sweep_row row)
{
	struct sweep_row *r = ARENA_NEW(&j->rows, struct sweep_row);

	*r = row;
	r->next = j->waiting;
	j->waiting = r;
}

void search_store(struct search_job *j, const struct ft_scenario *s,
		  const struct ft_outcome *o)
{
	if (!j->db)
		return;
	pthread_mutex_lock(&j->lock);
	search_keep_row(j, search_row(s, o, &j->rows));
	pthread_mutex_unlock(&j->lock);
}

void search_commit(struct search_job *j, bool now)
{
	struct ft_error why;
	double at = clock_now_s();

	if (!j->db)
		return;
	if (!now && at - j->committed_s < COMMIT_S)
		return;
	j->committed_s = at;
	if (!j->broken && !sweep_db_write(j->db, j->waiting, &why))
		search_fail(j, &why);
	j->waiting = NULL;
	arena_release(&j->rows);
}
