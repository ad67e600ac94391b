/* queue.dra/v1 GangJob: the native kind, and the canonical form of all others. */
#include <stdio.h>
#include <string.h>

#include "queued/manifest/decode.h"
#include "queued/manifest/fields.h"
#include "queued/manifest/job.h"

#include "allocator/base/banned.h"

/* ---- claims inline ---- */

/* "{name, apiVersion, metadata, spec}" for short, where spec is a ResourceClaimSpec. */
static const char *const claim_versions[] = {"resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1",
                                             NULL};

static const struct field short_metadata_rows[] = {{.name = "labels", FIELD_TEXT_MAP},
                                                   {.name = "annotations", FIELD_TEXT_MAP}};
static const struct fields short_metadata_fields = FIELDS(short_metadata_rows);

static const struct field short_rows[] = {
    {.name = "name", FIELD_STRING, .required = true},
    {.name = "apiVersion", FIELD_STRING, .one_of = claim_versions},
    {.name = "metadata", FIELD_OBJECT, .of = &short_metadata_fields},
    {.name = "spec", FIELD_MAP, .required = true},
};
static const struct fields short_fields = FIELDS(short_rows);

/* The whole object that a shorthand stands for. */
static json_t *whole_claim(const json_t *brief, const char *kind)
{
    const char *version = json_string_value(json_object_get(brief, "apiVersion"));
    json_t *metadata = json_object_get(brief, "metadata"), *spec = json_object_get(brief, "spec");
    json_t *own = json_pack("{s:O}", "name", json_object_get(brief, "name"));

    if (strcmp(kind, "ResourceClaimTemplate") == 0)
        spec = json_pack("{s:O*, s:O}", "metadata", metadata, "spec", spec);
    else {
        json_object_update_missing(own, metadata);
        json_incref(spec);
    }
    return json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", version ? version : claim_versions[0], "kind", kind,
                     "metadata", own, "spec", spec);
}

/* A template's spec stands one level deeper in the whole object than in the shorthand that the user wrote. */
static int in_shorthand(struct error *err, const char *kind)
{
    static const char deeper[] = "spec.spec";

    if (err && strcmp(kind, "ResourceClaimTemplate") == 0 && strncmp(err->field, deeper, strlen(deeper)) == 0)
        memmove(err->field, err->field + strlen("spec."), strlen(err->field) - strlen("spec.") + 1);
    return -1;
}

static int claim_entry_check(json_t *entry, const char *kind, struct error *err)
{
    const char *given = json_string_value(json_object_get(entry, "kind"));
    json_t *whole;
    int rc;

    if (given && strcmp(given, kind) != 0)
        return error_field(err, "kind", "must be %s", kind);
    if (given)
        return claim_object_check(entry, err);
    if (fields_check(entry, &short_fields, err) < 0)
        return -1;
    whole = whole_claim(entry, kind);
    rc = claim_object_check(whole, err);
    if (rc < 0)
        in_shorthand(err, kind);
    json_object_clear(entry);
    json_object_update(entry, whole);
    json_decref(whole);
    return rc;
}

static const char *object_name(const json_t *object)
{
    return json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));
}

static int claim_entries_check(json_t *list, const char *kind, struct error *err)
{
    json_t *entry;
    size_t i;

    json_array_foreach (list, i, entry) {
        if (claim_entry_check(entry, kind, err) < 0)
            return error_in(err, "[%zu]", i);
        if (field_name_check(object_name(entry), 253, true, err) < 0) {
            error_in(err, "name");
            return error_in(err, "[%zu]", i);
        }
        for (size_t j = 0; j < i; j++)
            if (strcmp(object_name(json_array_get(list, j)), object_name(entry)) == 0) {
                error_field(err, "name", "\"%.63s\" is there twice", object_name(entry));
                return error_in(err, "[%zu]", i);
            }
    }
    return 0;
}

static int templates_check(json_t *list, struct error *err)
{
    return claim_entries_check(list, "ResourceClaimTemplate", err);
}

static int shared_check(json_t *list, struct error *err)
{
    return claim_entries_check(list, "ResourceClaim", err);
}

/* ---- groups ---- */

static bool is_host_pattern(const char *at)
{
    const char *begin = at;

    while (*at)
        if (strncmp(at, "{index}", 7) == 0)
            at += 7;
        else if (strncmp(at, "{job}", 5) == 0)
            at += 5;
        else if (strchr("abcdefghijklmnopqrstuvwxyz0123456789-.", *at))
            at++;
        else
            return false;
    return at > begin && !strchr("-.", begin[0]) && !strchr("-.", at[-1]);
}

/* Members are hosts: each needs a name of its own, and one that can be a host's. */
static int member_name_check(const json_t *group, json_int_t replicas, json_int_t size, struct error *err)
{
    const char *pattern = json_string_value(json_object_get(group, "memberName"));

    if (!pattern)
        return 0;
    if (!is_host_pattern(pattern))
        return error_field(err, "memberName",
                           "must be a host's name: lower-case letters, digits, - and ., with {index} and {job} in it");
    if (replicas > 1 && !strstr(pattern, "{index}"))
        return error_field(err, "memberName", "must hold {index}: each member needs a name of its own");
    if (size > 0 && replicas > size && !strstr(pattern, "{job}"))
        return error_field(err, "memberName", "must hold {job}: there are several jobs of jobSize members");
    return 0;
}

