/* Paths of kinds, what is watched, and what of an object goes on. */
#include "queued/cluster/kube/kinds.h"
#include "test/support/cmocka.h"

#include <string.h>

#include "queued/cluster/cluster.h"

#include "allocator/base/banned.h"

static const struct path_case {
    const char *name, *kind, *version, *ns, *object, *path;
} paths[] = {
    {"all of a kind", "Pod", "v1", NULL, NULL, "/api/v1/pods"},
    {"of a namespace", "Pod", "v1", "a", NULL, "/api/v1/namespaces/a/pods"},
    {"one", "ResourceClaim", "v1", "a", "b", "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/b"},
    {"of the cluster", "Node", "v1", NULL, "n1", "/api/v1/nodes/n1"},
    {"a namespace that does not apply", "Node", "v1", "a", "n1", "/api/v1/nodes/n1"},
    {"an older version", "ResourceSlice", "v1beta1", NULL, "x", "/apis/resource.k8s.io/v1beta1/resourceslices/x"},
    {"a namespace itself", "Namespace", "v1", NULL, "a", "/api/v1/namespaces/a"},
    {"a lease", "Lease", "v1", "a", "b", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b"},
    {"a request to the autoscaler", "ProvisioningRequest", "v1beta1", "a", NULL,
     "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/a/provisioningrequests"},
    {"a gang", "PodGroup", "v1beta1", "a", "b", "/apis/scheduling.k8s.io/v1beta1/namespaces/a/podgroups/b"},
    {"names that would lead elsewhere", "Pod", "v1", "../x", "a/b?c#d%",
     "/api/v1/namespaces/..%2Fx/pods/a%2Fb%3Fc%23d%25"},
    {"names of dots", "Pod", "v1", "..", ".", "/api/v1/namespaces/%2E%2E/pods/%2E"},
};

static void test_kinds__path(void **state)
{
    const struct path_case *c = *state;
    BUF path = {0};

    kind_path(kind_find(c->kind), c->version, c->ns, c->object, &path);
    assert_string_equal(buf_str(&path), c->path);
}

static void test_kinds__unknown(void **state)
{
    (void)state;
    assert_null(kind_find("Deployment"));
    assert_null(kind_find(""));
}

/* Everything that the port promises to tell has a source; pods have two that share no pod. */
static void test_kinds__sources(void **state)
{
    static const char *const promised[] = {"Node",
                                           "Pod",
                                           "Namespace",
                                           "DeviceClass",
                                           "ResourceSlice",
                                           "ResourceClaim",
                                           "DeviceTaintRule",
                                           "ResourceQuota",
                                           "PriorityClass",
                                           "ConfigMap",
                                           "Service",
                                           "PodGroup",
                                           "ProvisioningRequest"};
    size_t n_pods = 0;

    (void)state;
    for (size_t p = 0; p < ARRAY_SIZE(promised); p++) {
        bool has = false;

        for (size_t i = 0; i < n_kube_sources; i++)
            has = has || strcmp(kube_sources[i].kind->name, promised[p]) == 0;
        assert_true(has);
    }
    for (size_t i = 0; i < n_kube_sources; i++)
        if (strcmp(kube_sources[i].kind->name, "Pod") == 0) {
            assert_string_equal(kube_sources[i].label_selector, kube_sources[i].is_ours ? LABEL_JOB : "!" LABEL_JOB);
            n_pods++;
        }
    assert_int_equal(n_pods, 2);
}

#define META "\"metadata\":{\"name\":\"a\",\"namespace\":\"x\",\"uid\":\"u\",\"resourceVersion\":\"7\","
#define NOISE                                                                                                          \
    "\"managedFields\":[{\"manager\":\"m\"}],\"annotations\":{\"k\":\"v\","                                            \
    "\"kubectl.kubernetes.io/last-applied-configuration\":\"{}\"}"

static const struct trim_case {
    const char *name, *kind;
    bool is_ours;
    const char *object, *want;
} trims[] = {
    {"what nobody reads of others' pods", "Pod", false,
     "{" META NOISE ",\"labels\":{\"app\":\"x\"},\"generateName\":\"g\"},"
     "\"spec\":{\"nodeName\":\"n1\",\"hostNetwork\":true,\"volumes\":[{}],\"containers\":[{\"name\":\"c\",\"image\":"
     "\"i\","
     "\"env\":[{}],\"ports\":[{\"hostPort\":1,\"protocol\":\"TCP\",\"name\":\"p\"}],\"resources\":{\"requests\":{"
     "\"cpu\":"
     "\"1\"},\"claims\":[{\"name\":\"r\"}]}}],\"initContainers\":[{\"name\":\"i\",\"restartPolicy\":\"Always\","
     "\"args\":[]}],"
     "\"overhead\":{\"cpu\":\"1\"},\"resourceClaims\":[{\"name\":\"r\"}],\"tolerations\":[{}]},"
     "\"status\":{\"phase\":\"Running\",\"conditions\":[{}],\"podIP\":\"1\",\"resourceClaimStatuses\":[{\"name\":\"r\"}"
     "],"
     "\"extendedResourceClaimStatus\":{\"resourceClaimName\":\"e\"},\"containerStatuses\":[{}]}}",
     "{\"metadata\":{\"name\":\"a\",\"namespace\":\"x\",\"uid\":\"u\",\"resourceVersion\":\"7\"},"
     "\"spec\":{\"nodeName\":\"n1\",\"hostNetwork\":true,\"containers\":[{\"name\":\"c\","
     "\"ports\":[{\"hostPort\":1,\"protocol\":\"TCP\"}],\"resources\":{\"requests\":{\"cpu\":"
     "\"1\"},\"claims\":[{\"name\":\"r\"}]}}],\"initContainers\":[{\"name\":\"i\",\"restartPolicy\":\"Always\"}],"
     "\"overhead\":{\"cpu\":\"1\"},\"resourceClaims\":[{\"name\":\"r\"}]},"
     "\"status\":{\"phase\":\"Running\",\"resourceClaimStatuses\":[{\"name\":\"r\"}],"
     "\"extendedResourceClaimStatus\":{\"resourceClaimName\":\"e\"}},\"kind\":\"Pod\",\"apiVersion\":\"v1\"}"},
    {"our pods are whole", "Pod", true, "{" META NOISE "},\"spec\":{\"volumes\":[{}]},\"status\":{\"podIP\":\"1\"}}",
     "{" META
     "\"annotations\":{\"k\":\"v\"}},\"spec\":{\"volumes\":[{}]},\"status\":{\"podIP\":\"1\"},\"kind\":\"Pod\","
     "\"apiVersion\":\"v1\"}"},
    {"nodes without images and heartbeats", "Node", false,
     "{\"metadata\":{\"name\":\"n\",\"labels\":{\"l\":\"1\"},\"annotations\":{\"k\":\"v\"}},\"spec\":{\"podCIDR\":"
     "\"1\","
     "\"unschedulable\":true,\"taints\":[{\"key\":\"t\"}]},\"status\":{\"images\":[{}],\"nodeInfo\":{},\"allocatable\":"
     "{\"cpu\":"
     "\"4\"},\"declaredFeatures\":[\"f\"],\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
     "\"lastHeartbeatTime\":"
     "\"now\",\"message\":\"m\"}]}}",
     "{\"metadata\":{\"name\":\"n\",\"labels\":{\"l\":\"1\"}},\"spec\":{"
     "\"unschedulable\":true,\"taints\":[{\"key\":\"t\"}]},\"status\":{\"allocatable\":{\"cpu\":"
     "\"4\"},\"declaredFeatures\":[\"f\"],\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]},"
     "\"kind\":\"Node\",\"apiVersion\":\"v1\"}"},
    {"claims are whole, whoever's", "ResourceClaim", false,
     "{" META NOISE ",\"labels\":{\"l\":\"1\"}},\"spec\":{\"devices\":{}},\"status\":{\"reservedFor\":[]}}",
     "{" META "\"annotations\":{\"k\":\"v\"},\"labels\":{\"l\":\"1\"}},\"spec\":{\"devices\":{}},\"status\":{"
     "\"reservedFor\":[]},\"kind\":\"ResourceClaim\",\"apiVersion\":\"resource.k8s.io/v1\"}"},
    {"forms that nobody expects go through", "Pod", false,
     "{\"metadata\":7,\"spec\":{\"containers\":{\"a\":1}},\"status\":[{\"podIP\":\"1\"}]}",
     "{\"metadata\":7,\"spec\":{\"containers\":{\"a\":1}},\"status\":[{\"podIP\":\"1\"}],\"kind\":\"Pod\","
     "\"apiVersion\":\"v1\"}"},
    {"elements that nobody expects go through", "Pod", false, "{\"spec\":{\"containers\":[7,null,[1]]}}",
     "{\"spec\":{\"containers\":[7,null,[1]]},\"kind\":\"Pod\",\"apiVersion\":\"v1\"}"},
    {"no metadata at all", "DeviceClass", false, "{}",
     "{\"kind\":\"DeviceClass\",\"apiVersion\":\"resource.k8s.io/v1\"}"},
    {"annotations of another type", "DeviceClass", false, "{\"metadata\":{\"annotations\":7}}",
     "{\"metadata\":{\"annotations\":7},\"kind\":\"DeviceClass\",\"apiVersion\":\"resource.k8s.io/v1\"}"},
};

static void test_kinds__trim(void **state)
{
    const struct trim_case *c = *state;
    struct source source = {kind_find(c->kind), NULL, NULL, c->is_ours};
    json_t *object = json_loads(c->object, 0, NULL), *before = json_deep_copy(object),
           *want = json_loads(c->want, 0, NULL);
    json_t *got = kind_trim(&source, "v1", object);

    assert_non_null(want);
    if (!json_equal(got, want)) {
        char *text = json_dumps(got, JSON_COMPACT);

        assert_string_equal(text, c->want);
    }
    assert_true(json_equal(object, before)); /* what came in is as it was */
    json_decref(object);
    json_decref(before);
    json_decref(want);
    json_decref(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds__unknown),
        cmocka_unit_test(test_kinds__sources),
    };
    int failed = RUN_TABLE(test_kinds__path, paths);

    failed += RUN_TABLE(test_kinds__trim, trims);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
