/* The planner. A round gets values that nobody changes any more (a snapshot, a book, blueprints, amounts), runs on a
 * worker, and comes back as a value. Meanwhile the loop goes on: a job may have been cancelled, a device taken by
 * somebody else. So each admission is checked before it is committed: the job must be as it was, the queues too, and
 * nothing that the placement relies on may have changed to its disadvantage. What fails the check is left for the next
 * round, which is then wanted anyway. That the admissions before it were planned with it in mind does no harm: without
 * it there is only more room. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allocator/base/mem.h"
#include "queued/internal.h"
#include "queued/lifecycle/objects.h"
#include "queued/log.h"
#include "queued/nodes.h"

#include "allocator/base/banned.h"

/* With more pending jobs than this a round only counts what blocks each; the search for what would make a job fit is
 * then made when somebody asks (planner_explain). */
#define MAX_FULL_EXPLANATIONS 32

/* What is asked for where PodGroups are wanted always and the cluster has none: its refusal is the reason to wait. */
#define POD_GROUP_VERSION "scheduling.k8s.io/v1beta1"

struct planner_round {
    struct core *core;
    uint64_t epoch, number;
    struct book *book;
    struct snapshot *snapshot;
    struct workload *workload;
    struct arena arena;
    struct plan_input input;
    struct plan_resource *resources;
    struct blueprint **blueprints; /* one per pending job: keeps its spec alive */
    uint64_t *versions;            /* of the pending jobs */
    bool *has_asked;               /* one per queue: a job of it lacks nodes */
    int64_t took_us;
    struct plan plan;
};

/* ---- in ---- */

static const char *waiting_for(const struct core *core, const struct job *job, struct arena *arena)
{
    const struct job *other =
        job->n_waits_for ? job_list_find(lifecycle_jobs(core->lifecycle), job->waits_for[0]) : NULL;

    if (!other)
        return NULL;
    return arena_printf(arena, "job %s (%lld), which is %s", job_name(other), (long long)other->id,
                        state_name(other->state));
}

static void add_pending(struct core *core, struct planner_round *round, struct plan_job *jobs, struct job *job)
{
    size_t queue = book_find_queue(core->book, job->queue), n = round->input.n_pending;

    if (job->state != JOB_PENDING || queue == SIZE_MAX)
        return;
    jobs[n] = (struct plan_job){
        .id = job->id,
        .queue = queue,
        .priority = job_priority(core, job),
        .submitted_ms = job->submitted_ms,
        .not_before_ms = job->not_before_ms,
        .last_failure = job->failures ? arena_strdup(&round->arena, job->reason) : NULL,
        .waits_for = waiting_for(core, job, &round->arena),
        .spec = &job->blueprint->spec,
        .last_look = job->last_look,
        .twin = job->blueprint->twin,
    };
    round->blueprints[n] = blueprint_ref(job->blueprint);
    round->versions[n] = job->version;
    round->input.n_pending++;
}

static struct planner_round *round_new(struct core *core)
{
    const struct job_list *jobs = lifecycle_jobs(core->lifecycle);
    struct planner_round *round = mem_new(struct planner_round);
    struct plan_job *pending = arena_array(&round->arena, struct plan_job, jobs->n);

    round->core = core;
    round->epoch = core->epoch;
    round->book = book_ref(core->book);
    round->snapshot = world_snapshot(core->world);
    round->workload = workload_now(core, snapshot_features(round->snapshot));
    round->resources = resources_now(core->book, round->snapshot);
    round->blueprints = mem_array(struct blueprint *, jobs->n + 1);
    round->versions = mem_array(uint64_t, jobs->n + 1);
    round->has_asked = arena_array(&round->arena, bool, core->book->n_queues);
    round->input = (struct plan_input){
        .snapshot = round->snapshot,
        .workload = workload_gangs(round->workload),
        .resources = round->resources,
        .n_resources = core->book->n_resources,
        .queues = core->book->queues,
        .n_queues = core->book->n_queues,
        .pending = pending,
        .now_ms = core_now_ms(core),
        .bind = core->bind,
        .makes_namespaces = json_is_true(json_object_get(core->described, "makesNamespaces")),
    };
    policies_now(core, &round->arena, &round->input);
    round->input.running = running_now(core, core->book, &round->arena, &round->input.n_running);
    for (size_t i = 0; i < jobs->n; i++)
        add_pending(core, round, pending, jobs->items[i]);
    round->input.is_brief = round->input.n_pending > MAX_FULL_EXPLANATIONS;
    return round;
}

