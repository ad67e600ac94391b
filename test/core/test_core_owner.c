/* Two servers look at one cluster: what another one made is anybody's to this one. */
#include "test/support/cmocka.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "test/support/stage.h"

/* A job's pod of another server, on a node and with one of its devices, in the shape of a stray of ours: the labels
 * name a job that this server does not have. */
static const char foreign_claim[] =
    "{\"putObject\": {\"apiVersion\": \"resource.k8s.io/v1\", \"kind\": \"ResourceClaim\", \"metadata\": {\"name\": "
    "\"theirs\", \"namespace\": \"default\", \"labels\": {\"queue.dra/job\": \"%s\", \"queue.dra/attempt\": \"1\"%s}}, "
    "\"spec\": {\"devices\": {\"requests\": [{\"name\": \"r\", \"exactly\": {\"deviceClassName\": \"gpu\"}}]}}, "
    "\"status\": {\"allocation\": {\"devices\": {\"results\": [{\"request\": \"r\", \"driver\": \"gpu.example.com\", "
    "\"pool\": \"n1\", \"device\": \"gpu-0\"}]}, \"nodeSelector\": {\"nodeSelectorTerms\": [{\"matchFields\": "
    "[{\"key\": \"metadata.name\", \"operator\": \"In\", \"values\": [\"n1\"]}]}]}}}}}";

static void put_claim(struct stage *stage, const char *job, const char *more_labels)
{
    char command[1200];

    snprintf(command, sizeof(command), foreign_claim, job, more_labels);
    assert_int_equal(stage_command(stage, command, NULL), 0);
}

static bool has_claim(const struct stage *stage)
{
    return json_object_get(stage->relay.objects, "ResourceClaim/default/theirs") != NULL;
}

static size_t n_foreign(struct stage *stage)
{
    json_t *status = core_status(stage->core), *strays = core_strays(stage->core, &stage_admin, NULL);
    size_t n = (size_t)json_integer_value(json_object_get(status, "foreignObjects"));

    assert_int_equal(json_array_size(json_object_get(strays, "items")), n);
    json_decref(status);
    json_decref(strays);
    return n;
}

static const struct owner_case {
    const char *name;
    const char *more_labels;
    bool is_ours;
} owner_cases[] = {
    {"ours without a job is removed", ", \"queue.dra/server\": \"" STAGE_SERVER "\"", true},
    {"another server's stays", ", \"queue.dra/server\": \"another\"", false},
    {"nobody's stays", "", false},
};

static void test_core_owner__case(void **state)
{
    const struct owner_case *c = *state;
    struct stage stage;

    stage_open(&stage, NULL);
    put_claim(&stage, "99", c->more_labels);
    stage_run(&stage, 100000);
    assert_int_equal(has_claim(&stage), !c->is_ours);
    assert_int_equal(n_foreign(&stage), c->is_ours ? 0 : 1);
    stage_restart(&stage);
    assert_int_equal(n_foreign(&stage), c->is_ours ? 0 : 1);
    relay_cut(&stage.relay, 1000);
    stage_run(&stage, 2000);
    assert_int_equal(n_foreign(&stage), c->is_ours ? 0 : 1);
    stage_close(&stage);
}

/* Its devices are taken all the same, and it is not shown as a job of ours that has the same id. */
static void test_core_owner__what_is_anothers_counts_in_the_simulation(void **state)
{
    struct stage stage;
    json_t *devices, *device;
    size_t i, n_seen = 0;

    (void)state;
    stage_open(&stage, NULL);
    put_claim(&stage, "1", ", \"queue.dra/server\": \"another\"");
    stage_must_start(&stage, &(struct stage_job){.name = "four", .members = 4, .gpus = 1, .seconds = 10});
    stage_run(&stage, 10000);
    assert_string_equal(stage_state(&stage, "four"), "Pending");
    devices = core_devices(stage.core, &stage_admin, NULL);
    json_array_foreach (json_object_get(devices, "items"), i, device)
        if (json_is_string(json_object_get(device, "claim"))) {
            assert_true(json_is_null(json_object_get(device, "job")));
            n_seen++;
        }
    assert_int_equal(n_seen, 1);
    json_decref(devices);
    stage_must_start(&stage, &(struct stage_job){.name = "three", .members = 3, .gpus = 1, .seconds = 10});
    stage_run(&stage, 60000);
    assert_string_equal(stage_state(&stage, "three"), "Succeeded");
    assert_true(has_claim(&stage));
    stage_close(&stage);
}

