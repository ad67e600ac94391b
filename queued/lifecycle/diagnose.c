/* A list of findings, the most telling first: what ends a pod before what keeps it from starting, a sick device before
 * the container that crashes because of it. The first that applies is the diagnosis. */
#include "queued/lifecycle/diagnose.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "allocator/base/str.h"
#include "queued/cluster/cluster.h"

#include "allocator/base/banned.h"

static const char *const layer_names[] = {
    [DIAGNOSIS_API] = "api",     [DIAGNOSIS_SCHEDULER] = "scheduler", [DIAGNOSIS_DRIVER] = "driver",
    [DIAGNOSIS_IMAGE] = "image", [DIAGNOSIS_RUNTIME] = "runtime",     [DIAGNOSIS_DEVICE] = "device",
    [DIAGNOSIS_NODE] = "node",
};

const char *diagnosis_layer_name(enum diagnosis_layer layer)
{
    return layer_names[layer];
}

/* ---- JSON ---- */

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value ? value : "";
}

static const json_t *part(const json_t *object, const char *a, const char *b)
{
    return json_object_get(json_object_get(object, a), b);
}

static const json_t *condition(const json_t *status, const char *type)
{
    const json_t *item;
    size_t i;

    json_array_foreach (json_object_get(status, "conditions"), i, item)
        if (strcmp(text(item, "type"), type) == 0)
            return item;
    return NULL;
}

static bool is(const json_t *found, const char *status)
{
    return strcmp(text(found, "status"), status) == 0;
}

/* ---- saying ---- */

static bool say(struct diagnosis *out, enum diagnosis_layer layer, const char *fmt, ...) PRINTF_LIKE(3, 4);
static bool say(struct diagnosis *out, enum diagnosis_layer layer, const char *fmt, ...)
{
    va_list args;

    out->layer = layer;
    va_start(args, fmt);
    vsnprintf(out->sentence, sizeof(out->sentence), fmt, args);
    va_end(args);
    return true;
}

/* ": words", or nothing. */
#define AFTER(words) (words)[0] ? ": " : "", words

static const char *node_of(const json_t *pod)
{
    return text(json_object_get(pod, "spec"), "nodeName");
}

/* ---- its end ---- */

static bool is_not_there(const struct diagnose_input *in, struct diagnosis *out)
{
    return !in->pod && say(out, DIAGNOSIS_API, "it is not there");
}

static const struct disruption {
    const char *reason;
    enum diagnosis_layer layer;
    const char *words;
} disruptions[] = {
    {"DeletionByDeviceTaintManager", DIAGNOSIS_DEVICE, "evicted because of a taint of its device"},
    {"DeletionByTaintManager", DIAGNOSIS_NODE, "evicted because of a taint of its node"},
    {"DeletionByPodGC", DIAGNOSIS_NODE, "removed because its node is gone"},
    {"TerminationByKubelet", DIAGNOSIS_NODE, "ended by the kubelet of its node"},
    {"PreemptionByScheduler", DIAGNOSIS_SCHEDULER, "preempted by kube-scheduler"},
    {"EvictionByEvictionAPI", DIAGNOSIS_API, "evicted through the API"},
};

static bool is_disrupted(const struct diagnose_input *in, struct diagnosis *out)
{
    const json_t *target = condition(json_object_get(in->pod, "status"), "DisruptionTarget");

    if (!is(target, "True"))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(disruptions); i++)
        if (strcmp(disruptions[i].reason, text(target, "reason")) == 0)
            return say(out, disruptions[i].layer, "%s%s%s", disruptions[i].words, AFTER(text(target, "message")));
    return say(out, DIAGNOSIS_API, "disrupted (%s)%s%s", text(target, "reason"), AFTER(text(target, "message")));
}

static bool is_node_lost(const struct diagnose_input *in, struct diagnosis *out)
{
    const json_t *status = json_object_get(in->pod, "status");

    return strcmp(text(status, "reason"), "NodeLost") == 0 &&
           say(out, DIAGNOSIS_NODE, "node %s does not answer%s%s", node_of(in->pod), AFTER(text(status, "message")));
}

static bool is_going(const struct diagnose_input *in, struct diagnosis *out)
{
    const char *finalizer = json_string_value(json_array_get(part(in->pod, "metadata", "finalizers"), 0));

    if (!part(in->pod, "metadata", "deletionTimestamp"))
        return false;
    return say(out, DIAGNOSIS_API, "it is being deleted%s%s", finalizer ? "; it is held by the finalizer " : "",
               finalizer ? finalizer : "");
}

