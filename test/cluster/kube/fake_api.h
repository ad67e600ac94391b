/* test/cluster/kube/fake_api.h - http.h without a network: requests come to the test, which answers them on the virtual
 * clock. It stands in for http.c when it is linked before the library. */
#ifndef QUEUED_TEST_KUBE_FAKE_API_H
#define QUEUED_TEST_KUBE_FAKE_API_H

#include "allocator/base/rng.h"
#include "allocator/base/str.h"
#include "queued/clock.h"
#include "queued/cluster/kube/http.h"

struct http {
    struct clock *clock;
    struct rng rng;  /* cuts what is sent into pieces */
    struct buf log;  /* a word per request: "list watch@12 list+token list-all " */
    bool logs_paths; /* of what is no watch the path itself */
    size_t n_requests;
    struct http_call *calls; /* open, oldest first */
    /* A request has come; from the loop. */
    void (*arrived)(void *ctx, struct http_call *call);
    void *ctx;
};

struct http_call {
    struct http *http;
    struct http_call *next;
    struct clock_timer *timer;
    char *path;
    struct http_request request;
    void *mark; /* of the test, free()d */
    /* set by fake_end_at() */
    struct http_answer answer;
    bool is_ending;
};

void fake_init(struct http *http, struct clock *clock, uint64_t seed);
void fake_release(struct http *http);

/* Whether it is a watch, and the value of a parameter of its query (percent signs and all); NULL: absent. */
bool fake_is_watch(const struct http_call *call);
char *fake_parameter(const struct http_call *call, const char *name);

/* Bytes of a 2xx answer, in random pieces. Returns false when that ended the call. */
bool fake_send(struct http_call *call, const char *bytes, size_t len);
/* The end: an orderly one, a status with a body, or none. */
void fake_end(struct http_call *call);
void fake_refuse(struct http_call *call, int status, const char *body, int64_t retry_after_ms);
void fake_break(struct http_call *call, enum err_code code);

#endif