void planner_round_free(struct planner_round *round)
{
    if (!round)
        return;
    plan_release(&round->plan);
    for (size_t i = 0; i < round->input.n_pending; i++)
        blueprint_unref(round->blueprints[i]);
    free(round->blueprints);
    free(round->versions);
    free(round->resources);
    arena_release(&round->arena);
    workload_unref(round->workload);
    snapshot_unref(round->snapshot);
    book_unref(round->book);
    free(round);
}

/* Real time, also where the core lives in virtual time: it is measured, and decides nothing. */
static int64_t mono_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* On the worker. */
static void round_work(void *arg)
{
    struct planner_round *round = arg;
    int64_t begin_us = mono_us();

    admission_plan(&round->input, &round->plan);
    round->took_us = mono_us() - begin_us;
}

/* Back on the loop; the turn applies it. The core waits for this before it frees itself. */
static void round_done(void *arg)
{
    struct planner_round *round = arg;

    round->core->is_round_back = true;
}

void planner_start(struct core *core)
{
    if (lifecycle_take_wants_plan(core->lifecycle) || world_version(core->world) != core->planned_version)
        core->wants_plan = true;
    if ((!core->wants_plan && !core->wants_rest) || core->round || !core->is_synced || core->degraded.code ||
        core->not_leading.code)
        return;
    core->n_rounds++;
    if (core->wants_plan)
        core->change_round = core->n_rounds;
    core->wants_plan = core->wants_rest = false;
    core->planned_version = world_version(core->world);
    core->round = round_new(core);
    core->round->number = core->n_rounds;
    core->is_round_back = false;
    world_watch_begin(core->world);
    if (core->round->input.n_pending == 0) {
        planner_round_free(core->round);
        core->round = NULL;
    } else if (core->options.run) {
        core->options.run(core->options.run_ctx, round_work, round_done, core->round);
    } else {
        round_work(core->round);
        round_done(core->round);
    }
}

/* ---- out ---- */

static json_t *charges_view(const struct planner_round *round, const int64_t *charges)
{
    json_t *view = json_object();

    for (size_t r = 0; r < round->input.n_resources; r++)
        if (charges[r] > 0)
            json_object_set_new(view, round->input.resources[r].name, json_integer(charges[r]));
    return view;
}

const char *core_pod_group(const struct core *core)
{
    const char *version = json_string_value(json_object_get(core->described, "podGroup"));

    switch (core->options.pod_groups) {
    case POD_GROUPS_AUTO:
        return json_object_get(core->described, "podGroupDenied") ? NULL : version;
    case POD_GROUPS_NEVER:
        return NULL;
    case POD_GROUPS_ALWAYS:
        return version ? version : POD_GROUP_VERSION;
    }
    return NULL;
}

static void admit(struct core *core, const struct planner_round *round, const struct plan_outcome *outcome,
                  struct job *job)
{
    struct objects_input input = {
        .pod_group = core_pod_group(core),
        .job = job->id,
        .attempt = job_next_attempt(job),
        .server = core->server,
        .spec = &job->blueprint->spec,
        .shape = outcome->shape,
        .placement = outcome->placement,
        .consumes = job_ask_provisioned(job),
        .consumes_class = core->options.provisioning_class,
        .bind = core->bind,
        .binds_pods = core->options.binds_pods,
        .snapshot = round->snapshot,
    };
    struct job_admission admission = {
        .shape = outcome->shape,
        .objects = attempt_objects(&input),
        .placement = attempt_placement_view(&input),
        .chosen = attempt_chosen(&input),
        .charges = charges_view(round, outcome->charges),
        .effective = effective_view(&outcome->effective),
    };

    lifecycle_admit(core->lifecycle, job, &admission);
    json_decref(admission.objects);
    json_decref(admission.placement);
    json_decref(admission.chosen);
    json_decref(admission.charges);
    json_decref(admission.effective);
}

