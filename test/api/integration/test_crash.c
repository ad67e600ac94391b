/* The server is killed before its n-th effect (a commit, or a change of the cluster), for every n until the run is not
 * disturbed any more, and started again. Whoever talks to it repeats what was not answered. Each time the end must be
 * that of the undisturbed run: the gang has run once, as a whole, and nothing of it is left. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "test/api/integration/crash_run.h"

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

/* ---- acts ---- */

/* Until the job should be in the state. */
static void pass(struct run *run, const char *state, int milliseconds)
{
    char target[96], body[64];

    snprintf(target, sizeof(target), "/v1/jobs/gang?waitFor=%s&timeout=15", state);
    snprintf(body, sizeof(body), "{\"milliseconds\":%d}", milliseconds);
    if (!run->is_real && run_insist(run, "POST", "/v1/clock/advance", JSON, body, NULL) != 200)
        run_broken(run, "time does not move");
    if (run->is_real && run_insist(run, "GET", target, NULL, NULL, NULL) != 200)
        run_broken(run, "the job is not there");
}

static void act_submit(struct run *run, const struct gang *gang)
{
    int status = submit(&run->process, gang);

    if (status == 0) {
        run_revive(run);
        status = submit(&run->process, gang);
    }
    if (status != 201)
        run_broken(run, "the job was not accepted");
}

/* Whoever repeats a command that was carried out already may hear that it is too late. */
static void act_command(struct run *run, const char *command)
{
    char target[64];
    int status;

    snprintf(target, sizeof(target), "/v1/jobs/gang/%s", command);
    status = run_insist(run, "POST", target, NULL, NULL, NULL);
    if (status != 200 && !(run->was_killed && status == 409))
        run_broken(run, "the command was refused");
}

static void act(struct run *run, const struct scenario *scenario, enum act act)
{
    switch (act) {
    case SUBMIT:
        act_submit(run, &scenario->gang);
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

static void check_job(struct run *run, const struct scenario *scenario)
{
    json_t *list = run_get(run, "/v1/jobs"), *job = json_array_get(json_object_get(list, "items"), 0);
    json_t *members = json_object_get(job, "members");
    const char *state = json_string_value(json_object_get(job, "state"));

    if (json_array_size(json_object_get(list, "items")) != 1)
        run_broken(run, "there is not exactly one job");
    if (!state || strcmp(state, scenario->want_state) != 0) {
        json_dumpf(job, stderr, JSON_INDENT(1));
        run_broken(run, "the job ended in another state");
    }
    if (json_integer_value(json_object_get(job, "attempt")) != scenario->want_attempts)
        run_broken(run, "it was not tried as often as it should");
    if (strcmp(state, "Succeeded") == 0 && (json_integer_value(json_object_get(members, "succeeded")) != 2 ||
                                            json_integer_value(json_object_get(members, "total")) != 2))
        run_broken(run, "not all members have succeeded");
    json_decref(list);
}

/* How often it came to run: once in each attempt. A server that was dead meanwhile may only see how an attempt has
 * ended. */
static void check_events(struct run *run, int want)
{
    json_t *list = run_get(run, "/v1/jobs/gang/events?limit=1000"), *event;
    int running = 0;
    size_t i;

    json_array_foreach(json_object_get(list, "items"), i, event)
    {
        const char *to = json_string_value(json_object_get(event, "to"));
        const char *from = json_string_value(json_object_get(event, "from"));

        running += to && strcmp(to, "Running") == 0 && (!from || strcmp(from, "Running") != 0);
    }
    if (running != want && !(run->was_killed && running == want - 1)) {
        json_dumpf(list, stderr, JSON_INDENT(1));
        run_broken(run, "it did not run as often as it should");
    }
    json_decref(list);
}

/* Returns whether the server was killed on the way. */
static bool play(const struct run *prepared, const struct scenario *scenario, int n)
{
    struct run run = {.is_real = scenario->is_real, .n = n};

    process_init(&run.process);
    process_copy_state(&run.process, &prepared->process);
    run.process.header = "Idempotency-Key: once";
    if (!run_start(&run, n))
        run_revive(&run);
    for (size_t i = 0; i < STEPS_MAX; i++)
        act(&run, scenario, scenario->acts[i]);
    check_job(&run, scenario);
    check_events(&run, scenario->want_attempts);
    run_check_left(&run);
    if (process_stop(&run.process) != 0)
        run_broken(&run, "it did not stop cleanly");
    process_release(&run.process);
    return run.was_killed;
}

static void test_crash__before_every_effect(void **state)
{
    const struct scenario *scenario = *state;
    struct run prepared = run_prepare(scenario->is_real);
    int n = 1;

    while (play(&prepared, scenario, n) && n < EFFECTS_MAX)
        n++;
    process_release(&prepared.process);
    print_message("%s: undisturbed from effect %d on\n", scenario->name, n);
    assert_in_range(n, EFFECTS_MIN, EFFECTS_MAX - 1);
}

int main(void)
{
    return RUN_TABLE(test_crash__before_every_effect, scenarios);
}
