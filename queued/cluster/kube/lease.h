/* queued/cluster/kube/lease.h - one server at a time: a coordination.k8s.io Lease, renewed while we lead.
 *
 * A server without it is passive: it opens no store and touches nothing. A leader that could not renew for the renew
 * limit must end at once, before another may take over; between renewals it acts only while its hold is younger than
 * that (lease_is_held), measured on a clock that also counts suspended time. An orderly end gives the lease back. */
#ifndef QUEUED_KUBE_LEASE_H
#define QUEUED_KUBE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "queued/clock.h"
#include "queued/cluster/kube/http.h"

struct lease;

struct lease_options {
    struct http *http;
    struct clock *clock;
    const char *ns, *name, *identity;
    int64_t duration_ms; /* others wait so long for a holder that is silent; 0: 10,000 */
    int64_t renew_ms;    /* between renewals; 0: 2,000 */
    uint64_t seed;
    void *ctx;
    void (*acquired)(void *ctx);
    void (*waiting)(void *ctx, const char *holder);   /* each time another holder is seen first */
    void (*lost)(void *ctx, const struct error *err); /* after acquired: end now */
};
struct lease *lease_new(const struct lease_options *options); /* begins at once */
/* Whether we may act at this moment. */
bool lease_is_held(const struct lease *lease);
/* Give it back: one request, `done` when it has ended (or after one second). */
void lease_release(struct lease *lease, void (*done)(void *ctx), void *ctx);
void lease_free(struct lease *lease);

#endif
