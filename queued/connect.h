/* queued/connect.h - the Kubernetes that this process works for: how it is reached, and whether this process leads.
 *
 * Several servers may be pointed at one cluster; one holds the lease and leads, the others wait with closed books. The
 * state folder remembers the identity under which it led: a process that has the folder for itself (a file lock) is the
 * successor of the one that wrote it, and need not wait until that one counts as dead. Loop thread only. */
#ifndef QUEUED_CONNECT_H
#define QUEUED_CONNECT_H

#include <stdbool.h>

#include "allocator/base/error.h"

struct clock;
struct cluster;
struct config;
struct connection;
struct event_base;

struct connection_options {
    struct event_base *base;
    struct clock *clock;
    const struct config *config; /* borrowed, as are the others, as long as the connection lives */
    void *ctx;
    void (*leads)(void *ctx);                         /* this process leads now; maybe from connection_begin() */
    void (*waits)(void *ctx, const char *reason);     /* it does not, and why; each time the reason changes */
    void (*lost)(void *ctx, const struct error *err); /* it leads no more; `leads` may come again */
    void (*taken)(void *ctx);                         /* another leads, seen after `lost` or before the first `leads` */
};

/* Whether the configuration means Kubernetes and not the embedded cluster. Refuses what contradicts itself. In a pod
 * with a service account Kubernetes is what nothing means; elsewhere nothing is refused with what can be said. */
MUST_CHECK int connection_is_wanted(const struct config *config, bool *out, struct error *err);

/* Read the credentials. No request is sent yet. */
MUST_CHECK int connection_open(const struct connection_options *options, struct connection **out, struct error *err);
/* Begin to ask for the lease; without one (config: none) `leads` is called from inside. */
void connection_begin(struct connection *connection);
/* The cluster; its writes are refused while this process does not lead. The caller frees it, before the connection. */
struct cluster *connection_cluster(struct connection *connection);
/* Give the lease back: `done` when others can have it, or after a second. May be called from inside. */
void connection_release(struct connection *connection, void (*done)(void *ctx), void *ctx);
void connection_free(struct connection *connection);

#endif
