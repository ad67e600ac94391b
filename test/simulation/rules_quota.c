/* Quota at the moment of an admission, by two plain inequalities for the queue and everything above it:
 *
 *   what a subtree holds <= all nominal quota in it + its borrowing limit
 *   what all hold        <= all nominal quota there is
 *
 * They are weaker than the real rule (lending limits keep more back), but nothing of it is used to check them. */
#include "test/support/cmocka.h"

#include <string.h>

#include "queued/book.h"
#include "test/simulation/play.h"

struct queues_now {
    struct play *play;
    json_t *queues; /* name -> view */
};

static const char *parent_of(const struct queues_now *now, const char *queue)
{
    return text_at(json_object_get(now->queues, queue), "parent", NULL, NULL);
}

/* Whether `queue` is `top` or below it; "" is above all. */
static bool is_below(const struct queues_now *now, const char *queue, const char *top)
{
    while (queue[0] && strcmp(queue, top) != 0)
        queue = parent_of(now, queue);
    return strcmp(queue, top) == 0;
}

static int64_t amount_of(const char *resource, const json_t *value)
{
    int64_t amount = 0;
    struct error err = {0};

    assert_int_equal(amount_parse(resource_kind_of(resource), value, &amount, &err), 0);
    return amount;
}

static const json_t *quota_of(const struct queues_now *now, const char *queue, const char *resource)
{
    const json_t *quota;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(now->queues, queue), "quotas"), i, quota)
        if (strcmp(text_at(quota, "resource", NULL, NULL), resource) == 0)
            return quota;
    return NULL;
}

static int64_t held_below(const struct queues_now *now, const char *top, const char *resource)
{
    const json_t *view, *charge;
    size_t i, k;
    int64_t sum = 0;

    json_array_foreach (now->play->views, i, view) {
        if (!is_below(now, text_at(view, "queue", NULL, NULL), top))
            continue;
        json_array_foreach (json_object_get(view, "charges"), k, charge)
            if (strcmp(text_at(charge, "resource", NULL, NULL), resource) == 0)
                sum += amount_of(resource, json_object_get(charge, "amount"));
    }
    return sum;
}

static int64_t nominal_below(const struct queues_now *now, const char *top, const char *resource, bool *is_limited)
{
    const char *queue;
    json_t *view;
    int64_t sum = 0;

    json_object_foreach (now->queues, queue, view) {
        const json_t *quota = quota_of(now, queue, resource);

        *is_limited |= quota != NULL;
        if (quota && is_below(now, queue, top))
            sum += amount_of(resource, json_object_get(quota, "nominal"));
    }
    return sum;
}

static void check_level(struct queues_now *now, const struct known_job *job, const char *top, const char *resource)
{
    bool is_limited = false;
    int64_t nominal = nominal_below(now, top, resource, &is_limited), held = held_below(now, top, resource);
    const json_t *limit = json_object_get(quota_of(now, top, resource), "borrowingLimit");

    if (!is_limited || (top[0] && !json_is_number(limit) && !json_is_string(limit)))
        return;
    if (top[0])
        nominal += amount_of(resource, limit);
    if (held > nominal)
        rule_broken(now->play, "quota is kept", "%s was admitted: %s holds %lld %s of at most %lld",
                    job->step->job.name, top[0] ? top : "everybody", (long long)held, resource, (long long)nominal);
}

static void check_state(struct queues_now *now, const struct known_job *job, const char *queue)
{
    const char *state = text_at(json_object_get(now->queues, queue), "state", NULL, NULL);

    if (strcmp(state, "open") != 0)
        rule_broken(now->play, "a held queue admits nothing", "%s was admitted while %s is %s", job->step->job.name,
                    queue, state);
}

static void check_admission(struct queues_now *now, const struct known_job *job)
{
    const json_t *view = play_view(now->play, job->id), *charge;
    size_t i;

    json_array_foreach (json_object_get(view, "charges"), i, charge) {
        const char *resource = text_at(charge, "resource", NULL, NULL);

        for (const char *queue = text_at(view, "queue", NULL, NULL); queue[0]; queue = parent_of(now, queue))
            check_level(now, job, queue, resource);
        check_level(now, job, "", resource);
    }
    for (const char *queue = text_at(view, "queue", NULL, NULL); queue[0]; queue = parent_of(now, queue))
        check_state(now, job, queue);
}

void rule_quota_is_kept(struct play *play)
{
    struct queues_now now = {play, NULL};

    for (size_t i = 0; i < play->n_jobs; i++) {
        const struct known_job *job = &play->jobs[i];

        /* one that ended at the same instant is charged no more */
        if (!job->is_new_here || strcmp(job->state, "Pending") == 0 || state_name_is_final(job->state))
            continue;
        if (!now.queues) {
            json_t *all = core_queues(play->stage.core, &stage_admin, NULL), *view;
            size_t k;

            now.queues = json_object();
            json_array_foreach (json_object_get(all, "items"), k, view)
                json_object_set(now.queues, text_at(view, "name", NULL, NULL), view);
            json_decref(all);
        }
        check_admission(&now, job);
    }
    json_decref(now.queues);
}
