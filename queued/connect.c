#include "queued/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/clock.h"
#include "queued/cluster/kube/access.h"
#include "queued/cluster/kube/http.h"
#include "queued/cluster/kube/kube.h"
#include "queued/cluster/kube/lease.h"
#include "queued/config.h"
#include "queued/log.h"

#include "allocator/base/banned.h"

enum { IDENTITY_MAX = 300 };

struct connection {
    struct connection_options options;
    struct access *access;
    struct http *http;
    struct lease *lease; /* NULL before it is asked for, and without one */
    char *lease_ns, *lease_name, *identity;
    int identity_fd;  /* of the locked file in the state folder, or -1 */
    int64_t begin_ms; /* of waiting for the lease */
};

static uint64_t random_number(void)
{
    uint64_t number;

    INVARIANT(getrandom(&number, sizeof(number), 0) == (ssize_t)sizeof(number));
    return number;
}

/* ---- which cluster ---- */

static int refuse_contradictions(const struct config *config, struct error *err)
{
    bool is_file = config->kubeconfig[0] != '\0', is_embedded = config->embedded[0] != '\0';

    if (is_embedded && is_file)
        return error_field(err, "embedded", "--embedded and --kubeconfig are two clusters: give one");
    if (config->in_cluster && (is_embedded || is_file))
        return error_field(err, "in-cluster", "--in-cluster and --%s are two clusters: give one",
                           is_file ? "kubeconfig" : "embedded");
    if (config->context[0] && !is_file)
        return error_field(err, "context", "--context is of a kubeconfig: give --kubeconfig too");
    if (config->binds_pods && !config->bind_classes[0])
        return error_field(err, "bind-pods", "--bind-pods is for the classes of --bind-classes: give some");
    if (!is_embedded && config->clock == CONFIG_CLOCK_VIRTUAL)
        return error_field(err, "clock", "the virtual clock is of the embedded cluster; Kubernetes lives in real time");
    return 0;
}

static bool is_in_pod(void)
{
    struct error err = {0};
    struct access *access = NULL;
    bool is_pod = access_from_pod(NULL, &access, &err) == 0 || err.code != ERR_NOT_FOUND;

    access_free(access);
    return is_pod;
}

int connection_is_wanted(const struct config *config, bool *out, struct error *err)
{
    if (refuse_contradictions(config, err) < 0)
        return -1;
    *out = !config->embedded[0];
    if (!config->embedded[0] && !config->kubeconfig[0] && !config->in_cluster && !is_in_pod())
        return error_field(
            err, "kubeconfig",
            "which cluster? --kubeconfig FILE is a Kubernetes (its current context, or --context NAME), "
            "--embedded DIR a cluster made of manifests; in a pod its service account is used; see --help");
    return 0;
}

static int open_access(struct connection *connection, struct error *err)
{
    const struct config *config = connection->options.config;
    int result = config->kubeconfig[0]
                     ? access_from_kubeconfig(config->kubeconfig, config->context, &connection->access, err)
                     : access_from_pod(NULL, &connection->access, err);

    if (result < 0)
        return -1;
    if (access_tls(connection->access)->is_unverified)
        log_warn("cluster.unverified", LOG_STR("server", access_server(connection->access)),
                 LOG_STR("detail", "insecure-skip-tls-verify: whoever answers is believed, with all our rights"));
    return 0;
}

/* ---- who we are ---- */

/* Readable by people, and no other process ever had it. */
static char *new_identity(void)
{
    char host[HOST_NAME_MAX + 1] = "";
    BUF text = {0};

    if (gethostname(host, sizeof(host) - 1) < 0 || host[0] == '\0')
        snprintf(host, sizeof(host), "host");
    buf_addf(&text, "%s_%016" PRIx64, host, random_number());
    return buf_take(&text);
}

static bool is_identity(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return len > 0;
}

