/* The kubelets: a bound pod starts after a delay, runs for the duration that its annotation states and ends with the
 * stated code. Every point in time follows from the pod's own status, so a pod whose end fell into a time when the
 * server was down ends at once, with the time at which it would have ended. */
#include "queued/cluster/embedded/internal.h"

#include <stdlib.h>
#include <string.h>

#include "queued/clock.h"
#include "queued/manifest/duration.h"

#include "allocator/base/banned.h"

#define DEFAULT_DURATION_MS 10000

static const char *phase_of(const struct entry *pod)
{
    const char *phase = field_text(pod->json, "status", "phase", NULL);

    return phase ? phase : "Pending";
}

bool pod_is_finished(const struct entry *pod)
{
    return strcmp(phase_of(pod), "Succeeded") == 0 || strcmp(phase_of(pod), "Failed") == 0;
}

static bool is_running(const struct entry *pod)
{
    return strcmp(phase_of(pod), "Running") == 0;
}

bool pod_is_bound(const struct entry *pod)
{
    const char *node = field_text(pod->json, "spec", "nodeName", NULL);

    return node && *node;
}

static struct entry *claim_named(const struct entry *pod, const json_t *named)
{
    const char *claim = field_text(named, "resourceClaimName", NULL), *name = field_text(named, "name", NULL);
    size_t i;
    json_t *status;

    if (claim)
        return entry_find(pod->cluster, KIND_CLAIM, pod->ns, claim);
    json_array_foreach (field_get(pod->json, "status", "resourceClaimStatuses", NULL), i, status) {
        const char *other = field_text(status, "name", NULL);

        claim = field_text(status, "resourceClaimName", NULL);
        if (other && claim && name && strcmp(other, name) == 0)
            return entry_find(pod->cluster, KIND_CLAIM, pod->ns, claim);
    }
    return NULL;
}

void pod_each_claim(const struct entry *pod, void (*each)(void *ctx, const char *name, struct entry *claim), void *ctx)
{
    const char *extended;
    size_t i;
    json_t *named;

    json_array_foreach (field_get(pod->json, "spec", "resourceClaims", NULL), i, named)
        each(ctx, field_text(named, "name", NULL), claim_named(pod, named));
    extended = field_text(pod->json, "status", "extendedResourceClaimStatus", "resourceClaimName", NULL);
    if (extended)
        each(ctx, NULL, entry_find(pod->cluster, KIND_CLAIM, pod->ns, extended));
}

static void push_claim(void *ctx, const char *name, struct entry *claim)
{
    (void)ctx, (void)name;
    if (claim)
        entry_push(claim);
}

void pod_released(struct entry *pod)
{
    pod_each_claim(pod, push_claim, NULL);
    pod->cluster->is_scheduling_due = true;
}

/* ---- status ---- */

void pod_condition(json_t *draft, const char *type, bool is_true, const char *reason, const char *message,
                   int64_t at_ms)
{
    json_t *conditions = field_array(field_object(draft, "status"), "conditions"), *condition = NULL, *item;
    const char *status = is_true ? "True" : "False", *old;
    size_t i;

    json_array_foreach (conditions, i, item)
        if (field_text(item, "type", NULL) && strcmp(field_text(item, "type", NULL), type) == 0)
            condition = item;
    if (!condition) {
        condition = json_pack("{s:s}", "type", type);
        json_array_append_new(conditions, condition);
    }
    old = field_text(condition, "status", NULL);
    if (!old || strcmp(old, status) != 0)
        json_object_set_new(condition, "lastTransitionTime", when_json(at_ms));
    json_object_set_new(condition, "status", json_string(status));
    json_object_del(condition, "reason");
    json_object_del(condition, "message");
    if (reason)
        json_object_set_new(condition, "reason", json_string(reason));
    if (message)
        json_object_set_new(condition, "message", json_string(message));
}

static int64_t condition_since(const struct entry *pod, const char *type, int64_t otherwise)
{
    size_t i;
    json_t *item;

    json_array_foreach (field_get(pod->json, "status", "conditions", NULL), i, item) {
        const char *other = field_text(item, "type", NULL);

        if (other && strcmp(other, type) == 0)
            return when_read(json_object_get(item, "lastTransitionTime"), otherwise);
    }
    return otherwise;
}

