/* The scheduler: pods without gates, in the order of creation, each onto the first node (in the order of the manifests)
 * whose filters it passes and where the allocator finds devices for the claims that have none yet. Among nodes that
 * fit, the one with the better alternatives wins, as in kube-scheduler's score for firstAvailable; there is no other
 * score.
 *
 * Everything that a placement changes (claims, then the pod) is written in one turn, so a crash leaves it whole or
 * absent. */
#include "queued/cluster/embedded/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "allocator/base/arena.h"
#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "allocator/nodecheck.h"
#include "allocator/predict.h"
#include "allocator/snapshot.h"
#include "queued/clock.h"

#include "allocator/base/banned.h"

#define FINALIZER_CLAIM "resource.kubernetes.io/delete-protection"

struct reason {
    const char *text;
    size_t n_nodes;
};

/* One try to place one pod. All but the entries lives in the arena. */
struct attempt {
    struct entry *pod;
    struct arena arena;
    struct entry **claims; /* all that the pod names */
    size_t n_claims, cap_claims;
    const struct claim **asks; /* of those that have no allocation yet */
    struct entry **unallocated;
    size_t n_asks; /* `asks` has room for one more: that of the node's extended resources */
    struct pod_check *check;
    struct reason *reasons; /* why nodes were refused */
    size_t n_reasons, cap_reasons;
    const char *problem; /* it cannot be placed anywhere */
    const char *node;    /* the best so far */
    struct prediction prediction;
    int64_t score;
};

/* ---- the pod's claims ---- */

static void gather_claim(void *ctx, const char *name, struct entry *claim)
{
    struct attempt *attempt = ctx;

    if (attempt->problem)
        return;
    if (!claim) {
        attempt->problem = arena_printf(&attempt->arena, "the resource claim for \"%s\" does not exist yet", name);
    } else if (entry_is_going(claim)) {
        attempt->problem = arena_printf(&attempt->arena, "resourceclaim \"%s\" is being deleted", claim->name);
    } else {
        mem_grow(attempt->claims, attempt->n_claims, attempt->cap_claims);
        attempt->claims[attempt->n_claims++] = claim;
    }
}

static bool is_allocated(const struct entry *claim)
{
    return json_is_object(field_get(claim->json, "status", "allocation", NULL));
}

static void parse_claims(struct attempt *attempt)
{
    const struct features *features = &attempt->pod->cluster->features;

    attempt->asks = arena_array(&attempt->arena, const struct claim *, attempt->n_claims + 1);
    attempt->unallocated = arena_array(&attempt->arena, struct entry *, attempt->n_claims + 1);
    for (size_t i = 0; i < attempt->n_claims && !attempt->problem; i++) {
        struct error err = {0};
        struct claim *claim;
        size_t k = 0;

        while (k < i && attempt->claims[k] != attempt->claims[i]) /* named by two entries: one claim all the same */
            k++;
        if (k < i || is_allocated(attempt->claims[i]))
            continue;
        if (claim_parse(attempt->claims[i]->json, features, false, &attempt->arena, &claim, &err) < 0) {
            attempt->problem = arena_printf(&attempt->arena, "resourceclaim \"%s\": %s: %s", attempt->claims[i]->name,
                                            err.field, err.text);
            return;
        }
        attempt->unallocated[attempt->n_asks] = attempt->claims[i];
        attempt->asks[attempt->n_asks++] = claim;
    }
}

/* ---- nodes ---- */

static void refuse(struct attempt *attempt, const char *text)
{
    for (size_t i = 0; i < attempt->n_reasons; i++)
        if (strcmp(attempt->reasons[i].text, text) == 0) {
            attempt->reasons[i].n_nodes++;
            return;
        }
    mem_grow(attempt->reasons, attempt->n_reasons, attempt->cap_reasons);
    attempt->reasons[attempt->n_reasons++] = (struct reason){text, 1};
}

