/* Attempts that start behind others.
 *
 * A claim that steering could not narrow to the planned devices, and one that kube-scheduler makes itself, gets what
 * first fit gives. The plan knows what that is, given what was planned before; kube-scheduler does not: devices that
 * are planned for a gang whose claims are not allocated yet are free to it, and a gang that should have had them would
 * hang. So the gates of such an attempt stay on while one that was planned before it, and may want devices that it
 * could take, has not got all of its own. What is planned later does not matter: first fit passes by what was not its
 * choice.
 *
 * Shares of one device are another matter: kube-scheduler counts what a claim consumes twice from writing its
 * allocation until its pod is bound, so that it may refuse a pod for which there is room, and looks at that pod again
 * after minutes only. So whoever wants a share of a device starts when those before it, who have shares of it too, are
 * bound. (Members of one gang: ANNOTATION_TURN.)
 *
 * Nobody waits for a later one, so there is no circle, and whoever is waited for has its launch timeout. */
#include <string.h>

#include "allocator/base/str.h"
#include "queued/lifecycle/internal.h"

#include "allocator/base/banned.h"

static bool is_bound_to_node(const struct launch_object *pod)
{
    return json_text_at(pod->observed, "spec", "nodeName", NULL) != NULL;
}

static bool has_allocation(const struct launch_object *claim)
{
    return claim->is_allocated || json_object_get(json_object_get(claim->observed, "status"), "allocation");
}

static bool are_bound(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (attempt->objects[i].rank == RANK_POD && !is_bound_to_node(&attempt->objects[i]))
            return false;
    return true;
}

/* Every claim is allocated; or every pod bound, which is later, and all that can be seen of claims of others. */
static bool has_its_devices(const struct attempt *attempt)
{
    bool are_allocated = true;

    for (size_t i = 0; i < attempt->n_objects; i++) {
        const struct launch_object *object = &attempt->objects[i];

        are_allocated &= object->rank != RANK_ASSUMED && (object->rank != RANK_CLAIM || has_allocation(object));
    }
    return are_allocated || are_bound(attempt);
}

/* A planned allocation that can be used on one node alone. */
static bool is_of_one_node(const json_t *allocation)
{
    const json_t *terms = json_object_get(json_object_get(allocation, "nodeSelector"), "nodeSelectorTerms");
    const json_t *field = json_array_get(json_object_get(json_array_get(terms, 0), "matchFields"), 0);
    const char *key = json_text_at(field, "key", NULL);

    return json_array_size(terms) == 1 && key && strcmp(key, "metadata.name") == 0 &&
           json_array_size(json_object_get(field, "values")) == 1;
}

/* Has devices that several nodes may have. */
static bool is_of_network(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->n_objects; i++) {
        const struct launch_object *object = &attempt->objects[i];

        if ((object->rank == RANK_CLAIM || object->rank == RANK_ASSUMED) && !is_of_one_node(object->planned))
            return true;
    }
    return false;
}

static bool has_node(const struct attempt *attempt, const json_t *node)
{
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (attempt->objects[i].rank == RANK_POD && json_equal(attempt->objects[i].planned, node))
            return true;
    return false;
}

/* Whether they may want the same devices. */
static bool may_meet(const struct attempt *a, const struct attempt *b)
{
    if (is_of_network(a) && is_of_network(b))
        return true;
    for (size_t i = 0; i < a->n_objects; i++)
        if (a->objects[i].rank == RANK_POD && has_node(b, a->objects[i].planned))
            return true;
    return false;
}

static bool is_loose(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (attempt->objects[i].is_loose)
            return true;
    return false;
}

/* What kube-scheduler is to give it, as planned. */
static const json_t *results_of(const struct launch_object *claim)
{
    bool is_claim = claim->rank == RANK_CLAIM || claim->rank == RANK_ASSUMED;

    return is_claim && !claim->is_bound ? json_object_get(json_object_get(claim->planned, "devices"), "results") : NULL;
}

/* Whether the attempt has a share of that device; of any, when `device` is NULL. */
static bool has_share(const struct attempt *attempt, const json_t *device)
{
    const json_t *result;
    size_t k;

    for (size_t i = 0; i < attempt->n_objects; i++)
        json_array_foreach (results_of(&attempt->objects[i]), k, result)
            if (json_object_get(result, "consumedCapacity") && (!device || result_is_same_device(result, device)))
                return true;
    return false;
}

static bool share_a_device(const struct attempt *a, const struct attempt *b)
{
    const json_t *result;
    size_t k;

    for (size_t i = 0; i < a->n_objects; i++)
        json_array_foreach (results_of(&a->objects[i]), k, result)
            if (json_object_get(result, "consumedCapacity") && has_share(b, result))
                return true;
    return false;
}

/* One that is being taken away can be harmed no more. */
static bool is_before(const struct job *other, const struct job *job)
{
    return (other->state == JOB_ADMITTED || other->state == JOB_LAUNCHING) && other->ending == JOB_STATE_COUNT &&
           other->live->order < job->live->order;
}

/* Why the job has to wait for the other one, or NULL. */
static const char *why_behind(const struct job *other, const struct job *job)
{
    if (!is_before(other, job))
        return NULL;
    if (is_loose(job->live) && !has_its_devices(other->live) && may_meet(other->live, job->live))
        return "they cannot be told apart";
    if (!are_bound(other->live) && share_a_device(other->live, job->live))
        return "both have shares of one";
    return NULL;
}

static struct job *find_awaited(const struct lifecycle *lc, const struct job *job)
{
    struct job *before = job->live->behind ? job_list_find(&lc->jobs, job->live->behind) : NULL;

    if (before && why_behind(before, job))
        return before; /* still */
    for (size_t i = 0; i < lc->jobs.n; i++)
        if (lc->jobs.items[i] != job && why_behind(lc->jobs.items[i], job))
            return lc->jobs.items[i];
    return NULL;
}

/* Some gate is off, so that there was nobody to wait for when that was done. */
static bool is_open(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (attempt->objects[i].rank == RANK_POD && !pod_is_held(&attempt->objects[i]))
            return true;
    return false;
}

static void set_behind(struct lifecycle *lc, struct job *job, const struct job *awaited)
{
    int64_t behind = awaited ? awaited->id : 0;
    BUF words = {0};

    if (job->live->behind == behind)
        return;
    job->live->behind = behind;
    if (awaited)
        buf_addf(&words, "waits until job %s (%lld) has its devices: %s", job_name(awaited), (long long)behind,
                 why_behind(awaited, job));
    attempt_set_waits(lc, job, awaited ? buf_take(&words) : NULL);
}

bool attempt_may_open(struct lifecycle *lc, struct job *job)
{
    struct job *awaited;

    if (is_open(job->live) || !(is_loose(job->live) || has_share(job->live, NULL)))
        return true;
    awaited = find_awaited(lc, job);
    if (awaited || job->live->behind)
        job->live->step_ms = lifecycle_now_ms(lc); /* its own time begins when it may start */
    set_behind(lc, job, awaited);
    if (awaited)
        awaited->is_awaited = true;
    return !awaited;
}

void wake_behind(struct lifecycle *lc, struct job *awaited)
{
    if (!awaited->is_awaited)
        return;
    awaited->is_awaited = false;
    for (size_t i = 0; i < lc->jobs.n; i++)
        if (lc->jobs.items[i]->live && lc->jobs.items[i]->live->behind == awaited->id)
            job_touch(lc, lc->jobs.items[i]);
}
