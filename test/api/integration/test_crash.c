/* The server is killed before its n-th effect (a commit, or a change of the cluster), for every n until the run is not
 * disturbed any more, and started again. Whoever talks to it repeats what was not answered. Each time the end must be
 * that of the undisturbed run: the gang has run once, as a whole, and nothing of it is left. */
#include "test/support/cmocka.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "allocator/base/rng.h"
#include "allocator/base/str.h"
#include "test/api/integration/process.h"

#include "allocator/base/banned.h"

#define JSON "application/json"

enum { EFFECTS_MAX = 200, EFFECTS_MIN = 10, STEPS_MAX = 6 };

enum act { END, SUBMIT, RUNNING, ENDED, CANCEL, REQUEUE };

static const struct scenario {
    const char *name;
    bool is_real; /* real time, else virtual */
    struct gang gang;
    enum act acts[STEPS_MAX];
    const char *want_state;
    int want_attempts;
} scenarios[] = {
    {"runs to its end", false, {"gang", "20s", 0, 0}, {SUBMIT, RUNNING, ENDED}, "Succeeded", 1},
    {"fails and is started once more", false, {"gang", "20s", 3, 1}, {SUBMIT, RUNNING, ENDED}, "Failed", 2},
    {"is cancelled while it runs", false, {"gang", "1h", 0, 0}, {SUBMIT, RUNNING, CANCEL, ENDED}, "Cancelled", 1},
    {"is queued again while it runs", false, {"gang", "60s", 0, 0}, {SUBMIT, RUNNING, REQUEUE, ENDED}, "Succeeded", 2},
    {"runs to its end in real time", true, {"gang", "150ms", 0, 0}, {SUBMIT, RUNNING, ENDED}, "Succeeded", 1},
    {"is cancelled in real time", true, {"gang", "1h", 0, 0}, {SUBMIT, RUNNING, CANCEL, ENDED}, "Cancelled", 1},
};

struct run {
    struct process process;
    const struct scenario *scenario;
    int n; /* the effect before which it is killed */
    bool was_killed;
};

/* ---- starting and starting again ---- */

static bool start(struct run *run, int crash_at)
{
    char text[16];
    const char *args[] = {"--clock",
                          run->scenario->is_real ? "real" : "virtual",
                          "--crash-at",
                          text,
                          "--log-level",
                          "debug",
                          "--schedule-delay",
                          "5ms",
                          "--start-delay",
                          "5ms",
                          NULL};

    snprintf(text, sizeof(text), "%d", crash_at);
    return process_start(&run->process, args);
}

static void broken(struct run *run, const char *why)
{
    process_print_log(&run->process);
    process_release(&run->process);
    fail_msg("killed before effect %d: %s", run->n, why);
}

/* All pods that were not told to go belong to one attempt. */
static void check_one_attempt(struct run *run)
{
    char path[256], first[32] = "";
    DIR *dir;
    struct dirent *entry;

    snprintf(path, sizeof(path), "%s/cluster", run->process.state);
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        json_t *pod, *metadata;
        const char *attempt;
        char name[600];

        if (strncmp(entry->d_name, "Pod_", 4) != 0)
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        pod = json_load_file(name, 0, NULL);
        metadata = json_object_get(pod, "metadata");
        attempt = json_string_value(json_object_get(json_object_get(metadata, "labels"), "queue.dra/attempt"));
        if (attempt && !json_object_get(metadata, "deletionTimestamp")) {
            if (first[0] && strcmp(first, attempt) != 0)
                broken(run, "two attempts at once");
            snprintf(first, sizeof(first), "%s", attempt);
        }
        json_decref(pod);
    }
    if (dir)
        closedir(dir);
}

static void revive(struct run *run)
{
    int status = process_wait(&run->process);

    if (status != -SIGKILL)
        broken(run, "it ended in another way than by SIGKILL");
    run->was_killed = true;
    check_one_attempt(run);
    if (!start(run, 0))
        broken(run, "it did not start again");
}

