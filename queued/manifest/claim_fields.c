/* ResourceClaims and ResourceClaimTemplates in the versions that clusters serve: v1 and v1beta2 nest a request's
 * details below `exactly`, v1beta1 has them flat. They are passed on in the shape they came in; the allocator reads
 * all. */
#include <string.h>

#include "queued/manifest/fields.h"

#include "allocator/base/banned.h"

static const struct field cel_rows[] = {{.name = "expression", FIELD_STRING, .required = true}};
static const struct fields cel_fields = FIELDS(cel_rows);

static const struct field selector_rows[] = {{.name = "cel", FIELD_OBJECT, .of = &cel_fields, .required = true}};
static const struct fields selector_fields = FIELDS(selector_rows);

static const struct field device_toleration_rows[] = {
    {.name = "key", FIELD_STRING},    {.name = "operator", FIELD_STRING},       {.name = "value", FIELD_STRING},
    {.name = "effect", FIELD_STRING}, {.name = "tolerationSeconds", FIELD_INT},
};
static const struct fields device_toleration_fields = FIELDS(device_toleration_rows);

static const struct field capacity_rows[] = {{.name = "requests", FIELD_QUANTITY_MAP}};
static const struct fields capacity_fields = FIELDS(capacity_rows);

static const char *const modes[] = {"ExactCount", "All", NULL};

#define DETAIL_ROWS                                                                                                    \
    {.name = "selectors", FIELD_OBJECTS, .max = 32, .of = &selector_fields},                                           \
        {.name = "allocationMode", FIELD_STRING, .one_of = modes},                                                     \
        {.name = "count", FIELD_INT, .min = 1, .max = INT32_MAX},                                                      \
        {.name = "tolerations", FIELD_OBJECTS, .max = 16, .of = &device_toleration_fields},                            \
        {.name = "capacity", FIELD_OBJECT, .of = &capacity_fields},                                                    \
    {                                                                                                                  \
        .name = "derivedAttributes", FIELD_LIST                                                                        \
    }

static const struct field exact_rows[] = {
    {.name = "deviceClassName", FIELD_STRING, .required = true},
    {.name = "adminAccess", FIELD_BOOL},
    DETAIL_ROWS,
};
static const struct fields exact_fields = FIELDS(exact_rows);

static const struct field subrequest_rows[] = {
    {.name = "name", FIELD_STRING, .required = true},
    {.name = "deviceClassName", FIELD_STRING, .required = true},
    DETAIL_ROWS,
};
static const struct fields subrequest_fields = FIELDS(subrequest_rows);

static int request_check(json_t *request, struct error *err)
{
    bool exactly = json_object_get(request, "exactly"), first = json_object_get(request, "firstAvailable");

    if (exactly == first)
        return error_field(err, "exactly", "%s",
                           exactly ? "must not stand beside firstAvailable"
                                   : "either this or firstAvailable must be set");
    return 0;
}

static const struct field request_rows[] = {
    {.name = "name", FIELD_STRING, .required = true},
    {.name = "exactly", FIELD_OBJECT, .of = &exact_fields},
    {.name = "firstAvailable", FIELD_OBJECTS, .max = 8, .of = &subrequest_fields},
};
static const struct fields request_fields = FIELDS_AND(request_rows, request_check);

static int flat_request_check(json_t *request, struct error *err)
{
    bool flat = json_object_get(request, "deviceClassName"), first = json_object_get(request, "firstAvailable");

    if (flat == first)
        return error_field(err, "deviceClassName", "%s",
                           flat ? "must not stand beside firstAvailable" : "either this or firstAvailable must be set");
    return 0;
}

static const struct field flat_request_rows[] = {
    {.name = "name", FIELD_STRING, .required = true},
    {.name = "deviceClassName", FIELD_STRING},
    {.name = "adminAccess", FIELD_BOOL},
    {.name = "firstAvailable", FIELD_OBJECTS, .max = 8, .of = &subrequest_fields},
    DETAIL_ROWS,
};
static const struct fields flat_request_fields = FIELDS_AND(flat_request_rows, flat_request_check);

static int constraint_check(json_t *constraint, struct error *err)
{
    if (!json_object_get(constraint, "matchAttribute") == !json_object_get(constraint, "distinctAttribute"))
        return error_field(err, "matchAttribute", "either this or distinctAttribute must be set, not both");
    return 0;
}

static const struct field constraint_rows[] = {
    {.name = "requests", FIELD_STRINGS, .max = 32},
    {.name = "matchAttribute", FIELD_STRING},
    {.name = "distinctAttribute", FIELD_STRING},
};
static const struct fields constraint_fields = FIELDS_AND(constraint_rows, constraint_check);

static const struct field opaque_rows[] = {
    {.name = "driver", FIELD_STRING, .required = true},
    {.name = "parameters", FIELD_ANY, .required = true},
};
static const struct fields opaque_fields = FIELDS(opaque_rows);

