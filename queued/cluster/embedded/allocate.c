/* Allocations and reservations that a client writes into a claim's status, as the API server takes them: it looks at
 * the claim and at nothing else. Whether the device exists, and whether another claim has it too, is the writer's
 * business. */
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

/* ---- whom it is reserved for ---- */

#define MAX_CONSUMERS 256

static bool has_uid(const json_t *reserved, const char *uid)
{
    const json_t *entry;
    size_t i;

    json_array_foreach (reserved, i, entry) {
        const char *other = field_text(entry, "uid", NULL);

        if (other && strcmp(other, uid) == 0)
            return true;
    }
    return false;
}

static int add_consumer(json_t *reserved, json_t *consumer, struct error *err)
{
    static const char *const needed[] = {"resource", "name", "uid"};

    for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
        if (!field_text(consumer, needed[i], NULL))
            return error_field(err, needed[i], "is required");
    if (!has_uid(reserved, field_text(consumer, "uid", NULL)))
        json_array_append(reserved, consumer);
    return 0;
}

static int add_consumers(json_t *reserved, const json_t *consumers, struct error *err)
{
    json_t *consumer;
    size_t i;

    json_array_foreach (consumers, i, consumer)
        if (add_consumer(reserved, consumer, err) < 0)
            return error_in(err, "status.reservedFor[%zu]", i);
    if (json_array_size(reserved) > MAX_CONSUMERS)
        return error_field(err, "status.reservedFor", "must have at most %d items", MAX_CONSUMERS);
    return 0;
}

/* ---- writing ---- */

/* NULL when the consumers are wrong. */
static json_t *allocated_draft(const struct entry *claim, const json_t *allocation, const json_t *consumers,
                               struct error *err)
{
    json_t *draft = entry_draft(claim), *metadata = json_object_get(draft, "metadata");
    json_t *written = json_deep_copy(allocation), *status = field_object(draft, "status");

    json_object_set_new(written, "allocationTimestamp", when_json(clock_now_ms(claim->cluster->clock)));
    json_object_set_new(status, "allocation", written);
    if (json_array_size(consumers) && add_consumers(field_array(status, "reservedFor"), consumers, err) < 0) {
        json_decref(draft);
        return NULL;
    }
    if (!texts_have(json_object_get(metadata, "finalizers"), FINALIZER_CLAIM))
        json_array_append_new(field_array(metadata, "finalizers"), json_string(FINALIZER_CLAIM));
    return draft;
}

int api_allocate(struct embedded *cluster, const char *ns, const char *name, const char *uid, const json_t *allocation,
                 const json_t *consumers, struct entry **out, struct error *err)
{
    struct entry *claim = entry_find(cluster, KIND_CLAIM, ns, name);
    const json_t *have;
    json_t *draft;

    if (!claim)
        return error_set(err, ERR_NOT_FOUND, "resourceclaims \"%s\" not found", name);
    if (uid && strcmp(uid, claim->uid) != 0)
        return error_set(err, ERR_CONFLICT, "resourceclaims \"%s\" is another one now", claim->name);
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
    draft = allocated_draft(claim, allocation, consumers, err);
    if (!draft)
        return -1;
    if (snapshot_builder_put(cluster->model, draft, err) < 0) {
        json_decref(draft);
        return -1;
    }
    entry_change(claim, draft);
    cluster->is_scheduling_due = true; /* a pod that waits for it */
    return 0;
}
