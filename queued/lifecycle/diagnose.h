/* queued/lifecycle/diagnose.h - why a member does not run, or does not run well: which layer is to be looked at, and
 * one sentence for people. From what Kubernetes tells of the pod, its claims and its PodGroup; pure.
 *
 * Facts: conditions PodScheduled, PodReadyToStartContainers, DisruptionTarget and Ready, states of containers, health
 * of allocated resources (all of v1 Pod), binding conditions and device status of claims (resource.k8s.io/v1). */
#ifndef QUEUED_LIFECYCLE_DIAGNOSE_H
#define QUEUED_LIFECYCLE_DIAGNOSE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* Who is to be looked at. */
enum diagnosis_layer {
    DIAGNOSIS_API,       /* an object is missing or going, or a gate is closed */
    DIAGNOSIS_SCHEDULER, /* kube-scheduler finds no place, or does not look */
    DIAGNOSIS_DRIVER,    /* the DRA driver prepares devices, or could not */
    DIAGNOSIS_IMAGE,
    DIAGNOSIS_RUNTIME, /* containers: their configuration, their start, their end */
    DIAGNOSIS_DEVICE,  /* a device is unhealthy or tainted */
    DIAGNOSIS_NODE,
};
const char *diagnosis_layer_name(enum diagnosis_layer layer);

struct diagnosis {
    enum diagnosis_layer layer;
    char sentence[600];
};

struct diagnosed_claim {
    const char *name;
    const json_t *object; /* as the cluster told it; NULL: it is not there */
};

struct diagnose_input {
    const json_t *pod;                    /* as the cluster told it; NULL: it is not there */
    const struct diagnosed_claim *claims; /* of the pod, as far as they are known */
    size_t n_claims;
    const json_t *pod_group; /* that it has joined, or NULL */
};

/* Fills `out` and returns true when there is something to say; false for a pod that runs well or has succeeded. */
bool diagnose(const struct diagnose_input *input, struct diagnosis *out);

/* The first device that a kubelet reports as unhealthy, in words ("device gpu-0 of claim g ...: message"); false when
 * there is none. */
bool diagnose_health(const json_t *pod, char *out, size_t size);

#endif
