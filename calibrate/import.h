/* calibrate/import.h - one reader a foreign format, and what they share */
#ifndef CALIBRATE_IMPORT_H
#define CALIBRATE_IMPORT_H

#include "base/csv.h"
#include "foretoken/calibrate.h"

bool import_csv(struct ft_store *s, const char *path, const struct ft_probe_run *run,
		size_t *n, struct ft_error *err);
bool import_nccl_tests(struct ft_store *s, const char *path,
		       const struct ft_probe_run *run, size_t *n, struct ft_error *err);
bool import_attention(struct ft_store *s, const char *path,
		      const struct ft_probe_run *run, size_t *n, struct ft_error *err);
bool import_kineto(struct ft_store *s, const char *path, const struct ft_probe_run *run,
		   size_t *n, struct ft_error *err);

/* Give an imported row the name of its shape, in id. */
void import_name(struct ft_measurement *m, char id[256]);

#endif
