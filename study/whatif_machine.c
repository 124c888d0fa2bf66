/* study/whatif_machine.c - the machine of a recording, and the one asked about */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/node.h"
#include "base/text.h"
#include "base/whole.h"
#include "study/whatif.h"

/* By a word of the name that the driver gives; the first that fits. Without a profile are
 * cards that are slower than those whose name theirs holds. */
static const struct {
	const char *word, *profile;
} devices[] = {
	{ "PCIe", NULL },
	{ "H200 NVL", NULL },
	{ "GH200 144G", NULL },
	{ "GH200", "gh200" }, /* ahead of what it contains */
	{ "GB300", "gb300" },
	{ "GB200", "gb200" },
	{ "B300", "b300" },
	{ "B200", "b200" },
	{ "H200", "h200" },
	{ "H800", "h800" },
	{ "H100 80GB HBM3", "h100-sxm" },
	{ "H100 SXM", "h100-sxm" },
	{ "A800", "a800" },
	{ "A100-SXM4-80GB", "a100-80g" },
	{ "A100-SXM4-40GB", "a100-40g" },
	{ "A100 SXM4 80 GB", "a100-80g" },
	{ "A100 SXM4 40 GB", "a100-40g" },
	{ "H100 96 GB", "h100-96g-500w" },
	{ "MI355X", "mi355x" },
	{ "MI350X", "mi350x" },
	{ "MI325X", "mi325x" },
	{ "MI300X", "mi300x" },
	{ "MI250X", "mi250x" },
	{ "MI250", "mi250" },
	{ "MI210", "mi210" },
	{ "MI100", "mi100" },
};

const char *ft_study_gpu_named(const char *device)
{
	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++)
		if (strstr(device, devices[i].word))
			return devices[i].profile;
	return NULL;
}

void whatif_note(struct whatif *w, const char *fmt, ...)
{
	struct ft_whatif *a = w->answer;
	va_list args;

	if (a->n_notes == FT_WHATIF_NOTES)
		return;
	va_start(args, fmt);
	vsnprintf(a->note[a->n_notes++], sizeof(a->note[0]), fmt, args);
	va_end(args);
}

/* Cards for so many ranks: a card may hold two. */
struct wish {
	const char *gpu, *fabric;
	int64_t ranks;
	bool with_sets;
};

/* A scenario of a cluster alone, what is set laid over it. */
static struct node *document(struct whatif *w, const struct wish *wish, int64_t gpus)
{
	const struct ft_mark at = { wish->with_sets ? "the replayed machine" :
						      "the recording's machine",
				    0, 0 };
	struct node *root = node_map(&w->mem, &at), *cluster = node_map(&w->mem, &at);
	char *count = arena_printf(&w->mem, "%lld", (long long)gpus);

	node_put(&w->mem, cluster, "gpu", &at, node_scalar(&w->mem, &at, wish->gpu));
	node_put(&w->mem, cluster, "gpus", &at, node_scalar(&w->mem, &at, count));
	if (wish->fabric)
		node_put(&w->mem, cluster, "fabric", &at,
			 node_scalar(&w->mem, &at, wish->fabric));
	node_put(&w->mem, root, "cluster", &at, cluster);
	return root;
}

static bool in_dollars(const struct whatif *w, const char *option, const char *set,
		       struct ft_error *err)
{
	return w->asked->tokens_per_step > 0 ||
	       ft_fail(err, NULL,
		       "%s%s changes dollars, and there are none: add --tokens-per-step",
		       option, set);
}

/* The recording has its own model, plan and software; its machine and prices can be others. */
static bool may_set(const struct whatif *w, const char *set, bool is_price,
		    struct ft_error *err)
{
	static const char *const may[] = { "cluster.", "cluster=", "cost.",
					   "cost=",    "ccl.",	   "ccl=" };
	bool money = is_price || text_begins_with(set, "cost");
	bool ok = is_price;

