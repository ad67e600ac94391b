/* queued/lifecycle/internal.h - what the files of this room share. */
#ifndef QUEUED_LIFECYCLE_INTERNAL_H
#define QUEUED_LIFECYCLE_INTERNAL_H

#include "queued/clock.h"
#include "queued/lifecycle/ask.h"
#include "queued/lifecycle/diagnose.h"
#include "queued/lifecycle/lifecycle.h"

/* An object with our labels that belongs to no live attempt. */
struct stray {
    char *kind, *ns, *name, *uid;
    bool is_told;
    bool is_asked;
};

struct lifecycle {
    struct lifecycle_options options;
    struct job_list jobs;
    struct stray *strays;
    size_t n_strays, cap_strays;
    bool is_synced; /* the stream has told everything: only then is absence a fact */
    int64_t *dirty; /* ids of the jobs that are dirty, in the order in which they became so */
    size_t n_dirty, cap_dirty;
    bool wants_plan;
    int64_t next_due_ms;
    uint64_t n_planned;      /* attempts so far: the order of the next one */
    bool has_bound;          /* there is, or was, an attempt with claims that we allocate */
    uint64_t claims_version; /* grows when claims of others change */
    size_t n_drift, n_launches, n_launch_failures;
};

/* How long between two looks at a thing that failed n times in a row: doubling, within bounds. */
int64_t backoff_ms(int64_t n_failures);
#define BACKOFF_FIRST_MS 2000
#define BACKOFF_MAX_MS   300000

static inline int64_t lifecycle_now_ms(const struct lifecycle *lc)
{
    return clock_now_ms(lc->options.clock);
}

/* ---- jobs (job.c) ---- */

