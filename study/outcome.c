/* study/outcome.c - the numbers of an answer: one table for JSON, tables and sweeps */
#include <stddef.h>
#include <string.h>

#include "foretoken/study.h"

#define AT(field) offsetof(struct ft_outcome, field)

static const struct ft_outcome_field fields[] = {
	{ "step_s", "step", FT_SHOW_S, AT(step_s), AT(step_low_s), AT(step_high_s) },
	{ "tokens_per_s", "tokens/s", FT_SHOW_COUNT, AT(tokens_per_s),
	  AT(tokens_low_per_s), AT(tokens_high_per_s) },
	{ "tokens_per_s_per_gpu", "tokens/s per GPU", FT_SHOW_RATE,
	  AT(tokens_per_s_per_gpu), 0, 0 },
	{ "model_flop_per_s_per_gpu", "model FLOP/s per GPU", FT_SHOW_FLOP_PER_S,
	  AT(model_flop_per_s_per_gpu), 0, 0 },
	{ "mfu", "MFU", FT_SHOW_FRAC, AT(mfu), 0, 0 },
	{ "mfu_full", "MFU, attention counted whole", FT_SHOW_FRAC, AT(mfu_full), 0,
	  0 },
	{ "hfu", "HFU", FT_SHOW_FRAC, AT(hfu), 0, 0 },
	{ "memory_bytes_per_gpu.total", "memory per GPU", FT_SHOW_BYTES,
	  AT(memory_total_bytes), 0, 0 },
	{ "memory_bytes_per_gpu.weights", NULL, FT_SHOW_BYTES,
	  AT(memory_bytes[FT_MEMORY_WEIGHTS]), 0, 0 },
	{ "memory_bytes_per_gpu.gradients", NULL, FT_SHOW_BYTES,
	  AT(memory_bytes[FT_MEMORY_GRADIENTS]), 0, 0 },
	{ "memory_bytes_per_gpu.optimizer", NULL, FT_SHOW_BYTES,
	  AT(memory_bytes[FT_MEMORY_OPTIMIZER]), 0, 0 },
	{ "memory_bytes_per_gpu.activations", NULL, FT_SHOW_BYTES,
	  AT(memory_bytes[FT_MEMORY_ACTIVATIONS]), 0, 0 },
	{ "memory_bytes_per_gpu.other", NULL, FT_SHOW_BYTES,
	  AT(memory_bytes[FT_MEMORY_OTHER]), 0, 0 },
	{ "host_memory_bytes_per_node", "host memory per node", FT_SHOW_BYTES,
	  AT(host_memory_bytes), 0, 0 },
	{ "breakdown_s.compute", "compute", FT_SHOW_S, AT(breakdown.compute_s), 0, 0 },
	{ "breakdown_s.exposed_communication", "exposed communication", FT_SHOW_S,
	  AT(breakdown.exposed_communication_s), 0, 0 },
	{ "breakdown_s.bubble", "pipeline bubble", FT_SHOW_S, AT(breakdown.bubble_s), 0,
	  0 },
	{ "breakdown_s.host", "host", FT_SHOW_S, AT(breakdown.host_s), 0, 0 },
	{ "breakdown_s.optimizer", "optimizer", FT_SHOW_S, AT(breakdown.optimizer_s), 0,
	  0 },
	{ "extrapolated_frac", "extrapolated share of kernel time", FT_SHOW_FRAC,
	  AT(extrapolated_frac), 0, 0 },
	{ "cost.capex_usd", "capital", FT_SHOW_USD, AT(cost.capex_usd), 0, 0 },
	{ "cost.capex_network_usd", "  of which network", FT_SHOW_USD,
	  AT(cost.capex_network_usd), 0, 0 },
	{ "cost.quoted_frac", "  at quoted prices", FT_SHOW_FRAC,
	  AT(cost.by_kind_frac[FT_PRICE_QUOTED]), 0, 0 },
	{ "cost.derived_frac", "  at derived prices", FT_SHOW_FRAC,
	  AT(cost.by_kind_frac[FT_PRICE_DERIVED]), 0, 0 },
	{ "cost.guessed_frac", "  at guessed prices", FT_SHOW_FRAC,
	  AT(cost.by_kind_frac[FT_PRICE_GUESSED]), 0, 0 },
	{ "cost.given_frac", "  at given prices", FT_SHOW_FRAC,
	  AT(cost.by_kind_frac[FT_PRICE_GIVEN]), 0, 0 },
	{ "cost.usd_per_gpu_hour", "USD per GPU-hour", FT_SHOW_USD_PER_HOUR,
	  AT(cost.usd_per_gpu_hour), AT(cost.usd_per_gpu_hour_low),
	  AT(cost.usd_per_gpu_hour_high) },
	{ "cost.rent_usd_per_gpu_hour", NULL, FT_SHOW_USD_PER_HOUR,
	  AT(cost.rent_usd_per_gpu_hour), 0, 0 },
	{ "cost.capital_usd_per_gpu_hour", NULL, FT_SHOW_USD_PER_HOUR,
	  AT(cost.capital_usd_per_gpu_hour), 0, 0 },
	{ "cost.electricity_usd_per_gpu_hour", NULL, FT_SHOW_USD_PER_HOUR,
	  AT(cost.electricity_usd_per_gpu_hour), 0, 0 },
	{ "cost.colocation_usd_per_gpu_hour", NULL, FT_SHOW_USD_PER_HOUR,
	  AT(cost.colocation_usd_per_gpu_hour), 0, 0 },
	{ "cost.maintenance_usd_per_gpu_hour", NULL, FT_SHOW_USD_PER_HOUR,
	  AT(cost.maintenance_usd_per_gpu_hour), 0, 0 },
	{ "cost.staff_usd_per_gpu_hour", NULL, FT_SHOW_USD_PER_HOUR,
	  AT(cost.staff_usd_per_gpu_hour), 0, 0 },
	{ "cost.usd_per_million_tokens", "USD per million tokens",
	  FT_SHOW_USD_PER_MTOKEN, AT(cost.usd_per_million_tokens),
	  AT(cost.usd_per_million_tokens_low), AT(cost.usd_per_million_tokens_high) },
	{ "cost.tokens_per_usd", NULL, FT_SHOW_COUNT, AT(cost.tokens_per_usd), 0, 0 },
	{ "cost.joules_per_token", "energy per token", FT_SHOW_J,
	  AT(cost.joules_per_token), AT(cost.joules_per_token_low),
	  AT(cost.joules_per_token_high) },
	{ "cost.gpu_power_w", NULL, FT_SHOW_W, AT(cost.gpu_power_w), 0, 0 },
	{ "cost.facility_power_w", NULL, FT_SHOW_W, AT(cost.facility_power_w), 0, 0 },
	{ "cost.average_power_w", NULL, FT_SHOW_W, AT(cost.average_power_w),
	  AT(cost.average_power_w_low), AT(cost.average_power_w_high) },
	{ "cost.provisioned_w", NULL, FT_SHOW_W, AT(cost.provisioned_w), 0, 0 },
	{ "cost.facility_provisioned_w", "power at full load", FT_SHOW_W,
	  AT(cost.facility_provisioned_w), AT(cost.facility_provisioned_w_low),
	  AT(cost.facility_provisioned_w_high) },
	{ "cost.provisioned_joules_per_token", NULL, FT_SHOW_J,
	  AT(cost.provisioned_joules_per_token), 0, 0 },
	{ "cost.goodput", "goodput", FT_SHOW_FRAC, AT(cost.goodput), 0, 0 },
	{ "cost.checkpoint_frac", NULL, FT_SHOW_FRAC, AT(cost.time.checkpoint), 0, 0 },
	{ "cost.wasted_progress_frac", NULL, FT_SHOW_FRAC, AT(cost.time.wasted), 0, 0 },
	{ "cost.recovery_frac", NULL, FT_SHOW_FRAC, AT(cost.time.recovery), 0, 0 },
	{ "cost.repair_frac", NULL, FT_SHOW_FRAC, AT(cost.time.repair), 0, 0 },
	{ "cost.stalls_frac", NULL, FT_SHOW_FRAC, AT(cost.time.stalls), 0, 0 },
	{ "cost.stragglers_frac", NULL, FT_SHOW_FRAC, AT(cost.time.stragglers), 0, 0 },
	{ "cost.checkpoint_interval_s", NULL, FT_SHOW_S, AT(cost.time.interval_s), 0,
	  0 },
};

enum { FIELDS = sizeof(fields) / sizeof(*fields) };

size_t ft_outcome_fields(const struct ft_outcome_field **field)
{
	*field = fields;
	return FIELDS;
}

double ft_outcome_at(const struct ft_outcome *o, size_t offset)
{
	return *(const double *)(const void *)((const char *)o + offset);
}

bool ft_outcome_row(const struct ft_outcome_field *f, const struct ft_outcome *o,
		    size_t n)
{
	bool any = f->value != AT(cost.by_kind_frac[FT_PRICE_GIVEN]) &&
		   f->value != AT(host_memory_bytes);

	for (size_t i = 0; i < n; i++)
		any = any || ft_outcome_at(&o[i], f->value) > 0;
	return f->label && any;
}

bool ft_outcome_get(const struct ft_outcome *o, const char *key, double *value)
{
	for (size_t i = 0; i < FIELDS; i++)
		if (!strcmp(key, fields[i].key)) {
			*value = ft_outcome_at(o, fields[i].value);
			return true;
		}
	return false;
}
