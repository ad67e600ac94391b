/* v1 Pod: a job of one member, or one group of a job when Kueue's pod-group-name joins several. */
#include "queued/manifest/decode.h"
#include "queued/manifest/fields.h"

#include "allocator/base/banned.h"

static const struct field pod_rows[] = {
    {.name = "apiVersion", FIELD_STRING},
    {.name = "kind", FIELD_STRING},
    {.name = "metadata", FIELD_OBJECT, .of = &job_metadata_fields, .required = true},
    {.name = "spec", FIELD_OBJECT, .of = &pod_spec_fields, .required = true},
    {"status", .dropped = true},
};
static const struct fields pod_fields = FIELDS(pod_rows);

int pod_decode(struct source *source, struct draft *draft, struct error *err)
{
    json_t *metadata, *spec, *pod_template, *deadline;
    const char *group = draft->joint ? source->name : "main";
    int rc;

    if (fields_check(source->object, &pod_fields, err) < 0)
        return -1;
    metadata = json_object_get(source->object, "metadata");
    spec = json_object_get(source->object, "spec");
    draft_metadata(draft, metadata);
    if (kueue_workload(draft, metadata, WORKLOAD_POD, group, NULL, err) < 0)
        return -1;
    if (draft_pod_priority(draft, spec, err) < 0)
        return error_in(err, "spec");
    deadline = json_object_get(spec, "activeDeadlineSeconds");
    if (deadline && !json_object_get(draft->spec, "maxRuntime"))
        draft_seconds(draft, "maxRuntime", json_integer_value(deadline));
    pod_template = json_pack("{s:{s:O*, s:O*}, s:O}", "metadata", "labels", json_object_get(metadata, "labels"),
                             "annotations", json_object_get(metadata, "annotations"), "spec", spec);
    rc = members_must_end(pod_template, "Never", err);
    if (rc == 0)
        draft_group(draft, group, 1, pod_template, source->name);
    json_decref(pod_template);
    return rc;
}
