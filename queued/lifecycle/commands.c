/* What people may do to a job, and when. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/lifecycle/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

static void store_dependencies(struct lifecycle *lc, struct job *job, const struct job_submission *submission)
{
    job->waits_for = mem_array(int64_t, submission->n_waits_for);
    for (size_t i = 0; i < submission->n_waits_for; i++) {
        job->waits_for[job->n_waits_for++] = submission->waits_for[i];
        store_dependency_add(lc->options.store, job->id, submission->waits_for[i]);
    }
}

static int64_t insert(struct lifecycle *lc, const struct job_submission *submission, enum job_state state)
{
    const struct job_spec *spec = &submission->blueprint->spec;
    char *text = json_dumps(submission->blueprint->gangjob, JSON_COMPACT);
    int64_t id = store_job_insert(lc->options.store, &(struct job_row){.name = spec->name,
                                                                       .ns = spec->ns,
                                                                       .queue = submission->queue,
                                                                       .user = submission->user,
                                                                       .spec = text,
                                                                       .submitted_ms = lifecycle_now_ms(lc),
                                                                       .status = {.state = state_name(state),
                                                                                  .reason = "",
                                                                                  .priority = submission->priority,
                                                                                  .retries_left = spec->retries,
                                                                                  .exit_code = -1}});

    free(text);
    return id;
}

struct job *lifecycle_submit(struct lifecycle *lc, const struct job_submission *submission)
{
    enum job_state state = submission->blueprint->spec.hold ? JOB_HELD : JOB_PENDING;
    int64_t id = insert(lc, submission, state);
    struct job *job;

    if (id == 0)
        return NULL;
    job = job_new(id, submission->queue, submission->user, submission->blueprint);
    job->state = state;
    job->submitted_ms = lifecycle_now_ms(lc);
    job->priority = submission->priority;
    job->retries_left = submission->blueprint->spec.retries;
    job_list_add(&lc->jobs, job);
    store_dependencies(lc, job, submission);
    job_event(lc, job, "Submitted", "to queue %s by %s", job->queue, job->user);
    job_touch(lc, job);
    lc->options.changed(lc->options.ctx, job);
    return job;
}

/* "2 members on n1, n2": each node once, in the order of the members. */
static void tell_placement(struct lifecycle *lc, struct job *job)
{
    const json_t *members = json_object_get(job->live->placement, "members"), *member;
    json_t *seen = json_object();
    size_t i;
    BUF text = {0};

    buf_addf(&text, "%zu member%s on", json_array_size(members), json_array_size(members) == 1 ? "" : "s");
    json_array_foreach (members, i, member) {
        const char *node = json_text_at(member, "node", NULL);

        if (!node || json_object_get(seen, node))
            continue;
        buf_addf(&text, "%s %s", json_object_size(seen) ? "," : "", node);
        json_object_set_new(seen, node, json_true());
    }
    json_decref(seen);
    job_move(lc, job, JOB_ADMITTED, buf_str(&text));
}

int64_t job_next_attempt(const struct job *job)
{
    return job->attempt + 1;
}

void lifecycle_admit(struct lifecycle *lc, struct job *job, const struct job_admission *admission)
{
    job->attempt = job_next_attempt(job);
    job->live = attempt_new(job->attempt, admission->shape, lifecycle_now_ms(lc));
    attempt_decide(job->live, admission->objects, admission->placement, admission->chosen, admission->charges);
    job->live->effective = json_incref(admission->effective);
    job->n_members = json_array_size(json_object_get(admission->placement, "members"));
    job->live->order = ++lc->n_planned;
    attempt_store(job->live, job->id, lc->options.store);
    lc->has_bound |= attempt_is_bound(job->live);
    job_set_wait(job, NULL, false);
    lc->n_launches++;
    tell_placement(lc, job);
    assume_attempt(lc, job);
}

static int conflict(const struct job *job, const char *what, struct error *err)
{
    return error_set(err, ERR_CONFLICT, "job %s (%lld) is %s%s: %s", job_name(job), (long long)job->id,
                     state_name(job->state), job->ending == JOB_STATE_COUNT ? "" : " and being ended", what);
}

int lifecycle_cancel(struct lifecycle *lc, struct job *job, const char *who, struct error *err)
{
    if (job_has_ended(job) || job->ending == JOB_SUCCEEDED || job->ending == JOB_FAILED)
        return conflict(job, "there is nothing to cancel", err);
    if (job->ending == JOB_CANCELLED)
        return 0;
    job_set_reason(job, "cancelled by %s", who);
    if (job_is_live(job)) {
        job_end(lc, job, JOB_CANCELLED);
        return 0;
    }
    job_move(lc, job, JOB_CANCELLED, job->reason);
    job_ended(lc, job);
    return 0;
}

int lifecycle_hold(struct lifecycle *lc, struct job *job, const char *who, struct error *err)
{
    if (job->state == JOB_HELD)
        return 0;
    if (job->state != JOB_PENDING)
        return conflict(job, "only a pending job can be held; cancel or requeue a running one", err);
    job_set_wait(job, NULL, false);
    job_set_reason(job, "held by %s", who);
    job_move(lc, job, JOB_HELD, job->reason);
    return 0;
}

int lifecycle_release(struct lifecycle *lc, struct job *job, const char *who, struct error *err)
{
    if (job->state == JOB_PENDING)
        return 0;
    if (job->state != JOB_HELD)
        return conflict(job, "only a held job can be released", err);
    job_set_reason(job, "released by %s", who);
    job->not_before_ms = 0;
    job_move(lc, job, JOB_PENDING, job->reason);
    return 0;
}

int lifecycle_requeue(struct lifecycle *lc, struct job *job, const char *who, struct error *err)
{
    if (job->ending == JOB_PENDING)
        return 0;
    if (!job_is_live(job) || job->ending != JOB_STATE_COUNT)
        return conflict(job, "only a job that is being started or runs can be requeued", err);
    job_set_reason(job, "requeued by %s", who);
    job_move(lc, job, JOB_PREEMPTING, job->reason);
    job_end(lc, job, JOB_PENDING);
    return 0;
}
