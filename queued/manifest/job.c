/* The view into a canonical GangJob. Its types were checked by gangjob_check() on a copy (which fills in what is
 * missing; a canonical one has it all); what follows are the rules over several fields. */
#include "queued/manifest/job.h"

#include <stdio.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/str.h"
#include "queued/manifest/decode.h"
#include "queued/manifest/duration.h"
#include "queued/manifest/fields.h"

#include "allocator/base/banned.h"

static const char *text_at(const json_t *object, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : otherwise;
}

static size_t count_at(const json_t *object, const char *key, size_t otherwise)
{
    const json_t *value = json_object_get(object, key);

    return json_is_integer(value) ? (size_t)json_integer_value(value) : otherwise;
}

static const char *const *texts_at(const json_t *object, const char *key, struct arena *arena, size_t *out_n)
{
    const json_t *list = json_object_get(object, key), *entry;
    const char **texts = arena_array(arena, const char *, json_array_size(list) + 1);
    size_t i;

    json_array_foreach (list, i, entry)
        texts[i] = json_string_value(entry);
    *out_n = json_array_size(list);
    return texts;
}

static const char *object_name(const json_t *object)
{
    return text_at(json_object_get(object, "metadata"), "name", "");
}

/* The object of that name and its index; NULL when the job brings none. */
static const json_t *object_find(const json_t *list, const char *name, size_t *out_index)
{
    const json_t *object;
    size_t i;

    json_array_foreach (list, i, object)
        if (strcmp(object_name(object), name) == 0) {
            *out_index = i;
            return object;
        }
    return NULL;
}

/* ---- groups ---- */

static struct job_claim claim_view(const json_t *spec, const json_t *entry)
{
    const char *template = text_at(entry, "resourceClaimTemplateName", NULL);
    struct job_claim claim = {.pod_claim = text_at(entry, "name", "")};
    size_t index = 0;

    if (template) {
        claim.source = JOB_CLAIM_OWN;
        claim.name = template;
        claim.object = object_find(json_object_get(spec, "claimTemplates"), template, &index);
        return claim;
    }
    claim.name = text_at(entry, "resourceClaimName", "");
    claim.object = object_find(json_object_get(spec, "sharedClaims"), claim.name, &index);
    claim.source = claim.object ? JOB_CLAIM_SHARED : JOB_CLAIM_EXISTING;
    claim.shared = claim.object ? index : 0;
    return claim;
}

static void group_view(const json_t *spec, const json_t *group, struct arena *arena, struct job_group *out)
{
    const json_t *pod = json_object_get(group, "template"), *entry;
    const json_t *entries = json_object_get(json_object_get(pod, "spec"), "resourceClaims");
    struct job_claim *claims = arena_array(arena, struct job_claim, json_array_size(entries) + 1);
    size_t i;

    json_array_foreach (entries, i, entry)
        claims[i] = claim_view(spec, entry);
    *out = (struct job_group){
        .name = text_at(group, "name", ""),
        .replicas = count_at(group, "replicas", 1),
        .job_size = count_at(group, "jobSize", 0),
        .member_name = text_at(group, "memberName", NULL),
        .pod = pod,
        .claims = claims,
        .n_claims = json_array_size(entries),
    };
    out->min_replicas = count_at(group, "minReplicas", out->replicas);
}

static void shape_view(const json_t *spec, const json_t *holder, struct arena *arena, struct job_shape *out)
{
    const json_t *list = json_object_get(holder, "groups"), *group;
    struct job_group *groups = arena_array(arena, struct job_group, json_array_size(list) + 1);
    size_t i;

    json_array_foreach (list, i, group)
        group_view(spec, group, arena, &groups[i]);
    *out = (struct job_shape){text_at(holder, "name", ""), groups, json_array_size(list)};
}

static void shapes_view(const json_t *spec, struct arena *arena, struct job_spec *out)
{
    const json_t *alternatives = json_object_get(spec, "alternatives"), *alternative;
    struct job_shape *shapes = arena_array(arena, struct job_shape, json_array_size(alternatives) + 1);
    size_t i;

    shape_view(spec, spec, arena, &shapes[0]);
    json_array_foreach (alternatives, i, alternative)
        shape_view(spec, alternative, arena, &shapes[i + 1]);
    out->shapes = shapes;
    out->n_shapes = json_array_size(alternatives) + 1;
}

/* ---- claims that the job brings ---- */

static bool is_used(const struct job_spec *job, const char *name, enum job_claim_source source)
{
    for (size_t s = 0; s < job->n_shapes; s++)
        for (size_t g = 0; g < job->shapes[s].n_groups; g++) {
            const struct job_group *group = &job->shapes[s].groups[g];

            for (size_t c = 0; c < group->n_claims; c++)
                if (group->claims[c].source == source && strcmp(group->claims[c].name, name) == 0)
                    return true;
        }
    return false;
}

