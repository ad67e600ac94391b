/* The port's side of the embedded cluster. A request is carried out at once, but nothing is told from inside a call:
 * changes and answers queue up, in order, until the turn's timer fires. The turn then
 *   1. lets the controllers and the scheduler look at what changed, until nothing more follows,
 *   2. makes all of it durable,
 *   3. tells it.
 * So whoever hears of a change may rely on it, also after the power fails. While the state folder cannot be written
 * nothing is told at all. */
#include "queued/cluster/embedded/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/snapshot.h"
#include "queued/clock.h"

#include "allocator/base/banned.h"

#define DISK_RETRY_MS 1000

struct delivery {
    enum { TELL_CHANGE, TELL_SYNCED, TELL_LOST, TELL_ANSWER } what;
    enum cluster_change change;
    json_t *json; /* reference, or NULL */
    cluster_done *done;
    void *ctx;
    struct error *err; /* owned, or NULL */
};

/* ---- telling ---- */

void embedded_wake(struct embedded *cluster)
{
    /* Setting it again would move it behind others of the same instant: harmless, and the same every time. */
    clock_timer_set(cluster->turn, clock_now_ms(cluster->clock));
}

static struct delivery *enqueue(struct embedded *cluster)
{
    mem_grow(cluster->queue, cluster->n_queue, cluster->cap_queue);
    embedded_wake(cluster);
    return &cluster->queue[cluster->n_queue++];
}

void embedded_tell(struct embedded *cluster, enum cluster_change change, json_t *json)
{
    if (cluster->listener)
        *enqueue(cluster) = (struct delivery){.what = TELL_CHANGE, .change = change, .json = json_incref(json)};
}

/* err NULL: success. json is borrowed. */
static void answer(struct embedded *cluster, cluster_done *done, void *ctx, const struct error *err, json_t *json)
{
    struct error *copy = NULL;

    if (!done)
        return;
    if (err) {
        copy = mem_new(struct error);
        *copy = *err;
    }
    *enqueue(cluster) = (struct delivery){
        .what = TELL_ANSWER, .json = err ? NULL : json_incref(json), .done = done, .ctx = ctx, .err = copy};
}

static void deliver(struct embedded *cluster, struct delivery *delivery)
{
    const struct cluster_listener *listener = cluster->listener;

    switch (delivery->what) {
    case TELL_CHANGE:
        listener->changed(listener->ctx, delivery->change, delivery->json);
        break;
    case TELL_SYNCED:
        if (listener->synced)
            listener->synced(listener->ctx);
        break;
    case TELL_LOST:
        if (listener->lost)
            listener->lost(listener->ctx, delivery->err);
        break;
    case TELL_ANSWER:
        delivery->done(delivery->ctx, delivery->err, delivery->json);
        break;
    }
    json_decref(delivery->json);
    free(delivery->err);
}

/* What the callbacks ask for comes in the next turn. */
static void deliver_all(struct embedded *cluster)
{
    struct delivery *queue = cluster->queue;
    size_t n = cluster->n_queue;

    cluster->queue = NULL;
    cluster->n_queue = cluster->cap_queue = 0;
    for (size_t i = 0; i < n; i++)
        deliver(cluster, &queue[i]);
    free(queue);
}

void embedded_warn(struct embedded *cluster, const struct error *err)
{
    if (cluster->warn)
        cluster->warn(cluster->warn_ctx, err);
}

/* ---- the turn ---- */

const struct snapshot *embedded_snapshot(struct embedded *cluster)
{
    if (!cluster->snapshot)
        cluster->snapshot = snapshot_builder_build(cluster->model);
    return cluster->snapshot;
}

static void run_controllers(struct embedded *cluster)
{
    for (;;) {
        struct entry *entry;

        evictions_refresh(cluster);
        entry = entry_pop(cluster);
        if (entry)
            controllers_look(entry);
        else if (cluster->is_scheduling_due)
            schedule_pass(cluster);
        else
            return;
    }
}

