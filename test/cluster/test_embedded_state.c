/* The server is killed and comes again: nothing acknowledged is lost, and time goes on from where it was. */
#include "test/cluster/world.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queued/cluster/embedded/journal.h"

#include "test/support/cmocka.h"

/* A story with steps at fixed times; the summary afterwards must not depend on when the server was killed. */
static void story(struct world *world, size_t kill_after_step)
{
    for (size_t step = 0; step < 12; step++) {
        char name[16];

        snprintf(name, sizeof(name), "x%zu", step);
        switch (step) {
        case 0:
            assert_int_equal(world_create(world, NULL, "%s",
                                          "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'anchor', "
                                          "'labels': {'" LABEL_JOB "': '1'}}}"),
                             ERR_NONE);
            break;
        case 1:
        case 2:
        case 3:
            assert_int_equal(world_claim(world, name, "any", 2), ERR_NONE);
            assert_int_equal(world_pod(world, name, name, true, "3s"), ERR_NONE);
            break;
        case 4:
            assert_int_equal(world_ungate(world, "default", "x1"), ERR_NONE);
            assert_int_equal(world_ungate(world, "default", "x2"), ERR_NONE);
            break;
        case 5:
            assert_int_equal(world_ungate(world, "default", "x3"), ERR_NONE);
            break;
        case 7:
            assert_int_equal(world_delete(world, "Pod", "default", "x3", NULL), ERR_NONE);
            break;
        case 8:
            assert_int_equal(world_command(world, NULL, "{'nodeDown': 'n2'}"), ERR_NONE);
            break;
        case 9:
            assert_int_equal(world_pod(world, name, "x1", false, "1m"), ERR_NONE);
            break;
        default:
            break;
        }
        if (step == kill_after_step)
            world_restart(world);
        world_run(world, 333);
    }
    world_run(world, 5000);
}

static void test_state__a_kill_after_any_step_changes_nothing(void **state)
{
    char *undisturbed = NULL;

    (void)state;
    for (size_t kill = 0; kill <= 12; kill++) { /* 12: never */
        struct world world;
        char *summary, *uids;

        world_open(&world, world_two_nodes, true);
        story(&world, 12 - kill);
        world_restart(&world);
        summary = world_summary(&world);
        uids = json_dumps(world.objects, JSON_SORT_KEYS | JSON_COMPACT);
        if (!undisturbed) {
            undisturbed = uids;
            assert_non_null(strstr(summary, "Pod/default/x1 Succeeded@n1 exit 0\n"));
            assert_non_null(strstr(summary, "Pod/default/x9 Running@n1\n"));
            assert_non_null(strstr(summary, "ConfigMap/default/anchor there\n"));
            assert_null(strstr(summary, "Pod/default/x3"));
        } else {
            assert_string_equal(uids, undisturbed); /* every byte of every object */
            free(uids);
        }
        free(summary);
        assert_int_equal(world.n_warnings, 0);
        world_close(&world);
    }
    free(undisturbed);
}

static void test_state__what_should_have_ended_meanwhile_ends_at_once_with_its_time(void **state)
{
    struct world world;
    const json_t *container;

    (void)state;
    world_open(&world, world_two_nodes, true);
    world_claim(&world, "c", "any", 1);
    world_pod(&world, "p", "c", false, "60s");
    world_pod(&world, "q", NULL, false, "60s");
    world_run(&world, 1000);
    world_delete(&world, "Pod", "default", "q", NULL);
    world_stop(&world);
    clock_advance(world.clock, clock_now_ms(world.clock) + 3600000, NULL, NULL);
    world_resume(&world);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Succeeded@n1 exit 0");
    assert_string_equal(world_state(&world, "Pod/default/q"), "none");
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "free");
    container = json_array_get(
        json_object_get(json_object_get(world_object(&world, "Pod/default/p"), "status"), "containerStatuses"), 0);
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(json_object_get(container, "state"), "terminated"), "finishedAt")),
                        "2026-01-01T00:01:00.150Z");
    world_close(&world);
}

