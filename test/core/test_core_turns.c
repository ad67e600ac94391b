/* Members that share a card are shown to the scheduler one turn after the other. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "queued/lifecycle/objects.h"
#include "test/support/stage.h"

#include "allocator/base/banned.h"

static const char shares[] =
    "apiVersion: queue.dra/v1\n"
    "kind: GangJob\n"
    "metadata: {name: train}\n"
    "spec:\n"
    "  queue: a\n"
    "  groups:\n"
    "    - name: w\n"
    "      replicas: 2\n"
    "      template:\n"
    "        metadata: {annotations: {embedded.queue.dra/duration: 5s, queue.dra/turn: '9'}}\n"
    "        spec:\n"
    "          containers: [{name: c, image: i, resources: {claims: [{name: g}]}}]\n"
    "          resourceClaims: [{name: g, resourceClaimTemplateName: half}]\n"
    "  claimTemplates:\n"
    "    - name: half\n"
    "      spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, capacity: {requests: {memory: "
    "24Gi}}}}]}}\n";

static void must_command(struct stage *stage, const char *json)
{
    struct error err = {0};

    if (stage_command(stage, json, &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
}

static const char *turn_at(const struct stage *stage, const char *pod)
{
    const json_t *metadata = json_object_get(json_object_get(stage->relay.objects, pod), "metadata");

    return json_string_value(json_object_get(json_object_get(metadata, "annotations"), ANNOTATION_TURN));
}

static bool has_gate(const struct stage *stage, const char *pod)
{
    const json_t *object = json_object_get(stage->relay.objects, pod);

    assert_non_null(object);
    return json_array_size(json_object_get(json_object_get(object, "spec"), "schedulingGates")) > 0;
}

static const char first[] = "Pod/default/train-1-1-w-0", second[] = "Pod/default/train-1-1-w-1";

/* Nothing is bound until the scheduler is let go. */
static void start_held(struct stage *stage, struct stage_options options)
{
    options.manifests = "test/core/scenarios/shares.yaml";
    stage_open_with(stage, &options);
    must_command(stage, "{\"hold\": \"schedule\"}");
    stage_must_submit(stage, shares);
    stage_run(stage, 500);
    assert_string_equal(stage_state(stage, "train"), "Launching");
}

static void finish(struct stage *stage)
{
    json_t *status;

    must_command(stage, "{\"release\": \"schedule\"}");
    stage_run(stage, 1000);
    assert_string_equal(stage_state(stage, "train"), "Running");
    assert_false(has_gate(stage, second));
    stage_run(stage, 60000);
    assert_string_equal(stage_state(stage, "train"), "Succeeded");
    status = core_status(stage->core);
    assert_int_equal(json_integer_value(json_object_get(status, "drift")), 0);
    json_decref(status);
    stage_close(stage);
}

static void test_core_turns__the_last_share_of_a_card_keeps_its_gate_until_the_first_is_bound(void **state)
{
    struct stage stage;

    (void)state;
    start_held(&stage, (struct stage_options){0});
    assert_false(has_gate(&stage, first));
    assert_true(has_gate(&stage, second));
    assert_null(turn_at(&stage, first)); /* what the manifest says of it does not count */
    assert_string_equal(turn_at(&stage, second), "1");
    finish(&stage);
}

static void test_core_turns__survive_a_restart(void **state)
{
    struct stage stage;

    (void)state;
    start_held(&stage, (struct stage_options){0});
    stage_restart(&stage);
    stage_run(&stage, 500);
    assert_true(has_gate(&stage, second));
    finish(&stage);
}

static void test_core_turns__what_we_allocate_needs_none(void **state)
{
    struct stage stage;

    (void)state;
    start_held(&stage, (struct stage_options){.bind_classes = "gpu"});
    assert_false(has_gate(&stage, first));
    assert_false(has_gate(&stage, second));
    finish(&stage);
}

static void test_core_turns__a_pod_group_is_shown_at_once(void **state)
{
    struct stage stage;

    (void)state;
    start_held(&stage, (struct stage_options){.has_pod_groups = true});
    assert_false(has_gate(&stage, first));
    assert_false(has_gate(&stage, second));
    finish(&stage);
}

/* ---- shares of several gangs ---- */

#define SHARE(name, memory)                                                                                            \
    "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: " name "}, spec: {queue: a, groups: [{name: w, "       \
    "replicas: 1, template: {metadata: {annotations: {embedded.queue.dra/duration: 20s}}, spec: {containers: [{name: " \
    "c, image: i, resources: {claims: [{name: g}]}}], resourceClaims: [{name: g, resourceClaimTemplateName: s}]}}}], " \
    "claimTemplates: [{name: s, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, capacity: "      \
    "{requests: {memory: " memory "}}}}]}}}]}}"

