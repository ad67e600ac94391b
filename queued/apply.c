/* What administrators apply: resources, priority classes, queues. All documents are checked against what would then be,
 * before the first row is written; then the rows are written and the book is read anew. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "queued/admission/share.h"
#include "queued/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

struct wanted_queue {
    struct queue_row row;
    struct quota_row *quotas;
    size_t n_quotas;
    bool is_written;
};

/* One command on its way; everything lives in the arena or is borrowed from the documents. */
struct apply {
    struct core *core;
    struct arena arena;
    const json_t *documents;
    struct resource_row *resources;
    struct priority_row *priorities;
    struct wanted_queue *queues;
    size_t n_resources, n_priorities, n_queues;
    json_t *applied, *problems;
    struct error err;
};

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static const char *name_of(const json_t *document)
{
    return text(json_object_get(document, "metadata"), "name");
}

static int problem(struct apply *a, size_t document, const struct error *err)
{
    if (!a->problems)
        a->problems = json_array();
    if (!a->err.code)
        a->err = *err;
    json_array_append_new(a->problems, json_pack("{s:I, s:s, s:s}", "document", (json_int_t)document, "field",
                                                 err->field, "detail", err->text));
    return -1;
}

/* ---- reading documents into rows ---- */

static const struct wanted_queue *find_wanted(const struct apply *a, const char *name)
{
    for (size_t i = 0; i < a->n_queues; i++)
        if (strcmp(a->queues[i].row.name, name) == 0)
            return &a->queues[i];
    return NULL;
}

static int read_resource(struct apply *a, const json_t *document, struct error *err)
{
    const json_t *spec = json_object_get(document, "spec");
    struct resource_row row = {name_of(document), text(spec, "deviceClassName"), text(spec, "selector"),
                               text(spec, "capacity")};
    struct device_matcher *matcher;

    if (resource_kind_of(row.name) != RESOURCE_DEVICES)
        return error_field(err, "metadata.name", "%s is built in and needs no definition", row.name);
    if (device_matcher_new(row.device_class, row.selector, &matcher, err) < 0) {
        err->field[0] = '\0';
        return error_in(err, "spec.selector");
    }
    device_matcher_free(matcher);
    a->resources[a->n_resources++] = row;
    return 0;
}

static int read_priority(struct apply *a, const json_t *document, struct error *err)
{
    (void)err;
    a->priorities[a->n_priorities++] = (struct priority_row){
        name_of(document), json_integer_value(json_object_get(json_object_get(document, "spec"), "value"))};
    return 0;
}

static int read_amount(const json_t *quota, const char *key, enum resource_kind kind, int64_t otherwise, int64_t *out,
                       struct error *err)
{
    const json_t *value = json_object_get(quota, key);

    *out = otherwise;
    if (!value || json_is_null(value))
        return 0;
    return amount_parse(kind, value, out, err) < 0 ? error_in(err, "%s", key) : 0;
}

static int read_quota(const json_t *quota, const char *queue, struct quota_row *row, struct error *err)
{
    enum resource_kind kind;

    row->queue = queue;
    row->resource = text(quota, "resource");
    if (!row->resource)
        return error_field(err, "resource", "is required");
    kind = resource_kind_of(row->resource);
    if (read_amount(quota, "nominal", kind, 0, &row->nominal, err) < 0 ||
        read_amount(quota, "borrowingLimit", kind, STORE_UNLIMITED, &row->borrowing, err) < 0 ||
        read_amount(quota, "lendingLimit", kind, STORE_UNLIMITED, &row->lending, err) < 0)
        return -1;
    return 0;
}

