/* What a planning round, and the view of queues, need to know of the present. */
#include <stdlib.h>

#include "allocator/base/mem.h"
#include "queued/admission/charge.h"
#include "queued/internal.h"

#include "allocator/base/banned.h"

struct plan_resource *resources_now(const struct book *book, const struct snapshot *snapshot)
{
    struct plan_resource *resources = mem_array(struct plan_resource, book->n_resources + 1);
    json_t *nodes = snapshot_nodes_json(snapshot);

    for (size_t r = 0; r < book->n_resources; r++) {
        resources[r] = book->resources[r];
        resources[r].total = resource_total(&resources[r], snapshot, nodes);
    }
    json_decref(nodes);
    return resources;
}

static const int64_t *charges_of(const struct job *job, const struct book *book, struct arena *arena)
{
    int64_t *charges = arena_array(arena, int64_t, book->n_resources);

    for (size_t r = 0; r < book->n_resources; r++)
        charges[r] = json_integer_value(json_object_get(job->live->charges, book->resources[r].name));
    return charges;
}

const struct plan_running *running_now(const struct core *core, const struct book *book, struct arena *arena,
                                       size_t *out_n)
{
    const struct job_list *jobs = lifecycle_jobs(core->lifecycle);
    struct plan_running *running = arena_array(arena, struct plan_running, jobs->n);
    size_t n = 0;

    for (size_t i = 0; i < jobs->n; i++) {
        const struct job *job = jobs->items[i];
        size_t queue = book_find_queue(book, job->queue);

        if (job->live && queue != SIZE_MAX)
            running[n++] = (struct plan_running){job->id, queue, charges_of(job, book, arena)};
    }
    *out_n = n;
    return running;
}
