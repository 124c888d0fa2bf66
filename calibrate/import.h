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

/* Is it the word for what joins the GPUs of a node, or empty? */
bool import_fabric(const char *fabric, const struct ft_mark *at, struct ft_error *err)
	__attribute__((warn_unused_result));

/* A file of text that somebody packed, by gzip or zstd, is told. */
bool import_is_plain(const char *path, const char *text, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Give an imported row the name of its shape, in id. */
void import_name(struct ft_measurement *m, char id[256]);

#endif