static int check_used(const json_t *spec, const char *key, const struct job_spec *job, enum job_claim_source source,
                      struct error *err)
{
    const json_t *object;
    char field[64];
    size_t i;

    json_array_foreach (json_object_get(spec, key), i, object) {
        if (is_used(job, object_name(object), source))
            continue;
        snprintf(field, sizeof(field), "%s[%zu]", key, i);
        return error_field(err, field, "no group uses \"%.63s\"", object_name(object));
    }
    return 0;
}

static void shared_view(const json_t *spec, struct arena *arena, struct job_spec *out)
{
    const json_t *list = json_object_get(spec, "sharedClaims"), *object;
    const json_t **shared = arena_array(arena, const json_t *, json_array_size(list) + 1);
    const char **names = arena_array(arena, const char *, json_array_size(list) + 1);
    size_t i;

    json_array_foreach (list, i, object) {
        shared[i] = object;
        names[i] = object_name(object);
    }
    out->shared = shared;
    out->shared_names = names;
    out->n_shared = json_array_size(list);
}

/* ---- constraints ---- */

static const char *group_name_of(const void *ctx, size_t i)
{
    const struct job_shape *shape = ctx;

    return shape->groups[i].name;
}

static bool has_group(const struct job_spec *job, const char *name)
{
    for (size_t s = 0; s < job->n_shapes; s++)
        for (size_t g = 0; g < job->shapes[s].n_groups; g++)
            if (strcmp(job->shapes[s].groups[g].name, name) == 0)
                return true;
    return false;
}

static const json_t *claim_requests(const json_t *object)
{
    const json_t *spec = json_object_get(object, "spec");

    if (json_object_get(spec, "spec"))
        spec = json_object_get(spec, "spec");
    return json_object_get(json_object_get(spec, "devices"), "requests");
}

/* Whether some claim has the request, or may have it: one that the job does not bring. */
static bool may_have_request(const struct job_spec *job, const char *name)
{
    const json_t *request;
    size_t i;

    for (size_t s = 0; s < job->n_shapes; s++)
        for (size_t g = 0; g < job->shapes[s].n_groups; g++) {
            const struct job_group *group = &job->shapes[s].groups[g];

            for (size_t c = 0; c < group->n_claims; c++) {
                if (!group->claims[c].object)
                    return true;
                json_array_foreach (claim_requests(group->claims[c].object), i, request)
                    if (strcmp(text_at(request, "name", ""), name) == 0)
                        return true;
            }
        }
    return false;
}

static int constraint_check(const struct job_spec *job, const struct job_constraint *constraint, struct error *err)
{
    char field[64];

    for (size_t i = 0; i < constraint->n_groups; i++) {
        const struct job_shape *shape = &job->shapes[0];
        const char *name = constraint->groups[i], *close;

        if (has_group(job, name))
            continue;
        close = closest_name(name, group_name_of, shape, shape->n_groups);
        snprintf(field, sizeof(field), "groups[%zu]", i);
        return error_field(err, field, "there is no group \"%.63s\"%s%s%s", name, close ? " (did you mean " : "",
                           close ? close : "", close ? "?)" : "");
    }
    for (size_t i = 0; i < constraint->n_requests; i++) {
        if (may_have_request(job, constraint->requests[i]))
            continue;
        snprintf(field, sizeof(field), "requests[%zu]", i);
        return error_field(err, field, "no claim of the job has a request \"%.63s\"", constraint->requests[i]);
    }
    return 0;
}

