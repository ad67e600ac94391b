/* queued/cluster/kube/access_internal.h - the body of struct access, for the files that fill one: kubeconfig.c and
 * pod.c make it, access.c hands out what is in it. Nobody else includes this. */
#ifndef QUEUED_KUBE_ACCESS_INTERNAL_H
#define QUEUED_KUBE_ACCESS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/base/error.h"
#include "queued/cluster/kube/access.h"

struct plugin;
struct plugin_run;

enum token_kind { TOKEN_NONE, TOKEN_FIXED, TOKEN_FILE, TOKEN_PLUGIN };

struct access_waiter {
    access_token_done *done;
    void *ctx;
};

struct access {
    char *server, *namespace;
    char *ca, *certificate, *key, *server_name, *proxy;
    bool is_unverified, is_uncompressed;
    char *ca_path, *certificate_path, *key_path; /* the files that these texts are of; NULL: of no file */
    int64_t files_mono_ms;                       /* when they were last read */
    struct error files_failed;                   /* why that failed; told once */
    struct access_tls tls;                       /* points to the texts above */
    char **headers;                              /* NULL-terminated; NULL: none */
    size_t n_headers, cap_headers;

    enum token_kind kind;
    char *token;             /* the one in use, or NULL */
    char *token_path;        /* TOKEN_FILE */
    int64_t read_mono_ms;    /* when the file was last read, or the plugin last answered */
    int64_t refused_mono_ms; /* when credentials were last dropped because of a 401 */
    bool is_stale;           /* refused: get another one */
    uint64_t round;

    struct plugin *plugin; /* TOKEN_PLUGIN */
    struct plugin_run *run;
    int64_t renew_ms; /* UTC; when the plugin is asked again; INT64_MAX: never by itself */
    struct access_waiter *waiters;
    size_t n_waiters, cap_waiters;
    struct access_waiter *waking; /* while they are told: who is not told yet may still be cancelled */
    size_t n_waking;
};

struct access *access_new(void);
static inline void access_freep(struct access **access)
{
    access_free(*access);
}
/* After the texts of TLS changed. */
void access_tls_changed(struct access *access);
/* "Name: value"; refused when the value has characters that no header may have. */
MUST_CHECK int access_add_header(struct access *access, const char *name, const char *value, struct error *err);

/* Take `text` (wiped on failure) as the token: without white space around it, and only of what a header may bear. */
MUST_CHECK int access_put_token(struct access *access, char *text, struct error *err);
/* Read the token's file now. */
MUST_CHECK int access_read_token(struct access *access, struct error *err);

/* The text of a regular file of at most max_bytes, NUL-terminated, to secret_free(). Refuses NUL bytes. */
MUST_CHECK char *access_read_file(const char *path, size_t max_bytes, struct error *err);
#define ACCESS_MAX_FILE  ((size_t)1 << 20)
#define ACCESS_MAX_TOKEN ((size_t)64 << 10)

/* Certificates as PEM text: at least one, each readable to its end. */
MUST_CHECK int access_check_certificates(const char *pem, struct error *err);
/* A certificate (others of its chain may follow) and its key, as PEM text: readable, not encrypted, of each other. */
MUST_CHECK int access_check_pair(const char *certificate, const char *key, struct error *err);

#endif