static int read_quotas(struct apply *a, const json_t *list, struct wanted_queue *queue, struct error *err)
{
    const json_t *quota;
    size_t i;

    queue->quotas = arena_array(&a->arena, struct quota_row, json_array_size(list));
    json_array_foreach (list, i, quota) {
        struct quota_row row;

        if (read_quota(quota, queue->row.name, &row, err) < 0)
            return error_in(err, "spec.quotas[%zu]", i);
        for (size_t k = 0; k < queue->n_quotas; k++)
            if (strcmp(queue->quotas[k].resource, row.resource) == 0) {
                error_field(err, "resource", "has a quota already in this queue");
                return error_in(err, "spec.quotas[%zu]", i);
            }
        queue->quotas[queue->n_quotas++] = row;
    }
    return 0;
}

static int read_queue(struct apply *a, const json_t *document, struct error *err)
{
    const json_t *spec = json_object_get(document, "spec"), *weight = json_object_get(spec, "weight");
    const char *state = text(spec, "state"), *parent = text(spec, "parent");
    struct wanted_queue *queue = &a->queues[a->n_queues];

    queue->row = (struct queue_row){.name = name_of(document),
                                    .parent = parent && parent[0] ? parent : NULL,
                                    .weight = weight ? json_integer_value(weight) : 1,
                                    .state = state ? state : "open",
                                    .placement = text(spec, "placement")};
    if (queue->row.weight < 1 || queue->row.weight > SHARE_MAX_WEIGHT)
        return error_field(err, "spec.weight", "must be 1 to %d", SHARE_MAX_WEIGHT);
    if (find_wanted(a, queue->row.name))
        return error_field(err, "metadata.name", "queue %s is described twice", queue->row.name);
    a->n_queues++;
    return read_quotas(a, json_object_get(spec, "quotas"), queue, err);
}

static const struct {
    const char *kind;
    int (*read)(struct apply *a, const json_t *document, struct error *err);
} kinds[] = {{"Resource", read_resource}, {"PriorityClass", read_priority}, {"Queue", read_queue}};

static void read_document(struct apply *a, size_t i, const json_t *document)
{
    const char *kind = text(document, "kind");
    struct error err = {0};

    if (admin_document_check(document, &err) < 0) {
        problem(a, i, &err);
        return;
    }
    for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
        if (strcmp(kinds[k].kind, kind) == 0 && kinds[k].read(a, document, &err) < 0)
            problem(a, i, &err);
}

/* ---- checking them together with what is there ---- */

static bool has_resource(const struct apply *a, const char *name)
{
    for (size_t i = 0; i < a->n_resources; i++)
        if (strcmp(a->resources[i].name, name) == 0)
            return true;
    return book_find_resource(a->core->book, name) != SIZE_MAX;
}

/* The parent of a queue as it would then be; NULL for the root and for queues that do not exist. */
static const char *parent_of(const struct apply *a, const char *name)
{
    const struct wanted_queue *wanted = find_wanted(a, name);
    const struct book *book = a->core->book;
    size_t queue = book_find_queue(book, name);

    if (wanted)
        return wanted->row.parent;
    if (queue == SIZE_MAX || book->queues[queue].parent == PLAN_ROOT)
        return NULL;
    return book->queues[book->queues[queue].parent].name;
}

static bool has_open_jobs(const struct core *core, const char *queue)
{
    const struct job_list *jobs = lifecycle_jobs(core->lifecycle);

    for (size_t i = 0; i < jobs->n; i++)
        if (!job_has_ended(jobs->items[i]) && strcmp(jobs->items[i]->queue, queue) == 0)
            return true;
    return false;
}

static int check_parent(const struct apply *a, const struct wanted_queue *queue, struct error *err)
{
    const char *parent = queue->row.parent;
    size_t depth = 0, limit = a->core->book->n_queues + a->n_queues;

    if (!parent)
        return 0;
    if (!find_wanted(a, parent) && book_find_queue(a->core->book, parent) == SIZE_MAX)
        return error_field(err, "spec.parent", "there is no queue %s", parent);
    for (const char *above = parent; above; above = parent_of(a, above))
        if (strcmp(above, queue->row.name) == 0 || depth++ > limit)
            return error_field(err, "spec.parent", "queue %s would be its own ancestor", queue->row.name);
    if (has_open_jobs(a->core, parent))
        return error_field(err, "spec.parent", "queue %s has jobs: only a queue without jobs can get queues below it",
                           parent);
    return 0;
}

