/* queued/worker.h - one thread for work that must not hold up the loop, and the way back.
 *
 * Work is done in the order in which it was given; each result returns to the loop as a call of `done`. The thread gets
 * values and gives values: it touches nothing that the loop owns. All functions are for the loop thread. */
#ifndef QUEUED_WORKER_H
#define QUEUED_WORKER_H

#include <stdbool.h>

#include "allocator/base/error.h"

struct event_base;
struct worker;

/* Start the thread. Returns 0, or -1 with ERR_IO when the system gives no thread or no eventfd. */
MUST_CHECK int worker_new(struct event_base *base, struct worker **out, struct error *err);

/* Call work(arg) on the thread and then done(arg) on the loop, from a callback of its own, never from inside this call.
 * `worker` is a struct worker; the type is core_options.run's. */
void worker_run(void *worker, void (*work)(void *arg), void (*done)(void *arg), void *arg);

/* Nothing given that has not come back. */
bool worker_is_idle(const struct worker *worker);

/* Finish everything given, call every `done` (also of work given by a `done`), and end the thread. */
void worker_free(struct worker *worker);

#endif