/* Ask until there is an answer. */
static int insist(struct run *run, const char *method, const char *target, const char *type, const char *body,
                  json_t **out)
{
    int status = call(&run->process, NULL, method, target, type, body, out);

    if (status == 0) {
        revive(run);
        status = call(&run->process, NULL, method, target, type, body, out);
    }
    if (status == 0)
        broken(run, "no answer after the restart");
    return status;
}

/* ---- acts ---- */

static void pass(struct run *run, const char *state, int milliseconds)
{
    char target[96], body[64];

    snprintf(target, sizeof(target), "/v1/jobs/gang?waitFor=%s&timeout=15", state);
    snprintf(body, sizeof(body), "{\"milliseconds\":%d}", milliseconds);
    if (!run->scenario->is_real && insist(run, "POST", "/v1/clock/advance", JSON, body, NULL) != 200)
        broken(run, "time does not move");
    if (run->scenario->is_real && insist(run, "GET", target, NULL, NULL, NULL) != 200)
        broken(run, "the job is not there");
}

static void act_submit(struct run *run)
{
    int status = submit(&run->process, &run->scenario->gang);

    if (status == 0) {
        revive(run);
        status = submit(&run->process, &run->scenario->gang);
    }
    if (status != 201)
        broken(run, "the job was not accepted");
}

/* Whoever repeats a command that was carried out already may hear that it is too late. */
static void act_command(struct run *run, const char *command)
{
    char target[64];
    int status;

    snprintf(target, sizeof(target), "/v1/jobs/gang/%s", command);
    status = insist(run, "POST", target, NULL, NULL, NULL);
    if (status != 200 && !(run->was_killed && status == 409))
        broken(run, "the command was refused");
}

static void act(struct run *run, enum act act)
{
    switch (act) {
    case SUBMIT:
        act_submit(run);
        break;
    case RUNNING:
        pass(run, "running", 1000);
        break;
    case ENDED:
        pass(run, "ended", 600000);
        break;
    case CANCEL:
        act_command(run, "cancel");
        break;
    case REQUEUE:
        act_command(run, "requeue");
        break;
    case END:
        break;
    }
}

/* ---- what must be so in the end ---- */

static json_t *get(struct run *run, const char *target)
{
    json_t *body = NULL;

    if (insist(run, "GET", target, NULL, NULL, &body) != 200 || !body)
        broken(run, target);
    return body;
}

static void check_job(struct run *run)
{
    json_t *list = get(run, "/v1/jobs"), *job = json_array_get(json_object_get(list, "items"), 0);
    json_t *members = json_object_get(job, "members");
    const char *state = json_string_value(json_object_get(job, "state"));

    if (json_array_size(json_object_get(list, "items")) != 1)
        broken(run, "there is not exactly one job");
    if (!state || strcmp(state, run->scenario->want_state) != 0) {
        json_dumpf(job, stderr, JSON_INDENT(1));
        broken(run, "the job ended in another state");
    }
    if (json_integer_value(json_object_get(job, "attempt")) != run->scenario->want_attempts)
        broken(run, "it was not tried as often as it should");
    if (strcmp(state, "Succeeded") == 0 && (json_integer_value(json_object_get(members, "succeeded")) != 2 ||
                                            json_integer_value(json_object_get(members, "total")) != 2))
        broken(run, "not all members have succeeded");
    json_decref(list);
}

/* How often it came to run: once in each attempt. A server that was dead meanwhile may only see how an attempt has
 * ended. */
static void check_events(struct run *run)
{
    json_t *list = get(run, "/v1/jobs/gang/events?limit=1000"), *event;
    int running = 0, want = run->scenario->want_attempts;
    size_t i;

    json_array_foreach(json_object_get(list, "items"), i, event)
    {
        const char *to = json_string_value(json_object_get(event, "to"));
        const char *from = json_string_value(json_object_get(event, "from"));

        running += to && strcmp(to, "Running") == 0 && (!from || strcmp(from, "Running") != 0);
    }
    if (running != want && !(run->was_killed && running == want - 1)) {
        json_dumpf(list, stderr, JSON_INDENT(1));
        broken(run, "it did not run as often as it should");
    }
    json_decref(list);
}

