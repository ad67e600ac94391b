#include "queued/admission/question.h"

#include <string.h>

#include "allocator/base/invariant.h"

#include "allocator/base/banned.h"

static const enum gang_claim_source claim_sources[] = {
    [JOB_CLAIM_OWN] = GANG_CLAIM_OWN,
    [JOB_CLAIM_SHARED] = GANG_CLAIM_SHARED,
    [JOB_CLAIM_EXISTING] = GANG_CLAIM_EXISTING,
};

static const enum gang_constraint_kind constraint_kinds[] = {
    [JOB_MATCH_ATTRIBUTE] = GANG_MATCH_ATTRIBUTE,
    [JOB_DISTINCT_ATTRIBUTE] = GANG_DISTINCT_ATTRIBUTE,
    [JOB_MATCH_NODE_LABEL] = GANG_MATCH_NODE_LABEL,
};

static const enum gang_score scores[] = {
    [JOB_PLACEMENT_DEFAULT] = GANG_SCORE_FRAGMENTATION,
    [JOB_PLACEMENT_FRAGMENTATION] = GANG_SCORE_FRAGMENTATION,
    [JOB_PLACEMENT_PACK] = GANG_SCORE_PACK,
    [JOB_PLACEMENT_SPREAD] = GANG_SCORE_SPREAD,
};

static struct gang_claim claim_of(const struct job_claim *claim)
{
    return (struct gang_claim){
        .pod_claim = claim->pod_claim,
        .source = claim_sources[claim->source],
        .object = claim->source == JOB_CLAIM_OWN ? claim->object : NULL,
        .shared = claim->shared,
        .name = claim->name,
    };
}

static struct gang_group group_of(const struct job_group *group, struct arena *arena)
{
    struct gang_claim *claims = arena_array(arena, struct gang_claim, group->n_claims);

    for (size_t i = 0; i < group->n_claims; i++)
        claims[i] = claim_of(&group->claims[i]);
    return (struct gang_group){
        .name = group->name,
        .n_members = group->replicas,
        .pod = group->pod,
        .claims = claims,
        .n_claims = group->n_claims,
    };
}

static struct gang_constraint constraint_of(const struct job_constraint *constraint)
{
    return (struct gang_constraint){
        .kind = constraint_kinds[constraint->kind],
        .key = constraint->key,
        .groups = constraint->groups,
        .n_groups = constraint->n_groups,
        .requests = constraint->requests,
        .n_requests = constraint->n_requests,
        .preferred = constraint->preferred,
    };
}

void question_of_shape(const struct job_spec *job, size_t shape, enum job_placement placement, struct arena *arena,
                       struct gang_spec *out)
{
    const struct job_shape *from = &job->shapes[shape];
    struct gang_group *groups = arena_array(arena, struct gang_group, from->n_groups);
    struct gang_constraint *constraints = arena_array(arena, struct gang_constraint, job->n_constraints);

    INVARIANT(shape < job->n_shapes);
    for (size_t i = 0; i < from->n_groups; i++)
        groups[i] = group_of(&from->groups[i], arena);
    for (size_t i = 0; i < job->n_constraints; i++)
        constraints[i] = constraint_of(&job->constraints[i]);
    *out = (struct gang_spec){
        .ns = job->ns,
        .groups = groups,
        .n_groups = from->n_groups,
        .shared = job->shared,
        .n_shared = job->n_shared,
        .constraints = constraints,
        .n_constraints = job->n_constraints,
        .same_alternative = job->same_alternative,
        .score = scores[placement],
    };
}

static size_t step_of(const struct job_group *group)
{
    return group->job_size ? group->job_size : 1;
}

static size_t group_n_steps(const struct job_group *group)
{
    return (group->replicas - group->min_replicas) / step_of(group);
}

size_t shape_n_steps(const struct job_shape *shape)
{
    size_t n = 0;

    for (size_t i = 0; i < shape->n_groups; i++)
        n += group_n_steps(&shape->groups[i]);
    return n;
}

