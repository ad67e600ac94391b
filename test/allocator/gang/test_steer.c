/* Steered claims as text: what is created so that kube-scheduler has one choice. */
#include "test/support/cmocka.h"

#include <string.h>

#include "test/allocator/gang/world.h"

#include "allocator/base/banned.h"

/* Two nodes: n0 with two equal GPUs and one of another model, n1 with one. */
static struct world two_nodes(void)
{
    struct world w = {.n_nodes = 2, .n_devices = 4, .n_groups = 1};

    w.nodes[0] = (struct world_node){.cpu = 8, .counters = {9, 9}};
    w.nodes[1] = (struct world_node){.cpu = 8, .counters = {9, 9}};
    for (int d = 0; d < 4; d++)
        w.devices[d] = (struct world_device){.node = d == 3, .zone = -1, .model = d == 2, .numa = d % 2, .memory = 4};
    w.groups[0] = (struct world_group){.members = 1, .cpu = 1, .n_claims = 1};
    w.groups[0].claims[0] = (struct world_claim){.n_requests = 1, .rule_request = -1};
    w.groups[0].claims[0].requests[0] = (struct world_request){.n_alts = 1, .alts = {{.model = -1, .count = 1}}};
    return w;
}

/* The steered spec of the first member's first claim as text, to free. */
static char *steered_text(const struct world *w)
{
    struct snapshot *snapshot = world_snapshot(w);
    struct world_question question;
    struct gang_result result;
    struct error err = {0};
    json_t *spec;
    char *text;

    world_question_init(&question, w);
    assert_int_equal(gang_fit(snapshot, &question.spec, &question.arena, &result, &err), 0);
    assert_int_equal(result.verdict, GANG_FITS);
    spec = steered_claim_spec(snapshot, question.spec.groups[0].claims[0].object,
                              &result.placement->members[0].claims[0].allocation);
    text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(spec);
    gang_result_release(&result);
    world_question_release(&question);
    snapshot_unref(snapshot);
    return text;
}

static void expect_words(const struct world *w, const char *const *with, const char *const *without)
{
    char *text = steered_text(w);

    for (; *with; with++)
        if (!strstr(text, *with))
            fail_msg("%s is not in %s", *with, text);
    for (; *without; without++)
        if (strstr(text, *without))
            fail_msg("%s is in %s", *without, text);
    free(text);
}

static void test_steer__narrows_by_an_identifying_attribute(void **state)
{
    struct world w = two_nodes();

    (void)state;
    expect_words(&w,
                 (const char *[]){"\"name\":\"r0\"", "exactly", "device.driver == \\\"d.example\\\"",
                                  "has(device.attributes[\\\"d.example\\\"].index)", NULL},
                 (const char *[]){"firstAvailable", NULL});
}

static void test_steer__several_devices_are_a_list(void **state)
{
    struct world w = two_nodes();

    (void)state;
    w.groups[0].claims[0].requests[0].alts[0] = (struct world_ask){.model = 0, .count = 2};
    expect_words(
        &w, (const char *[]){"\"count\":2", ".index in [0, 1]", "device.attributes[\\\"d.example\\\"].model", NULL},
        (const char *[]){NULL});
}

static void test_steer__takes_the_chosen_alternative(void **state)
{
    struct world w = two_nodes();

    (void)state;
    w.groups[0].claims[0].requests[0] =
        (struct world_request){.n_alts = 2, .alts = {{.model = 1, .count = 2}, {.model = 0, .count = 2}}};
    expect_words(&w, (const char *[]){"exactly", "\"m0\\\"", NULL},
                 (const char *[]){"firstAvailable", "\"m1\\\"", NULL});
}

static void test_steer__mode_all_is_left_alone(void **state)
{
    struct world w = two_nodes();

    (void)state;
    w.groups[0].claims[0].requests[0].alts[0] = (struct world_ask){.model = -1, .all = true};
    expect_words(&w, (const char *[]){"\"allocationMode\":\"All\"", NULL},
                 (const char *[]){".index", "count", "selectors", NULL});
}

