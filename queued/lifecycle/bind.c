/* Bind mode: the allocations of some claims are written by us, exactly as planned, between the creation of the claims
 * and that of the pods. From then on the devices are held, and kube-scheduler has nothing left to choose.
 * When the pods exist the claims are reserved for them, and it has nothing left to write but the binding.
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

static void allocate(struct lifecycle *lc, struct job *job, struct launch_object *claim)
{
    struct call_for target = {job->id, job->live->number, (size_t)(claim - job->live->objects)};
    json_t *allocation = planned_allocation(claim);

    claim->is_asked = true;
    outbox_allocate(lc->options.outbox, target, claim->ns, claim->name, allocation);
    json_decref(allocation);
}

bool attempt_allocate(struct lifecycle *lc, struct job *job)
{
    bool is_complete = true, is_asking = false;

    for (size_t i = 0; i < job->live->n_objects; i++) {
        struct launch_object *claim = &job->live->objects[i];

        if (!claim->is_bound || is_allocated(claim))
            continue;
        is_complete = false;
        if (!launch_may_ask(lc, job, claim))
            continue;
        allocate(lc, job, claim);
        is_asking = true;
    }
    if (is_asking)
        attempt_record_usage(lc, job); /* committed before the devices are held */
    return is_complete;
}

const struct launch_object *attempt_not_allocated(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (attempt->objects[i].is_bound && !is_allocated(&attempt->objects[i]))
            return &attempt->objects[i];
    return NULL;
}

/* ---- reserving ---- */

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

/* Name of each claim -> the members that use it and have gates still, as entries of status.reservedFor. What is already
 * on its way to a node kube-scheduler reserves, and what has ended needs nothing. New reference. */
static json_t *users_of_claims(const struct attempt *attempt)
{
    json_t *users = json_object(), *pod_claim;
    size_t k;

    for (size_t i = 0; i < attempt->n_objects; i++) {
        const struct launch_object *pod = &attempt->objects[i];

        if (pod->rank != RANK_POD || !pod_has_gates(pod) || !launch_object_uid(pod))
            continue;
        json_array_foreach (json_object_get(json_object_get(pod->body, "spec"), "resourceClaims"), k, pod_claim)
            add_consumer(users, pod_claim, pod);
    }
    return users;
}

static bool has_consumer(const json_t *reserved, const json_t *consumer)
{
    const json_t *entry;
    size_t i;

    json_array_foreach (reserved, i, entry)
        if (json_equal(json_object_get(entry, "uid"), json_object_get(consumer, "uid")))
            return true;
    return false;
}

static bool is_reserved_for(const struct launch_object *claim, const json_t *consumers)
{
    const json_t *reserved = json_object_get(json_object_get(claim->observed, "status"), "reservedFor"), *consumer;
    size_t i;

    json_array_foreach (consumers, i, consumer)
        if (!has_consumer(reserved, consumer))
            return false;
    return true;
}

static void reserve(struct lifecycle *lc, struct job *job, struct launch_object *claim, json_t *consumers)
{
    struct call_for target = {job->id, job->live->number, (size_t)(claim - job->live->objects)};

    claim->is_reserved = is_reserved_for(claim, consumers);
    if (claim->is_reserved || !launch_may_ask(lc, job, claim))
        return;
    claim->is_asked = true;
    outbox_reserve(lc->options.outbox, target, claim->ns, claim->name, launch_object_uid(claim), consumers);
}

static bool wants_reservation(const struct lifecycle *lc, const struct launch_object *claim)
{
    return claim->is_bound && !claim->is_asked && !claim->is_reserved && !lc->may_not_reserve;
}

bool attempt_reserve(struct lifecycle *lc, struct job *job)
{
    bool is_waiting = false;
    json_t *users = NULL;

    for (size_t i = 0; i < job->live->n_objects; i++) {
        struct launch_object *claim = &job->live->objects[i];

        if (wants_reservation(lc, claim)) {
            users = users ? users : users_of_claims(job->live);
            reserve(lc, job, claim, json_object_get(users, claim->name));
            is_waiting |= !claim->is_reserved;
        }
        is_waiting |= claim->is_bound && claim->is_asked;
    }
    json_decref(users);
    return !is_waiting;
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
