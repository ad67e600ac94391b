/* test/support/stage.h - a whole server without its edges: store, core and embedded cluster on a virtual clock. */
#ifndef QUEUED_TEST_STAGE_H
#define QUEUED_TEST_STAGE_H

#include "allocator/base/str.h"
#include "queued/core.h"
#include "queued/manifest/yaml.h"
#include "store/store.h"
#include "test/support/relay.h"

#define STAGE_SERVER   "stage"                /* our label on objects */
#define STAGE_START_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

struct stage_options {
    const char *manifests; /* folder or file; NULL: stage_cluster */
    const char *queues;    /* documents; NULL: stage_queues */
    int64_t reconcile_period_ms, launch_timeout_ms, lost_node_timeout_ms;
    bool has_pod_groups;             /* the cluster's */
    enum pod_groups pod_groups;      /* see core_options */
    const char *bind_classes;        /* see core_options */
    bool binds_pods;                 /* see core_options */
    bool has_no_provisioning;        /* the cluster's */
    const char *provisioning_class;  /* see core_options */
    int64_t planning_ms;             /* how long a planning round takes; 0: none comes between its start and its end */
    void (*before_start)(void *ctx); /* of each server, or NULL */
    void (*at_rest)(void *ctx);      /* after every instant, when nothing more happens at it; or NULL */
    void *ctx;
};

struct stage_round;

struct stage {
    char folder[64]; /* with the database */
    struct clock *clock;
    struct relay relay;
    struct store *store;
    struct core *core;
    int crash_at; /* for the next core: see core_options */
    bool is_crashed;
    int n_crashes;
    int64_t last_event; /* that stage_trace() has shown */
    int64_t launch_timeout_ms;
    struct stage_options options;
    struct stage_round *round; /* a planning round on its way */
    struct clock_timer *round_timer;
};

extern const struct caller stage_admin;

/* Two nodes of two GPUs each, class "gpu"; queues "default", "a" (weight 1) and "b" (weight 2); resource "gpus". */
extern const char stage_cluster[];
extern const char stage_queues[];

/* Open with the manifests of a folder or file, or (NULL) with stage_cluster. */
void stage_open(struct stage *stage, const char *manifests);
void stage_open_with(struct stage *stage, const struct stage_options *options);
void stage_close(struct stage *stage);
/* The server dies, is started again, and reads the cluster. Nothing is lost but what was not committed. */
void stage_restart(struct stage *stage);
/* The same, but the cluster has not told anything yet; stage_settle() lets it. */
void stage_restart_unread(struct stage *stage);
/* Let time pass, and everything happen that then happens. If the server crashes on the way it is started again. */
void stage_run(struct stage *stage, int64_t ms);
/* Everything that happens without time passing. */
void stage_settle(struct stage *stage);

/* What a command answered; release with stage_answer_release(). */
struct stage_answer {
    bool is_told;
    struct error err;
    json_t *body, *problems;
};
void stage_answer_release(struct stage_answer *answer);
/* Submit documents of YAML. Until the answer is told: a crash in between leaves it untold. */
struct stage_answer stage_submit(struct stage *stage, const struct caller *caller, const char *yaml,
                                 const struct submit_options *options);
struct stage_answer stage_apply(struct stage *stage, const char *yaml);
struct stage_answer stage_action(struct stage *stage, const char *job, enum job_action action);
int stage_command(struct stage *stage, const char *json, struct error *err);
/* Submit and expect success; the id of the first job. */
int64_t stage_must_submit(struct stage *stage, const char *yaml);
/* A GangJob with `members` of one claim of `gpus` devices each that runs `seconds` and ends with `exit_code`; to
 * free(). */
struct stage_job {
    const char *name, *queue;
    int members, gpus, seconds, exit_code, retries, priority;
    const char *more; /* further lines of the spec, indented by two */
};
char *stage_job_yaml(const struct stage_job *job);
int64_t stage_must_start(struct stage *stage, const struct stage_job *job); /* submit it */

/* "Running" etc.; valid until the next call. */
const char *stage_state(struct stage *stage, const char *job);
/* The job as the API shows it; new reference. */
json_t *stage_view(struct stage *stage, const char *job);
/* Append what happened since the last call: "+1.5s train Pending -> Admitted: why", one line per event. */
void stage_trace(struct stage *stage, struct buf *out);
/* Append one line per job, and one per object of ours in the cluster. */
void stage_show(struct stage *stage, struct buf *out);
/* How often a job entered a state. */
size_t stage_n_moves(struct stage *stage, const char *job, const char *to);

#endif
