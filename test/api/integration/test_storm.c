/* Several gangs, each of which takes the whole cluster, and a server that is killed every few effects, also while it
 * starts. Whoever talks to it repeats what was not answered. In the end all have run, none twice, and nothing is left.
 */
#include "test/support/cmocka.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "allocator/base/rng.h"
#include "test/api/integration/crash_run.h"

#include "allocator/base/banned.h"

#define JSON "application/json"

enum { STORM_JOBS = 5, STORM_ROUNDS = 80 };

static const struct storm {
    const char *name;
    uint64_t seed;
} storms[] = {{"seed 1", 1}, {"seed 2", 2}, {"seed 3", 3}};

/* Start with a kill somewhere soon; die while starting if it must be. */
static void start_in_storm(struct run *run, struct rng *rng)
{
    while (!run->process.pid && !run_start(run, 1 + (int)rng_below(rng, 25)))
        if (process_wait(&run->process) != -SIGKILL)
            run_broken(run, "it ended in another way than by SIGKILL");
}

/* Returns the status, 0 when the server died instead of answering. */
static int ask_in_storm(struct run *run, struct rng *rng, const char *method, const char *target, const char *body,
                        json_t **out)
{
    int status;

    start_in_storm(run, rng);
    status = call(&run->process, NULL, method, target, body ? JSON : NULL, body, out);
    if (status == 0 && process_wait(&run->process) != -SIGKILL)
        run_broken(run, "it ended in another way than by SIGKILL");
    if (status == 0)
        run_check_attempts(run);
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
            run_broken(run, "it ended in another way than by SIGKILL");
        if (status != 0 && status != 201)
            run_broken(run, "a job was not accepted");
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
        run_broken(run, "a job is lost or doubled");
    json_array_foreach(json_object_get(list, "items"), i, job) n +=
        strcmp(json_string_value(json_object_get(job, "state")), "Succeeded") == 0;
    json_decref(list);
    return n;
}

static void test_storm__all_gangs_run(void **state)
{
    const struct storm *storm = *state;
    struct run run = run_prepare(false);
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
        run_broken(&run, "not all jobs have succeeded");
    process_kill(&run.process);
    if (!run_start(&run, 0))
        run_broken(&run, "it did not start again");
    run_check_left(&run);
    if (process_stop(&run.process) != 0)
        run_broken(&run, "it did not stop cleanly");
    process_release(&run.process);
}

int main(void)
{
    return RUN_TABLE(test_storm__all_gangs_run, storms);
}
