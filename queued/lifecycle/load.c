/* From rows back to jobs: what a restart begins with. */
#include <stdlib.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "queued/lifecycle/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

/* Callbacks of the store cannot fail, so the first failure is kept here. */
struct loading {
    struct lifecycle *lc;
    struct error err;
};

static enum job_state state_of(const char *name)
{
    enum job_state state = JOB_STATE_COUNT;

    INVARIANT(!name || state_find(name, &state)); /* the schema allows no other */
    return state;
}

static struct job *job_of_row(const struct job_row *row, struct blueprint *blueprint)
{
    struct job *job = job_new(row->id, row->queue, row->user, blueprint);

    job->submitted_ms = row->submitted_ms;
    job->state = state_of(row->status.state);
    job->ending = state_of(row->status.ending);
    job_set_reason(job, "%s", row->status.reason);
    job->priority = row->status.priority;
    job->attempt = row->status.attempt;
    job->retries_left = row->status.retries_left;
    job->failures = row->status.failures;
    job->not_before_ms = row->status.not_before_ms;
    job->started_ms = row->status.started_ms;
    job->ended_ms = row->status.ended_ms;
    job->exit_code = row->status.exit_code;
    return job;
}

static void load_job(void *ctx, const struct job_row *row)
{
    struct loading *loading = ctx;
    json_t *gangjob = json_loads(row->spec, 0, NULL);
    struct blueprint *blueprint;

    if (!loading->err.code && blueprint_new(gangjob, &blueprint, &loading->err) < 0)
        error_wrap(&loading->err, "job %lld as stored", (long long)row->id);
    if (!loading->err.code) {
        job_list_add(&loading->lc->jobs, job_of_row(row, blueprint));
        blueprint_unref(blueprint);
    }
    json_decref(gangjob);
}

static void load_dependency(void *ctx, int64_t id, int64_t depends_on)
{
    struct loading *loading = ctx;
    struct job *job = job_list_find(&loading->lc->jobs, id);

    if (!job) /* only after a failure before */
        return;
    job->waits_for = mem_resize(job->waits_for, job->n_waits_for + 1, sizeof(*job->waits_for));
    job->waits_for[job->n_waits_for++] = depends_on;
}

/* How many members ran follows from the specification, but for gangs that may have started smaller or otherwise. */
static bool has_one_size(const struct job_spec *spec)
{
    for (size_t i = 0; i < spec->shapes[0].n_groups; i++)
        if (spec->shapes[0].groups[i].min_replicas < spec->shapes[0].groups[i].replicas)
            return false;
    return spec->n_shapes == 1;
}

static void count_members(struct job *job, const struct attempt *attempt)
{
    job->n_members = json_array_size(json_object_get(attempt->placement, "members"));
}

static int load_last_attempt(struct lifecycle *lc, struct job *job, struct error *err)
{
    CLEANUP(attempt) *attempt = NULL;

    if (!job_has_ended(job) || job->attempt == 0 || has_one_size(&job->blueprint->spec))
        return 0;
    if (attempt_load(lc->options.store, job->id, job->attempt, &attempt, err) < 0)
        return -1;
    count_members(job, attempt);
    return 0;
}

static int cmp_planned(const void *a, const void *b)
{
    const struct job *x = *(struct job *const *)a, *y = *(struct job *const *)b;

    if (x->live->created_ms != y->live->created_ms)
        return x->live->created_ms < y->live->created_ms ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Attempts in the order in which they were planned, as far as is stored. */
static void number_attempts(struct lifecycle *lc)
{
    struct job **live = mem_array(struct job *, lc->jobs.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < lc->jobs.n; i++)
        if (lc->jobs.items[i]->live)
            live[n++] = lc->jobs.items[i];
    qsort(live, n, sizeof(struct job *), cmp_planned);
    for (size_t i = 0; i < n; i++)
        live[i]->live->order = ++lc->n_planned;
    free(live);
}

static int load_attempts(struct lifecycle *lc, struct error *err)
{
    for (size_t i = 0; i < lc->jobs.n; i++) {
        struct job *job = lc->jobs.items[i];

        if (job_is_live(job)) {
            if (attempt_load(lc->options.store, job->id, job->attempt, &job->live, err) < 0)
                return -1;
            job->live->step_ms = lifecycle_now_ms(lc);
            count_members(job, job->live);
            lc->has_bound |= attempt_is_bound(job->live);
        } else if (load_last_attempt(lc, job, err) < 0) {
            return -1;
        }
        job_touch(lc, job);
    }
    number_attempts(lc);
    return 0;
}

static int load(struct lifecycle *lc, struct error *err)
{
    struct loading loading = {.lc = lc};

    if (store_jobs_each(lc->options.store, load_job, &loading, &loading.err) < 0 || loading.err.code ||
        store_dependencies_each(lc->options.store, load_dependency, &loading, &loading.err) < 0) {
        if (err)
            *err = loading.err;
        return -1;
    }
    return load_attempts(lc, err);
}

int lifecycle_new(const struct lifecycle_options *options, struct lifecycle **out, struct error *err)
{
    struct lifecycle *lc = mem_new(struct lifecycle);

    lc->options = *options;
    lc->next_due_ms = INT64_MAX;
    lc->claims_version = 1; /* no attempt has seen it */
    if (load(lc, err) < 0) {
        lifecycle_free(lc);
        return error_wrap(err, "load jobs");
    }
    *out = lc;
    return 0;
}
