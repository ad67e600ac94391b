#include "queued/world.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/admission/namespace.h"
#include "queued/log.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

/* One object: enough to see whether it changed. */
struct entry {
    char *key; /* "Kind/namespace/name" */
    char *kind, *ns, *name;
    unsigned char facts[STORE_HASH_BYTES]; /* of what matters to the simulation */
    bool is_told;                          /* in the present stream */
    json_t *devices;                       /* of a claim: those that it has alone, as a set; or NULL */
    UT_hash_handle hh;
};

struct world {
    struct snapshot_builder *builder;
    struct snapshot *snapshot; /* of now, or NULL when it has to be made */
    struct entry *entries;
    uint64_t version;
    bool is_watching;
    json_t *kept[WORLD_N_POLICIES]; /* policies: "ns/name" or name -> object */
    json_t *holders;                /* "driver/pool/device" -> the keys of the claims that have it alone, as a set */
    json_t *fuller;                 /* see world_take_fuller() */
    json_t *disturbed;              /* an object used as a set: "node/n1", "pool/driver/pool", "*" */
};

struct world *world_new(const struct features *features)
{
    struct world *world = mem_new(struct world);

    world->builder = snapshot_builder_new(features, false);
    world->holders = json_object();
    world->disturbed = json_object();
    world->fuller = json_object();
    for (size_t i = 0; i < WORLD_N_POLICIES; i++)
        world->kept[i] = json_object();
    return world;
}

/* ---- who has a device alone ---- */

static char *device_key(const json_t *result)
{
    static const char *const parts[] = {"driver", "pool", "device"};
    BUF key = {0};

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        const char *part = json_string_value(json_object_get(result, parts[i]));

        buf_addf(&key, "%s%s", i ? "/" : "", part ? part : "");
    }
    return buf_take(&key);
}

/* A share of a device, or a look at it as an administrator, stands in nobody's way. */
static bool is_exclusive(const json_t *result)
{
    return !json_object_get(result, "shareID") && !json_is_true(json_object_get(result, "adminAccess"));
}

static void release_devices(struct world *world, struct entry *entry)
{
    const char *device;
    json_t *value;

    json_object_foreach (entry->devices, device, value) {
        json_t *claims = json_object_get(world->holders, device);

        json_object_del(claims, entry->key);
        if (json_object_size(claims) == 0)
            json_object_del(world->holders, device);
    }
    json_decref(entry->devices);
    entry->devices = NULL;
}

static void hold_devices(struct world *world, struct entry *entry, const json_t *results)
{
    const json_t *result;
    size_t i;

    json_array_foreach (results, i, result) {
        char *device = device_key(result);

        if (is_exclusive(result)) {
            if (!entry->devices)
                entry->devices = json_object();
            json_object_set_new(entry->devices, device, json_true());
            if (!json_object_get(world->holders, device))
                json_object_set_new(world->holders, device, json_object());
            json_object_set_new(json_object_get(world->holders, device), entry->key, json_true());
        }
        free(device);
    }
}

static void drop_entry(struct world *world, struct entry *entry)
{
    release_devices(world, entry);
    HASH_DEL(world->entries, entry);
    free(entry->key);
    free(entry->kind);
    free(entry->ns);
    free(entry->name);
    free(entry);
}

void world_free(struct world *world)
{
    struct entry *entry, *next;

    if (!world)
        return;
    HASH_ITER (hh, world->entries, entry, next) {
        drop_entry(world, entry);
    }
    snapshot_unref(world->snapshot);
    snapshot_builder_free(world->builder);
    json_decref(world->holders);
    json_decref(world->disturbed);
    json_decref(world->fuller);
    for (size_t i = 0; i < WORLD_N_POLICIES; i++)
        json_decref(world->kept[i]);
    free(world);
}

static const char *text(const json_t *object, const char *a, const char *b)
{
    return json_string_value(json_object_get(json_object_get(object, a), b));
}

