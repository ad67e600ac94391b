/* Launching an attempt. Each step looks at what is there and asks for what is missing, so that it does not matter
 * whether the server was killed in between: after a restart the same look at the same objects asks for the rest.
 *
 *   Admitted   anchor -> Service -> claims -> pods (gated); each kind waits until the one before is complete
 *   Launching  everything exists: write what we allocate, let the pods go, wait until all members run, compare the
 * allocations with the plan
 *
 * A pod is held by its gate or, where we bind it ourselves, by a scheduler name that nobody else answers to. One that
 * was let go may run at any moment. So that is only done once the move to Launching is durable, and from then on a
 * missing object ends the attempt; before, it is simply created. */
#include <stdlib.h>
#include <string.h>

#include "queued/cluster/cluster.h"
#include "queued/lifecycle/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

static struct call_for call_for(const struct job *job, const struct launch_object *object)
{
    return (struct call_for){job->id, job->live->number, (size_t)(object - job->live->objects)};
}

bool object_is_of_attempt(const struct job *job, const json_t *object)
{
    static const char *const labels[] = {LABEL_JOB, LABEL_ATTEMPT, LABEL_SERVER};
    const json_t *ours = json_object_get(json_object_get(attempt_anchor(job->live)->body, "metadata"), "labels");
    const json_t *theirs = json_object_get(json_object_get(object, "metadata"), "labels");

    for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
        const json_t *wanted = json_object_get(ours, labels[i]), *have = json_object_get(theirs, labels[i]);

        if (wanted != have && !json_equal(wanted, have))
            return false;
    }
    return true;
}

/* Ours: made for this attempt, and owned by its present anchor. */
static bool is_ours(const struct job *job, const struct launch_object *object)
{
    const char *owner, *uid = launch_object_uid(attempt_anchor(job->live));

    if (!object_is_of_attempt(job, object->observed))
        return false;
    if (object->rank == RANK_ANCHOR)
        return true;
    owner = json_string_value(json_object_get(
        json_array_get(json_object_get(json_object_get(object->observed, "metadata"), "ownerReferences"), 0), "uid"));
    return owner && uid && strcmp(owner, uid) == 0;
}

bool launch_may_ask(struct lifecycle *lc, struct job *job, const struct launch_object *object)
{
    if (object->is_asked)
        return false;
    if (object->retry_ms <= lifecycle_now_ms(lc))
        return true;
    job_wake_at(lc, job, object->retry_ms);
    return false;
}

/* The body with its owner: deleting the anchor takes everything along, in the foreground. */
static json_t *owned_body(const struct job *job, const struct launch_object *object)
{
    json_t *body = json_copy(object->body), *metadata = json_copy(json_object_get(body, "metadata"));
    const struct launch_object *anchor = attempt_anchor(job->live);

    json_object_set_new(body, "metadata", metadata);
    if (object != anchor)
        json_object_set_new(metadata, "ownerReferences",
                            json_pack("[{s:s, s:s, s:s, s:s, s:b}]", "apiVersion", "v1", "kind", anchor->kind, "name",
                                      anchor->name, "uid", launch_object_uid(anchor), "blockOwnerDeletion", 1));
    return body;
}

static void create(struct lifecycle *lc, struct job *job, struct launch_object *object)
{
    json_t *body;

    if (!launch_may_ask(lc, job, object))
        return;
    body = owned_body(job, object);
    object->is_asked = true;
    outbox_create(lc->options.outbox, call_for(job, object), body);
    json_decref(body);
}

/* What is wrong with an object that is there: a sentence, or NULL. */
static const char *trouble_with(const struct job *job, const struct launch_object *object)
{
    if (!object->observed)
        return NULL; /* created, but the stream has not told it yet */
    if (!is_ours(job, object))
        return "exists already and is not ours";
    return object_is_going(object->observed) ? "is being deleted" : NULL;
}

/* Create what a rank lacks. Returns whether the rank is complete. */
static bool create_rank(struct lifecycle *lc, struct job *job, enum object_rank rank)
{
    bool is_complete = true;

    for (size_t i = 0; i < job->live->n_objects; i++) {
        struct launch_object *object = &job->live->objects[i];

        if (object->rank != rank || object->is_there)
            continue;
        is_complete = false;
        create(lc, job, object);
    }
    /* the owner's uid is needed for all that follows */
    return is_complete && (rank != RANK_ANCHOR || launch_object_uid(attempt_anchor(job->live)));
}

static bool has_trouble(struct lifecycle *lc, struct job *job)
{
    for (size_t i = 0; i < job->live->n_objects; i++) {
        const struct launch_object *object = &job->live->objects[i];
        const char *trouble = trouble_with(job, object);

        if (trouble) {
            job_launch_failed(lc, job, "%s %s %s", object->kind, object->name, trouble);
            return true;
        }
    }
    return attempt_has_rival(lc, job);
}

/* Past its time, or wake up when it will be. */
static bool is_late(struct lifecycle *lc, struct job *job)
{
    int64_t deadline_ms = job->live->step_ms + lc->options.launch_timeout_ms;

    if (lifecycle_now_ms(lc) >= deadline_ms)
        return true;
    job_wake_at(lc, job, deadline_ms);
    return false;
}

void attempt_record_usage(struct lifecycle *lc, const struct job *job)
{
    const char *resource;
    json_t *amount;

    json_object_foreach (job->live->charges, resource, amount)
        store_usage_put(lc->options.store, &(struct usage_row){.job = job->id,
                                                               .attempt = job->live->number,
                                                               .resource = resource,
                                                               .queue = job->queue,
                                                               .user = job->user,
                                                               .amount = json_integer_value(amount),
                                                               .from_ms = lifecycle_now_ms(lc)});
}

