/* test/cluster/kube/https_stub.h - an API server of a few lines: HTTP/1.1 over TLS on a loopback port, in the loop of
 * the test, with scripted answers and a record of what was asked. */
#ifndef QUEUED_TEST_KUBE_HTTPS_STUB_H
#define QUEUED_TEST_KUBE_HTTPS_STUB_H

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct https_stub;

enum https_end {
    HTTPS_WHOLE,     /* the whole answer; the connection stays */
    HTTPS_NO_ANSWER, /* closes once the request is read */
    HTTPS_BROKEN,    /* closes after the chunks, which are fewer than promised */
    HTTPS_HANG,      /* after the chunks nothing more comes */
    HTTPS_CLOSE,     /* the whole answer; then it closes without having said so */
    HTTPS_TUNNEL,    /* for CONNECT host:port: 200, then a proxy of bytes */
};

struct https_reply {
    const char *path;      /* answers requests whose path begins so; NULL: all */
    int times;             /* so often; 0: always */
    int status;            /* 0: 200 */
    const char *headers;   /* "Name: value\r\n"..., or NULL */
    const char *chunks[8]; /* of the body, until a NULL */
    size_t repeat;         /* send the first chunk so often; 0: once */
    int delay_ms;          /* before the answer */
    int gap_ms;            /* between chunks */
    enum https_end end;
};

struct https_request {
    char *method, *path, *body;
    char *head;        /* all lines of the head */
    char *client;      /* common name of the client's certificate, or NULL */
    size_t connection; /* its number, from 0 */
};

struct https_options {
    struct event_base *base;
    const char *certificate, *key; /* NULL: plain HTTP */
    const char *client_ca;         /* asks for a client certificate of this authority; NULL: does not ask */
};
struct https_stub *https_stub_new(const struct https_options *options);
void https_stub_free(struct https_stub *stub);
int https_stub_port(const struct https_stub *stub);
/* Borrowed. The first row that fits and is not used up answers; none: 404. */
void https_stub_script(struct https_stub *stub, const struct https_reply *replies, size_t n);
size_t https_stub_n_requests(const struct https_stub *stub);
const struct https_request *https_stub_request(const struct https_stub *stub, size_t i);
size_t https_stub_n_connections(const struct https_stub *stub);

#endif
