/* Watching the members of a gang: they succeed together or the gang ends. A member's own failure costs a retry; a
 * member that was lost (its pod deleted, evicted, its node dead) costs none, but each loss makes the wait before the
 * next attempt longer, and after MAX_LOSSES in a row the job has failed. */
#include <string.h>

#include "queued/lifecycle/internal.h"

#include "allocator/base/banned.h"

#define MAX_LOSSES 20

enum fate { FATE_ALIVE, FATE_SUCCEEDED, FATE_FAILED, FATE_LOST };

/* The first exit code other than 0 among the containers of a pod; -1 when none has told one. */
static int64_t exit_code_of(const json_t *pod)
{
    static const char *const lists[] = {"containerStatuses", "initContainerStatuses"};
    const json_t *status;
    size_t i;

    for (size_t k = 0; k < ARRAY_SIZE(lists); k++)
        json_array_foreach (json_object_get(json_object_get(pod, "status"), lists[k]), i, status) {
            const json_t *code =
                json_object_get(json_object_get(json_object_get(status, "state"), "terminated"), "exitCode");

            if (json_is_integer(code) && json_integer_value(code) != 0)
                return json_integer_value(code);
        }
    return -1;
}

static enum fate fate_of(const struct launch_object *pod)
{
    const char *phase = json_text_at(pod->observed, "status", "phase", NULL);

    if (!pod->is_there)
        return FATE_LOST;
    if (phase && strcmp(phase, "Succeeded") == 0)
        return FATE_SUCCEEDED;
    if (phase && strcmp(phase, "Failed") == 0)
        return exit_code_of(pod->observed) >= 0 && !member_is_taken_away(pod->observed) ? FATE_FAILED : FATE_LOST;
    /* Nothing brings back a pod that is being deleted, and a silent node lets it stay so for ever. */
    return object_is_going(pod->observed) ? FATE_LOST : FATE_ALIVE;
}

static void member_failed(struct lifecycle *lc, struct job *job, const struct launch_object *pod)
{
    job->exit_code = exit_code_of(pod->observed);
    if (job->retries_left > 0) {
        job->retries_left--;
        job_set_reason(job, "member %s ended with exit code %lld; retries left: %lld", pod->name,
                       (long long)job->exit_code, (long long)job->retries_left);
        job_end(lc, job, JOB_PENDING);
    } else {
        job_set_reason(job, "member %s ended with exit code %lld", pod->name, (long long)job->exit_code);
        job_end(lc, job, JOB_FAILED);
    }
}

/* What is known of a member that was lost, while it is still there or from the time when it was. */
static const char *loss_words(const struct job *job, const struct launch_object *object, struct diagnosis *diagnosis)
{
    diagnosis->sentence[0] = '\0';
    if (object->rank == RANK_POD && object->observed)
        member_loss(job->live, object, diagnosis);
    else if (object->gone_words)
        return object->gone_words;
    return diagnosis->sentence;
}

static void member_lost(struct lifecycle *lc, struct job *job, const struct launch_object *object)
{
    struct diagnosis diagnosis;
    const char *words = loss_words(job, object, &diagnosis);

    if (job->failures >= MAX_LOSSES) {
        job_set_reason(job, "%s %s was lost, as were those of %d attempts before", object->kind, object->name,
                       MAX_LOSSES);
        job_end(lc, job, JOB_FAILED);
        return;
    }
    job_launch_failed(lc, job, "%s %s was lost%s%s", object->kind, object->name, words[0] ? ": " : "", words);
}

bool members_decide(struct lifecycle *lc, struct job *job)
{
    const struct launch_object *missing = attempt_missing(job->live);
    size_t n_succeeded = 0, n_members = 0;

    for (size_t i = 0; i < job->live->n_objects; i++) {
        const struct launch_object *pod = &job->live->objects[i];
        enum fate fate = fate_of(pod);

        if (pod->rank != RANK_POD)
            continue;
        n_members++;
        n_succeeded += fate == FATE_SUCCEEDED;
        if (fate == FATE_FAILED) {
            member_failed(lc, job, pod);
            return true;
        }
        if (fate == FATE_LOST) {
            member_lost(lc, job, pod);
            return true;
        }
    }
    if (n_succeeded == n_members && job->state == JOB_RUNNING) {
        job->exit_code = 0;
        job_set_reason(job, "%s", "");
        job_end(lc, job, JOB_SUCCEEDED);
        return true;
    }
    if (missing && n_succeeded < n_members) { /* a claim or the anchor was taken away under a running gang */
        member_lost(lc, job, missing);
        return true;
    }
    return false;
}

static bool ran_too_long(struct lifecycle *lc, struct job *job)
{
    int64_t max_ms = job->blueprint->spec.max_runtime_ms, end_ms;

    if (max_ms == 0 || __builtin_add_overflow(job->started_ms, max_ms, &end_ms))
        return false;
    if (lifecycle_now_ms(lc) >= end_ms)
        return true;
    job_wake_at(lc, job, end_ms);
    return false;
}

enum step step_run(struct lifecycle *lc, struct job *job)
{
    attempt_note_health(lc, job);
    if (members_decide(lc, job))
        return STEP_MORE;
    if (!ran_too_long(lc, job))
        return STEP_WAIT;
    job_set_reason(job, "ran for its maximum of %lld s", (long long)(job->blueprint->spec.max_runtime_ms / 1000));
    job_end(lc, job, JOB_FAILED);
    return STEP_MORE;
}
