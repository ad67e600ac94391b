/* queued/admission/needs.h - what an attempt would create in its namespace, counted as a ResourceQuota counts it.
 *
 * Pods are counted with their requests and limits, their number and what decides whether a quota with scopes is about
 * them; claims with the devices per class that their requests could take at most (one with mode All counts as 32);
 * every object as one of its kind. Of firstAvailable the alternative counts that the placement chose, because the claim
 * that is created asks for it alone.
 *
 * Source: the quota evaluators of Kubernetes 1.37 as observed from outside (names and amounts). Departure: what
 * LimitRanges and admission webhooks add to a pod is not seen, nor are devices of a class counted under the extended
 * resource that the class stands behind; there the API server's refusal is the first word. */
#ifndef QUEUED_ADMISSION_NEEDS_H
#define QUEUED_ADMISSION_NEEDS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "allocator/base/arena.h"
#include "allocator/base/quantity.h"

struct gang_spec;
struct placement;

struct need_amount {
    const char
        *resource; /* as a quota names it: "requests.cpu", "count/pods", "gpu.deviceclass.resource.k8s.io/devices" */
    struct quantity amount;
};

/* `n` objects that count alike. */
struct need {
    size_t n;
    const struct need_amount *amounts; /* of one of them; each resource once */
    size_t n_amounts;
    bool is_pod;                /* a quota with scopes is about pods only; what follows is of pods */
    bool is_terminating;        /* has activeDeadlineSeconds */
    bool is_best_effort;        /* asks for no cpu and no memory */
    const char *priority_class; /* or NULL */
};

struct needs {
    struct arena *arena;
    const char *default_priority_class; /* of pods that name none, or NULL */
    struct need *items;
    size_t n, cap;
};

/* Add what an attempt of the gang creates: a ConfigMap and a Service, a PodGroup where has_pod_group, its pods, and its
 * claims as the placement has chosen them. Without a placement (NULL) only what is sure before the search: alternatives
 * of firstAvailable then count as no device. Strings are borrowed from the question's JSON or live in the arena. */
void needs_add_attempt(struct needs *needs, const struct gang_spec *question, const struct placement *placement,
                       bool has_pod_group);

/* Add one object as it would be created; kinds that no quota of queued's objects is about count as nothing. */
void needs_add_object(struct needs *needs, const json_t *object);

#endif