/* The place of "req/sub" among the alternatives of its request; -1 for a plain request. */
static int alternative_of(const json_t *claim, const char *result)
{
    const char *slash = strchr(result, '/');
    size_t i, k;
    json_t *request, *alternative;

    if (!slash)
        return -1;
    json_array_foreach (field_get(claim, "spec", "devices", "requests", NULL), i, request) {
        const char *name = field_text(request, "name", NULL);

        if (!name || strlen(name) != (size_t)(slash - result) || strncmp(name, result, strlen(name)) != 0)
            continue;
        json_array_foreach (json_object_get(request, "firstAvailable"), k, alternative)
            if (strcmp(field_text(alternative, "name", NULL), slash + 1) == 0)
                return (int)k;
    }
    return -1;
}

/* Eight minus the place of the chosen alternative, for each request with alternatives (semantics 12.4). */
static int64_t score_of(const struct attempt *attempt, const struct prediction *prediction)
{
    int64_t score = 0;

    for (size_t c = 0; c < attempt->n_asks; c++) {
        const struct allocation *allocation = &prediction->allocations[c];

        for (size_t i = 0; i < allocation->n_results; i++) {
            const char *request = allocation->results[i].request;
            int place = alternative_of(attempt->unallocated[c]->json, request);

            if (place >= 0 && (i == 0 || strcmp(allocation->results[i - 1].request, request) != 0))
                score += 8 - place;
        }
    }
    return score;
}

/* False when the whole attempt is over. */
static bool try_devices(struct attempt *attempt, const struct snapshot *snapshot, const char *node)
{
    struct prediction prediction = {0};
    size_t n_asks = attempt->n_asks;
    int64_t score;

    attempt->asks[n_asks] = pod_check_extended(attempt->check, node, &attempt->arena);
    n_asks += attempt->asks[n_asks] != NULL;
    predict(snapshot, node, attempt->asks, n_asks, 0, &attempt->arena, &prediction);
    switch (prediction.verdict) {
    case PREDICT_ALLOCATED:
        score = score_of(attempt, &prediction);
        if (!attempt->node || score > attempt->score) {
            attempt->node = node;
            attempt->prediction = prediction;
            attempt->score = score;
        }
        return true;
    case PREDICT_FATAL:
        attempt->problem = prediction.message ? prediction.message : "the allocator gave up";
        return false;
    case PREDICT_NODE_ERROR:
        refuse(attempt, prediction.message ? prediction.message : "node(s) had an invalid resource pool");
        return true;
    case PREDICT_NO_FIT:
    case PREDICT_TIMEOUT:
        refuse(attempt, "cannot allocate all claims");
        return true;
    }
    return true;
}

static void try_nodes(struct attempt *attempt, const struct snapshot *snapshot)
{
    const struct entry *node;

    DL_FOREACH (attempt->pod->cluster->lists[KIND_NODE], node) {
        const char *refusal = entry_is_going(node) ? "node(s) were being deleted"
                                                   : pod_check_refusal(attempt->check, node->name, &attempt->arena);

        for (size_t i = 0; !refusal && i < attempt->n_claims; i++)
            if (!allocation_reaches(snapshot, node->name,
                                    field_get(attempt->claims[i]->json, "status", "allocation", NULL), &attempt->arena))
                refusal = "resourceclaim not available on the node";
        if (refusal)
            refuse(attempt, refusal);
        else if (!try_devices(attempt, snapshot, node->name))
            return;
    }
}

/* ---- the outcome ---- */

static int by_count(const void *a, const void *b)
{
    const struct reason *x = a, *y = b;

    if (x->n_nodes != y->n_nodes)
        return x->n_nodes > y->n_nodes ? -1 : 1;
    return strcmp(x->text, y->text);
}

static void mark_unschedulable(struct attempt *attempt)
{
    struct entry *pod = attempt->pod;
    const struct entry *node;
    size_t n_nodes = 0;
    BUF message = {0};
    json_t *draft, *condition;

    DL_COUNT(pod->cluster->lists[KIND_NODE], node, n_nodes);
    buf_addf(&message, "0/%zu nodes are available: ", n_nodes);
    if (attempt->problem)
        buf_addf(&message, "%s", attempt->problem);
    else if (attempt->n_reasons > 0)
        qsort(attempt->reasons, attempt->n_reasons, sizeof(*attempt->reasons), by_count);
    for (size_t i = 0; !attempt->problem && i < attempt->n_reasons; i++)
        buf_addf(&message, "%s%zu %s", i ? ", " : "", attempt->reasons[i].n_nodes, attempt->reasons[i].text);
    buf_addc(&message, '.');
    draft = entry_draft(pod);
    pod_condition(draft, "PodScheduled", false, "Unschedulable", buf_str(&message), clock_now_ms(pod->cluster->clock));
    condition = field_get(draft, "status", "conditions", NULL);
    if (json_equal(condition, field_get(pod->json, "status", "conditions", NULL)))
        json_decref(draft); /* nothing new to say */
    else
        entry_change(pod, draft);
}

