#include "queued/book.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/base/quantity.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

/* Rows as they come; the store tells resources and queues before quotas, each by name. */
struct loading {
    struct book *book;
    struct plan_quota *quotas; /* all, in the order of their queues */
    size_t *quota_queue;
    size_t n_quotas, cap_quotas, cap_resources, cap_queues, cap_priorities, cap_defined, cap_parents, n_parents;
    const char **parents; /* of the queues, by name */
    struct error err;
};

enum resource_kind resource_kind_of(const char *name)
{
    static const struct {
        const char *name;
        enum resource_kind kind;
    } builtin[] = {{"cpu", RESOURCE_CPU}, {"memory", RESOURCE_MEMORY}, {"pods", RESOURCE_PODS}};

    for (size_t i = 0; i < ARRAY_SIZE(builtin); i++)
        if (strcmp(builtin[i].name, name) == 0)
            return builtin[i].kind;
    return RESOURCE_DEVICES;
}

static const char *keep(struct book *book, const char *text)
{
    return text ? arena_strdup(&book->arena, text) : NULL;
}

/* At its place by name; the built-in ones come in between. */
static void add_resource(struct loading *loading, struct plan_resource resource, struct book_resource defined)
{
    struct book *book = loading->book;
    size_t n_defined = book->n_resources, at = book->n_resources;

    mem_grow(book->resources, book->n_resources, loading->cap_resources);
    mem_grow(book->defined, n_defined, loading->cap_defined);
    for (; at > 0 && strcmp(book->resources[at - 1].name, resource.name) > 0; at--) {
        book->resources[at] = book->resources[at - 1];
        book->defined[at] = book->defined[at - 1];
    }
    book->resources[at] = resource;
    book->defined[at] = defined;
    book->n_resources++;
}

