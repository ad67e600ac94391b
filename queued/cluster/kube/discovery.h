/* queued/cluster/kube/discovery.h - which Kubernetes this is: version, served API versions, switched-on features.
 *
 * /version, the lists of groups and resources, and (where we may read it) kubernetes_feature_enabled of /metrics, which
 * says exactly which gates are on. */
#ifndef QUEUED_KUBE_DISCOVERY_H
#define QUEUED_KUBE_DISCOVERY_H

#include <jansson.h>

#include "allocator/base/error.h"
#include "queued/cluster/kube/http.h"
#include "queued/cluster/kube/kinds.h"

struct discovery; /* what was found; immutable */
struct discovery_call;

typedef void discovery_done(void *ctx, const struct error *err, struct discovery *found); /* takes found over */
struct discovery_call *discover(struct http *http, discovery_done *done, void *ctx);
void discovery_cancel(struct discovery_call *call);
void discovery_free(struct discovery *discovery);

int discovery_minor(const struct discovery *discovery);       /* 37 */
const char *discovery_git(const struct discovery *discovery); /* "v1.37.2" */
/* The best version of a kind that is served, or NULL. */
const char *discovery_version_of(const struct discovery *discovery, const struct kind *kind);
/* As features_change() reads them: what is known to differ from the release's defaults. "" when nothing is. */
const char *discovery_features(const struct discovery *discovery);

#endif