static void write_share_id(void *ctx, char out[37])
{
    struct embedded *cluster = ctx;
    char uid[40];

    uid_of_number(++cluster->version, uid);
    memcpy(out, uid, 37);
    out[19] = 'b'; /* apart from the uids of objects */
}

static bool is_reserved_for(const json_t *status, const char *uid)
{
    size_t i;
    json_t *reference;

    json_array_foreach (json_object_get(status, "reservedFor"), i, reference) {
        const char *other = field_text(reference, "uid", NULL);

        if (other && strcmp(other, uid) == 0)
            return true;
    }
    return false;
}

/* One status update sets what is missing (semantics 12.5). allocation is NULL for a claim that has one. */
static void claim_write(struct entry *claim, const struct entry *pod, const struct allocation *allocation)
{
    struct embedded *cluster = claim->cluster;
    json_t *draft, *status, *metadata;

    if (!allocation && is_reserved_for(json_object_get(claim->json, "status"), pod->uid))
        return;
    draft = entry_draft(claim);
    status = field_object(draft, "status");
    metadata = json_object_get(draft, "metadata");
    if (allocation) {
        json_t *json = allocation_to_json(allocation, write_share_id, cluster);

        json_object_set_new(json, "allocationTimestamp", when_json(clock_now_ms(cluster->clock)));
        json_object_set_new(status, "allocation", json);
        if (!texts_have(json_object_get(metadata, "finalizers"), FINALIZER_CLAIM))
            json_array_append_new(field_array(metadata, "finalizers"), json_string(FINALIZER_CLAIM));
    }
    json_array_append_new(field_array(status, "reservedFor"),
                          json_pack("{s:s,s:s,s:s}", "resource", "pods", "name", pod->name, "uid", pod->uid));
    entry_change(claim, draft);
}

/* The claim for what devices serve of the pod's extended resources on its node; false if it cannot be made. */
static bool bind_extended(struct attempt *attempt)
{
    struct error err = {0};
    struct entry *claim;
    json_t *spec, *mappings;

    if (!pod_check_extended_json(attempt->check, attempt->node, &spec, &mappings))
        return true;
    claim = extended_claim_create(attempt->pod, spec, mappings, &err);
    if (claim)
        claim_write(claim, attempt->pod, &attempt->prediction.allocations[attempt->n_asks]);
    else
        attempt->problem = arena_printf(&attempt->arena, "claim for extended resources: %s", err.text);
    json_decref(spec);
    json_decref(mappings);
    return claim != NULL;
}

static void bind(struct attempt *attempt)
{
    struct entry *pod = attempt->pod;
    json_t *draft;

    if (!bind_extended(attempt)) {
        mark_unschedulable(attempt);
        return;
    }
    for (size_t i = 0; i < attempt->n_asks; i++)
        claim_write(attempt->unallocated[i], pod, &attempt->prediction.allocations[i]);
    for (size_t i = 0; i < attempt->n_claims; i++)
        claim_write(attempt->claims[i], pod, NULL);
    draft = entry_draft(pod);
    json_object_set_new(field_object(draft, "spec"), "nodeName", json_string(attempt->node));
    pod_condition(draft, "PodScheduled", true, NULL, NULL, clock_now_ms(pod->cluster->clock));
    entry_change(pod, draft);
}

