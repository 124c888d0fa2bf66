/* serve/worker.c - fork, bounds, and how a child ended */
#include "serve/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "foretoken/base.h"

/* How a child ends; out of memory is 1 (base/arena.h). */
enum { EXIT_MEMORY = 1, EXIT_DONE = 10, EXIT_REFUSED, EXIT_BROKEN };

/* AddressSanitizer takes terabytes of addresses, and is no release. */
#if defined(__SANITIZE_ADDRESS__)
enum { BOUND_MEMORY = false };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { BOUND_MEMORY = false };
#else
enum { BOUND_MEMORY = true };
#endif
#else
enum { BOUND_MEMORY = true };
#endif

static void bound(int what, rlim_t most)
{
	struct rlimit r = { most, most };

	setrlimit(what, &r);
}

/* Until a child is ended: a search ends by itself before that. */
static int seconds_of(const struct api_call *call)
{
	return LIMIT_SERVE_WORK_S + (call->stream ? LIMIT_SERVE_PLAN_S : 0);
}

static void bind_child(pid_t parent, const struct api_call *call)
{
	rlim_t threads = call->stream ? LIMIT_SERVE_PLAN_THREADS : 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it ended before that was set */
		_exit(EXIT_BROKEN);
	bound(RLIMIT_CORE, 0);
	bound(RLIMIT_CPU, threads * (rlim_t)seconds_of(call) + 1);
	bound(RLIMIT_FSIZE, (rlim_t)LIMIT_SERVE_ANSWER_MIB << 20);
	if (BOUND_MEMORY)
		bound(RLIMIT_AS, (rlim_t)LIMIT_SERVE_WORK_MIB << 20);
}

static _Noreturn void work(const struct api_call *call, const struct api_text *body,
			   int answer, int ended)
{
	enum { FIRST = 3 };
	struct api_stream to = { NULL, FIRST + 1, LIMIT_SERVE_PLAN_S };
	bool ok;

	/* no socket of the server's: a client would wait for its end */
	answer = fcntl(answer, F_DUPFD, 64);
	ended = fcntl(ended, F_DUPFD, 64);
	if (answer < 0 || ended < 0 || dup2(answer, FIRST) < 0 ||
	    dup2(ended, FIRST + 1) < 0)
		_exit(EXIT_BROKEN);
	close_range(FIRST + 2, ~0U, 0);
	to.out = fdopen(FIRST, "w");
	if (!to.out)
		_exit(EXIT_BROKEN);
	ok = api_answer(call, body, &to);
	if (fclose(to.out))
		_exit(EXIT_BROKEN);
	_exit(ok ? EXIT_DONE : EXIT_REFUSED);
}

bool worker_start(struct worker *w, const struct api_call *call,
		  const struct api_text *body, const sigset_t *unblock, double now_s,
		  struct ft_error *err)
{
	pid_t parent = getpid();
	int pipes[2];

	*w = (struct worker){ .until_s = now_s + seconds_of(call) };
	w->answer = memfd_create("answer", MFD_CLOEXEC);
	if (w->answer < 0)
		return ft_fail(err, NULL, "no more files: %s", strerror(errno));
	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK)) {
		close(w->answer);
		return ft_fail(err, NULL, "no more files: %s", strerror(errno));
	}
	w->ended = pipes[0];
	w->pid = fork();
	if (!w->pid) {
		signal(SIGPIPE, SIG_DFL);
		sigprocmask(SIG_UNBLOCK, unblock, NULL);
		bind_child(parent, call);
		work(call, body, w->answer, pipes[1]);
	}
	close(pipes[1]);
	if (w->pid > 0)
		return true;
	w->pid = 0;
	close(w->ended);
	close(w->answer);
	return ft_fail(err, NULL, "no more processes: %s", strerror(errno));
}

bool worker_has_ended(struct worker *w)
{
	char told[256];

	return read(w->ended, told, sizeof(told)) == 0;
}

static enum worker_end beyond(const char **why, const char *what)
{
	*why = what;
	return WORKER_BEYOND;
}

/* How it ended by itself. */
static enum worker_end ended_as(int status, const char **why)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)
		return beyond(why, "the answer is larger than serve gives (see "
				   "docs/limits.md); ask the command instead");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		return beyond(why, "this takes longer than serve computes (see "
				   "docs/limits.md); ask the command instead");
	if (!WIFEXITED(status))
		return WORKER_BROKEN;
	if (WEXITSTATUS(status) == EXIT_MEMORY)
		return beyond(why, "this takes more memory than serve gives (see "
				   "docs/limits.md); ask the command instead");
	return WEXITSTATUS(status) == EXIT_DONE	   ? WORKER_DONE :
	       WEXITSTATUS(status) == EXIT_REFUSED ? WORKER_REFUSED :
						     WORKER_BROKEN;
}

enum worker_end worker_finish(struct worker *w, bool late, const char **why)
{
	int status = 0;

	if (late)
		kill(w->pid, SIGKILL);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	w->pid = 0;
	close(w->ended);
	if (late && WIFSIGNALED(status))
		return beyond(why, "this takes longer than serve computes (see "
				   "docs/limits.md); ask the command instead");
	return ended_as(status, why);
}
