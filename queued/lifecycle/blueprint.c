#include "queued/lifecycle/blueprint.h"

#include <stdlib.h>

#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

int blueprint_new(json_t *gangjob, struct blueprint **out, struct error *err)
{
    CLEANUP(blueprint) *blueprint = mem_new(struct blueprint);

    blueprint->refs = 1;
    blueprint->gangjob = json_incref(gangjob);
    if (job_spec_parse(gangjob, &blueprint->arena, &blueprint->spec, err) < 0)
        return -1;
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
