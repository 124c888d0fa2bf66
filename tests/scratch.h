/* tests/scratch.h - a folder and a store's path for one test, gone behind it */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include "tests/check.h"

#include <math.h>

#include <gsl/gsl_errno.h>
#include <sqlite3.h>

#include "calibrate/fit.h"
#include "calibrate/store.h"
#include "foretoken/calibrate.h"

struct scratch {
	char folder[64], path[96];
};

static inline int make_scratch(void **state)
{
	struct scratch *s = calloc(1, sizeof(*s));

	strcpy(s->folder, "/tmp/foretoken-store-XXXXXX");
	assert_non_null(mkdtemp(s->folder));
	snprintf(s->path, sizeof(s->path), "%s/x.db", s->folder);
	*state = s;
	return 0;
}

static inline int drop_scratch(void **state)
{
	struct scratch *s = *state;
	char command[160];

	snprintf(command, sizeof(command), "rm -rf %s", s->folder);
	assert_int_equal(system(command), 0);
	free(s);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, drop_scratch)

#endif
