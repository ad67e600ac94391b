/* How a round goes. Everybody who waits stands in line (order.h). Whoever is next passes the gates below, one after the
 * other; the first gate that says no gives the reason. The last gate searches for devices: each whole-gang shape in the
 * user's order, on the snapshot in which everything admitted so far is taken. A placement that fits but costs more
 * quota than is left is searched for again without the devices whose quota is spent, so that a fallback on other
 * devices is found; what is charged is what the final placement really uses. The quotas of the job's namespace are
 * asked twice: before the search for what is sure by then, and with the placement for what it chose.
 *
 * A job that cannot start does not hold up those behind it: what they take now is theirs. (Reservations for the head of
 * a queue, backfill and preemption are further gates and steps; they have their place here.) */
#include "queued/admission/plan.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/base/quantity.h"
#include "queued/admission/bind.h"
#include "queued/admission/charge.h"
#include "queued/admission/needs.h"
#include "queued/admission/order.h"
#include "queued/admission/question.h"
#include "queued/admission/quota.h"

#include "allocator/base/banned.h"

/* A search that found nothing. Within a round devices and quota only become fewer, so whoever asks for the same in the
 * same queue would find nothing either. */
struct failure {
    uint64_t twin;
    size_t queue;
    const struct plan_outcome *outcome;
};

struct round {
    const struct plan_input *input;
    struct plan *plan;
    struct tree tree;
    struct order order;
    const struct snapshot *snapshot; /* with everything admitted so far */
    struct quantity **used;          /* per namespace quota and limit, likewise */
    size_t max_tries;
    bool *is_overdue;         /* per pending job: its try is kept for it */
    size_t n_tries_kept;      /* for those; the others share what is left */
    size_t n_tries_shared;    /* spent of that */
    struct failure *failures; /* open addressing by twin; n_slots is a power of two, more than twice what is in it */
    size_t n_slots;
};

static const struct plan_job *job_of(const struct round *round, const struct plan_outcome *outcome)
{
    return &round->input->pending[outcome->job];
}

static struct effective_placement placement_of(const struct round *round, const struct plan_job *job)
{
    return effective_placement_of(job->spec->placement, round->input->queues, job->queue);
}

/* Say no; returns true, as a gate that has decided does. */
static bool waits(struct plan_outcome *outcome, enum plan_layer layer, const char *reason)
{
    outcome->layer = layer;
    outcome->reason = reason;
    return true;
}

/* ---- gates that need no search ---- */

static bool gate_queue(struct round *round, struct plan_outcome *outcome)
{
    size_t closed = tree_closed_by(&round->tree, job_of(round, outcome)->queue);
    const struct plan_queue *queue = &round->input->queues[closed];

    if (closed == PLAN_ROOT)
        return false;
    return waits(outcome, LAYER_QUEUE,
                 arena_printf(&round->plan->arena, "queue %s is %s: it starts nothing", queue->name,
                              queue->state == QUEUE_HELD ? "held" : "drained"));
}

static bool gate_dependency(struct round *round, struct plan_outcome *outcome)
{
    const char *waits_for = job_of(round, outcome)->waits_for;

    return waits_for && waits(outcome, LAYER_ORDER, arena_printf(&round->plan->arena, "waits for %s", waits_for));
}

/* Nothing could be created there: no launch is tried. */
static bool gate_namespace(struct round *round, struct plan_outcome *outcome)
{
    const char *ns = job_of(round, outcome)->spec->ns;

    if (round->input->makes_namespaces || snapshot_has_namespace(round->input->snapshot, ns))
        return false;
    return waits(outcome, LAYER_LAUNCH,
                 arena_printf(&round->plan->arena, "namespace %s does not exist in the cluster", ns));
}

static int by_name(const void *name, const void *item)
{
    return strcmp(name, *(const char *const *)item);
}

/* The class that the group's pods name and the cluster does not have, or NULL. */
static const char *missing_class(const struct plan_input *input, const struct job_group *group)
{
    const char *class = json_string_value(json_object_get(json_object_get(group->pod, "spec"), "priorityClassName"));

    if (!class || !*class || input->n_priority_classes == 0 ||
        bsearch(class, input->priority_classes, input->n_priority_classes, sizeof(*input->priority_classes), by_name))
        return NULL;
    return class;
}

