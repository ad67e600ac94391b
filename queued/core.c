#include "queued/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "queued/internal.h"
#include "queued/lifecycle/ask_objects.h"
#include "queued/log.h"
#include "store/rows.h"
#include "store/store.h"

#include "allocator/base/banned.h"

#define DEFAULT_LAUNCH_TIMEOUT_MS   300000
#define DEFAULT_RECONCILE_PERIOD_MS 30000
#define FULLER_PAUSE_MS             1000
#define KEY_LIFE_MS                 (24 * 3600 * 1000) /* how long an idempotency key is remembered */

static const char *text(const json_t *object, const char *a, const char *b)
{
    return json_string_value(json_object_get(json_object_get(object, a), b));
}

/* ---- what the cluster can do ---- */

static int release_of(const json_t *described)
{
    const char *version = json_string_value(json_object_get(described, "version"));

    return version && strncmp(version, "1.", 2) == 0 ? (int)strtol(version + 2, NULL, 10) : 0;
}

static int features_of(const struct core *core, struct features *out, struct error *err)
{
    const char *detected = json_string_value(json_object_get(core->described, "features"));
    const char *changes = core->options.features;
    int result = 0;

    *out = features_default(core->options.release ? core->options.release : release_of(core->described));
    if (!core->options.release && detected && features_change(out, detected, err) < 0)
        result = error_wrap(err, "features of the cluster");
    if (result == 0 && changes && features_change(out, changes, err) < 0)
        result = error_wrap(err, "features");
    return result;
}

static void ask_what_it_is(struct core *core)
{
    json_decref(core->described);
    core->described = core->options.cluster->ops->describe(core->options.cluster);
}

static const char *on_provisioning(void *ctx)
{
    const struct core *core = ctx;

    return json_string_value(json_object_get(core->described, "provisioning"));
}

/* ---- the cluster's stream ---- */

static char *key_of(const json_t *object)
{
    const char *ns = text(object, "metadata", "namespace");
    BUF key = {0};

    buf_addf(&key, "%s/%s/%s", json_string_value(json_object_get(object, "kind")), ns ? ns : "",
             text(object, "metadata", "name"));
    return buf_take(&key);
}

static bool is_of(const json_t *object, const char *kind)
{
    return strcmp(json_string_value(json_object_get(object, "kind")), kind) == 0;
}

/* Another server's object counts as anybody's. Told once per server, lest a second server fill the log. */
static void note_foreign(struct core *core, const char *key, const json_t *object)
{
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    const char *job = json_string_value(json_object_get(labels, LABEL_JOB));
    const char *server = json_string_value(json_object_get(labels, LABEL_SERVER));
    const char *ns = text(object, "metadata", "namespace");

    json_object_set_new(core->foreign, key,
                        json_pack("{s:s, s:s?, s:s, s:s?, s:s?}", "kind",
                                  json_string_value(json_object_get(object, "kind")), "namespace", ns, "name",
                                  text(object, "metadata", "name"), "job", job, "server", server));
    if (json_object_get(core->others, server ? server : ""))
        return;
    json_object_set_new(core->others, server ? server : "", json_true());
    log_warn("objects.foreign", LOG_STR("server", server), LOG_STR("first", key));
}

/* As the simulation sees another server's object: its job is none that we know. New reference. */
static json_t *as_anybodys(const json_t *object)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)object), *metadata = json_copy(json_object_get(copy, "metadata"));
    json_t *labels = json_copy(json_object_get(metadata, "labels"));

    json_object_del(labels, LABEL_JOB);
    json_object_set_new(metadata, "labels", labels);
    json_object_set_new(copy, "metadata", metadata);
    return copy;
}

static void put_foreign(struct core *core, const char *key, const json_t *object)
{
    json_t *seen = as_anybodys(object);

    note_foreign(core, key, object);
    world_put(core->world, seen, false);
    json_decref(seen);
}

/* It is what it was told to be no more: gone, or ours no longer since its labels were changed. */
static void forget_ours(struct core *core, const char *key)
{
    json_t *before = json_incref(json_object_get(core->ours, key));

    if (!before)
        return;
    json_object_del(core->ours, key);
    lifecycle_observe(core->lifecycle, before, true); /* comes back through on_assume */
    json_decref(before);
}

/* ---- nodes that do not answer ---- */

static bool is_ready(const json_t *node)
{
    const json_t *conditions = json_object_get(json_object_get(node, "status"), "conditions"), *condition;
    size_t i;

    json_array_foreach (conditions, i, condition) {
        const char *type = json_string_value(json_object_get(condition, "type"));
        const char *status = json_string_value(json_object_get(condition, "status"));

        if (type && strcmp(type, "Ready") == 0)
            return status && strcmp(status, "True") == 0;
    }
    return json_array_size(conditions) == 0; /* as the simulation has it */
}