/* Kinds that the server creates; the names of the cluster's files begin with them. */
static int count_objects(struct run *run, struct buf *names)
{
    static const char *const kinds[] = {"Pod_", "ResourceClaim_", "ConfigMap_", "Service_", "PodGroup_"};
    char path[256];
    DIR *dir;
    struct dirent *entry;
    int n = 0;

    snprintf(path, sizeof(path), "%s/cluster", run->process.state);
    dir = opendir(path);
    while (dir && (entry = readdir(dir)))
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
            if (strncmp(entry->d_name, kinds[i], strlen(kinds[i])) == 0) {
                buf_addf(names, " %s", entry->d_name);
                n++;
            }
    if (dir)
        closedir(dir);
    return n;
}

static int count_held(struct run *run)
{
    json_t *list = get(run, "/v1/devices"), *device;
    int n = 0;
    size_t i;

    if (json_array_size(json_object_get(list, "items")) != 4)
        broken(run, "there are not four devices");
    json_array_foreach(json_object_get(list, "items"), i, device)
    {
        json_t *job = json_object_get(device, "job");

        n += job && !json_is_null(job);
    }
    json_decref(list);
    return n;
}

static long long quota_used(struct run *run)
{
    json_t *queue = get(run, "/v1/queues/team"), *quota;
    long long used = 0;
    size_t i;

    json_array_foreach(json_object_get(queue, "quotas"), i, quota) used +=
        json_integer_value(json_object_get(quota, "used"));
    json_decref(queue);
    return used;
}

/* In real time the last deletions may still be on their way when the job has ended. */
static void check_nothing_is_left(struct run *run)
{
    const struct timespec moment = {0, 20 * 1000000};

    for (int i = 0;; i++) {
        BUF names = {0};
        int n = count_objects(run, &names) + count_held(run) + (int)quota_used(run);

        if (n == 0)
            return;
        if (i == (run->scenario->is_real ? 200 : 0)) {
            print_error("objects:%s, devices held: %d, quota used: %lld\n", buf_str(&names), count_held(run),
                        quota_used(run));
            broken(run, "something is left");
        }
        nanosleep(&moment, NULL);
    }
}

/* The state that each run begins with: queues, and no job. */
static struct run prepare(const struct scenario *scenario)
{
    struct run run = {.scenario = scenario};

    process_init(&run.process);
    if (!start(&run, 0))
        broken(&run, "it did not start");
    apply_queues(&run.process);
    if (process_stop(&run.process) != 0)
        broken(&run, "it did not stop cleanly");
    return run;
}

/* Returns whether the server was killed on the way. */
static bool play(const struct run *prepared, int n)
{
    const struct scenario *scenario = prepared->scenario;
    struct run run = {.scenario = scenario, .n = n};

    process_init(&run.process);
    process_copy_state(&run.process, &prepared->process);
    run.process.header = "Idempotency-Key: once";
    if (!start(&run, n))
        revive(&run);
    for (size_t i = 0; i < STEPS_MAX; i++)
        act(&run, scenario->acts[i]);
    check_job(&run);
    check_events(&run);
    check_nothing_is_left(&run);
    if (process_stop(&run.process) != 0)
        broken(&run, "it did not stop cleanly");
    process_release(&run.process);
    return run.was_killed;
}

static void test_crash__before_every_effect(void **state)
{
    const struct scenario *scenario = *state;
    struct run prepared = prepare(scenario);
    int n = 1;

    while (play(&prepared, n) && n < EFFECTS_MAX)
        n++;
    process_release(&prepared.process);
    print_message("%s: undisturbed from effect %d on\n", scenario->name, n);
    assert_in_range(n, EFFECTS_MIN, EFFECTS_MAX - 1);
}

