#include "queued/lifecycle/lifecycle.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "queued/lifecycle/internal.h"

#include "allocator/base/banned.h"

const char *json_text_at(const json_t *object, ...)
{
    va_list keys;
    const char *key;

    va_start(keys, object);
    while ((key = va_arg(keys, const char *)))
        object = json_object_get(object, key);
    va_end(keys);
    return json_string_value(object);
}

void lifecycle_free(struct lifecycle *lc)
{
    if (!lc)
        return;
    for (size_t i = 0; i < lc->jobs.n; i++)
        job_free(lc->jobs.items[i]);
    free(lc->jobs.items);
    free(lc->dirty);
    strays_free(lc);
    free(lc);
}

const struct job_list *lifecycle_jobs(const struct lifecycle *lc)
{
    return &lc->jobs;
}

size_t lifecycle_n_drift(const struct lifecycle *lc)
{
    return lc->n_drift;
}

size_t lifecycle_n_launches(const struct lifecycle *lc)
{
    return lc->n_launches;
}

size_t lifecycle_n_launch_failures(const struct lifecycle *lc)
{
    return lc->n_launch_failures;
}

void lifecycle_assume_nothing(struct lifecycle *lc)
{
    for (size_t i = 0; i < lc->jobs.n; i++)
        if (lc->jobs.items[i]->live)
            forget_attempt(lc, lc->jobs.items[i]->live);
}

void lifecycle_assume_all(struct lifecycle *lc)
{
    for (size_t i = 0; i < lc->jobs.n; i++)
        if (lc->jobs.items[i]->live)
            assume_attempt(lc, lc->jobs.items[i]);
}

/* ---- one look at each job that wants it ---- */

static enum step step_wait(struct lifecycle *lc, struct job *job)
{
    (void)lc, (void)job;
    return STEP_WAIT;
}

static enum step step_pending(struct lifecycle *lc, struct job *job)
{
    if (job->not_before_ms > lifecycle_now_ms(lc))
        job_wake_at(lc, job, job->not_before_ms);
    else
        lc->wants_plan = true;
    return STEP_WAIT;
}

static enum step (*const steps[JOB_STATE_COUNT])(struct lifecycle *lc, struct job *job) = {
    [JOB_HELD] = step_wait,        [JOB_PENDING] = step_pending, [JOB_ADMITTED] = step_create,
    [JOB_LAUNCHING] = step_launch, [JOB_RUNNING] = step_run,     [JOB_PREEMPTING] = step_end,
    [JOB_SUCCEEDED] = step_after,  [JOB_FAILED] = step_after,    [JOB_CANCELLED] = step_after,
};

static enum step look(struct lifecycle *lc, struct job *job)
{
    if (!job_is_live(job))
        return steps[job->state](lc, job);
    if (!lc->is_synced) /* what is missing may only not have been told yet */
        return STEP_WAIT;
    return job->ending != JOB_STATE_COUNT ? step_end(lc, job) : steps[job->state](lc, job);
}

void lifecycle_step(struct lifecycle *lc)
{
    for (size_t i = 0; i < lc->n_dirty; i++) { /* grows while it runs */
        int64_t id = lc->dirty[i];
        struct job *job = job_list_find(&lc->jobs, id);

        if (!job)
            continue;
        job->is_dirty = false;
        job->due_ms = INT64_MAX;
        while (look(lc, job) == STEP_MORE)
            continue;
        job = job_list_find(&lc->jobs, id); /* its time to live may have ended */
        if (job)
            ask_step(lc, job);
    }
    lc->n_dirty = 0;
}

bool lifecycle_is_dirty(const struct lifecycle *lc)
{
    return lc->n_dirty > 0;
}

int64_t lifecycle_next_due_ms(const struct lifecycle *lc)
{
    return lc->next_due_ms;
}

void lifecycle_tick(struct lifecycle *lc)
{
    int64_t now_ms = lifecycle_now_ms(lc);

    if (now_ms < lc->next_due_ms)
        return;
    lc->next_due_ms = INT64_MAX;
    for (size_t i = 0; i < lc->jobs.n; i++) {
        struct job *job = lc->jobs.items[i];

        if (job->due_ms <= now_ms)
            job_touch(lc, job);
        else if (job->due_ms < lc->next_due_ms)
            lc->next_due_ms = job->due_ms;
    }
}

bool lifecycle_take_wants_plan(struct lifecycle *lc)
{
    bool wants = lc->wants_plan;

    lc->wants_plan = false;
    return wants;
}

/* ---- what the cluster tells ---- */

