/* The stream of one cluster:
 *
 *     IDLE --start--> ASKING --found--> FOLLOWING --stale--> ENDING --told--> PAUSE
 *                       ^ |                                                    | ^
 *                       | +------------------------failed----------------------|-+
 *                       +------------------------------------------------------+
 *
 * A reflector must not be freed from within its own call, so that its `stale` only notes the end: ENDING waits for a
 * timer that is due at once. Nothing is told meanwhile, as a stream that begins anew tells everything. */
#include "queued/cluster/kube/kube.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "queued/cluster/kube/kube_internal.h"
#include "queued/log.h"

#include "allocator/base/banned.h"

enum { PAUSE_MS = 1000, PAUSE_MAX_MS = 30000 };

struct stream {
    struct kube *kube;
    const struct source *source;
    struct reflector *reflector;
};

static void ask(struct kube *kube);

static void wake_in(struct kube *kube, enum kube_at at, int64_t ms)
{
    kube->at = at;
    clock_timer_set(kube->timer, clock_now_ms(kube->options.clock) + ms);
}

static void pause(struct kube *kube)
{
    wake_in(kube, KUBE_PAUSE, kube_backoff_ms(&kube->rng, kube->failures, PAUSE_MS, PAUSE_MAX_MS));
}

/* Once per kind of reason: a server that stays away is no news, whichever of our requests says so. */
static void tell_lost(struct kube *kube, const struct error *err)
{
    if (kube->lost.code == err->code)
        return;
    kube->lost = *err;
    kube->listener->lost(kube->listener->ctx, err);
}

/* ---- following ---- */

static void end_streams(struct kube *kube)
{
    for (size_t i = 0; i < kube->n_streams; i++) {
        struct reflector_counts counts = reflector_counts(kube->streams[i].reflector);

        kube->past.lists += counts.lists;
        kube->past.watches += counts.watches;
        kube->past.failures += counts.failures;
        reflector_free(kube->streams[i].reflector);
    }
    free(kube->streams);
    kube->streams = NULL;
    kube->n_streams = 0;
    kube->is_synced = false;
}

static void on_changed(void *ctx, enum cluster_change change, const json_t *object)
{
    const struct stream *stream = ctx;
    struct kube *kube = stream->kube;

    if (kube->at == KUBE_FOLLOWING)
        kube->listener->changed(kube->listener->ctx, change, object);
}

static void on_synced(void *ctx)
{
    const struct stream *stream = ctx;
    struct kube *kube = stream->kube;

    if (kube->at != KUBE_FOLLOWING || kube->is_synced)
        return;
    for (size_t i = 0; i < kube->n_streams; i++)
        if (!reflector_is_synced(kube->streams[i].reflector))
            return;
    kube->is_synced = true;
    kube->failures = 0;
    kube->lost = (struct error){0};
    kube->listener->synced(kube->listener->ctx);
}

static void on_stale(void *ctx, const struct error *err)
{
    struct stream *stream = ctx;
    struct kube *kube = stream->kube;

    if (kube->at != KUBE_FOLLOWING)
        return;
    kube->lost = *err;
    error_wrap(&kube->lost, "%s", stream->source->kind->plural);
    wake_in(kube, KUBE_ENDING, 0);
}

static void follow(struct stream *stream)
{
    struct kube *kube = stream->kube;

    stream->reflector = reflector_new(&(struct reflector_options){
        .http = kube->options.http,
        .clock = kube->options.clock,
        .source = stream->source,
        .version = discovery_version_of(kube->found, stream->source->kind),
        .seed = rng_next(&kube->rng),
        .stale_ms = kube->options.stale_ms,
        .ctx = stream,
        .changed = on_changed,
        .synced = on_synced,
        .stale = on_stale,
    });
}

static void follow_all(struct kube *kube)
{
    kube->at = KUBE_FOLLOWING;
    kube->streams = mem_array(struct stream, n_kube_sources);
    for (size_t i = 0; i < n_kube_sources; i++)
        if (discovery_version_of(kube->found, kube_sources[i].kind))
            kube->streams[kube->n_streams++] = (struct stream){.kube = kube, .source = &kube_sources[i]};
    for (size_t i = 0; i < kube->n_streams; i++)
        follow(&kube->streams[i]);
}

/* ---- asking what it is ---- */

static int check_served(const struct discovery *found, struct error *err)
{
    for (size_t i = 0; i < n_kube_sources; i++) {
        const struct kind *kind = kube_sources[i].kind;

        if (!kind->is_optional && !discovery_version_of(found, kind))
            return error_set(err, ERR_UNAVAILABLE, "the API server (%s) does not serve %s of %s", discovery_git(found),
                             kind->plural, kind->group[0] ? kind->group : "v1");
    }
    return 0;
}

