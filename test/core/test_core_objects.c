/* What a gang finds in the cluster: labels, owners, names, who it is and where the others are. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "test/support/stage.h"

static const char pair[] =
    "apiVersion: queue.dra/v1\n"
    "kind: GangJob\n"
    "metadata: {name: a.job-with-a-very-long-name-that-goes-on-and-on-and-on}\n"
    "spec:\n"
    "  queue: a\n"
    "  groups:\n"
    "    - name: driver\n"
    "      replicas: 1\n"
    "      template:\n"
    "        spec:\n"
    "          containers:\n"
    "            - {name: c, image: i, env: [{name: MASTER_PORT, value: '1'}], resources: {claims: [{name: s}]}}\n"
    "          initContainers: [{name: before, image: i}]\n"
    "          resourceClaims: [{name: s, resourceClaimName: both}]\n"
    "    - name: worker\n"
    "      replicas: 1\n"
    "      template:\n"
    "        metadata: {labels: {mine: yes-it-is}, annotations: {embedded.queue.dra/duration: 60s}}\n"
    "        spec:\n"
    "          restartPolicy: OnFailure\n"
    "          containers: [{name: c, image: i, resources: {claims: [{name: g}, {name: s}]}}]\n"
    "          resourceClaims: [{name: g, resourceClaimTemplateName: t}, {name: s, resourceClaimName: both}]\n"
    "          affinity:\n"
    "            nodeAffinity:\n"
    "              requiredDuringSchedulingIgnoredDuringExecution:\n"
    "                nodeSelectorTerms:\n"
    "                  - matchFields: [{key: metadata.name, operator: In, values: [n2]}]\n"
    "                  - matchFields: [{key: metadata.name, operator: In, values: [n3]}]\n"
    "  claimTemplates:\n"
    "    - name: t\n"
    "      spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}\n"
    "  sharedClaims:\n"
    "    - name: both\n"
    "      spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, adminAccess: false}}]}}\n";

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static const json_t *find_kind(const struct stage *stage, const char *kind, const char *group, const char *index)
{
    const char *key;
    json_t *object;

    json_object_foreach (stage->relay.objects, key, object) {
        const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");

        if (strcmp(text(object, "kind"), kind) == 0 && json_object_get(labels, LABEL_JOB) &&
            (!group || (text(labels, LABEL_GROUP) && strcmp(text(labels, LABEL_GROUP), group) == 0 &&
                        strcmp(text(labels, LABEL_INDEX), index) == 0)))
            return object;
    }
    fail_msg("no %s of group %s", kind, group ? group : "-");
    return NULL;
}

/* NULL when it has none; never two of a name. */
static const char *variable(const json_t *container, const char *name)
{
    const json_t *entry;
    const char *value = NULL;
    size_t i;

    json_array_foreach (json_object_get(container, "env"), i, entry)
        if (strcmp(text(entry, "name"), name) == 0) {
            assert_null(value);
            value = text(entry, "value");
        }
    return value;
}

static const json_t *container_of(const json_t *pod, const char *list)
{
    return json_array_get(json_object_get(json_object_get(pod, "spec"), list), 0);
}

static void start(struct stage *stage)
{
    stage_open(stage, NULL);
    stage_must_submit(stage, pair);
    stage_run(stage, 1000);
    assert_string_equal(stage_state(stage, "1"), "Running");
}

static void test_objects__everything_has_labels_and_belongs_to_the_anchor(void **state)
{
    struct stage stage;
    const char *key, *uid;
    json_t *object;
    size_t n = 0;

    (void)state;
    start(&stage);
    uid = text(json_object_get(find_kind(&stage, "ConfigMap", NULL, NULL), "metadata"), "uid");
    json_object_foreach (stage.relay.objects, key, object) {
        const json_t *metadata = json_object_get(object, "metadata"), *labels = json_object_get(metadata, "labels");
        const json_t *owner = json_array_get(json_object_get(metadata, "ownerReferences"), 0);

        if (!json_object_get(labels, LABEL_JOB))
            continue;
        n++;
        assert_string_equal(text(labels, LABEL_JOB), "1");
        assert_string_equal(text(labels, LABEL_ATTEMPT), "1");
        assert_true(strlen(text(metadata, "name")) <= 63);
        assert_null(strchr(text(metadata, "name"), '.'));
        if (strcmp(text(object, "kind"), "ConfigMap") != 0)
            assert_string_equal(text(owner, "uid"), uid);
    }
    assert_int_equal(n, 1 + 1 + 2 + 2); /* anchor, Service, shared and own claims, pods */
    stage_close(&stage);
}