	for (size_t i = 0; i < sizeof(may) / sizeof(*may); i++)
		ok |= text_begins_with(set, may[i]);
	if (!ok)
		return ft_fail(
			err, NULL,
			"--set %s: of a recording only cluster, ccl and cost can be "
			"set; what ran is recorded",
			set);
	return !money || in_dollars(w, is_price ? "" : "--set ", set, err);
}

static bool says(const struct node *root, const char *map, const char *key)
{
	const struct node *m = node_path(root, map);

	return node_path(m, key) || node_get(m, key); /* a name with dots, too */
}

/* Keys of which a replay has nothing, or knows too little, and why. */
static bool has_a_use(const struct node *root, const char *set, struct ft_error *err)
{
	static const char *const useless[][3] = {
		{ "cost", "against",
		  "changes nothing in a replay; use simulate --finance" },
		{ "cost", "start",
		  "changes nothing in a replay; use simulate --flows" },
		{ "cost.goodput", "storage_bandwidth",
		  "needs the bytes of a checkpoint, which no recording tells: give "
		  "cost.goodput.checkpoint, its time" },
	};

	for (size_t i = 0; i < sizeof(useless) / sizeof(*useless); i++)
		if (says(root, useless[i][0], useless[i][1]))
			return ft_fail(err, NULL, "--set %s: %s %s", set, useless[i][1],
				       useless[i][2]);
	return true;
}

/* What GPUs draw while they wait, and what stands around them, changes the bill; what makes them
 * slower is recorded. */
static bool may_change(const struct whatif *w, const struct node *root, const char *set,
		       struct ft_error *err)
{
	static const char *const recorded[][2] = {
		{ "cluster.imperfections", "slow_gpus" },
		{ "cluster.imperfections", "gpu_speed_spread_frac" },
		{ "cluster.node", "gpu_speed_spread" },
		{ "cluster.gpu", "power.limit" },
	};
	static const char *const paid[][2] = {
		{ "cluster.gpu", "power.idle" },
		{ "cluster", "site" },
		{ "cluster", "optics" },
		{ "cluster", "ufm_ports" },
	};

	for (size_t i = 0; i < sizeof(recorded) / sizeof(*recorded); i++)
		if (says(root, recorded[i][0], recorded[i][1]))
			return ft_fail(err, NULL,
				       "--set %s: %s cannot be set here: how fast the "
				       "GPUs ran is in the recording",
				       set, recorded[i][1]);
	for (size_t i = 0; i < sizeof(paid) / sizeof(*paid); i++)
		if (says(root, paid[i][0], paid[i][1]) &&
		    !in_dollars(w, "--set ", set, err))
			return false;
	return has_a_use(root, set, err);
}

/* What an option says, a setting would replace. */
static bool said_once(const struct whatif *w, const char *set, struct ft_error *err)
{
	const struct {
		const char *key, *option, *value;
	} of[] = { { "cluster.gpu", "--gpu", w->asked->gpu },
		   { "cluster.fabric", "--fabric", w->asked->fabric } };
	size_t n = strcspn(set, "=");

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		if (of[i].value && !strncmp(set, of[i].key, n) &&
		    (!of[i].key[n] || of[i].key[n] == '.'))
			return ft_fail(
				err, NULL,
				"--set %s replaces what %s %s says: leave one of "
				"them out",
				set, of[i].option, of[i].value);
	return true;
}

static bool set_all(struct whatif *w, struct node *root, struct ft_error *err)
{
	static const char price[] = "--price ";

	for (size_t i = 0; i < w->asked->n_sets; i++) {
		const char *set = w->asked->sets[i];
		bool is_price = text_begins_with(set, price);

		if (!may_set(w, set, is_price, err) || !said_once(w, set, err))
			return false;
		if (!(is_price ? node_set_below(&w->mem, root, "cost.price_of.", price,
						set + strlen(price), err) :
				 node_set(&w->mem, root, set, err)) ||
		    !may_change(w, root, set, err))
			return false;
	}
	return true;
}

