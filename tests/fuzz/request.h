/* tests/fuzz/request.h - bytes as a request to serve: its head, and a call of the API */
#ifndef TESTS_FUZZ_REQUEST_H
#define TESTS_FUZZ_REQUEST_H

#include "tests/fuzz/targets.h"

/* only: the one path that is called; NULL: all are. */
enum verdict request_run(const uint8_t *data, size_t n, const char *only);

#endif
