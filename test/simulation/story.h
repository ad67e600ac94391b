/* test/simulation/story.h - one seed is one story: a small cluster, a tree of queues, and what then happens, step by
 * step.
 *
 * A story is made whole before it is played, and each step says by itself what it does: so steps can be left out and
 * the others stay what they were, which is how a story that breaks a rule is made shorter. */
#ifndef QUEUED_TEST_STORY_H
#define QUEUED_TEST_STORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/base/rng.h"
#include "allocator/base/str.h"

struct play;
struct story;
struct step;

#define STORY_MAX_NODES  6
#define STORY_MAX_QUEUES 6
#define STORY_NEVER_ENDS 7 /* minutes: of jobs that are to run long */

/* ---- the cluster (cluster.c) ---- */

struct story_node {
    char name[8];
    size_t n_gpus, n_nics, n_migs;
    char *node, *slice; /* the Node and its slice of GPUs as JSON; slice NULL: no GPUs */
};

struct story_cluster {
    struct story_node nodes[STORY_MAX_NODES];
    size_t n_nodes, n_links;
    bool has_uuids; /* else devices of one kind look alike */
    bool has_migs, has_nics;
    char *yaml;
};

void cluster_make(struct story_cluster *cluster, struct rng *rng);
void cluster_release(struct story_cluster *cluster);
/* A device of any node: "driver", "pool", "device" as fields of a JSON object without its braces. To free(). */
char *cluster_pick_device(const struct story_cluster *cluster, struct rng *rng);

/* ---- the queues (queues.c) ---- */

struct story_queues {
    size_t n; /* queue 0 may be the parent of 1 and 2; all others are leaves */
    bool has_parent;
    char *yaml; /* resources, priority classes and queues as they are at the beginning */
};

void queues_make(struct story_queues *queues, struct rng *rng);
void queues_release(struct story_queues *queues);
/* A document that changes one queue. To free(). */
char *queues_change(const struct story_queues *queues, struct rng *rng);
/* Its name: "q0" ... */
void queue_name_of(size_t queue, char out[8]);
size_t queues_pick_leaf(const struct story_queues *queues, struct rng *rng);

/* ---- jobs (jobs.c) ---- */

/* What the rules must know of a job. */
struct job_traits {
    char name[16];
    bool fails; /* some member ends with an exit code other than 0 */
    bool is_held;
    int64_t ttl_ms, max_runtime_ms; /* -1 and 0: none */
    char depends_on[16];            /* name, or "" */
    /* Constraints over the claims of all members: attribute of gpu.sim, or "". */
    char match[16], distinct[16];
};

/* A GangJob as YAML, to free(). `earlier`: the names of n_earlier jobs that it may depend on. */
char *job_make(const struct story *story, struct rng *rng, struct job_traits *traits);

/* ---- steps (steps.c) ---- */

struct step_kind {
    const char *name;
    unsigned weight; /* how often, relative to the others */
    /* Say what the step does; false: it cannot be told of this story. */
    bool (*make)(struct story *story, struct rng *rng, struct step *step);
    void (*play)(struct play *play, const struct step *step);
};

struct step {
    const struct step_kind *kind;
    size_t number; /* in the whole story */
    char *text;    /* manifest or command, or NULL */
    char target[16];
    int64_t n[3];
    struct job_traits job; /* of a submission */
};

struct story {
    uint64_t seed;
    struct story_cluster cluster;
    struct story_queues queues;
    bool has_pod_groups;
    const char *bind_classes; /* that queued allocates itself, or NULL */
    bool binds_pods;          /* of those */
    int64_t planning_ms, reconcile_period_ms, launch_timeout_ms;
    int64_t stream_lag_ms, answer_lag_ms; /* at first */
    struct step *steps;
    size_t n_steps, cap_steps;
};

void story_make(struct story *story, uint64_t seed);
void story_release(struct story *story);
/* Keep only these steps (numbers, ascending). */
void story_keep(struct story *story, const size_t *numbers, size_t n);
void story_print(const struct story *story, struct buf *out);
/* The submission that brings this job, or NULL. */
const struct step *story_job(const struct story *story, const char *name);

static inline size_t pick(struct rng *rng, size_t n)
{
    return (size_t)rng_below(rng, n);
}
static inline bool one_in(struct rng *rng, size_t n)
{
    return rng_below(rng, n) == 0;
}

#endif
