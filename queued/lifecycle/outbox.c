#include "queued/lifecycle/outbox.h"

#include <signal.h>
#include <stdlib.h>

#include "allocator/base/mem.h"
#include "queued/cluster/cluster.h"

#include "allocator/base/banned.h"

struct call {
    struct outbox *outbox;
    struct call *prev, *next;
    enum call_kind kind;
    struct call_for target;
    json_t *body, *consumers;
    char *object_kind, *ns, *name, *uid, *node;
};

/* A list with a head that is never a call. */
struct call_list {
    struct call *first, *last;
};

struct outbox {
    struct outbox_options options;
    struct call_list promised, in_flight;
    size_t n_in_flight;
    int n_effects;
    bool is_dead;
};

/* Behind `before`, or first when that is NULL. */
static void list_insert(struct call_list *list, struct call *before, struct call *call)
{
    call->prev = before;
    call->next = before ? before->next : list->first;
    *(before ? &before->next : &list->first) = call;
    *(call->next ? &call->next->prev : &list->last) = call;
}

/* Jobs in the order of their ids, the calls of each in the order in which they were promised. */
static void list_insert_by_job(struct call_list *list, struct call *call)
{
    struct call *before = list->last;

    while (before && before->target.job > call->target.job)
        before = before->prev;
    list_insert(list, before, call);
}

static void list_drop(struct call_list *list, struct call *call)
{
    *(call->prev ? &call->prev->next : &list->first) = call->next;
    *(call->next ? &call->next->prev : &list->last) = call->prev;
}

static void call_free(struct call *call)
{
    json_decref(call->body);
    json_decref(call->consumers);
    free(call->object_kind);
    free(call->ns);
    free(call->name);
    free(call->uid);
    free(call->node);
    free(call);
}

struct outbox *outbox_new(const struct outbox_options *options)
{
    struct outbox *outbox = mem_new(struct outbox);

    outbox->options = *options;
    return outbox;
}

static void list_free(struct call_list *list)
{
    struct call *call;

    while ((call = list->first)) {
        list_drop(list, call);
        call_free(call);
    }
}

void outbox_discard(struct outbox *outbox)
{
    list_free(&outbox->promised);
}

void outbox_free(struct outbox *outbox)
{
    if (!outbox)
        return;
    list_free(&outbox->promised);
    list_free(&outbox->in_flight);
    free(outbox);
}

static void promise(struct outbox *outbox, const struct call *fields)
{
    struct call *call = mem_new(struct call);

    *call = (struct call){
        .outbox = outbox,
        .kind = fields->kind,
        .target = fields->target,
        .body = json_incref(fields->body),
        .consumers = json_incref(fields->consumers),
        .object_kind = mem_strdup(fields->object_kind),
        .ns = mem_strdup(fields->ns),
        .name = mem_strdup(fields->name),
        .uid = mem_strdup(fields->uid),
        .node = mem_strdup(fields->node),
    };
    list_insert_by_job(&outbox->promised, call);
}

/* The fields of a description are read only, but struct call owns its text: hence the casts away from const. */
#define TEXT(s) ((char *)(uintptr_t)(s))

void outbox_create(struct outbox *outbox, struct call_for target, json_t *body)
{
    const json_t *metadata = json_object_get(body, "metadata");

    promise(outbox, &(struct call){.kind = CALL_CREATE,
                                   .target = target,
                                   .body = body,
                                   .object_kind = TEXT(json_string_value(json_object_get(body, "kind"))),
                                   .ns = TEXT(json_string_value(json_object_get(metadata, "namespace"))),
                                   .name = TEXT(json_string_value(json_object_get(metadata, "name")))});
}

void outbox_get(struct outbox *outbox, struct call_for target, const char *kind, const char *ns, const char *name)
{
    promise(outbox,
            &(struct call){
                .kind = CALL_GET, .target = target, .object_kind = TEXT(kind), .ns = TEXT(ns), .name = TEXT(name)});
}

void outbox_remove(struct outbox *outbox, struct call_for target, const char *kind, const char *ns, const char *name,
                   const char *uid)
{
    promise(outbox, &(struct call){.kind = CALL_REMOVE,
                                   .target = target,
                                   .object_kind = TEXT(kind),
                                   .ns = TEXT(ns),
                                   .name = TEXT(name),
                                   .uid = TEXT(uid)});
}

void outbox_erase(struct outbox *outbox, struct call_for target, const char *ns, const char *pod, const char *uid)
{
    promise(outbox, &(struct call){.kind = CALL_ERASE,
                                   .target = target,
                                   .object_kind = TEXT("Pod"),
                                   .ns = TEXT(ns),
                                   .name = TEXT(pod),
                                   .uid = TEXT(uid)});
}