struct job *job_new(int64_t id, const char *queue, const char *user, struct blueprint *blueprint);
void job_free(struct job *job);
void job_list_add(struct job_list *list, struct job *job); /* ids ascend */
void job_list_drop(struct job_list *list, struct job *job);
/* Replace the reason; the arguments may point into the old one. */
void job_set_reason(struct job *job, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- moving (move.c): nothing else changes a state ---- */

/* The one way to change a job's state: legal moves only; state and event go into the turn's transaction. */
void job_move(struct lifecycle *lc, struct job *job, enum job_state to, const char *detail);
/* Store the other fields after they changed. */
void job_save(struct lifecycle *lc, struct job *job);
/* Record something that moves nothing. */
void job_event(struct lifecycle *lc, const struct job *job, const char *type, const char *fmt, ...) PRINTF_LIKE(4, 5);
void job_touch(struct lifecycle *lc, struct job *job); /* look at it in this turn */
void job_wake_at(struct lifecycle *lc, struct job *job,
                 int64_t at_ms); /* look at it then, or earlier if that was wanted */

/* ---- steps of an attempt: one look at a job; each says whether another look at once makes sense ---- */

enum step { STEP_WAIT, STEP_MORE };
enum step step_create(struct lifecycle *lc, struct job *job); /* launch.c: Admitted */
enum step step_launch(struct lifecycle *lc, struct job *job); /* launch.c: Launching */
enum step step_run(struct lifecycle *lc, struct job *job);    /* run.c: Running */
enum step step_end(struct lifecycle *lc, struct job *job);    /* end.c: live with an ending */
enum step step_after(struct lifecycle *lc, struct job *job);  /* end.c: final, time to live */

/* run.c: Launching and Running: a member failed or vanished, or all have succeeded? Then the ending is decided and true
 * returned. */
bool members_decide(struct lifecycle *lc, struct job *job);
/* launch.c: whether an object has the labels of this job's present attempt. */
bool object_is_of_attempt(const struct job *job, const json_t *object);
/* launch.c: all objects there; else the first that is not. */
const struct launch_object *attempt_missing(const struct attempt *attempt);

/* end.c: from now on the attempt is being taken away and the job goes to `to`. */
void job_end(struct lifecycle *lc, struct job *job, enum job_state to);
/* It has reached a final state: tell those that depend on it. */
void job_ended(struct lifecycle *lc, struct job *job);
/* The launch failed for a reason outside of the members: back to Pending, later and later. */
void job_launch_failed(struct lifecycle *lc, struct job *job, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The cluster refused to `verb` an object, for good: the launch has failed with its words. What is invalid does not get
 * better by waiting: after some attempts with the same answer the job has failed. A quota, a webhook or a permission
 * may. */
void job_launch_refused(struct lifecycle *lc, struct job *job, const char *verb, const struct launch_object *object,
                        const struct error *err);

/* ---- silent.c: members on nodes that do not answer ---- */

/* Say which silent nodes an attempt that ends waits for; it is woken when they are not waited for any more. */
void attempt_note_silence(struct lifecycle *lc, struct job *job);
/* The sentence of a job that waits for others: takes the text, NULL for none. */
void attempt_set_waits(struct lifecycle *lc, struct job *job, char *waits);
/* A pod that is being deleted is to be deleted without its node's word, from now on. */
bool member_is_given_up(struct lifecycle *lc, struct job *job, struct launch_object *pod);

/* ---- launch.c: calls and usage ---- */

/* Whether an object may be asked for now; else the job is woken when it may. */
bool launch_may_ask(struct lifecycle *lc, struct job *job, const struct launch_object *object);

/* Whether a pod has, as far as is known, not been let go: its gates are on, or it waits for us to bind it. */
bool pod_is_held(const struct launch_object *pod);

/* Write what the attempt is charged for: a row per resource, from now on; a row that is there gets the new amount. */
void attempt_record_usage(struct lifecycle *lc, const struct job *job);

/* ---- behind.c: attempts that cannot be told which devices to take ---- */

/* Whether the gates may come off; else the attempt waits, which its reason says, and its launch timeout does not run.
 */
bool attempt_may_open(struct lifecycle *lc, struct job *job);
/* Something happened to a job: look at those that wait for its devices. */
void wake_behind(struct lifecycle *lc, struct job *awaited);

/* ---- bind.c: claims that we allocate ---- */

/* Ask for the allocations that are missing. Returns whether none is. */
bool attempt_allocate(struct lifecycle *lc, struct job *job);
const struct launch_object *attempt_not_allocated(const struct attempt *attempt); /* the first, or NULL */
/* A claim was allocated otherwise, or another one has a device of ours: then the launch has failed. */
bool attempt_has_rival(struct lifecycle *lc, struct job *job);

/* ---- health.c ---- */

/* Being deleted: a pod has some grace left, or its node does not answer; another object waits for its finalizers. */
bool object_is_going(const json_t *object);
/* Evicted or deleted: what its containers end with is not of its own doing. */
bool member_is_taken_away(const json_t *pod);
/* Why a pod that was observed is lost, in words; empty when nothing tells. */
void member_loss(const struct attempt *attempt, const struct launch_object *pod, struct diagnosis *out);
/* An event for each member one of whose devices is unhealthy, once. */
void attempt_note_health(struct lifecycle *lc, struct job *job);

/* ---- drift.c ---- */

/* Whether two results of allocations name the same device. */
bool result_is_same_device(const json_t *a, const json_t *b);
/* The same devices, in any order. */
bool allocation_is_same(const json_t *planned, const json_t *real);

/* Compare every claim's allocation with the plan; records and counts differences. */
void attempt_check_allocations(struct lifecycle *lc, struct job *job);

/* ---- assume.c ---- */

/* What counts in the simulation for an object of a live attempt: new reference, or NULL for nothing. */
json_t *assumed_object(const struct job *job, const struct launch_object *object);
void assume_object(struct lifecycle *lc, const struct job *job, const struct launch_object *object);
/* The assumed claims that depend on this pod, after it changed. */
void assume_beside(struct lifecycle *lc, const struct job *job, const struct launch_object *pod);
void assume_attempt(struct lifecycle *lc, const struct job *job);         /* all objects of the live attempt */
void forget_attempt(struct lifecycle *lc, const struct attempt *attempt); /* none of them counts any more */

/* ---- ask.c ---- */

/* Whether nodes can be asked for at all: an administrator wants it, and the cluster has the kind. */
bool ask_is_on(const struct lifecycle *lc);
/* One look at what a job asks for; after the look at the job itself. */
void ask_step(struct lifecycle *lc, struct job *job);
/* Anything of a request is there, or on its way. */
bool ask_is_there(const struct job *job);
/* An object of ours appeared, changed or is gone: true when it is of a request that a job has. */
bool ask_observe(struct lifecycle *lc, const json_t *object, bool is_gone);
void ask_stream_lost(struct job *job);
void ask_stream_synced(struct lifecycle *lc, struct job *job);
/* The end of a call for a request: target.attempt is the negative of its number. `job` may be NULL. */
void ask_call_done(struct lifecycle *lc, struct job *job, const struct call_result *result);
void ask_free(struct ask *ask); /* NULL is fine */

/* ---- reconcile.c ---- */

void stray_put(struct lifecycle *lc, const json_t *object);
void stray_drop(struct lifecycle *lc, const char *kind, const char *ns, const char *name);
void strays_free(struct lifecycle *lc);

/* ---- JSON ---- */

/* A text at a path of keys in an object, or NULL: json_text_at(o, "metadata", "name", NULL). */
const char *json_text_at(const json_t *object, ...) __attribute__((sentinel));

#endif
