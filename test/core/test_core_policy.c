/* What the cluster's own policies do to jobs: quotas of namespaces, and priority classes. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/rng.h"
#include "test/support/stage.h"

static int setup(void **state)
{
    struct stage *stage = mem_new(struct stage);

    stage_open(stage, NULL);
    *state = stage;
    return 0;
}

static int teardown(void **state)
{
    stage_close(*state);
    free(*state);
    return 0;
}

static void put(struct stage *stage, const char *json)
{
    struct error err = {0};
    BUF command = {0};

    buf_addf(&command, "{\"putObject\": %s}", json);
    if (stage_command(stage, buf_str(&command), &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
    stage_settle(stage);
}

static void put_quota(struct stage *stage, const char *resource, int hard, int used)
{
    BUF json = {0};

    buf_addf(&json,
             "{\"apiVersion\": \"v1\", \"kind\": \"ResourceQuota\", \"metadata\": {\"name\": \"few\", \"namespace\": "
             "\"default\"}, \"status\": {\"hard\": {\"%s\": \"%d\"}, \"used\": {\"%s\": \"%d\"}}}",
             resource, hard, resource, used);
    put(stage, buf_str(&json));
}

static void put_class(struct stage *stage, const char *name, int value, bool is_default)
{
    BUF json = {0};

    buf_addf(
        &json,
        "{\"apiVersion\": \"scheduling.k8s.io/v1\", \"kind\": \"PriorityClass\", \"metadata\": {\"name\": \"%s\"}, "
        "\"value\": %d, \"globalDefault\": %s}",
        name, value, is_default ? "true" : "false");
    put(stage, buf_str(&json));
}

static void expect(struct stage *stage, const char *job, const char *key, const char *want)
{
    json_t *view = stage_view(stage, job);

    if (strcmp(json_string_value(json_object_get(view, key)), want) != 0)
        fail_msg("%s of %s is %s", key, job, json_string_value(json_object_get(view, key)));
    json_decref(view);
}

static json_int_t priority_of(struct stage *stage, const char *job)
{
    json_t *view = stage_view(stage, job);
    json_int_t priority = json_integer_value(json_object_get(view, "priority"));

    json_decref(view);
    return priority;
}

/* ---- quotas ---- */

static const struct stage_job pair = {.name = "pair", .members = 2, .gpus = 1, .seconds = 60};

static void test_policy__a_job_waits_for_its_namespace_and_starts_when_there_is_room(void **state)
{
    struct stage *stage = *state;
    json_t *explanation;

    put_quota(stage, "gpu.deviceclass.resource.k8s.io/devices", 4, 3);
    stage_must_start(stage, &pair);
    stage_run(stage, 5000);
    expect(stage, "1", "state", "Pending");
    expect(stage, "1", "reason",
           "ResourceQuota few of namespace default: needs 2 of gpu.deviceclass.resource.k8s.io/devices, 3 of 4 are in "
           "use");
    explanation = core_explain(stage->core, &stage_admin, "1", NULL);
    assert_string_equal(json_string_value(json_object_get(explanation, "layer")), "quota");
    assert_true(json_is_false(json_object_get(explanation, "never")));
    json_decref(explanation);
    assert_int_equal(stage_n_moves(stage, "1", "Admitted"), 0); /* nothing was tried */
    put_quota(stage, "gpu.deviceclass.resource.k8s.io/devices", 4, 2);
    stage_run(stage, 5000);
    expect(stage, "1", "state", "Running");
}

static int64_t n_rounds(const struct stage *stage)
{
    json_t *status = core_status(stage->core);
    int64_t n = json_integer_value(json_object_get(status, "plannerRounds"));

    json_decref(status);
    return n;
}

/* A quota that becomes fuller lets nobody start, but the words that somebody waits with are of now: a second later, and
 * by one round however often it changed. */
static void test_policy__who_waits_for_a_namespace_is_told_present_numbers(void **state)
{
    struct stage *stage = *state;
    int64_t before;

    put_quota(stage, "pods", 9, 8);
    stage_must_start(stage, &pair);
    stage_run(stage, 5000);
    expect(stage, "1", "reason", "ResourceQuota few of namespace default: needs 2 of pods, 8 of 9 are in use");
    before = n_rounds(stage);
    for (int hard = 9; hard > 5; hard--) {
        put_quota(stage, "pods", hard, 9);
        stage_run(stage, 100);
    }
    stage_run(stage, 2000);
    expect(stage, "1", "reason", "ResourceQuota few of namespace default: needs 2 of pods, 9 of 6 are in use");
    assert_int_equal(n_rounds(stage), before + 1);
}

