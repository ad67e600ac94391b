#include "queued/admission/charge.h"

#include <string.h>

#include "allocator/base/checked.h"
#include "allocator/model.h"
#include "allocator/nodefit.h"

#include "allocator/base/banned.h"

/* total + n * amount, saturating. */
static int64_t plus(int64_t total, size_t n, int64_t amount)
{
    int64_t product;

    if (!checked_mul((int64_t)n, amount, &product) || !checked_add(total, product, &total))
        return INT64_MAX;
    return total;
}

static void add_group(struct node_demand *demand, const struct job_group *group, struct arena *arena)
{
    struct pod_demand pod;

    demand->pods = plus(demand->pods, group->replicas, 1);
    if (pod_demand_parse(json_object_get(group->pod, "spec"), NULL, arena, &pod, NULL) < 0)
        return;
    for (size_t i = 0; i < pod.n_resources; i++) {
        const char *name = pod.resources[i].name;
        int64_t amount = scheduler_units(name, &pod.resources[i].amount);

        if (strcmp(name, "cpu") == 0)
            demand->cpu_milli = plus(demand->cpu_milli, group->replicas, amount);
        else if (strcmp(name, "memory") == 0)
            demand->memory_bytes = plus(demand->memory_bytes, group->replicas, amount);
    }
}

struct node_demand demand_of_shape(const struct job_spec *job, size_t shape)
{
    struct node_demand demand = {0};
    struct arena arena = {0};

    for (size_t i = 0; i < job->shapes[shape].n_groups; i++)
        add_group(&demand, &job->shapes[shape].groups[i], &arena);
    arena_release(&arena);
    return demand;
}

static int64_t amount_of(const struct plan_resource *resource, const struct node_demand *demand,
                         const struct snapshot *snapshot, const struct placement *placement)
{
    switch (resource->kind) {
    case RESOURCE_CPU:
        return demand->cpu_milli;
    case RESOURCE_MEMORY:
        return demand->memory_bytes;
    case RESOURCE_PODS:
        return demand->pods;
    case RESOURCE_DEVICES:
        break;
    }
    return placement_charge(snapshot, placement, resource->matcher, resource->capacity);
}

const int64_t *charge_of(const struct plan_input *input, const struct job_spec *job, size_t shape,
                         const struct placement *placement, struct arena *arena)
{
    struct node_demand demand = demand_of_shape(job, shape);
    int64_t *charges = arena_array(arena, int64_t, input->n_resources);

    for (size_t r = 0; r < input->n_resources; r++)
        charges[r] = amount_of(&input->resources[r], &demand, input->snapshot, placement);
    return charges;
}

/* An amount of a node's allocatable: a number or a quantity's text. */
static int64_t node_amount(const json_t *node, const char *name)
{
    const json_t *value = json_object_get(json_object_get(node, "allocatable"), name);
    struct arena arena = {0};
    struct quantity amount;
    int64_t units = 0;

    if (json_is_integer(value)) {
        amount = quantity_of_int(json_integer_value(value));
        units = scheduler_units(name, &amount);
    } else if (json_is_string(value) && quantity_parse(str_of(json_string_value(value)), &arena, &amount, NULL) == 0) {
        units = scheduler_units(name, &amount);
    }
    arena_release(&arena);
    return units;
}

int64_t resource_total(const struct plan_resource *resource, const struct snapshot *snapshot, const json_t *nodes)
{
    static const char *const names[] = {[RESOURCE_CPU] = "cpu", [RESOURCE_MEMORY] = "memory", [RESOURCE_PODS] = "pods"};
    const json_t *node;
    size_t i;
    int64_t total = 0;

    if (resource->kind == RESOURCE_DEVICES)
        return snapshot_capacity(snapshot, resource->matcher, resource->capacity);
    json_array_foreach (nodes, i, node)
        total = plus(total, 1, node_amount(node, names[resource->kind]));
    return total;
}