static void note_node(struct core *core, const json_t *node, bool is_gone)
{
    const char *name = text(node, "metadata", "name");
    bool was_silent = json_object_get(core->silent, name) != NULL, is_silent = !is_gone && !is_ready(node);

    if (is_silent && !was_silent)
        json_object_set_new(core->silent, name, json_integer((json_int_t)core_now_ms(core)));
    if (!is_silent && was_silent)
        json_object_del(core->silent, name);
    if (is_gone || is_silent != was_silent)
        lifecycle_nodes_changed(core->lifecycle);
}

/* A node that is not there has been silent for as long as one likes. */
static bool on_node_is_silent(void *ctx, const char *node, int64_t *out_since_ms)
{
    struct core *core = ctx;
    const json_t *since = json_object_get(core->silent, node);
    bool is_there = world_has(core->world, "Node", NULL, node);

    *out_since_ms = is_there ? json_integer_value(since) : 0;
    return !is_there || since;
}

/* ---- quotas that became fuller ---- */

/* Nobody may start because of it, but who waits for the namespace is told numbers. Not at once: a quota changes with
 * every object that is created. */
static void on_fuller(void *ctx)
{
    struct core *core = ctx;
    json_t *fuller = world_take_fuller(core->world);
    const struct job_list *jobs = lifecycle_jobs(core->lifecycle);

    core->is_fuller_due = false;
    for (size_t i = 0; json_object_size(fuller) > 0 && i < jobs->n; i++) {
        const struct job *job = jobs->items[i];

        core->wants_plan |= job->state == JOB_PENDING && job->wait.is_known && job->wait.layer == LAYER_QUOTA &&
                            json_object_get(fuller, job_ns(job));
    }
    json_decref(fuller);
}

static void note_quota(struct core *core)
{
    if (!core->is_fuller_due)
        clock_timer_set(core->fuller_timer, core_now_ms(core) + FULLER_PAUSE_MS);
    core->is_fuller_due = true;
}

/* ---- changes ---- */

static void on_changed(void *ctx, enum cluster_change change, const json_t *object)
{
    struct core *core = ctx;
    char *key = key_of(object);
    bool is_gone = change == CLUSTER_GONE, is_ours = lifecycle_is_ours(core->lifecycle, object);

    core->is_changed = true;
    core->has_new_claims |= !is_ours && is_of(object, "ResourceClaim");
    if (is_of(object, "Node"))
        note_node(core, object, is_gone);
    if (is_of(object, "ResourceQuota"))
        note_quota(core);
    json_object_del(core->foreign, key);
    if (is_gone && is_ours) {
        json_object_del(core->ours, key);
        lifecycle_observe(core->lifecycle, object, true);
    } else if (is_ours) {
        json_object_set(core->ours, key, (json_t *)(uintptr_t)object);
        lifecycle_observe(core->lifecycle, object, false);
    } else if (is_gone) {
        forget_ours(core, key);
        world_remove(core->world, json_string_value(json_object_get(object, "kind")),
                     text(object, "metadata", "namespace"), text(object, "metadata", "name"));
    } else {
        forget_ours(core, key);
        if (json_object_get(json_object_get(json_object_get(object, "metadata"), "labels"), LABEL_JOB))
            put_foreign(core, key, object);
        else
            world_put(core->world, object, false);
    }
    free(key);
}

/* The cluster may be another one than when the server started: not yet reached then, or upgraded since. */
static void on_began(void *ctx)
{
    struct core *core = ctx;
    struct features features;
    struct error err = {0};

    ask_what_it_is(core);
    if (features_of(core, &features, &err) < 0) /* the administrator's changes were checked at the start */
        log_warn("cluster.features", LOG_STR("why", err.text));
    if (memcmp(&features, &core->features, sizeof(features)) == 0)
        return;
    core->features = features;
    world_free(core->world);
    core->world = world_new(&features);
    core->epoch++; /* a plan on its way is void */
    lifecycle_assume_all(core->lifecycle);
}

static void on_synced(void *ctx)
{
    struct core *core = ctx;

    core->is_synced = true;
    core->cluster_lost = (struct error){0};
    core->wants_plan = true;
    lifecycle_stream_synced(core->lifecycle); /* first: it puts what is planned, so that the sweep spares it */
    world_stream_synced(core->world);
    lifecycle_reconcile(core->lifecycle);
    core->is_changed = true;
    log_info("cluster.synced");
}

