#include "queued/lifecycle/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "queued/lifecycle/internal.h"

#include "allocator/base/banned.h"

struct job *job_new(int64_t id, const char *queue, const char *user, struct blueprint *blueprint)
{
    struct job *job = mem_new(struct job);

    job->id = id;
    job->queue = mem_strdup(queue);
    job->user = mem_strdup(user);
    job->blueprint = blueprint_ref(blueprint);
    job->reason = mem_strdup("");
    job->ending = JOB_STATE_COUNT;
    job->exit_code = -1;
    job->due_ms = INT64_MAX;
    return job;
}

void job_free(struct job *job)
{
    if (!job)
        return;
    job_set_wait(job, NULL, false);
    attempt_free(job->live);
    ask_free(job->ask);
    blueprint_unref(job->blueprint);
    free(job->queue);
    free(job->user);
    free(job->reason);
    free(job->refusal);
    free(job->waits_for);
    free(job);
}

const char *job_name(const struct job *job)
{
    return job->blueprint->spec.name;
}

const char *job_ns(const struct job *job)
{
    return job->blueprint->spec.ns;
}

bool job_is_live(const struct job *job)
{
    return state_is_live(job->state);
}

bool job_has_ended(const struct job *job)
{
    return state_is_final(job->state);
}

const char *job_sentence(const struct job *job)
{
    static const char *const plain[JOB_STATE_COUNT] = {
        [JOB_HELD] = "held",
        [JOB_PENDING] = "waits for the next planning round",
        [JOB_ADMITTED] = "its claims and pods are being created",
        [JOB_LAUNCHING] = "its members are being started",
        [JOB_RUNNING] = "all members run",
        [JOB_PREEMPTING] = "gives its place up",
        [JOB_SUCCEEDED] = "all members succeeded",
        [JOB_FAILED] = "failed",
        [JOB_CANCELLED] = "cancelled",
    };

    if (job->state == JOB_PENDING && job->wait.is_known)
        return job->wait.reason;
    if (job->live && job->live->waits)
        return job->live->waits;
    return job->reason[0] ? job->reason : plain[job->state];
}

void job_set_reason(struct job *job, const char *fmt, ...)
{
    char words[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    free(job->reason);
    job->reason = mem_strdup(words);
}

void job_set_wait(struct job *job, const struct plan_outcome *outcome, bool is_brief)
{
    free(job->wait.reason);
    json_decref(job->wait.explanation);
    memset(&job->wait, 0, sizeof(job->wait));
    if (!outcome)
        return;
    job->wait.is_known = true;
    job->wait.layer = outcome->layer;
    job->wait.reason = mem_strdup(outcome->reason);
    job->wait.is_never = outcome->is_never;
    job->wait.position = outcome->position;
    job->wait.is_brief = is_brief;
    job->wait.explanation = json_incref(outcome->explanation);
}

/* Where a job with this id is, or would be. */
static size_t place_of(const struct job_list *list, int64_t id)
{
    size_t low = 0, high = list->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (list->items[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct job *job_list_find(const struct job_list *list, int64_t id)
{
    size_t at = place_of(list, id);

    return at < list->n && list->items[at]->id == id ? list->items[at] : NULL;
}

void job_list_add(struct job_list *list, struct job *job)
{
    INVARIANT(list->n == 0 || list->items[list->n - 1]->id < job->id);
    mem_grow(list->items, list->n, list->cap);
    list->items[list->n++] = job;
}

void job_list_drop(struct job_list *list, struct job *job)
{
    size_t at = place_of(list, job->id);

    INVARIANT(at < list->n && list->items[at] == job);
    list->n--;
    memmove(&list->items[at], &list->items[at + 1], (list->n - at) * sizeof(*list->items));
    job_free(job);
}
