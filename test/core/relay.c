#include "test/core/relay.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"

struct relay_call {
    struct relay *relay;
    unsigned generation;
    cluster_done *done;
    void *ctx;
    bool is_lost;
    enum err_code code;
    bool is_create;
};

static struct relay *of(struct cluster *cluster)
{
    return (struct relay *)cluster;
}

static char *key_of(const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *ns = json_string_value(json_object_get(metadata, "namespace"));
    BUF key = {0};

    buf_addf(&key, "%s/%s/%s", json_string_value(json_object_get(object, "kind")), ns ? ns : "",
             json_string_value(json_object_get(metadata, "name")));
    return buf_take(&key);
}

/* ---- the stream ---- */

static void on_changed(void *ctx, enum cluster_change change, const json_t *object)
{
    struct relay *relay = ctx;
    char *key = key_of(object);

    if (change == CLUSTER_PUT)
        json_object_set(relay->objects, key, (json_t *)(uintptr_t)object);
    else
        json_object_del(relay->objects, key);
    free(key);
    if (relay->is_core_synced)
        relay->listener.changed(relay->listener.ctx, change, object);
}

static void on_synced(void *ctx)
{
    struct relay *relay = ctx;

    relay->is_behind_synced = true;
    if (relay->is_attached)
        clock_timer_set(relay->replay, clock_now_ms(relay->clock));
}

static void on_lost(void *ctx, const struct error *err)
{
    (void)ctx, (void)err;
}

static void on_replay(void *ctx)
{
    struct relay *relay = ctx;
    const char *key;
    json_t *object;

    if (!relay->is_attached || relay->is_core_synced)
        return;
    json_object_foreach (relay->objects, key, object)
        relay->listener.changed(relay->listener.ctx, CLUSTER_PUT, object);
    relay->is_core_synced = true;
    relay->listener.synced(relay->listener.ctx);
}

static void port_start(struct cluster *port, const struct cluster_listener *listener)
{
    struct relay *relay = of(port);

    relay->listener = *listener;
    relay->is_attached = true;
    if (relay->is_behind_synced)
        clock_timer_set(relay->replay, clock_now_ms(relay->clock));
}

/* ---- calls ---- */

static void count_created(struct relay *relay, const json_t *object)
{
    char *key = key_of(object);
    json_int_t n = json_integer_value(json_object_get(relay->created, key));

    json_object_set_new(relay->created, key, json_integer(n + 1));
    free(key);
}

static void on_done(void *ctx, const struct error *err, const json_t *object)
{
    struct relay_call *call = ctx;
    struct error lost = {0};

    if (call->is_create && !err)
        count_created(call->relay, object);
    if (call->is_lost)
        error_set(&lost, call->code, "the answer was lost");
    if (call->generation == call->relay->generation && call->relay->is_attached)
        call->done(call->ctx, call->is_lost ? &lost : err, call->is_lost ? NULL : object);
    free(call);
}

static struct relay_call *wrap(struct relay *relay, cluster_done *done, void *ctx)
{
    struct relay_call *call = mem_new(struct relay_call);

    *call = (struct relay_call){.relay = relay, .generation = relay->generation, .done = done, .ctx = ctx};
    return call;
}

/* A call that is not carried out; told through the cluster behind, so that it does not come from inside the call. */
static void on_refused(void *ctx, const struct error *err, const json_t *object)
{
    struct relay_call *call = ctx;

    (void)err, (void)object;
    on_done(call, NULL, NULL);
}

/* Returns the wrapped call to hand on, or NULL when it was refused. */
static struct relay_call *count_call(struct relay *relay, cluster_done *done, void *ctx)
{
    struct relay_call *call = wrap(relay, done, ctx);

    if (++relay->n_calls != relay->fail_nth)
        return call;
    call->is_lost = true;
    call->code = relay->code;
    if (relay->fault == RELAY_LOSE)
        return call;
    relay->behind->ops->get(relay->behind, "Node", NULL, "no-such-node", on_refused, call);
    return NULL;
}

static void port_create(struct cluster *port, const json_t *object, cluster_done *done, void *ctx)
{
    struct relay_call *call = count_call(of(port), done, ctx);

    if (!call)
        return;
    call->is_create = true;
    of(port)->behind->ops->create(of(port)->behind, object, on_done, call);
}

static void port_get(struct cluster *port, const char *kind, const char *ns, const char *name, cluster_done *done,
                     void *ctx)
{
    struct relay_call *call = count_call(of(port), done, ctx);

    if (call)
        of(port)->behind->ops->get(of(port)->behind, kind, ns, name, on_done, call);
}

static void port_remove(struct cluster *port, const char *kind, const char *ns, const char *name, const char *uid,
                        cluster_done *done, void *ctx)
{
    struct relay_call *call = count_call(of(port), done, ctx);

    if (call)
        of(port)->behind->ops->remove(of(port)->behind, kind, ns, name, uid, on_done, call);
}

static void port_ungate(struct cluster *port, const char *ns, const char *pod, cluster_done *done, void *ctx)
{
    struct relay_call *call = count_call(of(port), done, ctx);

    if (call)
        of(port)->behind->ops->ungate(of(port)->behind, ns, pod, on_done, call);
}

static void port_logs(struct cluster *port, const char *ns, const char *pod, size_t tail_lines, cluster_done *done,
                      void *ctx)
{
    of(port)->behind->ops->logs(of(port)->behind, ns, pod, tail_lines, on_done, wrap(of(port), done, ctx));
}

static json_t *port_describe(struct cluster *port)
{
    return of(port)->behind->ops->describe(of(port)->behind);
}

static void port_free(struct cluster *port)
{
    (void)port;
}

static const struct cluster_ops ops = {
    .start = port_start,
    .create = port_create,
    .get = port_get,
    .remove = port_remove,
    .ungate = port_ungate,
    .logs = port_logs,
    .describe = port_describe,
    .free = port_free,
};

/* ---- life ---- */

void relay_init(struct relay *relay, struct cluster *behind, struct clock *clock)
{
    static const struct cluster_listener listener = {.changed = on_changed, .synced = on_synced, .lost = on_lost};
    struct cluster_listener *mine = mem_new(struct cluster_listener);

    *relay = (struct relay){.port = {&ops},
                            .behind = behind,
                            .clock = clock,
                            .objects = json_object(),
                            .created = json_object(),
                            .to_behind = mine};
    relay->replay = clock_timer_new(clock, on_replay, relay);
    *mine = listener;
    mine->ctx = relay;
    behind->ops->start(behind, mine);
}

void relay_detach(struct relay *relay)
{
    relay->is_attached = relay->is_core_synced = false;
    relay->generation++;
}

void relay_release(struct relay *relay)
{
    clock_timer_free(relay->replay);
    relay->behind->ops->free(relay->behind);
    json_decref(relay->objects);
    json_decref(relay->created);
    free(relay->to_behind);
}

size_t relay_n_ours(const struct relay *relay)
{
    const char *key;
    json_t *object;
    size_t n = 0;

    json_object_foreach (relay->objects, key, object)
        n += json_object_get(json_object_get(json_object_get(object, "metadata"), "labels"), LABEL_JOB) != NULL;
    return n;
}
