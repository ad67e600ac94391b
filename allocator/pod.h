/* allocator/pod.h - internal: where a pod may run, as kube-scheduler's filters read its spec.
 *
 * Its amounts and ports (struct pod_demand) come from demand.c; this adds the rules for choosing a node. What is not
 * simulated is refused here, with its field, so that no rule of a pod is ever ignored. */
#ifndef QUEUED_POD_H
#define QUEUED_POD_H

#include <jansson.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "allocator/model.h"

struct pod_rules {
    struct pod_demand demand;
    const char *node_name;        /* spec.nodeName, or NULL */
    const struct label *selector; /* spec.nodeSelector, sorted by key */
    size_t n_selector;
    const struct node_selector *affinity; /* required node affinity, or NULL */
    const struct toleration *tolerations;
    size_t n_tolerations;
};

/* Read {"metadata": ..., "spec": v1 PodSpec}. Everything lives in `arena`; `symbols` names the resources. Returns 0, or
 * -1 with ERR_INVALID and the field ("spec.containers[0].resources.requests.cpu"). Required pod affinity and
 * anti-affinity, and topology spread that must hold, are refused: they are not simulated. */
MUST_CHECK int pod_rules_parse(const json_t *pod, struct symbols *symbols, struct arena *arena, struct pod_rules *out,
                               struct error *err);

#endif