static void test_policy__a_quota_that_is_gone_is_forgotten(void **state)
{
    struct stage *stage = *state;
    struct error err = {0};

    put_quota(stage, "pods", 1, 0);
    stage_must_start(stage, &pair);
    stage_run(stage, 1000);
    expect(stage, "1", "state", "Pending");
    assert_int_equal(stage_command(stage, "{\"deleteObject\": {\"kind\": \"ResourceQuota\", \"name\": \"few\"}}", &err),
                     0);
    stage_run(stage, 5000);
    expect(stage, "1", "state", "Running");
}

/* Of two pods one could not be created yet. The embedded cluster counts nothing by itself, so that one is all. */
static void test_policy__what_is_on_its_way_counts_as_used(void **state)
{
    struct stage *stage = *state;
    struct stage_job second = pair;
    struct error err = {0};

    put_quota(stage, "pods", 2, 0);
    assert_int_equal(
        stage_command(stage, "{\"fail\": \"create\", \"kind\": \"Pod\", \"error\": \"unavailable\"}", &err), 0);
    stage_must_start(stage, &pair);
    stage_settle(stage);
    second.name = "second";
    stage_must_start(stage, &second);
    stage_settle(stage);
    expect(stage, "2", "reason", "ResourceQuota few of namespace default: needs 2 of pods, 1 of 2 are in use");
}

static void test_policy__a_dry_run_says_what_the_namespace_allows(void **state)
{
    struct stage *stage = *state;
    const struct submit_options options = {.dry_run = true};
    struct stage_answer answer;
    char *yaml = stage_job_yaml(&pair);
    json_t *prediction;

    put_quota(stage, "count/configmaps", 0, 0);
    answer = stage_submit(stage, &stage_admin, yaml, &options);
    prediction = json_object_get(json_array_get(json_object_get(answer.body, "jobs"), 0), "prediction");
    assert_string_equal(json_string_value(json_object_get(prediction, "layer")), "quota");
    assert_string_equal(
        json_string_value(json_object_get(prediction, "summary")),
        "ResourceQuota few of namespace default: needs 1 of count/configmaps, 0 of 0 are in use; it may "
        "never use that many");
    stage_answer_release(&answer);
    free(yaml);
}

/* The cluster counts what runs: whoever comes second starts when the first has ended. */
static void test_policy__jobs_take_turns_within_a_quota(void **state)
{
    struct stage *stage = *state;
    struct stage_job second = pair;

    put(stage, "{\"apiVersion\": \"v1\", \"kind\": \"ResourceQuota\", \"metadata\": {\"name\": \"few\", \"namespace\": "
               "\"default\"}, \"spec\": {\"hard\": {\"pods\": \"3\"}}}");
    stage_must_start(stage, &pair);
    stage_run(stage, 5000);
    expect(stage, "1", "state", "Running");
    second.name = "second";
    stage_must_start(stage, &second);
    stage_run(stage, 5000);
    expect(stage, "2", "reason", "ResourceQuota few of namespace default: needs 2 of pods, 2 of 3 are in use");
    stage_run(stage, 60000);
    expect(stage, "1", "state", "Succeeded");
    expect(stage, "2", "state", "Running");
    assert_int_equal(stage_n_moves(stage, "2", "Admitted"), 1);
}

/* The embedded cluster counts by itself, with code of its own. Whatever the quota and the jobs: nothing is refused on
 * creation, and whoever could ever start has. */
static void put_random_quota(struct stage *stage, struct rng *rng)
{
    static const struct {
        const char *resource;
        uint64_t least, most;
    } limits[] = {
        {"pods", 1, 6},
        {"count/pods", 1, 6},
        {"gpu.deviceclass.resource.k8s.io/devices", 1, 5},
        {"count/resourceclaims.resource.k8s.io", 1, 6},
        {"configmaps", 1, 3},
        {"count/services", 1, 3},
    };
    BUF json = {0};
    size_t n = 0;

    buf_adds(&json,
             "{\"apiVersion\": \"v1\", \"kind\": \"ResourceQuota\", \"metadata\": {\"name\": \"few\", \"namespace\": "
             "\"default\"}, \"spec\": {\"hard\": {");
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
        if (rng_below(rng, 2))
            buf_addf(&json, "%s\"%s\": \"%d\"", n++ ? ", " : "", limits[i].resource,
                     (int)(limits[i].least + rng_below(rng, limits[i].most - limits[i].least + 1)));
    buf_adds(&json, "}}}");
    put(stage, buf_str(&json));
}

static void check_ends(struct stage *stage, int id, uint64_t seed)
{
    char job[8];
    json_t *explanation;
    const char *state;

    snprintf(job, sizeof(job), "%d", id);
    state = stage_state(stage, job);
    if (strcmp(state, "Succeeded") == 0)
        return;
    explanation = core_explain(stage->core, &stage_admin, job, NULL);
    if (!json_is_true(json_object_get(explanation, "never")))
        fail_msg("seed %llu: job %d is %s: %s", (unsigned long long)seed, id, state,
                 json_string_value(json_object_get(explanation, "summary")));
    json_decref(explanation);
}