static bool make_durable(struct embedded *cluster)
{
    struct error err = {0};

    if (!cluster->disk || disk_flush(cluster->disk, cluster->version, &err) == 0) {
        cluster->is_disk_failing = false;
        return true;
    }
    if (!cluster->is_disk_failing)
        embedded_warn(cluster, &err);
    cluster->is_disk_failing = true;
    return false;
}

static void on_turn(void *ctx)
{
    struct embedded *cluster = ctx;

    run_controllers(cluster);
    clock_timer_cancel(cluster->turn);
    if (make_durable(cluster))
        deliver_all(cluster);
    else
        clock_timer_set(cluster->turn, clock_now_ms(cluster->clock) + DISK_RETRY_MS);
}

static void on_ready(void *ctx)
{
    struct embedded *cluster = ctx;

    cluster->is_scheduling_due = true;
    embedded_wake(cluster);
}

/* ---- the port ---- */

static struct embedded *of(struct cluster *cluster)
{
    return (struct embedded *)cluster; /* its first member */
}

static void tell_all(struct embedded *cluster)
{
    for (size_t k = 0; k < KIND_COUNT; k++) {
        const struct entry *entry;

        DL_FOREACH (cluster->lists[k], entry)
            if (entry_is_told(entry))
                embedded_tell(cluster, CLUSTER_PUT, entry->json);
    }
    *enqueue(cluster) = (struct delivery){.what = TELL_SYNCED};
}

static void port_start(struct cluster *port, const struct cluster_listener *listener)
{
    struct embedded *cluster = of(port);

    INVARIANT(!cluster->listener);
    cluster->listener = listener;
    tell_all(cluster);
}

void embedded_lose_stream(struct embedded *cluster)
{
    struct error *err = mem_new(struct error);

    error_set(err, ERR_UNAVAILABLE, "failure on command: the stream is lost");
    *enqueue(cluster) = (struct delivery){.what = TELL_LOST, .err = err};
    tell_all(cluster);
}

/* A request that may be made to fail: run it unless the failure comes first; the answer's error, or NULL. */
struct request {
    struct fault fault;
    bool is_applied;
};

static struct request request_begin(struct embedded *cluster, const char *op, const char *kind)
{
    struct fault fault = fault_take(cluster, op, kind);

    return (struct request){fault, fault.code == ERR_NONE || fault.is_applied};
}

static void request_end(struct embedded *cluster, const struct request *request, int rc, struct error *err,
                        json_t *json, cluster_done *done, void *ctx)
{
    enum err_code code = request->fault.code;

    if (code != ERR_NONE && request->fault.words[0])
        rc = error_set(err, code, "%s", request->fault.words);
    else if (code != ERR_NONE)
        rc = error_set(err, code, "failure on command: %s", err_code_name(code));
    answer(cluster, done, ctx, rc < 0 ? err : NULL, json);
}

static void port_create(struct cluster *port, const json_t *object, cluster_done *done, void *ctx)
{
    struct embedded *cluster = of(port);
    const char *kind = field_text(object, "kind", NULL);
    struct request request = request_begin(cluster, "create", kind ? kind : "");
    struct entry *entry = NULL;
    struct error err = {0};
    int rc = request.is_applied ? api_create(cluster, object, &entry, &err) : 0;

    request_end(cluster, &request, rc, &err, entry ? entry->json : NULL, done, ctx);
}

static void port_get(struct cluster *port, const char *kind, const char *ns, const char *name, cluster_done *done,
                     void *ctx)
{
    struct embedded *cluster = of(port);
    const struct kind *row = served_kind_find(kind);
    struct request request = request_begin(cluster, "get", kind);
    struct entry *entry = row ? entry_find(cluster, row->id, ns, name) : NULL;
    struct error err = {0};
    int rc = 0;

    if (!row)
        rc = error_field(&err, "kind", "\"%.63s\" is not served by the embedded cluster", kind);
    else if (!entry)
        rc = error_set(&err, ERR_NOT_FOUND, "%s \"%s\" not found", row->plural, name);
    request_end(cluster, &request, rc, &err, entry ? entry->json : NULL, done, ctx);
}