static void constraint_view(const json_t *entry, struct arena *arena, struct job_constraint *out)
{
    static const struct {
        const char *key;
        enum job_constraint_kind kind;
    } kinds[] = {
        {"matchAttribute", JOB_MATCH_ATTRIBUTE},
        {"distinctAttribute", JOB_DISTINCT_ATTRIBUTE},
        {"matchNodeLabel", JOB_MATCH_NODE_LABEL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const char *key = text_at(entry, kinds[i].key, NULL);

        if (!key)
            continue;
        out->kind = kinds[i].kind;
        out->key = key;
    }
    out->groups = texts_at(entry, "groups", arena, &out->n_groups);
    out->requests = texts_at(entry, "requests", arena, &out->n_requests);
    out->preferred = json_is_true(json_object_get(entry, "preferred"));
}

static int constraints_view(const json_t *spec, struct arena *arena, struct job_spec *out, struct error *err)
{
    const json_t *list = json_object_get(spec, "constraints"), *entry;
    struct job_constraint *constraints = arena_array(arena, struct job_constraint, json_array_size(list) + 1);
    size_t i;

    json_array_foreach (list, i, entry) {
        constraint_view(entry, arena, &constraints[i]);
        if (constraint_check(out, &constraints[i], err) < 0)
            return error_in(err, "constraints[%zu]", i);
    }
    out->constraints = constraints;
    out->n_constraints = json_array_size(list);
    return 0;
}

/* ---- the rest ---- */

const char *const job_placements[] = {"fragmentation", "pack", "spread", NULL};

const char *job_placement_name(enum job_placement placement)
{
    INVARIANT(placement != JOB_PLACEMENT_DEFAULT);
    return job_placements[placement - JOB_PLACEMENT_FRAGMENTATION];
}

enum job_placement job_placement_of(const char *name)
{
    for (size_t i = 0; name && job_placements[i]; i++)
        if (strcmp(job_placements[i], name) == 0)
            return (enum job_placement)(JOB_PLACEMENT_FRAGMENTATION + i);
    return JOB_PLACEMENT_DEFAULT;
}

static int ttl_view(const json_t *spec, struct job_spec *out, struct error *err)
{
    const char *ttl = text_at(spec, "ttlAfterFinished", NULL);

    out->ttl_ms = -1;
    if (ttl && !duration_parse(ttl, &out->ttl_ms))
        return error_field(err, "ttlAfterFinished", "\"%.60s\" is no duration such as 0s, 45m or 24h", ttl);
    return 0;
}

static int depends_view(const json_t *spec, struct arena *arena, struct job_spec *out, struct error *err)
{
    char field[64];

    out->depends_on = texts_at(spec, "dependsOn", arena, &out->n_depends_on);
    for (size_t i = 0; i < out->n_depends_on; i++)
        if (strcmp(out->depends_on[i], out->name) == 0) {
            snprintf(field, sizeof(field), "dependsOn[%zu]", i);
            return error_field(err, field, "a job cannot wait for itself");
        }
    return 0;
}

static int spec_view(const json_t *spec, struct arena *arena, struct job_spec *out, struct error *err)
{
    const char *runtime = text_at(spec, "maxRuntime", NULL);
    const json_t *priority = json_object_get(spec, "priority");

    out->queue = text_at(spec, "queue", "");
    out->priority_class = text_at(spec, "priorityClassName", NULL);
    out->has_priority = json_is_integer(priority);
    out->priority = (int32_t)json_integer_value(priority);
    out->retries = (int32_t)json_integer_value(json_object_get(spec, "retries"));
    out->hold = json_is_true(json_object_get(spec, "hold"));
    out->same_alternative = json_is_true(json_object_get(spec, "sameAlternative"));
    out->placement = job_placement_of(text_at(spec, "placement", NULL));
    out->has_no_hostnames = json_is_false(json_object_get(json_object_get(spec, "network"), "enableDNSHostnames"));
    if (runtime && !duration_parse(runtime, &out->max_runtime_ms))
        return error_field(err, "maxRuntime", "is no duration"); /* not after gangjob_check() */
    shapes_view(spec, arena, out);
    shared_view(spec, arena, out);
    if (ttl_view(spec, out, err) < 0 || depends_view(spec, arena, out, err) < 0 ||
        constraints_view(spec, arena, out, err) < 0)
        return -1;
    if (check_used(spec, "claimTemplates", out, JOB_CLAIM_OWN, err) < 0)
        return -1;
    return check_used(spec, "sharedClaims", out, JOB_CLAIM_SHARED, err);
}

int job_spec_parse(const json_t *gangjob, struct arena *arena, struct job_spec *out, struct error *err)
{
    const json_t *metadata = json_object_get(gangjob, "metadata");
    json_t *copy = json_deep_copy(gangjob);
    int rc = gangjob_check(copy, err);

    json_decref(copy);
    if (rc < 0)
        return -1;
    *out = (struct job_spec){.name = text_at(metadata, "name", ""), .ns = text_at(metadata, "namespace", "default")};
    if (spec_view(json_object_get(gangjob, "spec"), arena, out, err) < 0)
        return error_in(err, "spec");
    return 0;
}

/* ---- names of members ---- */

void job_member_name(const struct job_spec *job, const struct job_group *group, size_t index, struct buf *out)
{
    const char *at = group->member_name;
    size_t size = group->job_size > 0 ? group->job_size : SIZE_MAX;

    if (!at) {
        buf_addf(out, "%s-%s-%zu", job->name, group->name, index);
        return;
    }
    while (*at) {
        if (strncmp(at, "{index}", 7) == 0) {
            buf_addf(out, "%zu", index % size);
            at += 7;
        } else if (strncmp(at, "{job}", 5) == 0) {
            buf_addf(out, "%zu", index / size);
            at += 5;
        } else {
            buf_addc(out, *at++);
        }
    }
}
