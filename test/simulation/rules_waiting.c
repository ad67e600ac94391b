/* Whoever still waits when all is over waits for a reason: a planning round on fresh values (the objects that are in
 * the cluster, the queues that are in the store) with this job alone does not admit it either, and since nothing runs
 * any more, not on any other day. */
#include "test/support/cmocka.h"

#include <string.h>

#include "queued/admission/charge.h"
#include "queued/book.h"
#include "test/simulation/play.h"

struct fresh {
    struct arena arena;
    struct snapshot *snapshot;
    struct book *book;
    struct plan_resource *resources;
};

static void fresh_init(struct fresh *fresh, struct play *play)
{
    struct features features = features_default(37);
    struct snapshot_builder *builder = snapshot_builder_new(&features, false);
    json_t *object, *nodes;
    const char *key;
    struct error err = {0};

    json_object_foreach (play->stage.relay.objects, key, object)
        if (!is_kind(object, "ConfigMap") && !is_kind(object, "Service") &&
            snapshot_builder_put(builder, object, &err) < 0)
            fail_msg("%s: %s", key, err.text);
    fresh->snapshot = snapshot_builder_build(builder);
    snapshot_builder_free(builder);
    if (book_load(play->stage.store, &fresh->book, &err) < 0)
        fail_msg("%s", err.text);
    fresh->resources = arena_array(&fresh->arena, struct plan_resource, fresh->book->n_resources);
    nodes = snapshot_nodes_json(fresh->snapshot);
    for (size_t r = 0; r < fresh->book->n_resources; r++) {
        fresh->resources[r] = fresh->book->resources[r];
        fresh->resources[r].total = resource_total(&fresh->resources[r], fresh->snapshot, nodes);
    }
    json_decref(nodes);
}

static void fresh_release(struct fresh *fresh)
{
    snapshot_unref(fresh->snapshot);
    book_unref(fresh->book);
    arena_release(&fresh->arena);
}

static json_t *gangjob_of(struct play *play, const struct known_job *job)
{
    json_t *view = core_job(play->stage.core, &stage_admin, job->step->job.name, NULL), *gangjob;

    gangjob = json_pack("{s:s, s:s, s:{s:s, s:s}, s:O}", "apiVersion", JOB_API_VERSION, "kind", "GangJob", "metadata",
                        "name", job->step->job.name, "namespace", "default", "spec", json_object_get(view, "spec"));
    json_decref(view);
    return gangjob;
}

static void check_outcome(struct play *play, const struct known_job *job, const struct plan_outcome *outcome)
{
    const char *verdict = text_at(outcome->explanation, "verdict", NULL, NULL);
    const char *why = text_at(play_view(play, job->id), "reason", NULL, NULL);

    if (outcome->is_admitted)
        rule_broken(play, "no job is stuck", "%s could start and waits: %s", job->step->job.name, why);
    if (strcmp(verdict, "undecided") == 0)
        play->verdict->n_undecided++;
    else if (!play->is_strict && strstr(outcome->reason, "bind mode"))
        play->verdict->n_unsteerable++;
    else if (outcome->layer == LAYER_DEVICES && !outcome->is_never)
        rule_broken(play, "nobody waits for others on an empty cluster", "%s: %s (%s)", job->step->job.name,
                    outcome->reason, verdict);
    else if (outcome->layer == LAYER_QUOTA && !outcome->is_never)
        rule_broken(play, "nobody waits for quota that nobody uses", "%s: %s", job->step->job.name, outcome->reason);
}

static struct bind_classes bind_classes_of(const struct story *story, const char *names[8])
{
    static const char *const all[] = {"gpu", "mig", "nic", "link"};
    struct bind_classes classes = {.names = names};

    for (size_t i = 0; story->bind_classes && i < ARRAY_SIZE(all); i++)
        if (strstr(story->bind_classes, all[i]))
            names[classes.n++] = all[i];
    return classes;
}

static void check_waiting(struct play *play, const struct fresh *fresh, const struct known_job *job)
{
    const json_t *view = play_view(play, job->id);
    json_t *gangjob = gangjob_of(play, job);
    struct arena arena = {0};
    struct job_spec spec;
    struct error err = {0};
    const char *names[8];
    struct plan plan;
    struct plan_job pending = {.id = job->id,
                               .queue = book_find_queue(fresh->book, text_at(view, "queue", NULL, NULL)),
                               .priority = json_integer_value(json_object_get(view, "priority")),
                               .spec = &spec};
    struct plan_input input = {.snapshot = fresh->snapshot,
                               .resources = fresh->resources,
                               .n_resources = fresh->book->n_resources,
                               .queues = fresh->book->queues,
                               .n_queues = fresh->book->n_queues,
                               .pending = &pending,
                               .n_pending = 1,
                               .bind = bind_classes_of(play->story, names),
                               .now_ms = play_now_ms(play)};

    if (job_spec_parse(gangjob, &arena, &spec, &err) < 0)
        fail_msg("%s: %s: %s", job->step->job.name, err.field, err.text);
    admission_plan(&input, &plan);
    check_outcome(play, job, &plan.outcomes[0]);
    plan_release(&plan);
    arena_release(&arena);
    json_decref(gangjob);
}

static bool waits_for_another(struct play *play, const struct known_job *job)
{
    const char *name = job->step->job.depends_on;
    const struct known_job *before = name[0] ? play_job_named(play, name) : NULL;

    return before && !state_name_is_final(before->state);
}

void rule_who_waits_has_a_reason(struct play *play)
{
    struct fresh fresh = {.book = NULL};

    fresh_init(&fresh, play);
    for (size_t i = 0; i < play->n_jobs; i++)
        if (strcmp(play->jobs[i].state, "Pending") == 0 && !waits_for_another(play, &play->jobs[i]))
            check_waiting(play, &fresh, &play->jobs[i]);
    fresh_release(&fresh);
}
