#include "queued/admission/bind.h"

#include <string.h>

#include "allocator/base/str.h"

#include "allocator/base/banned.h"

static const json_t *named(const json_t *array, const char *name, size_t len)
{
    const json_t *item;
    size_t i;

    json_array_foreach (array, i, item) {
        const char *other = json_string_value(json_object_get(item, "name"));

        if (other && strlen(other) == len && strncmp(other, name, len) == 0)
            return item;
    }
    return NULL;
}

static const json_t *requests_of(const json_t *object)
{
    const json_t *spec = json_object_get(object, "spec"), *inner = json_object_get(spec, "spec");

    return json_object_get(json_object_get(inner ? inner : spec, "devices"), "requests");
}

/* The class behind "req" or "req/sub"; NULL when the object has no such request. */
static const char *class_of(const json_t *object, const char *name)
{
    size_t len = strcspn(name, "/");
    const json_t *request = named(requests_of(object), name, len), *exactly = json_object_get(request, "exactly");

    if (name[len])
        request = named(json_object_get(request, "firstAvailable"), name + len + 1, strlen(name + len + 1));
    else if (exactly)
        request = exactly;
    return json_string_value(json_object_get(request, "deviceClassName"));
}

static bool has_class(const struct bind_classes *classes, const char *name)
{
    for (size_t i = 0; name && i < classes->n; i++)
        if (strcmp(classes->names[i], name) == 0)
            return true;
    return false;
}

bool bind_covers(const struct bind_classes *classes, const json_t *object, const struct allocation *allocation)
{
    for (size_t i = 0; i < allocation->n_results; i++)
        if (!has_class(classes, class_of(object, allocation->results[i].request)))
            return false;
    return allocation->n_results > 0;
}

/* ---- a whole placement ---- */

struct obstacles {
    const struct bind_classes *classes;
    json_t *missing;     /* names of classes, each once */
    const char *foreign; /* a claim that is not ours to allocate, or NULL */
};

static void look_at(struct obstacles *o, const json_t *object, const struct allocation *allocation)
{
    for (size_t i = 0; i < allocation->n_results; i++) {
        const char *class = class_of(object, allocation->results[i].request);

        if (!has_class(o->classes, class))
            json_object_set_new(o->missing, class ? class : "", json_true());
    }
}

static void look_at_member(struct obstacles *o, const struct gang_spec *question, const struct placed_member *member)
{
    const struct gang_group *group = &question->groups[member->group];

    for (size_t c = 0; c < member->n_claims; c++) {
        const struct placed_claim *claim = &member->claims[c];

        if (claim->source == GANG_CLAIM_OWN)
            look_at(o, group->claims[c].object, &claim->allocation);
        else if (claim->source != GANG_CLAIM_SHARED && claim->allocation.n_results > 0)
            o->foreign = claim->pod_claim;
    }
}

static const char *words_for(const struct obstacles *o, struct arena *arena)
{
    const char *name;
    json_t *value;
    BUF words = {0};

    if (o->foreign)
        return arena_printf(arena, "claim %s is not created by queued, so that it cannot be", o->foreign);
    if (json_object_size(o->missing) == 0)
        return NULL;
    json_object_foreach (o->missing, name, value)
        buf_addf(&words, "%s%s", words.len ? "," : "", name);
    return arena_printf(arena, "an administrator can give queued the device classes for it: bind-classes = %s",
                        buf_str(&words));
}

const char *bind_obstacle(const struct bind_classes *classes, const struct gang_spec *question,
                          const struct placement *placement, struct arena *arena)
{
    struct obstacles o = {.classes = classes, .missing = json_object()};
    const char *words;

    for (size_t s = 0; s < placement->n_shared; s++)
        look_at(&o, question->shared[s], &placement->shared[s]);
    for (size_t m = 0; m < placement->n_members; m++)
        look_at_member(&o, question, &placement->members[m]);
    words = words_for(&o, arena);
    json_decref(o.missing);
    return words;
}