static void test_steer__drops_constraints_on_what_is_not_taken(void **state)
{
    struct world w = two_nodes();

    (void)state;
    w.groups[0].claims[0].n_requests = 2;
    w.groups[0].claims[0].requests[1] = (struct world_request){.n_alts = 1, .alts = {{.model = 1, .count = 1}}};
    w.groups[0].claims[0].rule = RULE_MATCH_NUMA;
    w.groups[0].claims[0].rule_request = 0;
    expect_words(&w, (const char *[]){"\"matchAttribute\":\"d.example/numa\",\"requests\":[\"r0\"]", NULL},
                 (const char *[]){NULL});
}

static void test_steer__keeps_tolerations_and_capacity(void **state)
{
    struct world w = two_nodes();

    (void)state;
    w.groups[0].claims[0].requests[0].alts[0] =
        (struct world_ask){.model = -1, .count = 1, .tolerates = true, .memory = 2};
    expect_words(&w, (const char *[]){"tolerations", "x.example/bad", "\"memory\":\"2Gi\"", NULL},
                 (const char *[]){NULL});
}

/* ---- devices that look alike ---- */

/* One node with GPUs that nothing tells apart but their NUMA nodes. */
static struct world alike(const int *numa, int n)
{
    struct world w = {.n_nodes = 1, .n_devices = n, .n_groups = 1, .alike = true};

    w.nodes[0] = (struct world_node){.cpu = 8, .counters = {9, 9}};
    for (int d = 0; d < n; d++)
        w.devices[d] = (struct world_device){.node = 0, .zone = -1, .numa = numa[d], .memory = 4};
    w.groups[0] = (struct world_group){.members = 1, .cpu = 1, .n_claims = 1};
    w.groups[0].claims[0] = (struct world_claim){
        .n_requests = 1, .rule_request = -1, .requests = {{.n_alts = 1, .alts = {{.model = -1, .count = 2}}}}};
    return w;
}

/* What the first pod gets for its steered claims, asked in the order of the pod. */
static void expect_as_planned(struct snapshot *snapshot, const struct gang_spec *spec, const struct placement *plan)
{
    const struct placed_member *member = &plan->members[0];
    const struct claim *claims[MAX_CLAIMS + 1];
    const struct allocation *planned[MAX_CLAIMS + 1];
    struct features features = features_default(37);
    struct prediction got;
    struct arena arena = {0};
    struct error err = {0};

    for (size_t c = 0; c < member->n_claims; c++) {
        bool shared = member->claims[c].source == GANG_CLAIM_SHARED;
        const json_t *object = shared ? spec->shared[0] : spec->groups[0].claims[c].object;
        struct claim *claim;
        json_t *created;

        planned[c] = shared ? &plan->shared[0] : &member->claims[c].allocation;
        created = json_pack("{s:s, s:s, s:{s:s}, s:o}", "apiVersion", "resource.k8s.io/v1", "kind", "ResourceClaim",
                            "metadata", "name", "c", "spec", steered_claim_spec(snapshot, object, planned[c]));
        assert_int_equal(claim_parse(created, &features, true, &arena, &claim, &err), 0);
        claims[c] = claim;
        json_decref(created);
    }
    predict(snapshot, member->node, claims, member->n_claims, 0, &arena, &got);
    assert_int_equal(got.verdict, PREDICT_ALLOCATED);
    for (size_t c = 0; c < member->n_claims; c++)
        for (size_t i = 0; i < planned[c]->n_results; i++)
            assert_string_equal(got.allocations[c].results[i].device, planned[c]->results[i].device);
    arena_release(&arena);
}