static void test_objects__a_member_knows_who_it_is(void **state)
{
    struct stage stage;
    const json_t *pod, *container;
    BUF master = {0};

    (void)state;
    start(&stage);
    pod = find_kind(&stage, "Pod", "worker", "0");
    container = container_of(pod, "containers");
    assert_string_equal(variable(container, "RANK"), "1");
    assert_string_equal(variable(container, "WORLD_SIZE"), "2");
    assert_string_equal(variable(container, "JOB_COMPLETION_INDEX"), "0");
    assert_string_equal(variable(container, "QUEUED_GROUP"), "worker");
    assert_string_equal(variable(container, "QUEUED_GROUP_SIZE"), "1");
    assert_string_equal(variable(container, "MASTER_PORT"), "29500");
    assert_string_equal(text(json_object_get(pod, "spec"), "hostname"), "worker-0");
    buf_addf(&master, "driver-0.%s.default.svc", text(json_object_get(pod, "spec"), "subdomain"));
    assert_string_equal(variable(container, "MASTER_ADDR"), buf_str(&master));
    assert_string_equal(text(json_object_get(pod, "spec"), "subdomain"),
                        text(json_object_get(find_kind(&stage, "Service", NULL, NULL), "metadata"), "name"));
    stage_close(&stage);
}

/* No Service that follows its pods, and nothing that only it would resolve. */
static void test_objects__a_job_may_do_without_host_names(void **state)
{
    static const char job[] =
        "apiVersion: jobset.x-k8s.io/v1alpha2\n"
        "kind: JobSet\n"
        "metadata: {name: loop, labels: {kueue.x-k8s.io/queue-name: a}}\n"
        "spec:\n"
        "  network: {enableDNSHostnames: false}\n"
        "  replicatedJobs:\n"
        "    - name: workers\n"
        "      template: {spec: {parallelism: 2, completions: 2, template: {metadata: {annotations: "
        "{embedded.queue.dra/duration: 5s}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}\n";
    struct stage stage;
    const json_t *pod, *container;

    (void)state;
    stage_open(&stage, NULL);
    stage_must_submit(&stage, job);
    stage_run(&stage, 1000);
    assert_string_equal(stage_state(&stage, "1"), "Running");
    assert_int_equal(relay_n_ours(&stage.relay), 3); /* the anchor and the pods */
    pod = find_kind(&stage, "Pod", "workers", "1");
    container = container_of(pod, "containers");
    assert_null(json_object_get(json_object_get(pod, "spec"), "subdomain"));
    assert_null(variable(container, "MASTER_ADDR"));
    assert_string_equal(variable(container, "RANK"), "1");
    stage_run(&stage, 60000);
    assert_string_equal(stage_state(&stage, "1"), "Succeeded");
    stage_close(&stage);
}

static void test_objects__what_the_user_wrote_stays(void **state)
{
    struct stage stage;
    const json_t *driver, *worker;

    (void)state;
    start(&stage);
    driver = find_kind(&stage, "Pod", "driver", "0");
    worker = find_kind(&stage, "Pod", "worker", "0");
    assert_string_equal(variable(container_of(driver, "containers"), "MASTER_PORT"), "1");
    assert_string_equal(variable(container_of(driver, "initContainers"), "MASTER_PORT"), "29500");
    assert_string_equal(text(json_object_get(driver, "spec"), "restartPolicy"), "Never");
    assert_string_equal(text(json_object_get(worker, "spec"), "restartPolicy"), "OnFailure");
    assert_string_equal(text(json_object_get(json_object_get(worker, "metadata"), "labels"), "mine"), "yes-it-is");
    stage_close(&stage);
}

static void test_objects__a_pod_is_bound_in_each_of_its_terms(void **state)
{
    struct stage stage;
    const json_t *pod, *terms, *term;
    size_t i;

    (void)state;
    start(&stage);
    pod = find_kind(&stage, "Pod", "worker", "0");
    assert_string_equal(text(json_object_get(pod, "spec"), "nodeName"), "n2");
    terms = json_object_get(
        json_object_get(json_object_get(json_object_get(json_object_get(pod, "spec"), "affinity"), "nodeAffinity"),
                        "requiredDuringSchedulingIgnoredDuringExecution"),
        "nodeSelectorTerms");
    assert_int_equal(json_array_size(terms), 2);
    json_array_foreach (terms, i, term) {
        const json_t *fields = json_object_get(term, "matchFields"), *last = json_array_get(fields, 1);

        assert_int_equal(json_array_size(fields), 2);
        assert_string_equal(json_string_value(json_array_get(json_object_get(last, "values"), 0)), "n2");
    }
    stage_close(&stage);
}