static void test_state__uids_are_not_given_twice(void **state)
{
    struct world world;
    char first[64];
    const char *second;

    (void)state;
    world_open(&world, world_two_nodes, true);
    world_claim(&world, "c", "any", 1);
    snprintf(first, sizeof(first), "%s",
             json_string_value(
                 json_object_get(json_object_get(world_object(&world, "ResourceClaim/default/c"), "metadata"), "uid")));
    world_delete(&world, "ResourceClaim", "default", "c", NULL); /* the newest object is gone */
    world_restart(&world);
    world_claim(&world, "c", "any", 1);
    second = json_string_value(
        json_object_get(json_object_get(world_object(&world, "ResourceClaim/default/c"), "metadata"), "uid"));
    assert_string_not_equal(first, second);
    world_close(&world);
}

/* ---- files ---- */

static void state_path(const struct world *world, const char *name, char out[256])
{
    snprintf(out, 256, "%s/state/%s", world->folder, name);
}

static void write_state(const struct world *world, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    state_path(world, name, path);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static bool state_has(const struct world *world, const char *name)
{
    char path[256];

    state_path(world, name, path);
    return access(path, F_OK) == 0;
}

static void test_state__each_object_is_a_file_that_goes_with_it(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, true);
    world_claim(&world, "c", "any", 1);
    assert_true(state_has(&world, "ResourceClaim_default_c.json"));
    assert_false(state_has(&world, "Node__n1.json"));
    world_delete(&world, "ResourceClaim", "default", "c", NULL);
    assert_false(state_has(&world, "ResourceClaim_default_c.json"));
    world_close(&world);
}

static const struct damage_case {
    const char *name, *text;
} damage_cases[] = {
    {"an empty file", ""},
    {"half an object", "{\"apiVersion\": \"v1\", \"kind\": \"Po"},
    {"no object", "[1, 2]"},
    {"bytes", "\x01\xff\xfe\x80"},
    {"another object's name", "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"q\", "
                              "\"namespace\": \"default\", \"uid\": \"u\"}}"},
    {"no uid",
     "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\", \"namespace\": \"default\"}}"},
    {"a pod without containers", "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\", "
                                 "\"namespace\": \"default\", \"uid\": \"u\"}, "
                                 "\"spec\": {}}"},
    {"strings where objects belong", "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\", "
                                     "\"namespace\": \"default\", \"uid\": \"u\"}, "
                                     "\"spec\": \"x\", \"status\": 7}"},
    {"an unknown kind", "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"p\", \"namespace\": "
                        "\"default\", \"uid\": "
                        "\"u\"}}"},
};

static void test_state__damage(void **state)
{
    const struct damage_case *c = *state;
    const char *file = strstr(c->text, "Secret") ? "Secret_default_p.json" : "Pod_default_p.json";
    char aside[64];
    struct world world;

    world_open(&world, world_two_nodes, true);
    world_pod(&world, "good", NULL, true, NULL);
    world_stop(&world);
    write_state(&world, file, c->text);
    world_resume(&world);
    assert_string_equal(world_state(&world, "Pod/default/p"), "none");
    assert_string_equal(world_state(&world, "Pod/default/good"), "Pending gated");
    assert_int_equal(world.n_warnings, 1);
    assert_false(state_has(&world, file));
    snprintf(aside, sizeof(aside), "%s.damaged", file);
    assert_true(state_has(&world, aside));
    world_restart(&world);
    assert_int_equal(world.n_warnings, 1); /* said once */
    world_close(&world);
}

static void test_state__odd_status_values_do_no_harm(void **state)
{
    static const char *const statuses[] = {
        "{\"phase\": 7}",
        "{\"phase\": \"Running\", \"containerStatuses\": [7, {}]}",
        "{\"phase\": \"Running\", \"startTime\": \"yesterday\", \"containerStatuses\": {\"a\": 1}}",
        "{\"conditions\": [null, {}, {\"type\": 1}]}",
        "{\"resourceClaimStatuses\": [1, {}]}",
        "\"x\"",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        struct world world;
        BUF text = {0};

        world_open(&world, world_two_nodes, true);
        world_stop(&world);
        buf_addf(
            &text,
            "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\", \"namespace\": \"default\", "
            "\"uid\": \"u\", \"finalizers\": \"x\"}, \"spec\": {\"containers\": [{\"name\": \"a\", \"image\": "
            "\"x\"}]%s}, "
            "\"status\": %s}",
            i % 2 ? ", \"nodeName\": \"n1\"" : "", statuses[i]);
        write_state(&world, "Pod_default_p.json", buf_str(&text));
        world_resume(&world);
        world_run(&world, 60000);
        world_delete(&world, "Pod", "default", "p", NULL);
        world_run(&world, 1000);
        assert_string_equal(world_state(&world, "Pod/default/p"), "none");
        world_close(&world);
    }
}