static char *key_of(const char *kind, const char *ns, const char *name)
{
    BUF key = {0};

    buf_addf(&key, "%s/%s/%s", kind, ns ? ns : "", name);
    return buf_take(&key);
}

static struct entry *find(const struct world *world, const char *kind, const char *ns, const char *name)
{
    char *key = key_of(kind, ns, name);
    struct entry *entry;

    HASH_FIND_STR(world->entries, key, entry);
    free(key);
    return entry;
}

static struct entry *find_or_add(struct world *world, const json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const char *ns = text(object, "metadata", "namespace"), *name = text(object, "metadata", "name");
    struct entry *entry = find(world, kind, ns, name);

    if (entry)
        return entry;
    entry = mem_new(struct entry);
    entry->key = key_of(kind, ns, name);
    entry->kind = mem_strdup(kind);
    entry->ns = mem_strdup(ns);
    entry->name = mem_strdup(name);
    HASH_ADD_KEYPTR(hh, world->entries, entry->key, strlen(entry->key), entry);
    return entry;
}

/* ---- what matters ---- */

/* A node's conditions carry heartbeats: of them only whether each holds. */
static json_t *node_status(const json_t *status)
{
    json_t *facts = json_copy((json_t *)(uintptr_t)status), *holds = json_object(), *condition;
    size_t i;

    json_array_foreach (json_object_get(status, "conditions"), i, condition) {
        const char *type = json_string_value(json_object_get(condition, "type"));

        if (type)
            json_object_set(holds, type, json_object_get(condition, "status"));
    }
    json_object_set_new(facts, "conditions", holds);
    json_object_del(facts, "images");
    json_object_del(facts, "nodeInfo");
    return facts;
}

static json_t *pod_status(const json_t *status)
{
    static const char *const keys[] = {"phase", "resourceClaimStatuses", "extendedResourceClaimStatus"};
    json_t *facts = json_object();

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (json_object_get(status, keys[i]))
            json_object_set(facts, keys[i], json_object_get(status, keys[i]));
    return facts;
}

/* Everything but bookkeeping. New reference. */
static json_t *facts_of(const json_t *object)
{
    static const char *const bookkeeping[] = {"resourceVersion", "managedFields", "generation"};
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const json_t *status = json_object_get(object, "status");
    json_t *facts = json_copy((json_t *)(uintptr_t)object);
    json_t *metadata = json_copy(json_object_get(object, "metadata"));

    for (size_t i = 0; i < ARRAY_SIZE(bookkeeping); i++)
        json_object_del(metadata, bookkeeping[i]);
    json_object_set_new(facts, "metadata", metadata);
    if (status && strcmp(kind, "Node") == 0)
        json_object_set_new(facts, "status", node_status(status));
    if (status && strcmp(kind, "Pod") == 0)
        json_object_set_new(facts, "status", pod_status(status));
    return facts;
}

static void hash_facts(const json_t *object, unsigned char out[STORE_HASH_BYTES])
{
    json_t *facts = facts_of(object);
    char *bytes = json_dumps(facts, JSON_SORT_KEYS | JSON_COMPACT);

    store_hash(bytes, strlen(bytes), out);
    free(bytes);
    json_decref(facts);
}

/* ---- what disturbs a plan ---- */

static void disturb(struct world *world, const char *what, const char *a, const char *b)
{
    BUF key = {0};

    buf_addf(&key, "%s/%s/%s", what, a ? a : "", b ? b : "");
    json_object_set_new(world->disturbed, buf_str(&key), json_true());
}

static const json_t *results_of(const json_t *claim)
{
    return json_object_get(json_object_get(json_object_get(json_object_get(claim, "status"), "allocation"), "devices"),
                           "results");
}

