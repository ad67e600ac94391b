/* What the embedded API server answers. */
#include "test/cluster/world.h"

#include <string.h>

#include "test/support/cmocka.h"

#define CONTAINERS "'containers': [{'name': 'main', 'image': 'x'}]"
#define POD(name, more)                                                                                                \
    "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': '" name "'}, 'spec': {" CONTAINERS more "}}"
#define META(more) "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {" more "}, 'spec': {" CONTAINERS "}}"
#define CLAIM(spec)                                                                                                    \
    "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'name': 'c'}, 'spec': {" spec "}}"

static const struct create_case {
    const char *name, *object;
    enum err_code want;
    const char *field; /* NULL: any */
} create_cases[] = {
    {"a pod", POD("p", ""), ERR_NONE, NULL},
    {"a name that exists", POD("there", ""), ERR_CONFLICT, ""},
    {"a config map", "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'm'}, 'data': {'a': 'b'}}",
     ERR_NONE, NULL},
    {"a headless service",
     "{'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 's'}, 'spec': {'clusterIP': 'None'}}", ERR_NONE,
     NULL},
    {"a claim", CLAIM("'devices': {'requests': [{'name': 'r', 'exactly': {'deviceClassName': 'any'}}]}"), ERR_NONE,
     NULL},
    {"a claim of v1beta1",
     "{'apiVersion': 'resource.k8s.io/v1beta1', 'kind': 'ResourceClaim', 'metadata': {'name': 'c'}, 'spec': "
     "{'devices': "
     "{'requests': [{'name': 'r', 'deviceClassName': 'any'}]}}}",
     ERR_NONE, NULL},
    {"a generated name", META("'generateName': 'p-'"), ERR_NONE, NULL},
    {"an owner",
     META("'name': 'p', 'ownerReferences': [{'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': 'm', 'uid': 'u'}]"),
     ERR_NONE, NULL},

    {"no object", "[]", ERR_INVALID, ""},
    {"no kind", "{'apiVersion': 'v1', 'metadata': {'name': 'p'}}", ERR_INVALID, "kind"},
    {"an unknown kind", "{'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'p'}}", ERR_INVALID, "kind"},
    {"no version", "{'kind': 'Pod', 'metadata': {'name': 'p'}}", ERR_INVALID, "apiVersion"},
    {"a wrong version", "{'apiVersion': 'v2', 'kind': 'Pod', 'metadata': {'name': 'p'}}", ERR_INVALID, "apiVersion"},
    {"no metadata", "{'apiVersion': 'v1', 'kind': 'Pod'}", ERR_INVALID, "metadata"},
    {"no name", META("'labels': {}"), ERR_INVALID, "metadata.name"},
    {"a name in capitals", META("'name': 'P'"), ERR_INVALID, "metadata.name"},
    {"a name with a slash", META("'name': 'a/b'"), ERR_INVALID, "metadata.name"},
    {"a name that ends with a dot", META("'name': 'a.'"), ERR_INVALID, "metadata.name"},
    {"an empty name", META("'name': ''"), ERR_INVALID, "metadata.name"},
    {"a service named like a number",
     "{'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': '1s'}, 'spec': {'clusterIP': 'None'}}", ERR_INVALID,
     "metadata.name"},
    {"a service without ports", "{'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 's'}, 'spec': {}}",
     ERR_INVALID, "spec.ports"},
    {"a namespace that is no name", META("'name': 'p', 'namespace': 'A'"), ERR_INVALID, "metadata.namespace"},
    {"a namespace on a node", "{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'n', 'namespace': 'a'}}",
     ERR_INVALID, "metadata.namespace"},
    {"a namespace that does not exist", META("'name': 'p', 'namespace': 'nowhere'"), ERR_NOT_FOUND,
     "metadata.namespace"},
    {"a label that is a number", META("'name': 'p', 'labels': {'a': 1}"), ERR_INVALID, "metadata.labels"},
    {"a label's value with a space", META("'name': 'p', 'labels': {'a': 'b c'}"), ERR_INVALID, "metadata.labels"},
    {"a label's key with a space", META("'name': 'p', 'labels': {'a b': 'c'}"), ERR_INVALID, "metadata.labels"},
    {"an owner without uid",
     META("'name': 'p', 'ownerReferences': [{'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': 'm'}]"), ERR_INVALID,
     "metadata.ownerReferences[0].uid"},
    {"a version of its own", META("'name': 'p', 'resourceVersion': '5'"), ERR_INVALID, "metadata.resourceVersion"},
    {"a duration that is none", META("'name': 'p', 'annotations': {'" EMBEDDED_DURATION "': 'soon'}"), ERR_INVALID,
     "metadata.annotations[" EMBEDDED_DURATION "]"},
    {"an exit code that is none", META("'name': 'p', 'annotations': {'" EMBEDDED_EXIT_CODE "': '256'}"), ERR_INVALID,
     "metadata.annotations[" EMBEDDED_EXIT_CODE "]"},

    {"no containers", "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, 'spec': {}}", ERR_INVALID,
     "spec.containers"},
    {"a container without image",
     "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'a'}]}}",
     ERR_INVALID, "spec.containers[0].image"},
    {"two containers of one name",
     "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'a', 'image': "
     "'x'}, "
     "{'name': 'a', 'image': 'x'}]}}",
     ERR_INVALID, "spec.containers[1].name"},
    {"a container with an unknown claim",
     "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'a', 'image': "
     "'x', "
     "'resources': {'claims': [{'name': 'gpu'}]}}]}}",
     ERR_INVALID, "spec.containers[0].resources.claims[0].name"},
    {"a claim entry with two sources",
     POD("p", ", 'resourceClaims': [{'name': 'c', 'resourceClaimName': 'a', 'resourceClaimTemplateName': 'b'}]"),
     ERR_INVALID, "spec.resourceClaims[0]"},
    {"a claim entry with no source", POD("p", ", 'resourceClaims': [{'name': 'c'}]"), ERR_INVALID,
     "spec.resourceClaims[0]"},
    {"a claim entry that is named twice",
     POD("p", ", 'resourceClaims': [{'name': 'c', 'resourceClaimName': 'a'}, {'name': 'c', 'resourceClaimName': 'b'}]"),
     ERR_INVALID, "spec.resourceClaims[1].name"},
    {"a gated pod with a node", POD("p", ", 'nodeName': 'n1', 'schedulingGates': [{'name': 'a/b'}]"), ERR_INVALID,
     "spec.nodeName"},
    {"an unknown restart policy", POD("p", ", 'restartPolicy': 'Sometimes'"), ERR_INVALID, "spec.restartPolicy"},
    {"a deadline of zero", POD("p", ", 'activeDeadlineSeconds': 0"), ERR_INVALID, "spec.activeDeadlineSeconds"},

    {"a claim without class", CLAIM("'devices': {'requests': [{'name': 'r', 'exactly': {}}]}"), ERR_INVALID, NULL},
    {"a claim with both forms of a request",
     CLAIM("'devices': {'requests': [{'name': 'r', 'exactly': {'deviceClassName': 'any'}, 'firstAvailable': [{'name': "
           "'a', "
           "'deviceClassName': 'any'}]}]}"),
     ERR_INVALID, NULL},
    {"a claim whose selector does not compile",
     CLAIM("'devices': {'requests': [{'name': 'r', 'exactly': {'deviceClassName': 'any', 'selectors': [{'cel': "
           "{'expression': 'device.'}}]}}]}"),
     ERR_INVALID, NULL},
    {"a claim with a count below one",
     CLAIM("'devices': {'requests': [{'name': 'r', 'exactly': {'deviceClassName': 'any', 'count': -1}}]}"), ERR_INVALID,
     NULL},
    {"administrative access without consent",
     CLAIM("'devices': {'requests': [{'name': 'r', 'exactly': {'deviceClassName': 'any', 'adminAccess': true}}]}"),
     ERR_INVALID, "spec.devices.requests[0].exactly.adminAccess"},
    {"a config map with a number",
     "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'm'}, 'data': {'a': 1}}", ERR_INVALID, "data"},
};

