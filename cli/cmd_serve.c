/* cli/cmd_serve.c - foretoken serve */

#include "cli/commands.h"
#include "foretoken/serve.h"

enum { PORT = 7480, LAST_PORT = 65535 };

static const struct argp_option options[] = {
	{ "port", 'p', "N", 0, "Port (7480); 0: any that is free", 0 },
	{ "listen", 'l', "ADDRESS", 0,
	  "IP address to listen on (127.0.0.1). Beyond loopback a token is made and wanted: "
	  "open the address that is printed. Nothing is encrypted",
	  0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ft_serve *a = state->input;
	int64_t port;

	switch (key) {
	case 'p':
		if (!whole_argument(arg, 0, LAST_PORT, &port))
			argp_error(state, "--port: a whole number from 0 to %d",
				   LAST_PORT);
		a->port = (int)port;
		return 0;
	case 'l':
		a->address = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state,
			   "'%s': serve takes no files; scenarios are written in "
			   "the page, or sent to its API",
			   arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options,
	parse,
	"",
	"Serve, on this machine only, a page on which you change and compare scenarios, and a "
	"JSON API. The address is printed; Ctrl-C ends the server."
	"\vExample: foretoken serve --port 7480\n"
	"then: curl --data-binary @examples/01-first-answer/h100.yaml "
	"http://127.0.0.1:7480/api/simulate",
	NULL,
	NULL,
	NULL,
};

int cmd_serve(int argc, char **argv)
{
	struct ft_serve a = { .address = "127.0.0.1", .port = PORT, .out = stdout };
	struct ft_error err;

	parse_arguments(&argp, argc, argv, &a);
	if (!ft_serve(&a, &err))
		return complain(&err);
	return finish_output();
}
