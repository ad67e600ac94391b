/* test/api/integration/crash_run.h - a server that is killed before its n-th effect, and started again. */
#ifndef QUEUED_TEST_CRASH_RUN_H
#define QUEUED_TEST_CRASH_RUN_H

#include "test/api/integration/process.h"

struct run {
    struct process process;
    bool is_real; /* real time, else virtual */
    int n;        /* the effect before which it is killed; for messages */
    bool was_killed;
};

/* A state with queues and no job, of a server that was never disturbed and does not run. */
struct run run_prepare(bool is_real);
/* Start the server, to be killed before effect `crash_at` (0: never). Returns whether it got ready. */
bool run_start(struct run *run, int crash_at);
/* Fail the test with the server's log. */
void run_broken(struct run *run, const char *why);
/* It was killed, and in the right way: check what is there and start it again, undisturbed. */
void run_revive(struct run *run);
/* Ask as the administrator; when the server dies instead of answering, revive it and ask again. */
int run_insist(struct run *run, const char *method, const char *target, const char *type, const char *body,
               json_t **out);
json_t *run_get(struct run *run, const char *target); /* JSON of a 200 */

/* What must be so while it is dead: the pods of a job that were not told to go belong to one attempt. */
void run_check_attempts(struct run *run);
/* What must be so in the end: no object, no held device, no used quota. In real time it may take a moment. */
void run_check_left(struct run *run);

#endif
