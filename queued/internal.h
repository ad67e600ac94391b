/* queued/internal.h - what the files of the core share. */
#ifndef QUEUED_CORE_INTERNAL_H
#define QUEUED_CORE_INTERNAL_H

#include "queued/book.h"
#include "queued/clock.h"
#include "queued/core.h"
#include "queued/lifecycle/lifecycle.h"
#include "queued/world.h"
#include "store/store.h"

struct log_request;
struct planner_round;
struct workload;

/* An answer that waits for the turn's commit. */
struct pending_reply {
    core_reply_fn *fn;
    void *ctx;
    struct error err; /* code ERR_NONE: success */
    json_t *problems, *body;
};

struct core_token {
    int64_t id;
    char *name;
    enum role role;
    json_t *queues; /* or NULL: all */
    unsigned char hash[32];
    int64_t created_ms;
};

struct core_watch {
    struct core *core;
    struct core_watch *next;
    void (*changed)(void *ctx);
    void *ctx;
    bool is_removed; /* taken away while the watches are being told */
};

struct core {
    struct core_options options;
    struct outbox *outbox;
    char *bind_text; /* what bind_classes point into */
    struct bind_classes bind;
    json_t *described;               /* what the cluster is and can do, as it said when its stream began */
    json_t *provisioning_parameters; /* or NULL */
    struct features features;        /* of the cluster, with the administrator's changes */
    struct world *world;

    /* What a restart reads from the store; made anew as a whole by core_load(). */
    struct lifecycle *lifecycle;
    struct book *book;
    struct core_token *tokens;
    size_t n_tokens;
    uint64_t epoch; /* of this load: a plan of another one is void */

    char server[STORE_SERVER_ID_SIZE]; /* our name on objects */
    json_t *ours;                      /* our objects as the stream told them: "Kind/ns/name" -> object */
    json_t *foreign;     /* those of other servers: "Kind/ns/name" -> {kind, namespace, name, job, server} */
    json_t *others;      /* the servers that were seen to have objects here, as a set */
    json_t *silent;      /* nodes that are there and not ready: name -> since when we know */
    bool has_new_claims; /* claims of others changed since the last decision */
    bool is_synced;
    struct error cluster_lost; /* why the stream stopped; code ERR_NONE while it runs */
    struct error not_leading;  /* why we do not lead at the moment; code ERR_NONE while we do */
    struct error degraded;     /* why nothing can be recorded; code ERR_NONE while all is well */

    struct workload *workload;   /* of the last round */
    struct planner_round *round; /* on its way, or come back and not applied yet */
    bool is_round_back;
    bool wants_plan;
    bool wants_rest;          /* the last round had no try left for a job that none came to since the last change */
    uint64_t n_rounds;        /* begun so far: the number of the last one */
    uint64_t n_plans;         /* rounds that came back */
    int64_t last_plan_us;     /* how long the last of them searched */
    uint64_t change_round;    /* the last one that began because something had changed */
    uint64_t planned_version; /* of the world, in the last round */

    struct pending_reply *replies;
    size_t n_replies, cap_replies;
    struct log_request *log_requests;
    struct core_watch *watches;
    bool is_telling;
    bool is_changed; /* something that a watch may show */
    bool is_in_turn;

    struct cluster_listener listener;
    struct clock_timer *due_timer, *reconcile_timer, *probe_timer;
    struct clock_timer *fuller_timer; /* a quota changed: see on_fuller() */
    bool is_fuller_due;
};

static inline int64_t core_now_ms(const struct core *core)
{
    return clock_now_ms(core->options.clock);
}

/* ---- core.c ---- */

/* Read everything from the store and bring it together with what the cluster has told. */
MUST_CHECK int core_load(struct core *core, struct error *err);

/* ---- workload.c ---- */

/* What the jobs that wait or run look like, with a reference; the same one while their mix is unchanged. On the loop,
 * as is giving it back; the gangs (or NULL) may be read by any thread meanwhile. */
