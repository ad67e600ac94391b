#include "test/simulation/story.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "test/simulation/play.h"

#define MIN_STEPS 12
#define MAX_STEPS 60

static const struct step_kind *pick_kind(struct rng *rng, const unsigned *weights, size_t total)
{
    size_t at = pick(rng, total), i = 0;

    while (at >= weights[i])
        at -= weights[i++];
    return &step_kinds[i];
}

/* Not every story has everything: some kinds of steps do not occur in it, others often, so that few things meet more
 * closely. */
static void add_steps(struct story *story, struct rng *rng)
{
    unsigned *weights = mem_array(unsigned, n_step_kinds);
    size_t n = MIN_STEPS + pick(rng, MAX_STEPS - MIN_STEPS), total = 0;

    for (size_t i = 0; i < n_step_kinds; i++) {
        weights[i] = i == 0 || i == 3 ? step_kinds[i].weight : step_kinds[i].weight * (unsigned)pick(rng, 3);
        total += weights[i];
    }
    for (size_t i = 0; i < n; i++) {
        struct rng own = {rng_next(rng)};
        struct step step = {.kind = pick_kind(&own, weights, total), .number = i};

        if (!step.kind->make(story, &own, &step))
            continue;
        mem_grow(story->steps, story->n_steps, story->cap_steps);
        story->steps[story->n_steps++] = step;
    }
    free(weights);
}

void story_make(struct story *story, uint64_t seed)
{
    struct rng rng = {seed};

    *story = (struct story){.seed = seed};
    cluster_make(&story->cluster, &rng);
    queues_make(&story->queues, &rng);
    story->planning_ms = one_in(&rng, 2) ? 0 : (int64_t)pick(&rng, 3000);
    story->reconcile_period_ms = 5000 + (int64_t)pick(&rng, 60000);
    story->launch_timeout_ms = 20000 + (int64_t)pick(&rng, 100000);
    if (one_in(&rng, 3))
        story->stream_lag_ms = (int64_t)pick(&rng, 1000);
    if (one_in(&rng, 3))
        story->answer_lag_ms = (int64_t)pick(&rng, 1000);
    if (one_in(&rng, 2))
        story->bind_classes = one_in(&rng, 2) ? "gpu" : "gpu,link";
    story->binds_pods = story->bind_classes && seed % 4 >= 2;
    story->has_pod_groups = one_in(&rng, 3);
    add_steps(story, &rng);
}

static void step_release(struct step *step)
{
    free(step->text);
}

void story_release(struct story *story)
{
    for (size_t i = 0; i < story->n_steps; i++)
        step_release(&story->steps[i]);
    free(story->steps);
    cluster_release(&story->cluster);
    queues_release(&story->queues);
}

void story_keep(struct story *story, const size_t *numbers, size_t n)
{
    size_t kept = 0, k = 0;

    for (size_t i = 0; i < story->n_steps; i++) {
        while (k < n && numbers[k] < story->steps[i].number)
            k++;
        if (k < n && numbers[k] == story->steps[i].number)
            story->steps[kept++] = story->steps[i];
        else
            step_release(&story->steps[i]);
    }
    story->n_steps = kept;
}

void story_print(const struct story *story, struct buf *out)
{
    buf_addf(out, "planning takes %lld ms, reconciliation every %lld ms, launches at most %lld ms\n",
             (long long)story->planning_ms, (long long)story->reconcile_period_ms, (long long)story->launch_timeout_ms);
    buf_addf(out, "changes are told after %lld ms, answers after %lld ms\n", (long long)story->stream_lag_ms,
             (long long)story->answer_lag_ms);
    buf_adds(out, story->has_pod_groups ? "the cluster has PodGroups\n" : "");
    buf_addf(out, "queued allocates %s%s\n", story->bind_classes ? story->bind_classes : "nothing itself",
             story->binds_pods ? " and binds pods" : "");
    buf_addf(out, "--- cluster\n%s--- queues\n%s--- steps\n", story->cluster.yaml, story->queues.yaml);
    for (size_t i = 0; i < story->n_steps; i++)
        buf_addf(out, "%zu %s: %s\n", story->steps[i].number, story->steps[i].kind->name,
                 story->steps[i].text ? story->steps[i].text : "");
}

const struct step *story_job(const struct story *story, const char *name)
{
    for (size_t i = 0; i < story->n_steps; i++)
        if (story->steps[i].job.name[0] && strcmp(story->steps[i].job.name, name) == 0)
            return &story->steps[i];
    return NULL;
}