static void add_builtin(struct loading *loading)
{
    static const char *const names[] = {"cpu", "memory", "pods"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        add_resource(loading, (struct plan_resource){.name = names[i], .kind = resource_kind_of(names[i])},
                     (struct book_resource){0});
}

static void load_resource(void *ctx, const struct resource_row *row)
{
    struct loading *loading = ctx;
    struct device_matcher *matcher;

    if (loading->err.code || device_matcher_new(row->device_class, row->selector, &matcher, &loading->err) < 0) {
        error_wrap(&loading->err, "resource %s", row->name);
        return;
    }
    add_resource(loading,
                 (struct plan_resource){.name = keep(loading->book, row->name),
                                        .kind = RESOURCE_DEVICES,
                                        .matcher = matcher,
                                        .capacity = keep(loading->book, row->capacity)},
                 (struct book_resource){keep(loading->book, row->device_class), keep(loading->book, row->selector)});
}

static enum queue_state queue_state_of(const char *name)
{
    return strcmp(name, "open") == 0 ? QUEUE_OPEN : strcmp(name, "held") == 0 ? QUEUE_HELD : QUEUE_DRAINED;
}

static void load_queue(void *ctx, const struct queue_row *row)
{
    struct loading *loading = ctx;
    struct book *book = loading->book;

    mem_grow(book->queues, book->n_queues, loading->cap_queues);
    book->queues[book->n_queues++] = (struct plan_queue){
        .name = keep(book, row->name),
        .parent = PLAN_ROOT,
        .weight = row->weight,
        .state = queue_state_of(row->state),
        .placement = job_placement_of(row->placement),
    };
    mem_grow(loading->parents, loading->n_parents, loading->cap_parents);
    loading->parents[loading->n_parents++] = keep(book, row->parent);
}

static void load_quota(void *ctx, const struct quota_row *row)
{
    struct loading *loading = ctx;
    size_t resource = book_find_resource(loading->book, row->resource);
    size_t n = loading->n_quotas;

    if (resource == SIZE_MAX) /* checked when it was applied; a resource is never deleted */
        return;
    if (n == loading->cap_quotas) {
        loading->cap_quotas = n ? n * 2 : 16;
        loading->quotas = mem_resize(loading->quotas, loading->cap_quotas, sizeof(*loading->quotas));
        loading->quota_queue = mem_resize(loading->quota_queue, loading->cap_quotas, sizeof(*loading->quota_queue));
    }
    loading->quota_queue[n] = book_find_queue(loading->book, row->queue);
    loading->quotas[n] = (struct plan_quota){resource, row->nominal, row->borrowing, row->lending};
    loading->n_quotas++;
}

static void load_priority(void *ctx, const struct priority_row *row)
{
    struct loading *loading = ctx;
    struct book *book = loading->book;

    mem_grow(book->priorities, book->n_priorities, loading->cap_priorities);
    book->priorities[book->n_priorities++] = (struct book_priority){keep(book, row->name), row->value};
}

/* Names become indexes; quotas move into the arena, grouped by queue. */
static void link_rows(struct loading *loading)
{
    struct book *book = loading->book;
    struct plan_quota *quotas = arena_array(&book->arena, struct plan_quota, loading->n_quotas);

    for (size_t i = 0; i < book->n_queues; i++)
        if (loading->parents[i])
            book->queues[i].parent = book_find_queue(book, loading->parents[i]);
    for (size_t i = 0; i < loading->n_quotas; i++) {
        struct plan_queue *queue = &book->queues[loading->quota_queue[i]];

        quotas[i] = loading->quotas[i];
        if (queue->n_quotas++ == 0)
            queue->quotas = &quotas[i];
    }
}

int book_load(struct store *store, struct book **out, struct error *err)
{
    struct loading loading = {.book = mem_new(struct book)};
    struct queue_visitor visitor = {&loading, load_queue, load_quota, load_resource, load_priority};
    int failed;

    loading.book->refs = 1;
    add_builtin(&loading);
    failed = store_queues_each(store, &visitor, err);
    if (failed == 0 && loading.err.code) {
        failed = -1;
        if (err)
            *err = loading.err;
    }
    if (failed == 0)
        link_rows(&loading);
    free(loading.quotas);
    free(loading.quota_queue);
    free(loading.parents);
    if (failed < 0)
        book_unref(loading.book);
    else
        *out = loading.book;
    return failed;
}

struct book *book_ref(struct book *book)
{
    book->refs++;
    return book;
}

void book_unref(struct book *book)
{
    if (!book || --book->refs > 0)
        return;
    for (size_t i = 0; i < book->n_resources; i++)
        device_matcher_free((struct device_matcher *)(uintptr_t)book->resources[i].matcher);
    free(book->resources);
    free(book->defined);
    free(book->queues);
    free(book->priorities);
    arena_release(&book->arena);
    free(book);
}

size_t book_find_queue(const struct book *book, const char *name)
{
    for (size_t i = 0; i < book->n_queues; i++)
        if (strcmp(book->queues[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

size_t book_find_resource(const struct book *book, const char *name)
{
    for (size_t i = 0; i < book->n_resources; i++)
        if (strcmp(book->resources[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

const struct book_priority *book_find_priority(const struct book *book, const char *name)
{
    for (size_t i = 0; i < book->n_priorities; i++)
        if (strcmp(book->priorities[i].name, name) == 0)
            return &book->priorities[i];
    return NULL;
}

bool book_is_leaf(const struct book *book, size_t queue)
{
    for (size_t i = 0; i < book->n_queues; i++)
        if (book->queues[i].parent == queue)
            return false;
    return true;
}

static bool units_of(enum resource_kind kind, const struct quantity *quantity, int64_t *out)
{
    return (kind == RESOURCE_CPU ? quantity_to_milli(quantity, out) : quantity_to_int(quantity, out)) && *out >= 0;
}

int amount_parse(enum resource_kind kind, const json_t *value, int64_t *out, struct error *err)
{
    struct arena arena = {0};
    struct quantity quantity;
    int failed = 0;

    if (json_is_integer(value))
        quantity = quantity_of_int(json_integer_value(value));
    else if (json_is_string(value))
        failed = quantity_parse(str_of(json_string_value(value)), &arena, &quantity, err);
    else
        failed = error_set(err, ERR_INVALID, "must be a whole number or a quantity");
    if (failed == 0 && !units_of(kind, &quantity, out))
        failed = error_set(err, ERR_INVALID, "must not be negative, nor too large to count");
    arena_release(&arena);
    return failed;
}

json_t *amount_json(enum resource_kind kind, int64_t amount)
{
    if (amount == STORE_UNLIMITED)
        return json_null();
    if (kind != RESOURCE_CPU)
        return json_integer(amount);
    return amount % 1000 ? json_real((double)amount / 1000) : json_integer(amount / 1000);
}
