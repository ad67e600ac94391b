#include "queued/admission/charge.h"

#include <string.h>

#include "allocator/base/checked.h"
#include "allocator/base/quantity.h"
#include "allocator/nodecheck.h"

#include "allocator/base/banned.h"

struct node_demand {
    int64_t cpu_milli, memory_bytes, pods;
};

/* total + n * amount, saturating. */
static int64_t plus(int64_t total, size_t n, int64_t amount)
{
    int64_t product;

    if (!checked_mul((int64_t)n, amount, &product) || !checked_add(total, product, &total))
        return INT64_MAX;
    return total;
}

/* What cannot be read counts as nothing: the gang search refuses such a pod anyway. */
static void add_group(struct node_demand *demand, const struct job_group *group, size_t n_members)
{
    struct pod_amounts pod;

    demand->pods = plus(demand->pods, n_members, 1);
    if (n_members == 0 || pod_amounts_read(group->pod, &pod, NULL) < 0)
        return;
    demand->cpu_milli = plus(demand->cpu_milli, n_members, pod.cpu_milli);
    demand->memory_bytes = plus(demand->memory_bytes, n_members, pod.memory_bytes);
}

static size_t count_members(const struct placement *placement, size_t group)
{
    size_t n = 0;

    for (size_t i = 0; i < placement->n_members; i++)
        n += placement->members[i].group == group;
    return n;
}

/* The cpu, memory and pods of all members that are placed. Saturates. */
static struct node_demand demand_of(const struct job_shape *shape, const struct placement *placement)
{
    struct node_demand demand = {0};

    for (size_t i = 0; i < shape->n_groups; i++)
        add_group(&demand, &shape->groups[i], count_members(placement, i));
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
    struct node_demand demand = demand_of(&job->shapes[shape], placement);
    int64_t *charges = arena_array(arena, int64_t, input->n_resources);

    for (size_t r = 0; r < input->n_resources; r++)
        charges[r] = amount_of(&input->resources[r], &demand, input->snapshot, placement);
    return charges;
}

const int64_t *charge_least(const struct plan_input *input, const struct job_shape *shape, struct arena *arena)
{
    int64_t *charges = arena_array(arena, int64_t, input->n_resources);
    struct node_demand demand = {0};

    for (size_t g = 0; g < shape->n_groups; g++)
        add_group(&demand, &shape->groups[g], shape->groups[g].min_replicas);
    for (size_t r = 0; r < input->n_resources; r++)
        if (input->resources[r].kind != RESOURCE_DEVICES)
            charges[r] = amount_of(&input->resources[r], &demand, input->snapshot, NULL);
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