static void on_lost(void *ctx, const struct error *err)
{
    struct core *core = ctx;

    core->is_synced = false;
    core->cluster_lost = *err;
    json_object_clear(core->ours);
    json_object_clear(core->foreign);
    lifecycle_stream_lost(core->lifecycle);
    world_stream_lost(core->world);
    core->is_changed = true;
    log_warn("cluster.lost", LOG_STR("why", err->text));
}

static void on_assume(void *ctx, const char *kind, const char *ns, const char *name, const json_t *object)
{
    struct core *core = ctx;

    if (object)
        world_put(core->world, object, true);
    else
        world_remove(core->world, kind, ns, name);
}

static const char *on_other_holder(void *ctx, const json_t *result, const char *ns, const char *claim)
{
    struct core *core = ctx;

    return world_other_holder(core->world, result, ns, claim);
}

static void on_job_changed(void *ctx, const struct job *job)
{
    struct core *core = ctx;

    (void)job;
    core->is_changed = true;
}

static json_t *on_drift(void *ctx, const struct job *job)
{
    return charges_now(ctx, job);
}

static json_t *on_device_traits(void *ctx, const char *driver, const char *pool, const char *device)
{
    struct core *core = ctx;
    struct snapshot *snapshot = world_snapshot(core->world);
    json_t *traits = snapshot_device_traits(snapshot, driver, pool, device);

    snapshot_unref(snapshot);
    return traits;
}

static void on_call_done(void *ctx, const struct call_result *result)
{
    struct core *core = ctx;

    lifecycle_call_done(core->lifecycle, result);
    core->is_changed = true;
}

static void on_reconcile(void *ctx)
{
    struct core *core = ctx;

    if (!core->degraded.code)
        store_keys_expire(core->options.store, core_now_ms(core) - KEY_LIFE_MS);
    lifecycle_reconcile(core->lifecycle);
    clock_timer_set(core->reconcile_timer, core_now_ms(core) + core->options.reconcile_period_ms);
}

static void on_due(void *ctx)
{
    (void)ctx; /* the turn that follows looks at the clock */
}

/* ---- loading ---- */

/* What the stream has told of our objects stands in core->ours: a new lifecycle learns it from there. */
static void tell_again(struct core *core)
{
    const char *key;
    json_t *object;

    json_object_foreach (core->ours, key, object)
        lifecycle_observe(core->lifecycle, object, false);
    if (core->is_synced)
        lifecycle_stream_synced(core->lifecycle);
}

int core_load(struct core *core, struct error *err)
{
    struct lifecycle_options options = {
        .store = core->options.store,
        .outbox = core->outbox,
        .clock = core->options.clock,
        .server = core->server,
        .launch_timeout_ms = core->options.launch_timeout_ms,
        .lost_node_timeout_ms = core->options.lost_node_timeout_ms,
        .provisioning_class = core->options.provisioning_class,
        .provisioning_parameters = core->provisioning_parameters,
        .ctx = core,
        .assume = on_assume,
        .changed = on_job_changed,
        .other_holder = on_other_holder,
        .device_traits = on_device_traits,
        .recharge = on_drift,
        .node_is_silent = on_node_is_silent,
        .provisioning = on_provisioning,
    };
    struct lifecycle *lifecycle = NULL;
    struct book *book;

    if (book_load(core->options.store, &book, err) < 0)
        return -1;
    if (lifecycle_new(&options, &lifecycle, err) < 0 || tokens_load(core, err) < 0) {
        lifecycle_free(lifecycle);
        book_unref(book);
        return -1;
    }
    if (core->lifecycle) /* what it planned in a turn that failed is not taken */
        lifecycle_assume_nothing(core->lifecycle);
    book_unref(core->book);
    lifecycle_free(core->lifecycle);
    core->book = book;
    core->lifecycle = lifecycle;
    core->epoch++;
    core->wants_plan = true;
    lifecycle_assume_all(lifecycle);
    tell_again(core);
    return 0;
}

/* ---- beginning and end ---- */

/* "a, b": empty names are left out. */
static void read_bind_classes(struct core *core)
{
    const char *text = core->options.bind_classes ? core->options.bind_classes : "";
    const char **names = mem_array(const char *, strlen(text) + 1);
    char *rest = NULL;

    core->bind_text = mem_strdup(text);
    for (char *name = strtok_r(core->bind_text, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest))
        names[core->bind.n++] = name;
    core->bind.names = names;
}