static void test_objects__all_members_name_the_same_shared_claim(void **state)
{
    struct stage stage;
    const char *first, *second;

    (void)state;
    start(&stage);
    first = text(
        json_array_get(
            json_object_get(json_object_get(find_kind(&stage, "Pod", "driver", "0"), "spec"), "resourceClaims"), 0),
        "resourceClaimName");
    second = text(
        json_array_get(
            json_object_get(json_object_get(find_kind(&stage, "Pod", "worker", "0"), "spec"), "resourceClaims"), 1),
        "resourceClaimName");
    assert_string_equal(first, second);
    stage_close(&stage);
}

static const char elastic[] = "apiVersion: queue.dra/v1\n"
                              "kind: GangJob\n"
                              "metadata: {name: elastic}\n"
                              "spec:\n"
                              "  queue: a\n"
                              "  groups:\n"
                              "    - name: w\n"
                              "      replicas: 50\n"
                              "      minReplicas: 2\n"
                              "      template:\n"
                              "        metadata: {annotations: {embedded.queue.dra/duration: 5s}}\n"
                              "        spec:\n"
                              "          containers: [{name: c, image: i, resources: {claims: [{name: g}]}}]\n"
                              "          resourceClaims: [{name: g, resourceClaimTemplateName: t}]\n"
                              "  claimTemplates:\n"
                              "    - name: t\n"
                              "      spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}\n";

static void assert_members(struct stage *stage, const char *job, int total, int asked)
{
    json_t *view = stage_view(stage, job), *members = json_object_get(view, "members");

    assert_int_equal(json_integer_value(json_object_get(members, "total")), total);
    assert_int_equal(json_integer_value(json_object_get(members, "asked")), asked);
    json_decref(view);
}

/* The stage has four devices. */
static void test_objects__an_elastic_gang_is_told_its_size(void **state)
{
    struct stage stage;
    const json_t *container;

    (void)state;
    stage_open(&stage, NULL);
    stage_must_submit(&stage, elastic);
    stage_run(&stage, 1000);
    assert_members(&stage, "1", 4, 50);
    container = container_of(find_kind(&stage, "Pod", "w", "3"), "containers");
    assert_string_equal(variable(container, "WORLD_SIZE"), "4");
    assert_string_equal(variable(container, "QUEUED_GROUP_SIZE"), "4");
    stage_run(&stage, 10000);
    assert_string_equal(stage_state(&stage, "1"), "Succeeded");
    assert_members(&stage, "1", 4, 50);
    stage_restart(&stage);
    assert_members(&stage, "1", 4, 50);
    stage_close(&stage);
}

static const char jobset[] = "apiVersion: jobset.x-k8s.io/v1alpha2\n"
                             "kind: JobSet\n"
                             "metadata: {name: loop, labels: {kueue.x-k8s.io/queue-name: a}}\n"
                             "spec:\n"
                             "  replicatedJobs:\n"
                             "    - name: workers\n"
                             "      replicas: 2\n"
                             "      template:\n"
                             "        spec:\n"
                             "          parallelism: 2\n"
                             "          completions: 2\n"
                             "          template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}\n";

static void test_objects__a_member_of_a_jobset_knows_its_job_and_its_index_there(void **state)
{
    struct stage stage;
    const json_t *pod, *labels, *annotations;

    (void)state;
    stage_open(&stage, NULL);
    stage_must_submit(&stage, jobset);
    stage_run(&stage, 1000);
    pod = find_kind(&stage, "Pod", "workers", "3");
    labels = json_object_get(json_object_get(pod, "metadata"), "labels");
    annotations = json_object_get(json_object_get(pod, "metadata"), "annotations");
    assert_string_equal(variable(container_of(pod, "containers"), "JOB_COMPLETION_INDEX"), "1");
    assert_string_equal(variable(container_of(pod, "containers"), "QUEUED_JOB_INDEX"), "1");
    assert_string_equal(variable(container_of(pod, "containers"), "QUEUED_INDEX"), "3");
    assert_string_equal(text(labels, "jobset.sigs.k8s.io/job-index"), "1");
    assert_string_equal(text(labels, "jobset.sigs.k8s.io/jobset-name"), "loop");
    assert_string_equal(text(labels, "jobset.sigs.k8s.io/replicatedjob-name"), "workers");
    assert_string_equal(text(annotations, "jobset.sigs.k8s.io/job-index"), "1");
    assert_string_equal(text(annotations, "batch.kubernetes.io/job-completion-index"), "1");
    assert_string_equal(text(json_object_get(pod, "spec"), "hostname"), "loop-workers-1-1");
    assert_non_null(strstr(variable(container_of(pod, "containers"), "MASTER_ADDR"), "loop-workers-0-0."));
    stage_close(&stage);
}

