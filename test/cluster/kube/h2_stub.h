/* test/cluster/kube/h2_stub.h - just enough of HTTP/2 over TLS to answer, refuse and break streams: what a client must
 * survive from a real server and cannot make it do. Requests are counted, not read. */
#ifndef QUEUED_TEST_KUBE_H2_STUB_H
#define QUEUED_TEST_KUBE_H2_STUB_H

#include <stddef.h>

struct event_base;
struct h2_stub;

enum h2_action {
    H2_ANSWER,       /* 200 "fine" */
    H2_REFUSE,       /* RST_STREAM: refused, so it was not carried out */
    H2_RESET,        /* RST_STREAM: internal error */
    H2_CLOSE,        /* the connection is closed */
    H2_GO_AWAY,      /* GOAWAY that knows no stream, then closed */
    H2_LAST_ANSWER,  /* 200 "fine", then GOAWAY that knows it; the connection stays open */
    H2_HALF_RESET,   /* 200 and half a body, then RST_STREAM: internal error */
    H2_HALF_CLOSE,   /* 200 and half a body, then closed */
    H2_HALF_GO_AWAY, /* 200 and half a body, then GOAWAY that knows it, then closed */
    H2_HANG,         /* nothing, on this stream */
};

/* The n-th request of all connections gets the n-th action, those beyond get the last one. Borrowed. */
struct h2_stub *h2_stub_new(struct event_base *base, const char *certificate, const char *key,
                            const enum h2_action *actions, size_t n_actions);
void h2_stub_free(struct h2_stub *stub);
int h2_stub_port(const struct h2_stub *stub);
size_t h2_stub_n_requests(const struct h2_stub *stub);
size_t h2_stub_n_connections(const struct h2_stub *stub);

#endif