static bool load(struct whatif *w, struct machine *m, struct wish wish,
		 struct ft_error *err)
{
	struct node *root = document(w, &wish, 1);
	const struct node *gpu;
	int64_t per = 1;

	if (wish.with_sets && !set_all(w, root, err))
		return false;
	gpu = node_path(root, "cluster.gpu");
	if (!gpu || node_is_null(gpu))
		return ft_fail(err, NULL,
			       "--set leaves the cluster without a GPU: set "
			       "cluster.gpu, or keys of the cluster one by one");
	m->gpu = ft_gpu_load_value(gpu, FT_GPU_ALL_ROWS, err);
	if (!m->gpu)
		return false;
	per = m->gpu->ranks_per_gpu;
	root = document(w, &wish, ceil_div(wish.ranks, per));
	if (wish.with_sets && !set_all(w, root, err))
		return false;
	m->scenario = ft_scenario_from(w->shelf, root, "the recording", false, err);
	if (!m->scenario)
		return false;
	m->ccl = ft_scenario_ccl(m->scenario, err);
	return m->ccl != NULL;
}

/* By its files and what else is said of it: a profile that is changed may keep its name. */
static bool same_gpu(const struct whatif *w)
{
	const struct ft_gpu *a = w->from.gpu, *b = w->to.gpu;
	const struct node *said = node_path(w->to.scenario->given, "cluster.gpu");

	return !strcmp(a->name, b->name) && a->digest.low == b->digest.low &&
	       a->digest.high == b->digest.high && (!said || said->n < 2);
}

/* A host of another node calls at that node's pace. */
static void set_hosts(struct whatif *w)
{
	double was = w->from.scenario->cluster->node->host_factor.value;
	double is = w->to.scenario->cluster->node->host_factor.value;

	if (was > 0 && is > 0 && (is < was || is > was)) {
		w->changed.host_factor = is / was;
		whatif_note(w,
			    "The host's calls and pauses take %.2f times as long: "
			    "host_factor of the nodes.",
			    is / was);
	} else if (!same_gpu(w)) {
		whatif_note(w, "The hosts are taken to be alike: calls and pauses keep "
			       "their time.");
	}
}

static const char *source_of(struct whatif *w, struct ft_error *err)
{
	const struct ft_recording *r = ft_replay_recording(w->asked->replay, 0);
	const struct ft_mark at = { .file = ft_recording_file(r) };
	const char *gpu = w->asked->from;

	if (gpu)
		return gpu;
	gpu = ft_study_gpu_named(ft_recording_device(r));
	if (!gpu && !*ft_recording_device(r))
		ft_fail(err, &at, "does not tell its device: name its GPU with --from");
	else if (!gpu)
		ft_fail(err, &at,
			"there is no profile for its device '%.60s': name the nearest "
			"with --from GPU",
			ft_recording_device(r));
	return gpu;
}

/* --from against what the file says: a profile of the user's own may be meant, or a mistake. */
static void say_if_other(struct whatif *w)
{
	const char *device =
		ft_recording_device(ft_replay_recording(w->asked->replay, 0));
	const char *told = ft_study_gpu_named(device);

	if (w->asked->from && told && strcmp(w->from.gpu->name, told))
		whatif_note(
			w,
			"The recording says that it is of %.60s, and is taken for one "
			"of %.60s, as --from has it.",
			device, w->from.gpu->name);
}