/* The gang's own PodGroup, as large as the gang was planned, before anything that kube-scheduler could look at. */
static void test_objects__a_gang_has_a_pod_group_where_the_cluster_has_them(void **state)
{
    struct stage stage;
    const json_t *group, *gang;
    const char *uid;

    (void)state;
    stage_open_with(&stage, &(struct stage_options){.has_pod_groups = true});
    stage_must_submit(&stage, elastic);
    stage_run(&stage, 1000);
    assert_string_equal(stage_state(&stage, "1"), "Running");
    group = find_kind(&stage, "PodGroup", NULL, NULL);
    gang = json_object_get(json_object_get(json_object_get(group, "spec"), "schedulingPolicy"), "gang");
    assert_int_equal(json_integer_value(json_object_get(gang, "minCount")), 4);
    assert_string_equal(text(group, "apiVersion"), "scheduling.k8s.io/v1beta1");
    uid = text(json_object_get(find_kind(&stage, "ConfigMap", NULL, NULL), "metadata"), "uid");
    assert_string_equal(
        text(json_array_get(json_object_get(json_object_get(group, "metadata"), "ownerReferences"), 0), "uid"), uid);
    assert_string_equal(
        text(json_object_get(json_object_get(find_kind(&stage, "Pod", "w", "3"), "spec"), "schedulingGroup"),
             "podGroupName"),
        text(json_object_get(group, "metadata"), "name"));
    stage_run(&stage, 10000);
    assert_string_equal(stage_state(&stage, "1"), "Succeeded");
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
}

static bool has_pod_group(struct stage *stage)
{
    const char *key;
    json_t *object;

    json_object_foreach (stage->relay.objects, key, object)
        if (strcmp(text(object, "kind"), "PodGroup") == 0)
            return true;
    return false;
}

static const struct wish {
    const char *name;
    enum pod_groups wanted;
    bool has_them, is_denied, want;
} wishes[] = {
    {"auto: made", POD_GROUPS_AUTO, true, false, true},
    {"auto: the cluster has none", POD_GROUPS_AUTO, false, false, false},
    {"auto: no right to make any", POD_GROUPS_AUTO, true, true, false},
    {"never: not made", POD_GROUPS_NEVER, true, false, false},
    {"always: asked for without the right too", POD_GROUPS_ALWAYS, true, true, true},
    {"always: asked for where the cluster has none", POD_GROUPS_ALWAYS, false, false, true},
};

static void test_objects__pod_groups(void **state)
{
    const struct wish *wish = *state;
    struct stage stage;

    stage_open_with(&stage, &(struct stage_options){.has_pod_groups = wish->has_them, .pod_groups = wish->wanted});
    if (wish->is_denied)
        relay_say(&stage.relay, "podGroupDenied", json_true());
    stage_must_submit(&stage, elastic);
    stage_run(&stage, 1000);
    assert_string_equal(stage_state(&stage, "1"), "Running");
    assert_int_equal(has_pod_group(&stage), wish->want);
    assert_int_equal(json_object_get(json_object_get(find_kind(&stage, "Pod", "w", "3"), "spec"), "schedulingGroup") !=
                         NULL,
                     wish->want);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects__everything_has_labels_and_belongs_to_the_anchor),
        cmocka_unit_test(test_objects__a_member_knows_who_it_is),
        cmocka_unit_test(test_objects__a_job_may_do_without_host_names),
        cmocka_unit_test(test_objects__what_the_user_wrote_stays),
        cmocka_unit_test(test_objects__a_pod_is_bound_in_each_of_its_terms),
        cmocka_unit_test(test_objects__all_members_name_the_same_shared_claim),
        cmocka_unit_test(test_objects__an_elastic_gang_is_told_its_size),
        cmocka_unit_test(test_objects__a_gang_has_a_pod_group_where_the_cluster_has_them),
        cmocka_unit_test(test_objects__a_member_of_a_jobset_knows_its_job_and_its_index_there),
    };
    int failed = RUN_TABLE(test_objects__pod_groups, wishes);

    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
