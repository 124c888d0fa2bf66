/* tests/few.h - TESTS_FEW: fewer cases, where each is slow: under sanitizers, and where coverage is counted */
#ifndef TESTS_FEW_H
#define TESTS_FEW_H

/* The Makefile's COV=1 and scripts/mutants.py define it for all that they build. */
#if defined(__SANITIZE_ADDRESS__) && !defined(TESTS_FEW)
#define TESTS_FEW
#endif

#endif
