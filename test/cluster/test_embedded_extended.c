/* Extended resources that a device class stands behind: the claim that the scheduler makes itself. */
#include "test/cluster/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/cmocka.h"

/* world_two_nodes, the name example.com/gpu for devices of type a, and a node whose plugin offers one itself. */
static char *manifests(void)
{
    struct buf yaml = {0};

    buf_adds(&yaml, world_two_nodes);
    buf_adds(&yaml, "apiVersion: resource.k8s.io/v1\n"
                    "kind: DeviceClass\n"
                    "metadata: {name: named}\n"
                    "spec:\n"
                    "  extendedResourceName: example.com/gpu\n"
                    "  selectors: [{cel: {expression: 'device.attributes[\"gpu.example.com\"].type == \"a\"'}}]\n"
                    "---\n"
                    "apiVersion: v1\n"
                    "kind: Node\n"
                    "metadata: {name: plugin, labels: {kubernetes.io/hostname: plugin}}\n"
                    "status: {allocatable: {cpu: '16', memory: 64Gi, pods: '20', example.com/gpu: '1'}}\n");
    return buf_take(&yaml);
}

static void open_world(struct world *world, bool keeps_state)
{
    char *yaml = manifests();

    world_open(world, yaml, keeps_state);
    free(yaml);
}

/* A pod with these containers; on `node`, or anywhere. */
static void make_pod(struct world *world, const char *name, const char *node, const char *containers)
{
    json_t *pod = world_json("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': '%s', 'annotations': {"
                             "'" EMBEDDED_DURATION "': '5s'}}, 'spec': {%s}}",
                             name, containers);

    if (node)
        json_object_set_new(json_object_get(pod, "spec"), "nodeSelector",
                            world_json("{'kubernetes.io/hostname': '%s'}", node));
    assert_int_equal(world_create_json(world, pod, NULL), ERR_NONE);
    json_decref(pod);
}

static const char *const one_gpu =
    "'containers': [{'name': 'main', 'image': 'x', 'resources': {'limits': {'example.com/gpu': '1', 'cpu': '1'}}}]";
static const char *const two_gpus =
    "'containers': [{'name': 'main', 'image': 'x', 'resources': {'requests': {'example.com/gpu': '2'}}}]";

/* The key of the claim of a pod's extended resources: "none" without one. Valid until the next call. */
static const char *claim_key(struct world *world, const char *pod)
{
    static char key[300];
    BUF pod_key = {0};
    const json_t *status;

    buf_addf(&pod_key, "Pod/default/%s", pod);
    status = json_object_get(world_object(world, buf_str(&pod_key)), "status");
    status = json_object_get(json_object_get(status, "extendedResourceClaimStatus"), "resourceClaimName");
    if (!status)
        return "none";
    snprintf(key, sizeof(key), "ResourceClaim/default/%s", json_string_value(status));
    return key;
}

/* Equal but for the order of keys; text is JSON with ' for ". */
static void assert_json(const json_t *json, const char *text)
{
    json_t *want = world_json("%s", text);
    char *got = json_dumps(json, JSON_ENCODE_ANY);

    if (!json_equal((json_t *)(uintptr_t)json, want))
        fail_msg("%s is not %s", got ? got : "nothing", text);
    free(got);
    json_decref(want);
}

static void test_extended__the_claim_is_made_with_the_binding_and_goes_with_the_pod(void **state)
{
    struct world world;
    const json_t *claim, *metadata;
    char key[300];

    (void)state;
    open_world(&world, false);
    make_pod(&world, "p", "n1", two_gpus);
    assert_string_equal(claim_key(&world, "p"), "none");
    world_run(&world, 1000);
    snprintf(key, sizeof(key), "%s", claim_key(&world, "p"));
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    assert_string_equal(world_state(&world, key), "n1/gpu-0 n1/gpu-1 for p");
    claim = world_object(&world, key);
    metadata = json_object_get(claim, "metadata");
    assert_json(json_object_get(claim, "spec"),
                "{'devices': {'requests': [{'name': 'container-0-request-0', 'exactly': {'deviceClassName': 'named', "
                "'allocationMode': 'ExactCount', 'count': 2}}]}}");
    assert_json(json_object_get(metadata, "generateName"), "'p-extended-resources-'");
    assert_json(json_object_get(metadata, "annotations"), "{'resource.kubernetes.io/extended-resource-claim': 'true'}");
    assert_json(json_object_get(metadata, "finalizers"), "['resource.kubernetes.io/delete-protection']");
    assert_json(json_object_get(json_array_get(json_object_get(metadata, "ownerReferences"), 0), "name"), "'p'");
    assert_json(json_object_get(json_object_get(json_object_get(world_object(&world, "Pod/default/p"), "status"),
                                                "extendedResourceClaimStatus"),
                                "requestMappings"),
                "[{'containerName': 'main', 'resourceName': 'example.com/gpu', 'requestName': "
                "'container-0-request-0'}]");
    make_pod(&world, "waits", "n1", one_gpu);
    world_run(&world, 3000);
    assert_string_equal(world_state(&world, "Pod/default/waits"), "Pending");
    world_run(&world, 2000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Succeeded@n1 exit 0");
    assert_string_equal(world_state(&world, key), "none");
    assert_string_equal(world_state(&world, claim_key(&world, "waits")), "n1/gpu-0 for waits");
    world_delete(&world, "Pod", "default", "waits", NULL);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/waits"), "none");
    assert_null(strstr(world_state(&world, key), "n1"));
    world_close(&world);
}

static void test_extended__a_node_that_advertises_the_resource_serves_it_alone(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, false);
    make_pod(&world, "one", "plugin", one_gpu);
    make_pod(&world, "two", "plugin", one_gpu);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/one"), "Running@plugin");
    assert_string_equal(claim_key(&world, "one"), "none");
    assert_string_equal(world_state(&world, "Pod/default/two"), "Pending");
    make_pod(&world, "anywhere", NULL, one_gpu);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, claim_key(&world, "anywhere")), "n1/gpu-0 for anywhere");
    world_close(&world);
}

