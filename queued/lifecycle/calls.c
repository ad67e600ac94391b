/* What the end of a call means for the object that it was about. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "queued/lifecycle/internal.h"
#include "queued/log.h"

#include "allocator/base/banned.h"

/* Asking again cannot help: the attempt must go. Everything else is asked again, later and later. */
static bool is_final(enum err_code code)
{
    return code == ERR_INVALID || code == ERR_DENIED || code == ERR_LIMIT || code == ERR_NOT_FOUND;
}

static void ask_again_later(struct lifecycle *lc, struct job *job, struct launch_object *object)
{
    object->failures++;
    object->retry_ms = lifecycle_now_ms(lc) + backoff_ms(object->failures);
    job_wake_at(lc, job, object->retry_ms);
}

/* Look at the object itself, whatever the stream has told. */
static void look_it_up(struct lifecycle *lc, const struct call_result *result, struct launch_object *object)
{
    object->is_asked = true;
    outbox_get(lc->options.outbox, result->target, object->kind, object->ns, object->name);
}

static void create_done(struct lifecycle *lc, struct job *job, struct launch_object *object,
                        const struct call_result *result)
{
    const char *uid = json_text_at(result->object, "metadata", "uid", NULL);

    if (!result->err && uid && object->gone_uid && strcmp(uid, object->gone_uid) == 0) {
        ask_again_later(lc, job, object); /* the stream was faster, and has told its end already */
    } else if (!result->err) {
        if (!object->observed) /* else the stream was faster, and may know more */
            launch_object_observe(object, result->object);
        object->is_there = object->is_told = true;
        assume_object(lc, job, object);
    } else if (result->err->code == ERR_CONFLICT) {
        look_it_up(lc, result, object); /* ours already? */
    } else if (is_final(result->err->code) && job->ending == JOB_STATE_COUNT) {
        job_launch_refused(lc, job, "create", object, result->err);
    } else {
        ask_again_later(lc, job, object);
    }
}

/* The anchor was looked for in order to remove it, and there is none of ours. */
static bool is_nothing_to_remove(const struct job *job, const struct launch_object *object,
                                 const struct call_result *result)
{
    return job->ending != JOB_STATE_COUNT && object == attempt_anchor(job->live) && job->live->remove_ms == 0 &&
           (object->is_foreign || (result->err && result->err->code == ERR_NOT_FOUND));
}

static void get_done(struct lifecycle *lc, struct job *job, struct launch_object *object,
                     const struct call_result *result)
{
    object->is_foreign = !result->err && !object_is_of_attempt(job, result->object);
    if (!result->err && !object->is_foreign)
        launch_object_observe(object, result->object);
    else if (object->is_foreign || result->err->code == ERR_NOT_FOUND)
        launch_object_observe(object, NULL);
    else
        object->is_there |= job->ending != JOB_STATE_COUNT; /* unknown: look again before it counts as gone */
    if (object->is_foreign && job->ending == JOB_STATE_COUNT)
        job_launch_failed(lc, job, "%s %s exists already and is not ours", object->kind, object->name);
    if (is_nothing_to_remove(job, object, result))
        job->live->remove_ms = lifecycle_now_ms(lc);
    ask_again_later(lc, job, object);
    if (!result->err && job->ending != JOB_STATE_COUNT && job->live->remove_ms == 0)
        object->retry_ms = 0; /* now that its uid is known it can be removed */
    if (object->is_there && job->ending == JOB_STATE_COUNT)
        object->failures = 0;
    assume_object(lc, job, object);
}

static void remove_done(struct lifecycle *lc, struct job *job, struct launch_object *object,
                        const struct call_result *result)
{
    if (result->err && result->err->code != ERR_NOT_FOUND) {
        ask_again_later(lc, job, object);
        return;
    }
    if (object == attempt_anchor(job->live) && job->live->remove_ms == 0)
        job->live->remove_ms = lifecycle_now_ms(lc);
    if (object->failures > 0)
        look_it_up(lc, result, object); /* the stream should have told its end, and may never have known it */
    else
        ask_again_later(lc, job, object);
}

static void ungate_done(struct lifecycle *lc, struct job *job, struct launch_object *object,
                        const struct call_result *result)
{
    if (!result->err)
        object->is_let_go = true;
    else if (is_final(result->err->code) && job->ending == JOB_STATE_COUNT)
        job_launch_refused(lc, job, "start", object, result->err);
    else
        ask_again_later(lc, job, object);
}

static void allocate_done(struct lifecycle *lc, struct job *job, struct launch_object *object,
                          const struct call_result *result)
{
    if (!result->err)
        object->is_allocated = true;
    else if (result->err->code == ERR_CONFLICT)
        look_it_up(lc, result, object); /* by whom? */
    else if (is_final(result->err->code) && job->ending == JOB_STATE_COUNT)
        job_launch_refused(lc, job, "allocate", object, result->err);
    else
        ask_again_later(lc, job, object);
}

static void bind_done(struct lifecycle *lc, struct job *job, struct launch_object *object,
                      const struct call_result *result)
{
    if (result->err && result->err->code == ERR_CONFLICT)
        look_it_up(lc, result, object); /* bound already? */
    else
        ungate_done(lc, job, object, result);
}

static void (*const handlers[])(struct lifecycle *lc, struct job *job, struct launch_object *object,
                                const struct call_result *result) = {
    [CALL_CREATE] = create_done,     [CALL_GET] = get_done,        [CALL_REMOVE] = remove_done,
    [CALL_ERASE] = remove_done,      [CALL_RELEASE] = remove_done, [CALL_UNGATE] = ungate_done,
    [CALL_ALLOCATE] = allocate_done, [CALL_BIND] = bind_done,
};

/* Of a call for nobody: a stray is gone, stays, or has just been made by a creation that came too late. */
static void stray_done(struct lifecycle *lc, const struct call_result *result)
{
    if (result->kind == CALL_CREATE && !result->err && result->object)
        stray_put(lc, result->object);
    for (size_t i = 0; i < lc->n_strays; i++)
        if (result->kind == CALL_REMOVE)
            lc->strays[i].is_asked = false; /* those that still stand are tried again by the next reconciliation */
}

void lifecycle_call_done(struct lifecycle *lc, const struct call_result *result)
{
    struct job *job = job_list_find(&lc->jobs, result->target.job);
    struct launch_object *object;

    /* Whether something is gone is asked to be told so. */
    if (result->err && !(result->kind == CALL_GET && result->err->code == ERR_NOT_FOUND))
        log_warn("cluster.refused", LOG_INT("job", result->target.job), LOG_STR("kind", result->object_kind),
                 LOG_STR("name", result->name), LOG_STR("why", result->err->text));
    if (result->target.attempt < 0) {
        ask_call_done(lc, job, result);
        return;
    }
    if (!job || !job->live || job->live->number != result->target.attempt) {
        stray_done(lc, result);
        return;
    }
    INVARIANT(result->target.object < job->live->n_objects);
    object = &job->live->objects[result->target.object];
    object->is_asked = false;
    handlers[result->kind](lc, job, object, result);
    job_touch(lc, job);
}
