/* queued/cluster/embedded/internal.h - what the files of the embedded cluster share. The README draws how they meet.
 *
 * Objects are JSON values that never change once they are told: a change makes a copy (entry_draft), alters it, and
 * puts it in place (entry_change). So whoever got one in a callback may keep a reference, on any thread. */
#ifndef QUEUED_EMBEDDED_INTERNAL_H
#define QUEUED_EMBEDDED_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <uthash.h>

#include "allocator/features.h"
#include "queued/cluster/embedded/embedded.h"

struct disk;
struct embedded;
struct evictions;
struct snapshot;
struct snapshot_builder;

/* ---- JSON (fields.c) ---- */

/* The value at a path of keys that ends with NULL, or NULL. */
json_t *field_get(const json_t *object, ...) __attribute__((sentinel));
const char *field_text(const json_t *object, ...) __attribute__((sentinel)); /* NULL when absent or no string */
/* The child object or array under `key`, made if it is missing or of another type. Borrowed. */
json_t *field_object(json_t *object, const char *key);
json_t *field_array(json_t *object, const char *key);
/* Whether an array holds this string; NULL is an empty array. */
bool texts_have(const json_t *array, const char *text);
/* Remove it; true if it was there. */
bool texts_drop(json_t *array, const char *text);

/* RFC 3339 in UTC, with milliseconds when there are any; NULL and what cannot be read give `otherwise`. */
json_t *when_json(int64_t ms);
int64_t when_read(const json_t *value, int64_t otherwise);
uint64_t fnv64(uint64_t hash, const void *bytes, size_t n); /* start with 0 */

/* ---- kinds (kinds.c) ---- */

/* In the order in which they are told at the start of a stream: what is referred to comes first. */
enum kind_id {
    KIND_NAMESPACE,
    KIND_PRIORITY_CLASS,
    KIND_QUOTA,
    KIND_NODE,
    KIND_CLASS,
    KIND_SLICE,
    KIND_TAINT_RULE,
    KIND_TEMPLATE,
    KIND_CONFIG_MAP,
    KIND_SERVICE,
    KIND_POD_GROUP,
    KIND_POD_TEMPLATE,
    KIND_PROVISIONING_REQUEST,
    KIND_CLAIM,
    KIND_POD,
    KIND_COUNT
};
enum stream_rule { STREAM_ALWAYS, STREAM_OURS, STREAM_NEVER };
struct kind {
    enum kind_id id;
    const char *name, *plural;
    const char *versions; /* apiVersions served, each between spaces */
    bool has_namespace;
    bool is_modelled; /* the allocator knows it */
    enum stream_rule stream;
    int (*check_name)(const char *name, const char *field, struct error *err);
    int (*check)(struct embedded *cluster, const json_t *object, struct error *err); /* may be NULL */
};
extern const struct kind kinds[KIND_COUNT];
const struct kind *served_kind_find(const char *name); /* NULL when not served */
/* Everything that the API server demands of an object before it looks at others: shape, names, references inside. */
MUST_CHECK int object_check(struct embedded *cluster, const json_t *object, const struct kind **out, struct error *err);

/* ---- objects (objects.c) ---- */

struct entry {
    const struct kind *kind;
    char *key;             /* "Pod/ns/name" */
    const char *ns, *name; /* ns is "" without one; both inside of `names` */
    char *names;
    char uid[40];
    json_t *json;
    uint64_t manifest;  /* hash of the manifest that it came from; 0: created */
    char (*owners)[40]; /* uids */
    size_t n_owners, n_dependents;
    bool lost_owner;
    bool in_work;
    struct entry *work_next, *work_prev;
    struct entry *next, *prev; /* of its kind, in the order of creation */
    struct clock_timer *timer; /* pods: their next step */
    struct embedded *cluster;
    UT_hash_handle by_key, by_uid;
};

/* Finds also with ns NULL or "": "default" for kinds in a namespace, none for the others. */
struct entry *entry_find(struct embedded *cluster, enum kind_id kind, const char *ns, const char *name);
struct entry *entry_by_uid(struct embedded *cluster, const char *uid);
/* Take an object into the cluster and tell it. Steals `json`, which must have a uid. */
struct entry *entry_add(struct embedded *cluster, const struct kind *kind, json_t *json, uint64_t manifest);
json_t *entry_draft(const struct entry *entry);        /* a copy to alter; new reference */
void entry_change(struct entry *entry, json_t *draft); /* steals it; gives it a resourceVersion and tells it */
/* As a state file has it: numbered and told already. */
void entry_restore(struct entry *entry, json_t *json);
void entry_drop(struct entry *entry); /* gone; frees it */
/* Look at it again before the turn ends. */
void entry_push(struct entry *entry);
void push_pods_of(const struct entry *node); /* those on a node */
struct entry *entry_pop(struct embedded *cluster);
void entries_free(struct embedded *cluster);
bool entry_is_going(const struct entry *entry); /* has a deletionTimestamp */
bool entry_is_told(const struct entry *entry);  /* its kind and labels are in the stream */

