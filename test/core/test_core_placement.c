/* What queues say about placement: who hears it, when it takes effect, what is shown, and what a restart keeps. */
#include "test/support/cmocka.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* A tree "top" > "middle" > "leaf"; the stage's own queues stay beside it. */
#define QUEUE(name, spec) "---\n{apiVersion: queue.dra/v1, kind: Queue, metadata: {name: " name "}, spec: {" spec "}}\n"
#define TREE(top, middle, leaf)                                                                                        \
    QUEUE("top", top) QUEUE("middle", "parent: top" middle) QUEUE("leaf", "parent: middle" leaf)

/* "changed" or so, of the last document. */
static void apply(struct stage *stage, const char *yaml, const char *want)
{
    struct stage_answer answer = stage_apply(stage, yaml);
    const json_t *applied = json_object_get(answer.body, "applied");

    if (answer.err.code)
        fail_msg("%s: %s", answer.err.field, answer.err.text);
    if (want)
        assert_string_equal(
            json_string_value(json_object_get(json_array_get(applied, json_array_size(applied) - 1), "change")), want);
    stage_answer_release(&answer);
    stage_settle(stage);
}

/* "pack from queue top" */
static void effective_text(const json_t *view, struct buf *out)
{
    const json_t *effective = json_object_get(view, "effectivePlacement");
    const char *queue = json_string_value(json_object_get(effective, "queue"));

    if (!effective) {
        buf_adds(out, "nothing");
        return;
    }
    buf_addf(out, "%s from %s", json_string_value(json_object_get(effective, "placement")),
             json_string_value(json_object_get(effective, "from")));
    if (queue)
        buf_addf(out, " %s", queue);
}

static void expect_effective(json_t *view, const char *want)
{
    BUF got = {0};

    effective_text(view, &got);
    json_decref(view);
    assert_string_equal(buf_str(&got), want);
}

static void expect_job(struct stage *stage, const char *job, const char *want)
{
    expect_effective(stage_view(stage, job), want);
}

/* The nodes of its members. */
static void expect_nodes(struct stage *stage, const char *job, const char *want)
{
    json_t *view = stage_view(stage, job), *member;
    BUF nodes = {0};
    size_t i;

    json_array_foreach (json_object_get(json_object_get(view, "placement"), "members"), i, member)
        buf_addf(&nodes, "%s%s", i ? " " : "", json_string_value(json_object_get(member, "node")));
    json_decref(view);
    assert_string_equal(buf_str(&nodes), want);
}

/* ---- the same gang under different queues ---- */

static const struct gang_case {
    const char *name;
    const char *queues;
    const char *more; /* of the job's spec, or NULL */
    const char *effective, *nodes;
} gang_cases[] = {
    {"nobody says anything", TREE("", "", ""), NULL, "fragmentation from default", "n1 n1"},
    {"its queue", TREE("", "", ", placement: spread"), NULL, "spread from queue leaf", "n1 n2"},
    {"a queue above", TREE("placement: spread", "", ""), NULL, "spread from queue top", "n1 n2"},
    {"the nearest", TREE("placement: spread", ", placement: pack", ""), NULL, "pack from queue middle", "n1 n1"},
    {"the job", TREE("placement: pack", "", ", placement: pack"), "  placement: spread\n", "spread from job", "n1 n2"},
    {"the job for the default", TREE("placement: spread", "", ""), "  placement: fragmentation\n",
     "fragmentation from job", "n1 n1"},
};

static const struct stage_job pair = {.name = "pair", .queue = "leaf", .members = 2, .gpus = 1, .seconds = 60};