/* The API server refuses such pods. The class may still come. */
static bool gate_priority_class(struct round *round, struct plan_outcome *outcome)
{
    const struct job_spec *spec = job_of(round, outcome)->spec;

    for (size_t s = 0; s < spec->n_shapes; s++)
        for (size_t g = 0; g < spec->shapes[s].n_groups; g++) {
            const char *missing = missing_class(round->input, &spec->shapes[s].groups[g]);

            if (missing)
                return waits(outcome, LAYER_LAUNCH,
                             arena_printf(&round->plan->arena,
                                          "the cluster has no PriorityClass %s, which the pods of group %s name",
                                          missing, spec->shapes[s].groups[g].name));
        }
    return false;
}

static bool gate_delay(struct round *round, struct plan_outcome *outcome)
{
    const char *failure = job_of(round, outcome)->last_failure;
    int64_t left_ms = job_of(round, outcome)->not_before_ms - round->input->now_ms;

    if (left_ms <= 0)
        return false;
    return waits(outcome, LAYER_LAUNCH,
                 arena_printf(&round->plan->arena, "%s; the next one is tried in %lld s",
                              failure ? failure : "the last launch failed", (long long)((left_ms + 999) / 1000)));
}

/* The slot of a twin in a queue: filled, or where it belongs. */
static struct failure *slot_of(const struct round *round, uint64_t twin, size_t queue)
{
    size_t at = (size_t)(twin + queue * 0x9e3779b9u) & (round->n_slots - 1);

    while (round->failures[at].outcome && (round->failures[at].twin != twin || round->failures[at].queue != queue))
        at = (at + 1) & (round->n_slots - 1);
    return &round->failures[at];
}

static bool gate_twin(struct round *round, struct plan_outcome *outcome)
{
    const struct plan_job *job = job_of(round, outcome);
    const struct failure *failure = job->twin ? slot_of(round, job->twin, job->queue) : NULL;

    if (!failure || !failure->outcome)
        return false;
    outcome->explanation = json_incref(failure->outcome->explanation);
    outcome->is_never = failure->outcome->is_never;
    return waits(outcome, failure->outcome->layer, failure->outcome->reason);
}

static void remember_failure(struct round *round, const struct plan_outcome *outcome)
{
    const struct plan_job *job = job_of(round, outcome);

    if (job->twin)
        *slot_of(round, job->twin, job->queue) = (struct failure){job->twin, job->queue, outcome};
}

static bool gate_tries(struct round *round, struct plan_outcome *outcome)
{
    if (round->is_overdue[outcome->job] || round->n_tries_shared < round->max_tries - round->n_tries_kept)
        return false;
    outcome->is_untried = true;
    return waits(outcome, LAYER_ORDER,
                 arena_printf(&round->plan->arena,
                              "this round tried others, %zu at most; its turn comes in one of the next",
                              round->max_tries));
}

/* ---- the search for devices ---- */

/* One shape on its way through search and quota. */
struct attempt {
    struct gang_spec *question;
    const struct device_matcher **excluded;
    struct gang_result result;
    const int64_t *charges;
    const char *quota_reason; /* the first time that quota said no, or NULL */
    const char *reason;       /* why the last search failed, or NULL */
    bool is_never;            /* as far as the last search and check can tell */
    size_t n_least;           /* members of the least gang that was tried in vain; 0: the job is not elastic */
    bool may_start_later;     /* only the quota of the moment stands against a placement that was found */
};

/* What only bind mode could hold is launched in bind mode or not at all: members that start in another order than
 * planned would be left without devices. Room that others free may give a placement that can be steered. */
static void refuse_unsteerable(struct round *round, struct attempt *attempt)
{
    const char *obstacle =
        bind_obstacle(&round->input->bind, attempt->question, attempt->result.placement, &round->plan->arena);
    json_t *explanation;

    if (!obstacle)
        return;
    explanation = json_copy(attempt->result.explanation);
    attempt->reason = arena_printf(&round->plan->arena,
                                   "it fits, but only if queued wrote the allocations itself (bind mode): %s; %s",
                                   obstacle, attempt->result.placement->bind_reason);
    attempt->result.verdict = GANG_WAITS;
    json_object_set_new(explanation, "verdict", json_string("waits"));
    json_object_set_new(explanation, "summary", json_string(attempt->reason));
    json_decref(attempt->result.explanation);
    attempt->result.explanation = explanation;
}

