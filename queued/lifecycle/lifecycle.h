/* queued/lifecycle/lifecycle.h - the life of all jobs: loading, moving, launching, watching, ending, reconciling.
 *
 * The core calls in, once for each thing that happens, and lifecycle_step() once per turn. Decisions change memory and
 * the turn's transaction; effects on the cluster are promised to the outbox. If the turn cannot be committed, the core
 * throws this object away and loads it again: memory never knows more than the disk for longer than a turn.
 *
 * Loop thread only. The room's README tells how a launch goes. */
#ifndef QUEUED_LIFECYCLE_LIFECYCLE_H
#define QUEUED_LIFECYCLE_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "allocator/base/error.h"
#include "queued/cluster/cluster.h"
#include "queued/lifecycle/diagnose.h"
#include "queued/lifecycle/job.h"
#include "queued/lifecycle/outbox.h"

struct clock;
struct lifecycle;
struct store;

struct lifecycle_options {
    struct store *store; /* borrowed, as are the others */
    struct outbox *outbox;
    struct clock *clock;
    const char *server; /* our name on what we make: what carries another is not ours */
    int64_t launch_timeout_ms;
    int64_t lost_node_timeout_ms;          /* see silent.c; 0: a node that does not answer is waited for, for ever */
    const char *provisioning_class;        /* nodes are asked for with it; NULL: they are not. See ask.h */
    const json_t *provisioning_parameters; /* object of texts, or NULL */
    void *ctx;
    /* The cluster as the simulation must see it has changed for an object of ours: `object` (borrowed) is what counts
     * now, NULL when it is gone. Between a plan and the cluster telling so, that is the planned object. */
    void (*assume)(void *ctx, const char *kind, const char *ns, const char *name, const json_t *object);
    /* A job changed in a way that somebody may see. */
    void (*changed)(void *ctx, const struct job *job);
    /* "namespace/name" of another claim that has the device of this result of an allocation too; NULL: none. */
    const char *(*other_holder)(void *ctx, const json_t *result, const char *ns, const char *claim);
    /* Whether a node is not ready, or not there; then also since when, as far as we have seen it. */
    bool (*node_is_silent)(void *ctx, const char *node, int64_t *out_since_ms);
    /* The apiVersion in which the cluster has ProvisioningRequests now; NULL: it has none. */
    const char *(*provisioning)(void *ctx);
    /* What a device is but for its name (see alike.h): a new reference, NULL when there is no such device. */
    json_t *(*device_traits)(void *ctx, const char *driver, const char *pool, const char *device);
    /* The scheduler decided otherwise than planned: the charges by what it did (resource -> amount), new reference. */
    json_t *(*recharge)(void *ctx, const struct job *job);
};

/* Load all jobs and live attempts. */
MUST_CHECK int lifecycle_new(const struct lifecycle_options *options, struct lifecycle **out, struct error *err);
void lifecycle_free(struct lifecycle *lifecycle);

const struct job_list *lifecycle_jobs(const struct lifecycle *lifecycle);
/* Tell `assume` that no object of a live attempt counts any more: before another lifecycle takes over, which may know
 * of fewer attempts than this one. */
void lifecycle_assume_nothing(struct lifecycle *lifecycle);
/* Tell `assume` of every planned object: after loading, and when the cluster's stream begins anew. */
void lifecycle_assume_all(struct lifecycle *lifecycle);

/* Look at every job that wants to be looked at, until none does. */
void lifecycle_step(struct lifecycle *lifecycle);
bool lifecycle_is_dirty(const struct lifecycle *lifecycle);
/* When the next job wants to be looked at by the clock alone; INT64_MAX: never. */
int64_t lifecycle_next_due_ms(const struct lifecycle *lifecycle);
/* The clock has moved: mark what is due. */
void lifecycle_tick(struct lifecycle *lifecycle);
/* Whether jobs may have become startable since this was last asked: a round of planning is worth its time. */
bool lifecycle_take_wants_plan(struct lifecycle *lifecycle);

/* ---- commands; each is legal only where said, and tells why not ---- */

struct job_submission {
    struct blueprint *blueprint; /* a reference is taken */
    const char *queue, *user;
    int64_t priority;
    const int64_t *waits_for; /* ids of jobs that have not ended */
    size_t n_waits_for;
};
/* Record a new job, Pending or Held. Returns it, or NULL when the turn has failed already. */
struct job *lifecycle_submit(struct lifecycle *lifecycle, const struct job_submission *submission);
MUST_CHECK int lifecycle_cancel(struct lifecycle *lifecycle, struct job *job, const char *who, struct error *err);
MUST_CHECK int lifecycle_hold(struct lifecycle *lifecycle, struct job *job, const char *who, struct error *err);
MUST_CHECK int lifecycle_release(struct lifecycle *lifecycle, struct job *job, const char *who, struct error *err);
/* A live job gives its place up and goes back to Pending, its place in the line kept. */
MUST_CHECK int lifecycle_requeue(struct lifecycle *lifecycle, struct job *job, const char *who, struct error *err);

/* A planning round admits a Pending job. The arguments are as for attempt_decide(); chosen_shape is an index. */
struct job_admission {
    size_t shape;
    json_t *objects, *placement, *chosen, *charges; /* borrowed */
    json_t *effective;                              /* borrowed; see struct attempt; may be NULL */
};
void lifecycle_admit(struct lifecycle *lifecycle, struct job *job, const struct job_admission *admission);
/* The number that the next attempt of a job will have. */
int64_t job_next_attempt(const struct job *job);

/* ---- what the cluster tells ---- */

/* A new stream begins: nothing that was told before counts until it is told again. */
void lifecycle_stream_lost(struct lifecycle *lifecycle);
/* Everything that exists has been told: what has not, is gone. */
void lifecycle_stream_synced(struct lifecycle *lifecycle);
/* Whether an object was made by us: it says so by its labels. (What a live attempt made before objects named the server
 * is ours without.) */
bool lifecycle_is_ours(struct lifecycle *lifecycle, const json_t *object);
/* An object of ours appeared, changed, or (is_gone) is no more. Calls `assume` for it. */
void lifecycle_observe(struct lifecycle *lifecycle, const json_t *object, bool is_gone);
/* Delete what has no live attempt. On start and from time to time. */
void lifecycle_reconcile(struct lifecycle *lifecycle);
/* Claims of others have changed, since the last turn: look again whether devices of ours are among theirs. */
void lifecycle_claims_changed(struct lifecycle *lifecycle);
/* A node fell silent, or answers again. */
void lifecycle_nodes_changed(struct lifecycle *lifecycle);
/* The end of a call (see outbox.h); the core hands it on. */
void lifecycle_call_done(struct lifecycle *lifecycle, const struct call_result *result);

/* Why a member of a live attempt does not run, or not well; false when there is nothing to say. */
bool member_diagnose(const struct attempt *attempt, const struct launch_object *pod, struct diagnosis *out);

/* How often the scheduler's allocation was not the planned one, since the start. */
size_t lifecycle_n_drift(const struct lifecycle *lifecycle);
/* How many attempts were begun, and how many of those failed before all their members ran; since the start. */
size_t lifecycle_n_launches(const struct lifecycle *lifecycle);
size_t lifecycle_n_launch_failures(const struct lifecycle *lifecycle);

#endif
