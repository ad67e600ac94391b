/* Seeded schedules of submissions, people's actions, failing calls, lost pods, crashes and restarts. After every step:
 *
 *   - no member of two attempts of one job exists at once;
 *   - a job that is not live has nothing in the cluster, once everything has come to rest;
 *   - no device is held by two jobs;
 * and in the end, with the cluster well again, every job has ended and nothing is left. The seed is printed on failure;
 * CORE_SEEDS=n runs n seeds, CORE_SEED=s only that one. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "allocator/base/rng.h"
#include "queued/cluster/embedded/embedded.h"
#include "test/support/stage.h"

#define N_STEPS 40

struct run {
    struct stage stage;
    struct rng rng;
    uint64_t seed;
    int n_jobs;
};

static int below(struct run *run, int n)
{
    return (int)rng_below(&run->rng, (uint64_t)n);
}

/* ---- steps ---- */

static void do_submit(struct run *run)
{
    char name[16];
    int gpus = 1 + below(run, 2);
    const struct stage_job job = {.name = name,
                                  .queue = below(run, 2) ? "a" : "b",
                                  .members = 1 + below(run, 4 / gpus), /* so that it fits on the empty cluster */
                                  .gpus = gpus,
                                  .seconds = 1 + below(run, 20),
                                  .exit_code = below(run, 4) == 0,
                                  .retries = below(run, 3),
                                  .priority = below(run, 3)};
    char *yaml;
    const struct submit_options options = {.idempotency_key = name};
    struct stage_answer answer;

    snprintf(name, sizeof(name), "j%d", run->n_jobs);
    yaml = stage_job_yaml(&job);
    answer = stage_submit(&run->stage, &stage_admin, yaml, &options);
    run->n_jobs += answer.is_told && !answer.err.code; /* else the name is used again */
    stage_answer_release(&answer);
    free(yaml);
}

static void do_action(struct run *run)
{
    static const enum job_action actions[] = {JOB_ACTION_CANCEL, JOB_ACTION_HOLD, JOB_ACTION_RELEASE,
                                              JOB_ACTION_REQUEUE};
    struct stage_answer answer;
    char name[16];

    if (run->n_jobs == 0)
        return;
    snprintf(name, sizeof(name), "j%d", below(run, run->n_jobs));
    answer = stage_action(&run->stage, name, actions[below(run, 4)]); /* may be refused */
    stage_answer_release(&answer);
}

static void do_advance(struct run *run)
{
    stage_run(&run->stage, below(run, 8000));
}

static void do_restart(struct run *run)
{
    stage_restart(&run->stage);
}

static void do_crash(struct run *run)
{
    run->stage.crash_at = 1 + below(run, 20);
    stage_restart(&run->stage);
}

static void do_fault(struct run *run)
{
    static const enum err_code codes[] = {ERR_TIMEOUT, ERR_UNAVAILABLE, ERR_INVALID, ERR_CONFLICT, ERR_IO};

    run->stage.relay.fail_nth = run->stage.relay.n_calls + 1 + (size_t)below(run, 6);
    run->stage.relay.code = codes[below(run, 5)];
    run->stage.relay.fault = below(run, 2) ? RELAY_LOSE : RELAY_REFUSE;
}

static void do_lose_object(struct run *run)
{
    size_t n = json_object_size(run->stage.relay.objects), i = 0, pick = n ? (size_t)below(run, (int)n) : 0;
    const char *key;
    json_t *object;
    char command[300];

    json_object_foreach (run->stage.relay.objects, key, object)
        if (i++ == pick && json_object_get(json_object_get(json_object_get(object, "metadata"), "labels"), LABEL_JOB)) {
            snprintf(command, sizeof(command),
                     "{\"deleteObject\": {\"kind\": \"%s\", \"namespace\": \"default\", \"name\": \"%s\"}}",
                     json_string_value(json_object_get(object, "kind")),
                     json_string_value(json_object_get(json_object_get(object, "metadata"), "name")));
            stage_command(&run->stage, command, NULL);
            return;
        }
}

/* The autoscaler says something of one of the requests, if there are any. */
static void do_autoscaler(struct run *run)
{
    static const char *const types[] = {"Accepted", "Provisioned", "Failed", "BookingExpired"};
    const char *key, *type = types[below(run, 4)];
    json_t *object, *command;

    json_object_foreach (run->stage.relay.objects, key, object) {
        if (strncmp(key, "ProvisioningRequest/", 20) != 0)
            continue;
        object = json_deep_copy(object);
        json_object_set_new(
            object, "status",
            json_pack("{s:[{s:s, s:s, s:s}]}", "conditions", "type", type, "status", "True", "message", "so be it"));
        command = json_pack("{s:o}", "putObject", object);
        assert_int_equal(embedded_command(run->stage.relay.behind, command, NULL), 0);
        json_decref(command);
        stage_settle(&run->stage);
        return;
    }
}