static void search(struct round *round, struct attempt *attempt)
{
    struct error err = {0};

    gang_result_release(&attempt->result);
    attempt->result = (struct gang_result){0};
    round->plan->n_tries++;
    if (gang_fit(round->snapshot, attempt->question, &round->plan->arena, &attempt->result, &err) < 0) {
        attempt->result.verdict = GANG_REFUSED;
        attempt->reason = err.field[0] ? arena_printf(&round->plan->arena, "%s: %s", err.field, err.text)
                                       : arena_strdup(&round->plan->arena, err.text);
    } else if (attempt->result.verdict != GANG_FITS) {
        const char *summary = json_string_value(json_object_get(attempt->result.explanation, "summary"));

        attempt->reason = arena_strdup(&round->plan->arena, summary ? summary : "does not fit");
    } else if (attempt->result.placement->bind_only) {
        refuse_unsteerable(round, attempt);
    }
    attempt->is_never = attempt->result.verdict == GANG_NEVER || attempt->result.verdict == GANG_REFUSED;
}

/* As people write it: "1500m" cpus, "200Gi" of memory, 16 devices. */
static const char *amount_text(struct arena *arena, const struct plan_resource *resource, int64_t amount)
{
    struct quantity quantity = quantity_of_int(amount);
    BUF words = {0};

    if (resource->kind == RESOURCE_CPU)
        quantity = quantity_of_milli(amount, QUANTITY_DECIMAL_SI);
    else if (resource->kind == RESOURCE_MEMORY)
        quantity.format = QUANTITY_BINARY_SI;
    quantity_format_to(&quantity, &words);
    return arena_strdup(arena, buf_str(&words));
}

static const char *quota_sentence(struct round *round, size_t queue, size_t r, int64_t need)
{
    struct arena *arena = &round->plan->arena;
    const struct plan_resource *resource = &round->input->resources[r];
    const struct tree *tree = &round->tree;
    const struct plan_quota *quota = tree->quota[queue * tree->n_resources + r];
    int64_t left = quota_available(tree, queue, r);

    return arena_printf(arena, "quota of %s: needs %s, queue %s may use %s more (nominal %s, in use %s)%s",
                        resource->name, amount_text(arena, resource, need), round->input->queues[queue].name,
                        amount_text(arena, resource, left > 0 ? left : 0),
                        amount_text(arena, resource, quota ? quota->nominal : 0),
                        amount_text(arena, resource, tree_at(tree, tree->held, queue)[r]),
                        need > quota_potential(tree, queue, r) ? "; it may never use that many" : "");
}

/* Compare charges and quota. Returns whether they are covered; else whatever can be excluded is, *out_more says if any,
 * and the first shortage is put in words. */
static bool check_quota(struct round *round, size_t queue, struct attempt *attempt, bool *out_more)
{
    bool is_covered = true, is_beyond = false;

    *out_more = false;
    for (size_t r = 0; r < round->input->n_resources; r++) {
        int64_t need = attempt->charges[r];

        if (need == 0 || need <= quota_available(&round->tree, queue, r))
            continue;
        if (is_covered && !attempt->quota_reason)
            attempt->quota_reason = quota_sentence(round, queue, r, need);
        is_covered = false;
        is_beyond |= need > quota_potential(&round->tree, queue, r);
        if (round->input->resources[r].kind != RESOURCE_DEVICES)
            continue;
        attempt->excluded[attempt->question->n_excluded++] = round->input->resources[r].matcher;
        *out_more = true;
    }
    attempt->may_start_later |= !is_covered && !is_beyond;
    attempt->is_never = is_beyond;
    return is_covered;
}

/* ---- quotas of the namespace ---- */