static void port_remove(struct cluster *port, const char *kind, const char *ns, const char *name, const char *uid,
                        cluster_done *done, void *ctx)
{
    struct embedded *cluster = of(port);
    struct request request = request_begin(cluster, "remove", kind);
    struct error err = {0};
    int rc = request.is_applied ? api_remove(cluster, kind, ns, name, uid, &err) : 0;

    request_end(cluster, &request, rc, &err, NULL, done, ctx);
}

static void port_erase(struct cluster *port, const char *ns, const char *pod, const char *uid, cluster_done *done,
                       void *ctx)
{
    struct embedded *cluster = of(port);
    struct request request = request_begin(cluster, "remove", "Pod");
    struct error err = {0};

    if (request.is_applied)
        api_erase(cluster, ns, pod, uid);
    request_end(cluster, &request, 0, &err, NULL, done, ctx);
}

static void port_release(struct cluster *port, const char *ns, const char *claim, const char *uid, cluster_done *done,
                         void *ctx)
{
    port_remove(port, "ResourceClaim", ns, claim, uid, done, ctx); /* our controllers have no rate limit */
}

static void port_ungate(struct cluster *port, const char *ns, const char *pod, const char *node, cluster_done *done,
                        void *ctx)
{
    struct embedded *cluster = of(port);
    struct request request = request_begin(cluster, "ungate", "Pod");
    struct entry *entry = NULL;
    struct error err = {0};
    int rc = request.is_applied ? api_ungate(cluster, ns, pod, &entry, &err) : 0;

    (void)node; /* our scheduler needs no hint */
    request_end(cluster, &request, rc, &err, entry ? entry->json : NULL, done, ctx);
}

static void port_allocate(struct cluster *port, const char *ns, const char *claim, const char *uid,
                          const json_t *allocation, const json_t *consumers, cluster_done *done, void *ctx)
{
    struct embedded *cluster = of(port);
    struct request request = request_begin(cluster, "allocate", "ResourceClaim");
    struct entry *entry = NULL;
    struct error err = {0};
    int rc = request.is_applied ? api_allocate(cluster, ns, claim, uid, allocation, consumers, &entry, &err) : 0;

    request_end(cluster, &request, rc, &err, entry ? entry->json : NULL, done, ctx);
}

static void port_bind(struct cluster *port, const char *ns, const char *pod, const char *uid, const char *node,
                      cluster_done *done, void *ctx)
{
    struct embedded *cluster = of(port);
    struct request request = request_begin(cluster, "bind", "Pod");
    struct entry *entry = NULL;
    struct error err = {0};
    int rc = request.is_applied ? api_bind(cluster, ns, pod, uid, node, &entry, &err) : 0;

    request_end(cluster, &request, rc, &err, entry ? entry->json : NULL, done, ctx);
}

static void port_logs(struct cluster *port, const char *ns, const char *pod, size_t tail_lines, cluster_done *done,
                      void *ctx)
{
    struct embedded *cluster = of(port);
    struct request request = request_begin(cluster, "logs", "Pod");
    const struct entry *entry = entry_find(cluster, KIND_POD, ns, pod);
    json_t *text = entry ? pod_logs(entry, tail_lines) : NULL;
    struct error err = {0};
    int rc = text ? 0 : error_set(&err, ERR_NOT_FOUND, "pods \"%s\" not found", pod);

    request_end(cluster, &request, rc, &err, text, done, ctx);
    json_decref(text);
}