static const char namespaces[] = "apiVersion: v1\n"
                                 "kind: Namespace\n"
                                 "metadata: {name: team}\n"
                                 "---\n";

static void open_with_namespaces(struct world *world)
{
    BUF yaml = {0};

    buf_adds(&yaml, world_two_nodes);
    buf_adds(&yaml, namespaces);
    world_open(world, buf_str(&yaml), false);
}

static void test_embedded__create(void **state)
{
    const struct create_case *c = *state;
    struct world world;
    struct error err;
    enum err_code code;

    open_with_namespaces(&world);
    assert_int_equal(world_create(&world, NULL, POD("there", "")), ERR_NONE);
    code = world_create(&world, &err, "%s", c->object);
    if (code != c->want)
        fail_msg("%s [%s]: %s", err_code_name(code), err.field, err.text);
    if (c->field && c->want != ERR_NONE)
        assert_string_equal(err.field, c->field);
    world_close(&world);
}

static void test_embedded__created_objects_are_numbered_and_dated(void **state)
{
    struct world world;
    json_t *pod;

    (void)state;
    world_open(&world, world_two_nodes, false);
    world_run(&world, 1500);
    assert_int_equal(world_create(&world, NULL, "%s",
                                  "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p', 'uid': 'mine'}, "
                                  "'spec': {" CONTAINERS "}, 'status': {'phase': 'Succeeded'}}"),
                     ERR_NONE);
    assert_int_equal(world_get(&world, "Pod", NULL, "p", &pod), ERR_NONE);
    assert_string_equal(json_string_value(json_object_get(json_object_get(pod, "metadata"), "namespace")), "default");
    assert_string_equal(json_string_value(json_object_get(json_object_get(pod, "metadata"), "creationTimestamp")),
                        "2026-01-01T00:00:01.500Z");
    assert_memory_equal(json_string_value(json_object_get(json_object_get(pod, "metadata"), "uid")),
                        "00000000-0000-4000-8000-", 24);
    assert_string_equal(json_string_value(json_object_get(json_object_get(pod, "status"), "phase")), "Pending");
    json_decref(pod);
    assert_int_equal(world_get(&world, "Pod", NULL, "q", &pod), ERR_NOT_FOUND);
    assert_int_equal(world_get(&world, "Nothing", NULL, "q", &pod), ERR_INVALID);
    world_close(&world);
}

