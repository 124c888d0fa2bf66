/* serve/api.c - the calls that answer for scenarios */
#include "serve/api.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/limits.h"
#include "base/plain.h"
#include "base/reader.h"
#include "base/text.h"
#include "foretoken/reports.h"

/* What of a clause behind the last "; " says what to do. */
static const char *hint_of(const char *text)
{
	const char *hint = NULL;

	for (const char *at = text; (at = strstr(at, "; ")); at += 2)
		hint = at + 2;
	return hint ? hint :
		      "GET /api/keys lists every key, GET /api/names every preset";
}

/* A file as the asker knows it: without the sign of a foreign text, without our folders. */
static const char *file_of(const struct ft_error *err)
{
	const char *slash = strrchr(err->file, '/');

	if (text_begins_with(err->file, FILE_FOREIGN))
		return err->file + strlen(FILE_FOREIGN);
	return slash ? slash + 1 : err->file;
}

void api_error(FILE *out, const struct ft_error *err)
{
	PLAIN_NUMBERS;
	json_t *j = json_pack("{s:{s:o,s:i,s:i,s:o,s:o}}", "error", "file",
			      json_of_text(file_of(err)), "line", err->line, "column",
			      err->column, "text", json_of_text(err->text), "hint",
			      json_of_text(hint_of(err->text)));

	json_dumpf(j, out, JSON_INDENT(1));
	putc('\n', out);
	json_decref(j);
}

/* A text that came with a request: it names no files. */
static struct node *read_foreign(struct arena *mem, const char *name, const char *text,
				 size_t n, struct ft_error *err)
{
	const char *file = arena_printf(mem, FILE_FOREIGN "%s", name);

	return node_read_text(mem, file, text, n, err);
}

/* A whole one comes under the plan that a command would have searched for it. */
static struct ft_scenario *scenario_of(struct ft_shelf *shelf, const struct node *root,
				       const char *name, bool whole,
				       struct ft_error *err)
{
	const struct ft_search search = { .top = 1,
					  .threads = 1,
					  .most = LIMIT_SERVE_PLAN_CANDIDATES };

	if (root->kind == NODE_MAP)
		return whole ? ft_scenario_to_run_from(shelf, root, name, &search,
						       err) :
			       ft_scenario_from(shelf, root, name, false, err);
	ft_fail(err, &root->mark,
		"a scenario is a map of model, cluster, training ...");
	return NULL;
}

/* What is written of one scenario. */
typedef bool write_one(const struct ft_scenario *s, FILE *out, struct ft_error *err);

static bool write_simulated(const struct ft_scenario *s, FILE *out,
			    struct ft_error *err)
{
	struct ft_outcome o;
	bool ok;

	if (!ft_study_simulate(s, NULL, NULL, &o, err))
		return false;
	ok = ft_study_run(s, &o, err);
	if (ok)
		ft_report_outcome_json(out, s, &o);
	ft_outcome_release(&o);
	return ok;
}

/* Of the cluster and its prices alone, whatever runs there. */
static bool write_bill(const struct ft_scenario *s, FILE *out, struct ft_error *err)
{
	struct ft_bom *bom = ft_bom_bought(s->cluster, s->prices, err);

	if (bom)
		ft_report_bom_json(out, s->cluster, bom);
	ft_bom_free(bom);
	return bom != NULL;
}

static bool write_timeline(const struct ft_scenario *s, FILE *out, struct ft_error *err)
{
	struct ft_outcome o;

	if (!ft_study_simulate(s, NULL, out, &o, err))
		return false;
	ft_outcome_release(&o);
	return true;
}

/* whole: false reads only the cluster and its prices. */
static bool answer_one(write_one *write, bool whole, const struct api_text *body,
		       FILE *out, struct ft_error *err)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	struct node *root = read_foreign(&mem, "scenario", body->text, body->n, err);
	struct ft_scenario *s =
		root ? scenario_of(shelf, root, "scenario", whole, err) : NULL;
	bool ok = s && (whole || ft_scenario_prices(s, err)) && write(s, out, err);

	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return ok;
}

static bool simulate(const struct api_text *body, FILE *out, struct ft_error *err)
{
	return answer_one(write_simulated, true, body, out, err);
}

static bool bill(const struct api_text *body, FILE *out, struct ft_error *err)
{
	return answer_one(write_bill, false, body, out, err);
}

static bool timeline(const struct api_text *body, FILE *out, struct ft_error *err)
{
	return answer_one(write_timeline, true, body, out, err);
}

/* The scenario as JSON, nothing filled in: what a form shows of it. */
static bool document(const struct api_text *body, FILE *out, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct node *root = read_foreign(&mem, "scenario", body->text, body->n, err);

	if (root)
		ft_report_document_json(out, root);
	arena_release(&mem);
	return root != NULL;
}

/* ---- compare --------------------------------------------------------------------- */

struct comparison {
	struct arena mem;
	struct ft_shelf *shelf;
	struct ft_compared how;
	size_t n;
	const struct ft_scenario *s[FT_SIDES_MOST];
	struct ft_outcome o[FT_SIDES_MOST];
	struct ft_verdict verdict;
};

