/* What objects count as in a ResourceQuota, and which quotas are about them. */
#include "test/support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/gang.h"
#include "queued/admission/namespace.h"
#include "queued/admission/needs.h"
#include "queued/manifest/yaml.h"

static json_t *document_of(const char *yaml)
{
    const struct manifest_limits limits = MANIFEST_LIMITS_DEFAULT;
    struct error err = {0};
    CLEANUP(manifest) *manifest = NULL;

    if (manifest_parse("test", yaml, strlen(yaml), &limits, &manifest, &err) < 0)
        fail_msg("%s\n%s", err.text, yaml);
    return json_incref(manifest_document(manifest, 0));
}

/* ---- what an object counts as ---- */

#define POD(spec) "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team}, spec: {" spec "}}"
#define CLAIM(list)                                                                                                    \
    "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}, spec: {devices: {requests: [" list     \
    "]}}}"

static const struct count_case {
    const char *name, *object;
    const char *want; /* sorted, "resource=amount " */
} count_cases[] = {
    {"a pod that asks for nothing is two counts", POD("containers: [{name: a}]"), "count/pods=1 pods=1 "},
    {"requests have two names, limits one",
     POD("containers: [{name: a, resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: '1', memory: 2Gi}}}]"),
     "count/pods=1 cpu=500m limits.cpu=1 limits.memory=2Gi memory=1Gi pods=1 requests.cpu=500m requests.memory=1Gi "},
    {"a limit is requested where no request is",
     POD("containers: [{name: a, resources: {limits: {cpu: '2'}}}, {name: b, resources: {requests: {cpu: '1'}}}]"),
     "count/pods=1 cpu=3 limits.cpu=2 pods=1 requests.cpu=3 "},
    {"the largest moment counts: init containers, sidecars, overhead",
     POD("initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: '1'}}}, {name: i, resources: "
         "{requests: {cpu: '4'}}}], containers: [{name: a, resources: {requests: {cpu: '2'}}}], overhead: {cpu: 100m}"),
     "count/pods=1 cpu=5100m pods=1 requests.cpu=5100m "},
    {"overhead limits nothing that is not limited",
     POD("containers: [{name: a, resources: {limits: {memory: 1Gi}}}], overhead: {cpu: 100m, memory: 1Mi}"),
     "count/pods=1 cpu=100m limits.memory=1025Mi memory=1025Mi pods=1 requests.cpu=100m requests.memory=1025Mi "},
    {"extended resources are counted as requests, huge pages by both names",
     POD("containers: [{name: a, resources: {limits: {nvidia.com/gpu: '2', hugepages-2Mi: 4Mi}}}]"),
     "count/pods=1 hugepages-2Mi=4Mi pods=1 requests.hugepages-2Mi=4Mi requests.nvidia.com/gpu=2 "},
    {"a pod that cannot be read is still a pod", POD("containers: [{name: a, resources: {requests: {cpu: lots}}}]"),
     "count/pods=1 pods=1 "},
    {"devices of a claim by class",
     CLAIM("{name: a, exactly: {deviceClassName: gpu, count: 2}}, {name: b, exactly: {deviceClassName: nic}}, "
           "{name: c, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 3, adminAccess: true}}"),
     "count/resourceclaims.resource.k8s.io=1 gpu.deviceclass.resource.k8s.io/devices=5 "
     "nic.deviceclass.resource.k8s.io/devices=1 "},
    {"all devices count as 32", CLAIM("{name: a, exactly: {deviceClassName: gpu, allocationMode: All}}"),
     "count/resourceclaims.resource.k8s.io=1 gpu.deviceclass.resource.k8s.io/devices=32 "},
    {"the flat shape of v1beta1", CLAIM("{name: a, deviceClassName: gpu, count: 4}"),
     "count/resourceclaims.resource.k8s.io=1 gpu.deviceclass.resource.k8s.io/devices=4 "},
    {"other objects are counted by kind", "{apiVersion: v1, kind: Service, metadata: {name: s}}",
     "count/services=1 services=1 "},
    {"a pod group has no short name", "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: s}}",
     "count/podgroups.scheduling.k8s.io=1 "},
    {"what no quota of ours is about", "{apiVersion: v1, kind: Secret, metadata: {name: s}}", ""},
};

static int by_resource(const void *a, const void *b)
{
    return strcmp(((const struct need_amount *)a)->resource, ((const struct need_amount *)b)->resource);
}