static void schedule(struct entry *pod)
{
    const struct snapshot *snapshot = snapshot_ref(embedded_snapshot(pod->cluster));
    struct attempt attempt = {.pod = pod};
    struct error err = {0};

    pod_each_claim(pod, gather_claim, &attempt);
    if (!attempt.problem)
        parse_claims(&attempt);
    if (!attempt.problem && pod_check_new(snapshot, pod->json, &attempt.arena, &attempt.check, &err) < 0)
        attempt.problem = arena_printf(&attempt.arena, "%s: %s", err.field, err.text);
    if (!attempt.problem)
        try_nodes(&attempt, snapshot);
    if (attempt.node && !attempt.problem)
        bind(&attempt);
    else
        mark_unschedulable(&attempt);
    free(attempt.claims);
    free(attempt.reasons);
    arena_release(&attempt.arena);
    snapshot_unref(snapshot);
}

/* ---- the queue ---- */

/* A member of a gang waits for its group, and for as many members as that wants; then each goes its own way. (That
 * there is room for all of them, which kube-scheduler looks for first, is what queued has planned.) */
static bool has_its_gang(const struct entry *pod)
{
    const char *name = field_text(pod->json, "spec", "schedulingGroup", "podGroupName", NULL), *other;
    const struct entry *group = name ? entry_find(pod->cluster, KIND_POD_GROUP, pod->ns, name) : NULL, *member;
    json_int_t wanted, n = 0;

    if (!group)
        return name == NULL;
    wanted = json_integer_value(field_get(group->json, "spec", "schedulingPolicy", "gang", "minCount", NULL));
    DL_FOREACH (pod->cluster->lists[KIND_POD], member) {
        other = field_text(member->json, "spec", "schedulingGroup", "podGroupName", NULL);
        n += other && strcmp(other, name) == 0 && strcmp(member->ns, pod->ns) == 0 &&
             json_array_size(field_get(member->json, "spec", "schedulingGates", NULL)) == 0;
    }
    return n >= wanted;
}

/* Not for another scheduler. */
static bool is_for_us(const struct entry *pod)
{
    const char *name = field_text(pod->json, "spec", "schedulerName", NULL);

    return !name || strcmp(name, "default-scheduler") == 0;
}

static bool is_waiting(const struct entry *pod)
{
    return is_for_us(pod) && !pod_is_bound(pod) && !pod_is_finished(pod) && !entry_is_going(pod) &&
           json_array_size(field_get(pod->json, "spec", "schedulingGates", NULL)) == 0 && has_its_gang(pod);
}

static int64_t ready_ms(const struct entry *pod)
{
    int64_t created_ms = when_read(field_get(pod->json, "metadata", "creationTimestamp", NULL), 0);

    return when_read(field_get(pod->json, "metadata", "annotations", ANNOTATION_UNGATED, NULL), created_ms) +
           pod->cluster->schedule_delay_ms;
}

void schedule_pass(struct embedded *cluster)
{
    int64_t now_ms = clock_now_ms(cluster->clock), next_ms = INT64_MAX;
    struct entry *pod;

    DL_FOREACH (cluster->lists[KIND_POD], pod) {
        if (pod_is_bound(pod)) {
            /* Bound without us, and perhaps its claims are allocated now. */
            if (!field_get(pod->json, "status", "startTime", NULL) && !pod_is_finished(pod))
                entry_push(pod);
            continue;
        }
        if (!is_waiting(pod))
            continue;
        if (ready_ms(pod) > now_ms)
            next_ms = ready_ms(pod) < next_ms ? ready_ms(pod) : next_ms;
        else if (!cluster->is_held)
            schedule(pod);
    }
    if (next_ms != INT64_MAX)
        clock_timer_set(cluster->ready, next_ms);
    cluster->is_scheduling_due = false; /* what the pass itself changed makes no room for others */
}

struct reserving {
    const struct entry *pod;
    bool is_ready, is_writing;
};

static void reserve_one(void *ctx, const char *name, struct entry *claim)
{
    struct reserving *reserving = ctx;

    (void)name;
    if (reserving->is_writing)
        claim_write(claim, reserving->pod, NULL);
    else if (!claim || !is_allocated(claim))
        reserving->is_ready = false;
}

bool claims_reserve(struct entry *pod)
{
    struct reserving reserving = {pod, true, false};

    pod_each_claim(pod, reserve_one, &reserving);
    if (!reserving.is_ready)
        return false;
    reserving.is_writing = true;
    pod_each_claim(pod, reserve_one, &reserving);
    return true;
}
