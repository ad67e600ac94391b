/* What administrators apply: queues, resources, priority classes. */
#include <string.h>

#include "queued/manifest/fields.h"
#include "queued/manifest/job.h"

#include "allocator/base/banned.h"

#define WEIGHT_MAX 1000000

static const struct field quota_rows[] = {
    {.name = "resource", FIELD_STRING, .required = true},
    {.name = "nominal", FIELD_QUANTITY, .required = true},
    {.name = "borrowingLimit", FIELD_QUANTITY},
    {.name = "lendingLimit", FIELD_QUANTITY},
};
static const struct fields quota_fields = FIELDS(quota_rows);

static int quotas_check(json_t *quotas, struct error *err)
{
    const json_t *quota;
    size_t i;

    json_array_foreach (quotas, i, quota)
        for (size_t j = 0; j < i; j++)
            if (json_equal(json_object_get(json_array_get(quotas, j), "resource"),
                           json_object_get(quota, "resource"))) {
                error_field(err, "resource", "\"%.63s\" is there twice",
                            json_string_value(json_object_get(quota, "resource")));
                return error_in(err, "[%zu]", i);
            }
    return 0;
}

static const char *const queue_states[] = {"open", "held", "drained", NULL};

static const struct field queue_rows[] = {
    {.name = "parent", FIELD_STRING},
    {.name = "weight", FIELD_INT, .min = 1, .max = WEIGHT_MAX},
    {.name = "state", FIELD_STRING, .one_of = queue_states},
    {.name = "placement", FIELD_STRING, .one_of = job_placements},
    {.name = "quotas", FIELD_OBJECTS, .max = 1000, .of = &quota_fields, .check = quotas_check},
};
static const struct fields queue_fields = FIELDS(queue_rows);

static int resource_check(json_t *spec, struct error *err)
{
    if (!json_object_get(spec, "deviceClassName") && !json_object_get(spec, "selector"))
        return error_field(err, "deviceClassName", "either this or selector must say which devices are counted");
    return 0;
}

static const struct field resource_rows[] = {
    {.name = "deviceClassName", FIELD_STRING},
    {.name = "selector", FIELD_STRING},
    {.name = "capacity", FIELD_STRING},
};
static const struct fields resource_fields = FIELDS_AND(resource_rows, resource_check);

static const struct field class_rows[] = {
    {.name = "value", FIELD_INT, .min = INT32_MIN, .max = INT32_MAX, .required = true}};
static const struct fields class_fields = FIELDS(class_rows);

#define DOCUMENT_ROWS(of_spec, need_spec)                                                                              \
    {.name = "apiVersion", FIELD_STRING, .required = true}, {.name = "kind", FIELD_STRING, .required = true},          \
        {.name = "metadata", FIELD_OBJECT, .of = &object_metadata_fields, .required = true},                           \
        {.name = "spec", FIELD_OBJECT, .of = &(of_spec), .required = (need_spec)},                                     \
    {                                                                                                                  \
        "status", .dropped = true                                                                                      \
    }

static const struct field queue_document_rows[] = {DOCUMENT_ROWS(queue_fields, false)};
static const struct field resource_document_rows[] = {DOCUMENT_ROWS(resource_fields, true)};
static const struct field class_document_rows[] = {DOCUMENT_ROWS(class_fields, true)};

static const struct {
    const char *kind;
    struct fields fields;
} admin_kinds[] = {
    {"Queue", FIELDS(queue_document_rows)},
    {"Resource", FIELDS(resource_document_rows)},
    {"PriorityClass", FIELDS(class_document_rows)},
};

static const char *kind_name_of(const void *ctx, size_t i)
{
    (void)ctx;
    return admin_kinds[i].kind;
}

static int document_check(json_t *document, struct error *err)
{
    const char *version = json_string_value(json_object_get(document, "apiVersion"));
    const char *kind = json_string_value(json_object_get(document, "kind")), *close;
    const json_t *metadata;

    if (!json_is_object(document))
        return error_set(err, ERR_INVALID, "every document must be an object");
    if (!kind)
        return error_field(err, "kind", "is missing: every document needs apiVersion and kind");
    if (!version || strcmp(version, JOB_API_VERSION) != 0)
        return error_field(err, "apiVersion",
                           "%.63s of %.63s cannot be applied: only Queue, Resource and PriorityClass of %s can", kind,
                           version ? version : "no apiVersion", JOB_API_VERSION);
    for (size_t i = 0; i < ARRAY_SIZE(admin_kinds); i++) {
        if (strcmp(admin_kinds[i].kind, kind) != 0)
            continue;
        if (fields_check(document, &admin_kinds[i].fields, err) < 0)
            return -1;
        metadata = json_object_get(document, "metadata");
        if (field_name_check(json_string_value(json_object_get(metadata, "name")), 63, true, err) < 0)
            return error_in(err, "metadata.name");
        return 0;
    }
    if (strcmp(kind, "GangJob") == 0)
        return error_field(err, "kind", "a GangJob is submitted, not applied: dra-submit FILE");
    close = closest_name(kind, kind_name_of, NULL, ARRAY_SIZE(admin_kinds));
    return error_field(err, "kind", "%.63s cannot be applied%s%s%s", kind, close ? " (did you mean " : "",
                       close ? close : "", close ? "?)" : "");
}

int admin_document_check(const json_t *document, struct error *err)
{
    json_t *copy = json_deep_copy(document);
    int rc = document_check(copy, err);

    json_decref(copy);
    return rc;
}
