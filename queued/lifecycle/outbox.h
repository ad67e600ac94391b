/* queued/lifecycle/outbox.h - effects on the cluster, promised in a turn and performed after its commit.
 *
 * A call asked for in a turn leaves only when the turn is durable (outbox_perform), at most OUTBOX_MAX_IN_FLIGHT at a
 * time. All are safe to repeat: a restart asks for them again.
 *
 * The outbox also counts effects (commits and calls) so that tests and demonstrations can end the process just before
 * the n-th one. From then on nothing happens any more. */
#ifndef QUEUED_LIFECYCLE_OUTBOX_H
#define QUEUED_LIFECYCLE_OUTBOX_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "allocator/base/error.h"

struct cluster;
struct outbox;

#define OUTBOX_MAX_IN_FLIGHT 64

enum call_kind { CALL_CREATE, CALL_GET, CALL_REMOVE, CALL_ERASE, CALL_RELEASE, CALL_UNGATE, CALL_ALLOCATE, CALL_BIND };

/* Whom a call is for; comes back with its result. */
struct call_for {
    int64_t job, attempt; /* 0: nobody's, a stray object; below: that of a request for nodes, its number negated */
    size_t object;        /* index into the attempt's objects, or the request's */
};

struct call_result {
    enum call_kind kind;
    struct call_for target;
    const struct error *err; /* NULL on success */
    const json_t *object;    /* what the cluster answered, borrowed; or NULL */
    const char *object_kind, *ns, *name;
};

/* `done` is called on the loop for each call that was performed, never from inside outbox_perform(). The cluster is
 * borrowed. crash_at as in core_options; crash(ctx) is called instead of SIGKILL when not NULL. */
struct outbox_options {
    struct cluster *cluster;
    void (*done)(void *ctx, const struct call_result *result);
    void *ctx;
    int crash_at;
    void (*crash)(void *ctx);
    void *crash_ctx;
};
struct outbox *outbox_new(const struct outbox_options *options);
/* Calls still on their way are forgotten: after this the cluster may only be freed, and must not call back from that.
 */
void outbox_free(struct outbox *outbox);

/* Promise. Bodies, allocations and consumers are borrowed (a reference is taken). */
void outbox_create(struct outbox *outbox, struct call_for target, json_t *body);
void outbox_get(struct outbox *outbox, struct call_for target, const char *kind, const char *ns, const char *name);
void outbox_remove(struct outbox *outbox, struct call_for target, const char *kind, const char *ns, const char *name,
                   const char *uid);
void outbox_erase(struct outbox *outbox, struct call_for target, const char *ns, const char *pod, const char *uid);
void outbox_release(struct outbox *outbox, struct call_for target, const char *ns, const char *claim, const char *uid);
void outbox_ungate(struct outbox *outbox, struct call_for target, const char *ns, const char *pod, const char *node);
void outbox_allocate(struct outbox *outbox, struct call_for target, const char *ns, const char *claim, const char *uid,
                     json_t *allocation, json_t *consumers);
void outbox_bind(struct outbox *outbox, struct call_for target, const char *ns, const char *pod, const char *uid,
                 const char *node);

/* Keep the promises, as many as may be in flight: those of older jobs first, those of one job in their order. So the
 * first of many gangs can start while the others are still being created. */
void outbox_perform(struct outbox *outbox);
/* The turn failed: forget what was promised and not performed. */
void outbox_discard(struct outbox *outbox);

/* Nothing promised, nothing in flight. */
bool outbox_is_idle(const struct outbox *outbox);

/* An effect is about to happen: returns false when the process is meant to be dead by now. */
bool outbox_effect(struct outbox *outbox);
bool outbox_is_dead(const struct outbox *outbox);
int outbox_n_effects(const struct outbox *outbox);

#endif
