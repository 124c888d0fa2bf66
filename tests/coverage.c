/*
 * tests/coverage.c - in the build that counts (COV=1): what a process ran is kept however it ends
 *
 * gcov writes its counts when main() returns. Linked with --wrap=_exit, workers of `serve`
 * and a program out of memory write theirs as well; and faults (tests/faults/shim.c) end
 * before the counts are written, so that none is lost to them.
 */
#include <dlfcn.h>

void __gcov_dump(void);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

/* Runs before gcov's own destructor, whose priority is 100. */
__attribute__((destructor(101))) static void end_faults(void)
{
	void (*end)(void);

	*(void **)&end = dlsym(RTLD_DEFAULT, "faults_end");
	if (end)
		end();
}

void __wrap__exit(int status)
{
	end_faults();
	__gcov_dump();
	__real__exit(status);
}