static void test_state__leftovers_of_an_untold_turn_are_swept(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, true);
    world_stop(&world);
    write_state(&world, "Pod_default_p.json.tmp", "{");
    world_resume(&world);
    assert_false(state_has(&world, "Pod_default_p.json.tmp"));
    assert_int_equal(world.n_warnings, 0);
    world_close(&world);
}

/* ---- the log ---- */

static void read_state(const struct world *world, const char *name, struct buf *out)
{
    char path[256];
    FILE *file;
    int c;

    state_path(world, name, path);
    file = fopen(path, "rb");
    assert_non_null(file);
    while ((c = fgetc(file)) != EOF)
        buf_addc(out, (char)c);
    fclose(file);
}

static void write_bytes(const struct world *world, const char *name, const char *bytes, size_t n)
{
    char path[256];
    FILE *file;

    state_path(world, name, path);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* A turn that takes one object away and makes two: the folder before it, and the log after it. */
struct torn {
    struct world world;
    struct buf gone, log;
};

static void torn_map(struct world *world, const char *name)
{
    json_t *map =
        world_json("{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': '%s', 'labels': {'" LABEL_JOB
                   "': '1'}}, 'data': {'words': 'of more than one line\\n\\u0001turn '}}",
                   name);

    world->cluster->ops->create(world->cluster, map, NULL, NULL);
    json_decref(map);
}

static void torn_open(struct torn *torn)
{
    struct world *world = &torn->world;

    *torn = (struct torn){0};
    world_open(world, world_two_nodes, true);
    torn_map(world, "gone");
    world_run(world, 0);
    world_restart(world); /* empties the log */
    read_state(world, "ConfigMap_default_gone.json", &torn->gone);
    world->cluster->ops->remove(world->cluster, "ConfigMap", "default", "gone", NULL, NULL, NULL);
    torn_map(world, "a");
    torn_map(world, "b");
    world_run(world, 0);
    read_state(world, "log", &torn->log);
    world_stop(world);
}

/* Bring the folder back to before the turn, but for some files, with this log; come up. */
static void torn_resume(struct torn *torn, const struct buf *log, size_t n, unsigned kept)
{
    static const char *const made[] = {"ConfigMap_default_a.json", "ConfigMap_default_b.json", "version"};
    char path[256];

    write_bytes(&torn->world, "ConfigMap_default_gone.json", torn->gone.data, torn->gone.len);
    for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
        state_path(&torn->world, made[i], path);
        if (!(kept >> i & 1))
            (void)unlink(path);
    }
    write_bytes(&torn->world, "log", log->data, n);
    world_resume(&torn->world);
}

static void torn_close(struct torn *torn)
{
    buf_release(&torn->gone);
    buf_release(&torn->log);
    world_close(&torn->world);
}

static void assert_torn(struct torn *torn, bool has_happened)
{
    assert_string_equal(world_state(&torn->world, "ConfigMap/default/gone"), has_happened ? "none" : "there");
    assert_string_equal(world_state(&torn->world, "ConfigMap/default/a"), has_happened ? "there" : "none");
    assert_string_equal(world_state(&torn->world, "ConfigMap/default/b"), has_happened ? "there" : "none");
    assert_int_equal(torn->world.n_warnings, 0);
}

static void test_state__a_turn_cut_off_at_any_byte_has_not_happened(void **state)
{
    struct torn torn;

    (void)state;
    torn_open(&torn);
    for (size_t n = 0; n <= torn.log.len; n++) {
        torn_resume(&torn, &torn.log, n, 0);
        assert_torn(&torn, n == torn.log.len);
        world_stop(&torn.world);
    }
    world_resume(&torn.world);
    torn_close(&torn);
}

