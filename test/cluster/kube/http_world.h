/* test/cluster/kube/http_world.h - a scripted API server, a folder with a kubeconfig for it, and a client. */
#ifndef QUEUED_TEST_KUBE_HTTP_WORLD_H
#define QUEUED_TEST_KUBE_HTTP_WORLD_H

#include <stdbool.h>

#include "allocator/base/str.h"
#include "queued/cluster/kube/access.h"
#include "queued/cluster/kube/http.h"
#include "test/cluster/kube/https_stub.h"
#include "test/cluster/kube/pki.h"

enum server_kind { SERVER_GOOD, SERVER_OTHER_CA, SERVER_OTHER_NAME, SERVER_EXPIRED, SERVER_NOT_YET, SERVER_PLAIN };

struct http_world {
    struct event_base *base;
    struct pki *pki, *other;
    struct https_stub *stub;
    char folder[64];
    struct access *access;
    struct http *http;
    bool is_over; /* the loop waited in vain */
};

/* The certificate of SERVER_OTHER_NAME is for api.test alone. In the folder: ca.crt, client.crt, client.key (of jane).
 */
void http_world_begin(struct http_world *world, enum server_kind kind);
void http_world_end(struct http_world *world);
/* Write a file of the folder. */
void http_world_write(const struct http_world *world, const char *name, const char *text);
void http_world_script(const struct http_world *world, const char *name, const char *text); /* executable */
/* A kubeconfig for the stub: lines of YAML (flow style, "key: value, key: value") for its cluster and its user. NULL
 * `cluster`: "certificate-authority: ca.crt". */
void http_world_kubeconfig(const struct http_world *world, const char *cluster, const char *user);
/* Read it, with a client unless it fails. */
int http_world_open(struct http_world *world, const struct http_options *options, struct error *err);
/* Run the loop until *flag is not 0, a few seconds at most. */
void http_world_run(struct http_world *world, const int *flag);
void http_world_pass(struct http_world *world, int ms);

/* An answer that is kept. */
struct kept {
    int n;
    int status;
    struct buf body, data;
    int64_t retry_after_ms;
    bool may_be_done;
    struct error err;
};
void kept_done(void *ctx, const struct http_answer *answer); /* ctx: struct kept */
int kept_data(void *ctx, const char *bytes, size_t len, struct error *err);
void kept_release(struct kept *kept);

#endif