static void check_reason(struct stage *stage, const char *job, const char *want)
{
    json_t *view = stage_view(stage, job);

    assert_string_equal(json_string_value(json_object_get(view, "reason")), want);
    json_decref(view);
}

static void test_core_turns__a_gang_starts_when_those_with_shares_of_its_card_are_bound(void **state)
{
    struct stage stage;

    (void)state;
    stage_open_with(&stage, &(struct stage_options){.manifests = "test/core/scenarios/shares.yaml"});
    must_command(&stage, "{\"hold\": \"schedule\"}");
    stage_must_submit(&stage, SHARE("one", "8Gi"));
    stage_must_submit(&stage, SHARE("two", "8Gi"));
    stage_run(&stage, 500);
    assert_false(has_gate(&stage, "Pod/default/one-1-1-w-0"));
    assert_true(has_gate(&stage, "Pod/default/two-2-1-w-0"));
    check_reason(&stage, "two", "waits until job one (1) has its devices: both have shares of one");
    must_command(&stage, "{\"release\": \"schedule\"}");
    stage_run(&stage, 1000);
    check_reason(&stage, "two", "all members run");
    assert_string_equal(stage_state(&stage, "one"), "Running");
    stage_run(&stage, 60000);
    stage_close(&stage);
}

static void test_core_turns__shares_that_we_allocate_wait_for_nobody(void **state)
{
    struct stage stage;

    (void)state;
    stage_open_with(&stage,
                    &(struct stage_options){.manifests = "test/core/scenarios/shares.yaml", .bind_classes = "gpu"});
    must_command(&stage, "{\"hold\": \"schedule\"}");
    stage_must_submit(&stage, SHARE("one", "8Gi"));
    stage_must_submit(&stage, SHARE("two", "8Gi"));
    stage_run(&stage, 500);
    assert_false(has_gate(&stage, "Pod/default/two-2-1-w-0"));
    must_command(&stage, "{\"release\": \"schedule\"}");
    stage_run(&stage, 60000);
    stage_close(&stage);
}

/* ---- devices that nothing tells apart ---- */

#define VOLUME(group, where)                                                                                           \
    "{name: " group ", replicas: 1, template: {metadata: {annotations: {embedded.queue.dra/duration: 5s}}, spec: "     \
    "{nodeSelector: {zone: " where "}, containers: [{name: c, image: i, resources: {claims: [{name: v}]}}], "          \
    "resourceClaims: [{name: v, resourceClaimTemplateName: v}]}}}"

/* The near one would be given the volume that the far one needs. */
static void test_core_turns__who_could_take_the_others_device_starts_later_and_joins_no_pod_group(void **state)
{
    static const char near[] = "Pod/default/pair-1-1-near-0", far[] = "Pod/default/pair-1-1-far-0";
    struct stage stage;

    (void)state;
    stage_open_with(&stage,
                    &(struct stage_options){.manifests = "test/core/scenarios/volumes.yaml", .has_pod_groups = true});
    must_command(&stage, "{\"hold\": \"schedule\"}");
    stage_must_submit(&stage,
                      "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: pair}, spec: {queue: a, groups: "
                      "[" VOLUME("near", "a") ", " VOLUME(
                          "far", "b") "], claimTemplates: [{name: v, spec: "
                                      "{devices: {requests: [{name: r, exactly: {deviceClassName: volume}}]}}}]}}");
    stage_run(&stage, 500);
    assert_string_equal(stage_state(&stage, "pair"), "Launching");
    assert_false(has_gate(&stage, far));
    assert_true(has_gate(&stage, near));
    assert_null(json_object_get(stage.relay.objects, "PodGroup/default/pair-1-1"));
    must_command(&stage, "{\"release\": \"schedule\"}");
    stage_run(&stage, 1000);
    assert_string_equal(stage_state(&stage, "pair"), "Running");
    stage_run(&stage, 60000);
    assert_string_equal(stage_state(&stage, "pair"), "Succeeded");
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_turns__the_last_share_of_a_card_keeps_its_gate_until_the_first_is_bound),
        cmocka_unit_test(test_core_turns__survive_a_restart),
        cmocka_unit_test(test_core_turns__what_we_allocate_needs_none),
        cmocka_unit_test(test_core_turns__a_pod_group_is_shown_at_once),
        cmocka_unit_test(test_core_turns__a_gang_starts_when_those_with_shares_of_its_card_are_bound),
        cmocka_unit_test(test_core_turns__shares_that_we_allocate_wait_for_nobody),
        cmocka_unit_test(test_core_turns__who_could_take_the_others_device_starts_later_and_joins_no_pod_group),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