/* A server that dies while it carries a turn out: the next one carries out what is left of it. */
static void test_state__a_turn_in_the_log_is_carried_out(void **state)
{
    struct torn torn;

    (void)state;
    torn_open(&torn);
    for (unsigned kept = 0; kept < 8; kept++) {
        torn_resume(&torn, &torn.log, torn.log.len, kept);
        assert_torn(&torn, true);
        world_restart(&torn.world);
        assert_torn(&torn, true);
        world_stop(&torn.world);
    }
    world_resume(&torn.world);
    torn_close(&torn);
}

static void test_state__a_damaged_turn_is_told_and_the_others_count(void **state)
{
    struct torn torn;
    BUF log = {0};

    (void)state;
    torn_open(&torn);
    buf_add(&log, torn.log.data, torn.log.len);
    buf_add(&log, torn.log.data, torn.log.len);
    log.data[100] ^= 4; /* in the bytes of the first of two */
    torn_resume(&torn, &log, log.len, 0);
    assert_string_equal(world_state(&torn.world, "ConfigMap/default/a"), "there");
    assert_int_equal(torn.world.n_warnings, 1);
    assert_non_null(strstr(buf_str(&torn.world.warnings), "damaged at 1 place:"));
    world_restart(&torn.world);
    assert_int_equal(torn.world.n_warnings, 1);
    torn_close(&torn);
}

static void test_state__a_log_that_has_grown_large_is_emptied(void **state)
{
    char *words = malloc((1 << 20) + 1), path[256];
    struct world world;
    struct stat st;

    (void)state;
    memset(words, 'x', 1 << 20);
    words[1 << 20] = '\0';
    world_open(&world, world_two_nodes, true);
    state_path(&world, "log", path);
    for (int i = 0; i < 17; i++) {
        json_t *map = world_json("{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'm%d', 'labels': {"
                                 "'" LABEL_JOB "': '1'}}, 'data': {'words': '%s'}}",
                                 i, words);

        assert_int_equal(world_create_json(&world, map, NULL), ERR_NONE);
        json_decref(map);
        assert_int_equal(stat(path, &st), 0);
        assert_true(i >= 15 || st.st_size > i << 20);
    }
    assert_true(st.st_size < 2 << 20);
    world_restart(&world);
    assert_string_equal(world_state(&world, "ConfigMap/default/m0"), "there");
    assert_string_equal(world_state(&world, "ConfigMap/default/m16"), "there");
    free(words);
    world_close(&world);
}

/* Names in a log that are none of ours, and lines that say nothing. */
static void test_state__odd_lines_of_a_turn_do_no_harm(void **state)
{
    static const char *const odd[] = {
        "put ../x.json 1\na\n",
        "put x.json 18446744073709551615\na\n",
        "put x.json 99\na\n",
        "del lock\n",
        "put log 1\na\n",
        "nonsense",
        "\n\n\n",
        "put x.json -1\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        struct journal *journal;
        struct world world;
        char path[256];
        int dir;

        world_open(&world, world_two_nodes, true);
        world_stop(&world);
        state_path(&world, "", path);
        dir = open(path, O_RDONLY | O_DIRECTORY);
        assert_true(dir >= 0);
        assert_int_equal(journal_open(dir, "log", &journal, NULL), 0);
        assert_int_equal(journal_append(journal, 1, odd[i], strlen(odd[i]), NULL), 0);
        journal_close(journal);
        close(dir);
        world_resume(&world);
        assert_int_equal(world.n_warnings, 0);
        assert_true(state_has(&world, "lock"));
        assert_false(state_has(&world, "x.json"));
        world_close(&world);
    }
}

static void count_answer(void *ctx, const struct error *err, const json_t *object)
{
    size_t *n = ctx;

    (void)object;
    assert_null(err);
    ++*n;
}

static void test_state__nothing_is_told_while_the_folder_cannot_be_written(void **state)
{
    struct world world;
    char path[256];
    size_t n_answers = 0;
    json_t *pod;

    (void)state;
    world_open(&world, world_two_nodes, true);
    state_path(&world, "spare.tmp", path);
    assert_int_equal(mkdir(path, 0700), 0); /* where the pod's file would be made */
    pod = world_json(
        "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'a', "
        "'image': 'x'}]}}");
    world.cluster->ops->create(world.cluster, pod, count_answer, &n_answers);
    json_decref(pod);
    world_run(&world, 5000);
    assert_int_equal(n_answers, 0);
    assert_string_equal(buf_str(&world.stream), "");
    assert_int_equal(world.n_warnings, 1); /* said once */
    assert_int_equal(rmdir(path), 0);
    world_run(&world, 1000);
    assert_int_equal(n_answers, 1);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    world_restart(&world);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    world_close(&world);
}

