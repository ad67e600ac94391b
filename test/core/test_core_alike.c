/* Devices that cannot be told apart: members that got each other's, and gangs that must not take those of others. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "test/support/stage.h"

#define GROUP(name, claim)                                                                                             \
    "{name: " name ", replicas: 1, template: {metadata: {annotations: {embedded.queue.dra/duration: 20s}}, spec: "     \
    "{containers: [{name: c, image: i, resources: {claims: [{name: g}]}}], resourceClaims: [{name: g, "                \
    "resourceClaimTemplateName: " claim "}]}}}"
#define TEMPLATE(name, request) "{name: " name ", spec: {devices: {requests: [{name: r, exactly: {" request "}}]}}}"
#define JOB(name, groups, templates)                                                                                   \
    "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: " name "}, spec: {queue: a, groups: [" groups          \
    "], claimTemplates: [" templates "]}}"
#define WORD "deviceClassName: gpu, selectors: [{cel: {expression: '\"word\" in device.attributes[\"gpu.example\"]'}}]"

#define TOLERANT "deviceClassName: gpu, tolerations: [{operator: Exists}]"

static const char told[] = JOB("told", GROUP("w", "c"), TEMPLATE("c", WORD));
static const char loose[] = JOB("loose", GROUP("w", "c"), TEMPLATE("c", "deviceClassName: gpu"));
static const char members[] = JOB("members", GROUP("v", "c") ", " GROUP("w", "c"), TEMPLATE("c", TOLERANT));

static const char alike[] =
    "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: members}, spec: {queue: a, groups: [{name: w, "
    "replicas: "
    "2, template: {spec: {containers: [{name: c, image: i, resources: {claims: [{name: g}]}}], resourceClaims: [{name: "
    "g, resourceClaimTemplateName: c}]}}}], claimTemplates: [" TEMPLATE("c", TOLERANT) "]}}";

static void open_on(struct stage *stage, const char *manifests)
{
    stage_open_with(stage, &(struct stage_options){.manifests = manifests});
}

static void must_command(struct stage *stage, const char *json)
{
    struct error err = {0};

    if (stage_command(stage, json, &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
}

/* The device of a claim in the cluster. */
static const char *device_at(const struct stage *stage, const char *claim)
{
    char key[80];
    const json_t *object, *allocation, *devices;
    const char *device;

    snprintf(key, sizeof(key), "ResourceClaim/default/%s", claim);
    object = json_object_get(stage->relay.objects, key);
    allocation = json_object_get(json_object_get(object, "status"), "allocation");
    devices = json_object_get(json_object_get(allocation, "devices"), "results");
    device = json_string_value(json_object_get(json_array_get(devices, 0), "device"));
    return device ? device : "none";
}

/* The one that the job's view shows for a member. */
static void check_shown(struct stage *stage, const char *job, size_t member, const char *want)
{
    json_t *view = stage_view(stage, job), *members_shown, *claim, *device;

    members_shown = json_object_get(json_object_get(view, "placement"), "members");
    claim = json_array_get(json_object_get(json_array_get(members_shown, member), "claims"), 0);
    device = json_array_get(json_object_get(claim, "devices"), 0);
    assert_string_equal(json_string_value(json_object_get(device, "device")), want);
    json_decref(view);
}

static void check_reason(struct stage *stage, const char *job, const char *want)
{
    json_t *view = stage_view(stage, job);

    assert_string_equal(json_string_value(json_object_get(view, "reason")), want);
    json_decref(view);
}

static void check_drift(struct stage *stage, int64_t want)
{
    json_t *status = core_status(stage->core);

    assert_int_equal(json_integer_value(json_object_get(status, "drift")), want);
    json_decref(status);
}

/* ---- each other's devices ---- */

static void test_core_alike__members_with_each_others_devices_are_no_drift(void **state)
{
    struct stage stage;

    (void)state;
    open_on(&stage, "test/core/scenarios/pair.yaml");
    must_command(&stage, "{\"fail\": \"ungate\", \"kind\": \"Pod\", \"nth\": 1, \"error\": \"unavailable\"}");
    stage_must_submit(&stage, members);
    stage_run(&stage, 10000);
    assert_string_equal(stage_state(&stage, "members"), "Running");
    assert_string_equal(device_at(&stage, "members-1-1-v-0-g"), "gpu-1"); /* its gate came off last */
    assert_string_equal(device_at(&stage, "members-1-1-w-0-g"), "gpu-0");
    check_drift(&stage, 0);
    check_shown(&stage, "members", 0, "gpu-1");
    check_shown(&stage, "members", 1, "gpu-0");
    stage_restart(&stage);
    check_shown(&stage, "members", 0, "gpu-1");
    stage_run(&stage, 60000);
    assert_string_equal(stage_state(&stage, "members"), "Succeeded");
    stage_close(&stage);
}

