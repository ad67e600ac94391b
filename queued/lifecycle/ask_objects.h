/* queued/lifecycle/ask_objects.h - what asks an autoscaler for nodes: the exact objects, made from a job. Pure.
 *
 * The Kubernetes Cluster Autoscaler reads ProvisioningRequests: sets of a pod template and a count, all of which are to
 * have room at once. Source: kubernetes/autoscaler, apis/provisioningrequest/autoscaling.x-k8s.io/v1/types.go (fields,
 * limits, conditions) and provisioningrequest/pods/pods.go (a set's pods exist in its memory only). Karpenter has
 * nothing of the kind: it reacts to pods that exist.
 *
 * In the order of creation: an anchor (a ConfigMap that owns the rest, so that deleting it removes all), a
 * ResourceClaimTemplate per claim of a group, a PodTemplate per group, and last the ProvisioningRequest, so that nobody
 * reads it before what it refers to. A member is asked for as it would be launched, but for what is only known then:
 * gate, node, names, environment. Of an elastic group the least number that may start is asked for, of a job with
 * alternatives the first shape.
 *
 * What a request cannot say is left out: constraints over the gang (the same model, rack, domain). */
#ifndef QUEUED_LIFECYCLE_ASK_OBJECTS_H
#define QUEUED_LIFECYCLE_ASK_OBJECTS_H

#include <stdint.h>

#include <jansson.h>

#include "allocator/base/error.h"
#include "queued/manifest/job.h"

/* On members that take the room which was made for them (types.go, ProvisioningRequestPodAnnotationKey and
 * ProvisioningClassPodAnnotationKey). */
#define ANNOTATION_CONSUME "autoscaling.x-k8s.io/consume-provisioning-request"
#define ANNOTATION_CLASS   "autoscaling.x-k8s.io/provisioning-class-name"

#define ASK_MAX_SETS 32 /* spec.podSets of one request */

struct ask_input {
    int64_t job, number; /* the how many-th request of the job this is */
    const char *server;  /* whose database the job is in */
    const struct job_spec *spec;
    const char *version;      /* apiVersion of ProvisioningRequest */
    const char *class_name;   /* spec.provisioningClassName */
    const json_t *parameters; /* spec.parameters, or NULL */
};

/* Why no request can stand for this job, as the end of a sentence; NULL: one can. */
const char *ask_obstacle(const struct job_spec *spec);

/* "<job>-<id>-ask-<number>": the anchor, the request, and the beginning of all other names. To free(). */
char *ask_name(const char *job_name, int64_t job, int64_t number);

/* A new array of objects; the first is the anchor, the last the request. Only where there is no obstacle. */
json_t *ask_objects(const struct ask_input *input);

/* "KEY=VALUE,KEY=VALUE" to an object of texts. Returns 0 and a new reference (NULL for an empty text), or -1. */
MUST_CHECK int ask_parameters_parse(const char *text, json_t **out, struct error *err);

#endif