/* A round that passes over somebody whom none came to since the last change is followed by another one. */
static void note_wait(struct core *core, const struct planner_round *round, const struct plan_outcome *outcome,
                      struct job *job)
{
    job_set_wait(job, outcome, round->input.is_brief);
    if (!outcome->is_untried)
        job->last_look = round->number;
    else if (job->last_look < core->change_round)
        core->wants_rest = true;
}

/* Whether nodes are what it lacks; nobody asks for any unless an administrator wants that. */
static void note_wish(struct core *core, const struct planner_round *round, const struct plan_outcome *outcome,
                      struct job *job)
{
    if (core->options.provisioning_class)
        lifecycle_wish_nodes(core->lifecycle, job, nodes_wish(&round->input, round->book, outcome, round->has_asked));
}

static void apply(struct core *core, const struct planner_round *round, const struct plan_outcome *outcome)
{
    struct job *job = job_list_find(lifecycle_jobs(core->lifecycle), round->input.pending[outcome->job].id);

    if (!job || job->state != JOB_PENDING || job->version != round->versions[outcome->job])
        return;
    note_wish(core, round, outcome, job);
    if (!outcome->is_admitted)
        note_wait(core, round, outcome, job);
    else if (round->book == core->book && !world_disturbs(core->world, outcome->placement))
        admit(core, round, outcome, job);
    else
        core->wants_plan = true;
}

void planner_apply(struct core *core)
{
    struct planner_round *round = core->round;

    if (!core->is_round_back)
        return;
    core->round = NULL;
    core->is_round_back = false;
    core->n_plans++;
    core->last_plan_us = round->took_us;
    if (round->epoch == core->epoch && core->is_synced)
        for (size_t i = 0; i < round->plan.n_outcomes; i++)
            apply(core, round, &round->plan.outcomes[i]);
    else
        core->wants_plan = true;
    log_debug("plan.applied", LOG_INT("pending", round->input.n_pending), LOG_INT("admitted", round->plan.n_admitted),
              LOG_INT("tries", round->plan.n_tries));
    core->is_changed = true;
    planner_round_free(round);
}

/* ---- what if ---- */

json_t *planner_explain(struct core *core, const struct job *job)
{
    struct planner_round *round = round_new(core);
    struct plan_input input = round->input;
    struct plan plan;
    json_t *explanation = NULL;

    input.is_brief = false;
    for (size_t i = 0; i < input.n_pending; i++)
        if (input.pending[i].id == job->id) {
            input.pending = &input.pending[i];
            input.n_pending = 1;
            admission_plan(&input, &plan);
            explanation = json_incref(plan.outcomes[0].explanation);
            plan_release(&plan);
        }
    planner_round_free(round);
    return explanation;
}

static json_t *prediction_of(const struct plan_outcome *outcome)
{
    json_t *view = outcome->explanation ? json_deep_copy(outcome->explanation) : json_object();

    if (!outcome->is_admitted) {
        json_object_set_new(view, "layer", json_string(plan_layer_name(outcome->layer)));
        json_object_set_new(view, "summary", json_string(outcome->reason));
    }
    json_object_set_new(view, "effectivePlacement", effective_view(&outcome->effective));
    if (outcome->is_admitted && outcome->placement)
        json_object_set_new(view, "placement", placement_to_json(outcome->placement, outcome->question));
    return view;
}

json_t *planner_predict(struct core *core, struct blueprint *const *blueprints, const size_t *queues,
                        const int64_t *priorities, size_t n)
{
    struct planner_round *round = round_new(core);
    struct plan_job *jobs = arena_array(&round->arena, struct plan_job, n);
    struct plan_input input = round->input;
    struct plan plan;
    json_t *views = json_array();

    for (size_t i = 0; i < n; i++) {
        jobs[i] = (struct plan_job){.id = (int64_t)i,
                                    .queue = queues[i],
                                    .priority = priorities[i],
                                    .submitted_ms = input.now_ms,
                                    .spec = &blueprints[i]->spec};
        json_array_append_new(views, json_null());
    }
    input.pending = jobs;
    input.n_pending = n;
    admission_plan(&input, &plan);
    for (size_t i = 0; i < plan.n_outcomes; i++)
        json_array_set_new(views, plan.outcomes[i].job, prediction_of(&plan.outcomes[i]));
    plan_release(&plan);
    planner_round_free(round);
    return views;
}
