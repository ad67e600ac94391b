/* queued/manifest/decode.h - from the objects of a submission to canonical GangJobs: what the kinds share.
 *
 *   documents --open Lists--> sources --kind's decode--> drafts --merge (one job, pod groups)--> GangJobs
 *
 * A kind is one file and one row in kinds.c. Room-internal. */
#ifndef QUEUED_MANIFEST_DECODE_H
#define QUEUED_MANIFEST_DECODE_H

#include <stdbool.h>

#include <jansson.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"

/* One object of the submission. */
struct source {
    size_t document;
    char prefix[32]; /* its place in the document: "items[3]", or empty */
    json_t *object;  /* own copy; its kind's check brings it into one form */
    const struct kind *kind;
    const char *name, *ns; /* borrowed */
    bool used;             /* templates and claims: some workload names it */
};

struct sources {
    struct source *items;
    size_t n, cap;
};

/* A GangJob that is being written. The JSON is owned. */
struct draft {
    const struct source *source; /* the first that it came from */
    const char *name, *ns;       /* borrowed from there */
    bool joint;                  /* several workloads make this job: groups carry their workload's name */
    bool ranked;                 /* the priority is the workload's own; the pods' class does not count */
    json_t *metadata;            /* labels, annotations */
    json_t *spec;                /* the fields that are no lists */
    json_t *groups, *templates, *claims, *constraints, *alternatives;
};

typedef int decode_fn(struct source *source, struct draft *draft, struct error *err);

enum kind_role { KIND_WORKLOAD, KIND_TEMPLATE, KIND_CLAIM };

struct kind {
    const char *version, *name;
    enum kind_role role;
    decode_fn *decode; /* of workloads */
};

/* The row of an object that can be read; else NULL with ERR_INVALID: what it is and what to do about it. */
const struct kind *kind_of(const json_t *object, struct error *err);

decode_fn gangjob_decode, job_decode, jobset_decode, pod_decode;

/* ---- what the kinds write with ---- */

/* Set a field of spec; takes the value. */
void draft_set(struct draft *draft, const char *key, json_t *value);
/* Labels and annotations of the workload become the job's. */
void draft_metadata(struct draft *draft, const json_t *metadata);
/* Add a group; `template` is borrowed and copied. `member_name` is a pattern, see job.h. */
json_t *draft_group(struct draft *draft, const char *name, json_int_t replicas, json_t *template,
                    const char *member_name);
/* The pods' priority class is the job's when the workload itself names none. All members have one priority. */
int draft_pod_priority(struct draft *draft, const json_t *pod_spec, struct error *err);
/* Seconds to a duration field. */
void draft_seconds(struct draft *draft, const char *key, json_int_t seconds);
/* restartPolicy of members that must come to an end: the default is filled in, Always refused. */
int members_must_end(json_t *pod_template, const char *default_policy, struct error *err);

/* ---- kueue.c ---- */

enum workload { WORKLOAD_JOB = 1, WORKLOAD_JOBSET = 2, WORKLOAD_POD = 4, WORKLOAD_GANGJOB = 8, WORKLOAD_ANY = 15 };

/* Kueue's labels and annotations on a workload. min_members is set when one asks for partial admission, else left (Jobs
 * only, else NULL). `group` is that of a Pod, whose annotations are a template's too. */
int kueue_workload(struct draft *draft, const json_t *metadata, enum workload workload, const char *group,
                   json_int_t *min_members, struct error *err);
/* Its topology annotations on a pod template: constraints on the group. */
int kueue_template(struct draft *draft, const json_t *pod_template, const char *group, struct error *err);
/* Take the keys that were read off: they are fields of the job now, and Kueue must not act on the members. */
void kueue_drop(json_t *metadata);
/* The name of a pod's group, or NULL. */
const char *kueue_pod_group(const json_t *pod);
/* The size that the pods of a group state, or 0. */
size_t kueue_pod_group_size(const json_t *pod);

/* ---- gangjob.c ---- */

/* Check a GangJob and bring its spec into one form: shorthand claims become whole objects. */
int gangjob_check(json_t *gangjob, struct error *err);
#define MEMBERS_MAX 10000
#define LIST_MAX    1000 /* groups of a job */
#define CLAIMS_MAX  256  /* claims, constraints, alternatives ... of a job */

#endif
