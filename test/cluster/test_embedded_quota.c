/* ResourceQuota in the embedded cluster: what is counted, and what is refused. */
#include "test/cluster/world.h"

#include <string.h>

#include "test/support/cmocka.h"

#define CONTAINER                                                                                                      \
    "'containers': [{'name': 'c', 'image': 'x', 'resources': {'requests': {'cpu': '500m', 'memory': '1Gi'}}}]"
#define POD(name) "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': '" name "'}, 'spec': {" CONTAINER "}}"
#define CLAIM(requests)                                                                                                \
    "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'name': 'c'}, 'spec': {'devices': "    \
    "{'requests': [" requests "]}}}"
#define MAP "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'm'}}"

static const struct quota_case {
    const char *name, *resource, *hard;
    const char *object; /* created twice, under two names */
    enum err_code first, second;
    const char *used; /* at the end */
} quota_cases[] = {
    {"pods", "pods", "1", POD("p"), ERR_NONE, ERR_DENIED, "1"},
    {"pods by count", "count/pods", "2", POD("p"), ERR_NONE, ERR_NONE, "2"},
    {"cpu", "requests.cpu", "800m", POD("p"), ERR_NONE, ERR_DENIED, "500m"},
    {"memory", "memory", "2Gi", POD("p"), ERR_NONE, ERR_NONE, "2Gi"},
    {"config maps", "count/configmaps", "0", MAP, ERR_DENIED, ERR_DENIED, "0"},
    {"config maps by their old name", "configmaps", "1", MAP, ERR_NONE, ERR_DENIED, "1"},
    {"claims", "count/resourceclaims.resource.k8s.io", "1",
     CLAIM("{'name': 'r', 'exactly': {'deviceClassName': 'any'}}"), ERR_NONE, ERR_DENIED, "1"},
    {"devices of a class", "gpu.deviceclass.resource.k8s.io/devices", "5",
     CLAIM("{'name': 'r', 'exactly': {'deviceClassName': 'gpu', 'count': 3}}"), ERR_NONE, ERR_DENIED, "3"},
    {"devices of another class", "gpu.deviceclass.resource.k8s.io/devices", "0",
     CLAIM("{'name': 'r', 'exactly': {'deviceClassName': 'any'}}"), ERR_NONE, ERR_NONE, "0"},
    {"all devices count as 32", "gpu.deviceclass.resource.k8s.io/devices", "63",
     CLAIM("{'name': 'r', 'exactly': {'deviceClassName': 'gpu', 'allocationMode': 'All'}}"), ERR_NONE, ERR_DENIED,
     "32"},
    {"of alternatives the largest of the class", "gpu.deviceclass.resource.k8s.io/devices", "4",
     CLAIM("{'name': 'r', 'firstAvailable': [{'name': 'a', 'deviceClassName': 'gpu'}, {'name': 'b', 'deviceClassName': "
           "'gpu', 'count': 2}, {'name': 'c', 'deviceClassName': 'any', 'count': 4}]}"),
     ERR_NONE, ERR_NONE, "4"},
    {"what is not counted limits nothing", "limits.cpu", "0", POD("p"), ERR_NONE, ERR_NONE, NULL},
};

static const char *used(struct world *world, const char *resource)
{
    const json_t *quota = world_object(world, "ResourceQuota/default/q");

    return json_string_value(json_object_get(json_object_get(json_object_get(quota, "status"), "used"), resource));
}

static void open_with(struct world *world, const char *resource, const char *hard, const char *more)
{
    BUF yaml = {0};

    buf_adds(&yaml, world_two_nodes);
    buf_addf(&yaml,
             "\n---\n{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: default}, spec: {hard: "
             "{%s: '%s'}%s}}\n",
             resource, hard, more);
    world_open(world, buf_str(&yaml), false);
}

static enum err_code create(struct world *world, const char *text, const char *name)
{
    json_t *object = world_json("%s", text);
    struct error err = {0};
    enum err_code code;

    json_object_set_new(json_object_get(object, "metadata"), "name", json_string(name));
    code = world_create_json(world, object, &err);
    if (code == ERR_DENIED && !strstr(err.text, "exceeded quota: q, requested: "))
        fail_msg("%s", err.text);
    json_decref(object);
    return code;
}

static void test_quota__case(void **state)
{
    const struct quota_case *c = *state;
    struct world world;

    open_with(&world, c->resource, c->hard, "");
    assert_int_equal(create(&world, c->object, "one"), c->first);
    assert_int_equal(create(&world, c->object, "two"), c->second);
    world_run(&world, 1);
    if (c->used)
        assert_string_equal(used(&world, c->resource), c->used);
    else
        assert_null(used(&world, c->resource));
    world_close(&world);
}

static void test_quota__a_pod_that_has_ended_is_no_pod_any_more(void **state)
{
    struct world world;

    (void)state;
    open_with(&world, "pods", "1", "");
    assert_int_equal(world_pod(&world, "p", NULL, false, "1s"), ERR_NONE);
    assert_int_equal(world_pod(&world, "again", NULL, false, "1s"), ERR_DENIED);
    world_run(&world, 5000);
    assert_string_equal(used(&world, "pods"), "0");
    assert_int_equal(world_pod(&world, "again", NULL, false, "1s"), ERR_NONE);
    world_close(&world);
}

static void test_quota__with_scopes_nothing_is_counted(void **state)
{
    struct world world;

    (void)state;
    open_with(&world, "pods", "0", ", scopes: [NotTerminating]");
    assert_int_equal(world_pod(&world, "p", NULL, false, "1s"), ERR_NONE);
    world_close(&world);
}

static void test_quota__another_namespace_is_not_held_to_it(void **state)
{
    struct world world;

    (void)state;
    open_with(&world, "count/configmaps", "0", "");
    assert_int_equal(world_create(&world, NULL,
                                  "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'm', 'namespace': "
                                  "'other'}}"),
                     ERR_NONE);
    world_close(&world);
}

int main(void)
{
    struct CMUnitTest tests[ARRAY_SIZE(quota_cases)];
    const struct CMUnitTest facts[] = {
        cmocka_unit_test(test_quota__a_pod_that_has_ended_is_no_pod_any_more),
        cmocka_unit_test(test_quota__with_scopes_nothing_is_counted),
        cmocka_unit_test(test_quota__another_namespace_is_not_held_to_it),
    };

    for (size_t i = 0; i < ARRAY_SIZE(quota_cases); i++)
        tests[i] =
            (struct CMUnitTest){quota_cases[i].name, test_quota__case, NULL, NULL, (void *)(uintptr_t)&quota_cases[i]};
    return cmocka_run_group_tests(tests, NULL, NULL) + cmocka_run_group_tests(facts, NULL, NULL);
}