static void namespaces_init(struct round *round)
{
    const struct plan_input *input = round->input;

    round->used = arena_array(&round->plan->arena, struct quantity *, input->n_namespace_quotas);
    for (size_t q = 0; q < input->n_namespace_quotas; q++) {
        const struct namespace_quota *quota = &input->namespace_quotas[q];

        round->used[q] = arena_array(&round->plan->arena, struct quantity, quota->n_limits);
        for (size_t i = 0; i < quota->n_limits; i++)
            round->used[q][i] = quota->limits[i].used;
    }
}

/* The quotas of a namespace lie one after the other: the first, and how many. */
static size_t namespace_find(const struct plan_input *input, const char *ns, size_t *out_n)
{
    size_t low = 0, high = input->n_namespace_quotas;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(input->namespace_quotas[middle].ns, ns) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (*out_n = 0; low + *out_n < input->n_namespace_quotas; ++*out_n)
        if (strcmp(input->namespace_quotas[low + *out_n].ns, ns) != 0)
            break;
    return low;
}

static struct needs needs_of(const struct round *round, const struct gang_spec *question,
                             const struct placement *placement)
{
    struct needs needs = {.arena = &round->plan->arena, .default_priority_class = round->input->default_priority_class};

    needs_add_attempt(&needs, question, placement, round->input->has_pod_groups);
    return needs;
}

static const char *quantity_text(struct arena *arena, const struct quantity *quantity)
{
    BUF words = {0};

    quantity_format_to(quantity, &words);
    return arena_strdup(arena, buf_str(&words));
}

static void refuse_namespace(struct round *round, struct attempt *attempt, const struct namespace_quota *quota,
                             const struct quota_limit *limit, const struct quantity *needed)
{
    struct arena *arena = &round->plan->arena;
    const struct quantity *used = &round->used[quota - round->input->namespace_quotas][limit - quota->limits];
    bool is_beyond = quantity_cmp(needed, &limit->hard) > 0;

    if (!attempt->quota_reason)
        attempt->quota_reason =
            arena_printf(arena, "ResourceQuota %s of namespace %s: needs %s of %s, %s of %s are in use%s", quota->name,
                         quota->ns, quantity_text(arena, needed), limit->resource, quantity_text(arena, used),
                         quantity_text(arena, &limit->hard), is_beyond ? "; it may never use that many" : "");
    attempt->is_never = is_beyond;
    attempt->may_start_later |= !is_beyond;
}

/* Whether the API server would let the attempt's objects be created, as far as is known: with a placement all of them.
 * Else *out_resource is what there is too little of. */
static bool check_namespace(struct round *round, struct attempt *attempt, const struct placement *placement,
                            const char **out_resource)
{
    size_t n, first = namespace_find(round->input, attempt->question->ns, &n);
    struct needs needs;

    if (n == 0)
        return true;
    needs = needs_of(round, attempt->question, placement);
    for (size_t q = first; q < first + n; q++) {
        struct quantity needed;
        const struct namespace_quota *quota = &round->input->namespace_quotas[q];
        const struct quota_limit *limit = namespace_quota_exceeded(quota, round->used[q], &needs, &needed);

        if (!limit)
            continue;
        refuse_namespace(round, attempt, quota, limit, &needed);
        *out_resource = limit->resource;
        return false;
    }
    return true;
}

static void namespace_use(struct round *round, const struct gang_spec *question, const struct placement *placement)
{
    size_t n, first = namespace_find(round->input, question->ns, &n);
    struct needs needs;

    if (n == 0)
        return;
    needs = needs_of(round, question, placement);
    for (size_t q = first; q < first + n; q++)
        namespace_quota_use(&round->input->namespace_quotas[q], round->used[q], &needs);
}

/* A placement whose alternatives cost too much of a class: search again without those. Returns whether any could be
 * left out. */
static bool leave_out(struct round *round, struct attempt *attempt, const char *resource)
{
    static const char suffix[] = ".deviceclass.resource.k8s.io/devices";
    const char *end = strstr(resource, suffix);

    if (!end || end[sizeof(suffix) - 1] != '\0')
        return false;
    if (!round->plan->changed)
        round->plan->changed = json_array();
    return question_without(attempt->question, attempt->result.placement,
                            arena_strndup(&round->plan->arena, resource, (size_t)(end - resource)), &round->plan->arena,
                            round->plan->changed);
}