/* One status per container, all in the same state (borrowed). */
static void set_containers(json_t *draft, bool is_ready, json_t *state)
{
    json_t *statuses = json_array(), *container;
    size_t i;

    json_array_foreach (field_get(draft, "spec", "containers", NULL), i, container)
        json_array_append_new(statuses,
                              json_pack("{s:O*,s:O*,s:s,s:b,s:b,s:i,s:O}", "name", json_object_get(container, "name"),
                                        "image", json_object_get(container, "image"), "imageID", "", "ready", is_ready,
                                        "started", is_ready, "restartCount", 0, "state", state));
    json_object_set_new(field_object(draft, "status"), "containerStatuses", statuses);
}

static int64_t started_ms(const struct entry *pod)
{
    const json_t *first = json_array_get(field_get(pod->json, "status", "containerStatuses", NULL), 0);
    int64_t pod_ms = when_read(field_get(pod->json, "status", "startTime", NULL), pod->cluster->started_ms);

    return when_read(field_get(first, "state", "running", "startedAt", NULL), pod_ms);
}

/* ---- steps ---- */

static void pod_start(struct entry *pod, int64_t at_ms)
{
    static const char *const conditions[] = {"PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"};
    json_t *draft = entry_draft(pod), *status = field_object(draft, "status");
    json_t *state = json_pack("{s:{s:o}}", "running", "startedAt", when_json(at_ms));

    json_object_set_new(status, "phase", json_string("Running"));
    json_object_set_new(status, "startTime", when_json(at_ms));
    for (size_t i = 0; i < ARRAY_SIZE(conditions); i++)
        pod_condition(draft, conditions[i], true, NULL, NULL, at_ms);
    set_containers(draft, true, state);
    json_decref(state);
    entry_change(pod, draft);
}

void pod_end(struct entry *pod, int exit_code, const char *reason, const char *message, int64_t at_ms)
{
    bool is_success = exit_code == 0 && !reason;
    const char *of_container = is_success ? "Completed" : "Error";
    json_t *draft = entry_draft(pod), *status = field_object(draft, "status"), *state;

    if (reason && strcmp(reason, "NodeLost") == 0)
        of_container = "ContainerStatusUnknown"; /* nobody is left who could know */
    state = json_pack("{s:{s:i,s:s,s:o*,s:o}}", "terminated", "exitCode", exit_code, "reason", of_container,
                      "startedAt", is_running(pod) ? when_json(started_ms(pod)) : NULL, "finishedAt", when_json(at_ms));
    json_object_set_new(status, "phase", json_string(is_success ? "Succeeded" : "Failed"));
    if (reason)
        json_object_set_new(status, "reason", json_string(reason));
    if (message)
        json_object_set_new(status, "message", json_string(message));
    pod_condition(draft, "ContainersReady", false, is_success ? "PodCompleted" : "PodFailed", NULL, at_ms);
    pod_condition(draft, "Ready", false, is_success ? "PodCompleted" : "PodFailed", NULL, at_ms);
    set_containers(draft, false, state);
    json_decref(state);
    clock_timer_cancel(pod->timer);
    entry_change(pod, draft);
    pod_released(pod);
}

static void pod_evict(struct entry *pod, const char *reason)
{
    json_t *draft = entry_draft(pod);

    pod_condition(draft, "DisruptionTarget", true, reason, NULL, clock_now_ms(pod->cluster->clock));
    entry_change(pod, draft);
    entry_delete(pod);
}

/* ---- when ---- */

static int64_t start_due(const struct entry *pod)
{
    int64_t created_ms = when_read(field_get(pod->json, "metadata", "creationTimestamp", NULL), 0);

    return condition_since(pod, "PodScheduled", created_ms) + pod->cluster->start_delay_ms;
}

/* When its containers end by themselves. Pods of the manifests run for ever unless they say otherwise: they stand for
 * what others run on the cluster. */
