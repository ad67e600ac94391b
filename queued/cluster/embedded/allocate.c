/* An allocation that a client writes into a claim's status, as the API server takes it: it looks at the claim and at
 * nothing else. Whether the device exists, and whether another claim has it too, is the writer's business. */
#include "queued/cluster/embedded/internal.h"

#include <string.h>

#include "allocator/base/str.h"
#include "allocator/snapshot.h"
#include "queued/clock.h"

#include "allocator/base/banned.h"

#define FINALIZER_CLAIM "resource.kubernetes.io/delete-protection"

static bool is_named(const json_t *request, const char *name, size_t len)
{
    const char *other = field_text(request, "name", NULL);

    return other && strlen(other) == len && strncmp(other, name, len) == 0;
}

/* "req" of a plain request, "req/sub" of one with alternatives. */
static bool is_request(const json_t *claim, const char *name)
{
    size_t len = strcspn(name, "/"), i, k;
    json_t *request, *alternative;

    json_array_foreach (field_get(claim, "spec", "devices", "requests", NULL), i, request) {
        const json_t *alternatives = json_object_get(request, "firstAvailable");

        if (!is_named(request, name, len))
            continue;
        if (!name[len])
            return json_array_size(alternatives) == 0;
        json_array_foreach (alternatives, k, alternative)
            if (is_named(alternative, name + len + 1, strlen(name + len + 1)))
                return true;
    }
    return false;
}

static int check_result(const json_t *claim, const json_t *result, struct error *err)
{
    static const char *const needed[] = {"request", "driver", "pool", "device"};
    const char *request = field_text(result, "request", NULL);

    for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
        const char *text = field_text(result, needed[i], NULL);

        if (!text || !*text)
            return error_field(err, needed[i], "is required");
    }
    if (is_request(claim, request))
        return 0;
    return error_field(err, "request", "\"%.80s\" is no request of the claim", request);
}

static int check_allocation(const json_t *claim, const json_t *allocation, struct error *err)
{
    const json_t *results = field_get(allocation, "devices", "results", NULL), *selector, *result;
    size_t i;

    if (!json_is_object(allocation) || !json_is_array(results))
        return error_field(err, "status.allocation.devices.results", "is required");
    selector = json_object_get(allocation, "nodeSelector");
    if (selector && json_array_size(json_object_get(selector, "nodeSelectorTerms")) != 1)
        return error_field(err, "status.allocation.nodeSelector", "must have exactly one term");
    json_array_foreach (results, i, result)
        if (check_result(claim, result, err) < 0)
            return error_in(err, "status.allocation.devices.results[%zu]", i);
    return 0;
}

/* The same devices for the same requests, whatever time and finalizer were added. */
static bool is_same_allocation(const json_t *a, const json_t *b)
{
    return json_equal(field_get(a, "devices", "results", NULL), field_get(b, "devices", "results", NULL));
}

static json_t *allocated_draft(const struct entry *claim, const json_t *allocation)
{
    json_t *draft = entry_draft(claim), *metadata = json_object_get(draft, "metadata");
    json_t *written = json_deep_copy(allocation);

    json_object_set_new(written, "allocationTimestamp", when_json(clock_now_ms(claim->cluster->clock)));
    json_object_set_new(field_object(draft, "status"), "allocation", written);
    if (!texts_have(json_object_get(metadata, "finalizers"), FINALIZER_CLAIM))
        json_array_append_new(field_array(metadata, "finalizers"), json_string(FINALIZER_CLAIM));
    return draft;
}

int api_allocate(struct embedded *cluster, const char *ns, const char *name, const json_t *allocation,
                 struct entry **out, struct error *err)
{
    struct entry *claim = entry_find(cluster, KIND_CLAIM, ns, name);
    const json_t *have;
    json_t *draft;

    if (!claim)
        return error_set(err, ERR_NOT_FOUND, "resourceclaims \"%s\" not found", name);
    if (check_allocation(claim->json, allocation, err) < 0)
        return -1;
    have = field_get(claim->json, "status", "allocation", NULL);
    *out = claim;
    if (json_is_object(have) && is_same_allocation(have, allocation))
        return 0;
    if (json_is_object(have))
        return error_set(err, ERR_CONFLICT, "resourceclaims \"%s\" is allocated already: to other devices", name);
    if (entry_is_going(claim))
        return error_set(err, ERR_CONFLICT, "resourceclaims \"%s\" is being deleted", name);
    draft = allocated_draft(claim, allocation);
    if (snapshot_builder_put(cluster->model, draft, err) < 0) {
        json_decref(draft);
        return -1;
    }
    entry_change(claim, draft);
    cluster->is_scheduling_due = true; /* a pod that waits for it */
    return 0;
}