/* ---- containers ---- */

typedef bool container_finding(const json_t *container, const json_t *pod, struct diagnosis *out);

static bool any_container(const struct diagnose_input *in, struct diagnosis *out, container_finding *finding)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    const json_t *container;
    size_t i;

    for (size_t k = 0; k < ARRAY_SIZE(lists); k++)
        json_array_foreach (part(in->pod, "status", lists[k]), i, container)
            if (finding(container, in->pod, out))
                return true;
    return false;
}

static bool has_failed_container(const json_t *container, const json_t *pod, struct diagnosis *out)
{
    const json_t *ended = part(container, "state", "terminated");
    json_int_t code = json_integer_value(json_object_get(ended, "exitCode"));

    (void)pod;
    return ended && code != 0 &&
           say(out, DIAGNOSIS_RUNTIME, "container %s ended with exit code %lld%s%s%s%s%s", text(container, "name"),
               (long long)code, text(ended, "reason")[0] ? " (" : "", text(ended, "reason"),
               text(ended, "reason")[0] ? ")" : "", AFTER(text(ended, "message")));
}

/* A pod that failed without a container that did was turned away by its node. */
static bool has_failed(const struct diagnose_input *in, struct diagnosis *out)
{
    const json_t *status = json_object_get(in->pod, "status");
    const char *reason = text(status, "reason");

    if (strcmp(text(status, "phase"), "Failed") != 0)
        return false;
    if (!reason[0] && any_container(in, out, has_failed_container))
        return true;
    return say(out, strcmp(reason, "DeadlineExceeded") == 0 ? DIAGNOSIS_RUNTIME : DIAGNOSIS_NODE, "failed%s%s%s%s%s",
               reason[0] ? " (" : "", reason, reason[0] ? ")" : "", AFTER(text(status, "message")));
}

static const struct waiting {
    const char *reason;
    enum diagnosis_layer layer;
} waitings[] = {
    {"ErrImagePull", DIAGNOSIS_IMAGE},
    {"ImagePullBackOff", DIAGNOSIS_IMAGE},
    {"InvalidImageName", DIAGNOSIS_IMAGE},
    {"ErrImageNeverPull", DIAGNOSIS_IMAGE},
    {"ImageInspectError", DIAGNOSIS_IMAGE},
    {"RegistryUnavailable", DIAGNOSIS_IMAGE},
    {"SignatureValidationFailed", DIAGNOSIS_IMAGE},
    {"CreateContainerConfigError", DIAGNOSIS_RUNTIME},
    {"CreateContainerError", DIAGNOSIS_RUNTIME},
    {"PreCreateHookError", DIAGNOSIS_RUNTIME},
    {"PreStartHookError", DIAGNOSIS_RUNTIME},
    {"PostStartHookError", DIAGNOSIS_RUNTIME},
    {"RunContainerError", DIAGNOSIS_RUNTIME},
    {"StartError", DIAGNOSIS_RUNTIME},
    {"CrashLoopBackOff", DIAGNOSIS_RUNTIME},
};

static bool is_waiting_container(const json_t *container, const json_t *pod, struct diagnosis *out)
{
    const json_t *waiting = part(container, "state", "waiting"), *last = part(container, "lastState", "terminated");
    char before[60] = "";

    (void)pod;
    if (last)
        snprintf(before, sizeof(before), ", after exit code %lld",
                 (long long)json_integer_value(json_object_get(last, "exitCode")));
    for (size_t i = 0; i < ARRAY_SIZE(waitings); i++)
        if (strcmp(waitings[i].reason, text(waiting, "reason")) == 0)
            return say(out, waitings[i].layer, "container %s: %s%s%s%s", text(container, "name"), waitings[i].reason,
                       before, AFTER(text(waiting, "message")));
    return false;
}

static bool is_held_by_container(const struct diagnose_input *in, struct diagnosis *out)
{
    return any_container(in, out, is_waiting_container);
}

/* ---- devices ---- */

static bool unhealthy_resource(const json_t *status, const char *container, char *out, size_t size)
{
    const json_t *resource;
    size_t i;

    json_array_foreach (json_object_get(status, "resources"), i, resource)
        if (strcmp(text(resource, "health"), "Unhealthy") == 0) {
            snprintf(out, size, "device %s (%s) of container %s is unhealthy%s%s", text(resource, "resourceID"),
                     text(status, "name"), container, AFTER(text(resource, "message")));
            return true;
        }
    return false;
}