/* ---- the API server (api.c) ---- */

MUST_CHECK int api_create(struct embedded *cluster, const json_t *object, struct entry **out, struct error *err);
/* Create or replace, status included. */
MUST_CHECK int api_put(struct embedded *cluster, const json_t *object, struct entry **out, struct error *err);
MUST_CHECK int api_remove(struct embedded *cluster, const char *kind, const char *ns, const char *name, const char *uid,
                          struct error *err);
/* A pod with no grace, whatever its node says. */
void api_erase(struct embedded *cluster, const char *ns, const char *name, const char *uid);
MUST_CHECK int api_ungate(struct embedded *cluster, const char *ns, const char *pod, struct entry **out,
                          struct error *err);
/* Bind a pod in the scheduler's place. */
MUST_CHECK int api_bind(struct embedded *cluster, const char *ns, const char *pod, const char *uid, const char *node,
                        struct entry **out, struct error *err);
/* Write a claim's status.allocation, with the time and the finalizer, and status.reservedFor (allocate.c). */
MUST_CHECK int api_allocate(struct embedded *cluster, const char *ns, const char *name, const char *uid,
                            const json_t *allocation, const json_t *consumers, struct entry **out, struct error *err);
/* Foreground deletion: what it owns goes first. What nothing holds is gone and freed when this returns. */
void entry_delete(struct entry *entry);
json_t *pod_logs(const struct entry *pod, size_t tail_lines); /* new reference */
/* uid that follows from a number; the text form is ordered as the numbers. */
void uid_of_number(uint64_t number, char out[40]);

/* ---- controllers (controllers.c): garbage, claims, generated claims ---- */

void controllers_look(struct entry *entry); /* may free it */

/* ---- quotas (quotas.c) ---- */

/* Whether the object may be created, for the quotas of its namespace: else ERR_DENIED. */
MUST_CHECK int quotas_check(struct embedded *cluster, const struct kind *kind, const json_t *object, struct error *err);
void quotas_wake(const struct entry *changed); /* those of its namespace count again */
void quota_look(struct entry *quota);

/* ---- kubelet (kubelet.c) ---- */

#define POD_GRACE_MS 100 /* from a pod's deletion until its containers have ended */
/* Take the pod's next step if it is due, else set its timer. May free it (an eviction). */
void pod_look(struct entry *pod);
/* It uses its claims no more: let the controllers and the scheduler know. */
void pod_released(struct entry *pod);
bool pod_is_finished(const struct entry *pod);
bool pod_is_bound(const struct entry *pod);
/* End its containers now. */
void pod_end(struct entry *pod, int exit_code, const char *reason, const char *message, int64_t at_ms);
void pod_condition(json_t *draft, const char *type, bool is_true, const char *reason, const char *message,
                   int64_t at_ms);
/* Call for each claim that the pod names, and for that of its extended resources (`name` NULL); claim is NULL while it
 * does not exist. `name` is the name in the pod. */
void pod_each_claim(const struct entry *pod, void (*each)(void *ctx, const char *name, struct entry *claim), void *ctx);

/* ---- evictions (evictions.c): NoExecute taints of nodes and devices ---- */

struct evictions *evictions_new(void);
void evictions_free(struct evictions *evictions);
void evictions_changed(struct embedded *cluster); /* a slice, rule or node has: */
void evictions_refresh(struct embedded *cluster); /* think again about every pod */
/* When the pod must go, INT64_MAX if it may stay; *reason says why. */
int64_t eviction_due(const struct entry *pod, const char **reason);

/* ---- scheduler (scheduler.c) ---- */

void schedule_pass(struct embedded *cluster);
/* Reserve allocated claims for a pod that was bound without the scheduler; false if one is not allocated. */
bool claims_reserve(struct entry *pod);

/* ---- extended resources (extended.c) ---- */