static void expect_steered(const struct world *w)
{
    struct snapshot *snapshot = world_snapshot(w);
    struct world_question question;
    struct gang_result result;
    struct error err = {0};

    world_question_init(&question, w);
    assert_int_equal(gang_fit(snapshot, &question.spec, &question.arena, &result, &err), 0);
    assert_int_equal(result.verdict, GANG_FITS);
    assert_false(result.placement->bind_only);
    expect_as_planned(snapshot, &question.spec, result.placement);
    gang_result_release(&result);
    world_question_release(&question);
    snapshot_unref(snapshot);
}

/* The pod's own claim comes first there, although shared claims are planned first. */
static void test_steer__plans_the_claims_in_the_order_of_the_pod(void **state)
{
    struct world w = alike((const int[]){1, 1, 1, 1}, 4);

    (void)state;
    w.has_shared = true;
    w.shared = w.groups[0].claims[0];
    w.groups[0].shares = true;
    expect_steered(&w);
}

/* In the order of the devices 0 2 and 0 1 would be dealt out, and whoever may take 0 could take both. */
static void test_steer__keeps_devices_together_that_look_alike(void **state)
{
    struct world w = alike((const int[]){0, 2, 0, 1}, 4);

    (void)state;
    w.groups[0].members = 2;
    expect_steered(&w);
}

/* No division keeps those alike together, but if both members may take all four, any order is as good. */
static void test_steer__widens_claims_of_one_node(void **state)
{
    struct world w = alike((const int[]){0, 0, 0, 1}, 4);

    (void)state;
    w.groups[0].members = 2;
    expect_steered(&w);
}

/* A claim that only tells what its devices look like would be given the two of NUMA node 0. */
static void test_steer__a_claim_keeps_the_constraint_of_the_gang(void **state)
{
    struct world w = alike((const int[]){0, 0, 1, 1}, 4);

    (void)state;
    w.gang_rule = RULE_DISTINCT_NUMA;
    expect_steered(&w);
}

/* ---- turns ---- */

/* Two members, each with a share of `asked`, on one node with cards of these sizes. */
static void expect_turns(const int *cards, int n_cards, int asked, bool is_alike, size_t second)
{
    struct world w = alike((const int[]){0, 0, 0, 0}, n_cards);
    struct snapshot *snapshot;
    struct world_question question;
    struct gang_result result;
    struct error err = {0};

    w.alike = is_alike;
    for (int d = 0; d < n_cards; d++) {
        w.devices[d].memory = cards[d];
        w.devices[d].multi = true;
    }
    w.groups[0].members = 2;
    w.groups[0].claims[0].requests[0].alts[0] = (struct world_ask){.model = -1, .count = 1, .memory = asked};
    snapshot = world_snapshot(&w);
    world_question_init(&question, &w);
    assert_int_equal(gang_fit(snapshot, &question.spec, &question.arena, &result, &err), 0);
    assert_int_equal(result.verdict, GANG_FITS);
    assert_int_equal(result.placement->members[0].turn, 0);
    assert_int_equal(result.placement->members[1].turn, second);
    gang_result_release(&result);
    world_question_release(&question);
    snapshot_unref(snapshot);
}

static void test_steer__the_last_share_of_a_card_waits(void **state)
{
    (void)state;
    expect_turns((const int[]){4}, 1, 2, false, 1);
}

static void test_steer__waits_where_one_share_counted_twice_leaves_too_little(void **state)
{
    (void)state;
    expect_turns((const int[]){5}, 1, 2, false, 1);
}

static void test_steer__shares_go_together_where_there_is_room_for_both_counted_twice(void **state)
{
    (void)state;
    expect_turns((const int[]){6}, 1, 2, false, 0);
}

static void test_steer__shares_of_different_cards_go_together(void **state)
{
    (void)state;
    expect_turns((const int[]){2, 2}, 2, 2, false, 0);
}

/* Refused on its card, the second would take the other's. */
static void test_steer__shares_of_cards_that_look_alike_go_one_by_one(void **state)
{
    (void)state;
    expect_turns((const int[]){2, 2}, 2, 2, true, 1);
}

