/* queued/cluster/kube/http_pool.h - connections to one API server with one identity: a multi handle of libcurl whose
 * sockets and timer are events of the loop.
 *
 * A pool never changes: when the certificate did, or when its connections are suspected to be dead, http.c begins
 * another one for new requests, and the old one goes with its last request. Inside of the room's HTTP client only. */
#ifndef QUEUED_KUBE_HTTP_POOL_H
#define QUEUED_KUBE_HTTP_POOL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/error.h"

struct access;
struct clock;
struct event_base;
struct pool;

struct pool_options {
    struct event_base *base;
    const struct access *access; /* copied from: server and what TLS needs */
    const char *user_agent;      /* lives longer than the pool */
    long max_connections;        /* 0: as many as there are requests */
    bool is_http1;               /* no HTTP/2 */
    struct clock *clock;         /* whose turn begins whenever something arrives, or NULL */
    /* A transfer has ended; it is out of the pool already. Never from inside a function of the pool that a callback of
     * libcurl may call; pool_remove(), pool_free() and pool_add() are legal. */
    void (*ended)(void *ctx, CURL *easy, CURLcode result);
    /* libcurl has returned: what its callbacks put off can be done now. */
    void (*settled)(void *ctx);
    void *ctx;
};
MUST_CHECK int pool_new(const struct pool_options *options, struct pool **out, struct error *err);
/* With its connections; transfers must be out of it. Inside `ended` and `settled` it is put off until they return. */
void pool_free(struct pool *pool);

/* A handle to `path` below the server that is verified, identified, and never redirected. Its options live as long as
 * the pool. NULL when the path is no path. */
MUST_CHECK CURL *pool_easy(struct pool *pool, const char *path, struct error *err);
/* A header that each request needs ("Host: ..."), or NULL. */
const char *pool_header(const struct pool *pool);
/* Begin and forget a transfer. Not from inside a callback of libcurl: see pool_is_inside(). */
MUST_CHECK int pool_add(struct pool *pool, CURL *easy, struct error *err);
void pool_remove(struct pool *pool, CURL *easy);
/* libcurl is on the stack: nothing may be added or removed. */
bool pool_is_inside(const struct pool *pool);
/* Of the identity that the pool was made with. */
uint64_t pool_generation(const struct pool *pool);

#endif