struct workload *workload_now(struct core *core, const struct features *features);
void workload_unref(struct workload *workload); /* NULL is fine */
const struct gang_workload *workload_gangs(const struct workload *workload);

/* ---- turn.c ---- */

/* Answer after the commit. The first takes the references; problems and body may be NULL. */
void reply_with(struct core *core, core_reply_fn *fn, void *ctx, json_t *body);
void reply_error(struct core *core, core_reply_fn *fn, void *ctx, const struct error *err);
void reply_problems(struct core *core, core_reply_fn *fn, void *ctx, const struct error *err, json_t *problems);
void replies_free(struct core *core);
/* Commands only while the store can record them: else -1 with ERR_UNAVAILABLE. */
MUST_CHECK int core_check_writable(const struct core *core, struct error *err);
void core_probe(void *ctx);

/* ---- planner.c ---- */

/* Begin a round if one is wanted and makes sense; a plan that has come back is applied by planner_apply() in the next
 * turn. */
void planner_start(struct core *core);
void planner_apply(struct core *core);
void planner_round_free(struct planner_round *round);
/* The apiVersion of the PodGroup that an attempt gets; NULL: it gets none. */
const char *core_pod_group(const struct core *core);
/* The full explanation of a pending job on the cluster as it is now, alone; new reference, or NULL when there is none.
 */
json_t *planner_explain(struct core *core, const struct job *job);
/* Would these jobs, that are not recorded, start now? One explanation per job, new references in an array. */
json_t *planner_predict(struct core *core, struct blueprint *const *blueprints, const size_t *queues,
                        const int64_t *priorities, size_t n);

/* ---- recharge.c ---- */

/* What a live job is to be charged for by what its claims really hold: resource -> amount, new reference. */
json_t *charges_now(struct core *core, const struct job *job);

/* ---- access.c ---- */

bool caller_sees_queue(const struct caller *caller, const char *queue);
MUST_CHECK int caller_needs(const struct caller *caller, enum role role, struct error *err);
/* Find a job for reading, or for acting on it (its owner, a queue's administrator, an administrator). */
struct job *caller_find_job(struct core *core, const struct caller *caller, const char *name, struct error *err);
struct job *caller_find_job_to_change(struct core *core, const struct caller *caller, const char *name,
                                      struct error *err);

/* ---- actions.c ---- */

void log_requests_free(struct core *core); /* those on their way are not answered any more */

/* ---- views ---- */

json_t *when_view(int64_t ms); /* RFC 3339, UTC, milliseconds */
json_t *job_view(const struct core *core, const struct job *job);
json_t *token_view(const struct core_token *token);
json_t *queue_view(const struct core *core, size_t queue);
json_t *effective_view(const struct effective_placement *effective); /* "effectivePlacement" of jobs and queues */
/* Totals of each resource now: n_resources amounts, to free(). */
struct plan_resource *resources_now(const struct book *book, const struct snapshot *snapshot);

/* ---- the input of a planning round (input.c) ---- */

/* What runs, as admission counts it: charges by resource of the book. In `arena`. */
const struct plan_running *running_now(const struct core *core, const struct book *book, struct arena *arena,
                                       size_t *out_n);

/* ---- policy.c: what the cluster's own policies mean for jobs ---- */

/* Quotas of namespaces, with what live attempts are still to create counted as used, and priority classes, for a round.
 * In `arena`. */
void policies_now(const struct core *core, struct arena *arena, struct plan_input *input);
/* The value of a PriorityClass of the cluster; false when there is none of that name. */
bool cluster_priority(const struct core *core, const char *name, int64_t *out);
/* The PriorityClass of pods that name none, or NULL; borrowed until the world changes. */
const char *cluster_default_priority(const struct core *core);
/* A job's priority: as submitted; of one whose class the cluster did not have then, the class's, once it is there. */
int64_t job_priority(const struct core *core, const struct job *job);

/* ---- tokens.c ---- */

MUST_CHECK int tokens_load(struct core *core, struct error *err);
void tokens_free(struct core *core);

#endif
