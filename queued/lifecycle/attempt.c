#include "queued/lifecycle/attempt.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "queued/lifecycle/objects.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

static const char *const kinds[RANK_ASSUMED] = {
    [RANK_ANCHOR] = "ConfigMap",    [RANK_SERVICE] = "Service", [RANK_POD_GROUP] = "PodGroup",
    [RANK_CLAIM] = "ResourceClaim", [RANK_POD] = "Pod",
};

static enum object_rank rank_of(const char *kind, const json_t *metadata)
{
    enum object_rank rank = RANK_ANCHOR;

    if (json_object_get(json_object_get(metadata, "labels"), LABEL_ASSUMED))
        return RANK_ASSUMED;
    while (strcmp(kinds[rank], kind) != 0) {
        rank++;
        INVARIANT(rank < RANK_ASSUMED); /* bodies are made by objects.c alone */
    }
    return rank;
}

struct attempt *attempt_new(int64_t number, size_t shape, int64_t created_ms)
{
    struct attempt *attempt = mem_new(struct attempt);

    attempt->number = number;
    attempt->shape = shape;
    attempt->created_ms = attempt->step_ms = created_ms;
    return attempt;
}

void attempt_free(struct attempt *attempt)
{
    if (!attempt)
        return;
    for (size_t i = 0; i < attempt->n_objects; i++) {
        json_decref(attempt->objects[i].body);
        json_decref(attempt->objects[i].planned);
        json_decref(attempt->objects[i].observed);
        free(attempt->objects[i].gone_uid);
        free(attempt->objects[i].gone_words);
    }
    free(attempt->objects);
    free(attempt->waits);
    json_decref(attempt->placement);
    json_decref(attempt->chosen);
    json_decref(attempt->charges);
    json_decref(attempt->effective);
    free(attempt);
}

static size_t turn_of(const json_t *metadata)
{
    const char *text = json_string_value(json_object_get(json_object_get(metadata, "annotations"), ANNOTATION_TURN));

    return text ? strtoul(text, NULL, 10) : 0;
}

/* Takes the references. */
static void add_object(struct attempt *attempt, json_t *body, json_t *planned)
{
    const json_t *metadata = json_object_get(body, "metadata");
    struct launch_object *object;

    attempt->objects = mem_resize(attempt->objects, attempt->n_objects + 1, sizeof(*attempt->objects));
    object = &attempt->objects[attempt->n_objects++];
    *object = (struct launch_object){
        .kind = json_string_value(json_object_get(body, "kind")),
        .ns = json_string_value(json_object_get(metadata, "namespace")),
        .name = json_string_value(json_object_get(metadata, "name")),
        .body = body,
        .until = json_string_value(json_object_get(json_object_get(metadata, "annotations"), ANNOTATION_UNTIL)),
        .planned = planned,
    };
    object->rank = rank_of(object->kind, metadata);
    object->is_bound = json_object_get(json_object_get(metadata, "annotations"), ANNOTATION_BIND) != NULL;
    object->turn = object->rank == RANK_POD ? turn_of(metadata) : 0;
    object->is_loose = object->rank == RANK_ASSUMED ||
                       json_object_get(json_object_get(metadata, "annotations"), ANNOTATION_LOOSE) != NULL;
}

void attempt_decide(struct attempt *attempt, json_t *objects, json_t *placement, json_t *chosen, json_t *charges)
{
    json_t *entry;
    size_t i;

    json_array_foreach (objects, i, entry)
        add_object(attempt, json_incref(json_object_get(entry, "body")),
                   json_incref(json_object_get(entry, "planned")));
    attempt->placement = json_incref(placement);
    attempt->chosen = json_incref(chosen);
    attempt->charges = json_incref(charges);
}

static char *text_of(const json_t *value)
{
    return value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
}

static json_t *value_of(const char *text)
{
    return text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
}

static void store_objects(const struct attempt *attempt, int64_t job, struct store *store)
{
    for (size_t i = 0; i < attempt->n_objects; i++) {
        const struct launch_object *object = &attempt->objects[i];
        char *body = text_of(object->body), *planned = text_of(object->planned);

        store_object_insert(store, job, attempt->number,
                            &(struct object_row){.position = (int64_t)i,
                                                 .kind = object->kind,
                                                 .ns = object->ns,
                                                 .name = object->name,
                                                 .body = body,
                                                 .planned = planned});
        free(body);
        free(planned);
    }
}

void attempt_store(const struct attempt *attempt, int64_t job, struct store *store)
{
    char *placement = text_of(attempt->placement), *chosen = text_of(attempt->chosen),
         *charges = text_of(attempt->charges), *effective = text_of(attempt->effective);

    store_attempt_insert(store, &(struct attempt_row){.job = job,
                                                      .number = attempt->number,
                                                      .shape = (int64_t)attempt->shape,
                                                      .created_ms = attempt->created_ms,
                                                      .placement = placement,
                                                      .chosen = chosen,
                                                      .charges = charges,
                                                      .effective = effective});
    store_objects(attempt, job, store);
    free(placement);
    free(chosen);
    free(charges);
    free(effective);
}

void attempt_store_charges(const struct attempt *attempt, int64_t job, struct store *store)
{
    char *charges = text_of(attempt->charges);

    store_attempt_recharge(store, job, attempt->number, charges);
    free(charges);
}

void attempt_store_placement(const struct attempt *attempt, int64_t job, struct store *store)
{
    char *placement = text_of(attempt->placement);

    store_attempt_place(store, job, attempt->number, placement);
    free(placement);
}

static void load_row(void *ctx, const struct attempt_row *row)
{
    struct attempt **out = ctx;

    *out = attempt_new(row->number, (size_t)row->shape, row->created_ms);
    (*out)->placement = value_of(row->placement);
    (*out)->chosen = value_of(row->chosen);
    (*out)->charges = value_of(row->charges);
    (*out)->effective = value_of(row->effective);
}

static void load_object(void *ctx, const struct object_row *row)
{
    struct attempt **out = ctx;

    add_object(*out, value_of(row->body), value_of(row->planned));
}

int attempt_load(struct store *store, int64_t job, int64_t number, struct attempt **out, struct error *err)
{
    CLEANUP(attempt) *attempt = NULL;

    if (store_attempt_load(store, job, number, load_row, load_object, &attempt, err) < 0)
        return -1;
    if (!attempt)
        return error_set(err, ERR_NOT_FOUND, "job %lld has no attempt %lld", (long long)job, (long long)number);
    *out = TAKE(attempt);
    return 0;
}

struct launch_object *attempt_find(const struct attempt *attempt, const char *kind, const char *name)
{
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (strcmp(attempt->objects[i].name, name) == 0 && strcmp(attempt->objects[i].kind, kind) == 0)
            return &attempt->objects[i];
    return NULL;
}

bool attempt_is_bound(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (attempt->objects[i].is_bound)
            return true;
    return false;
}

void launch_object_observe(struct launch_object *object, const json_t *observed)
{
    const json_t *status = json_object_get(observed, "status"), *before = json_object_get(object->observed, "status");

    if (!observed || (json_object_get(before, "allocation") && !json_object_get(status, "allocation")))
        object->is_allocated = false;
    json_decref(object->observed);
    object->observed = json_incref((json_t *)(uintptr_t)observed);
    object->is_there = object->is_told = observed != NULL;
}

const char *launch_object_uid(const struct launch_object *object)
{
    return json_string_value(json_object_get(json_object_get(object->observed, "metadata"), "uid"));
}
