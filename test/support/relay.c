#include "test/support/relay.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"

enum op { OP_CREATE, OP_GET, OP_REMOVE, OP_ERASE, OP_RELEASE, OP_UNGATE, OP_ALLOCATE, OP_BIND };

/* A call on its way, with what it takes to make it later. */
struct relay_call {
    struct relay *relay;
    unsigned generation;
    cluster_done *done;
    void *ctx;
    bool is_lost;
    enum err_code code;
    enum op op;
    json_t *object, *consumers;
    char *kind, *ns, *name, *uid, *node;
};

/* Something to be told (a change, or the answer of a call), or a call to be made, when its time has come. */
struct relay_later {
    struct relay_later *next;
    int64_t at_ms;
    enum { LATER_CHANGE, LATER_ANSWER, LATER_CALL } what;
    unsigned generation; /* of cores: a change for an older one is dropped */
    enum cluster_change change;
    json_t *object; /* or NULL */
    struct error err;
    struct relay_call *call;
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

/* ---- later ---- */

static void call_free(struct relay_call *call)
{
    json_decref(call->object);
    json_decref(call->consumers);
    free(call->kind);
    free(call->ns);
    free(call->name);
    free(call->uid);
    free(call->node);
    free(call);
}

static void later_add(struct relay *relay, int64_t delay_ms, const struct relay_later *fields)
{
    struct relay_later *later = mem_new(struct relay_later), **at = &relay->later;

    *later = *fields;
    later->at_ms = clock_now_ms(relay->clock) + delay_ms;
    for (struct relay_later *other = relay->later; other; other = other->next)
        if (later->what == LATER_CHANGE && other->what == LATER_CHANGE && other->at_ms > later->at_ms)
            later->at_ms = other->at_ms; /* changes do not overtake each other */
    while (*at && (*at)->at_ms <= later->at_ms)
        at = &(*at)->next;
    later->next = *at;
    *at = later;
    clock_timer_set(relay->later_timer, relay->later->at_ms);
}

static void tell_answer(struct relay_call *call, const struct error *err, const json_t *object)
{
    if (call->generation == call->relay->generation && call->relay->is_attached)
        call->done(call->ctx, err, object);
    call_free(call);
}

static void carry_out(struct relay_call *call, cluster_done *done);
static void on_late_done(void *ctx, const struct error *err, const json_t *object);

static void later_happen(struct relay *relay, struct relay_later *later)
{
    switch (later->what) {
    case LATER_CHANGE:
        if (later->generation == relay->generation && relay->is_core_synced)
            relay->listener.changed(relay->listener.ctx, later->change, later->object);
        break;
    case LATER_ANSWER:
        tell_answer(later->call, later->err.code ? &later->err : NULL, later->object);
        break;
    case LATER_CALL:
        carry_out(later->call, on_late_done);
        break;
    }
    json_decref(later->object);
    free(later);
}

static void on_later(void *ctx)
{
    struct relay *relay = ctx;

    while (relay->later && relay->later->at_ms <= clock_now_ms(relay->clock)) {
        struct relay_later *first = relay->later;

        relay->later = first->next;
        later_happen(relay, first);
    }
    if (relay->later)
        clock_timer_set(relay->later_timer, relay->later->at_ms);
}

static bool has_changes_waiting(const struct relay *relay)
{
    for (const struct relay_later *later = relay->later; later; later = later->next)
        if (later->what == LATER_CHANGE)
            return true;
    return false;
}

static void drop_changes(struct relay *relay)
{
    struct relay_later **at = &relay->later;

    while (*at) {
        struct relay_later *later = *at;

        if (later->what != LATER_CHANGE) {
            at = &later->next;
            continue;
        }
        *at = later->next;
        json_decref(later->object);
        free(later);
    }
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
    if (!relay->is_core_synced)
        return;
    if (relay->stream_lag_ms > 0 || has_changes_waiting(relay))
        later_add(relay, relay->stream_lag_ms,
                  &(struct relay_later){.what = LATER_CHANGE,
                                        .generation = relay->generation,
                                        .change = change,
                                        .object = json_incref((json_t *)(uintptr_t)object)});
    else
        relay->listener.changed(relay->listener.ctx, change, object);
}

static void on_synced(void *ctx)
{
    struct relay *relay = ctx;

    relay->is_behind_synced = true;
    if (relay->is_attached && !relay->is_core_synced)
        clock_timer_set(relay->replay, clock_now_ms(relay->clock));
}

static void tell_lost(struct relay *relay, const struct error *err)
{
    if (!relay->is_core_synced)
        return;
    relay->is_core_synced = false;
    drop_changes(relay);
    relay->listener.lost(relay->listener.ctx, err);
}

/* The cluster behind goes on to tell everything anew; what is gone it has told before. */
static void on_lost(void *ctx, const struct error *err)
{
    tell_lost(ctx, err);
}

void relay_cut(struct relay *relay, int64_t ms)
{
    struct error err = {0};

    error_set(&err, ERR_UNAVAILABLE, "the connection was cut");
    tell_lost(relay, &err);
    if (relay->is_attached && relay->is_behind_synced)
        clock_timer_set(relay->replay, clock_now_ms(relay->clock) + ms);
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

    if (call->op == OP_CREATE && !err && object)
        count_created(call->relay, object);
    if (call->is_lost) {
        error_set(&lost, call->code, "the answer was lost");
        err = &lost;
        object = NULL;
    }
    if (call->relay->answer_lag_ms == 0) {
        tell_answer(call, err, object);
        return;
    }
    later_add(call->relay, call->relay->answer_lag_ms,
              &(struct relay_later){.what = LATER_ANSWER,
                                    .object = json_incref((json_t *)(uintptr_t)object),
                                    .err = err ? *err : (struct error){0},
                                    .call = call});
}

/* A call that is not carried out; told through the cluster behind, so that it does not come from inside the call. */
static void on_refused(void *ctx, const struct error *err, const json_t *object)
{
    (void)err, (void)object;
    on_done(ctx, NULL, NULL);
}

/* Nobody waits for it any more. */
static void on_late_done(void *ctx, const struct error *err, const json_t *object)
{
    (void)err, (void)object;
    call_free(ctx);
}

static void carry_out(struct relay_call *call, cluster_done *done)
{
    struct cluster *behind = call->relay->behind;

    switch (call->op) {
    case OP_CREATE:
        behind->ops->create(behind, call->object, done, call);
        break;
    case OP_GET:
        behind->ops->get(behind, call->kind, call->ns, call->name, done, call);
        break;
    case OP_REMOVE:
        behind->ops->remove(behind, call->kind, call->ns, call->name, call->uid, done, call);
        break;
    case OP_ERASE:
        behind->ops->erase(behind, call->ns, call->name, call->uid, done, call);
        break;
    case OP_RELEASE:
        behind->ops->release(behind, call->ns, call->name, call->uid, done, call);
        break;
    case OP_UNGATE:
        behind->ops->ungate(behind, call->ns, call->name, call->node, done, call);
        break;
    case OP_ALLOCATE:
        behind->ops->allocate(behind, call->ns, call->name, call->uid, call->object, call->consumers, done, call);
        break;
    case OP_BIND:
        behind->ops->bind(behind, call->ns, call->name, call->uid, call->node, done, call);
        break;
    }
}

static struct relay_call *call_copy(const struct relay_call *fields)
{
    struct relay_call *call = mem_new(struct relay_call);