/* ---- turns of devices that look alike ---- */

/* A gang of one member each that wants one device of model 0 and of model 1. */
static struct world one_of_each_model(int n_devices)
{
    struct world w = alike((const int[]){0, 0, 0, 0}, n_devices);

    w.n_groups = 2;
    w.groups[1] = w.groups[0];
    for (int g = 0; g < 2; g++)
        w.groups[g].claims[0].requests[0].alts[0] = (struct world_ask){.model = g, .count = 1};
    return w;
}

static void expect_turns_of(const struct world *w, const size_t *turns, bool needs_turns)
{
    struct snapshot *snapshot = world_snapshot(w);
    struct world_question question;
    struct gang_result result;
    struct error err = {0};

    world_question_init(&question, w);
    assert_int_equal(gang_fit(snapshot, &question.spec, &question.arena, &result, &err), 0);
    assert_int_equal(result.verdict, GANG_FITS);
    assert_false(result.placement->bind_only);
    assert_int_equal(result.placement->needs_turns, needs_turns);
    for (size_t m = 0; m < result.placement->n_members; m++)
        assert_int_equal(result.placement->members[m].turn, turns[m]);
    gang_result_release(&result);
    world_question_release(&question);
    snapshot_unref(snapshot);
}

/* The second could be given a part that leaves nothing for the first. When that has its own, it cannot. */
static void test_steer__who_could_take_too_much_starts_later(void **state)
{
    struct world w = one_of_each_model(3);

    (void)state;
    w.nodes[0].counters[0] = 3;
    w.devices[0].takes = 3;
    w.devices[1].takes = 1;
    w.devices[2].takes = 1;
    w.devices[2].model = 1;
    expect_turns_of(&w, (const size_t[]){1, 0}, true);
}

/* A card that can be shared looks like the one that cannot, but for that; whoever has a share must not take the other.
 */
static void test_steer__tells_by_whether_it_can_be_shared(void **state)
{
    struct world w = one_of_each_model(2);

    (void)state;
    w.devices[1].multi = true;
    w.groups[0].members = 2;
    w.groups[0].claims[0].requests[0].alts[0].memory = 2;
    w.groups[1].claims[0].requests[0].alts[0] = (struct world_ask){.model = 0, .count = 1, .memory = 4};
    expect_turns_of(&w, (const size_t[]){0, 1, 0}, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steer__narrows_by_an_identifying_attribute),
        cmocka_unit_test(test_steer__several_devices_are_a_list),
        cmocka_unit_test(test_steer__takes_the_chosen_alternative),
        cmocka_unit_test(test_steer__mode_all_is_left_alone),
        cmocka_unit_test(test_steer__drops_constraints_on_what_is_not_taken),
        cmocka_unit_test(test_steer__keeps_tolerations_and_capacity),
        cmocka_unit_test(test_steer__plans_the_claims_in_the_order_of_the_pod),
        cmocka_unit_test(test_steer__keeps_devices_together_that_look_alike),
        cmocka_unit_test(test_steer__widens_claims_of_one_node),
        cmocka_unit_test(test_steer__a_claim_keeps_the_constraint_of_the_gang),
        cmocka_unit_test(test_steer__the_last_share_of_a_card_waits),
        cmocka_unit_test(test_steer__waits_where_one_share_counted_twice_leaves_too_little),
        cmocka_unit_test(test_steer__shares_go_together_where_there_is_room_for_both_counted_twice),
        cmocka_unit_test(test_steer__shares_of_different_cards_go_together),
        cmocka_unit_test(test_steer__shares_of_cards_that_look_alike_go_one_by_one),
        cmocka_unit_test(test_steer__who_could_take_too_much_starts_later),
        cmocka_unit_test(test_steer__tells_by_whether_it_can_be_shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