static const struct field config_rows[] = {
    {.name = "requests", FIELD_STRINGS, .max = 32},
    {.name = "opaque", FIELD_OBJECT, .of = &opaque_fields, .required = true},
};
static const struct fields config_fields = FIELDS(config_rows);

#define DEVICE_ROWS(of_requests)                                                                                       \
    {.name = "requests", FIELD_OBJECTS, .max = 32, .of = &(of_requests)},                                              \
        {.name = "constraints", FIELD_OBJECTS, .max = 32, .of = &constraint_fields},                                   \
    {                                                                                                                  \
        .name = "config", FIELD_OBJECTS, .of = &config_fields                                                          \
    }

static const struct field devices_rows[] = {DEVICE_ROWS(request_fields)};
static const struct field flat_devices_rows[] = {DEVICE_ROWS(flat_request_fields)};
static const struct fields devices_fields = FIELDS(devices_rows), flat_devices_fields = FIELDS(flat_devices_rows);

static const struct field claim_spec_rows[] = {
    {.name = "devices", FIELD_OBJECT, .of = &devices_fields, .required = true}};
static const struct field flat_claim_spec_rows[] = {
    {.name = "devices", FIELD_OBJECT, .of = &flat_devices_fields, .required = true}};
static const struct fields claim_spec_fields = FIELDS(claim_spec_rows),
                           flat_claim_spec_fields = FIELDS(flat_claim_spec_rows);

static const struct field claim_metadata_rows[] = {{.name = "labels", FIELD_TEXT_MAP},
                                                   {.name = "annotations", FIELD_TEXT_MAP}};
static const struct fields claim_metadata_fields = FIELDS(claim_metadata_rows);

#define TEMPLATE_SPEC_ROWS(of_spec)                                                                                    \
    {.name = "metadata", FIELD_OBJECT, .of = &claim_metadata_fields},                                                  \
    {                                                                                                                  \
        .name = "spec", FIELD_OBJECT, .of = &(of_spec), .required = true                                               \
    }

static const struct field template_spec_rows[] = {TEMPLATE_SPEC_ROWS(claim_spec_fields)};
static const struct field flat_template_spec_rows[] = {TEMPLATE_SPEC_ROWS(flat_claim_spec_fields)};
static const struct fields template_spec_fields = FIELDS(template_spec_rows),
                           flat_template_spec_fields = FIELDS(flat_template_spec_rows);

static int status_check(json_t *status, struct error *err)
{
    if (json_object_get(status, "allocation"))
        return error_field(err, "allocation",
                           "this claim has its devices already: leave the document out and the members use "
                           "the claim that exists");
    return 0;
}

#define OBJECT_ROWS(of_spec)                                                                                           \
    {.name = "apiVersion", FIELD_STRING, .required = true}, {.name = "kind", FIELD_STRING, .required = true},          \
        {.name = "metadata", FIELD_OBJECT, .of = &object_metadata_fields, .required = true},                           \
        {.name = "spec", FIELD_OBJECT, .of = &(of_spec), .required = true},                                            \
    {                                                                                                                  \
        .name = "status", FIELD_MAP, .check = status_check                                                             \
    }

static const struct field claim_rows[] = {OBJECT_ROWS(claim_spec_fields)};
static const struct field flat_claim_rows[] = {OBJECT_ROWS(flat_claim_spec_fields)};
static const struct field template_rows[] = {OBJECT_ROWS(template_spec_fields)};
static const struct field flat_template_rows[] = {OBJECT_ROWS(flat_template_spec_fields)};

static const struct shape {
    const char *version;
    struct fields claim, template;
} shapes[] = {
    {"resource.k8s.io/v1", FIELDS(claim_rows), FIELDS(template_rows)},
    {"resource.k8s.io/v1beta2", FIELDS(claim_rows), FIELDS(template_rows)},
    {"resource.k8s.io/v1beta1", FIELDS(flat_claim_rows), FIELDS(flat_template_rows)},
};

static const struct shape *shape_find(const char *version)
{
    for (size_t i = 0; version && i < ARRAY_SIZE(shapes); i++)
        if (strcmp(shapes[i].version, version) == 0)
            return &shapes[i];
    return NULL;
}

bool claim_version_known(const char *version)
{
    return shape_find(version) != NULL;
}

int claim_object_check(json_t *object, struct error *err)
{
    const char *version = json_string_value(json_object_get(object, "apiVersion"));
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const struct shape *shape = shape_find(version);

    if (!shape)
        return error_field(err, "apiVersion", "\"%.60s\" is none of resource.k8s.io/v1, v1beta2, v1beta1",
                           version ? version : "");
    if (!kind || (strcmp(kind, "ResourceClaim") != 0 && strcmp(kind, "ResourceClaimTemplate") != 0))
        return error_field(err, "kind", "must be ResourceClaim or ResourceClaimTemplate");
    return fields_check(object, strcmp(kind, "ResourceClaim") == 0 ? &shape->claim : &shape->template, err);
}
