/* queued/cluster/cluster.h - the port to a cluster: one struct of functions, real Kubernetes or embedded behind it.
 *
 * Objects cross it as Kubernetes JSON. Calls return at once; results come through callbacks from the loop, never from
 * inside the call. Changes arrive as a stream: first everything that exists, then `synced`, then each change.
 * The listener must live as long as the cluster. Loop thread only. */
#ifndef QUEUED_CLUSTER_H
#define QUEUED_CLUSTER_H

#include <stdbool.h>

#include <jansson.h>

#include "allocator/base/error.h"

struct cluster;

/* Labels on everything that queued creates (contract). */
#define LABEL_JOB     "queue.dra/job"
#define LABEL_ATTEMPT "queue.dra/attempt"
#define LABEL_GROUP   "queue.dra/group"
#define LABEL_INDEX   "queue.dra/index"
#define LABEL_SERVER  "queue.dra/server" /* the store that the job is in: what carries another's is not ours */
#define LABEL_ASK     "queue.dra/ask" /* in place of LABEL_ATTEMPT: which request for nodes of the job it is part of */

/* spec.schedulerName of pods that no scheduler is to look at, since we bind them ourselves. */
#define SCHEDULER_NAME "queued"

enum cluster_change { CLUSTER_PUT, CLUSTER_GONE };

struct cluster_listener {
    void *ctx;
    /* A stream begins, or the cluster turned out not to let us do something: describe() tells from now on what it is
     * and can do. Not told by a cluster that is always the same. */
    void (*began)(void *ctx);
    /* An object of a watched kind (Node, Pod, Namespace, DeviceClass, ResourceSlice, ResourceClaim, DeviceTaintRule,
     * ResourceQuota, PriorityClass, and ConfigMap, Service, PodGroup and ProvisioningRequest with our labels) appeared,
     * changed or is gone. `object` is borrowed, with status; objects with our labels are whole, others may lack what
     * nobody reads. Of an object that is gone only kind and metadata (namespace, name, uid, labels) are sure. */
    void (*changed)(void *ctx, enum cluster_change change, const json_t *object);
    void (*synced)(void *ctx);                        /* everything that exists has been told */
    void (*lost)(void *ctx, const struct error *err); /* the connection is gone; a new stream begins with `changed` */
};

/* The end of a request: err is NULL on success; object is what the server answered, borrowed, or NULL.
 * ERR_CONFLICT: exists already (create) or changed meanwhile; ERR_NOT_FOUND; ERR_INVALID: refused by validation;
 * ERR_DENIED: refused by a quota, an admission webhook or missing permission, in the cluster's words; ERR_TIMEOUT:
 * outcome unknown; ERR_UNAVAILABLE: not carried out, for now. */
typedef void cluster_done(void *ctx, const struct error *err, const json_t *object);

struct cluster_ops {
    /* Begin the stream of changes. Call once. */
    void (*start)(struct cluster *cluster, const struct cluster_listener *listener);
    void (*create)(struct cluster *cluster, const json_t *object, cluster_done *done, void *ctx);
    void (*get)(struct cluster *cluster, const char *kind, const char *ns, const char *name, cluster_done *done,
                void *ctx);
    /* Delete; what it owns goes too (foreground). Gone already is a success. uid may be NULL: else only that object. */
    void (*remove)(struct cluster *cluster, const char *kind, const char *ns, const char *name, const char *uid,
                   cluster_done *done, void *ctx);
    /* Delete a pod now, with no grace: for one whose node will not say that it has ended. It may run on there. uid as
     * above. */
    void (*erase)(struct cluster *cluster, const char *ns, const char *pod, const char *uid, cluster_done *done,
                  void *ctx);
    /* Delete a claim of ours that no pod uses any more, at once: nobody else needs to look at it first. uid as above.
     */
    void (*release)(struct cluster *cluster, const char *ns, const char *claim, const char *uid, cluster_done *done,
                    void *ctx);
    /* Remove all scheduling gates of a pod. `node` is where it will go, for a scheduler that takes the hint; or NULL.
     */
    void (*ungate)(struct cluster *cluster, const char *ns, const char *pod, const char *node, cluster_done *done,
                   void *ctx);
    /* Write a claim's status.allocation and status.reservedFor in one (bind mode), which kube-scheduler else does
     * before it binds a pod. `allocation` is as planned, with nodeSelector; the implementation adds the timestamp that
     * kube-scheduler would. `consumers`: an array of {"resource": "pods", "name", "uid"}, at most 256. Both borrowed.
     * ERR_CONFLICT when the claim is another than `uid` now, is allocated otherwise, or is being deleted; allocated so
     * already is a success. */
    void (*allocate)(struct cluster *cluster, const char *ns, const char *claim, const char *uid,
                     const json_t *allocation, const json_t *consumers, cluster_done *done, void *ctx);
    /* Bind a pod that says SCHEDULER_NAME to its node, in the scheduler's place. ERR_CONFLICT when it is another than
     * `uid` now, is being deleted, or is bound already. */
    void (*bind)(struct cluster *cluster, const char *ns, const char *pod, const char *uid, const char *node,
                 cluster_done *done, void *ctx);
    /* The last lines of a member's output as a JSON string. */
    void (*logs)(struct cluster *cluster, const char *ns, const char *pod, size_t tail_lines, cluster_done *done,
                 void *ctx);
    /* What the cluster is and can do; new reference. But for what is counted, it stays the same until `began` is told:
     *   "kind"             "embedded" | "kubernetes"
     *   "version"          "1.37"; absent until a stream began
     *   "features"         changes to what that version has, as features_change() reads them, or absent
     *   "podGroup"         apiVersion in which PodGroup is served, or absent
     *   "podGroupDenied"   true: we may not create any; absent as long as it has not said so
     *   "provisioning"     apiVersion in which ProvisioningRequest is served, or absent
     *   "server"           where it is, or absent
     *   "measured"         numbers about the connection, or absent
     *   "makesNamespaces"  true where any namespace can be created in, because the cluster makes it then */
    json_t *(*describe)(struct cluster *cluster);
    void (*free)(struct cluster *cluster);
};

struct cluster {
    const struct cluster_ops *ops; /* first member of every implementation */
};

#endif
