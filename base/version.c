/* base/version.c - which program this is; made anew when any source changes */
#include "foretoken/base.h"

#ifndef FORETOKEN_BUILD
#define FORETOKEN_BUILD "unknown build"
#endif

const char *ft_version(void)
{
	return FORETOKEN_VERSION;
}

const char *ft_version_build(void)
{
	return FORETOKEN_VERSION " " FORETOKEN_BUILD;
}