static void (*const steps[])(struct run *run) = {do_submit,  do_submit, do_advance, do_advance,     do_action,
                                                 do_restart, do_crash,  do_fault,   do_lose_object, do_autoscaler};

/* ---- what must always hold ---- */

static const char *label(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(json_object_get(json_object_get(object, "metadata"), "labels"), key));
}

static void check_one_attempt(struct run *run)
{
    json_t *attempts = json_object(), *object;
    const char *key;

    json_object_foreach (run->stage.relay.objects, key, object) {
        const char *job = label(object, LABEL_JOB), *attempt = label(object, LABEL_ATTEMPT);
        const char *other = job ? json_string_value(json_object_get(attempts, job)) : NULL;

        if (!job || strcmp(json_string_value(json_object_get(object, "kind")), "Pod") != 0)
            continue;
        if (other && strcmp(other, attempt) != 0)
            fail_msg("seed %llu: job %s has attempts %s and %s", (unsigned long long)run->seed, job, other, attempt);
        json_object_set_new(attempts, job, json_string(attempt));
    }
    json_decref(attempts);
}

static void check_no_device_twice(struct run *run)
{
    json_t *holders = json_object(), *object, *result;
    const char *key;
    size_t i;

    json_object_foreach (run->stage.relay.objects, key, object) {
        const json_t *allocation = json_object_get(json_object_get(object, "status"), "allocation");

        json_array_foreach (json_object_get(json_object_get(allocation, "devices"), "results"), i, result) {
            BUF device = {0};

            buf_addf(&device, "%s/%s", json_string_value(json_object_get(result, "pool")),
                     json_string_value(json_object_get(result, "device")));
            if (json_object_get(holders, buf_str(&device)))
                fail_msg("seed %llu: device %s is held twice", (unsigned long long)run->seed, buf_str(&device));
            json_object_set_new(holders, buf_str(&device), json_string(key));
        }
    }
    json_decref(holders);
}

static void check_end(struct run *run)
{
    for (int i = 0; i < run->n_jobs; i++) {
        char name[16];
        const char *state;

        snprintf(name, sizeof(name), "j%d", i);
        state = stage_state(&run->stage, name);
        if (strcmp(state, "Succeeded") && strcmp(state, "Failed") && strcmp(state, "Cancelled"))
            fail_msg("seed %llu: %s is %s", (unsigned long long)run->seed, name, state);
    }
    if (relay_n_ours(&run->stage.relay) != 0)
        fail_msg("seed %llu: %zu objects are left", (unsigned long long)run->seed, relay_n_ours(&run->stage.relay));
}

static void release_all(struct run *run)
{
    for (int i = 0; i < run->n_jobs; i++) {
        struct stage_answer answer;
        char name[16];

        snprintf(name, sizeof(name), "j%d", i);
        answer = stage_action(&run->stage, name, JOB_ACTION_RELEASE);
        stage_answer_release(&answer);
    }
}

static void run_seed(uint64_t seed)
{
    struct run run = {.rng = {seed}, .seed = seed};

    stage_open_with(&run.stage, &(struct stage_options){.provisioning_class = seed % 2 ? "some.class" : NULL});
    for (int i = 0; i < N_STEPS; i++) {
        steps[below(&run, (int)ARRAY_SIZE(steps))](&run);
        check_one_attempt(&run);
        check_no_device_twice(&run);
    }
    run.stage.relay.fail_nth = 0;
    stage_restart(&run.stage); /* of a crash that may still be planned, too */
    release_all(&run);
    for (int i = 0; i < 60; i++) {
        stage_run(&run.stage, 60000);
        check_one_attempt(&run);
        check_no_device_twice(&run);
    }
    check_end(&run);
    stage_close(&run.stage);
}

static void test_core_random__seeds(void **state)
{
    const char *one = getenv("CORE_SEED"), *many = getenv("CORE_SEEDS");
    uint64_t n = many ? strtoull(many, NULL, 10) : 20;

    (void)state;
    if (one) {
        run_seed(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= n; seed++)
        run_seed(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_core_random__seeds)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
