/* queued/core.h - all that the api (and main) may know of the server: commands that change, queries that read.
 *
 * One loop thread owns all state. A command is validated and recorded in the current turn; its reply comes after the
 * turn's transaction is durable (store/), never before and never from inside the call. A query answers at once from
 * memory. Both speak in JSON of the shapes in api/README.md. Loop thread only. */
#ifndef QUEUED_CORE_H
#define QUEUED_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "allocator/base/error.h"
#include "queued/manifest/job.h"

struct clock;
struct cluster;
struct core;
struct store;

/* ---- wiring (main, tests) ---- */

/* Where the cluster has them and lets us make them; nowhere; everywhere, and a gang that cannot have one waits. */
enum pod_groups { POD_GROUPS_AUTO, POD_GROUPS_NEVER, POD_GROUPS_ALWAYS };

struct core_options {
    struct store *store;      /* borrowed, open and migrated */
    struct cluster *cluster;  /* borrowed, not started yet */
    struct clock *clock;      /* borrowed */
    int release;              /* Kubernetes 1.x of the cluster; 0: as the cluster says */
    const char *server_id;    /* the value of our label on objects; NULL: that of the store. For golden traces */
    const char *features;     /* changes to what that release has, as features_change() reads them; NULL: none */
    const char *bind_classes; /* "NAME,NAME": device classes whose claims queued allocates itself; NULL: none */
    bool binds_pods;          /* and binds gangs that have all their devices through those, in kube-scheduler's place */
    const char *provisioning_class; /* ask an autoscaler for nodes, by ProvisioningRequests of it; NULL, "": never */
    const char *provisioning_parameters; /* "KEY=VALUE,KEY=VALUE" of those; NULL: none */
    enum pod_groups pod_groups;          /* does each gang get one? */
    /* How work gets off the loop and back: run(ctx, work, done, arg) calls work(arg) on a worker thread and done(arg)
     * on the loop afterwards. NULL: both at once on the loop (tests, virtual scenarios). */
    void (*run)(void *ctx, void (*work)(void *arg), void (*done)(void *arg), void *arg);
    void *run_ctx;
    int64_t launch_timeout_ms;    /* from ungated to all running; default 300,000 */
    int64_t lost_node_timeout_ms; /* from then on a pod that is being deleted on a node that does not answer is given
                                   * up; 0: never */
    int64_t reconcile_period_ms;  /* default 30,000 */
    int crash_at;             /* end the process with SIGKILL before the n-th effect (1..); 0: never; tests and demos.
                               * Effects are commits and calls to the cluster. */
    void (*crash)(void *ctx); /* instead of SIGKILL: afterwards the core does nothing any more and can only be freed */
    void *crash_ctx;
};

/* Load all state from the store and begin: starts the cluster's stream, reconciles when it is synced. */
MUST_CHECK int core_new(const struct core_options *options, struct core **out, struct error *err);
/* Free; nothing in the cluster changes. A planning round must not be on its way any more (worker_free first). Requests
 * to the cluster may be: after this the cluster must only be freed, and not call back from that. */
void core_free(struct core *core);
/* End the turn that commands began: commit, act, answer. main calls it once per turn of the loop, tests when they like.
 */
void core_end_turn(struct core *core);
/* This process does not lead at the moment, and why (copied); NULL: it does again. Meanwhile the cluster refuses its
 * writes (connect.h), so nothing is planned, and status says so; what is recorded and what is read goes on. */
void core_not_leading(struct core *core, const struct error *why);
/* Nothing in flight: no planning round, no effect, no reply. For virtual time. */
bool core_is_idle(const struct core *core);

/* ---- who asks ---- */

enum role { ROLE_NONE, ROLE_VIEWER, ROLE_SUBMITTER, ROLE_QUEUE_ADMIN, ROLE_ADMIN };
const char *role_name(enum role role);
bool role_find(const char *name, enum role *out);

struct caller {
    enum role role;
    const char *name;     /* the user that jobs belong to */
    const json_t *queues; /* array of queue names that it may use, or NULL: all */
};

/* ---- commands ---- */

struct core_reply {
    const struct error *err; /* NULL on success */
    const json_t *problems;  /* for a refused submission: [{"document", "field", "detail"}], or NULL */
    const json_t *body;      /* the changed object(s), borrowed; NULL where there is none */
};
typedef void core_reply_fn(void *ctx, const struct core_reply *reply);