void question_shrink(const struct job_shape *shape, size_t steps, struct arena *arena, struct gang_spec *question)
{
    struct gang_group *groups = arena_array(arena, struct gang_group, shape->n_groups);

    for (size_t i = 0; i < shape->n_groups; i++) {
        size_t most = group_n_steps(&shape->groups[i]), n = steps < most ? steps : most;

        groups[i] = question->groups[i];
        groups[i].n_members -= n * step_of(&shape->groups[i]);
        steps -= n;
    }
    INVARIANT(steps == 0);
    question->groups = groups;
}

/* ---- without alternatives ---- */

static json_t *requests_of(const json_t *object)
{
    const json_t *spec = json_object_get(object, "spec"), *inner = json_object_get(spec, "spec");

    return json_object_get(json_object_get(inner ? inner : spec, "devices"), "requests");
}

/* Where the alternative "request/name" stands in the claim, and that it is of the class and not the last; else NULL. */
static json_t *alternatives_with(const json_t *object, const char *chosen, const char *device_class, size_t *out_at)
{
    const char *slash = strchr(chosen, '/');
    const json_t *request;
    size_t i, k;

    json_array_foreach (requests_of(object), i, request) {
        json_t *alternatives = json_object_get(request, "firstAvailable"), *alternative;
        const char *name = json_string_value(json_object_get(request, "name"));

        if (!slash || !name || strlen(name) != (size_t)(slash - chosen) ||
            strncmp(name, chosen, (size_t)(slash - chosen)) != 0 || json_array_size(alternatives) < 2)
            continue;
        json_array_foreach (alternatives, k, alternative) {
            const char *its = json_string_value(json_object_get(alternative, "name"));
            const char *class = json_string_value(json_object_get(alternative, "deviceClassName"));

            if (its && class && strcmp(its, slash + 1) == 0 && strcmp(class, device_class) == 0) {
                *out_at = k;
                return alternatives;
            }
        }
    }
    return NULL;
}

/* The claim without what was chosen of the class, in `keep`; the claim itself when there is nothing to leave out. */
static const json_t *claim_without(const json_t *object, const struct allocation *allocation, const char *device_class,
                                   json_t *keep)
{
    json_t *changed = NULL;

    for (size_t i = 0; i < allocation->n_results; i++) {
        size_t at;

        if (!alternatives_with(changed ? changed : object, allocation->results[i].request, device_class, &at))
            continue;
        if (!changed) {
            changed = json_deep_copy(object);
            json_array_append_new(keep, changed);
        }
        json_array_remove(alternatives_with(changed, allocation->results[i].request, device_class, &at), at);
    }
    return changed ? changed : object;
}

/* All members of a group ask alike, so the first one whose choice counts decides for all. */
static bool group_without(struct gang_group *group, size_t g, const struct placement *placement,
                          const char *device_class, struct arena *arena, json_t *keep)
{
    struct gang_claim *claims = arena_array(arena, struct gang_claim, group->n_claims);
    bool any = false;

    if (group->n_claims)
        memcpy(claims, group->claims, group->n_claims * sizeof(*claims));
    for (size_t m = 0; m < placement->n_members; m++)
        for (size_t c = 0; placement->members[m].group == g && c < group->n_claims; c++) {
            if (claims[c].source != GANG_CLAIM_OWN || claims[c].object != group->claims[c].object)
                continue;
            claims[c].object =
                claim_without(claims[c].object, &placement->members[m].claims[c].allocation, device_class, keep);
            any |= claims[c].object != group->claims[c].object;
        }
    group->claims = claims;
    return any;
}

bool question_without(struct gang_spec *question, const struct placement *placement, const char *device_class,
                      struct arena *arena, json_t *keep)
{
    struct gang_group *groups = arena_array(arena, struct gang_group, question->n_groups);
    const json_t **shared = arena_array(arena, const json_t *, question->n_shared);
    bool any = false;

    for (size_t g = 0; g < question->n_groups; g++) {
        groups[g] = question->groups[g];
        any |= group_without(&groups[g], g, placement, device_class, arena, keep);
    }
    for (size_t i = 0; i < question->n_shared; i++) {
        shared[i] = claim_without(question->shared[i], &placement->shared[i], device_class, keep);
        any |= shared[i] != question->shared[i];
    }
    question->groups = groups;
    question->shared = shared;
    return any;
}
