/* queued/manifest/job.h - what a user submits, whatever its kind, as one shape: the GangJob.
 *
 * Native manifests (v1 Pod, batch/v1 Job, jobset.x-k8s.io JobSet, queue.dra/v1 GangJob, with the ResourceClaimTemplates
 * and ResourceClaims beside them) become canonical GangJob objects: plain JSON, stored and shown as such. Fields that
 * are misspelt or that queued cannot honour are refused with their path, never dropped. The room's README describes the
 * GangJob. */
#ifndef QUEUED_MANIFEST_JOB_H
#define QUEUED_MANIFEST_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "allocator/base/str.h"

#define JOB_API_VERSION "queue.dra/v1"

/* Where in a submission something is wrong: the document's index beside err->field. */
struct job_problem {
    size_t document;
    struct error error;
};

struct job_decode_options {
    const char *default_namespace; /* for documents without one; NULL is "default" */
    bool one_job;                  /* all workloads of the submission are one gang, whatever their kinds */
    uint64_t name_seed;            /* for metadata.generateName: equal seeds give equal names; 0: random ones */
};

/* Turn the documents of one submission (a JSON array of Kubernetes objects; Lists are opened) into canonical GangJobs.
 * Pods with the same kueue.x-k8s.io/pod-group-name form one job; every other workload is a job of its own.
 * Returns 0 and a new array (json_decref), or -1 and the first problem. Templates and claims that no workload uses are
 * refused.*/
MUST_CHECK int jobs_decode(const json_t *documents, const struct job_decode_options *options, json_t **out_gangjobs,
                           struct job_problem *problem);

/* ---- a canonical GangJob, read ---- */

enum job_claim_source { JOB_CLAIM_OWN, JOB_CLAIM_SHARED, JOB_CLAIM_EXISTING };

struct job_claim {
    const char *pod_claim; /* the entry's name in the pod */
    enum job_claim_source source;
    const char *name;     /* of the template, the shared claim or the existing claim */
    const json_t *object; /* OWN, SHARED: the whole ResourceClaimTemplate or ResourceClaim; NULL when the submission
                             does not bring the template (kube-scheduler would wait for it for ever) */
    size_t shared;        /* SHARED: index into job_spec.shared */
};

struct job_group {
    const char *name;
    size_t replicas, min_replicas; /* min_replicas == replicas unless the user allows fewer */
    const json_t *pod;             /* {"metadata": ..., "spec": ...} */
    const struct job_claim *claims;
    size_t n_claims;
    size_t job_size; /* members of each of the equal jobs that the group consists of (JobSet); 0: no such parts */
    const char *member_name; /* pattern of the members' own names, see job_member_name(); NULL: the default */
};

/* One whole-gang shape. The first is spec.groups; the others are spec.alternatives, in the order of preference. */
struct job_shape {
    const char *name; /* "" for the first unless it is named */
    const struct job_group *groups;
    size_t n_groups;
};

enum job_constraint_kind { JOB_MATCH_ATTRIBUTE, JOB_DISTINCT_ATTRIBUTE, JOB_MATCH_NODE_LABEL };
struct job_constraint {
    enum job_constraint_kind kind;
    const char *key;
    const char *const *groups;
    size_t n_groups;
    const char *const *requests;
    size_t n_requests;
    bool preferred;
};

enum job_placement { JOB_PLACEMENT_DEFAULT, JOB_PLACEMENT_FRAGMENTATION, JOB_PLACEMENT_PACK, JOB_PLACEMENT_SPREAD };

/* Their names in manifests, JOB_PLACEMENT_FRAGMENTATION first; NULL ends. The default has no name: it is not written.
 */
extern const char *const job_placements[];
/* Of any but JOB_PLACEMENT_DEFAULT. */
const char *job_placement_name(enum job_placement placement);
/* JOB_PLACEMENT_DEFAULT for NULL and for what is no name. */
enum job_placement job_placement_of(const char *name);

/* A view into a canonical GangJob: strings and JSON are borrowed from it, arrays live in the arena. */
struct job_spec {
    const char *name, *ns;
    const char *queue;          /* "" when the manifest names none */
    const char *priority_class; /* or NULL */
    bool has_priority;
    int32_t priority;
    int64_t max_runtime_ms; /* 0: none */
    int32_t retries;        /* whole-gang restarts after a failure */
    int64_t ttl_ms;         /* after the end; -1: kept */
    bool hold;
    const char *const *depends_on; /* names of jobs that must succeed first */
    size_t n_depends_on;
    const struct job_shape *shapes; /* at least one */
    size_t n_shapes;
    const json_t *const *shared; /* whole ResourceClaims that the job brings */
    const char *const *shared_names;
    size_t n_shared;
    const struct job_constraint *constraints;
    size_t n_constraints;
    bool same_alternative;
    enum job_placement placement; /* default: its queue says */
    bool has_no_hostnames;        /* members do not find each other by name */
};

/* Read a canonical GangJob; also checks it fully (the path of the field at fault is in err). */
MUST_CHECK int job_spec_parse(const json_t *gangjob, struct arena *arena, struct job_spec *out, struct error *err);

/* The name by which users know a member: that of the pod which Kubernetes would have made for the manifest. A group's
 * pattern may hold {index} (within the job when the group has a job_size, else within the group) and {job}; without one
 * it is
 * "<job>-<group>-<index>". Appended to `out`. Job train has train-0, train-1; JobSet loop has
 * loop-<role>-<job>-<index>. */
void job_member_name(const struct job_spec *job, const struct job_group *group, size_t index, struct buf *out);

/* ---- what an administrator applies: queues and resources ---- */

/* Check a queue.dra/v1 Queue, Resource or PriorityClass document (`dra-submit apply`); the shapes are in the room's
 * README. */
MUST_CHECK int admin_document_check(const json_t *document, struct error *err);

#endif