/* One card is tainted, which all tolerate: the members of a group may exchange them, those of two groups may not. */
static void test_core_alike__members_of_a_group_may_exchange_what_differs(void **state)
{
    static const struct {
        const char *manifest;
        int64_t drift;
    } cases[] = {{alike, 0}, {members, 2}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct stage stage;

        open_on(&stage, "test/core/scenarios/tainted.yaml");
        must_command(&stage, "{\"fail\": \"ungate\", \"kind\": \"Pod\", \"nth\": 1, \"error\": \"unavailable\"}");
        stage_must_submit(&stage, cases[i].manifest);
        stage_run(&stage, 10000);
        assert_string_equal(stage_state(&stage, "members"), "Running");
        check_drift(&stage, cases[i].drift);
        check_shown(&stage, "members", 0, "gpu-1");
        check_shown(&stage, "members", 1, "gpu-0");
        stage_close(&stage);
    }
}

/* ---- devices that are planned for another gang ---- */

/* The gate of the first gang comes off late; the second one would be given its device. */
static void begin(struct stage *stage)
{
    open_on(stage, "test/core/scenarios/twins.yaml");
    must_command(stage, "{\"fail\": \"ungate\", \"kind\": \"Pod\", \"nth\": 1, \"error\": \"unavailable\"}");
    stage_must_submit(stage, told);
    stage_must_submit(stage, loose);
    stage_run(stage, 1000);
    assert_string_equal(stage_state(stage, "told"), "Launching");
    assert_string_equal(stage_state(stage, "loose"), "Launching");
    assert_string_equal(device_at(stage, "loose-2-1-w-0-g"), "none");
    check_reason(stage, "loose", "waits until job told (1) has its devices: they cannot be told apart");
}

static void check_both_run(struct stage *stage)
{
    assert_string_equal(stage_state(stage, "told"), "Running");
    assert_string_equal(stage_state(stage, "loose"), "Running");
    assert_string_equal(device_at(stage, "told-1-1-w-0-g"), "gpu-0");
    assert_string_equal(device_at(stage, "loose-2-1-w-0-g"), "gpu-1");
    check_reason(stage, "loose", "all members run");
    check_drift(stage, 0);
    stage_run(stage, 60000);
    assert_string_equal(stage_state(stage, "loose"), "Succeeded");
}

static void test_core_alike__a_gang_waits_until_those_before_have_their_devices(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    stage_run(&stage, 6000);
    check_both_run(&stage);
    stage_close(&stage);
}

static void test_core_alike__a_restart_knows_who_waits(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    must_command(&stage, "{\"fail\": \"ungate\", \"kind\": \"Pod\", \"nth\": 1, \"error\": \"unavailable\"}");
    stage_restart(&stage);
    stage_run(&stage, 1000);
    assert_string_equal(device_at(&stage, "loose-2-1-w-0-g"), "none");
    check_reason(&stage, "loose", "waits until job told (1) has its devices: they cannot be told apart");
    stage_run(&stage, 6000);
    check_both_run(&stage);
    stage_close(&stage);
}

static void test_core_alike__who_is_taken_away_is_not_waited_for(void **state)
{
    struct stage stage;
    struct stage_answer answer;

    (void)state;
    begin(&stage);
    answer = stage_action(&stage, "told", JOB_ACTION_CANCEL);
    stage_answer_release(&answer);
    stage_run(&stage, 1000);
    assert_string_equal(stage_state(&stage, "told"), "Cancelled");
    assert_string_equal(stage_state(&stage, "loose"), "Running");
    check_drift(&stage, 1); /* first fit takes the card that has become free, which is not like the other */
    check_shown(&stage, "loose", 0, "gpu-0");
    stage_close(&stage);
}