bool diagnose_health(const json_t *pod, char *out, size_t size)
{
    const json_t *container, *status;
    size_t i, k;

    json_array_foreach (part(pod, "status", "containerStatuses"), i, container)
        json_array_foreach (json_object_get(container, "allocatedResourcesStatus"), k, status)
            if (unhealthy_resource(status, text(container, "name"), out, size))
                return true;
    return false;
}

static bool is_unhealthy(const struct diagnose_input *in, struct diagnosis *out)
{
    if (!diagnose_health(in->pod, out->sentence, sizeof(out->sentence)))
        return false;
    out->layer = DIAGNOSIS_DEVICE;
    return true;
}

/* ---- before it has a node ---- */

static bool is_held(const struct diagnose_input *in, struct diagnosis *out)
{
    const json_t *spec = json_object_get(in->pod, "spec");
    const json_t *gate = json_array_get(json_object_get(spec, "schedulingGates"), 0);

    if (strcmp(text(spec, "schedulerName"), SCHEDULER_NAME) == 0 && !json_object_get(spec, "nodeName"))
        return say(out, DIAGNOSIS_API, "queued has not bound it yet");
    return gate && say(out, DIAGNOSIS_API, "its scheduling gate %s is closed", text(gate, "name"));
}

static bool lacks_claim(const struct diagnose_input *in, struct diagnosis *out)
{
    for (size_t i = 0; i < in->n_claims; i++) {
        const struct diagnosed_claim *claim = &in->claims[i];

        if (!claim->object)
            return say(out, DIAGNOSIS_API, "its claim %s is not there", claim->name);
        if (part(claim->object, "metadata", "deletionTimestamp"))
            return say(out, DIAGNOSIS_API, "its claim %s is being deleted", claim->name);
    }
    return false;
}

/* The entry of status.devices for a device of an allocation. */
static const json_t *device_status(const json_t *claim, const json_t *result)
{
    static const char *const keys[] = {"driver", "pool", "device"};
    const json_t *device;
    size_t i;

    json_array_foreach (part(claim, "status", "devices"), i, device) {
        size_t same = 0;

        for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
            same += strcmp(text(device, keys[k]), text(result, keys[k])) == 0;
        if (same == ARRAY_SIZE(keys))
            return device;
    }
    return NULL;
}

/* The first of these types whose condition is (not) true. */
static const char *first_type(const json_t *types, const json_t *device, bool wanted)
{
    const json_t *type;
    size_t i;

    json_array_foreach (types, i, type)
        if (is(condition(device, json_string_value(type)), "True") == wanted)
            return json_string_value(type);
    return NULL;
}

static bool binding_waits(const json_t *claim, const json_t *result, bool is_bound, struct diagnosis *out)
{
    const json_t *device = device_status(claim, result);
    const char *failed = first_type(json_object_get(result, "bindingFailureConditions"), device, true);
    const char *missing = first_type(json_object_get(result, "bindingConditions"), device, false);
    const json_t *ready = condition(device, "Ready");

    if (failed)
        return say(out, DIAGNOSIS_DRIVER, "device %s/%s cannot be bound: %s is true%s%s", text(result, "pool"),
                   text(result, "device"), failed, AFTER(text(condition(device, failed), "message")));
    if (missing && !is_bound)
        return say(out, DIAGNOSIS_DRIVER, "device %s/%s is not ready to be bound: %s is not true yet%s%s",
                   text(result, "pool"), text(result, "device"), missing,
                   AFTER(text(condition(device, missing), "message")));
    return is(ready, "False") && say(out, DIAGNOSIS_DRIVER, "device %s/%s is not ready%s%s", text(result, "pool"),
                                     text(result, "device"), AFTER(text(ready, "message")));
}

static bool waits_for_device(const struct diagnose_input *in, struct diagnosis *out)
{
    const json_t *result;
    size_t k;

    for (size_t i = 0; i < in->n_claims; i++)
        json_array_foreach (part(part(in->claims[i].object, "status", "allocation"), "devices", "results"), k, result)
            if (binding_waits(in->claims[i].object, result, node_of(in->pod)[0] != '\0', out))
                return true;
    return false;
}

