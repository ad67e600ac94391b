/* The service account of the pod that we run in. */
#include "queued/cluster/kube/access_internal.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/cluster/kube/secret.h"

#include "allocator/base/banned.h"

#define MOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

/* A file of the account as text without white space at its ends. */
static char *read_mounted(const char *folder, const char *name, struct error *err)
{
    BUF path = {0};

    buf_addf(&path, "%s/%s", folder, name);
    return access_read_file(buf_str(&path), ACCESS_MAX_FILE, err);
}

static int set_server(struct access *access, struct error *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    BUF url = {0};

    if (!host || !host[0] || !port || !port[0])
        return error_set(err, ERR_NOT_FOUND,
                         "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
    if (strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:") != strlen(host))
        return error_field(err, "KUBERNETES_SERVICE_HOST", "is no name of a host");
    if (strlen(port) > 5 || strspn(port, "0123456789") != strlen(port))
        return error_field(err, "KUBERNETES_SERVICE_PORT", "is no port");
    buf_addf(&url, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
    access->server = buf_take(&url);
    return 0;
}

static int set_ca(struct access *access, const char *folder, struct error *err)
{
    BUF path = {0};

    access->ca = read_mounted(folder, "ca.crt", err);
    if (!access->ca)
        return -1;
    buf_addf(&path, "%s/ca.crt", folder);
    access->ca_path = buf_take(&path);
    if (access_check_certificates(access->ca, err) < 0)
        return error_wrap(err, "%s/ca.crt", folder);
    return 0;
}

static int set_token(struct access *access, const char *folder, struct error *err)
{
    BUF path = {0};

    buf_addf(&path, "%s/token", folder);
    access->token_path = buf_take(&path);
    access->kind = TOKEN_FILE;
    return access_read_token(access, err);
}

/* It is not always there; then the default one is meant. */
static void set_namespace(struct access *access, const char *folder)
{
    char *text = read_mounted(folder, "namespace", NULL);

    if (text)
        text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-")] = '\0';
    access->namespace = text;
}

int access_from_pod(const char *folder, struct access **out, struct error *err)
{
    CLEANUP(access) *access = access_new();

    if (!folder)
        folder = MOUNT;
    if (set_server(access, err) < 0 || set_ca(access, folder, err) < 0 || set_token(access, folder, err) < 0)
        return error_wrap(err, "service account");
    set_namespace(access, folder);
    access_tls_changed(access);
    *out = TAKE(access);
    return 0;
}