static int64_t end_due(const struct entry *pod)
{
    const char *text = field_text(pod->json, "metadata", "annotations", EMBEDDED_DURATION, NULL);
    int64_t duration_ms = DEFAULT_DURATION_MS;

    if ((!text && pod->manifest) || (text && !duration_parse(text, &duration_ms)))
        return INT64_MAX;
    return started_ms(pod) + duration_ms;
}

static int64_t deadline_due(const struct entry *pod)
{
    const json_t *seconds = field_get(pod->json, "spec", "activeDeadlineSeconds", NULL);

    return json_is_integer(seconds) ? started_ms(pod) + (int64_t)json_integer_value(seconds) * 1000 : INT64_MAX;
}

static int exit_code(const struct entry *pod)
{
    const char *text = field_text(pod->json, "metadata", "annotations", EMBEDDED_EXIT_CODE, NULL);

    return text ? (int)strtol(text, NULL, 10) : 0;
}

static bool has_lost_its_node(const struct entry *pod)
{
    return !pod->manifest &&
           !entry_find(pod->cluster, KIND_NODE, NULL, field_text(pod->json, "spec", "nodeName", NULL));
}

/* Then nobody ends or starts anything there; evictions are not the kubelet's. */
static bool is_on_silent_node(const struct entry *pod)
{
    const struct entry *node =
        entry_find(pod->cluster, KIND_NODE, NULL, field_text(pod->json, "spec", "nodeName", NULL));

    return node && field_text(node->json, "metadata", "annotations", ANNOTATION_SILENT, NULL);
}

enum step { STEP_STOP, STEP_EVICT, STEP_DEADLINE, STEP_END, STEP_START, STEP_COUNT };

static void take_step(struct entry *pod, enum step step, int64_t at_ms, const char *eviction)
{
    switch (step) {
    case STEP_STOP:
        pod_end(pod, 143, NULL, NULL, at_ms); /* 128 + SIGTERM */
        break;
    case STEP_EVICT:
        pod_evict(pod, eviction);
        break;
    case STEP_DEADLINE:
        pod_end(pod, 143, "DeadlineExceeded", "Pod was active on the node longer than the specified deadline", at_ms);
        break;
    case STEP_END:
        pod_end(pod, exit_code(pod), NULL, NULL, at_ms);
        break;
    case STEP_START:
        if (claims_reserve(pod))
            pod_start(pod, at_ms);
        break; /* else: the scheduler's next pass has us look again */
    case STEP_COUNT:
        break;
    }
}

void pod_look(struct entry *pod)
{
    int64_t now_ms = clock_now_ms(pod->cluster->clock), due[STEP_COUNT];
    enum step first = STEP_STOP;
    const char *eviction = NULL;
    bool is_silent;

    if (pod_is_finished(pod) || !pod_is_bound(pod))
        return;
    if (has_lost_its_node(pod)) {
        pod_end(pod, 137, "NodeLost", "the node is gone", now_ms);
        return;
    }
    is_silent = is_on_silent_node(pod);
    due[STEP_STOP] =
        entry_is_going(pod) ? when_read(field_get(pod->json, "metadata", "deletionTimestamp", NULL), 0) : INT64_MAX;
    due[STEP_EVICT] = entry_is_going(pod) ? INT64_MAX : eviction_due(pod, &eviction);
    due[STEP_DEADLINE] = is_running(pod) ? deadline_due(pod) : INT64_MAX;
    due[STEP_END] = is_running(pod) ? end_due(pod) : INT64_MAX;
    due[STEP_START] = is_running(pod) || entry_is_going(pod) ? INT64_MAX : start_due(pod);
    for (enum step step = STEP_STOP; step < STEP_COUNT; step++) {
        if (is_silent && step != STEP_EVICT)
            due[step] = INT64_MAX;
        if (due[step] < due[first])
            first = step;
    }
    if (due[first] <= now_ms)
        take_step(pod, first, due[first], eviction);
    else if (due[first] != INT64_MAX)
        clock_timer_set(pod->timer, due[first]);
    else
        clock_timer_cancel(pod->timer);
}