static void disturb_devices(struct world *world, const json_t *claim)
{
    const json_t *result;
    size_t i;

    json_array_foreach (results_of(claim), i, result)
        disturb(world, "pool", json_string_value(json_object_get(result, "driver")),
                json_string_value(json_object_get(result, "pool")));
}

static void note_disturbance(struct world *world, const json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));

    if (!world->is_watching)
        return;
    if (strcmp(kind, "Node") == 0)
        disturb(world, "node", text(object, "metadata", "name"), NULL);
    else if (strcmp(kind, "Pod") == 0)
        disturb(world, "node", text(object, "spec", "nodeName"), NULL);
    else if (strcmp(kind, "ResourceClaim") == 0)
        disturb_devices(world, object);
    else if (strcmp(kind, "ResourceSlice") == 0)
        disturb(world, "pool", text(object, "spec", "driver"),
                json_string_value(json_object_get(json_object_get(json_object_get(object, "spec"), "pool"), "name")));
    else
        json_object_set_new(world->disturbed, "*", json_true()); /* classes, taint rules, namespaces: anything */
}

void world_watch_begin(struct world *world)
{
    world->is_watching = true;
    json_object_clear(world->disturbed);
}

static bool is_disturbed(const struct world *world, const char *what, const char *a, const char *b)
{
    BUF key = {0};

    buf_addf(&key, "%s/%s/%s", what, a, b);
    return json_object_get(world->disturbed, buf_str(&key)) != NULL;
}

static bool is_allocation_disturbed(const struct world *world, const struct allocation *allocation)
{
    for (size_t i = 0; i < allocation->n_results; i++)
        if (is_disturbed(world, "pool", allocation->results[i].driver, allocation->results[i].pool))
            return true;
    return false;
}

bool world_disturbs(const struct world *world, const struct placement *placement)
{
    if (json_object_get(world->disturbed, "*"))
        return true;
    for (size_t i = 0; i < placement->n_shared; i++)
        if (is_allocation_disturbed(world, &placement->shared[i]))
            return true;
    for (size_t m = 0; m < placement->n_members; m++) {
        const struct placed_member *member = &placement->members[m];

        if (is_disturbed(world, "node", member->node, ""))
            return true;
        for (size_t c = 0; c < member->n_claims; c++)
            if (is_allocation_disturbed(world,
                                        &member->claims[c].allocation)) /* without results where it is elsewhere */
                return true;
    }
    return false;
}

/* ---- changes ---- */

static void changed(struct world *world)
{
    world->version++;
    snapshot_unref(world->snapshot);
    world->snapshot = NULL;
}

/* Kinds that the simulation does not read. */
static bool is_of_no_matter(const char *kind)
{
    return strcmp(kind, "ConfigMap") == 0 || strcmp(kind, "Service") == 0 || strcmp(kind, "PodGroup") == 0 ||
           strcmp(kind, "ProvisioningRequest") == 0;
}

/* ---- policies ---- */

static const struct {
    const char *kind;
    enum world_policy policy;
} policies[] = {{"ResourceQuota", WORLD_QUOTAS}, {"PriorityClass", WORLD_PRIORITY_CLASSES}};

static json_t *kept_of(const struct world *world, const char *kind)
{
    for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
        if (strcmp(policies[i].kind, kind) == 0)
            return world->kept[policies[i].policy];
    return NULL;
}

static char *policy_key(const char *ns, const char *name)
{
    BUF key = {0};

    buf_addf(&key, "%s%s%s", ns ? ns : "", ns && *ns ? "/" : "", name);
    return buf_take(&key);
}

/* The snapshot stays as it is, but whoever waits may now start. A quota that only became fuller, as it does with every
 * pod that is created, is no reason for another round. */
static void keep_policy(struct world *world, json_t *kept, const json_t *object)
{
    const char *ns = text(object, "metadata", "namespace");
    char *key = policy_key(ns, text(object, "metadata", "name"));
    const json_t *before = json_object_get(kept, key);
    bool is_quota = kept == world->kept[WORLD_QUOTAS];

    if (!is_quota || (before && namespace_quota_is_looser(before, object)))
        world->version++;
    else
        json_object_set_new(world->fuller, ns, json_true());
    json_object_set(kept, key, (json_t *)(uintptr_t)object);
    free(key);
}