/* ---- again and again ---- */

enum { STORM_JOBS = 5, STORM_ROUNDS = 80 };

static const struct storm {
    const char *name;
    uint64_t seed;
} storms[] = {{"seed 1", 1}, {"seed 2", 2}, {"seed 3", 3}};

/* Start with a kill somewhere soon; die while starting if it must be. */
static void start_in_storm(struct run *run, struct rng *rng)
{
    while (!run->process.pid && !start(run, 1 + (int)rng_below(rng, 25)))
        if (process_wait(&run->process) != -SIGKILL)
            broken(run, "it ended in another way than by SIGKILL");
}

/* Returns the status, 0 when the server died instead of answering. */
static int ask_in_storm(struct run *run, struct rng *rng, const char *method, const char *target, const char *body,
                        json_t **out)
{
    int status;

    start_in_storm(run, rng);
    status = call(&run->process, NULL, method, target, body ? JSON : NULL, body, out);
    if (status == 0 && process_wait(&run->process) != -SIGKILL)
        broken(run, "it ended in another way than by SIGKILL");
    if (status == 0)
        check_one_attempt(run);
    return status;
}

static void submit_in_storm(struct run *run, struct rng *rng, int i)
{
    char name[32], key[64];
    struct gang gang = {.name = name, .duration = "7s"};

    snprintf(name, sizeof(name), "gang-%d", i);
    snprintf(key, sizeof(key), "Idempotency-Key: %d", i);
    run->process.header = key;
    for (int status = 0; status != 201;) {
        start_in_storm(run, rng);
        status = submit(&run->process, &gang);
        if (status == 0 && process_wait(&run->process) != -SIGKILL)
            broken(run, "it ended in another way than by SIGKILL");
        if (status != 0 && status != 201)
            broken(run, "a job was not accepted");
    }
    run->process.header = NULL;
}

/* All acknowledged jobs are there, each once; says how many have succeeded. */
static int count_succeeded(struct run *run, struct rng *rng)
{
    json_t *list = NULL, *job;
    int n = 0;
    size_t i;

    if (ask_in_storm(run, rng, "GET", "/v1/jobs", NULL, &list) != 200)
        return 0;
    if (json_array_size(json_object_get(list, "items")) != STORM_JOBS)
        broken(run, "a job is lost or doubled");
    json_array_foreach(json_object_get(list, "items"), i, job) n +=
        strcmp(json_string_value(json_object_get(job, "state")), "Succeeded") == 0;
    json_decref(list);
    return n;
}

/* Several gangs, each of which takes the whole cluster, and a server that is killed every few effects. */
static void test_crash__again_and_again(void **state)
{
    const struct storm *storm = *state;
    const struct scenario scenario = {.name = storm->name};
    struct run run = prepare(&scenario);
    struct rng rng = {storm->seed};
    int n_succeeded = 0;

    for (int i = 0; i < STORM_JOBS; i++)
        submit_in_storm(&run, &rng, i);
    for (int round = 0; round < STORM_ROUNDS && n_succeeded < STORM_JOBS; round++) {
        run.n = round;
        (void)ask_in_storm(&run, &rng, "POST", "/v1/clock/advance", "{\"milliseconds\":3000}", NULL);
        n_succeeded = count_succeeded(&run, &rng);
    }
    if (n_succeeded != STORM_JOBS)
        broken(&run, "not all jobs have succeeded");
    process_kill(&run.process);
    if (!start(&run, 0))
        broken(&run, "it did not start again");
    check_nothing_is_left(&run);
    if (process_stop(&run.process) != 0)
        broken(&run, "it did not stop cleanly");
    process_release(&run.process);
}

int main(void)
{
    int failed = RUN_TABLE(test_crash__before_every_effect, scenarios);

    return failed + RUN_TABLE(test_crash__again_and_again, storms);
}