static void tell(const struct needs *needs, struct buf *out)
{
    for (size_t i = 0; i < needs->n; i++) {
        struct need_amount *sorted = arena_array(needs->arena, struct need_amount, needs->items[i].n_amounts + 1);

        memcpy(sorted, needs->items[i].amounts, needs->items[i].n_amounts * sizeof(*sorted));
        qsort(sorted, needs->items[i].n_amounts, sizeof(*sorted), by_resource);
        for (size_t k = 0; k < needs->items[i].n_amounts; k++) {
            buf_addf(out, "%s=", sorted[k].resource);
            quantity_format_to(&sorted[k].amount, out);
            buf_addc(out, ' ');
        }
    }
}

static void test_namespace__count(void **state)
{
    const struct count_case *c = *state;
    json_t *object = document_of(c->object);
    struct arena arena = {0};
    struct needs needs = {.arena = &arena};
    BUF text = {0};

    needs_add_object(&needs, object);
    tell(&needs, &text);
    assert_string_equal(buf_str(&text), c->want);
    arena_release(&arena);
    json_decref(object);
}

/* ---- what a real control plane counted ---- */

/* Objects that were created on Kubernetes 1.37.2 in a namespace with one quota, and its status.used afterwards. */
static const char *const real_objects[] = {
    "{kind: Pod, metadata: {name: p1}, spec: {initContainers: [{name: s, restartPolicy: Always, resources: {requests: "
    "{cpu: "
    "'1', memory: 1Mi}, limits: {cpu: '1', memory: 1Mi}}}, {name: i, resources: {requests: {cpu: '4', memory: 1Mi}, "
    "limits: "
    "{cpu: '4', memory: 1Mi}}}], containers: [{name: a, resources: {requests: {cpu: '2', memory: 1Gi}, limits: {cpu: "
    "'3', "
    "memory: 2Gi, ephemeral-storage: 1Gi}}}]}}",
    "{kind: Pod, metadata: {name: p2}, spec: {priorityClassName: urgent, activeDeadlineSeconds: 60, containers: "
    "[{name: a, "
    "resources: {limits: {cpu: 500m, memory: 1Gi, nvidia.com/gpu: '2', hugepages-2Mi: 4Mi}}}]}}",
    CLAIM("{name: a, exactly: {deviceClassName: gpu, count: 2}}, {name: b, exactly: {deviceClassName: nic}}"),
    CLAIM("{name: a, exactly: {deviceClassName: gpu, allocationMode: All}}"),
    "{kind: Service, metadata: {name: s}}",
    "{kind: ConfigMap, metadata: {name: kube-root-ca.crt}}",
};
static const struct {
    const char *resource, *used;
} real_used[] = {
    {"configmaps", "1"},
    {"count/configmaps", "1"},
    {"count/pods", "2"},
    {"count/resourceclaims.resource.k8s.io", "2"},
    {"count/services", "1"},
    {"cpu", "5500m"},
    {"ephemeral-storage", "1Gi"},
    {"gpu.deviceclass.resource.k8s.io/devices", "34"},
    {"hugepages-2Mi", "4Mi"},
    {"limits.cpu", "5500m"},
    {"limits.ephemeral-storage", "1Gi"},
    {"limits.memory", "3073Mi"},
    {"memory", "2049Mi"},
    {"nic.deviceclass.resource.k8s.io/devices", "1"},
    {"pods", "2"},
    {"requests.cpu", "5500m"},
    {"requests.ephemeral-storage", "1Gi"},
    {"requests.hugepages-2Mi", "4Mi"},
    {"requests.memory", "2049Mi"},
    {"requests.nvidia.com/gpu", "2"},
    {"services", "1"},
};

static void test_namespace__amounts_are_those_of_a_real_quota(void **state)
{
    struct arena arena = {0};
    struct needs needs = {.arena = &arena};
    struct quota_limit limits[ARRAY_SIZE(real_used)];
    struct quantity used[ARRAY_SIZE(real_used)];
    const struct namespace_quota quota = {.limits = limits, .n_limits = ARRAY_SIZE(limits)};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(real_objects); i++) {
        json_t *object = document_of(real_objects[i]);

        needs_add_object(&needs, object);
        json_decref(object);
    }
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        limits[i] = (struct quota_limit){.resource = real_used[i].resource};
        used[i] = quantity_of_int(0);
    }
    namespace_quota_use(&quota, used, &needs);
    for (size_t i = 0; i < ARRAY_SIZE(used); i++) {
        struct quantity want;

        assert_int_equal(quantity_parse(str_of(real_used[i].used), &arena, &want, NULL), 0);
        if (quantity_cmp(&used[i], &want) != 0)
            fail_msg("%s is not %s", real_used[i].resource, real_used[i].used);
    }
    arena_release(&arena);
}