/* Returns whether the shape, `steps` smaller than asked for, may start; then result and charges say how. */
static bool try_size(struct round *round, const struct plan_job *job, size_t shape, size_t steps,
                     struct attempt *attempt)
{
    struct arena *arena = &round->plan->arena;
    const char *short_of;
    bool more = true;

    *attempt = (struct attempt){
        .question = arena_new(arena, struct gang_spec),
        .excluded = arena_array(arena, const struct device_matcher *, round->input->n_resources),
    };
    question_of_shape(job->spec, shape, placement_of(round, job).placement, arena, attempt->question);
    question_shrink(&job->spec->shapes[shape], steps, arena, attempt->question);
    attempt->question->now_ms = round->input->now_ms;
    attempt->question->workload = round->input->workload;
    attempt->question->is_brief = round->input->is_brief;
    attempt->question->excluded = attempt->excluded;
    if (!check_namespace(round, attempt, NULL, &short_of))
        return false;
    while (more) { /* ends: each time round excludes a device resource or an alternative that the placement just used */
        search(round, attempt);
        if (attempt->result.verdict != GANG_FITS)
            return false;
        attempt->charges = charge_of(round->input, job->spec, shape, attempt->result.placement, arena);
        if (!check_quota(round, job->queue, attempt, &more))
            continue;
        if (check_namespace(round, attempt, attempt->result.placement, &short_of))
            return true;
        more = leave_out(round, attempt, short_of);
    }
    return false;
}

/* `attempt` may start, `high` steps smaller than asked for; the whole may not. Halve the steps between until they meet
 * at the largest gang: whoever fits still does with a member less. */
static void grow(struct round *round, const struct plan_job *job, size_t shape, size_t high, struct attempt *attempt)
{
    size_t low = 0;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        struct attempt larger;

        if (try_size(round, job, shape, middle, &larger)) {
            gang_result_release(&attempt->result);
            *attempt = larger;
            high = middle;
        } else {
            gang_result_release(&larger.result);
            low = middle;
        }
    }
}

static size_t n_members_of(const struct gang_spec *question)
{
    size_t n = 0;

    for (size_t i = 0; i < question->n_groups; i++)
        n += question->groups[i].n_members;
    return n;
}

/* The whole gang first. An elastic one then at its least, since whoever does not fit so does not fit at all, then as
 * large as it fits. Returns whether it may start; else the attempt says why, of the least. */
static bool try_shape(struct round *round, const struct plan_job *job, size_t shape, struct attempt *attempt)
{
    size_t steps = shape_n_steps(&job->spec->shapes[shape]);

    if (try_size(round, job, shape, 0, attempt))
        return true;
    if (steps == 0 || attempt->result.verdict == GANG_REFUSED)
        return false;
    gang_result_release(&attempt->result);
    if (!try_size(round, job, shape, steps, attempt)) {
        attempt->n_least = n_members_of(attempt->question);
        return false;
    }
    grow(round, job, shape, steps, attempt);
    return true;
}

static void keep_result(struct plan *plan, struct gang_result *result)
{
    plan->results = mem_resize(plan->results, plan->n_results + 1, sizeof(*plan->results));
    plan->results[plan->n_results++] = *result;
    *result = (struct gang_result){0};
}

static void keep_snapshot(struct plan *plan, const struct snapshot *snapshot)
{
    plan->snapshots = mem_resize(plan->snapshots, plan->n_snapshots + 1, sizeof(*plan->snapshots));
    plan->snapshots[plan->n_snapshots++] = snapshot;
}

static void admit(struct round *round, struct plan_outcome *outcome, size_t shape, struct attempt *attempt)
{
    outcome->is_admitted = true;
    outcome->shape = shape;
    outcome->question = attempt->question;
    outcome->placement = attempt->result.placement;
    outcome->charges = attempt->charges;
    outcome->explanation = json_incref(attempt->result.explanation);
    round->plan->n_admitted++;
    tree_charge(&round->tree, job_of(round, outcome)->queue, attempt->charges);
    namespace_use(round, outcome->question, outcome->placement);
    round->snapshot = snapshot_with(round->snapshot, outcome->placement);
    keep_snapshot(round->plan, round->snapshot);
    keep_result(round->plan, &attempt->result);
}

