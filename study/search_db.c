/* study/search_db.c - simulated plans kept in a sweep's table, and known from it */
#include <string.h>

#include "base/digest.h"
#include "base/node.h"
#include "study/crew.h"
#include "study/search.h"

static const double COMMIT_S = 1;

bool search_known(struct search_job *j, const struct ft_scenario *s,
		  struct ft_outcome *o)
{
	struct ft_error why;
	char key[33];
	int found;

	if (!j->db)
		return false;
	digest_hex(&s->digest, key);
	*o = (struct ft_outcome){ 0 };
	pthread_mutex_lock(&j->lock);
	found = sweep_db_get(j->db, key, o, &why);
	if (found < 0)
		search_fail(j, &why);
	j->n_known += found > 0;
	pthread_mutex_unlock(&j->lock);
	return found > 0;
}

/* "key=value ..." of all that the plan decides. */
static const char *settings(struct search_job *j, const char **value)
{
	const char *text = "";

	for (int i = 0; i < AXES; i++)
		if (value[i])
			text = arena_printf(&j->rows, "%s%s%s=%s", text,
					    *text ? " " : "", space_key((size_t)i),
					    value[i]);
	return text;
}

void search_store(struct search_job *j, const struct ft_scenario *s,
		  const struct ft_outcome *o)
{
	struct sweep_row *r;

	if (!j->db)
		return;
	pthread_mutex_lock(&j->lock);
	r = ARENA_NEW(&j->rows, struct sweep_row);
	digest_hex(&s->digest, r->key);
	r->label = arena_text(&j->rows, s->label);
	r->value = ARENA_ARRAY(&j->rows, AXES, const char *);
	for (int i = 0; i < AXES; i++) {
		const struct node *n = node_path(s->resolved, space_key((size_t)i));

		if (n)
			r->value[i] = n->kind == NODE_SCALAR ?
					      arena_text(&j->rows, n->text) :
					      node_flow(&j->rows, n);
	}
	r->settings = settings(j, r->value);
	r->outcome = *o;
	r->outcome.run = NULL;
	r->outcome.bom = NULL;
	r->next = j->waiting;
	j->waiting = r;
	pthread_mutex_unlock(&j->lock);
}

void search_commit(struct search_job *j, bool now)
{
	struct ft_error why;
	double at = crew_now_s();

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