static void drop_policy(struct world *world, json_t *kept, const char *ns, const char *name)
{
    char *key = policy_key(ns, name);

    json_object_del(kept, key);
    world->version++;
    free(key);
}

json_t *world_take_fuller(struct world *world)
{
    json_t *fuller = world->fuller;

    world->fuller = json_object();
    return fuller;
}

const json_t *world_kept(const struct world *world, enum world_policy policy)
{
    return world->kept[policy];
}

/* ---- objects ---- */

void world_put(struct world *world, const json_t *object, bool is_planned)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    unsigned char facts[STORE_HASH_BYTES];
    struct error err = {0};
    struct entry *entry;

    if (!kind || !text(object, "metadata", "name") || is_of_no_matter(kind))
        return;
    entry = find_or_add(world, object);
    entry->is_told = true;
    hash_facts(object, facts);
    if (memcmp(facts, entry->facts, sizeof(facts)) == 0)
        return;
    memcpy(entry->facts, facts, sizeof(facts));
    if (strcmp(kind, "ResourceClaim") == 0) {
        release_devices(world, entry);
        hold_devices(world, entry, results_of(object));
    }
    if (kept_of(world, kind)) {
        keep_policy(world, kept_of(world, kind), object);
        return;
    }
    if (snapshot_builder_put(world->builder, object, &err) < 0) {
        log_warn("object.refused", LOG_STR("object", entry->key), LOG_STR("field", err.field[0] ? err.field : NULL),
                 LOG_STR("why", err.text));
        return;
    }
    if (!is_planned)
        note_disturbance(world, object);
    changed(world);
}

void world_remove(struct world *world, const char *kind, const char *ns, const char *name)
{
    struct entry *entry = find(world, kind, ns, name);

    if (!entry)
        return;
    if (kept_of(world, kind)) {
        drop_policy(world, kept_of(world, kind), entry->ns, entry->name);
        drop_entry(world, entry);
        return;
    }
    if (strcmp(kind, "Pod") != 0 && strcmp(kind, "ResourceClaim") != 0) /* the end of those only frees */
        json_object_set_new(world->disturbed, "*", json_true());
    snapshot_builder_remove(world->builder, entry->kind, entry->ns, entry->name);
    drop_entry(world, entry);
    changed(world);
}

void world_stream_lost(struct world *world)
{
    struct entry *entry, *next;

    HASH_ITER (hh, world->entries, entry, next) {
        entry->is_told = false;
    }
}

void world_stream_synced(struct world *world)
{
    struct entry *entry, *next;

    HASH_ITER (hh, world->entries, entry, next) {
        if (!entry->is_told)
            world_remove(world, entry->kind, entry->ns, entry->name);
    }
}

struct snapshot *world_snapshot(struct world *world)
{
    if (!world->snapshot)
        world->snapshot = snapshot_builder_build(world->builder);
    return snapshot_ref(world->snapshot);
}

uint64_t world_version(const struct world *world)
{
    return world->version;
}

const char *world_other_holder(const struct world *world, const json_t *result, const char *ns, const char *name)
{
    char *device = device_key(result), *own = key_of("ResourceClaim", ns, name);
    json_t *claims = json_object_get(world->holders, device), *value;
    const char *claim, *other = NULL;

    if (is_exclusive(result))
        json_object_foreach (claims, claim, value)
            if (strcmp(claim, own) != 0)
                other = claim + strlen("ResourceClaim/");
    free(device);
    free(own);
    return other;
}

bool world_has(const struct world *world, const char *kind, const char *ns, const char *name)
{
    return find(world, kind, ns, name) != NULL;
}
