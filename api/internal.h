/* api/internal.h - what the handlers share: a request on its way, and how it is answered. No other room includes it. */
#ifndef QUEUED_API_INTERNAL_H
#define QUEUED_API_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "api/api.h"
#include "api/auth.h"
#include "api/routes.h"
#include "api/server.h"
#include "api/uri.h"
#include "queued/core.h"

struct event;
struct manifest;
struct waiter;

struct api {
    struct api_options options;
    struct core *core; /* NULL: on standby */
    char *standby;     /* why, or NULL */
    struct server *server;
    struct auth_failures failures;
    struct core_watch *watch;
    struct event *changed; /* wakes the waiters */
    int64_t last_wake_us;
    struct waiter *waiters; /* newest first */
    bool is_stopping;
};

/* Owns itself: freed when its exchange ends. Everything in it is in its arena or referenced by it. */
struct request {
    struct api *api;
    struct exchange *exchange;
    struct arena arena;
    struct uri uri;
    const struct route *route;
    const char *args[ROUTE_ARGS_MAX]; /* path parameters in their order, NULL beyond the last */
    struct caller caller;
    json_t *queues;            /* that caller.queues borrows */
    json_t *body;              /* parsed; for documents, their array */
    struct manifest *manifest; /* of a YAML body: knows the lines */
    struct waiter *waiter;     /* while it waits for changes */
    int64_t begin_mono_us;
    int64_t stream_after; /* id of the last event sent */
    bool is_streaming;
};

/* ---- what was asked ---- */

const char *request_param(const struct request *request, const char *name); /* NULL when absent */
int64_t request_int(const struct request *request, const char *name, int64_t absent);
bool request_flag(const struct request *request, const char *name);
/* A header's value as text in the request's arena, or NULL. */
const char *request_header(struct request *request, const char *name);

/* ---- answers; each ends the request, which must not be used afterwards ---- */

void request_json(struct request *request, int status, const json_t *body); /* borrows the body */
/* Takes the result of a query: the body, or NULL with the reason. */
void request_result(struct request *request, json_t *body, const struct error *err);
void request_text(struct request *request, int status, const char *content_type, struct str text);
void request_empty(struct request *request, int status);
void request_fail(struct request *request, const struct error *err); /* the status follows from the code */
void request_problem(struct request *request, int status, enum err_code code, const char *field, const char *detail,
                     const json_t *problems);
/* The core's answer to a command; ctx is the request. The status of success is the route's. */
void request_core_reply(void *ctx, const struct core_reply *reply);

/* Begin a reply that goes on (exchange_stream_add) until request_end_wait. */
void request_stream(struct request *request, const char *content_type);

/* ---- waiting (wait.c) ---- */

/* Call `look` after each turn that changed something, when something written has left, and when `timeout_ms` is over
 * (then with is_over), until it has ended the request. A peer that leaves ends it too. */
void request_wait(struct request *request, int64_t timeout_ms, void (*look)(struct request *request, bool is_over));
void request_wait_again(struct request *request, int64_t timeout_ms); /* a new time for is_over */
/* End it because the server stops: a stream just ends, everything else is told 503. */
void request_end_wait(struct request *request);
void api_wake_all(struct api *api);
void api_end_waits(struct api *api);
void waiter_free(struct waiter *waiter);
void waiter_look(struct waiter *waiter); /* now, if there is one */

/* Answer with the events of the job in args[0] as they happen, until it has ended; of all jobs, for as long as the peer
 * likes, when there is none (stream.c). */
void request_stream_events(struct request *request);

/* States of a job as the core names them: canonical spelling for any case, or NULL. */
const char *job_state_find(const char *name);
bool job_state_is_final(const char *state);

#endif