static int group_check(json_t *group, struct error *err)
{
    json_int_t replicas, least, size;

    if (!json_object_get(group, "replicas"))
        json_object_set_new(group, "replicas", json_integer(1));
    replicas = json_integer_value(json_object_get(group, "replicas"));
    least = json_integer_value(json_object_get(group, "minReplicas"));
    size = json_integer_value(json_object_get(group, "jobSize"));
    if (least > replicas)
        return error_field(err, "minReplicas", "%lld is more than replicas (%lld)", (long long)least,
                           (long long)replicas);
    if (size > 0 && replicas % size != 0)
        return error_field(err, "jobSize", "replicas (%lld) is no multiple of it", (long long)replicas);
    if (members_must_end(json_object_get(group, "template"), "Never", err) < 0)
        return error_in(err, "template");
    return member_name_check(group, replicas, size, err);
}

static int group_name_check(json_t *name, struct error *err)
{
    return field_name_check(json_string_value(name), 63, true, err);
}

static const struct field group_rows[] = {
    {.name = "name", FIELD_STRING, .required = true, .check = group_name_check},
    {.name = "replicas", FIELD_INT, .min = 1, .max = MEMBERS_MAX},
    {.name = "minReplicas", FIELD_INT, .min = 1, .max = MEMBERS_MAX},
    {.name = "jobSize", FIELD_INT, .min = 1, .max = MEMBERS_MAX},
    {.name = "memberName", FIELD_STRING},
    {.name = "template", FIELD_OBJECT, .of = &pod_template_fields, .required = true},
};
static const struct fields group_fields = FIELDS_AND(group_rows, group_check);

static int groups_check(json_t *groups, struct error *err)
{
    json_int_t members = 0;
    json_t *group;
    size_t i;

    if (json_array_size(groups) == 0)
        return error_set(err, ERR_INVALID, "a job needs a group");
    json_array_foreach (groups, i, group) {
        const json_t *name = json_object_get(group, "name");

        for (size_t j = 0; j < i; j++)
            if (json_equal(json_object_get(json_array_get(groups, j), "name"), name)) {
                error_field(err, "name", "\"%.63s\" is there twice", json_string_value(name));
                return error_in(err, "[%zu]", i);
            }
        members += json_integer_value(json_object_get(group, "replicas"));
    }
    if (members > MEMBERS_MAX)
        return error_set(err, ERR_LIMIT, "%lld members are more than %d", (long long)members, MEMBERS_MAX);
    return 0;
}

static const struct field alternative_rows[] = {
    {.name = "name", FIELD_STRING, .required = true, .check = group_name_check},
    {.name = "groups", FIELD_OBJECTS, .max = LIST_MAX, .of = &group_fields, .required = true, .check = groups_check},
};
static const struct fields alternative_fields = FIELDS(alternative_rows);

/* ---- constraints ---- */

static int constraint_check(json_t *constraint, struct error *err)
{
    static const char *const kinds[] = {"matchAttribute", "distinctAttribute", "matchNodeLabel"};
    const char *set = NULL, *value;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (!json_object_get(constraint, kinds[i]))
            continue;
        if (set)
            return error_field(err, kinds[i], "must not stand beside %s: write two constraints", set);
        set = kinds[i];
    }
    if (!set)
        return error_field(err, kinds[0], "one of matchAttribute, distinctAttribute and matchNodeLabel must be set");
    value = json_string_value(json_object_get(constraint, set));
    if (set != kinds[2] && (!strchr(value, '/') || value[0] == '/' || value[strlen(value) - 1] == '/'))
        return error_field(err, set, "\"%.80s\" must be an attribute's full name: domain/name", value);
    if (set == kinds[2] && !*value)
        return error_field(err, set, "must not be empty");
    if (set == kinds[2] && json_object_get(constraint, "requests"))
        return error_field(err, "requests", "means nothing for a node label");
    if (set != kinds[2] && json_is_true(json_object_get(constraint, "preferred")))
        return error_field(err, "preferred", "only node labels can be preferred; attributes are required");
    return 0;
}

static const struct field constraint_rows[] = {
    {.name = "matchAttribute", FIELD_STRING},
    {.name = "distinctAttribute", FIELD_STRING},
    {.name = "matchNodeLabel", FIELD_STRING},
    {.name = "groups", FIELD_STRINGS, .max = LIST_MAX},
    {.name = "requests", FIELD_STRINGS, .max = CLAIMS_MAX},
    {.name = "preferred", FIELD_BOOL},
};
static const struct fields constraint_fields = FIELDS_AND(constraint_rows, constraint_check);

/* ---- the job ---- */

static int depends_check(json_t *list, struct error *err)
{
    const json_t *name;
    size_t i;

    json_array_foreach (list, i, name)
        if (field_name_check(json_string_value(name), 63, true, err) < 0)
            return error_in(err, "[%zu]", i);
    return 0;
}

