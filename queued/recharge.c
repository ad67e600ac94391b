/* A gang that did not get the devices that were planned is charged for those that it got. */
#include "queued/internal.h"

#include <string.h>

#include "allocator/base/quantity.h"

#include "allocator/base/banned.h"

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value ? value : "";
}

static size_t read_consumed(const json_t *map, struct consumed_capacity *out, struct arena *arena)
{
    const char *name;
    const json_t *value;
    size_t n = 0;

    json_object_foreach ((json_t *)(uintptr_t)map, name, value) {
        struct quantity amount;

        if (json_is_string(value) && quantity_parse(str_of(json_string_value(value)), arena, &amount, NULL) == 0)
            out[n++] = (struct consumed_capacity){name, amount};
    }
    return n;
}

static struct device_result read_result(const json_t *result, struct arena *arena)
{
    const json_t *consumed = json_object_get(result, "consumedCapacity");
    struct consumed_capacity *amounts = arena_array(arena, struct consumed_capacity, json_object_size(consumed));

    return (struct device_result){
        .request = text(result, "request"),
        .driver = text(result, "driver"),
        .pool = text(result, "pool"),
        .device = text(result, "device"),
        .admin_access = json_is_true(json_object_get(result, "adminAccess")),
        .is_share = json_object_get(result, "shareID") != NULL,
        .consumed = amounts,
        .n_consumed = read_consumed(consumed, amounts, arena),
    };
}

static struct placed_claim read_claim(const struct launch_object *claim, struct arena *arena)
{
    /* of a claim that others make, what was planned is all that is known */
    const json_t *allocation = claim->rank == RANK_ASSUMED
                                   ? claim->planned
                                   : json_object_get(json_object_get(claim->observed, "status"), "allocation");
    const json_t *list = json_object_get(json_object_get(allocation, "devices"), "results"), *result;
    struct device_result *results = arena_array(arena, struct device_result, json_array_size(list));
    size_t i;

    json_array_foreach (list, i, result)
        results[i] = read_result(result, arena);
    return (struct placed_claim){.source = GANG_CLAIM_OWN,
                                 .allocation = {.results = results, .n_results = json_array_size(list)}};
}

/* All claims of the attempt as if one member had them: a charge does not ask whose they are. */
static struct placement placement_now(const struct attempt *attempt, struct arena *arena)
{
    struct placed_claim *claims = arena_array(arena, struct placed_claim, attempt->n_objects);
    struct placed_member *member = arena_new(arena, struct placed_member);

    member->claims = claims;
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (attempt->objects[i].rank == RANK_CLAIM || attempt->objects[i].rank == RANK_ASSUMED)
            claims[member->n_claims++] = read_claim(&attempt->objects[i], arena);
    return (struct placement){.members = member, .n_members = 1};
}

json_t *charges_now(struct core *core, const struct job *job)
{
    struct arena arena = {0};
    struct placement placement = placement_now(job->live, &arena);
    struct snapshot *snapshot = world_snapshot(core->world);
    json_t *charges = json_copy(job->live->charges);

    for (size_t r = 0; r < core->book->n_resources; r++) {
        const struct plan_resource *resource = &core->book->resources[r];
        int64_t amount;

        if (resource->kind != RESOURCE_DEVICES)
            continue;
        amount = placement_charge(snapshot, &placement, resource->matcher, resource->capacity);
        if (amount > 0 || json_object_get(charges, resource->name))
            json_object_set_new(charges, resource->name, json_integer(amount));
    }
    snapshot_unref(snapshot);
    arena_release(&arena);
    return charges;
}