/* {scenarios: [TEXT or MAP, ...], at: gpus, draws: 16384}; a text's lines count from its
 * own first one. */
static const struct node *read_comparison(struct comparison *c,
					  const struct api_text *body,
					  struct ft_error *err)
{
	struct node *root = read_foreign(&c->mem, "request", body->text, body->n, err);
	const char *basis[FT_BASES];
	const struct node *list;
	struct reader r;

	if (!root)
		return NULL;
	if (root->kind != NODE_MAP) {
		ft_fail(err, &root->mark, "should be {\"scenarios\": [FIRST, SECOND]}");
		return NULL;
	}
	for (int i = 0; i < FT_BASES; i++)
		basis[i] = ft_basis_name((enum ft_basis)i);
	r = reader_open(root, err);
	list = read_need(&r, "scenarios");
	c->how.basis =
		(enum ft_basis)read_choice(&r, "at", basis, FT_BASES, FT_EQUAL_GPUS);
	c->how.draws = (size_t)read_int(&r, "draws", 16, FT_DRAWS_MOST, FT_DRAWS);
	if (!r.failed &&
	    (list->kind != NODE_LIST || list->n < 2 || list->n > FT_SIDES_MOST))
		reader_fail(&r, "scenarios", "should be a list of 2 to %d scenarios",
			    (int)FT_SIDES_MOST);
	return reader_close(&r) ? list : NULL;
}

static bool load_sides(struct comparison *c, const struct node *list,
		       struct ft_error *err)
{
	for (c->n = 0; c->n < list->n; c->n++) {
		const struct node *item = list->item[c->n];
		const char name[] = { (char)('A' + c->n), '\0' };

		if (item->kind == NODE_SCALAR)
			item = read_foreign(&c->mem, name, item->text,
					    strlen(item->text), err);
		if (!item ||
		    !(c->s[c->n] = scenario_of(c->shelf, item, name, true, err)))
			return false;
	}
	return true;
}

static bool conclude(struct comparison *c, FILE *out, struct ft_error *err)
{
	const char **labels;

	if (!ft_study_compare(c->s, c->o, c->n, &c->how, &c->verdict, err))
		return false;
	labels = ft_study_labels(c->s, c->n);
	ft_report_compare_json(out,
			       &(struct ft_answers){ .scenario = c->s,
						     .outcome = c->o,
						     .label = labels,
						     .n = c->n,
						     .command = "POST /api/compare",
						     .verdict = &c->verdict,
						     .basis = c->how.basis });
	ft_labels_free(labels);
	for (size_t i = 0; i < c->n; i++)
		ft_outcome_release(&c->o[i]);
	return true;
}

static bool compare(const struct api_text *body, FILE *out, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct comparison *c = ARENA_NEW(&mem, struct comparison);
	const struct node *list;
	bool ok;

	c->shelf = ft_shelf_new();
	list = read_comparison(c, body, err);
	ok = list && load_sides(c, list, err) && conclude(c, out, err);
	for (size_t i = 0; i < c->n; i++)
		ft_scenario_free((struct ft_scenario *)c->s[i]);
	ft_shelf_free(c->shelf);
	arena_release(&c->mem);
	arena_release(&mem);
	return ok;
}

static const struct api_call calls[] = {
	{ "/api/simulate", true, NULL, simulate, NULL },
	{ "/api/compare", true, NULL, compare, NULL },
	{ "/api/bom", true, NULL, bill, NULL },
	{ "/api/timeline", true, "foretoken-timeline.json", timeline, NULL },
	{ "/api/document", true, NULL, document, NULL },
	{ "/api/plan", true, NULL, NULL, api_plan },
	{ "/api/names", false, NULL, api_names, NULL },
	{ "/api/keys", false, NULL, api_keys, NULL },
};

const struct api_call *api_find(const char *path)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (!strcmp(path, calls[i].path))
			return &calls[i];
	return NULL;
}

static bool answer_whole(const struct api_call *call, const struct api_text *body,
			 FILE *out, struct ft_error *err)
{
	char *text = NULL;
	size_t n = 0;
	FILE *whole = allocated(open_memstream(&text, &n));
	bool ok;

	ok = call->answer(body, whole, err);
	memory_close(whole, &text);
	if (ok)
		fwrite(text, 1, n, out);
	free(text);
	return ok;
}

bool api_answer(const struct api_call *call, const struct api_text *body,
		struct api_stream *to)
{
	struct ft_error err = { 0 };
	bool ok = call->stream ? call->stream(body, to, &err) :
				 answer_whole(call, body, to->out, &err);

	if (!ok)
		api_error(to->out, &err);
	return ok;
}

void api_event(struct api_stream *to, const char *name, const char *data)
{
	fprintf(to->out, "event: %s\n", name);
	while (*data) {
		size_t n = strcspn(data, "\n");

		fprintf(to->out, "data: %.*s\n", (int)n, data);
		data += n + (data[n] == '\n');
	}
	fputs("\n", to->out);
	fflush(to->out);
	if (to->told >= 0)
		(void)!write(to->told, "", 1); /* full: it was told already */
}