static int check_queue(const struct apply *a, const struct wanted_queue *queue, struct error *err)
{
    for (size_t i = 0; i < queue->n_quotas; i++)
        if (!has_resource(a, queue->quotas[i].resource)) {
            error_set(err, ERR_INVALID, "there is no resource %s", queue->quotas[i].resource);
            return error_in(err, "spec.quotas[%zu].resource", i);
        }
    return check_parent(a, queue, err);
}

static size_t document_of_queue(const struct apply *a, const char *name)
{
    const json_t *document;
    size_t i;

    json_array_foreach (a->documents, i, document)
        if (strcmp(text(document, "kind"), "Queue") == 0 && strcmp(name_of(document), name) == 0)
            return i;
    return 0;
}

static void check_queues(struct apply *a)
{
    for (size_t i = 0; i < a->n_queues; i++) {
        struct error err = {0};

        if (check_queue(a, &a->queues[i], &err) < 0)
            problem(a, document_of_queue(a, a->queues[i].row.name), &err);
    }
}

/* ---- what changes ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static const char *change_of_resource(const struct apply *a, const struct resource_row *row)
{
    size_t at = book_find_resource(a->core->book, row->name);

    if (at == SIZE_MAX)
        return "created";
    return same_text(a->core->book->defined[at].device_class, row->device_class) &&
                   same_text(a->core->book->defined[at].selector, row->selector) &&
                   same_text(a->core->book->resources[at].capacity, row->capacity)
               ? "unchanged"
               : "changed";
}

static const char *change_of_priority(const struct apply *a, const struct priority_row *row)
{
    const struct book_priority *found = book_find_priority(a->core->book, row->name);

    return !found ? "created" : found->value == row->value ? "unchanged" : "changed";
}

static bool has_quota(const struct apply *a, const struct plan_queue *queue, const struct quota_row *row)
{
    size_t resource = book_find_resource(a->core->book, row->resource);

    for (size_t i = 0; i < queue->n_quotas; i++)
        if (queue->quotas[i].resource == resource && queue->quotas[i].nominal == row->nominal &&
            queue->quotas[i].borrowing == row->borrowing && queue->quotas[i].lending == row->lending)
            return true;
    return false;
}

static const char *change_of_queue(const struct apply *a, const struct wanted_queue *wanted)
{
    static const char *const states[] = {[QUEUE_OPEN] = "open", [QUEUE_HELD] = "held", [QUEUE_DRAINED] = "drained"};
    const struct book *book = a->core->book;
    size_t at = book_find_queue(book, wanted->row.name);
    const struct plan_queue *queue = at == SIZE_MAX ? NULL : &book->queues[at];

    if (!queue)
        return "created";
    if (queue->weight != wanted->row.weight || strcmp(states[queue->state], wanted->row.state) != 0 ||
        queue->placement != job_placement_of(wanted->row.placement) ||
        !same_text(queue->parent == PLAN_ROOT ? NULL : book->queues[queue->parent].name, wanted->row.parent) ||
        queue->n_quotas != wanted->n_quotas)
        return "changed";
    for (size_t i = 0; i < wanted->n_quotas; i++)
        if (!has_quota(a, queue, &wanted->quotas[i]))
            return "changed";
    return "unchanged";
}

static void note(struct apply *a, const char *kind, const char *name, const char *change)
{
    json_array_append_new(a->applied, json_pack("{s:s, s:s, s:s}", "kind", kind, "name", name, "change", change));
}

/* ---- writing ---- */

