/* What the API server refuses becomes a reason, not a loop. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "test/support/stage.h"

static const struct stage_job train = {.name = "train", .members = 1, .gpus = 1, .seconds = 10};

/* The n-th creation of a pod from now on. */
static void refuse_pod(struct stage *stage, int nth, const char *code, const char *words)
{
    char command[400];

    snprintf(command, sizeof(command),
             "{\"fail\": \"create\", \"kind\": \"Pod\", \"nth\": %d, \"error\": \"%s\", \"words\": \"%s\"}", nth, code,
             words);
    assert_int_equal(stage_command(stage, command, NULL), 0);
}

static const struct refusal {
    const char *name, *code;
    const char *words[2]; /* in turn */
    int n;                /* so many creations are refused */
    const char *want;     /* the job's state an hour later */
    int n_attempts;
} refusals[] = {
    {"a quota never fails a job",
     "denied",
     {"exceeded quota: gpus, requested: pods=1, used: pods=4, limited: pods=4",
      "exceeded quota: gpus, requested: pods=1, used: pods=4, limited: pods=4"},
     8,
     "Succeeded",
     9},
    {"what is invalid fails it",
     "invalid",
     {"spec.containers[0].image: Required value", "spec.containers[0].image: Required value"},
     100,
     "Failed",
     5},
    {"names with the number of the attempt are the same",
     "invalid",
     {"pods train-1-1-w-0 is invalid: x", "pods train-1-22-w-0 is invalid: x"},
     100,
     "Failed",
     5},
    {"what changes may change again", "invalid", {"this", "that"}, 8, "Succeeded", 9},
    {"four times is not enough", "invalid", {"this", "this"}, 4, "Succeeded", 5},
};

static void test_core_refusals__end(void **state)
{
    const struct refusal *c = *state;
    struct stage stage;

    stage_open(&stage, NULL);
    for (int i = 0; i < c->n; i++)
        refuse_pod(&stage, i + 1, c->code, c->words[i % 2]);
    stage_must_start(&stage, &train);
    stage_run(&stage, 3600000);
    assert_string_equal(stage_state(&stage, "train"), c->want);
    assert_int_equal(stage_n_moves(&stage, "train", "Admitted"), c->n_attempts);
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
}

static bool reason_has(struct stage *stage, const char *words)
{
    json_t *view = stage_view(stage, "train");
    bool has = strstr(json_string_value(json_object_get(view, "reason")), words) != NULL;

    if (!has)
        print_message("%s\n", json_string_value(json_object_get(view, "reason")));
    json_decref(view);
    return has;
}

static void test_core_refusals__the_words_are_the_reason(void **state)
{
    static const char words[] = "admission webhook policy.example.com denied the request: no latest tags";
    struct stage stage;

    (void)state;
    stage_open(&stage, NULL);
    for (int i = 1; i <= 100; i++)
        refuse_pod(&stage, i, "denied", words);
    stage_must_start(&stage, &train);
    stage_run(&stage, 20000);
    assert_string_equal(stage_state(&stage, "train"), "Pending");
    assert_true(reason_has(&stage, words));
    assert_true(reason_has(&stage, "create Pod train-1-"));
    assert_in_range(stage_n_moves(&stage, "train", "Admitted"), 3, 4); /* at 0, 2, 6, 14 s */
    stage_close(&stage);
}

static void test_core_refusals__a_job_that_fails_says_how_often(void **state)
{
    struct stage stage;

    (void)state;
    stage_open(&stage, NULL);
    for (int i = 1; i <= 100; i++)
        refuse_pod(&stage, i, "invalid", "spec.x: Invalid value");
    stage_must_start(&stage, &train);
    stage_run(&stage, 600000);
    assert_string_equal(stage_state(&stage, "train"), "Failed");
    assert_true(reason_has(&stage, "spec.x: Invalid value (so for 5 attempts in a row)"));
    stage_close(&stage);
}

/* ---- a claim for many ---- */

static const char sharing[] =
    "apiVersion: queue.dra/v1\n"
    "kind: GangJob\n"
    "metadata: {name: many}\n"
    "spec:\n"
    "  queue: a\n"
    "  groups:\n"
    "    - name: one\n"
    "      replicas: 1\n"
    "      template: {spec: {containers: [{name: c, image: i}], resourceClaims: [{name: s, resourceClaimName: "
    "both}]}}\n"
    "    - name: rest\n"
    "      replicas: %d\n"
    "      minReplicas: %d\n"
    "      template: {spec: {containers: [{name: c, image: i}], resourceClaims: [{name: s, resourceClaimName: "
    "both}]}}\n"
    "%s";
#define BROUGHT                                                                                                        \
    "  sharedClaims:\n    - name: both\n      spec: {devices: {requests: [{name: r, exactly: {deviceClassName: "       \
    "gpu}}]}}\n"

static const struct sharing_case {
    const char *name, *more;
    int replicas, min_replicas;
    bool is_refused;
} sharing_cases[] = {
    {"256 share a claim that the job brings", BROUGHT, 255, 255, false},
    {"257 do not", BROUGHT, 256, 256, true},
    {"257 do not share one that exists", "", 256, 256, true},
    {"an elastic gang may be smaller", BROUGHT, 256, 10, false},
};

static void test_core_refusals__sharing(void **state)
{
    const struct sharing_case *c = *state;
    struct stage stage;
    struct stage_answer answer;
    char yaml[1500];

    stage_open(&stage, NULL);
    snprintf(yaml, sizeof(yaml), sharing, c->replicas, c->min_replicas, c->more);
    answer = stage_submit(&stage, &stage_admin, yaml, NULL);
    if (c->is_refused) {
        assert_int_equal(answer.err.code, ERR_INVALID);
        assert_string_equal(answer.err.field, "spec.groups[0].template.spec.resourceClaims[0]");
        assert_non_null(strstr(answer.err.text, "257 members share the claim both"));
    } else {
        assert_int_equal(answer.err.code, ERR_NONE);
    }
    stage_answer_release(&answer);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_refusals__the_words_are_the_reason),
        cmocka_unit_test(test_core_refusals__a_job_that_fails_says_how_often),
    };
    int failed = RUN_TABLE(test_core_refusals__end, refusals);

    failed += RUN_TABLE(test_core_refusals__sharing, sharing_cases);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