/* What a dry run says beforehand, explain and the job itself afterwards. */
static void test_placement__gang(void **state)
{
    const struct gang_case *c = *state;
    const struct submit_options dry = {.dry_run = true};
    struct stage_job job = pair;
    struct stage_answer answer;
    struct stage stage;
    char *yaml;

    job.more = c->more;
    yaml = stage_job_yaml(&job);
    stage_open(&stage, NULL);
    apply(&stage, c->queues, "created");
    answer = stage_submit(&stage, &stage_admin, yaml, &dry);
    expect_effective(
        json_incref(json_object_get(json_array_get(json_object_get(answer.body, "jobs"), 0), "prediction")),
        c->effective);
    stage_answer_release(&answer);
    stage_must_start(&stage, &job);
    stage_run(&stage, 5000);
    expect_nodes(&stage, "1", c->nodes);
    expect_job(&stage, "1", c->effective);
    expect_effective(core_explain(stage.core, &stage_admin, "1", NULL), c->effective);
    stage_restart(&stage);
    expect_job(&stage, "1", c->effective);
    expect_nodes(&stage, "1", c->nodes);
    free(yaml);
    stage_close(&stage);
}

/* ---- queues ---- */

static const struct queue_case {
    const char *name;
    const char *before, *after;  /* applied one after the other; before may be NULL */
    const char *change;          /* of leaf, by the latter */
    const char *own, *effective; /* of leaf */
} queue_cases[] = {
    {"nothing is said", NULL, TREE("", "", ""), "created", "null", "fragmentation from default"},
    {"its own", NULL, TREE("placement: spread", "", ", placement: pack"), "created", "pack", "pack from queue leaf"},
    {"from above", NULL, TREE("placement: spread", "", ""), "created", "null", "spread from queue top"},
    {"changed", TREE("", "", ", placement: pack"), QUEUE("leaf", "parent: middle, placement: spread"), "changed",
     "spread", "spread from queue leaf"},
    {"taken back by leaving it out", TREE("placement: spread", "", ", placement: pack"),
     QUEUE("leaf", "parent: middle"), "changed", "null", "spread from queue top"},
    {"said again", TREE("", "", ", placement: pack"), TREE("", "", ", placement: pack"), "unchanged", "pack",
     "pack from queue leaf"},
    {"moved below another queue", TREE("placement: spread", "", "") QUEUE("other", "placement: pack"),
     QUEUE("leaf", "parent: other"), "changed", "null", "pack from queue other"},
};

static void expect_leaf(struct stage *stage, const struct queue_case *c)
{
    json_t *view = core_queue(stage->core, &stage_admin, "leaf", NULL), *own = json_object_get(view, "placement");

    assert_non_null(own);
    assert_string_equal(json_is_null(own) ? "null" : json_string_value(own), c->own);
    expect_effective(view, c->effective);
}

static void test_placement__queue(void **state)
{
    const struct queue_case *c = *state;
    struct stage stage;

    stage_open(&stage, NULL);
    if (c->before)
        apply(&stage, c->before, NULL);
    apply(&stage, c->after, c->change);
    expect_leaf(&stage, c);
    stage_restart(&stage);
    expect_leaf(&stage, c);
    stage_close(&stage);
}

static void test_placement__what_is_none_is_refused_with_its_path(void **state)
{
    struct stage_answer answer = stage_apply(*state, QUEUE("top", "") QUEUE("leaf", "parent: top, placement: heap"));
    const json_t *problem = json_array_get(answer.problems, 0);

    assert_int_equal(json_array_size(answer.problems), 1);
    assert_int_equal(json_integer_value(json_object_get(problem, "document")), 1);
    assert_string_equal(json_string_value(json_object_get(problem, "field")), "spec.placement");
    assert_string_equal(json_string_value(json_object_get(problem, "detail")),
                        "\"heap\" is none of fragmentation, pack, spread");
    stage_answer_release(&answer);
    assert_null(core_queue(((struct stage *)*state)->core, &stage_admin, "top", NULL)); /* nothing was applied */
}

/* ---- changes while jobs wait and run ---- */

static void fill_cluster(struct stage *stage, int seconds)
{
    const struct stage_job all = {.name = "all", .members = 4, .gpus = 1, .seconds = seconds};

    stage_must_start(stage, &all);
    stage_run(stage, 1000);
}

