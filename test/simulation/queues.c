/* A small random tree of queues with quotas, and changes to it. */
#include "test/simulation/story.h"

#include <stdio.h>
#include <stdlib.h>

#include "queued/manifest/job.h"

static const char resources[] =
    "{apiVersion: queue.dra/v1, kind: Resource, metadata: {name: gpus}, spec: {deviceClassName: gpu}}\n"
    "---\n{apiVersion: queue.dra/v1, kind: Resource, metadata: {name: gpumem}, spec: {deviceClassName: gpu, capacity: "
    "memory}}\n"
    "---\n{apiVersion: queue.dra/v1, kind: Resource, metadata: {name: migs}, spec: {deviceClassName: mig}}\n"
    "---\n{apiVersion: queue.dra/v1, kind: Resource, metadata: {name: modela}, spec: {deviceClassName: gpu, selector: "
    "'device.attributes[\"gpu.sim\"].model == \"A\"'}}\n"
    "---\n{apiVersion: queue.dra/v1, kind: PriorityClass, metadata: {name: high}, spec: {value: 100}}\n";

void queue_name_of(size_t queue, char out[8])
{
    snprintf(out, 8, "q%zu", queue);
}

static void add_limit(struct buf *text, const char *name, struct rng *rng, size_t unit, const char *suffix)
{
    if (one_in(rng, 3))
        buf_addf(text, ", %s: %zu%s", name, pick(rng, 4) * unit, suffix);
}

static void add_quota(struct buf *text, const char *resource, size_t nominal, struct rng *rng, size_t unit,
                      const char *suffix)
{
    buf_addf(text, "%s{resource: %s, nominal: %zu%s", text->len && buf_str(text)[text->len - 1] == '[' ? "" : ", ",
             resource, nominal * unit, suffix);
    add_limit(text, "borrowingLimit", rng, unit, suffix);
    add_limit(text, "lendingLimit", rng, unit, suffix);
    buf_addc(text, '}');
}

static bool is_child(const struct story_queues *queues, size_t queue)
{
    return queues->has_parent && (queue == 1 || queue == 2);
}

static void add_queue(struct buf *text, const struct story_queues *queues, size_t queue, const char *state,
                      struct rng *rng)
{
    buf_addf(text, "---\n{apiVersion: queue.dra/v1, kind: Queue, metadata: {name: q%zu}, spec: {weight: %zu, state: %s",
             queue, 1 + pick(rng, 3), state);
    if (is_child(queues, queue))
        buf_adds(text, ", parent: q0");
    if (one_in(rng, 4))
        buf_addf(text, ", placement: %s", job_placements[pick(rng, 3)]);
    buf_adds(text, ", quotas: [");
    if (one_in(rng, 2))
        add_quota(text, "gpus", 1 + pick(rng, 8), rng, 1, "");
    if (one_in(rng, 8))
        add_quota(text, "gpumem", 2 + pick(rng, 12), rng, 40, "Gi");
    if (one_in(rng, 8))
        add_quota(text, "migs", pick(rng, 8), rng, 1, "");
    if (one_in(rng, 8))
        add_quota(text, "modela", pick(rng, 8), rng, 1, "");
    if (one_in(rng, 6))
        add_quota(text, "cpu", 6 + pick(rng, 24), rng, 1, "");
    if (one_in(rng, 6))
        add_quota(text, "pods", 2 + pick(rng, 8), rng, 1, "");
    buf_adds(text, "]}}\n");
}

void queues_make(struct story_queues *queues, struct rng *rng)
{
    BUF text = {0};

    *queues = (struct story_queues){.n = 3 + pick(rng, STORY_MAX_QUEUES - 2), .has_parent = one_in(rng, 2)};
    buf_adds(&text, resources);
    for (size_t i = 0; i < queues->n; i++)
        add_queue(&text, queues, i, one_in(rng, 25) ? "held" : "open", rng);
    queues->yaml = buf_take(&text);
}

void queues_release(struct story_queues *queues)
{
    free(queues->yaml);
}

char *queues_change(const struct story_queues *queues, struct rng *rng)
{
    static const char *const states[] = {"open", "open", "open", "open", "open", "open",
                                         "open", "open", "open", "open", "held", "drained"};
    BUF text = {0};

    add_queue(&text, queues, pick(rng, queues->n), states[pick(rng, 12)], rng);
    return buf_take(&text);
}

size_t queues_pick_leaf(const struct story_queues *queues, struct rng *rng)
{
    size_t first = queues->has_parent ? 1 : 0;

    return first + pick(rng, queues->n - first);
}