static void set_up(struct core *core)
{
    struct outbox_options outbox = {.cluster = core->options.cluster,
                                    .done = on_call_done,
                                    .ctx = core,
                                    .crash_at = core->options.crash_at,
                                    .crash = core->options.crash,
                                    .crash_ctx = core->options.crash_ctx};

    if (!core->options.launch_timeout_ms)
        core->options.launch_timeout_ms = DEFAULT_LAUNCH_TIMEOUT_MS;
    if (!core->options.reconcile_period_ms)
        core->options.reconcile_period_ms = DEFAULT_RECONCILE_PERIOD_MS;
    if (core->options.provisioning_class && !core->options.provisioning_class[0])
        core->options.provisioning_class = NULL;
    read_bind_classes(core);
    core->outbox = outbox_new(&outbox);
    core->world = world_new(&core->features);
    core->ours = json_object();
    core->foreign = json_object();
    core->others = json_object();
    core->silent = json_object();
    core->due_timer = clock_timer_new(core->options.clock, on_due, core);
    core->reconcile_timer = clock_timer_new(core->options.clock, on_reconcile, core);
    core->probe_timer = clock_timer_new(core->options.clock, core_probe, core);
    core->fuller_timer = clock_timer_new(core->options.clock, on_fuller, core);
}

static int find_server_id(struct core *core, struct error *err)
{
    if (!core->options.server_id)
        return store_server_id(core->options.store, core->server, err);
    snprintf(core->server, sizeof(core->server), "%s", core->options.server_id);
    return 0;
}

static int read_parameters(struct core *core, struct error *err)
{
    const char *text = core->options.provisioning_parameters;

    if (text && ask_parameters_parse(text, &core->provisioning_parameters, err) < 0)
        return error_wrap(err, "provisioning-parameters");
    return 0;
}

int core_new(const struct core_options *options, struct core **out, struct error *err)
{
    static const struct cluster_listener callbacks = {
        .began = on_began, .changed = on_changed, .synced = on_synced, .lost = on_lost};
    struct core *core = mem_new(struct core);
    struct cluster_listener listener = callbacks;

    core->options = *options;
    ask_what_it_is(core);
    if (features_of(core, &core->features, err) < 0 || find_server_id(core, err) < 0 ||
        read_parameters(core, err) < 0) {
        json_decref(core->described);
        free(core);
        return -1;
    }
    set_up(core);
    if (core_load(core, err) < 0) {
        core_free(core);
        return -1;
    }
    clock_timer_set(core->reconcile_timer, core_now_ms(core) + core->options.reconcile_period_ms);
    listener.ctx = core;
    core->listener = listener;
    core->options.cluster->ops->start(core->options.cluster, &core->listener);
    *out = core;
    return 0;
}

void core_free(struct core *core)
{
    if (!core)
        return;
    planner_round_free(core->round);
    workload_unref(core->workload);
    replies_free(core);
    for (struct core_watch *watch = core->watches, *next; watch; watch = next) {
        next = watch->next;
        free(watch);
    }
    log_requests_free(core);
    tokens_free(core);
    lifecycle_free(core->lifecycle);
    book_unref(core->book);
    outbox_free(core->outbox);
    world_free(core->world);
    free((void *)(uintptr_t)core->bind.names);
    free(core->bind_text);
    json_decref(core->described);
    json_decref(core->provisioning_parameters);
    json_decref(core->ours);
    json_decref(core->foreign);
    json_decref(core->others);
    json_decref(core->silent);
    clock_timer_free(core->due_timer);
    clock_timer_free(core->reconcile_timer);
    clock_timer_free(core->probe_timer);
    clock_timer_free(core->fuller_timer);
    store_rollback(core->options.store);
    free(core);
}

void core_not_leading(struct core *core, const struct error *why)
{
    core->not_leading = why ? *why : (struct error){0};
    core->wants_plan = true;
    core->is_changed = true;
}

/* ---- watches ---- */

struct core_watch *core_watch_new(struct core *core, void (*changed)(void *ctx), void *ctx)
{
    struct core_watch *watch = mem_new(struct core_watch);

    watch->core = core;
    watch->changed = changed;
    watch->ctx = ctx;
    watch->next = core->watches;
    core->watches = watch;
    return watch;
}

void core_watch_free(struct core_watch *watch)
{
    struct core_watch **at;

    if (!watch)
        return;
    if (watch->core->is_telling) { /* the list is being walked: turn.c sweeps it afterwards */
        watch->is_removed = true;
        return;
    }
    for (at = &watch->core->watches; *at != watch; at = &(*at)->next)
        INVARIANT(*at);
    *at = watch->next;
    free(watch);
}
