/* test/cluster/kube/stub.h - http.h without a network, for whatever sends requests and reads answers: a server that
 * the test serves by a function, and clients (one struct http each) whose connection can be cut. On the virtual clock;
 * stands in for http.c when it is linked before the library. */
#ifndef QUEUED_TEST_KUBE_STUB_H
#define QUEUED_TEST_KUBE_STUB_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/str.h"
#include "queued/clock.h"
#include "queued/cluster/kube/http.h"

struct stub_request {
    const char *method, *path, *body, *content_type; /* body and content_type may be NULL */
};

struct stub_reply {
    int status; /* 0: none; then code and may_be_done say why */
    struct buf body;
    int64_t retry_after_ms;
    enum err_code code;
    bool may_be_done;
};

struct stub_server {
    void (*serve)(void *ctx, const struct stub_request *request, struct stub_reply *out); /* out: 200, "{}" */
    void *ctx;
    struct buf log; /* "GET /path\n" for each request that came */
};

struct http {
    struct clock *clock;
    struct stub_server *server;
    bool is_cut;        /* nothing reaches the server: time runs out */
    bool is_half_cut;   /* the server carries out what it is asked, and no answer comes back */
    int64_t latency_ms; /* of each answer */
    struct http_call *calls;
    uint64_t n_sent, n_failed;
};

void stub_reply(struct stub_reply *out, int status, const char *body);
/* Forgets its open requests. */
void stub_http_release(struct http *http);

#endif