static void test_core_owner__only_administrators_see_them(void **state)
{
    const struct caller viewer = {.role = ROLE_VIEWER, .name = "v"};
    struct error err = {0};
    struct stage stage;

    (void)state;
    stage_open(&stage, NULL);
    assert_null(core_strays(stage.core, &viewer, &err));
    assert_int_equal(err.code, ERR_DENIED);
    stage_close(&stage);
}

/* Somebody takes the name of the server off a pod that runs: to us it is lost, and comes back under the next attempt.
 * What is left has the anchor as its owner, and goes with it. */
static void test_core_owner__an_object_whose_labels_were_changed_is_ours_no_more(void **state)
{
    struct stage stage;
    json_t *pod, *put;
    char *words;

    (void)state;
    stage_open(&stage, NULL);
    stage_must_start(&stage, &(struct stage_job){.name = "train", .members = 1, .gpus = 1, .seconds = 60});
    stage_run(&stage, 1000);
    assert_string_equal(stage_state(&stage, "train"), "Running");
    pod = json_deep_copy(json_object_get(stage.relay.objects, "Pod/default/train-1-1-w-0"));
    assert_non_null(pod);
    json_object_del(json_object_get(json_object_get(pod, "metadata"), "labels"), LABEL_SERVER);
    put = json_pack("{s:o}", "putObject", pod);
    words = json_dumps(put, JSON_COMPACT);
    assert_int_equal(stage_command(&stage, words, NULL), 0);
    free(words);
    json_decref(put);
    stage_run(&stage, 600000);
    assert_string_equal(stage_state(&stage, "train"), "Succeeded");
    assert_int_equal(stage_n_moves(&stage, "train", "Running"), 2);
    assert_int_equal(n_foreign(&stage), 0);
    stage_close(&stage);
}

/* As if the attempt had been begun by a version that did not name the server: its objects, stored and real, lose the
 * label while the server is away. They are ours all the same, and the job runs on to its end. */
static void test_core_owner__an_attempt_of_an_older_version_runs_on(void **state)
{
    struct stage stage;
    char path[128], *words;
    const char *key;
    json_t *object, *all, *put;
    sqlite3 *db;

    (void)state;
    stage_open(&stage, NULL);
    stage_must_start(&stage, &(struct stage_job){.name = "train", .members = 2, .gpus = 1, .seconds = 10});
    stage_run(&stage, 1000);
    assert_string_equal(stage_state(&stage, "train"), "Running");
    relay_detach(&stage.relay); /* nobody hears of it */
    snprintf(path, sizeof(path), "%s/queued.db", stage.folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "update launch_object set body ="
                                  " json_remove(body, '$.metadata.labels.\"queue.dra/server\"')",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    all = json_deep_copy(stage.relay.objects);
    json_object_foreach (all, key, object) {
        json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");

        if (!json_object_get(labels, LABEL_SERVER))
            continue;
        json_object_del(labels, LABEL_SERVER);
        put = json_pack("{s:O}", "putObject", object);
        words = json_dumps(put, JSON_COMPACT);
        assert_int_equal(stage_command(&stage, words, NULL), 0);
        free(words);
        json_decref(put);
    }
    json_decref(all);
    stage_restart(&stage);
    assert_string_equal(stage_state(&stage, "train"), "Running");
    assert_int_equal(n_foreign(&stage), 0);
    stage_run(&stage, 60000);
    assert_string_equal(stage_state(&stage, "train"), "Succeeded");
    assert_int_equal(stage_n_moves(&stage, "train", "Running"), 1);
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
}

/* The id is of the database: made once. */
static void test_core_owner__the_name_is_the_stores(void **state)
{
    char first[STORE_SERVER_ID_SIZE], second[STORE_SERVER_ID_SIZE];
    struct stage stage;

    (void)state;
    stage_open(&stage, NULL);
    assert_int_equal(store_server_id(stage.store, first, NULL), 0);
    assert_int_equal(strlen(first), 16);
    stage_restart(&stage);
    assert_int_equal(store_server_id(stage.store, second, NULL), 0);
    assert_string_equal(first, second);
    stage_close(&stage);
    stage_open(&stage, NULL);
    assert_int_equal(store_server_id(stage.store, second, NULL), 0);
    assert_string_not_equal(first, second);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_owner__what_is_anothers_counts_in_the_simulation),
        cmocka_unit_test(test_core_owner__only_administrators_see_them),
        cmocka_unit_test(test_core_owner__an_object_whose_labels_were_changed_is_ours_no_more),
        cmocka_unit_test(test_core_owner__an_attempt_of_an_older_version_runs_on),
        cmocka_unit_test(test_core_owner__the_name_is_the_stores),
    };

    return RUN_TABLE(test_core_owner__case, owner_cases) + cmocka_run_group_tests(tests, NULL, NULL);
}