/* A queue refers to its parent, so that one must be there first. */
static void write_queue(struct apply *a, struct wanted_queue *queue)
{
    struct store *store = a->core->options.store;
    struct wanted_queue *parent;

    if (queue->is_written)
        return;
    queue->is_written = true;
    parent = queue->row.parent ? (struct wanted_queue *)(uintptr_t)find_wanted(a, queue->row.parent) : NULL;
    if (parent)
        write_queue(a, parent);
    note(a, "Queue", queue->row.name, change_of_queue(a, queue));
    store_queue_put(store, &queue->row);
    store_quotas_delete(store, queue->row.name);
    for (size_t i = 0; i < queue->n_quotas; i++)
        store_quota_put(store, &queue->quotas[i]);
}

static void write_all(struct apply *a)
{
    struct store *store = a->core->options.store;

    a->applied = json_array();
    for (size_t i = 0; i < a->n_resources; i++) {
        note(a, "Resource", a->resources[i].name, change_of_resource(a, &a->resources[i]));
        store_resource_put(store, &a->resources[i]);
    }
    for (size_t i = 0; i < a->n_priorities; i++) {
        note(a, "PriorityClass", a->priorities[i].name, change_of_priority(a, &a->priorities[i]));
        store_priority_put(store, &a->priorities[i]);
    }
    for (size_t i = 0; i < a->n_queues; i++)
        write_queue(a, &a->queues[i]);
}

/* The store tells what the open transaction wrote; if that failed, the turn fails and loads everything again. */
static void renew_book(struct core *core)
{
    struct book *book;

    if (book_load(core->options.store, &book, NULL) < 0)
        return;
    book_unref(core->book);
    core->book = book;
    core->wants_plan = true;
    core->is_changed = true;
}

static int run(struct apply *a, const struct caller *caller)
{
    size_t n = json_array_size(a->documents), i;
    const json_t *document;

    if (caller_needs(caller, ROLE_ADMIN, &a->err) < 0 || core_check_writable(a->core, &a->err) < 0)
        return -1;
    if (n == 0)
        return error_set(&a->err, ERR_INVALID, "there is no document");
    a->resources = arena_array(&a->arena, struct resource_row, n);
    a->priorities = arena_array(&a->arena, struct priority_row, n);
    a->queues = arena_array(&a->arena, struct wanted_queue, n);
    json_array_foreach (a->documents, i, document)
        read_document(a, i, document);
    if (!a->problems)
        check_queues(a);
    if (a->problems)
        return -1;
    write_all(a);
    renew_book(a->core);
    return 0;
}

void core_apply(struct core *core, const struct caller *caller, const json_t *documents, core_reply_fn *reply,
                void *ctx)
{
    struct apply a = {.core = core, .documents = documents};

    if (run(&a, caller) == 0)
        reply_with(core, reply, ctx, json_pack("{s:o}", "applied", a.applied));
    else
        reply_problems(core, reply, ctx, &a.err, a.problems);
    arena_release(&a.arena);
}

/* ---- deleting ---- */

static int check_deletable(const struct core *core, const char *name, size_t *out, struct error *err)
{
    *out = book_find_queue(core->book, name);
    if (*out == SIZE_MAX)
        return error_set(err, ERR_NOT_FOUND, "there is no queue %.200s", name);
    if (!book_is_leaf(core->book, *out))
        return error_set(err, ERR_CONFLICT, "queue %s has queues below it", name);
    if (has_open_jobs(core, name))
        return error_set(err, ERR_CONFLICT, "queue %s has jobs that have not ended", name);
    return 0;
}

void core_delete_queue(struct core *core, const struct caller *caller, const char *queue, core_reply_fn *reply,
                       void *ctx)
{
    struct error err = {0};
    json_t *view;
    size_t at;

    if (caller_needs(caller, ROLE_ADMIN, &err) < 0 || core_check_writable(core, &err) < 0 ||
        check_deletable(core, queue, &at, &err) < 0) {
        reply_error(core, reply, ctx, &err);
        return;
    }
    view = queue_view(core, at);
    store_queue_delete(core->options.store, queue);
    renew_book(core);
    reply_with(core, reply, ctx, view);
}
