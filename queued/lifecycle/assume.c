/* Between a plan and the cluster telling so, the plan counts as done: otherwise the next round would give the same
 * devices away again. A pod of a live attempt counts as bound to its planned node until it is, a claim as allocated as
 * planned until it is; kube-scheduler's assume cache does the same for single pods. A claim for extended resources is
 * kube-scheduler's own, under a name of its own: it is there when its pod is bound, and then ours must not count beside
 * it. While the gang runs the cluster's word alone counts. */
#include <string.h>

#include "queued/lifecycle/internal.h"

#include "allocator/base/banned.h"

static json_t *with(const json_t *object, const char *part, const char *field, json_t *value)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)object), *inner = json_copy(json_object_get(copy, part));

    if (!inner)
        inner = json_object();
    json_object_set(inner, field, value);
    json_object_set_new(copy, part, inner);
    return copy;
}

static bool is_planned_still(const struct job *job)
{
    return job->state != JOB_RUNNING;
}

/* The pod is bound that brings the claim which this one stands for. */
static bool is_superseded(const struct job *job, const struct launch_object *object)
{
    const struct launch_object *pod = object->until ? attempt_find(job->live, "Pod", object->until) : NULL;

    return pod && json_text_at(pod->observed, "spec", "nodeName", NULL);
}

json_t *assumed_object(const struct job *job, const struct launch_object *object)
{
    const json_t *base = object->observed;

    if (!base && is_planned_still(job)) /* also while it is taken away: its creation may be on its way */
        base = object->body;
    if (!base || is_superseded(job, object))
        return NULL;
    if (is_planned_still(job) && object->rank == RANK_POD && !json_text_at(base, "spec", "nodeName", NULL))
        return with(base, "spec", "nodeName", object->planned);
    if (is_planned_still(job) && (object->rank == RANK_CLAIM || object->rank == RANK_ASSUMED) &&
        !json_object_get(json_object_get(base, "status"), "allocation"))
        return with(base, "status", "allocation", object->planned);
    return json_incref((json_t *)(uintptr_t)base);
}

void assume_object(struct lifecycle *lc, const struct job *job, const struct launch_object *object)
{
    json_t *assumed = assumed_object(job, object);

    lc->options.assume(lc->options.ctx, object->kind, object->ns, object->name, assumed);
    json_decref(assumed);
}

void assume_beside(struct lifecycle *lc, const struct job *job, const struct launch_object *pod)
{
    for (size_t i = job->live->n_objects; i-- > 0 && job->live->objects[i].rank == RANK_ASSUMED;)
        if (job->live->objects[i].until && strcmp(job->live->objects[i].until, pod->name) == 0)
            assume_object(lc, job, &job->live->objects[i]);
}

void assume_attempt(struct lifecycle *lc, const struct job *job)
{
    for (size_t i = 0; i < job->live->n_objects; i++)
        assume_object(lc, job, &job->live->objects[i]);
}

void forget_attempt(struct lifecycle *lc, const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->n_objects; i++) {
        const struct launch_object *object = &attempt->objects[i];

        lc->options.assume(lc->options.ctx, object->kind, object->ns, object->name, NULL);
    }
}
