/* A driver that restarts takes its slices away and brings them back. That fails no job, whatever the job was doing. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "test/support/stage.h"

static const struct stage_job train = {.name = "train", .members = 4, .gpus = 1, .seconds = 10};

static void must_command(struct stage *stage, const char *json)
{
    struct error err = {0};

    if (stage_command(stage, json, &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
}

static void put_back(struct stage *stage, json_t *slice)
{
    json_t *put;
    char *words;

    json_object_del(json_object_get(slice, "metadata"), "uid");
    json_object_del(json_object_get(slice, "metadata"), "resourceVersion");
    put = json_pack("{s:o}", "putObject", slice);
    words = json_dumps(put, JSON_COMPACT);
    must_command(stage, words);
    free(words);
    json_decref(put);
}

static const struct slices_case {
    const char *name;
    const char *before, *after; /* what holds the job up at that point, and lets it go on */
    const char *state;          /* that it is in then */
    const char *bind_classes;
    bool is_late, is_restarted; /* submitted while they are gone; the server is started again meanwhile */
} slices_cases[] = {
    {"while it runs", NULL, NULL, "Running", NULL, false, false},
    {"while it runs, and the server is started again", NULL, NULL, "Running", NULL, false, true},
    {"while the scheduler is slow", "{\"hold\": \"schedule\"}", "{\"release\": \"schedule\"}", "Launching", NULL, false,
     false},
    {"while the scheduler is slow, in bind mode", "{\"hold\": \"schedule\"}", "{\"release\": \"schedule\"}",
     "Launching", "gpu", false, true},
    {"while it is created", "{\"fail\": \"create\", \"kind\": \"Pod\", \"error\": \"unavailable\"}", NULL, "Admitted",
     NULL, false, false},
    {"before it is submitted", NULL, NULL, "Pending", NULL, true, false},
};

static void start(struct stage *stage)
{
    stage_must_start(stage, &train);
    stage_settle(stage);
}

static void check_end(struct stage *stage)
{
    json_t *status = core_status(stage->core);

    assert_string_equal(stage_state(stage, "train"), "Succeeded");
    assert_int_equal(stage_n_moves(stage, "train", "Admitted"), 1);
    assert_int_equal(stage_n_moves(stage, "train", "Running"), 1);
    assert_int_equal(json_integer_value(json_object_get(status, "drift")), 0);
    assert_int_equal(relay_n_ours(&stage->relay), 0);
    json_decref(status);
}

static void test_core_slices__case(void **state)
{
    static const char *const names[] = {"n1-gpus", "n2-gpus"};
    const struct slices_case *c = *state;
    json_t *slices[2];
    struct stage stage;
    char text[120];

    stage_open_with(&stage, &(struct stage_options){.bind_classes = c->bind_classes});
    if (c->before)
        must_command(&stage, c->before);
    if (!c->is_late)
        start(&stage);
    stage_run(&stage, strcmp(c->state, "Admitted") == 0 ? 0 : 1000);
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), "ResourceSlice//%s", names[i]);
        slices[i] = json_deep_copy(json_object_get(stage.relay.objects, text));
        assert_non_null(slices[i]);
        snprintf(text, sizeof(text), "{\"deleteObject\": {\"kind\": \"ResourceSlice\", \"name\": \"%s\"}}", names[i]);
        must_command(&stage, text);
    }
    stage_settle(&stage);
    if (c->is_late)
        start(&stage);
    if (c->is_restarted)
        stage_restart(&stage);
    assert_string_equal(stage_state(&stage, "train"), c->state);
    stage_run(&stage, 2500);
    put_back(&stage, slices[0]);
    stage_run(&stage, 1000);
    put_back(&stage, slices[1]);
    if (c->after)
        must_command(&stage, c->after);
    stage_run(&stage, 60000);
    check_end(&stage);
    stage_close(&stage);
}

int main(void)
{
    return RUN_TABLE(test_core_slices__case, slices_cases);
}