static bool waits_for_scheduler(const struct diagnose_input *in, struct diagnosis *out)
{
    const json_t *scheduled = condition(json_object_get(in->pod, "status"), "PodScheduled");
    const json_t *group = condition(json_object_get(in->pod_group, "status"), "PodGroupInitiallyScheduled");

    if (node_of(in->pod)[0])
        return false;
    /* what was said of its gates stays until kube-scheduler has looked at it without them */
    if (is(scheduled, "False") && text(scheduled, "message")[0] &&
        strcmp(text(scheduled, "reason"), "SchedulingGated") != 0)
        return say(out, DIAGNOSIS_SCHEDULER, "%s", text(scheduled, "message"));
    if (is(group, "False"))
        return say(out, DIAGNOSIS_SCHEDULER, "the gang is not placed%s%s", AFTER(text(group, "message")));
    return say(out, DIAGNOSIS_SCHEDULER, "kube-scheduler has not said anything of it yet");
}

/* ---- on its node ---- */

static bool is_reserved(const json_t *claim, const char *uid)
{
    const json_t *consumer;
    size_t i;

    json_array_foreach (part(claim, "status", "reservedFor"), i, consumer)
        if (strcmp(text(consumer, "uid"), uid) == 0 || strcmp(text(consumer, "resource"), "podgroups") == 0)
            return true;
    return false;
}

static bool is_running(const struct diagnose_input *in)
{
    const char *phase = text(json_object_get(in->pod, "status"), "phase");

    return strcmp(phase, "Running") == 0 || strcmp(phase, "Succeeded") == 0;
}

static bool lacks_reservation(const struct diagnose_input *in, struct diagnosis *out)
{
    const char *uid = text(json_object_get(in->pod, "metadata"), "uid");

    for (size_t i = 0; i < in->n_claims && !is_running(in); i++) {
        const struct diagnosed_claim *claim = &in->claims[i];

        if (!part(claim->object, "status", "allocation"))
            return say(out, DIAGNOSIS_SCHEDULER, "its claim %s is not allocated", claim->name);
        if (!is_reserved(claim->object, uid))
            return say(out, DIAGNOSIS_SCHEDULER, "its claim %s is not reserved for it", claim->name);
    }
    return false;
}

static const char *driver_of(const struct diagnose_input *in)
{
    const json_t *allocation = part(in->n_claims ? in->claims[0].object : NULL, "status", "allocation");

    return text(json_array_get(part(allocation, "devices", "results"), 0), "driver");
}

/* Devices are prepared before there is a sandbox; images are pulled after it. */
static bool is_starting(const struct diagnose_input *in, struct diagnosis *out)
{
    const json_t *status = json_object_get(in->pod, "status"), *ready = condition(status, "PodReadyToStartContainers");
    const char *node = node_of(in->pod);

    if (is_running(in))
        return false;
    if (!json_object_get(status, "startTime") && json_array_size(json_object_get(status, "containerStatuses")) == 0)
        return say(out, DIAGNOSIS_NODE, "the kubelet of node %s has not taken it up yet", node);
    if (!is(ready, "True") && in->n_claims > 0)
        return say(out, DIAGNOSIS_DRIVER, "node %s prepares its devices (driver %s), its volumes or its network", node,
                   driver_of(in));
    if (!is(ready, "True"))
        return say(out, DIAGNOSIS_RUNTIME, "node %s prepares its volumes or its network", node);
    if (is(condition(status, "Initialized"), "False"))
        return say(out, DIAGNOSIS_RUNTIME, "its init containers run on node %s", node);
    return say(out, DIAGNOSIS_IMAGE, "node %s pulls its images, or creates its containers", node);
}

static bool is_not_ready(const struct diagnose_input *in, struct diagnosis *out)
{
    const json_t *status = json_object_get(in->pod, "status"), *ready = condition(status, "Ready");

    return strcmp(text(status, "phase"), "Running") == 0 && is(ready, "False") &&
           say(out, DIAGNOSIS_RUNTIME, "it runs and is not ready%s%s", AFTER(text(ready, "message")));
}

/* ---- all of them ---- */

bool diagnose(const struct diagnose_input *input, struct diagnosis *out)
{
    static bool (*const findings[])(const struct diagnose_input *in, struct diagnosis *out) = {
        is_not_there,        is_disrupted,      is_node_lost,         is_going,     has_failed,
        is_unhealthy,        is_held,           is_held_by_container, lacks_claim,  waits_for_device,
        waits_for_scheduler, lacks_reservation, is_starting,          is_not_ready,
    };

    if (strcmp(text(json_object_get(input->pod, "status"), "phase"), "Succeeded") == 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(findings); i++)
        if (findings[i](input, out))
            return true;
    return false;
}
