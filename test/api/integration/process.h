/* test/api/integration/process.h - the real server as a process of its own, and HTTP to it over its Unix socket. */
#ifndef QUEUED_TEST_PROCESS_H
#define QUEUED_TEST_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include <jansson.h>

enum { PROCESS_ARGS_MAX = 16 };

struct process {
    char folder[64]; /* of this test, with state/, log and port */
    char state[80], socket[96], log[80], port_file[80];
    pid_t pid; /* 0: not running */
    int port;
    const char *header; /* one more for every request ("Idempotency-Key: a"), or NULL */
};

/* A fresh folder; no server yet. */
void process_init(struct process *process);
/* Begin with the state of another one that does not run. */
void process_copy_state(struct process *process, const struct process *from);
/* Start the server with more flags (NULL-terminated) and wait until it is ready. Returns whether it is; if not it has
 * ended, see process_wait. */
bool process_start(struct process *process, const char *const *args);
/* Start it with exactly these flags, and do not wait. */
void process_begin(struct process *process, const char *const *args);
/* Run it with exactly these flags until it ends by itself; returns the exit status, its output is in the log. */
int process_run(struct process *process, const char *const *args);
/* Wait for the end: exit status, or -signal; -1000 when it did not end within 20 s (then it is killed). */
int process_wait(struct process *process);
int process_stop(struct process *process); /* SIGTERM and process_wait */
void process_kill(struct process *process);
/* Stop what still runs and remove the folder. */
void process_release(struct process *process);
/* Whether the log has the text. */
bool process_logged(const struct process *process, const char *text);
void process_print_log(const struct process *process);

/* One request; token NULL is the administrator of the socket, else it goes over TCP ("": without a token). Returns the
 * status, 0 when there was no whole reply. *out (may be NULL) is the JSON of the body or NULL; json_decref it. */
int call(struct process *process, const char *token, const char *method, const char *target, const char *content_type,
         const char *body, json_t **out);
/* ---- a gang of two members that takes the whole cluster ---- */

void apply_queues(struct process *process); /* asserts that it was accepted */
struct gang {
    const char *name;
    const char *duration;
    int exit_code, retries;
};
int submit(struct process *process, const struct gang *gang); /* the status */

/* A file below test/api/integration as text, to free(). */
char *file_text(const char *name);

#endif
