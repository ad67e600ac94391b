#include "queued/admission/question.h"

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

void question_of_shape(const struct job_spec *job, size_t shape, struct arena *arena, struct gang_spec *out)
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
        .score = scores[job->placement],
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