struct submit_options {
    const char *ns;              /* default namespace, or NULL */
    const char *queue;           /* overrides the manifests', or NULL */
    bool one_job;                /* all workloads are one gang */
    bool dry_run;                /* check and predict only */
    const char *idempotency_key; /* or NULL: the same key and caller give the first answer again */
};
/* documents: array of objects. The body is {"jobs": [job]}; all jobs of a submission are accepted or none. */
void core_submit(struct core *core, const struct caller *caller, const json_t *documents,
                 const struct submit_options *options, core_reply_fn *reply, void *ctx);
enum job_action { JOB_ACTION_CANCEL, JOB_ACTION_HOLD, JOB_ACTION_RELEASE, JOB_ACTION_REQUEUE };
void core_job_action(struct core *core, const struct caller *caller, const char *job, enum job_action action,
                     core_reply_fn *reply, void *ctx);
/* Queues, resources, priority classes: array of documents; all or none. Administrators only. */
void core_apply(struct core *core, const struct caller *caller, const json_t *documents, core_reply_fn *reply,
                void *ctx);
void core_delete_queue(struct core *core, const struct caller *caller, const char *queue, core_reply_fn *reply,
                       void *ctx);
/* Body {"token": text, "id", ...}; the text is told this once, only its hash is stored. */
void core_create_token(struct core *core, const struct caller *caller, const json_t *request, core_reply_fn *reply,
                       void *ctx);
void core_delete_token(struct core *core, const struct caller *caller, const char *id, core_reply_fn *reply, void *ctx);

/* ---- queries; each gives a new reference, or NULL with err ---- */

struct job_filter {
    const char *state, *queue, *user, *ns, *label; /* NULL: any; label is "key=value" */
    int64_t after;                                 /* id of the last job seen; 0: from the first */
    size_t limit;                                  /* 1 .. 1000 */
};
json_t *core_jobs(struct core *core, const struct caller *caller, const struct job_filter *filter, struct error *err);
/* `job` is an id ("17"), a name, or namespace/name; of several jobs with the name the newest that has not ended, else
 * the newest. */
json_t *core_job(struct core *core, const struct caller *caller, const char *job, struct error *err);
json_t *core_explain(struct core *core, const struct caller *caller, const char *job, struct error *err);
/* Events of a job, or (job NULL) of all jobs in queues that the caller may see. "next" is where to go on: there are
 * more, or there may be (of many that the caller must not see not all are passed over in one call). */
json_t *core_events(struct core *core, const struct caller *caller, const char *job, int64_t after, size_t limit,
                    struct error *err);
json_t *core_queues(struct core *core, const struct caller *caller, struct error *err);
json_t *core_queue(struct core *core, const struct caller *caller, const char *name, struct error *err);
json_t *core_resources(struct core *core, struct error *err);
json_t *core_devices(struct core *core, const struct caller *caller, struct error *err);
json_t *core_nodes(struct core *core, const struct caller *caller, struct error *err);
/* {"items": [{"kind", "namespace", "name", "job", "server"}]}: what carries the labels of a server that is not this
 * one, and is therefore left alone. For administrators. */
json_t *core_strays(struct core *core, const struct caller *caller, struct error *err);
json_t *core_tokens(struct core *core, const struct caller *caller, struct error *err);
json_t *core_status(struct core *core); /* for health and readiness: {"ready", "reason", "cluster", "jobs": {...}}
                                         * and the numbers that api/README.md lists as measurements */

/* Tell `changed` (once per turn that changed something) until it is taken away; for waiting requests and streams. */
struct core_watch;
struct core_watch *core_watch_new(struct core *core, void (*changed)(void *ctx), void *ctx);
void core_watch_free(struct core_watch *watch);

/* Who a bearer token belongs to. Constant time in the token. Returns 0, or -1 with ERR_DENIED. The caller's strings
 * live until the token changes. */
MUST_CHECK int core_authenticate(struct core *core, const char *token, struct caller *out, struct error *err);

/* Member logs through the cluster: body is a JSON string. member is "group-index" or NULL for the first. */
void core_logs(struct core *core, const struct caller *caller, const char *job, const char *member, size_t tail_lines,
               core_reply_fn *reply, void *ctx);

#endif
