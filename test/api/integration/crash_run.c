#include "test/support/cmocka.h"

#include "test/api/integration/crash_run.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "allocator/base/str.h"

#include "allocator/base/banned.h"

/* ---- starting and starting again ---- */

bool run_start(struct run *run, int crash_at)
{
    char text[16];
    const char *args[] = {"--clock",
                          run->is_real ? "real" : "virtual",
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

void run_broken(struct run *run, const char *why)
{
    process_print_log(&run->process);
    process_release(&run->process);
    fail_msg("killed before effect %d: %s", run->n, why);
}

/* Returns whether the pod fits those before it. */
static bool note_attempt(json_t *attempts, const json_t *metadata)
{
    const json_t *labels = json_object_get(metadata, "labels");
    const char *job = json_string_value(json_object_get(labels, "queue.dra/job"));
    json_t *attempt = json_object_get(labels, "queue.dra/attempt"), *known = json_object_get(attempts, job ? job : "");

    if (!job || json_object_get(metadata, "deletionTimestamp"))
        return true;
    if (known)
        return json_equal(known, attempt);
    json_object_set(attempts, job, attempt);
    return true;
}

/* All pods of a job that were not told to go belong to one attempt. */
void run_check_attempts(struct run *run)
{
    json_t *attempts = json_object(); /* job -> attempt */
    char path[256];
    DIR *dir;
    struct dirent *entry;

    snprintf(path, sizeof(path), "%s/cluster", run->process.state);
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        char name[600];
        json_t *pod;

        if (strncmp(entry->d_name, "Pod_", 4) != 0)
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        pod = json_load_file(name, 0, NULL);
        if (!note_attempt(attempts, json_object_get(pod, "metadata")))
            run_broken(run, "two attempts at once");
        json_decref(pod);
    }
    if (dir)
        closedir(dir);
    json_decref(attempts);
}

void run_revive(struct run *run)
{
    int status = process_wait(&run->process);

    if (status != -SIGKILL)
        run_broken(run, "it ended in another way than by SIGKILL");
    run->was_killed = true;
    run_check_attempts(run);
    if (!run_start(run, 0))
        run_broken(run, "it did not start again");
}

/* Ask until there is an answer. */
int run_insist(struct run *run, const char *method, const char *target, const char *type, const char *body,
               json_t **out)
{
    int status = call(&run->process, NULL, method, target, type, body, out);

    if (status == 0) {
        run_revive(run);
        status = call(&run->process, NULL, method, target, type, body, out);
    }
    if (status == 0)
        run_broken(run, "no answer after the restart");
    return status;
}

json_t *run_get(struct run *run, const char *target)
{
    json_t *body = NULL;

    if (run_insist(run, "GET", target, NULL, NULL, &body) != 200 || !body)
        run_broken(run, target);
    return body;
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
    json_t *list = run_get(run, "/v1/devices"), *device;
    int n = 0;
    size_t i;

    if (json_array_size(json_object_get(list, "items")) != 4)
        run_broken(run, "there are not four devices");
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
    json_t *queue = run_get(run, "/v1/queues/team"), *quota;
    long long used = 0;
    size_t i;

    json_array_foreach(json_object_get(queue, "quotas"), i, quota) used +=
        json_integer_value(json_object_get(quota, "used"));
    json_decref(queue);
    return used;
}

/* In real time the last deletions may still be on their way when the job has ended. */
void run_check_left(struct run *run)
{
    const struct timespec moment = {0, 20 * 1000000};

    for (int i = 0;; i++) {
        BUF names = {0};
        int n = count_objects(run, &names) + count_held(run) + (int)quota_used(run);

        if (n == 0)
            return;
        if (i == (run->is_real ? 200 : 0)) {
            print_error("objects:%s, devices held: %d, quota used: %lld\n", buf_str(&names), count_held(run),
                        quota_used(run));
            run_broken(run, "something is left");
        }
        nanosleep(&moment, NULL);
    }
}

/* The state that each run begins with: queues, and no job. */
struct run run_prepare(bool is_real)
{
    struct run run = {.is_real = is_real};

    process_init(&run.process);
    if (!run_start(&run, 0))
        run_broken(&run, "it did not start");
    apply_queues(&run.process);
    if (process_stop(&run.process) != 0)
        run_broken(&run, "it did not stop cleanly");
    return run;
}
