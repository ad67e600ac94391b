/* queued/cluster/kube/kube.h - a real Kubernetes behind the port: one API server, reached with libcurl in the event
 * loop.
 *
 * start() discovers what the server is, begins one list and watch per source (kinds.h) and tells the listener `began`,
 * everything, `synced`. When the server cannot be reached for a minute it tells `lost` and begins again. Calls are
 * requests; what each error means stands in status.h. Loop thread only. */
#ifndef QUEUED_KUBE_H
#define QUEUED_KUBE_H

#include "queued/clock.h"
#include "queued/cluster/cluster.h"
#include "queued/cluster/kube/http.h"

struct kube_options {
    struct http *http; /* borrowed */
    struct clock *clock;
    const char *server; /* for describe(): where it is; borrowed, may be NULL */
    int64_t stale_ms;   /* without a working watch for so long, the stream is lost; 0: 60,000 */
    /* May we write at this moment (lease_is_held)? NULL: always. A call that may not is answered ERR_UNAVAILABLE. */
    bool (*may_write)(void *ctx);
    void *ctx;
    uint64_t seed; /* of the jitter */
};
struct cluster *kube_new(const struct kube_options *options);

#endif
