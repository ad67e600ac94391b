/* queued/admission/plan.h - one planning round: who may start now, where, on which devices, and why the others wait.
 *
 * A function of values: (snapshot, queues, resources, running charges, pending jobs, now) -> plan. Equal inputs give
 * byte-equal plans. Nothing here does I/O, reads a clock or keeps state; any thread. The room's README tells the order.
 *
 * Amounts are int64_t in the resource's unit: devices, units of a capacity, thousandths of a cpu, bytes of memory,
 * pods. */
#ifndef QUEUED_ADMISSION_PLAN_H
#define QUEUED_ADMISSION_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "allocator/base/arena.h"
#include "allocator/gang.h"
#include "allocator/snapshot.h"
#include "queued/admission/bind.h"
#include "queued/admission/effective.h"
#include "queued/admission/namespace.h"
#include "queued/manifest/job.h"

#define PLAN_ROOT      SIZE_MAX
#define PLAN_UNLIMITED INT64_MAX

/* ---- in ---- */

enum resource_kind { RESOURCE_DEVICES, RESOURCE_CPU, RESOURCE_MEMORY, RESOURCE_PODS };

struct plan_resource {
    const char *name;
    enum resource_kind kind;
    const struct device_matcher *matcher; /* RESOURCE_DEVICES only */
    const char *capacity;                 /* count this capacity of the devices; NULL: the devices */
    int64_t total;                        /* what the cluster has of it */
};

struct plan_quota {
    size_t resource; /* index into plan_input.resources */
    int64_t nominal;
    int64_t borrowing, lending; /* PLAN_UNLIMITED: no limit */
};

enum queue_state { QUEUE_OPEN, QUEUE_HELD, QUEUE_DRAINED };

struct plan_queue {
    const char *name;
    size_t parent;  /* index into plan_input.queues, or PLAN_ROOT */
    int64_t weight; /* 1 .. 1,000,000 */
    enum queue_state state;
    enum job_placement placement;    /* of jobs in it and below that say nothing themselves; default: as above it */
    const struct plan_quota *quotas; /* at most one per resource */
    size_t n_quotas;
};

struct plan_job {
    int64_t id;
    size_t queue;
    int64_t priority, submitted_ms;
    int64_t not_before_ms;    /* a failed launch is not tried again before; 0: at once */
    const char *last_failure; /* why the last launch failed, or NULL */
    const char *waits_for;    /* "job prepare (12), which is Running", or NULL */
    const struct job_spec *spec;
    uint64_t last_look; /* the number of the last round that came to it, see max_tries; 0: none did */
    uint64_t
        twin; /* equal for jobs that ask for exactly the same (namespace, shapes, claims, constraints); 0: not known */
};

struct plan_running { /* a job with a live attempt */
    int64_t id;
    size_t queue;
    const int64_t *charges; /* one per resource */
};

struct plan_input {
    const struct snapshot *snapshot;      /* with every live attempt's placement in it */
    const struct gang_workload *workload; /* what jobs usually look like, for the score; or NULL */
    const struct plan_resource *resources;
    size_t n_resources;
    const struct plan_queue *queues;
    size_t n_queues;
    const struct plan_running *running;
    size_t n_running;
    const struct plan_job *pending; /* in any order */
    size_t n_pending;
    const struct namespace_quota *namespace_quotas; /* in the order of namespace_quota_cmp() */
    size_t n_namespace_quotas;
    const char *const *priority_classes; /* of the cluster, sorted; none: it is not known which there are */
    size_t n_priority_classes;
    const char *default_priority_class; /* that the cluster gives pods which name none, or NULL */
    bool has_pod_groups;                /* an attempt creates a PodGroup */
    int64_t now_ms;
    struct bind_classes bind; /* what queued allocates itself */
    bool makes_namespaces;    /* the cluster makes a namespace when something is created in it */
    bool is_brief;            /* explanations without the search for what would make a gang fit: see gang_spec */
    /* Gangs searched for in this round, about; 0: PLAN_DEFAULT_TRIES. The others wait for the next one, which comes to
     * all in the end: half of the tries are for those with the lowest last_look. */
    size_t max_tries;
};
#define PLAN_DEFAULT_TRIES 1000

/* ---- out ---- */

/* Which layer decided: what the user looks at next. */
enum plan_layer { LAYER_QUEUE, LAYER_QUOTA, LAYER_ORDER, LAYER_DEVICES, LAYER_LAUNCH };
const char *plan_layer_name(enum plan_layer layer);

/* What became of one pending job. Arrays and texts live in the plan's arena, JSON is the plan's. */
struct plan_outcome {
    size_t job;                           /* index into plan_input.pending */
    struct effective_placement effective; /* what it was, or would be, placed by */
    bool is_admitted;

    /* Admitted: */
    size_t shape;                      /* of job_spec.shapes */
    const struct gang_spec *question;  /* that the placement answers */
    const struct placement *placement; /* needs the input's snapshot to live */
    const int64_t *charges;            /* one per resource */

    /* Not admitted: */
    enum plan_layer layer;
    const char *reason; /* one sentence for people */
    bool is_untried;    /* the round had no try left for it */
    bool is_never;      /* would not fit on the empty cluster, or within the largest quota */
    size_t position;    /* in its queue, from 1, among the jobs that wait */

    json_t *explanation; /* of the gang search (allocator/gang.h), or NULL when there was none */
};

struct plan {
    struct arena arena;
    struct plan_outcome *outcomes; /* in the order in which the round came to them; one per pending job */
    size_t n_outcomes;
    size_t n_admitted;
    size_t n_tries;
    struct gang_result *results; /* what the placements live in */
    size_t n_results;
    json_t *changed; /* array: manifests that questions ask instead of the user's (question_without), or NULL */
    const struct snapshot **snapshots; /* each with one more placement in it */
    size_t n_snapshots;
};

/* Run a round. `plan` is filled; plan_release() it. The input must live as long as the plan. */
void admission_plan(const struct plan_input *input, struct plan *plan);
void plan_release(struct plan *plan);

/* The plan as JSON, for golden traces and for showing that equal inputs give equal plans. New reference. */
json_t *plan_to_json(const struct plan_input *input, const struct plan *plan);

#endif
