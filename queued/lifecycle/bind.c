/* Bind mode: the allocations of some claims are written by us, exactly as planned, when all objects of the gang exist
 * and before a pod may start, and in the same write the claims are reserved for their pods. From then on the devices
 * are held, and kube-scheduler has nothing left to choose and to write but the binding; where we bind the pods too,
 * not even that.
 *
 * The API server lets two claims name one device. So as long as the gang does not run, every claim of somebody else
 * that names a device of ours ends the attempt: kube-scheduler, which respects what it sees allocated, may have given
 * the device away before it saw ours. The next plan then goes around it. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "queued/lifecycle/internal.h"

#include "allocator/base/banned.h"

static const json_t *allocation_of(const struct launch_object *claim)
{
    return json_object_get(json_object_get(claim->observed, "status"), "allocation");
}

static bool is_allocated(const struct launch_object *claim)
{
    return claim->is_allocated || json_is_object(allocation_of(claim));
}

/* A steered claim asks for the chosen alternative under the name of the request: "req/sub" is "req" there. */
static void name_request(json_t *owner, const char *key)
{
    const char *name = json_string_value(json_object_get(owner, key)), *slash = name ? strchr(name, '/') : NULL;

    if (slash)
        json_object_set_new(owner, key, json_stringn(name, (size_t)(slash - name)));
}

static void name_requests(json_t *names)
{
    const char *name;
    json_t *value;
    size_t i;

    json_array_foreach (names, i, value)
        if ((name = json_string_value(value)) && strchr(name, '/'))
            json_array_set_new(names, i, json_stringn(name, strcspn(name, "/")));
}

/* What is to be written. New reference. */
static json_t *planned_allocation(const struct launch_object *claim)
{
    json_t *allocation = json_deep_copy(claim->planned), *devices = json_object_get(allocation, "devices"), *item;
    size_t i;

    json_array_foreach (json_object_get(devices, "results"), i, item)
        name_request(item, "request");
    json_array_foreach (json_object_get(devices, "config"), i, item)
        name_requests(json_object_get(item, "requests"));
    return allocation;
}

static void add_consumer(json_t *users, const json_t *pod_claim, const struct launch_object *pod)
{
    const char *claim = json_text_at(pod_claim, "resourceClaimName", NULL);
    json_t *consumers = claim ? json_object_get(users, claim) : NULL;

    if (!claim)
        return;
    if (!consumers) {
        consumers = json_array();
        json_object_set_new(users, claim, consumers);
    }
    json_array_append_new(
        consumers, json_pack("{s:s, s:s, s:s}", "resource", "pods", "name", pod->name, "uid", launch_object_uid(pod)));
}

/* Name of each claim -> the members that use it, as entries of status.reservedFor. New reference. */
static json_t *users_of_claims(const struct attempt *attempt)
{
    json_t *users = json_object(), *pod_claim;
    size_t k;

    for (size_t i = 0; i < attempt->n_objects; i++) {
        const struct launch_object *pod = &attempt->objects[i];

        if (pod->rank != RANK_POD)
            continue;
        json_array_foreach (json_object_get(json_object_get(pod->body, "spec"), "resourceClaims"), k, pod_claim)
            add_consumer(users, pod_claim, pod);
    }
    return users;
}

static void allocate(struct lifecycle *lc, struct job *job, struct launch_object *claim, json_t *consumers)
{
    struct call_for target = {job->id, job->live->number, (size_t)(claim - job->live->objects)};
    json_t *allocation = planned_allocation(claim);

    claim->is_asked = true;
    outbox_allocate(lc->options.outbox, target, claim->ns, claim->name, launch_object_uid(claim), allocation,
                    consumers);
    json_decref(allocation);
}

bool attempt_allocate(struct lifecycle *lc, struct job *job)
{
    bool is_complete = true;
    json_t *users = NULL;

    for (size_t i = 0; i < job->live->n_objects; i++) {
        struct launch_object *claim = &job->live->objects[i];

        if (!claim->is_bound || is_allocated(claim))
            continue;
        is_complete = false;
        if (!launch_may_ask(lc, job, claim))
            continue;
        users = users ? users : users_of_claims(job->live);
        allocate(lc, job, claim, json_object_get(users, claim->name));
    }
    json_decref(users);
    return is_complete;
}

const struct launch_object *attempt_not_allocated(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (attempt->objects[i].is_bound && !is_allocated(&attempt->objects[i]))
            return &attempt->objects[i];
    return NULL;
}

/* ---- what stands in the way ---- */

/* Somebody else's claim that has one of the planned devices too. */
static bool has_rival(struct lifecycle *lc, struct job *job, const struct launch_object *claim)
{
    const json_t *result;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(claim->planned, "devices"), "results"), i, result) {
        const char *other = lc->options.other_holder(lc->options.ctx, result, claim->ns, claim->name);

        if (!other)
            continue;
        job_launch_failed(lc, job, "device %s/%s of claim %s was given to claim %s too",
                          json_text_at(result, "pool", NULL), json_text_at(result, "device", NULL), claim->name, other);
        return true;
    }
    return false;
}

bool attempt_has_rival(struct lifecycle *lc, struct job *job)
{
    struct attempt *attempt = job->live;

    for (size_t i = 0; i < attempt->n_objects; i++) {
        const struct launch_object *claim = &attempt->objects[i];

        if (!claim->is_bound)
            continue;
        if (json_is_object(allocation_of(claim)) && !allocation_is_same(claim->planned, allocation_of(claim))) {
            job_launch_failed(lc, job, "ResourceClaim %s was allocated by somebody else", claim->name);
            return true;
        }
        if (attempt->claims_seen != lc->claims_version && has_rival(lc, job, claim))
            return true;
    }
    attempt->claims_seen = lc->claims_version;
    return false;
}

void lifecycle_claims_changed(struct lifecycle *lc)
{
    lc->claims_version++;
    for (size_t i = 0; lc->has_bound && i < lc->jobs.n; i++)
        if (lc->jobs.items[i]->state == JOB_ADMITTED || lc->jobs.items[i]->state == JOB_LAUNCHING)
            job_touch(lc, lc->jobs.items[i]);
}