    *call = *fields;
    call->object = json_incref(fields->object);
    call->consumers = json_incref(fields->consumers);
    call->kind = mem_strdup(fields->kind);
    call->ns = mem_strdup(fields->ns);
    call->name = mem_strdup(fields->name);
    call->uid = mem_strdup(fields->uid);
    call->node = mem_strdup(fields->node);
    return call;
}

/* Hand a call on, or let it fail. The texts of `fields` are borrowed. */
static void call_make(struct relay *relay, struct relay_call *fields, cluster_done *done, void *ctx)
{
    struct relay_call *call;
    bool fails = ++relay->n_calls == relay->fail_nth;

    fields->relay = relay;
    fields->generation = relay->generation;
    fields->done = done;
    fields->ctx = ctx;
    fields->is_lost = fails;
    fields->code = relay->code;
    call = call_copy(fields);
    if (!fails || relay->fault == RELAY_LOSE) {
        carry_out(call, on_done);
        return;
    }
    if (relay->fault == RELAY_LATE)
        later_add(relay, relay->late_ms, &(struct relay_later){.what = LATER_CALL, .call = call_copy(fields)});
    relay->behind->ops->get(relay->behind, "Node", NULL, "no-such-node", on_refused, call);
}

/* The texts of a call's fields are read only, but struct relay_call owns its own: hence the casts away from const. */
#define TEXT(s) ((char *)(uintptr_t)(s))

static void port_create(struct cluster *port, const json_t *object, cluster_done *done, void *ctx)
{
    call_make(of(port), &(struct relay_call){.op = OP_CREATE, .object = (json_t *)(uintptr_t)object}, done, ctx);
}

static void port_get(struct cluster *port, const char *kind, const char *ns, const char *name, cluster_done *done,
                     void *ctx)
{
    call_make(of(port), &(struct relay_call){.op = OP_GET, .kind = TEXT(kind), .ns = TEXT(ns), .name = TEXT(name)},
              done, ctx);
}

static void port_remove(struct cluster *port, const char *kind, const char *ns, const char *name, const char *uid,
                        cluster_done *done, void *ctx)
{
    call_make(
        of(port),
        &(struct relay_call){.op = OP_REMOVE, .kind = TEXT(kind), .ns = TEXT(ns), .name = TEXT(name), .uid = TEXT(uid)},
        done, ctx);
}

static void port_erase(struct cluster *port, const char *ns, const char *pod, const char *uid, cluster_done *done,
                       void *ctx)
{
    call_make(of(port), &(struct relay_call){.op = OP_ERASE, .ns = TEXT(ns), .name = TEXT(pod), .uid = TEXT(uid)}, done,
              ctx);
}

static void port_release(struct cluster *port, const char *ns, const char *claim, const char *uid, cluster_done *done,
                         void *ctx)
{
    call_make(of(port), &(struct relay_call){.op = OP_RELEASE, .ns = TEXT(ns), .name = TEXT(claim), .uid = TEXT(uid)},
              done, ctx);
}

static void port_ungate(struct cluster *port, const char *ns, const char *pod, const char *node, cluster_done *done,
                        void *ctx)
{
    call_make(of(port), &(struct relay_call){.op = OP_UNGATE, .ns = TEXT(ns), .name = TEXT(pod), .node = TEXT(node)},
              done, ctx);
}

static void port_allocate(struct cluster *port, const char *ns, const char *claim, const char *uid,
                          const json_t *allocation, const json_t *consumers, cluster_done *done, void *ctx)
{
    call_make(of(port),
              &(struct relay_call){.op = OP_ALLOCATE,
                                   .object = (json_t *)(uintptr_t)allocation,
                                   .consumers = (json_t *)(uintptr_t)consumers,
                                   .ns = TEXT(ns),
                                   .name = TEXT(claim),
                                   .uid = TEXT(uid)},
              done, ctx);
}

static void port_bind(struct cluster *port, const char *ns, const char *pod, const char *uid, const char *node,
                      cluster_done *done, void *ctx)
{
    call_make(
        of(port),
        &(struct relay_call){.op = OP_BIND, .ns = TEXT(ns), .name = TEXT(pod), .uid = TEXT(uid), .node = TEXT(node)},
        done, ctx);
}

static void port_logs(struct cluster *port, const char *ns, const char *pod, size_t tail_lines, cluster_done *done,
                      void *ctx)
{
    struct relay *relay = of(port);
    struct relay_call fields = {
        .relay = relay, .generation = relay->generation, .done = done, .ctx = ctx, .op = OP_GET};

    relay->behind->ops->logs(relay->behind, ns, pod, tail_lines, on_done, call_copy(&fields));
}

static json_t *port_describe(struct cluster *port)
{
    json_t *described = of(port)->behind->ops->describe(of(port)->behind);

    json_object_update(described, of(port)->said);
    return described;
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
    .erase = port_erase,
    .release = port_release,
    .ungate = port_ungate,
    .allocate = port_allocate,
    .bind = port_bind,
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
                            .said = json_object(),
                            .to_behind = mine};
    relay->replay = clock_timer_new(clock, on_replay, relay);
    relay->later_timer = clock_timer_new(clock, on_later, relay);
    *mine = listener;
    mine->ctx = relay;
    behind->ops->start(behind, mine);
}

void relay_say(struct relay *relay, const char *key, json_t *value)
{
    json_object_set_new(relay->said, key, value);
    relay->listener.began(relay->listener.ctx);
}

void relay_detach(struct relay *relay)
{
    relay->is_attached = relay->is_core_synced = false;
    relay->generation++;
    drop_changes(relay);
}

void relay_release(struct relay *relay)
{
    drop_changes(relay);
    for (struct relay_later *later = relay->later, *next; later; later = next) {
        next = later->next;
        call_free(later->call);
        json_decref(later->object);
        free(later);
    }
    clock_timer_free(relay->replay);
    clock_timer_free(relay->later_timer);
    relay->behind->ops->free(relay->behind);
    json_decref(relay->objects);
    json_decref(relay->created);
    json_decref(relay->said);
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