const struct launch_object *attempt_missing(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (!attempt->objects[i].is_there && attempt->objects[i].rank != RANK_ASSUMED)
            return &attempt->objects[i];
    return NULL;
}

static void creation_is_late(struct lifecycle *lc, struct job *job)
{
    const struct launch_object *missing = attempt_missing(job->live);

    job_launch_failed(lc, job, "%s %s could not be created in time", missing ? missing->kind : "ConfigMap",
                      missing ? missing->name : attempt_anchor(job->live)->name);
}

enum step step_create(struct lifecycle *lc, struct job *job)
{
    if (has_trouble(lc, job))
        return STEP_MORE;
    for (enum object_rank rank = RANK_ANCHOR; rank < RANK_ASSUMED; rank++)
        if (!create_rank(lc, job, rank)) {
            if (!is_late(lc, job))
                return STEP_WAIT;
            creation_is_late(lc, job);
            return STEP_MORE;
        }
    job->live->step_ms = lifecycle_now_ms(lc);
    attempt_record_usage(lc, job); /* from here on it may be given devices */
    job_move(lc, job, JOB_LAUNCHING, "all its objects exist; its members are being let go");
    return STEP_MORE;
}

/* ---- Launching ---- */

/* We bind it; and how it is held is as it was created, whatever the configuration says now. */
static bool is_bound_by_us(const struct launch_object *pod)
{
    const char *scheduler = json_text_at(pod->body, "spec", "schedulerName", NULL);

    return scheduler && strcmp(scheduler, SCHEDULER_NAME) == 0;
}

bool pod_is_held(const struct launch_object *pod)
{
    const json_t *spec = json_object_get(pod->observed, "spec");

    if (pod->is_let_go)
        return false;
    if (is_bound_by_us(pod))
        return !json_object_get(spec, "nodeName");
    return !spec || json_array_size(json_object_get(spec, "schedulingGates")) > 0;
}

/* The lowest turn of those that are not bound yet. Until then kube-scheduler may count a share of theirs twice, once
 * as written and once as in flight, and refuse who needs the rest of the card; nothing wakes that pod again for
 * minutes. */
static size_t present_turn(const struct attempt *attempt)
{
    size_t turn = SIZE_MAX;

    for (size_t i = 0; i < attempt->n_objects; i++) {
        const struct launch_object *pod = &attempt->objects[i];

        if (pod->rank == RANK_POD && pod->turn < turn && !json_text_at(pod->observed, "spec", "nodeName", NULL))
            turn = pod->turn;
    }
    return turn;
}

static void let_go(struct lifecycle *lc, struct job *job, struct launch_object *pod)
{
    const char *node = json_string_value(pod->planned);

    pod->is_asked = true;
    if (is_bound_by_us(pod))
        outbox_bind(lc->options.outbox, call_for(job, pod), pod->ns, pod->name, launch_object_uid(pod), node);
    else
        outbox_ungate(lc->options.outbox, call_for(job, pod), pod->ns, pod->name, node);
}

static void let_all_go(struct lifecycle *lc, struct job *job)
{
    size_t turn = present_turn(job->live);

    for (size_t i = 0; i < job->live->n_objects; i++) {
        struct launch_object *pod = &job->live->objects[i];

        if (pod->rank == RANK_POD && pod->turn <= turn && pod_is_held(pod) && launch_may_ask(lc, job, pod))
            let_go(lc, job, pod);
    }
}

static bool has_started(const struct launch_object *pod)
{
    const char *phase = json_text_at(pod->observed, "status", "phase", NULL);

    return phase && (strcmp(phase, "Running") == 0 || strcmp(phase, "Succeeded") == 0);
}

static const struct launch_object *first_not_started(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (attempt->objects[i].rank == RANK_POD && !has_started(&attempt->objects[i]))
            return &attempt->objects[i];
    return NULL;
}

static void start_is_late(struct lifecycle *lc, struct job *job, const struct launch_object *pod)
{
    const struct launch_object *claim = attempt_not_allocated(job->live);
    struct diagnosis diagnosis;

    if (claim) {
        job_launch_failed(lc, job, "ResourceClaim %s could not be allocated in time", claim->name);
        return;
    }
    if (!member_diagnose(job->live, pod, &diagnosis))
        diagnosis = (struct diagnosis){.sentence = "no reason was given"};
    job_launch_failed(lc, job, "pod %s did not start in time: %s", pod->name, diagnosis.sentence);
}

enum step step_launch(struct lifecycle *lc, struct job *job)
{
    const struct launch_object *late;

    attempt_note_health(lc, job);
    if (members_decide(lc, job) || has_trouble(lc, job))
        return STEP_MORE;
    if (!attempt_may_open(lc, job))
        return STEP_WAIT;
    if (attempt_allocate(lc, job))
        let_all_go(lc, job);
    late = first_not_started(job->live);
    if (late) {
        if (!is_late(lc, job))
            return STEP_WAIT;
        start_is_late(lc, job, late);
        return STEP_MORE;
    }
    attempt_check_allocations(lc, job);
    job->failures = 0;
    job->n_refusals = 0;
    job->started_ms = lifecycle_now_ms(lc);
    job_set_reason(job, "%s", "");
    job_move(lc, job, JOB_RUNNING, "all members run");
    assume_attempt(lc, job);
    return STEP_MORE;
}