static void test_extended__own_claims_come_first(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, false);
    world_claim(&world, "own", "a", 1);
    make_pod(&world, "p", "n1",
             "'resourceClaims': [{'name': 'c', 'resourceClaimName': 'own'}], 'containers': [{'name': 'main', 'image': "
             "'x', 'resources': {'limits': {'deviceclass.resource.kubernetes.io/any': 2}}}]");
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "ResourceClaim/default/own"), "n1/gpu-0 for p");
    assert_string_equal(world_state(&world, claim_key(&world, "p")), "n1/gpu-1 n1/gpu-2 for p");
    world_close(&world);
}

/* As in example 20 of the semantics: the init container reuses what the other one has, and needs one more. */
static void test_extended__containers_share_as_they_run(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, false);
    make_pod(&world, "p", "n1",
             "'initContainers': [{'name': 'init', 'image': 'x', 'resources': {'requests': {"
             "'deviceclass.resource.kubernetes.io/any': '3'}}}], 'containers': [{'name': 'main', 'image': 'x', "
             "'resources': {'requests': {'cpu': '1', 'deviceclass.resource.kubernetes.io/any': '2'}}}]");
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, claim_key(&world, "p")), "n1/gpu-0 n1/gpu-1 n1/gpu-2 for p");
    assert_json(json_object_get(json_object_get(json_object_get(world_object(&world, "Pod/default/p"), "status"),
                                                "extendedResourceClaimStatus"),
                                "requestMappings"),
                "[{'containerName': 'main', 'resourceName': 'deviceclass.resource.kubernetes.io/any', 'requestName': "
                "'container-1-request-1'}, {'containerName': 'init', 'resourceName': "
                "'deviceclass.resource.kubernetes.io/any', 'requestName': 'container-1-request-1'}, "
                "{'containerName': 'init', 'resourceName': 'deviceclass.resource.kubernetes.io/any', 'requestName': "
                "'container-0-request-0'}]");
    world_close(&world);
}

static void test_extended__no_device_is_given_twice(void **state)
{
    struct world world;
    size_t n_running = 0;
    char name[24];

    (void)state;
    open_world(&world, false);
    for (size_t i = 0; i < 8; i++) { /* four devices of type a, one of the plugin */
        snprintf(name, sizeof(name), "p%zu", i);
        make_pod(&world, name, NULL, one_gpu);
    }
    world_run(&world, 1000);
    for (size_t i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "Pod/default/p%zu", i);
        n_running += strncmp(world_state(&world, name), "Running", 7) == 0;
    }
    assert_int_equal(n_running, 5);
    world_run(&world, 10000);
    for (size_t i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "Pod/default/p%zu", i);
        assert_non_null(strstr(world_state(&world, name), "Succeeded"));
    }
    assert_int_equal(world.n_warnings, 0);
    world_close(&world);
}

static void test_extended__a_restart_forgets_nothing(void **state)
{
    struct world world;
    char key[300];

    (void)state;
    open_world(&world, true);
    make_pod(&world, "a-name-that-is-as-long-as-the-name-of-a-host-may-be-at-the-most", "n2", one_gpu);
    world_run(&world, 1000);
    snprintf(key, sizeof(key), "%s",
             claim_key(&world, "a-name-that-is-as-long-as-the-name-of-a-host-may-be-at-the-most"));
    assert_int_equal(strlen(strrchr(key, '/') + 1), 63); /* cut as the API server cuts */
    world_restart(&world);
    assert_non_null(strstr(world_state(&world, key), "n2/gpu-0 for a-name"));
    world_run(&world, 10000);
    assert_string_equal(world_state(&world, key), "none");
    world_close(&world);
}

static void test_extended__a_release_without_it_leaves_it_to_the_plugin(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, false);
    world_stop(&world);
    world.options.release = 35;
    world_resume(&world);
    make_pod(&world, "p", "n1", one_gpu);
    make_pod(&world, "q", "plugin", one_gpu);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Pending");
    assert_string_equal(world_state(&world, "Pod/default/q"), "Running@plugin");
    world_close(&world);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extended__the_claim_is_made_with_the_binding_and_goes_with_the_pod),
        cmocka_unit_test(test_extended__a_node_that_advertises_the_resource_serves_it_alone),
        cmocka_unit_test(test_extended__own_claims_come_first),
        cmocka_unit_test(test_extended__containers_share_as_they_run),
        cmocka_unit_test(test_extended__no_device_is_given_twice),
        cmocka_unit_test(test_extended__a_restart_forgets_nothing),
        cmocka_unit_test(test_extended__a_release_without_it_leaves_it_to_the_plugin),
    };

    return cmocka_run_group_tests_name("embedded_extended", tests, NULL, NULL);
}