static void test_policy__what_admission_counts_the_cluster_accepts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 25; seed++) {
        struct rng rng = {seed};
        struct stage stage;
        BUF trace = {0};

        stage_open(&stage, NULL);
        put_random_quota(&stage, &rng);
        for (int i = 1; i <= 6; i++) {
            char name[8];
            struct stage_job job = {.name = name,
                                    .members = 1 + (int)rng_below(&rng, 3),
                                    .gpus = 1 + (int)rng_below(&rng, 2),
                                    .seconds = 1 + (int)rng_below(&rng, 20)};

            snprintf(name, sizeof(name), "j%d", i);
            stage_must_start(&stage, &job);
            stage_run(&stage, (int64_t)rng_below(&rng, 5000));
        }
        stage_run(&stage, 300000);
        stage_trace(&stage, &trace);
        if (strstr(buf_str(&trace), "exceeded quota"))
            fail_msg("seed %llu:\n%s", (unsigned long long)seed, buf_str(&trace));
        for (int i = 1; i <= 6; i++)
            check_ends(&stage, i, seed);
        stage_close(&stage);
    }
}

/* ---- priority classes ---- */

#define POD_JOB(name, class)                                                                                           \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: " name ", labels: {kueue.x-k8s.io/queue-name: a}}\n"                  \
    "spec: {restartPolicy: Never, priorityClassName: " class ", containers: [{name: c, image: i}]}\n"

static void test_policy__a_pods_class_of_the_cluster_gives_the_priority(void **state)
{
    struct stage *stage = *state;

    put_class(stage, "urgent", 5000, false);
    stage_must_submit(stage, POD_JOB("p", "urgent"));
    assert_int_equal(priority_of(stage, "1"), 5000);
    stage_run(stage, 3000);
    expect(stage, "1", "state", "Running");
}

static void test_policy__a_class_that_comes_later_is_waited_for(void **state)
{
    struct stage *stage = *state;

    put_class(stage, "urgent", 5000, false);
    stage_must_submit(stage, POD_JOB("p", "later"));
    stage_run(stage, 3000);
    expect(stage, "1", "state", "Pending");
    expect(stage, "1", "reason", "the cluster has no PriorityClass later, which the pods of group main name");
    assert_int_equal(priority_of(stage, "1"), 0);
    put_class(stage, "later", 7, false);
    stage_run(stage, 3000);
    expect(stage, "1", "state", "Running");
    assert_int_equal(priority_of(stage, "1"), 7);
}

static void test_policy__a_class_that_only_queued_could_have_is_refused(void **state)
{
    struct stage *stage = *state;
    struct stage_job job = pair;
    struct stage_answer answer;
    char *yaml;

    put_class(stage, "urgent", 5000, false);
    job.more = "  priorityClassName: nobody\n";
    yaml = stage_job_yaml(&job);
    answer = stage_submit(stage, &stage_admin, yaml, &(struct submit_options){0});
    assert_string_equal(answer.err.field, "spec.priorityClassName");
    stage_answer_release(&answer);
    free(yaml);
}

static void test_policy__the_clusters_default_class_is_for_whoever_names_none(void **state)
{
    struct stage *stage = *state;
    struct stage_job job = pair;

    put_class(stage, "normal", 1000, true);
    put_class(stage, "also-normal", 2000, true); /* the lowest counts */
    stage_must_submit(stage, "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {kueue.x-k8s.io/queue-name: a}}\n"
                             "spec: {restartPolicy: Never, containers: [{name: c, image: i}]}\n");
    assert_int_equal(priority_of(stage, "1"), 1000);
    job.name = "own";
    job.priority = 3;
    stage_must_start(stage, &job);
    assert_int_equal(priority_of(stage, "2"), 3);
}

int main(void)
{
#define TEST(fact) cmocka_unit_test_setup_teardown(test_policy__##fact, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_job_waits_for_its_namespace_and_starts_when_there_is_room),
        TEST(who_waits_for_a_namespace_is_told_present_numbers),
        TEST(a_quota_that_is_gone_is_forgotten),
        TEST(what_is_on_its_way_counts_as_used),
        TEST(a_dry_run_says_what_the_namespace_allows),
        TEST(jobs_take_turns_within_a_quota),
        cmocka_unit_test(test_policy__what_admission_counts_the_cluster_accepts),
        TEST(a_pods_class_of_the_cluster_gives_the_priority),
        TEST(a_class_that_comes_later_is_waited_for),
        TEST(a_class_that_only_queued_could_have_is_refused),
        TEST(the_clusters_default_class_is_for_whoever_names_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
