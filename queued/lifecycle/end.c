/* Taking an attempt away. The anchor goes first: it owns everything, so that from then on all of it goes, whatever
 * becomes of us. Then each object is deleted by itself, which is faster, and the stream tells that it is gone. Only
 * when nothing is left does the job move on, so that no two attempts of a job ever exist at once. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "queued/lifecycle/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

/* Attempts in a row that may be refused as invalid, in the same words. */
#define MAX_REFUSALS 5

void job_end(struct lifecycle *lc, struct job *job, enum job_state to)
{
    job->ending = to;
    job_event(lc, job, "Ending", "the gang is being taken away, then: %s%s%s", state_name(to),
              job->reason[0] ? "; " : "", job->reason);
    job_save(lc, job);
}

void job_launch_failed(struct lifecycle *lc, struct job *job, const char *fmt, ...)
{
    char words[900];
    va_list args;

    va_start(args, fmt);
    vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    job->failures++;
    job->n_refusals = 0;
    lc->n_launch_failures++;
    job->not_before_ms = lifecycle_now_ms(lc) + backoff_ms(job->failures);
    job_set_reason(job, "attempt %lld failed: %s", (long long)job->attempt, words);
    job_end(lc, job, JOB_PENDING);
}

/* Names in an answer hold the number of the attempt: numbers are passed over. */
static bool is_same_but_for_numbers(const char *a, const char *b)
{
    static const char digits[] = "0123456789";

    for (;; a++, b++) {
        a += strspn(a, digits);
        b += strspn(b, digits);
        if (*a != *b)
            return false;
        if (!*a)
            return true;
    }
}

static int count_refusals(struct job *job, const struct error *err)
{
    if (err->code != ERR_INVALID)
        return 0;
    if (job->n_refusals > 0 && is_same_but_for_numbers(job->refusal, err->text))
        return job->n_refusals + 1;
    free(job->refusal);
    job->refusal = mem_strdup(err->text);
    return 1;
}

void job_launch_refused(struct lifecycle *lc, struct job *job, const char *verb, const struct launch_object *object,
                        const struct error *err)
{
    int n = count_refusals(job, err);

    if (n >= MAX_REFUSALS) {
        lc->n_launch_failures++;
        job_set_reason(job, "%s %s %s: %s (so for %d attempts in a row)", verb, object->kind, object->name, err->text,
                       n);
        job_end(lc, job, JOB_FAILED);
        return;
    }
    job_launch_failed(lc, job, "%s %s %s: %s", verb, object->kind, object->name, err->text);
    job->n_refusals = n;
}

static bool is_over(const struct launch_object *pod)
{
    const char *phase = json_text_at(pod->observed, "status", "phase", NULL);

    return !pod->is_there || (phase && (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0));
}

/* No member runs any more: nobody uses the claims. */
static bool attempt_is_over(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (attempt->objects[i].rank == RANK_POD && !is_over(&attempt->objects[i]))
            return false;
    return true;
}

/* By its uid, lest somebody else's object of the same name is deleted; while that is not known it is looked up first.
 */
static void remove_object(struct lifecycle *lc, struct job *job, struct launch_object *object)
{
    struct call_for target = {job->id, job->live->number, (size_t)(object - job->live->objects)};
    const char *uid = launch_object_uid(object);
    bool is_now = !object->is_asked && member_is_given_up(lc, job, object);

    if (object->is_asked)
        return;
    if (object->retry_ms > lifecycle_now_ms(lc)) {
        job_wake_at(lc, job, object->retry_ms);
        return;
    }
    object->is_asked = true;
    if (!uid)
        outbox_get(lc->options.outbox, target, object->kind, object->ns, object->name);
    else if (is_now)
        outbox_erase(lc->options.outbox, target, object->ns, object->name, uid);
    else if (object->rank == RANK_CLAIM)
        outbox_release(lc->options.outbox, target, object->ns, object->name, uid);
    else
        outbox_remove(lc->options.outbox, target, object->kind, object->ns, object->name, uid);
}

/* One by one: the cluster's garbage collector works at 20 requests a second by default. When many gangs end together it
 * alone would keep their devices for minutes. Claims wait for their pods. */
static void remove_leaves(struct lifecycle *lc, struct job *job)
{
    bool is_over = attempt_is_over(job->live);

    for (size_t i = 0; i < job->live->n_objects; i++)
        if (job->live->objects[i].is_there && (is_over || job->live->objects[i].rank != RANK_CLAIM))
            remove_object(lc, job, &job->live->objects[i]);
}

static bool is_gone(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (attempt->objects[i].is_there || attempt->objects[i].is_asked)
            return false;
    return true;
}

static bool waits_for(const struct job *job, int64_t id, size_t *out_at)
{
    for (*out_at = 0; *out_at < job->n_waits_for; (*out_at)++)
        if (job->waits_for[*out_at] == id)
            return true;
    return false;
}

void job_ended(struct lifecycle *lc, struct job *ended)
{
    job_set_wait(ended, NULL, false);
    store_dependency_met(lc->options.store, ended->id);
    for (size_t i = 0; i < lc->jobs.n; i++) {
        struct job *job = lc->jobs.items[i];
        size_t at;

        if (!waits_for(job, ended->id, &at))
            continue;
        job->waits_for[at] = job->waits_for[--job->n_waits_for];
        job->version++;
        job_touch(lc, job);
        if (ended->state == JOB_SUCCEEDED || job_has_ended(job))
            continue;
        job_set_reason(job, "depends on job %s (%lld), which is %s", job_name(ended), (long long)ended->id,
                       state_name(ended->state));
        job_move(lc, job, JOB_CANCELLED, job->reason); /* it waits, so it is not live */
        job_ended(lc, job);                            /* as deep as the chain of dependencies */
    }
}

static void finish(struct lifecycle *lc, struct job *job)
{
    struct attempt *attempt = job->live;
    enum job_state to = job->ending;

    store_objects_delete(lc->options.store, job->id, attempt->number);
    store_usage_close(lc->options.store, job->id, attempt->number, lifecycle_now_ms(lc));
    forget_attempt(lc, attempt);
    job->live = NULL;
    job->ending = JOB_STATE_COUNT;
    if (to == JOB_PENDING)
        job->started_ms = 0;
    job_move(lc, job, to, job->reason);
    attempt_free(attempt);
    lc->wants_plan = true; /* its devices are free */
    if (job_has_ended(job))
        job_ended(lc, job);
}

enum step step_end(struct lifecycle *lc, struct job *job)
{
    struct attempt *attempt = job->live;

    attempt_note_silence(lc, job);
    if (attempt->remove_ms == 0) {
        remove_object(lc, job, attempt_anchor(attempt));
        return STEP_WAIT;
    }
    if (!is_gone(attempt)) {
        remove_leaves(lc, job);
        return STEP_WAIT;
    }
    finish(lc, job);
    return STEP_MORE;
}

enum step step_after(struct lifecycle *lc, struct job *job)
{
    int64_t ttl_ms = job->blueprint->spec.ttl_ms, at_ms;

    if (ttl_ms < 0 || __builtin_add_overflow(job->ended_ms, ttl_ms, &at_ms))
        return STEP_WAIT;
    if (lifecycle_now_ms(lc) < at_ms) {
        job_wake_at(lc, job, at_ms);
        return STEP_WAIT;
    }
    if (ask_is_there(job)) /* the end of it is told, and leads back here */
        return STEP_WAIT;
    store_job_delete(lc->options.store, job->id);
    lc->options.changed(lc->options.ctx, job);
    job_list_drop(&lc->jobs, job);
    return STEP_WAIT;
}
