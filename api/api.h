/* api/api.h - the HTTP interface as main sees it. The room's README lists what it serves. Loop thread only. */
#ifndef QUEUED_API_H
#define QUEUED_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "allocator/base/error.h"

struct api;
struct clock;
struct core;
struct event_base;

struct api_options {
    struct event_base *base;
    struct core *core;   /* borrowed; NULL: on standby until api_lead() */
    struct clock *clock; /* borrowed */
    size_t max_body_bytes, max_connections;
    int64_t request_timeout_ms;
    /* What only some servers offer; NULL answers 404. */
    int (*advance)(void *ctx, int64_t ms, struct error *err);            /* move virtual time and come to rest */
    int (*command)(void *ctx, const json_t *command, struct error *err); /* failures of the embedded cluster */
    void *ctx;
};

struct api *api_new(const struct api_options *options);

/* On standby, while another server leads, everything but /healthz is answered 503 with these words (copied). */
void api_standby(struct api *api, const char *reason);
/* The end of standby: from now on this core answers. Once. */
void api_lead(struct api *api, struct core *core);

/* See server_listen_tcp and server_listen_unix. */
MUST_CHECK int api_listen_tcp(struct api *api, const char *listen, int *out_port, struct error *err);
MUST_CHECK int api_listen_unix(struct api *api, const char *path, unsigned mode, struct error *err);

/* Accept nothing new, answer what waits for changes with 503, and let go of the core's watch. Replies to commands in
 * flight still come. */
void api_stop(struct api *api);
/* Everything is answered and written. */
bool api_is_quiet(const struct api *api);
/* Free after the core, which may still answer until it is freed. Stops first if need be (then before the core). */
void api_free(struct api *api);

#endif