static void test_state__one_server_at_a_time(void **state)
{
    struct world world;
    struct cluster *second;
    struct embedded_options options;
    char manifests[128], folder[128];
    struct error err = {0};

    (void)state;
    world_open(&world, world_two_nodes, true);
    snprintf(manifests, sizeof(manifests), "%s/manifests", world.folder);
    snprintf(folder, sizeof(folder), "%s/state", world.folder);
    options = (struct embedded_options){.manifests = manifests, .state = folder};
    assert_int_equal(embedded_new(&options, world.clock, NULL, NULL, &second, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    world_close(&world);
}

/* ---- over manifests ---- */

static void append_manifest(const struct world *world, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/manifests/more.yaml", world->folder);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

#define NODE3(cpu)                                                                                                     \
    "apiVersion: v1\nkind: Node\nmetadata: {name: n3}\nstatus: {allocatable: {cpu: '" cpu                              \
    "', memory: 1Gi, pods: '9'}}\n"

static bool is_node_ready(struct world *world, const char *key)
{
    const json_t *taints = json_object_get(json_object_get(world_object(world, key), "spec"), "taints");

    return json_array_size(taints) == 0;
}

static void test_state__a_changed_manifest_object_is_remembered_until_its_manifest_changes(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, true);
    append_manifest(&world, NODE3("4"));
    world_restart(&world);
    assert_int_equal(world_command(&world, NULL, "{'nodeDown': 'n3'}"), ERR_NONE);
    assert_false(is_node_ready(&world, "Node/n3"));
    world_restart(&world);
    assert_false(is_node_ready(&world, "Node/n3"));
    assert_int_equal(world.n_warnings, 0);
    append_manifest(&world, NODE3("8"));
    world_restart(&world);
    assert_true(is_node_ready(&world, "Node/n3"));
    assert_int_equal(world.n_warnings, 1);
    assert_non_null(strstr(buf_str(&world.warnings), "the manifest of Node//n3 has changed"));
    world_restart(&world);
    assert_int_equal(world.n_warnings, 1);
    world_close(&world);
}

static void test_state__a_removed_manifest_object_stays_away(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, true);
    assert_int_equal(world_command(&world, NULL, "{'deleteObject': {'kind': 'Node', 'name': 'n2'}}"), ERR_NONE);
    assert_string_equal(world_state(&world, "Node/n2"), "none");
    world_restart(&world);
    assert_string_equal(world_state(&world, "Node/n2"), "none");
    assert_string_equal(world_state(&world, "Node/n1"), "there");
    world_close(&world);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state__a_kill_after_any_step_changes_nothing),
        cmocka_unit_test(test_state__what_should_have_ended_meanwhile_ends_at_once_with_its_time),
        cmocka_unit_test(test_state__uids_are_not_given_twice),
        cmocka_unit_test(test_state__each_object_is_a_file_that_goes_with_it),
        cmocka_unit_test(test_state__odd_status_values_do_no_harm),
        cmocka_unit_test(test_state__leftovers_of_an_untold_turn_are_swept),
        cmocka_unit_test(test_state__a_turn_cut_off_at_any_byte_has_not_happened),
        cmocka_unit_test(test_state__a_turn_in_the_log_is_carried_out),
        cmocka_unit_test(test_state__a_damaged_turn_is_told_and_the_others_count),
        cmocka_unit_test(test_state__a_log_that_has_grown_large_is_emptied),
        cmocka_unit_test(test_state__odd_lines_of_a_turn_do_no_harm),
        cmocka_unit_test(test_state__nothing_is_told_while_the_folder_cannot_be_written),
        cmocka_unit_test(test_state__one_server_at_a_time),
        cmocka_unit_test(test_state__a_changed_manifest_object_is_remembered_until_its_manifest_changes),
        cmocka_unit_test(test_state__a_removed_manifest_object_stays_away),
    };
    int failed = RUN_TABLE(test_state__damage, damage_cases);

    return failed + cmocka_run_group_tests_name("embedded_state", tests, NULL, NULL);
}
