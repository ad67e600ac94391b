#include "queued/lifecycle/blueprint.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

/* Of everything but what says who asks, when and how often. */
static uint64_t twin_of(const struct blueprint *blueprint)
{
    static const char *const others[] = {"queue",   "priority", "priorityClassName", "maxRuntime",
                                         "retries", "hold",     "ttlAfterFinished",  "dependsOn"};
    json_t *spec = json_copy(json_object_get(blueprint->gangjob, "spec"));
    unsigned char hash[STORE_HASH_BYTES];
    uint64_t twin;
    char *bytes;

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        json_object_del(spec, others[i]);
    json_object_set_new(spec, "namespace", json_string(blueprint->spec.ns)); /* no field of a GangJob's spec */
    bytes = json_dumps(spec, JSON_SORT_KEYS | JSON_COMPACT);
    store_hash(bytes, strlen(bytes), hash);
    memcpy(&twin, hash, sizeof(twin));
    free(bytes);
    json_decref(spec);
    return twin ? twin : 1;
}

int blueprint_new(json_t *gangjob, struct blueprint **out, struct error *err)
{
    CLEANUP(blueprint) *blueprint = mem_new(struct blueprint);

    blueprint->refs = 1;
    blueprint->gangjob = json_incref(gangjob);
    if (job_spec_parse(gangjob, &blueprint->arena, &blueprint->spec, err) < 0)
        return -1;
    blueprint->twin = twin_of(blueprint);
    *out = TAKE(blueprint);
    return 0;
}

struct blueprint *blueprint_ref(struct blueprint *blueprint)
{
    blueprint->refs++;
    return blueprint;
}

void blueprint_unref(struct blueprint *blueprint)
{
    if (!blueprint || --blueprint->refs > 0)
        return;
    arena_release(&blueprint->arena);
    json_decref(blueprint->gangjob);
    free(blueprint);
}