static void test_embedded__the_stream_begins_with_everything_and_goes_on_in_order(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    assert_string_equal(world_state(&world, "Node/n1"), "there");
    assert_string_equal(world_state(&world, "Namespace/default"), "there");
    assert_string_equal(world_state(&world, "ResourceSlice/n2-gpus"), "there");
    assert_int_equal(world_pod(&world, "p", NULL, true, NULL), ERR_NONE);
    assert_int_equal(world_claim(&world, "c", "any", 1), ERR_NONE);
    assert_int_equal(
        world_create(&world, NULL, "%s", "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'm'}}"),
        ERR_NONE); /* not ours */
    assert_int_equal(
        world_create(&world, NULL, "%s",
                     "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'ours', 'labels': {'" LABEL_JOB
                     "': '7'}}}"),
        ERR_NONE);
    assert_int_equal(world_delete(&world, "ResourceClaim", "default", "c", NULL), ERR_NONE);
    assert_int_equal(world_delete(&world, "ResourceClaim", "default", "c", NULL), ERR_NONE); /* gone already */
    assert_string_equal(buf_str(&world.stream), "PUT Pod/default/p Pending gated\n"
                                                "PUT ResourceClaim/default/c free\n"
                                                "PUT ConfigMap/default/ours there\n"
                                                "GONE ResourceClaim/default/c\n");
    world_close(&world);
}

static void test_embedded__told_objects_never_change(void **state)
{
    struct world world;
    json_t *before, *copy;

    (void)state;
    world_open(&world, world_two_nodes, false);
    world_pod(&world, "p", NULL, true, NULL);
    before = json_incref((json_t *)(uintptr_t)world_object(&world, "Pod/default/p"));
    copy = json_deep_copy(before);
    world_ungate(&world, "default", "p");
    world_run(&world, 60000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Succeeded@n1 exit 0");
    assert_true(json_equal(before, copy));
    json_decref(before);
    json_decref(copy);
    world_close(&world);
}

static void test_embedded__removal_by_uid_spares_another_object(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    world_claim(&world, "c", "any", 1);
    assert_int_equal(world_delete(&world, "ResourceClaim", "default", "c", "another"), ERR_NONE);
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "free");
    assert_int_equal(world_delete(&world, "Nothing", "default", "c", NULL), ERR_INVALID);
    world_close(&world);
}

