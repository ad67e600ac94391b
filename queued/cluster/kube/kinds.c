#include "queued/cluster/kube/kinds.h"

#include <string.h>

#include "queued/cluster/cluster.h"

#include "allocator/base/banned.h"

enum {
    KIND_NODE,
    KIND_NAMESPACE,
    KIND_POD,
    KIND_CONFIG_MAP,
    KIND_SERVICE,
    KIND_RESOURCE_QUOTA,
    KIND_PRIORITY_CLASS,
    KIND_DEVICE_CLASS,
    KIND_RESOURCE_SLICE,
    KIND_RESOURCE_CLAIM,
    KIND_DEVICE_TAINT_RULE,
    KIND_POD_GROUP,
    KIND_LEASE,
    KIND_PROVISIONING_REQUEST,
    KIND_POD_TEMPLATE,
    KIND_CLAIM_TEMPLATE,
    KIND_COUNT
};

#define DRA "resource.k8s.io"

/* Which release serves what: DRA v1 since 1.34, v1beta2 since 1.33, v1beta1 since 1.32; taint rules v1 since 1.37,
 * v1beta2 since 1.36, v1alpha3 since 1.33. PodGroup before v1beta1 (1.37) had another form. */
static const struct kind kinds[KIND_COUNT] = {
    [KIND_NODE] = {"Node", "", {"v1"}, "nodes", false, false},
    [KIND_NAMESPACE] = {"Namespace", "", {"v1"}, "namespaces", false, false},
    [KIND_POD] = {"Pod", "", {"v1"}, "pods", true, false},
    [KIND_CONFIG_MAP] = {"ConfigMap", "", {"v1"}, "configmaps", true, false},
    [KIND_SERVICE] = {"Service", "", {"v1"}, "services", true, false},
    [KIND_RESOURCE_QUOTA] = {"ResourceQuota", "", {"v1"}, "resourcequotas", true, true},
    [KIND_PRIORITY_CLASS] = {"PriorityClass", "scheduling.k8s.io", {"v1"}, "priorityclasses", false, true},
    [KIND_DEVICE_CLASS] = {"DeviceClass", DRA, {"v1", "v1beta2", "v1beta1"}, "deviceclasses", false, false},
    [KIND_RESOURCE_SLICE] = {"ResourceSlice", DRA, {"v1", "v1beta2", "v1beta1"}, "resourceslices", false, false},
    [KIND_RESOURCE_CLAIM] = {"ResourceClaim", DRA, {"v1", "v1beta2", "v1beta1"}, "resourceclaims", true, false},
    [KIND_DEVICE_TAINT_RULE] = {"DeviceTaintRule", DRA, {"v1", "v1beta2", "v1alpha3"}, "devicetaintrules", false, true},
    [KIND_POD_GROUP] = {"PodGroup", "scheduling.k8s.io", {"v1beta1"}, "podgroups", true, true},
    [KIND_LEASE] = {"Lease", "coordination.k8s.io", {"v1"}, "leases", true, false},
    [KIND_PROVISIONING_REQUEST] =
        {"ProvisioningRequest", "autoscaling.x-k8s.io", {"v1", "v1beta1"}, "provisioningrequests", true, true},
    [KIND_POD_TEMPLATE] = {"PodTemplate", "", {"v1"}, "podtemplates", true, true},
    [KIND_CLAIM_TEMPLATE] =
        {"ResourceClaimTemplate", DRA, {"v1", "v1beta2", "v1beta1"}, "resourceclaimtemplates", true, true},
};

#define OTHERS "!" LABEL_JOB
/* What has ended holds nothing. */
#define NOT_ENDED "status.phase!=Succeeded,status.phase!=Failed"

const struct source kube_sources[] = {
    {&kinds[KIND_NAMESPACE], NULL, NULL, false},
    {&kinds[KIND_RESOURCE_QUOTA], NULL, NULL, false},
    {&kinds[KIND_PRIORITY_CLASS], NULL, NULL, false},
    {&kinds[KIND_DEVICE_CLASS], NULL, NULL, false},
    {&kinds[KIND_NODE], NULL, NULL, false},
    {&kinds[KIND_RESOURCE_SLICE], NULL, NULL, false},
    {&kinds[KIND_DEVICE_TAINT_RULE], NULL, NULL, false},
    {&kinds[KIND_RESOURCE_CLAIM], NULL, NULL, false},
    {&kinds[KIND_POD], OTHERS, NOT_ENDED, false},
    {&kinds[KIND_POD], LABEL_JOB, NULL, true},
    {&kinds[KIND_CONFIG_MAP], LABEL_JOB, NULL, true},
    {&kinds[KIND_SERVICE], LABEL_JOB, NULL, true},
    {&kinds[KIND_POD_GROUP], LABEL_JOB, NULL, true},
    {&kinds[KIND_PROVISIONING_REQUEST], LABEL_JOB, NULL, true},
};
const size_t n_kube_sources = ARRAY_SIZE(kube_sources);

const struct kind *kind_find(const char *name)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

size_t kind_count(void)
{
    return KIND_COUNT;
}

const struct kind *kind_at(size_t i)
{
    return &kinds[i];
}

/* ---- paths ---- */

void kind_escape(const char *text, struct buf *out)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (; *text; text++) {
        if (strchr(plain, *text))
            buf_addc(out, *text);
        else
            buf_addf(out, "%%%02X", (unsigned char)*text);
    }
}

/* "." and ".." would climb out of the collection wherever a proxy tidies paths. */
static void put_segment(struct buf *out, const char *name)
{
    buf_addc(out, '/');
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        for (; *name; name++)
            buf_adds(out, "%2E");
    else
        kind_escape(name, out);
}

void kind_path(const struct kind *kind, const char *version, const char *ns, const char *name, struct buf *out)
{
    if (*kind->group)
        buf_addf(out, "/apis/%s/%s", kind->group, version);
    else
        buf_addf(out, "/api/%s", version);
    if (ns && kind->is_namespaced) {
        buf_adds(out, "/namespaces");
        put_segment(out, ns);
    }
    buf_addf(out, "/%s", kind->plural);
    if (name)
        put_segment(out, name);
}
