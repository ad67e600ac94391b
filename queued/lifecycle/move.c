/* The one place where a job's state changes. State, event and log line belong together: the first two go into the same
 * transaction, and the line follows. */
#include <stdarg.h>
#include <stdio.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "queued/lifecycle/internal.h"
#include "queued/log.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

static struct job_status status_of(const struct job *job)
{
    return (struct job_status){
        .state = state_name(job->state),
        .ending = state_name(job->ending),
        .reason = job->reason,
        .priority = job->priority,
        .attempt = job->attempt,
        .retries_left = job->retries_left,
        .failures = job->failures,
        .not_before_ms = job->not_before_ms,
        .started_ms = job->started_ms,
        .ended_ms = job->ended_ms,
        .exit_code = job->exit_code,
    };
}

static bool is_consistent(const struct job *job)
{
    return (job->live != NULL) == job_is_live(job) && (job->ending == JOB_STATE_COUNT || job_is_live(job)) &&
           (job->ended_ms != 0) == job_has_ended(job);
}

static void changed(struct lifecycle *lc, struct job *job)
{
    job->version++;
    job_touch(lc, job);
    lc->options.changed(lc->options.ctx, job);
}

static void save_from(struct lifecycle *lc, struct job *job, enum job_state from)
{
    struct job_status status = status_of(job);

    store_job_save(lc->options.store, job->id, state_name(from), &status);
    changed(lc, job);
}

void job_save(struct lifecycle *lc, struct job *job)
{
    INVARIANT(is_consistent(job));
    save_from(lc, job, job->state);
}

static void insert_event(struct lifecycle *lc, const struct job *job, const char *type, const char *from,
                         const char *to, const char *detail)
{
    store_event_insert(
        lc->options.store,
        &(struct event_row){
            .job = job->id, .at_ms = lifecycle_now_ms(lc), .type = type, .from = from, .to = to, .detail = detail});
}

void job_move(struct lifecycle *lc, struct job *job, enum job_state to, const char *detail)
{
    enum job_state from = job->state;

    INVARIANT(state_may(from, to));
    job->state = to;
    if (job_has_ended(job))
        job->ended_ms = lifecycle_now_ms(lc);
    INVARIANT(is_consistent(job));
    insert_event(lc, job, "Moved", state_name(from), state_name(to), detail);
    save_from(lc, job, from);
    log_info("job.moved", LOG_INT("job", job->id), LOG_STR("name", job_name(job)), LOG_STR("queue", job->queue),
             LOG_STR("from", state_name(from)), LOG_STR("to", state_name(to)),
             LOG_STR("why", detail[0] ? detail : NULL));
}

void job_event(struct lifecycle *lc, const struct job *job, const char *type, const char *fmt, ...)
{
    char words[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    insert_event(lc, job, type, "", "", words);
    log_info("job.event", LOG_INT("job", job->id), LOG_STR("name", job_name(job)), LOG_STR("type", type),
             LOG_STR("detail", words));
}

void job_touch(struct lifecycle *lc, struct job *job)
{
    wake_behind(lc, job);
    if (job->is_dirty)
        return;
    job->is_dirty = true;
    mem_grow(lc->dirty, lc->n_dirty, lc->cap_dirty);
    lc->dirty[lc->n_dirty++] = job->id;
}

void job_wake_at(struct lifecycle *lc, struct job *job, int64_t at_ms)
{
    if (at_ms < job->due_ms)
        job->due_ms = at_ms;
    if (job->due_ms < lc->next_due_ms)
        lc->next_due_ms = job->due_ms;
}

int64_t backoff_ms(int64_t n_failures)
{
    int64_t delay = BACKOFF_FIRST_MS;

    for (int64_t i = 1; i < n_failures && delay < BACKOFF_MAX_MS; i++)
        delay *= 2;
    return delay < BACKOFF_MAX_MS ? delay : BACKOFF_MAX_MS;
}