/* "shape two-nodes: ..." where a job has several, so that each refusal can be told apart. */
static const char *named(struct round *round, const struct plan_job *job, size_t shape, const char *reason)
{
    const char *name = job->spec->shapes[shape].name;

    if (job->spec->n_shapes == 1)
        return reason;
    return name[0] ? arena_printf(&round->plan->arena, "shape %s: %s", name, reason)
                   : arena_printf(&round->plan->arena, "shape %zu: %s", shape + 1, reason);
}

static void refuse_shape(struct round *round, struct plan_outcome *outcome, size_t shape, struct attempt *attempt)
{
    const char *reason = attempt->quota_reason ? attempt->quota_reason : attempt->reason;
    enum plan_layer layer = attempt->quota_reason ? LAYER_QUOTA : LAYER_DEVICES;

    if (attempt->quota_reason && attempt->result.verdict == GANG_WAITS)
        reason = arena_printf(&round->plan->arena, "%s; without it: %s", attempt->quota_reason, attempt->reason);
    if (attempt->n_least)
        reason = arena_printf(&round->plan->arena, "not even with %zu member%s: %s", attempt->n_least,
                              attempt->n_least == 1 ? "" : "s", reason);
    reason = named(round, job_of(round, outcome), shape, reason);
    if (shape == 0) {
        waits(outcome, layer, reason);
        outcome->explanation = json_incref(attempt->result.explanation);
    } else {
        outcome->reason = arena_printf(&round->plan->arena, "%s; %s", outcome->reason, reason);
    }
    outcome->is_never = (shape == 0 || outcome->is_never) && attempt->is_never && !attempt->may_start_later;
    gang_result_release(&attempt->result);
}

static bool search_shapes(struct round *round, struct plan_outcome *outcome)
{
    const struct plan_job *job = job_of(round, outcome);

    for (size_t shape = 0; shape < job->spec->n_shapes; shape++) {
        struct attempt attempt;

        if (try_shape(round, job, shape, &attempt)) {
            json_decref(outcome->explanation);
            admit(round, outcome, shape, &attempt);
            return true;
        }
        refuse_shape(round, outcome, shape, &attempt);
    }
    return false;
}

static bool gate_devices(struct round *round, struct plan_outcome *outcome)
{
    size_t before = round->plan->n_tries;

    if (!search_shapes(round, outcome))
        remember_failure(round, outcome);
    if (!round->is_overdue[outcome->job])
        round->n_tries_shared += round->plan->n_tries - before;
    return true;
}

static bool (*const gates[])(struct round *round, struct plan_outcome *outcome) = {
    gate_queue, gate_dependency, gate_namespace, gate_priority_class, gate_delay, gate_twin, gate_tries, gate_devices,
};

/* ---- the round ---- */

static int cmp_overdue(const void *a, const void *b, void *ctx)
{
    const struct plan_job *jobs = ctx, *left = &jobs[*(const size_t *)a], *right = &jobs[*(const size_t *)b];

    if (left->last_look != right->last_look)
        return left->last_look < right->last_look ? -1 : 1;
    return order_cmp(left, right);
}

/* With more jobs than tries, those at the end of the line would never be tried while those before them are blocked. So
 * half of the tries are kept for whoever was not come to for longest. Everybody still is looked at in his turn. */
static void keep_tries(struct round *round)
{
    const struct plan_input *input = round->input;
    size_t *jobs = arena_array(&round->plan->arena, size_t, input->n_pending);

    round->is_overdue = arena_array(&round->plan->arena, bool, input->n_pending);
    if (input->n_pending <= round->max_tries)
        return;
    for (size_t i = 0; i < input->n_pending; i++)
        jobs[i] = i;
    qsort_r(jobs, input->n_pending, sizeof(*jobs), cmp_overdue, (void *)(uintptr_t)input->pending);
    round->n_tries_kept = (round->max_tries + 1) / 2;
    for (size_t i = 0; i < round->n_tries_kept; i++)
        round->is_overdue[jobs[i]] = true;
}

