/* queued/cluster/kube/kube_internal.h - what the stream (kube.c) and the calls (calls.c) of one cluster share. */
#ifndef QUEUED_KUBE_INTERNAL_H
#define QUEUED_KUBE_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "allocator/base/rng.h"
#include "queued/cluster/cluster.h"
#include "queued/cluster/kube/backoff.h"
#include "queued/cluster/kube/discovery.h"
#include "queued/cluster/kube/kube.h"
#include "queued/cluster/kube/reflector.h"

struct call;
struct stream;

enum kube_at { KUBE_IDLE, KUBE_ASKING, KUBE_FOLLOWING, KUBE_ENDING, KUBE_PAUSE };

struct kube {
    struct cluster port; /* first: a struct cluster is a struct kube */
    struct kube_options options;
    const struct cluster_listener *listener;
    struct rng rng;

    enum kube_at at;
    struct clock_timer *timer;     /* of KUBE_ENDING and KUBE_PAUSE */
    struct discovery_call *asking; /* of KUBE_ASKING */
    struct discovery *found;       /* the last answer; kept while the server is away */
    struct stream *streams;        /* of KUBE_FOLLOWING and KUBE_ENDING, one per source that is served */
    size_t n_streams;
    bool is_synced;
    int failures;                 /* of discovery, in a row */
    struct error lost;            /* what the listener was told last; code ERR_NONE while the stream runs */
    struct reflector_counts past; /* of streams that are no more */

    struct call *calls;    /* on their way */
    bool may_not_nominate; /* the server said so since this stream began: see nominate() */
    bool may_not_group;    /* the same of creating PodGroups: see kube_pod_groups_refused() */
};

static inline struct kube *kube_of(struct cluster *port)
{
    return (struct kube *)port;
}

/* ---- calls.c: the operations of the port that are requests ---- */

void kube_create(struct cluster *port, const json_t *object, cluster_done *done, void *ctx);
void kube_get(struct cluster *port, const char *kind, const char *ns, const char *name, cluster_done *done, void *ctx);
void kube_remove(struct cluster *port, const char *kind, const char *ns, const char *name, const char *uid,
                 cluster_done *done, void *ctx);
void kube_erase(struct cluster *port, const char *ns, const char *pod, const char *uid, cluster_done *done, void *ctx);
void kube_release(struct cluster *port, const char *ns, const char *claim, const char *uid, cluster_done *done,
                  void *ctx);
void kube_ungate(struct cluster *port, const char *ns, const char *pod, const char *node, cluster_done *done,
                 void *ctx);
void kube_allocate(struct cluster *port, const char *ns, const char *claim, const char *uid, const json_t *allocation,
                   const json_t *consumers, cluster_done *done, void *ctx);
void kube_bind(struct cluster *port, const char *ns, const char *pod, const char *uid, const char *node,
               cluster_done *done, void *ctx);
void kube_logs(struct cluster *port, const char *ns, const char *pod, size_t tail_lines, cluster_done *done, void *ctx);
/* We have no right to create PodGroups; told once. */
void kube_pod_groups_refused(struct kube *kube, const struct error *err);
/* Nobody waits for them any more. */
void kube_calls_free(struct kube *kube);

#endif