void outbox_release(struct outbox *outbox, struct call_for target, const char *ns, const char *claim, const char *uid)
{
    promise(outbox, &(struct call){.kind = CALL_RELEASE,
                                   .target = target,
                                   .object_kind = TEXT("ResourceClaim"),
                                   .ns = TEXT(ns),
                                   .name = TEXT(claim),
                                   .uid = TEXT(uid)});
}

void outbox_ungate(struct outbox *outbox, struct call_for target, const char *ns, const char *pod, const char *node)
{
    promise(outbox, &(struct call){.kind = CALL_UNGATE,
                                   .target = target,
                                   .object_kind = TEXT("Pod"),
                                   .ns = TEXT(ns),
                                   .name = TEXT(pod),
                                   .node = TEXT(node)});
}

void outbox_allocate(struct outbox *outbox, struct call_for target, const char *ns, const char *claim, const char *uid,
                     json_t *allocation, json_t *consumers)
{
    promise(outbox, &(struct call){.kind = CALL_ALLOCATE,
                                   .target = target,
                                   .body = allocation,
                                   .consumers = consumers,
                                   .object_kind = TEXT("ResourceClaim"),
                                   .ns = TEXT(ns),
                                   .name = TEXT(claim),
                                   .uid = TEXT(uid)});
}

void outbox_bind(struct outbox *outbox, struct call_for target, const char *ns, const char *pod, const char *uid,
                 const char *node)
{
    promise(outbox, &(struct call){.kind = CALL_BIND,
                                   .target = target,
                                   .object_kind = TEXT("Pod"),
                                   .ns = TEXT(ns),
                                   .name = TEXT(pod),
                                   .uid = TEXT(uid),
                                   .node = TEXT(node)});
}

static void call_done(void *ctx, const struct error *err, const json_t *object)
{
    struct call *call = ctx;
    struct outbox *outbox = call->outbox;
    struct call_result result = {.kind = call->kind,
                                 .target = call->target,
                                 .err = err,
                                 .object = object,
                                 .object_kind = call->object_kind,
                                 .ns = call->ns,
                                 .name = call->name};

    list_drop(&outbox->in_flight, call);
    outbox->n_in_flight--;
    outbox->options.done(outbox->options.ctx, &result);
    call_free(call);
}

static void call_send(struct call *call)
{
    struct cluster *cluster = call->outbox->options.cluster;

    switch (call->kind) {
    case CALL_CREATE:
        cluster->ops->create(cluster, call->body, call_done, call);
        return;
    case CALL_GET:
        cluster->ops->get(cluster, call->object_kind, call->ns, call->name, call_done, call);
        return;
    case CALL_REMOVE:
        cluster->ops->remove(cluster, call->object_kind, call->ns, call->name, call->uid, call_done, call);
        return;
    case CALL_ERASE:
        cluster->ops->erase(cluster, call->ns, call->name, call->uid, call_done, call);
        return;
    case CALL_RELEASE:
        cluster->ops->release(cluster, call->ns, call->name, call->uid, call_done, call);
        return;
    case CALL_UNGATE:
        cluster->ops->ungate(cluster, call->ns, call->name, call->node, call_done, call);
        return;
    case CALL_ALLOCATE:
        cluster->ops->allocate(cluster, call->ns, call->name, call->uid, call->body, call->consumers, call_done, call);
        return;
    case CALL_BIND:
        cluster->ops->bind(cluster, call->ns, call->name, call->uid, call->node, call_done, call);
        return;
    }
}

bool outbox_effect(struct outbox *outbox)
{
    if (outbox->is_dead)
        return false;
    outbox->n_effects++;
    if (outbox->n_effects != outbox->options.crash_at)
        return true;
    if (!outbox->options.crash)
        raise(SIGKILL);
    outbox->is_dead = true;
    outbox->options.crash(outbox->options.crash_ctx);
    return false;
}

bool outbox_is_dead(const struct outbox *outbox)
{
    return outbox->is_dead;
}

int outbox_n_effects(const struct outbox *outbox)
{
    return outbox->n_effects;
}

void outbox_perform(struct outbox *outbox)
{
    while (outbox->promised.first && outbox->n_in_flight < OUTBOX_MAX_IN_FLIGHT) {
        struct call *call = outbox->promised.first;

        if (!outbox_effect(outbox))
            return;
        list_drop(&outbox->promised, call);
        list_insert(&outbox->in_flight, NULL, call);
        outbox->n_in_flight++;
        call_send(call);
    }
}

bool outbox_is_idle(const struct outbox *outbox)
{
    return !outbox->promised.first && outbox->n_in_flight == 0;
}
