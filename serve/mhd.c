/* serve/mhd.c - libmicrohttpd, loaded when a server begins */
#include "foretoken/base.h"

#ifdef FORETOKEN_HTTP
#include "serve/mhd.h"

#include <dlfcn.h>

bool mhd_load(struct mhd *mhd, struct ft_error *err)
{
	void *library = dlopen(MHD_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	bool all = library != NULL;

#define FIND(name) all = all && (*(void **)&mhd->name = dlsym(library, "MHD_" #name))
	MHD_FUNCTIONS(FIND)
#undef FIND
	return all || ft_fail(err, NULL,
			      "cannot load libmicrohttpd, which serve needs: %.200s; "
			      "install libmicrohttpd12",
			      dlerror());
}
#endif
