/*
 * cli/pages.h - the manual pages of files, which the build embeds: what each says of a key
 *
 * A page is the one place that tells what a key of a stack, GPU, node, fabric, site, library
 * or price book means; `foretoken explain` reads it there. A key is a .TP entry; entries
 * between .RS and .RE are keys below the entry before, and a section that begins with its
 * own name in lower case has its keys below that.
 */
#ifndef CLI_PAGES_H
#define CLI_PAGES_H

#include <stdbool.h>
#include <stddef.h>

extern const char page_foretoken_stack_5[], page_foretoken_gpu_5[],
	page_foretoken_node_5[], page_foretoken_fabric_5[], page_foretoken_site_5[],
	page_foretoken_ccl_5[], page_foretoken_prices_5[];

struct arena;

struct page_key {
	const char *of;	   /* "a stack" */
	const char *page;  /* "foretoken-stack" */
	const char *path;  /* "layout.fusion" */
	const char *usual; /* its default; NULL: the page says none */
	const char *about; /* in plain words, one line */
	const char *bold;  /* what is bold in it, between spaces: parts of its value */
};

/* All keys of all pages, in their order. */
struct page_key *pages_keys(struct arena *mem, size_t *n);

/* Is this key meant by the word: its path, the end of it, or that behind the kind of its file,
 * "stack.layout.fusion"? */
bool page_key_meant(const struct page_key *key, const char *word);

/* Do its words name it, as a part of its value? */
bool page_key_names(const struct page_key *key, const char *word);

#endif