bool machines_load(struct whatif *w, struct ft_error *err)
{
	const struct ft_whatif_request *q = w->asked;
	struct ft_whatif *a = w->answer;
	const char *from = source_of(w, err);
	struct wish recorded = { .gpu = from, .ranks = a->ranks_recorded };
	struct wish asked = { .gpu = q->gpu ? q->gpu : from,
			      .fabric = q->fabric,
			      .ranks = a->ranks,
			      .with_sets = true };
	const struct ft_cluster *c;
	bool inside; /* one scale-up domain */

	if (!from || !load(w, &w->from, recorded, err) || !load(w, &w->to, asked, err))
		return false;
	snprintf(a->from, sizeof(a->from), "%s", w->from.gpu->name);
	snprintf(a->gpu, sizeof(a->gpu), "%s", w->to.gpu->name);
	say_if_other(w);
	c = w->to.scenario->cluster;
	inside = !c->topology.tiers || c->gpus <= c->node->scale_up_gpus;
	snprintf(a->fabric, sizeof(a->fabric), "%s",
		 inside ? c->node->scale_up : c->fabric->name);
	if (inside && c->fabric->wiring != FT_WIRING_NONE &&
	    !node_is_null(node_path(w->to.scenario->given, "cluster.fabric")))
		whatif_note(w,
			    "%s joins all %lld ranks: the fabric %s carries nothing.",
			    a->fabric, (long long)a->ranks, c->fabric->name);
	a->gpus = c->gpus;
	if (c->ranks / w->to.gpu->ranks_per_gpu !=
	    ceil_div(a->ranks, w->to.gpu->ranks_per_gpu))
		return ft_fail(
			err, &c->gpus_mark,
			"the step has %lld rank%s, the cluster %lld: leave out cluster.gpus, or give --scale dp=N",
			(long long)a->ranks, a->ranks == 1 ? "" : "s",
			(long long)c->ranks);
	w->other_gpu = !same_gpu(w);
	if (w->other_gpu)
		w->retiming = ft_retiming_new(w->from.gpu, w->to.gpu);
	set_hosts(w);
	return true;
}

void machines_release(struct whatif *w)
{
	ft_retiming_free(w->retiming);
	ft_scenario_free(w->from.scenario);
	ft_scenario_free(w->to.scenario);
	ft_gpu_free(w->from.gpu);
	ft_gpu_free(w->to.gpu);
}

/* Of the time with a kernel that of kernels bound by memory, as durations are. */
static double memory_frac(const struct ft_rec_where *at)
{
	double memory_s = at->class_s[FT_REC_MEMORY] + at->class_s[FT_REC_OPTIMIZER];
	double all_s = memory_s + at->class_s[FT_REC_GEMM] +
		       at->class_s[FT_REC_ATTENTION] + at->class_s[FT_REC_OTHER];

	return all_s > 0 ? memory_s / all_s : 0;
}

bool machine_price(struct whatif *w, struct ft_error *err)
{
	struct ft_whatif *a = w->answer;
	const struct ft_rec_where *at = &a->replayed;
	struct ft_scenario *s = w->to.scenario;
	double busy = (at->compute_s + at->optimizer_s) / at->step_s;
	double tokens = w->asked->tokens_per_step *
			(a->dp_recorded ? (double)a->dp / (double)a->dp_recorded : 1);
	struct ft_throughput rate = {
		.tokens_per_s = tokens / a->step_s,
		.low = tokens / a->high_s,
		.high = tokens / a->low_s,
		.busy_frac = busy,
		.memory_frac = busy * memory_frac(at),
		.waiting_frac = (at->exposed_s + at->bubble_s) / at->step_s,
		.bubble_frac = at->bubble_s / at->step_s,
	};
	const struct ft_prices *prices = ft_scenario_prices(s, err);
	struct ft_bom *bom = prices ? ft_bom_build(s->cluster, prices, err) : NULL;
	const struct ft_purchase purchase = { s->cluster, prices, bom, &s->terms,
					      false };
	bool ok = bom && ft_cost_compute(&purchase, &rate, &a->cost, err);

	a->tokens_per_s = rate.tokens_per_s;
	a->priced = ok;
	if (ok && bom->idle[0])
		whatif_note(w, "%s", bom->idle);
	if (ok && bom->in_vain[0])
		whatif_note(w, "Given, but on no line of the bill: %s.", bom->in_vain);
	ft_bom_free(bom);
	return ok;
}
