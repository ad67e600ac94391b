/* The claim that kube-scheduler makes itself for extended resources behind a device class (semantics 11.3). It exists
 * in the scheduler's head until the pod is bound: then it is created, allocated and reserved in one turn, and the pod's
 * status says which container has which of its requests. */
#include "queued/cluster/embedded/internal.h"

#include "allocator/base/banned.h"

static json_t *claim_object(const struct entry *pod, json_t *spec)
{
    return json_pack("{s:s,s:s,s:{s:o,s:s,s:{s:s},s:[{s:s,s:s,s:s,s:s,s:b,s:b}]},s:O}", "apiVersion",
                     "resource.k8s.io/v1", "kind", "ResourceClaim", "metadata", "generateName",
                     json_sprintf("%s-extended-resources-", pod->name), "namespace", pod->ns, "annotations",
                     ANNOTATION_EXTENDED, "true", "ownerReferences", "apiVersion", "v1", "kind", "Pod", "name",
                     pod->name, "uid", pod->uid, "controller", 1, "blockOwnerDeletion", 1, "spec", spec);
}

struct entry *extended_claim_create(struct entry *pod, json_t *spec, json_t *mappings, struct error *err)
{
    json_t *object = claim_object(pod, spec), *draft;
    struct entry *claim = NULL;
    int rc = api_create(pod->cluster, object, &claim, err);

    json_decref(object);
    if (rc < 0)
        return NULL;
    draft = entry_draft(pod);
    json_object_set_new(field_object(draft, "status"), "extendedResourceClaimStatus",
                        json_pack("{s:s,s:O}", "resourceClaimName", claim->name, "requestMappings", mappings));
    entry_change(pod, draft);
    return claim;
}
