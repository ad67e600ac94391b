/* allocator/pod.h - what a pod asks of a node beside devices, as kube-scheduler's filters read it.
 *
 * The same reading serves members of a gang (which fit a node or not) and pods that run already (which use it up).
 *
 * Source: the filters of kube-scheduler (node name, unschedulable, taints, node affinity, ports, resources) and the API
 * server's defaults that they rely on: limits imply requests, hostNetwork implies host ports. */
#ifndef QUEUED_POD_H
#define QUEUED_POD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"

/* An amount of one resource in the unit of the scheduler: thousandths for "cpu", whole units (rounded up) otherwise.
 * Sums that do not fit 64 bits saturate. */
struct resource_amount {
    const char *name;
    int64_t amount;
};

struct host_port {
    const char *ip;       /* "0.0.0.0" is every address */
    const char *protocol; /* "TCP", "UDP", "SCTP" */
    int64_t port;
};

enum toleration_operator { TOLERATION_EQUAL, TOLERATION_EXISTS, TOLERATION_OTHER };

struct pod_toleration {
    const char *key, *value, *effect; /* empty: any */
    enum toleration_operator op;      /* OTHER tolerates nothing */
};

enum label_operator { LABEL_IN, LABEL_NOT_IN, LABEL_EXISTS, LABEL_DOES_NOT_EXIST, LABEL_GT, LABEL_LT, LABEL_BROKEN };

struct label_rule {
    const char *key;
    bool is_field; /* key is "metadata.name" */
    enum label_operator op;
    const char *const *values;
    size_t n_values;
};

/* All rules must hold; a term without rules matches no node. */
struct node_term {
    const struct label_rule *rules;
    size_t n_rules;
};

/* One container, as far as extended resources need it. */
struct pod_container {
    bool is_init, is_sidecar;
    const struct resource_amount *requests; /* sorted by name, zero amounts included */
    size_t n_requests;
};

struct pod_demand {
    const struct resource_amount *requests; /* of the whole pod, sorted by name, above zero; without "pods" */
    size_t n_requests;
    const struct host_port *ports;
    size_t n_ports;
    const char *node_name;             /* or NULL */
    const struct label_rule *selector; /* spec.nodeSelector: all must hold */
    size_t n_selector;
    bool has_terms;                /* required node affinity is stated: */
    const struct node_term *terms; /* one of these must match */
    size_t n_terms;
    const struct pod_toleration *tolerations;
    size_t n_tolerations;
    const struct pod_container *containers; /* init containers first, in order */
    size_t n_containers;
};

enum pod_use {
    POD_MEMBER, /* is to be placed: what cannot be simulated is refused */
    POD_BOUND,  /* runs already: only what it takes away is read */
};

/* Read {"metadata": ..., "spec": v1 PodSpec}. Strings are copied into `arena`. Returns 0 with *out in the arena, or -1
 * with ERR_INVALID and the field ("spec.containers[0].resources.requests.cpu"). With POD_MEMBER required pod affinity
 * and anti-affinity and topology spread that must hold are refused with their field, because they are not simulated. */
MUST_CHECK int pod_demand_parse(const json_t *pod, enum pod_use use, struct arena *arena, struct pod_demand **out,
                                struct error *err);

/* How much of a resource the pod asks; 0 if none. */
int64_t pod_demand_amount(const struct pod_demand *demand, const char *resource);

/* Whether two pods cannot be on one node because of a host port. */
bool host_ports_clash(const struct host_port *a, const struct host_port *b);

#endif
