/* queued/cluster/kube/http.h - requests to one API server: libcurl's multi interface inside the event loop.
 *
 * Many requests at a time over few connections (HTTP/2 where the server has it). TLS is verified. Each request carries
 * the current credentials; a 401 renews them and sends it once more. Answers come from the loop, never from inside
 * http_send(). The process ignores SIGPIPE: libcurl writes to connections that the peer has closed. Loop thread only.
 */
#ifndef QUEUED_KUBE_HTTP_H
#define QUEUED_KUBE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/base/error.h"
#include "queued/cluster/kube/access.h"

struct clock;
struct event_base;
struct http;
struct http_call;

struct http_options {
    struct event_base *base;
    struct access *access; /* borrowed */
    const char *user_agent;
    long max_connections; /* for requests other than streams; 0: 8 */
    bool is_http1;        /* never HTTP/2 */
    struct clock *clock;  /* whose turn begins whenever something arrives, before anybody is called; NULL: none */
};
MUST_CHECK int http_new(const struct http_options *options, struct http **out, struct error *err);
/* Requests still on their way are forgotten; nobody is called back. Not from inside a callback of a request. */
void http_free(struct http *http);

struct http_answer {
    int status;       /* of HTTP; 0: there was no answer, see err */
    const char *body; /* what `data` did not get, NUL-terminated; "" when there is none */
    size_t len;
    int64_t retry_after_ms; /* what the server asks for, or -1 */
    bool may_be_done;       /* without an answer: the request may have been carried out all the same. Only a GET is ever
                             * sent a second time by itself when its connection turns out to be dead */
    struct error err;       /* without an answer: ERR_TIMEOUT, ERR_UNAVAILABLE (not reached), ERR_DENIED (TLS, no
                             * credentials), ERR_LIMIT (larger than max_bytes), ERR_REMOTE (broken off) */
};

struct http_request {
    const char *method;       /* "GET" "POST" "PUT" "PATCH" "DELETE" */
    const char *path;         /* below the server's, with its query, escaped */
    const char *content_type; /* of the body; NULL: application/json */
    const char *accept;       /* of the answer; NULL: application/json */
    const char *body;         /* copied; NULL: none */
    size_t len;
    int64_t timeout_ms; /* for the whole request; 0: none */
    int64_t idle_ms;    /* ends when no byte of the answer came for so long; 0: never */
    size_t max_bytes;   /* of a body that is kept; 0: 64 MiB */
    /* The body of a 2xx answer piece by piece, as it comes; NULL: it is kept. Returning -1 ends the request: `done`
     * then gets status 0 with `err` as data() left it in *err. Such requests have connections of their own: a stream
     * that lasts for minutes takes none from the others. */
    int (*data)(void *ctx, const char *bytes, size_t len, struct error *err);
    void (*done)(void *ctx, const struct http_answer *answer); /* once */
    void *ctx;
};
/* Texts are copied. The call lives until `done` returns or it is cancelled. */
struct http_call *http_send(struct http *http, const struct http_request *request);
/* `done` and `data` are not called any more; legal in every callback. The request may have been carried out. */
void http_cancel(struct http_call *call);

/* For measurements: requests sent since the start, and those that got no answer. */
uint64_t http_n_sent(const struct http *http);
uint64_t http_n_failed(const struct http *http);

#endif