/* Lock the file of the state folder; false: another process lives there (or the folder knows no locks). */
static bool lock_identity(struct connection *connection)
{
    BUF path = {0};

    if (connection->identity_fd >= 0)
        return true;
    buf_addf(&path, "%s/identity", connection->options.config->state);
    connection->identity_fd = open(buf_str(&path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (connection->identity_fd >= 0 && flock(connection->identity_fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    if (connection->identity_fd >= 0)
        close(connection->identity_fd);
    connection->identity_fd = -1;
    return false;
}

static void find_identity(struct connection *connection)
{
    char text[IDENTITY_MAX];
    ssize_t n = lock_identity(connection) ? pread(connection->identity_fd, text, sizeof(text), 0) : -1;

    connection->identity = n > 0 && is_identity(text, (size_t)n) ? mem_strndup(text, (size_t)n) : new_identity();
}

/* Before it is used for the first time is soon enough: what is lost by a crash only costs the wait. */
static void keep_identity(struct connection *connection)
{
    size_t len = strlen(connection->identity);

    if (!lock_identity(connection))
        return;
    if (ftruncate(connection->identity_fd, 0) < 0 ||
        pwrite(connection->identity_fd, connection->identity, len, 0) != (ssize_t)len)
        log_warn("lease.identity", LOG_STR("why", strerror(errno)));
}

/* lease := [ NAMESPACE "/" ] NAME | "none" | "" */
static int read_lease_key(struct connection *connection, struct error *err)
{
    const char *text = connection->options.config->lease, *slash = strchr(text, '/');
    const char *name = slash ? slash + 1 : text;

    if (strcmp(text, "none") == 0)
        return 0;
    connection->lease_ns =
        slash ? mem_strndup(text, (size_t)(slash - text)) : mem_strdup(access_namespace(connection->access));
    connection->lease_name = mem_strdup(text[0] ? name : "queued");
    if (!connection->lease_ns[0] || !connection->lease_name[0] || strchr(name, '/'))
        return error_field(err, "lease", "lease must be NAMESPACE/NAME, NAME or none, not '%.100s'", text);
    return 0;
}

/* ---- opening ---- */

int connection_open(const struct connection_options *options, struct connection **out, struct error *err)
{
    struct connection *connection = mem_new(struct connection);

    connection->options = *options;
    connection->identity_fd = -1;
    if (open_access(connection, err) < 0 || read_lease_key(connection, err) < 0 ||
        http_new(&(struct http_options){.base = options->base,
                                        .access = connection->access,
                                        .clock = options->clock,
                                        .user_agent = "queued/" QUEUED_VERSION},
                 &connection->http, err) < 0) {
        connection_free(connection);
        return -1;
    }
    find_identity(connection);
    *out = connection;
    return 0;
}

/* ---- the lease ---- */

static void on_acquired(void *ctx)
{
    struct connection *connection = ctx;

    keep_identity(connection);
    log_info("lease.acquired", LOG_STR("namespace", connection->lease_ns), LOG_STR("name", connection->lease_name),
             LOG_STR("identity", connection->identity),
             LOG_INT("waited_ms", clock_now_ms(connection->options.clock) - connection->begin_ms));
    connection->options.leads(connection->options.ctx);
}

static void on_waiting(void *ctx, const char *holder)
{
    struct connection *connection = ctx;
    BUF reason = {0};

    log_info("lease.waiting", LOG_STR("namespace", connection->lease_ns), LOG_STR("name", connection->lease_name),
             LOG_STR("holder", holder));
    buf_addf(&reason, "another server leads: %s", holder);
    connection->options.waits(connection->options.ctx, buf_str(&reason));
    connection->options.taken(connection->options.ctx);
}

static void on_failed(void *ctx, const struct error *err)
{
    struct connection *connection = ctx;
    BUF reason = {0};

    log_warn("lease.failed", LOG_STR("namespace", connection->lease_ns), LOG_STR("name", connection->lease_name),
             LOG_STR("why", err->text));
    buf_addf(&reason, "the lease %s/%s cannot be had: %s", connection->lease_ns, connection->lease_name, err->text);
    connection->options.waits(connection->options.ctx, buf_str(&reason));
}

static void on_lost(void *ctx, const struct error *err)
{
    struct connection *connection = ctx;

    connection->begin_ms = clock_now_ms(connection->options.clock);
    connection->options.lost(connection->options.ctx, err);
}

void connection_begin(struct connection *connection)
{
    const struct config *config = connection->options.config;

    connection->begin_ms = clock_now_ms(connection->options.clock);
    if (!connection->lease_name) {
        connection->options.leads(connection->options.ctx);
        return;
    }
    connection->options.waits(connection->options.ctx, "the lease has not been read yet");
    connection->lease = lease_new(&(struct lease_options){
        .http = connection->http,
        .clock = connection->options.clock,
        .ns = connection->lease_ns,
        .name = connection->lease_name,
        .identity = connection->identity,
        .duration_ms = config->lease_duration_ms,
        .seed = random_number(),
        .ctx = connection,
        .acquired = on_acquired,
        .waiting = on_waiting,
        .lost = on_lost,
        .failed = on_failed,
    });
}

static bool may_write(void *ctx)
{
    const struct connection *connection = ctx;

    return connection->lease ? lease_is_held(connection->lease) : !connection->lease_name;
}

struct cluster *connection_cluster(struct connection *connection)
{
    return kube_new(&(struct kube_options){
        .http = connection->http,
        .clock = connection->options.clock,
        .server = access_server(connection->access),
        .may_write = may_write,
        .ctx = connection,
        .seed = random_number(),
    });
}

void connection_release(struct connection *connection, void (*done)(void *ctx), void *ctx)
{
    if (connection->lease)
        lease_release(connection->lease, done, ctx);
    else
        done(ctx);
}

void connection_free(struct connection *connection)
{
    if (!connection)
        return;
    lease_free(connection->lease);
    http_free(connection->http);
    access_free(connection->access);
    if (connection->identity_fd >= 0)
        close(connection->identity_fd);
    free(connection->lease_ns);
    free(connection->lease_name);
    free(connection->identity);
    free(connection);
}