/* ---- which quotas are about a pod ---- */

#define PLAIN     "containers: [{name: a, resources: {requests: {cpu: '1'}}}]"
#define CLASSED   "priorityClassName: high, " PLAIN
#define IN(op, v) "scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: " op ", values: [" v "]}]}"

static const struct scope_case {
    const char *name, *quota, *pod, *default_class;
    bool is_about;
} scope_cases[] = {
    {"no scopes: all", "", PLAIN, NULL, true},
    {"not terminating", "scopes: [NotTerminating]", PLAIN, NULL, true},
    {"terminating", "scopes: [Terminating]", PLAIN, NULL, false},
    {"terminating with a deadline", "scopes: [Terminating]", "activeDeadlineSeconds: 5, " PLAIN, NULL, true},
    {"best effort", "scopes: [BestEffort]", PLAIN, NULL, false},
    {"best effort without requests", "scopes: [BestEffort]", "containers: [{name: a}]", NULL, true},
    {"best effort with other resources", "scopes: [BestEffort]",
     "containers: [{name: a, resources: {limits: {x.y/z: '1'}}}]", NULL, true},
    {"not best effort by a limit", "scopes: [NotBestEffort]",
     "containers: [{name: a, resources: {limits: {memory: 1Mi}}}]", NULL, true},
    {"several scopes: all must hold", "scopes: [NotTerminating, BestEffort]", PLAIN, NULL, false},
    {"a class", "scopes: [PriorityClass]", PLAIN, NULL, false},
    {"a class that is named", "scopes: [PriorityClass]", CLASSED, NULL, true},
    {"the cluster's default class", "scopes: [PriorityClass]", PLAIN, "normal", true},
    {"in a list of classes", IN("In", "low, high"), CLASSED, NULL, true},
    {"not in a list of classes", IN("In", "low"), CLASSED, NULL, false},
    {"outside of a list", IN("NotIn", "low"), CLASSED, NULL, true},
    {"without a class it is outside", IN("NotIn", "low"), PLAIN, NULL, true},
    {"no class", IN("DoesNotExist", ""), PLAIN, NULL, true},
    {"a scope that the pod does not tell decides nothing", "scopes: [CrossNamespacePodAffinity]", PLAIN, NULL, false},
};

static void test_namespace__scope(void **state)
{
    const struct scope_case *c = *state;
    struct arena arena = {0};
    struct needs needs = {.arena = &arena, .default_priority_class = c->default_class};
    struct namespace_quota quota;
    struct quantity needed;
    json_t *object, *pod;
    BUF text = {0};

    buf_addf(&text,
             "{kind: ResourceQuota, metadata: {name: q, namespace: team}, spec: {%s}, status: {hard: {pods: 0}, "
             "used: {pods: '0'}}}",
             c->quota);
    object = document_of(buf_str(&text));
    buf_clear(&text);
    buf_addf(&text, "{kind: Pod, metadata: {name: p}, spec: {%s}}", c->pod);
    pod = document_of(buf_str(&text));
    assert_int_equal(namespace_quota_parse(object, &arena, &quota, NULL), 0);
    needs_add_object(&needs, pod);
    assert_int_equal(namespace_quota_exceeded(&quota, NULL, &needs, &needed) != NULL, c->is_about);
    arena_release(&arena);
    json_decref(object);
    json_decref(pod);
}

/* ---- limits ---- */

static void test_namespace__scopes_are_about_pods_only(void **state)
{
    json_t *object =
        document_of("{metadata: {name: q, namespace: team}, spec: {scopes: [NotTerminating]}, status: {hard: "
                    "{count/services: 0}, used: {count/services: 0}}}");
    json_t *service = document_of("{kind: Service, metadata: {name: s}}");
    struct arena arena = {0};
    struct needs needs = {.arena = &arena};
    struct namespace_quota quota;
    struct quantity needed;

    (void)state;
    assert_int_equal(namespace_quota_parse(object, &arena, &quota, NULL), 0);
    needs_add_object(&needs, service);
    assert_null(namespace_quota_exceeded(&quota, NULL, &needs, &needed));
    arena_release(&arena);
    json_decref(object);
    json_decref(service);
}