static void number_those_that_wait(const struct round *round)
{
    const struct plan_input *input = round->input;
    struct plan_outcome **of_job = arena_array(&round->plan->arena, struct plan_outcome *, input->n_pending);
    size_t *position = arena_array(&round->plan->arena, size_t, input->n_queues);

    for (size_t i = 0; i < round->plan->n_outcomes; i++)
        of_job[round->plan->outcomes[i].job] = &round->plan->outcomes[i];
    for (size_t i = 0; i < input->n_pending; i++) {
        struct plan_outcome *outcome = of_job[round->order.line[i]];

        if (!outcome->is_admitted)
            outcome->position = ++position[input->pending[outcome->job].queue];
    }
}

void admission_plan(const struct plan_input *input, struct plan *plan)
{
    struct round round = {.input = input, .plan = plan, .snapshot = input->snapshot};
    size_t job;

    *plan = (struct plan){0};
    round.max_tries = input->max_tries ? input->max_tries : PLAN_DEFAULT_TRIES;
    plan->outcomes = arena_array(&plan->arena, struct plan_outcome, input->n_pending);
    for (round.n_slots = 2; round.n_slots < 2 * input->n_pending + 2;)
        round.n_slots *= 2;
    round.failures = arena_array(&plan->arena, struct failure, round.n_slots);
    tree_init(&round.tree, input, &plan->arena);
    order_init(&round.order, &round.tree, &plan->arena);
    namespaces_init(&round);
    keep_tries(&round);
    while ((job = order_next(&round.order)) != PLAN_ROOT) {
        struct plan_outcome *outcome = &plan->outcomes[plan->n_outcomes++];
        size_t gate = 0;

        outcome->job = job;
        outcome->effective = placement_of(&round, &input->pending[job]);
        while (!gates[gate](&round, outcome))
            gate++; /* the last gate always decides */
    }
    number_those_that_wait(&round);
}

void plan_release(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_outcomes; i++)
        json_decref(plan->outcomes[i].explanation);
    for (size_t i = 0; i < plan->n_results; i++)
        gang_result_release(&plan->results[i]);
    for (size_t i = 0; i < plan->n_snapshots; i++)
        snapshot_unref(plan->snapshots[i]);
    json_decref(plan->changed);
    free(plan->results);
    free(plan->snapshots);
    arena_release(&plan->arena);
    *plan = (struct plan){0};
}

const char *plan_layer_name(enum plan_layer layer)
{
    static const char *const names[] = {[LAYER_QUEUE] = "queue",
                                        [LAYER_QUOTA] = "quota",
                                        [LAYER_ORDER] = "order",
                                        [LAYER_DEVICES] = "devices",
                                        [LAYER_LAUNCH] = "launch"};

    return names[layer];
}

static json_t *outcome_to_json(const struct plan_input *input, const struct plan_outcome *outcome)
{
    json_t *object = json_object(), *charges;

    json_object_set_new(object, "job", json_integer(input->pending[outcome->job].id));
    if (!outcome->is_admitted) {
        json_object_set_new(object, "layer", json_string(plan_layer_name(outcome->layer)));
        json_object_set_new(object, "position", json_integer((json_int_t)outcome->position));
        json_object_set_new(object, "reason", json_string(outcome->reason));
        return object;
    }
    charges = json_object();
    for (size_t r = 0; r < input->n_resources; r++)
        if (outcome->charges[r])
            json_object_set_new(charges, input->resources[r].name, json_integer(outcome->charges[r]));
    json_object_set_new(object, "shape", json_integer((json_int_t)outcome->shape));
    json_object_set_new(object, "charges", charges);
    json_object_set_new(object, "placement", placement_to_json(outcome->placement, outcome->question));
    return object;
}

json_t *plan_to_json(const struct plan_input *input, const struct plan *plan)
{
    json_t *array = json_array();

    for (size_t i = 0; i < plan->n_outcomes; i++)
        json_array_append_new(array, outcome_to_json(input, &plan->outcomes[i]));
    return array;
}