static int spec_check(json_t *spec, struct error *err)
{
    if (json_object_get(spec, "priority") && json_object_get(spec, "priorityClassName"))
        return error_field(err, "priorityClassName", "must not stand beside priority");
    return 0;
}

static const struct field network_rows[] = {{.name = "enableDNSHostnames", FIELD_BOOL}};
static const struct fields network_fields = FIELDS(network_rows);

static const struct field spec_rows[] = {
    {.name = "queue", FIELD_STRING},
    {.name = "priority", FIELD_INT, .min = INT32_MIN, .max = INT32_MAX},
    {.name = "priorityClassName", FIELD_STRING},
    {.name = "maxRuntime", FIELD_DURATION},
    {.name = "retries", FIELD_INT, .min = 0, .max = INT32_MAX},
    {.name = "ttlAfterFinished", FIELD_STRING}, /* "0s" is allowed, see spec_view() */
    {.name = "hold", FIELD_BOOL},
    {.name = "dependsOn", FIELD_STRINGS, .max = CLAIMS_MAX, .check = depends_check},
    {.name = "groups", FIELD_OBJECTS, .max = LIST_MAX, .of = &group_fields, .required = true, .check = groups_check},
    {.name = "claimTemplates", FIELD_LIST, .max = CLAIMS_MAX, .check = templates_check},
    {.name = "sharedClaims", FIELD_LIST, .max = CLAIMS_MAX, .check = shared_check},
    {.name = "constraints", FIELD_OBJECTS, .max = CLAIMS_MAX, .of = &constraint_fields},
    {.name = "sameAlternative", FIELD_BOOL},
    {.name = "placement", FIELD_STRING, .one_of = job_placements},
    {.name = "network", FIELD_OBJECT, .of = &network_fields},
    {.name = "alternatives", FIELD_OBJECTS, .max = CLAIMS_MAX, .of = &alternative_fields},
};
static const struct fields spec_fields = FIELDS_AND(spec_rows, spec_check);

static const struct field gangjob_rows[] = {
    {.name = "apiVersion", FIELD_STRING},
    {.name = "kind", FIELD_STRING},
    {.name = "metadata", FIELD_OBJECT, .of = &job_metadata_fields, .required = true},
    {.name = "spec", FIELD_OBJECT, .of = &spec_fields, .required = true},
    {"status", .dropped = true},
};
static const struct fields gangjob_fields = FIELDS(gangjob_rows);

int gangjob_check(json_t *gangjob, struct error *err)
{
    return fields_check(gangjob, &gangjob_fields, err);
}

/* ---- decoding ---- */

static void take_list(json_t **list, const json_t *spec, const char *name)
{
    json_t *given = json_object_get(spec, name);

    if (given)
        json_array_extend(*list, given);
}

static bool is_list_of_draft(const char *key)
{
    static const char *const lists[] = {"groups", "claimTemplates", "sharedClaims", "constraints", "alternatives"};

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        if (strcmp(lists[i], key) == 0)
            return true;
    return false;
}

static int take_spec(struct draft *draft, const json_t *spec, struct error *err)
{
    const char *key;
    json_t *value;
    size_t i;

    json_object_foreach ((json_t *)spec, key, value)
        if (!is_list_of_draft(key))
            draft_set(draft, key, json_incref(value));
    take_list(&draft->groups, spec, "groups");
    take_list(&draft->templates, spec, "claimTemplates");
    take_list(&draft->claims, spec, "sharedClaims");
    take_list(&draft->constraints, spec, "constraints");
    take_list(&draft->alternatives, spec, "alternatives");
    draft->ranked = json_object_get(spec, "priority") || json_object_get(spec, "priorityClassName");
    json_array_foreach (draft->groups, i, value)
        if (draft_pod_priority(draft, json_object_get(json_object_get(value, "template"), "spec"), err) < 0) {
            error_in(err, "template.spec");
            return error_in(err, "groups[%zu]", i);
        }
    return 0;
}

/* Claims inline are in the job's namespace. */
static void place_objects(const json_t *list, const char *ns)
{
    json_t *object;
    size_t i;

    json_array_foreach (list, i, object)
        json_object_set_new(json_object_get(object, "metadata"), "namespace", json_string(ns));
}

int gangjob_decode(struct source *source, struct draft *draft, struct error *err)
{
    json_t *metadata;

    if (draft->joint)
        return error_field(err, "kind", "a GangJob is a whole gang already and cannot be joined with other workloads");
    if (gangjob_check(source->object, err) < 0)
        return -1;
    metadata = json_object_get(source->object, "metadata");
    draft_metadata(draft, metadata);
    if (take_spec(draft, json_object_get(source->object, "spec"), err) < 0)
        return error_in(err, "spec");
    place_objects(draft->templates, draft->ns);
    place_objects(draft->claims, draft->ns);
    return kueue_workload(draft, metadata, WORKLOAD_GANGJOB, NULL, NULL, err);
}