/* The wait is as long as the launch timeout of whoever is waited for; its own begins afterwards. */
static void test_core_alike__the_wait_does_not_count_as_launching(void **state)
{
    struct stage stage;

    (void)state;
    stage_open_with(&stage,
                    &(struct stage_options){.manifests = "test/core/scenarios/twins.yaml", .launch_timeout_ms = 10000});
    must_command(&stage, "{\"hold\": \"schedule\"}");
    stage_must_submit(&stage, told);
    stage_run(&stage, 5000);
    stage_must_submit(&stage, loose);
    stage_run(&stage, 4000);
    check_reason(&stage, "loose", "waits until job told (1) has its devices: they cannot be told apart");
    stage_run(&stage, 1500); /* 10.5 s: told is late */
    assert_int_equal(stage_n_moves(&stage, "told", "Pending"), 1);
    stage_run(&stage, 9000); /* 19.5 s: loose opened at 10 s, and has been there since 5 s */
    assert_int_equal(stage_n_moves(&stage, "loose", "Pending"), 0);
    assert_string_equal(stage_state(&stage, "loose"), "Launching");
    stage_run(&stage, 1000); /* 20.5 s */
    assert_int_equal(stage_n_moves(&stage, "loose", "Pending"), 1);
    must_command(&stage, "{\"release\": \"schedule\"}");
    stage_run(&stage, 120000);
    assert_string_equal(stage_state(&stage, "told"), "Succeeded");
    assert_string_equal(stage_state(&stage, "loose"), "Succeeded");
    check_drift(&stage, 0);
    stage_close(&stage);
}

/* Claims that we allocate are told exactly, whoever planned what before. */
static void test_core_alike__allocations_of_our_own_wait_for_nobody(void **state)
{
    struct stage stage;

    (void)state;
    stage_open_with(&stage,
                    &(struct stage_options){.manifests = "test/core/scenarios/twins.yaml", .bind_classes = "gpu"});
    must_command(&stage, "{\"fail\": \"ungate\", \"kind\": \"Pod\", \"nth\": 1, \"error\": \"unavailable\"}");
    stage_must_submit(&stage, told);
    stage_must_submit(&stage, loose);
    stage_run(&stage, 1000);
    assert_string_equal(stage_state(&stage, "told"), "Launching");
    assert_string_equal(stage_state(&stage, "loose"), "Running");
    stage_close(&stage);
}

/* Claims that kube-scheduler makes itself are seen when their pods are bound. */
static void test_core_alike__extended_resources_have_their_devices_when_they_are_bound(void **state)
{
    static const char extended[] =
        "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: extended}, spec: {queue: a, groups: [{name: w, "
        "replicas: 3, template: {metadata: {annotations: {embedded.queue.dra/duration: 20s}}, spec: {containers: "
        "[{name: c, image: i, resources: {limits: {example.com/gpu: 1}}}]}}}]}}";
    struct stage stage;

    (void)state;
    open_on(&stage, "test/core/scenarios/extended/cluster.yaml");
    must_command(&stage, "{\"fail\": \"ungate\", \"kind\": \"Pod\", \"nth\": 1, \"error\": \"unavailable\"}");
    stage_must_submit(&stage, extended);
    stage_must_submit(&stage, loose);
    stage_run(&stage, 1000);
    check_reason(&stage, "loose", "waits until job extended (1) has its devices: they cannot be told apart");
    stage_run(&stage, 6000);
    assert_string_equal(stage_state(&stage, "extended"), "Running");
    assert_string_equal(stage_state(&stage, "loose"), "Running");
    check_drift(&stage, 0);
    stage_run(&stage, 60000);
    assert_string_equal(stage_state(&stage, "extended"), "Succeeded");
    assert_string_equal(stage_state(&stage, "loose"), "Succeeded");
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_alike__members_with_each_others_devices_are_no_drift),
        cmocka_unit_test(test_core_alike__members_of_a_group_may_exchange_what_differs),
        cmocka_unit_test(test_core_alike__a_gang_waits_until_those_before_have_their_devices),
        cmocka_unit_test(test_core_alike__a_restart_knows_who_waits),
        cmocka_unit_test(test_core_alike__who_is_taken_away_is_not_waited_for),
        cmocka_unit_test(test_core_alike__the_wait_does_not_count_as_launching),
        cmocka_unit_test(test_core_alike__extended_resources_have_their_devices_when_they_are_bound),
        cmocka_unit_test(test_core_alike__allocations_of_our_own_wait_for_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
