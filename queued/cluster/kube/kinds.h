/* queued/cluster/kube/kinds.h - the kinds that queued reads and writes: group, versions, plural, and what of them is
 * watched.
 *
 * One table; RBAC in deploy/ is the same list. */
#ifndef QUEUED_KUBE_KINDS_H
#define QUEUED_KUBE_KINDS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "allocator/base/str.h"

struct kind {
    const char *name;        /* "ResourceClaim" */
    const char *group;       /* "" is the core group */
    const char *versions[4]; /* best first */
    const char *plural;      /* "resourceclaims" */
    bool is_namespaced;
    bool is_optional; /* a server may not have it, or not let us read it: then there are none */
};

/* What one list and watch covers. Pods are watched twice: ours whole and to the end; others only while they hold
 * something, trimmed. */
struct source {
    const struct kind *kind;
    const char *label_selector, *field_selector; /* or NULL */
    bool is_ours;                                /* objects with our labels: kept whole */
};

const struct kind *kind_find(const char *name); /* NULL when unknown */
/* All of them, in a fixed order. */
size_t kind_count(void);
const struct kind *kind_at(size_t i);

extern const struct source kube_sources[];
extern const size_t n_kube_sources;

/* The path of a kind's collection, or (name not NULL) of one object:
 * "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/b". `version` is one of the kind's; ns NULL: all namespaces, or
 * cluster scope. Names are escaped. */
void kind_path(const struct kind *kind, const char *version, const char *ns, const char *name, struct buf *out);

/* `text` as a part of a path or a query: all but letters, digits and -._~ as %XX. */
void kind_escape(const char *text, struct buf *out);

/* What queued reads of an object, as a new object of the same form: without managedFields and, of pods and nodes of
 * others, without what nobody reads. What goes on is shared with `object`, not copied. Sets apiVersion and kind, which
 * list items lack. */
json_t *kind_trim(const struct source *source, const char *version, json_t *object);

#endif