static void on_found(void *ctx, const struct error *err, struct discovery *found)
{
    struct kube *kube = ctx;
    struct error why = err ? *err : (struct error){0};

    kube->asking = NULL;
    if (err)
        error_wrap(&why, "the API server");
    if (err || check_served(found, &why) < 0) {
        discovery_free(found);
        kube->failures++;
        tell_lost(kube, &why);
        pause(kube);
        return;
    }
    discovery_free(kube->found);
    kube->found = found;
    kube->may_not_nominate = false;
    kube->may_not_group = false;
    log_info("cluster.found", LOG_STR("version", discovery_git(found)), LOG_STR("features", discovery_features(found)));
    if (kube->listener->began)
        kube->listener->began(kube->listener->ctx);
    follow_all(kube);
}

static void ask(struct kube *kube)
{
    kube->at = KUBE_ASKING;
    kube->asking = discover(kube->options.http, on_found, kube);
}

static void on_timer(void *ctx)
{
    struct kube *kube = ctx;

    if (kube->at == KUBE_PAUSE) {
        ask(kube);
    } else if (kube->at == KUBE_ENDING) {
        end_streams(kube);
        kube->failures = 1;
        kube->listener->lost(kube->listener->ctx, &kube->lost);
        pause(kube);
    }
}

void kube_pod_groups_refused(struct kube *kube, const struct error *err)
{
    if (kube->may_not_group)
        return;
    kube->may_not_group = true;
    log_warn("cluster.pod-groups", LOG_STR("why", err->text));
    if (kube->listener->began)
        kube->listener->began(kube->listener->ctx);
}

/* ---- the port ---- */

static void kube_start(struct cluster *port, const struct cluster_listener *listener)
{
    struct kube *kube = kube_of(port);

    kube->listener = listener;
    ask(kube);
}

static void add_measured(struct kube *kube, json_t *described)
{
    struct reflector_counts sum = kube->past;

    for (size_t i = 0; i < kube->n_streams; i++) {
        struct reflector_counts counts = reflector_counts(kube->streams[i].reflector);

        sum.lists += counts.lists;
        sum.watches += counts.watches;
        sum.failures += counts.failures;
    }
    json_object_set_new(described, "measured",
                        json_pack("{s:I, s:I, s:I, s:I, s:I}", "clusterRequests",
                                  (json_int_t)http_n_sent(kube->options.http), "clusterRequestFailures",
                                  (json_int_t)http_n_failed(kube->options.http), "clusterLists", (json_int_t)sum.lists,
                                  "clusterWatches", (json_int_t)sum.watches, "clusterWatchFailures",
                                  (json_int_t)sum.failures));
}

/* The apiVersion in which a kind is served, if it is. */
static void add_version_of(const struct discovery *found, const char *kind_name, const char *key, json_t *described)
{
    const struct kind *kind = kind_find(kind_name);
    const char *version = kind ? discovery_version_of(found, kind) : NULL;
    BUF text = {0};

    if (!version)
        return;
    buf_addf(&text, "%s/%s", kind->group, version);
    json_object_set_new(described, key, json_string(buf_str(&text)));
}

static void add_found(const struct discovery *found, json_t *described)
{
    BUF text = {0};

    buf_addf(&text, "1.%d", discovery_minor(found));
    json_object_set_new(described, "version", json_string(buf_str(&text)));
    json_object_set_new(described, "gitVersion", json_string(discovery_git(found)));
    if (discovery_features(found)[0])
        json_object_set_new(described, "features", json_string(discovery_features(found)));
    add_version_of(found, "PodGroup", "podGroup", described);
    add_version_of(found, "ProvisioningRequest", "provisioning", described);
}

static json_t *kube_describe(struct cluster *port)
{
    struct kube *kube = kube_of(port);
    json_t *described =
        json_pack("{s:s, s:s*, s:b}", "kind", "kubernetes", "server", kube->options.server, "makesNamespaces", 0);

    if (kube->found)
        add_found(kube->found, described);
    if (kube->may_not_group)
        json_object_set_new(described, "podGroupDenied", json_true());
    add_measured(kube, described);
    return described;
}

static void kube_free(struct cluster *port)
{
    struct kube *kube = kube_of(port);

    kube_calls_free(kube);
    if (kube->asking)
        discovery_cancel(kube->asking);
    end_streams(kube);
    discovery_free(kube->found);
    clock_timer_free(kube->timer);
    free(kube);
}

static const struct cluster_ops ops = {
    .start = kube_start,
    .create = kube_create,
    .get = kube_get,
    .remove = kube_remove,
    .erase = kube_erase,
    .release = kube_release,
    .ungate = kube_ungate,
    .allocate = kube_allocate,
    .bind = kube_bind,
    .logs = kube_logs,
    .describe = kube_describe,
    .free = kube_free,
};

struct cluster *kube_new(const struct kube_options *options)
{
    struct kube *kube = mem_new(struct kube);

    kube->port.ops = &ops;
    kube->options = *options;
    kube->rng.state = options->seed;
    kube->timer = clock_timer_new(options->clock, on_timer, kube);
    return &kube->port;
}