void lifecycle_stream_lost(struct lifecycle *lc)
{
    lc->is_synced = false;
    for (size_t i = 0; i < lc->n_strays; i++)
        lc->strays[i].is_told = false;
    for (size_t i = 0; i < lc->jobs.n; i++) {
        struct attempt *attempt = lc->jobs.items[i]->live;

        ask_stream_lost(lc->jobs.items[i]);
        for (size_t k = 0; attempt && k < attempt->n_objects; k++)
            attempt->objects[k].is_told = false;
    }
}

static void drop_untold_strays(struct lifecycle *lc)
{
    for (size_t i = lc->n_strays; i-- > 0;)
        if (!lc->strays[i].is_told)
            stray_drop(lc, lc->strays[i].kind, lc->strays[i].ns, lc->strays[i].name);
}

void lifecycle_stream_synced(struct lifecycle *lc)
{
    lc->is_synced = true;
    drop_untold_strays(lc);
    for (size_t i = 0; i < lc->jobs.n; i++) {
        struct job *job = lc->jobs.items[i];

        ask_stream_synced(lc, job);
        if (!job->live)
            continue;
        for (size_t k = 0; k < job->live->n_objects; k++)
            if (!job->live->objects[k].is_told)
                launch_object_observe(&job->live->objects[k], NULL);
        assume_attempt(lc, job);
        job_touch(lc, job);
    }
    lc->wants_plan = true;
}

/* The live attempt's object that a cluster object is, with its job; NULL for a stray. */
static struct launch_object *object_of(struct lifecycle *lc, const json_t *object, struct job **out_job)
{
    const char *id = json_text_at(object, "metadata", "labels", LABEL_JOB, NULL);
    const char *attempt = json_text_at(object, "metadata", "labels", LABEL_ATTEMPT, NULL);
    const char *kind = json_text_at(object, "kind", NULL), *name = json_text_at(object, "metadata", "name", NULL);
    const char *ns = json_text_at(object, "metadata", "namespace", NULL);
    struct job *job = id ? job_list_find(&lc->jobs, strtoll(id, NULL, 10)) : NULL;
    struct launch_object *found;

    if (!job || !job->live || !attempt || !ns || strtoll(attempt, NULL, 10) != job->live->number)
        return NULL;
    found = attempt_find(job->live, kind, name);
    *out_job = job;
    return found && strcmp(found->ns, ns) == 0 ? found : NULL;
}

bool lifecycle_is_ours(struct lifecycle *lc, const json_t *object)
{
    const char *server = json_text_at(object, "metadata", "labels", LABEL_SERVER, NULL);
    const struct launch_object *mine;
    struct job *job;

    if (!json_text_at(object, "metadata", "labels", LABEL_JOB, NULL))
        return false;
    if (server)
        return strcmp(server, lc->options.server) == 0;
    mine = object_of(lc, object, &job);
    return mine && !json_text_at(mine->body, "metadata", "labels", LABEL_SERVER, NULL);
}

/* Somebody takes away what is being created: it is created again, but later and later, lest the two of us go on at full
 * speed until the launch is too late. */
static void note_end(struct lifecycle *lc, const struct job *job, struct launch_object *mine, const json_t *object,
                     const char *before)
{
    free(mine->gone_uid);
    free(mine->gone_words);
    mine->gone_words = before[0] ? mem_strdup(before) : NULL;
    mine->gone_uid = mem_strdup(json_text_at(object, "metadata", "uid", NULL));
    if (job->state == JOB_ADMITTED && job->ending == JOB_STATE_COUNT)
        mine->retry_ms = lifecycle_now_ms(lc) + backoff_ms(++mine->failures);
}

void lifecycle_observe(struct lifecycle *lc, const json_t *object, bool is_gone)
{
    struct job *job;
    struct launch_object *mine = object_of(lc, object, &job);

    if (!mine && ask_observe(lc, object, is_gone))
        return;
    if (mine) {
        struct diagnosis before = {.sentence = ""};

        if (is_gone && mine->rank == RANK_POD && mine->observed)
            member_loss(job->live, mine, &before);
        launch_object_observe(mine, is_gone ? NULL : object);
        if (is_gone)
            note_end(lc, job, mine, object, before.sentence);
        assume_object(lc, job, mine);
        if (mine->rank == RANK_POD)
            assume_beside(lc, job, mine);
        job_touch(lc, job);
        lc->options.changed(lc->options.ctx, job);
        return;
    }
    if (is_gone)
        stray_drop(lc, json_text_at(object, "kind", NULL), json_text_at(object, "metadata", "namespace", NULL),
                   json_text_at(object, "metadata", "name", NULL));
    else
        stray_put(lc, object);
    lc->options.assume(lc->options.ctx, json_text_at(object, "kind", NULL),
                       json_text_at(object, "metadata", "namespace", NULL),
                       json_text_at(object, "metadata", "name", NULL), is_gone ? NULL : object);
}
