/* queued/admission/namespace.h - the ResourceQuota objects of namespaces: would the API server let an attempt's objects
 * be created?
 *
 * A queue's quota is the administrator's of queued; this one is the namespace's, kept by the API server, which refuses
 * what is beyond it object by object. So it is asked before anything is created. Counted are status.hard and
 * status.used, as the API server does, and what queued knows to be on its way (namespace_quota_promise).
 *
 * Source: quota admission of Kubernetes 1.37, as observed from outside; needs.h says what of an attempt is counted.
 * Departure: a quota with a scope that is not told by the pod itself (CrossNamespacePodAffinity), and a resource whose
 * use is not known yet (no status.used), decide nothing here. That a pod must name its cpu or memory where a quota
 * limits it is left to the API server too, because a LimitRange may add them. */
#ifndef QUEUED_ADMISSION_NAMESPACE_H
#define QUEUED_ADMISSION_NAMESPACE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "allocator/base/quantity.h"

struct needs;

struct quota_limit {
    const char *resource;
    struct quantity hard, used;
};

/* Which pods a quota is about: all of its scopes must hold. */
struct quota_scope {
    const char *name, *op; /* "PriorityClass", "In" */
    const char *const *values;
    size_t n_values;
};

struct namespace_quota { /* one ResourceQuota */
    const char *ns, *name;
    const struct quota_scope *scopes;
    size_t n_scopes;
    struct quota_limit *limits; /* of all resources whose use is known */
    size_t n_limits;
};

/* Read a v1 ResourceQuota; everything is copied into the arena. Amounts that cannot be read are left out. Returns 0, or
 * -1 with ERR_INVALID when it has no name or namespace. */
MUST_CHECK int namespace_quota_parse(const json_t *object, struct arena *arena, struct namespace_quota *out,
                                     struct error *err);

/* By namespace, then name: the order in which a round wants them. For qsort(). */
int namespace_quota_cmp(const void *a, const void *b);

/* Whether somebody who had to wait for the first version of a ResourceQuota need not for the second: more is allowed,
 * less is used, or it is about other objects. What only became fuller frees nobody. */
bool namespace_quota_is_looser(const json_t *before, const json_t *after);

/* Count `needs` as used already: objects of a live attempt that the cluster has not shown yet. The quota of the API
 * server knows an object as soon as it is created, the stream tells of both a little later; until then it may be
 * counted twice, never not at all. */
void namespace_quota_promise(struct namespace_quota *quota, const struct needs *needs);

/* What a quota says to needs: the first limit that they would exceed, or NULL. *out_needed is what they ask of it, in
 * their arena. `used`: n_limits amounts in place of the limits' own, or NULL. */
const struct quota_limit *namespace_quota_exceeded(const struct namespace_quota *quota, const struct quantity *used,
                                                   const struct needs *needs, struct quantity *out_needed);
/* Add what needs ask of each limit to `used`, n_limits amounts. */
void namespace_quota_use(const struct namespace_quota *quota, struct quantity *used, const struct needs *needs);

#endif
