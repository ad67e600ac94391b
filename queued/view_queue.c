/* Queues, quotas and resources as the API shows them (api/README.md). */
#include <stdlib.h>
#include <string.h>

#include "queued/admission/quota.h"
#include "queued/admission/share.h"
#include "queued/internal.h"

#include "allocator/base/banned.h"

/* The tree with what runs in it now: the same arithmetic as in a planning round. */
struct present {
    struct arena arena;
    struct snapshot *snapshot;
    struct plan_resource *resources;
    struct plan_input input;
    struct tree tree;
    int64_t *totals;
};

static void present_init(struct present *present, const struct core *core)
{
    const struct book *book = core->book;

    *present = (struct present){.snapshot = world_snapshot(core->world)};
    present->resources = resources_now(book, present->snapshot);
    present->input = (struct plan_input){.snapshot = present->snapshot,
                                         .resources = present->resources,
                                         .n_resources = book->n_resources,
                                         .queues = book->queues,
                                         .n_queues = book->n_queues};
    present->input.running = running_now(core, book, &present->arena, &present->input.n_running);
    present->totals = arena_array(&present->arena, int64_t, book->n_resources);
    for (size_t r = 0; r < book->n_resources; r++)
        present->totals[r] = present->resources[r].total;
    tree_init(&present->tree, &present->input, &present->arena);
}

static void present_release(struct present *present)
{
    free(present->resources);
    snapshot_unref(present->snapshot);
    arena_release(&present->arena);
}

static json_t *quotas_view(const struct present *present, size_t queue)
{
    const struct plan_queue *from = &present->input.queues[queue];
    json_t *view = json_array();

    for (size_t i = 0; i < from->n_quotas; i++) {
        const struct plan_quota *quota = &from->quotas[i];
        const struct plan_resource *resource = &present->resources[quota->resource];
        int64_t used = tree_at(&present->tree, present->tree.held, queue)[quota->resource];

        json_array_append_new(
            view,
            json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "resource", resource->name, "nominal",
                      amount_json(resource->kind, quota->nominal), "borrowingLimit",
                      amount_json(resource->kind, quota->borrowing), "lendingLimit",
                      amount_json(resource->kind, quota->lending), "used", amount_json(resource->kind, used),
                      "borrowed", amount_json(resource->kind, quota_borrowed(&present->tree, queue, quota->resource)),
                      "capacity", amount_json(resource->kind, resource->total)));
    }
    return view;
}

static json_t *jobs_view(const struct core *core, const char *queue)
{
    const struct job_list *jobs = lifecycle_jobs(core->lifecycle);
    json_int_t pending = 0, running = 0;

    for (size_t i = 0; i < jobs->n; i++) {
        const struct job *job = jobs->items[i];

        if (strcmp(job->queue, queue) != 0)
            continue;
        running += job_is_live(job);
        pending += !job_is_live(job) && !job_has_ended(job);
    }
    return json_pack("{s:I, s:I}", "pending", pending, "running", running);
}

json_t *effective_view(const struct effective_placement *effective)
{
    return json_pack("{s:s, s:s, s:s*}", "placement", job_placement_name(effective->placement), "from",
                     placement_source_name(effective->source), "queue", effective->queue);
}

static void add_placement(json_t *view, const struct present *present, size_t queue)
{
    const struct plan_queue *queues = present->input.queues;
    enum job_placement own = queues[queue].placement;
    struct effective_placement effective = effective_placement_of(JOB_PLACEMENT_DEFAULT, queues, queue);

    json_object_set_new(view, "placement",
                        own == JOB_PLACEMENT_DEFAULT ? json_null() : json_string(job_placement_name(own)));
    json_object_set_new(view, "effectivePlacement", effective_view(&effective));
}

static json_t *view_of(const struct core *core, const struct present *present, size_t queue)
{
    static const char *const states[] = {[QUEUE_OPEN] = "open", [QUEUE_HELD] = "held", [QUEUE_DRAINED] = "drained"};
    const struct plan_queue *from = &present->input.queues[queue];
    struct share share = share_of(tree_at(&present->tree, present->tree.held, queue), present->totals,
                                  present->input.n_resources, from->weight);
    json_t *view;

    view = json_pack("{s:s, s:s?, s:s, s:I, s:f, s:s?, s:o, s:o}", "name", from->name, "parent",
                     from->parent == PLAN_ROOT ? NULL : present->input.queues[from->parent].name, "state",
                     states[from->state], "weight", (json_int_t)from->weight, "share", share_value(&share),
                     "dominantResource", share.dominant == SIZE_MAX ? NULL : present->resources[share.dominant].name,
                     "jobs", jobs_view(core, from->name), "quotas", quotas_view(present, queue));
    add_placement(view, present, queue);
    return view;
}

json_t *queue_view(const struct core *core, size_t queue)
{
    struct present present;
    json_t *view;

    present_init(&present, core);
    view = view_of(core, &present, queue);
    present_release(&present);
    return view;
}

json_t *core_queues(struct core *core, const struct caller *caller, struct error *err)
{
    struct present present;
    json_t *items;

    if (caller_needs(caller, ROLE_VIEWER, err) < 0)
        return NULL;
    items = json_array();
    present_init(&present, core);
    for (size_t i = 0; i < core->book->n_queues; i++)
        if (caller_sees_queue(caller, core->book->queues[i].name))
            json_array_append_new(items, view_of(core, &present, i));
    present_release(&present);
    return json_pack("{s:o}", "items", items);
}

json_t *core_queue(struct core *core, const struct caller *caller, const char *name, struct error *err)
{
    size_t queue;

    if (caller_needs(caller, ROLE_VIEWER, err) < 0)
        return NULL;
    queue = book_find_queue(core->book, name);
    if (queue == SIZE_MAX || !caller_sees_queue(caller, name)) {
        error_set(err, ERR_NOT_FOUND, "there is no queue %.200s", name);
        return NULL;
    }
    return queue_view(core, queue);
}

json_t *core_resources(struct core *core, struct error *err)
{
    const struct book *book = core->book;
    struct snapshot *snapshot = world_snapshot(core->world);
    struct plan_resource *resources = resources_now(book, snapshot);
    json_t *items = json_array();

    (void)err;
    for (size_t r = 0; r < book->n_resources; r++)
        json_array_append_new(items, json_pack("{s:s, s:s?, s:s?, s:s?, s:o}", "name", resources[r].name,
                                               "deviceClassName", book->defined[r].device_class, "selector",
                                               book->defined[r].selector, "capacity", resources[r].capacity, "total",
                                               amount_json(resources[r].kind, resources[r].total)));
    free(resources);
    snapshot_unref(snapshot);
    return json_pack("{s:o}", "items", items);
}