#define ANNOTATION_EXTENDED "resource.kubernetes.io/extended-resource-claim"
/* Create the claim with this spec for a pod about to be bound, and note it with the mappings in the pod's status (all
 * borrowed). NULL when it is refused. */
struct entry *extended_claim_create(struct entry *pod, json_t *spec, json_t *mappings, struct error *err);

/* ---- disk (disk.c) ---- */

/* Open (and make) the folder; one server at a time. */
MUST_CHECK int disk_open(const char *folder, struct disk **out, struct error *err);
void disk_close(struct disk *disk);
/* Read all objects (borrowed), in the order of their uids; a damaged one is set aside and reported. */
MUST_CHECK int disk_read(struct disk *disk, void (*each)(void *ctx, json_t *object), void *ctx,
                         void (*warn)(void *warn_ctx, const struct error *err), void *warn_ctx, uint64_t *out_version,
                         struct error *err);
/* Note that an object is to be written (json borrowed and referenced) or, with NULL, removed. */
void disk_note(struct disk *disk, const char *key, json_t *json);
/* Keep a file that cannot be used, under another name. */
void disk_set_aside(struct disk *disk, const char *key);
/* Make all that was noted durable. */
MUST_CHECK int disk_flush(struct disk *disk, uint64_t version, struct error *err);

/* ---- manifests (load.c) ---- */

MUST_CHECK int manifests_load(struct embedded *cluster, const char *path, struct error *err);
/* State files over manifests: see the README. */
MUST_CHECK int state_load(struct embedded *cluster, struct disk *disk, struct error *err);
/* One warning for all slices of nodes that do not exist. */
void warn_of_absent_nodes(struct embedded *cluster);
#define ANNOTATION_MANIFEST "embedded.queue.dra/manifest" /* hash of the manifest that a state file stands over */
#define ANNOTATION_REMOVED  "embedded.queue.dra/removed"  /* a state file that takes an object of the manifests away */
#define ANNOTATION_SILENT   "embedded.queue.dra/silent"   /* of a node: its kubelet does nothing more */
#define ANNOTATION_UNGATED  "embedded.queue.dra/ungated"  /* when */

/* ---- the cluster (embedded.c) ---- */

struct delivery;
struct fault {
    char op[12], kind[24]; /* kind "": any */
    uint64_t nth;          /* counts down; fires at 1 */
    enum err_code code;
    bool is_applied; /* the request is carried out, but its answer is lost */
    char words[160]; /* what is answered; "": that it failed on command */
};
struct embedded {
    struct cluster port; /* first */
    struct clock *clock;
    struct features features;
    int64_t schedule_delay_ms, start_delay_ms;
    int64_t started_ms; /* this process's view of the cluster */
    void (*warn)(void *ctx, const struct error *err);
    void *warn_ctx;
    struct disk *disk; /* NULL: in memory only */
    bool has_pod_groups;
    bool has_no_provisioning;
    bool any_namespace; /* the manifests list none: all exist */
    bool is_held;       /* scheduling */
    bool is_scheduling_due;
    bool is_disk_failing; /* and that was said */
    struct entry *by_key, *by_uid;
    struct entry *lists[KIND_COUNT];
    struct entry *work;
    uint64_t version; /* the last resourceVersion given */
    struct snapshot_builder *model;
    const struct snapshot *snapshot; /* of the model; NULL: has changed since */
    struct evictions *evictions;
    struct clock_timer *turn, *ready; /* work to do now; a pod becomes ready for the scheduler */
    struct delivery *queue;
    size_t n_queue, cap_queue;
    struct fault *faults;
    size_t n_faults, cap_faults;
    const struct cluster_listener *listener; /* NULL: not started */
};

/* There is work to do or to tell: end this turn. */
void embedded_wake(struct embedded *cluster);
/* Queue a change of an object for the listener. */
void embedded_tell(struct embedded *cluster, enum cluster_change change, json_t *json);
/* Tell that the stream is lost, and everything anew. The listener must be there. */
void embedded_lose_stream(struct embedded *cluster);
void embedded_warn(struct embedded *cluster, const struct error *err);
/* The snapshot of everything now; borrowed until the next change. */
const struct snapshot *embedded_snapshot(struct embedded *cluster);

/* ---- commands (commands.c) ---- */

/* The failure that is due for this request, or one with ERR_NONE. */
struct fault fault_take(struct embedded *cluster, const char *op, const char *kind);
MUST_CHECK int command_run(struct embedded *cluster, const json_t *command, struct error *err);

#endif