static void test_embedded__namespaces_are_implied_when_the_manifests_list_none(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    assert_int_equal(world_create(&world, NULL, "%s", META("'name': 'p', 'namespace': 'new'")), ERR_NONE);
    assert_string_equal(world_state(&world, "Namespace/new"), "there");
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/new/p"), "Running@n1");
    assert_int_equal(world_delete(&world, "Namespace", NULL, "new", NULL), ERR_NONE);
    assert_string_equal(world_state(&world, "Namespace/new"), "there going");
    assert_int_equal(world_create(&world, NULL, "%s", META("'name': 'q', 'namespace': 'new'")), ERR_DENIED);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/new/p"), "none");
    assert_string_equal(world_state(&world, "Namespace/new"), "none");
    world_close(&world);
}

static void test_embedded__describes_itself(void **state)
{
    struct world world;
    json_t *description;

    (void)state;
    world_open(&world, world_two_nodes, false);
    description = world.cluster->ops->describe(world.cluster);
    assert_string_equal(json_string_value(json_object_get(description, "kind")), "embedded");
    assert_string_equal(json_string_value(json_object_get(description, "version")), "1.37");
    assert_true(json_is_true(json_object_get(description, "makesNamespaces")));
    json_decref(description);
    world_close(&world);
    open_with_namespaces(&world);
    description = world.cluster->ops->describe(world.cluster);
    assert_true(json_is_false(json_object_get(description, "makesNamespaces")));
    json_decref(description);
    world_close(&world);
}

struct log_reply {
    enum err_code code;
    char text[200];
};

static void on_log(void *ctx, const struct error *err, const json_t *text)
{
    struct log_reply *reply = ctx;

    reply->code = err ? err->code : ERR_NONE;
    snprintf(reply->text, sizeof(reply->text), "%s", text ? json_string_value(text) : "");
}

static const struct log_case {
    const char *name;
    int64_t after_ms;
    size_t lines;
    const char *want;
} log_cases[] = {
    {"before the start there is nothing", 100, 10, ""},
    {"a start", 1000, 10, "2026-01-01T00:00:00.150Z started on n1\n"},
    {"start and end", 20000, 10,
     "2026-01-01T00:00:00.150Z started on n1\n2026-01-01T00:00:10.150Z ended with exit code 0\n"},
    {"the last line only", 20000, 1, "2026-01-01T00:00:10.150Z ended with exit code 0\n"},
    {"no line", 20000, 0, ""},
};

static void test_embedded__log(void **state)
{
    const struct log_case *c = *state;
    struct log_reply reply = {0};
    struct world world;

    world_open(&world, world_two_nodes, false);
    world_pod(&world, "p", NULL, false, NULL);
    world_run(&world, c->after_ms);
    world.cluster->ops->logs(world.cluster, "default", "p", c->lines, on_log, &reply);
    world_run(&world, 0);
    assert_int_equal(reply.code, ERR_NONE);
    assert_string_equal(reply.text, c->want);
    world.cluster->ops->logs(world.cluster, "default", "q", c->lines, on_log, &reply);
    world_run(&world, 0);
    assert_int_equal(reply.code, ERR_NOT_FOUND);
    world_close(&world);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embedded__created_objects_are_numbered_and_dated),
        cmocka_unit_test(test_embedded__the_stream_begins_with_everything_and_goes_on_in_order),
        cmocka_unit_test(test_embedded__told_objects_never_change),
        cmocka_unit_test(test_embedded__removal_by_uid_spares_another_object),
        cmocka_unit_test(test_embedded__namespaces_are_implied_when_the_manifests_list_none),
        cmocka_unit_test(test_embedded__describes_itself),
    };
    int failed = RUN_TABLE(test_embedded__create, create_cases);

    failed += RUN_TABLE(test_embedded__log, log_cases);
    return failed + cmocka_run_group_tests_name("embedded_api", tests, NULL, NULL);
}
