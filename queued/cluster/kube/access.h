/* queued/cluster/kube/access.h - where the API server is, how to know it, and how to prove who we are.
 *
 * From a kubeconfig (a context of it: server, certificate authority, client certificate, token, token file, exec
 * plugin) or from the service account of the pod that we run in. What a kubeconfig says and we cannot honour is refused
 * with its field. Secrets stay in here and are wiped when they go; no message ever holds one. Loop thread only. */
#ifndef QUEUED_KUBE_ACCESS_H
#define QUEUED_KUBE_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/error.h"

struct access;
struct event_base;

/* Read a context of a kubeconfig; `context` NULL or "": the current one. */
MUST_CHECK int access_from_kubeconfig(const char *path, const char *context, struct access **out, struct error *err);
/* The service account of this pod: environment and mounted files. `folder` NULL: where Kubernetes mounts it (tests give
 * another). ERR_NOT_FOUND outside of a pod. */
MUST_CHECK int access_from_pod(const char *folder, struct access **out, struct error *err);
void access_free(struct access *access);

/* "https://host:port" with an optional path, without a slash at its end. */
const char *access_server(const struct access *access);
/* The namespace of the context or of the pod; "default" where none is said. */
const char *access_namespace(const struct access *access);

/* What TLS needs. Certificates and keys are PEM text in memory, or NULL. */
struct access_tls {
    const char *ca; /* NULL: the system's */
    const char *certificate, *key;
    const char *server_name; /* other than the host's, or NULL */
    bool is_unverified;      /* insecure-skip-tls-verify: allowed, and warned of by whoever opens it */
    const char *proxy;       /* URL, or NULL */
    uint64_t generation;     /* grows when one of these changed: open new connections */
};
const struct access_tls *access_tls(const struct access *access);

/* A bearer token that is good now; files of certificates that were not looked at for a minute are read again too, and
 * what is whole and new in them counts from then on. `done(ctx, err, token)`: token is borrowed, NULL when the context
 * has none (client certificates). Called at once from inside where no waiting is needed (static, or a file read less
 * than a minute ago), else from the loop when the exec plugin has answered; several askers share one run. Plugins run
 * without a shell, with a time limit, an output limit, and no standard input. */
typedef void access_token_done(void *ctx, const struct error *err, const char *token);
void access_token(struct access *access, struct event_base *base, access_token_done *done, void *ctx);
/* Nobody waits for `ctx` any more. */
void access_token_cancel(struct access *access, void *ctx);
/* Which credentials a token and access_tls() belong to: grows whenever either changed. */
uint64_t access_round(const struct access *access);
/* The server did not accept the credentials of `round` (401): the next access_token() reads or makes new ones, unless
 * that has been done since. False: there is no way to get others. */
bool access_token_refused(struct access *access, uint64_t round);
/* Nor were the connection's certificates, ours or the server's: whether there are others than those of `round` now. The
 * files are read again for that, once a second at most. */
bool access_tls_refused(struct access *access, uint64_t round);

/* Headers that go with each request ("Impersonate-User: jane"); NULL-terminated, borrowed. */
const char *const *access_headers(const struct access *access);
/* The context wants no compressed answers (disable-compression). */
bool access_is_uncompressed(const struct access *access);

#endif