static void test_namespace__what_is_not_known_limits_nothing(void **state)
{
    json_t *object =
        document_of("{metadata: {name: q, namespace: team}, status: {hard: {pods: '1', cpu: much, memory: 1Gi, "
                    "count/pods: '3'}, used: {memory: 1Mi, cpu: '1', count/pods: [1]}}}");
    struct arena arena = {0};
    struct namespace_quota quota;
    struct error err = {0};
    json_t *nameless = document_of("{metadata: {namespace: team}}");

    (void)state;
    assert_int_equal(namespace_quota_parse(object, &arena, &quota, &err), 0);
    assert_int_equal(quota.n_limits, 1);
    assert_string_equal(quota.limits[0].resource, "memory");
    assert_int_equal(namespace_quota_parse(nameless, &arena, &quota, &err), -1);
    assert_string_equal(err.field, "metadata.name");
    arena_release(&arena);
    json_decref(object);
    json_decref(nameless);
}

static void test_namespace__promises_are_used_already(void **state)
{
    json_t *object = document_of("{metadata: {name: q, namespace: team}, status: {hard: {requests.memory: 3Gi}, used: "
                                 "{requests.memory: 1Gi}}}");
    json_t *pod = document_of(POD("containers: [{name: a, resources: {requests: {memory: 1Gi}}}]"));
    struct arena arena = {0};
    struct needs needs = {.arena = &arena};
    struct namespace_quota quota;
    struct quantity needed;

    (void)state;
    assert_int_equal(namespace_quota_parse(object, &arena, &quota, NULL), 0);
    needs_add_object(&needs, pod);
    assert_null(namespace_quota_exceeded(&quota, NULL, &needs, &needed));
    namespace_quota_promise(&quota, &needs);
    assert_null(namespace_quota_exceeded(&quota, NULL, &needs, &needed));
    namespace_quota_promise(&quota, &needs);
    assert_ptr_equal(namespace_quota_exceeded(&quota, NULL, &needs, &needed), &quota.limits[0]);
    needs.items[0].n = 3;
    assert_ptr_equal(namespace_quota_exceeded(&quota, NULL, &needs, &needed), &quota.limits[0]);
    assert_int_equal(quantity_cmp(&needed, &(struct quantity){.value = INT64_C(3) << 30}), 0);
    arena_release(&arena);
    json_decref(object);
    json_decref(pod);
}

#define QUOTA(scopes, hard, used)                                                                                      \
    "{metadata: {name: q, namespace: team}, spec: {hard: {pods: " hard "}" scopes "}, status: {hard: {pods: " hard     \
    "}, used: {pods: " used "}}}"

static void test_namespace__only_more_room_is_looser(void **state)
{
    static const struct {
        const char *before, *after;
        bool is_looser;
    } rows[] = {
        {QUOTA("", "4", "2"), QUOTA("", "4", "2"), false},
        {QUOTA("", "4", "2"), QUOTA("", "4", "3"), false},
        {QUOTA("", "4", "2"), QUOTA("", "4", "1"), true},
        {QUOTA("", "4", "2"), QUOTA("", "5", "2"), true},
        {QUOTA("", "4", "2"), QUOTA("", "3", "2"), true}, /* another spec: not worth telling apart */
        {QUOTA("", "4", "2"), QUOTA(", scopes: [BestEffort]", "4", "2"), true},
        {QUOTA("", "4", "2"), "{metadata: {name: q, namespace: team}, spec: {hard: {pods: 4}}}", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        json_t *before = document_of(rows[i].before), *after = document_of(rows[i].after);

        assert_int_equal(namespace_quota_is_looser(before, after), rows[i].is_looser);
        json_decref(before);
        json_decref(after);
    }
}

int main(void)
{
    struct CMUnitTest tests[ARRAY_SIZE(count_cases) + ARRAY_SIZE(scope_cases)];
    const struct CMUnitTest facts[] = {
        cmocka_unit_test(test_namespace__amounts_are_those_of_a_real_quota),
        cmocka_unit_test(test_namespace__scopes_are_about_pods_only),
        cmocka_unit_test(test_namespace__what_is_not_known_limits_nothing),
        cmocka_unit_test(test_namespace__promises_are_used_already),
        cmocka_unit_test(test_namespace__only_more_room_is_looser),
    };
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(count_cases); i++)
        tests[n++] = (struct CMUnitTest){count_cases[i].name, test_namespace__count, NULL, NULL,
                                         (void *)(uintptr_t)&count_cases[i]};
    for (size_t i = 0; i < ARRAY_SIZE(scope_cases); i++)
        tests[n++] = (struct CMUnitTest){scope_cases[i].name, test_namespace__scope, NULL, NULL,
                                         (void *)(uintptr_t)&scope_cases[i]};
    return cmocka_run_group_tests(tests, NULL, NULL) + cmocka_run_group_tests(facts, NULL, NULL);
}
