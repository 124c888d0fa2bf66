/*
 * serve/mhd.h - libmicrohttpd, loaded when a server begins
 *
 * With the TLS library behind it, it takes longer to load than some commands take to answer,
 * so that nothing is linked with it. `mhd->run` is MHD_run, and so on.
 */
#ifndef SERVE_MHD_H
#define SERVE_MHD_H

#include <microhttpd.h>

#include "foretoken/base.h"

#define MHD_LIBRARY "libmicrohttpd.so.12"

#define MHD_FUNCTIONS(f) \
	f(add_response_header); \
	f(create_response_from_buffer); \
	f(create_response_from_callback); \
	f(create_response_from_fd); \
	f(destroy_response); \
	f(get_connection_info); \
	f(get_daemon_info); \
	f(get_timeout); \
	f(lookup_connection_value); \
	f(queue_response); \
	f(resume_connection); \
	f(run); \
	f(start_daemon); \
	f(stop_daemon); \
	f(suspend_connection);

struct mhd {
#define MHD_MEMBER(name) __typeof__(MHD_##name) *name
	MHD_FUNCTIONS(MHD_MEMBER)
#undef MHD_MEMBER
};

/* It stays loaded. false: it is not installed, or another version of it. */
bool mhd_load(struct mhd *mhd, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