static void test_placement__a_change_counts_for_whoever_waits(void **state)
{
    struct stage *stage = *state;

    apply(stage, TREE("placement: pack", "", ""), NULL);
    fill_cluster(stage, 20);
    stage_must_start(stage, &pair);
    stage_run(stage, 1000);
    assert_string_equal(stage_state(stage, "2"), "Pending");
    expect_job(stage, "2", "pack from queue top");
    apply(stage, QUEUE("top", "placement: spread"), "changed");
    expect_job(stage, "2", "spread from queue top");
    stage_run(stage, 30000);
    expect_nodes(stage, "2", "n1 n2");
    expect_job(stage, "2", "spread from queue top");
}

/* The round was begun with what the queue said before: its answer is not taken. */
static void test_placement__a_change_during_a_round_counts_too(void **state)
{
    const struct stage_options options = {.planning_ms = 1000};
    struct stage stage;

    (void)state;
    stage_open_with(&stage, &options);
    apply(&stage, TREE("placement: pack", "", ""), NULL);
    stage_must_start(&stage, &pair);
    stage_run(&stage, 500);
    apply(&stage, QUEUE("top", "placement: spread"), "changed");
    assert_string_equal(stage_state(&stage, "1"), "Pending");
    stage_run(&stage, 5000);
    expect_nodes(&stage, "1", "n1 n2");
    expect_job(&stage, "1", "spread from queue top");
    stage_close(&stage);
}

static void test_placement__a_gang_shows_what_it_was_placed_by_then(void **state)
{
    struct stage *stage = *state;
    struct stage_answer answer;

    apply(stage, TREE("", "", ", placement: spread"), NULL);
    stage_must_start(stage, &pair);
    stage_run(stage, 5000);
    apply(stage, QUEUE("leaf", "parent: middle, placement: pack"), "changed");
    stage_run(stage, 5000);
    expect_nodes(stage, "1", "n1 n2");
    expect_job(stage, "1", "spread from queue leaf");
    stage_restart(stage);
    expect_job(stage, "1", "spread from queue leaf");
    answer = stage_action(stage, "1", JOB_ACTION_REQUEUE);
    stage_answer_release(&answer);
    stage_run(stage, 5000);
    expect_nodes(stage, "1", "n1 n1"); /* the next attempt is planned by what is said now */
    expect_job(stage, "1", "pack from queue leaf");
}

static void test_placement__of_a_job_that_has_ended_none_is_shown(void **state)
{
    struct stage *stage = *state;
    struct stage_job job = pair;

    apply(stage, TREE("", "", ", placement: spread"), NULL);
    job.seconds = 1;
    stage_must_start(stage, &job);
    stage_run(stage, 30000);
    assert_string_equal(stage_state(stage, "1"), "Succeeded");
    expect_job(stage, "1", "nothing");
}

/* A version that did not record it could not do otherwise than as the job said, or by default. */
static void test_placement__an_attempt_of_an_older_version_was_placed_as_its_job_says(void **state)
{
    struct stage *stage = *state;
    char path[128];
    sqlite3 *db;

    apply(stage, TREE("", "", ", placement: spread"), NULL);
    stage_must_start(stage, &pair);
    stage_run(stage, 5000);
    snprintf(path, sizeof(path), "%s/queued.db", stage->folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "update attempt set effective = null", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    stage_restart(stage);
    expect_job(stage, "1", "fragmentation from default");
}

int main(void)
{
#define TEST(fact) cmocka_unit_test_setup_teardown(test_placement__##fact, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_none_is_refused_with_its_path),
        TEST(a_change_counts_for_whoever_waits),
        cmocka_unit_test(test_placement__a_change_during_a_round_counts_too),
        TEST(a_gang_shows_what_it_was_placed_by_then),
        TEST(an_attempt_of_an_older_version_was_placed_as_its_job_says),
        TEST(of_a_job_that_has_ended_none_is_shown),
    };

    return RUN_TABLE(test_placement__gang, gang_cases) + RUN_TABLE(test_placement__queue, queue_cases) +
           cmocka_run_group_tests(tests, NULL, NULL);
}
