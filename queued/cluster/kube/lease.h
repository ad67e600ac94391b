/* queued/cluster/kube/lease.h - one server at a time: a coordination.k8s.io Lease, renewed while we lead.
 *
 * A server without it is passive: it changes nothing in the cluster. A leader that could not renew for four fifths of
 * the duration has lost it, before another may take over; between renewals it acts only while its hold is younger than
 * that (lease_is_held), measured on a clock that also counts suspended time. The last fifth is for its requests that
 * are still on their way. Then it waits as everybody does, and may acquire it again. An orderly end gives the lease
 * back.
 *
 * Others take it when it has not changed for the duration that its holder promised, by their own clock: times written
 * into it are for people only, so clocks of machines need not agree. Every write carries the version that was read, so
 * that of two who try one fails. Source: leader election as Kubernetes' own components do it (observed changes,
 * optimistic concurrency); departures: the limit above is a part of the contract, and a lease that names our identity
 * is ours at once (an earlier process of the same state folder, which cannot live any more). */
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
    const char *ns, *name, *identity; /* borrowed as long as the lease lives */
    int64_t duration_ms;              /* others wait so long for a holder that is silent; 0: 10,000 */
    int64_t renew_ms;                 /* between renewals; 0: a fifth of the duration */
    uint64_t seed;
    void *ctx;
    void (*acquired)(void *ctx);
    void (*waiting)(void *ctx, const char *holder);   /* each time another holder is seen first, also after `lost` */
    void (*lost)(void *ctx, const struct error *err); /* after acquired; it is waited for again */
    /* While waiting: the lease cannot be read or written, and why; once per reason. May be NULL. */
    void (*failed)(void *ctx, const struct error *err);
    int64_t (*boot_ms)(void *ctx); /* for tests; NULL: CLOCK_BOOTTIME */
};
struct lease *lease_new(const struct lease_options *options); /* begins at once; nothing is called from inside */
/* Whether we may act at this moment. */
bool lease_is_held(const struct lease *lease);
/* Give it back: one request, `done` when it has ended (or after one second); at once, from inside, when it is not held.
 * Nothing else is told any more. */
void lease_release(struct lease *lease, void (*done)(void *ctx), void *ctx);
void lease_free(struct lease *lease);

#endif