static json_t *port_describe(struct cluster *port)
{
    const struct embedded *cluster = of(port);
    const struct entry *node;
    char version[16];
    json_int_t n_nodes = 0;

    DL_FOREACH (cluster->lists[KIND_NODE], node)
        n_nodes++;
    snprintf(version, sizeof(version), "1.%d", cluster->features.release);
    return json_pack("{s:s,s:s,s:I,s:b,s:s*,s:s*}", "kind", "embedded", "version", version, "nodes", n_nodes,
                     "makesNamespaces", (int)cluster->any_namespace, "podGroup",
                     cluster->has_pod_groups ? "scheduling.k8s.io/v1beta1" : NULL, "provisioning",
                     cluster->has_no_provisioning ? NULL : "autoscaling.x-k8s.io/v1");
}

static void port_free(struct cluster *port)
{
    struct embedded *cluster = of(port);

    for (size_t i = 0; i < cluster->n_queue; i++) {
        json_decref(cluster->queue[i].json);
        free(cluster->queue[i].err);
    }
    free(cluster->queue);
    free(cluster->faults);
    entries_free(cluster);
    disk_close(cluster->disk);
    clock_timer_free(cluster->turn);
    clock_timer_free(cluster->ready);
    evictions_free(cluster->evictions);
    snapshot_unref(cluster->snapshot);
    snapshot_builder_free(cluster->model);
    free(cluster);
}

static const struct cluster_ops ops = {
    .start = port_start,
    .create = port_create,
    .get = port_get,
    .remove = port_remove,
    .erase = port_erase,
    .release = port_release,
    .ungate = port_ungate,
    .allocate = port_allocate,
    .bind = port_bind,
    .logs = port_logs,
    .describe = port_describe,
    .free = port_free,
};

/* ---- making one ---- */

#define DEFAULT_RELEASE        37
#define DEFAULT_SCHEDULE_DELAY 50
#define DEFAULT_START_DELAY    100

static int load_all(struct embedded *cluster, const struct embedded_options *options, struct error *err)
{
    struct disk *disk = NULL;

    if (manifests_load(cluster, options->manifests, err) < 0)
        return -1;
    cluster->version = 1;
    if (!options->state)
        return 0;
    if (disk_open(options->state, &disk, err) < 0)
        return -1;
    if (state_load(cluster, disk, err) < 0) {
        disk_close(disk);
        return -1;
    }
    cluster->disk = disk; /* from now on changes are noted */
    return 0;
}

int embedded_new(const struct embedded_options *options, struct clock *clock,
                 void (*warn)(void *ctx, const struct error *err), void *ctx, struct cluster **out, struct error *err)
{
    struct features features = features_default(options->release ? options->release : DEFAULT_RELEASE);
    struct embedded *cluster;

    if (options->features && features_change(&features, options->features, err) < 0)
        return error_wrap(err, "features");
    cluster = mem_new(struct embedded);
    cluster->port.ops = &ops;
    cluster->clock = clock;
    cluster->features = features;
    cluster->has_pod_groups = options->has_pod_groups;
    cluster->has_no_provisioning = options->has_no_provisioning;
    cluster->schedule_delay_ms = options->schedule_delay_ms ? options->schedule_delay_ms : DEFAULT_SCHEDULE_DELAY;
    cluster->start_delay_ms = options->start_delay_ms ? options->start_delay_ms : DEFAULT_START_DELAY;
    cluster->started_ms = clock_now_ms(clock);
    cluster->warn = warn;
    cluster->warn_ctx = ctx;
    cluster->turn = clock_timer_new(clock, on_turn, cluster);
    cluster->ready = clock_timer_new(clock, on_ready, cluster);
    cluster->evictions = evictions_new();
    cluster->model = snapshot_builder_new(&cluster->features, true);
    if (load_all(cluster, options, err) < 0) {
        port_free(&cluster->port);
        return -1;
    }
    warn_of_absent_nodes(cluster);
    cluster->is_scheduling_due = true;
    embedded_wake(cluster);
    *out = &cluster->port;
    return 0;
}

int embedded_command(struct cluster *cluster, const json_t *command, struct error *err)
{
    return command_run(of(cluster), command, err);
}
