/* The fragmentation score only ever chooses: on small random clusters, with a random workload, a gang fits exactly when
 * the plain search finds a place for it, its placement is valid, and equal questions have equal answers, also when
 * nodes are remembered. Most of the worlds are made plain enough to be scored. SCORE_SEED runs one case, SCORE_CASES
 * sets how many. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "test/allocator/gang/world.h"

#include "allocator/base/banned.h"

#define CASES 1500

struct answer {
    enum gang_verdict verdict;
    const char *problem; /* of the placement, or NULL */
    char *text;          /* of the placement, or NULL */
};
struct tally {
    size_t fits, does_not, undecided, moved, wrong;
};

static uint64_t setting(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : fallback;
}

static void complain(struct tally *tally, uint64_t seed, const char *what)
{
    print_message("seed %llu: %s\n", (unsigned long long)seed, what);
    tally->wrong++;
}

/* Requests of one kind of device each, and devices of the nodes that share nothing; taints, shares of devices, cordoned
 * nodes and zones stay. */
static void make_plain(struct world *w)
{
    while (w->n_devices > 0 && w->devices[w->n_devices - 1].node < 0)
        w->n_devices--;
    for (int d = 0; d < w->n_devices; d++)
        w->devices[d].takes = 0;
    for (int g = 0; g < w->n_groups; g++) {
        struct world_group *group = &w->groups[g];

        group->port = 0;
        group->shares = false;
        for (int c = 0; c < group->n_claims; c++) {
            group->claims[c].rule = RULE_NONE;
            for (int r = 0; r < group->claims[c].n_requests; r++) {
                struct world_request *request = &group->claims[c].requests[r];

                request->n_alts = 1;
                request->alts[0].all = false;
                request->alts[0].tolerates = false;
            }
        }
    }
    w->has_shared = false;
    w->gang_rule = RULE_NONE;
}

/* What jobs look like in the other world. */
static struct gang_workload *workload_of(const struct world *other, struct rng rng)
{
    struct features features = features_default(37);
    struct gang_typical typical[MAX_GROUPS];
    struct world_question question;
    struct gang_workload *workload;
    struct error err = {0};

    world_question_init(&question, other);
    for (size_t g = 0; g < question.spec.n_groups; g++) {
        const struct gang_group *group = &question.spec.groups[g];

        typical[g] = (struct gang_typical){1 + (double)rng_below(&rng, 9), group->pod, group->claims[0].object};
    }
    workload = gang_workload_new(typical, question.spec.n_groups, &features, &err);
    if (!workload)
        fail_msg("%s: %s", err.field, err.text);
    world_question_release(&question);
    return workload;
}

static struct answer answer_of(const struct world *w, const struct snapshot *snapshot,
                               const struct gang_workload *workload)
{
    struct world_question question;
    struct gang_result result;
    struct error err = {0};
    struct answer answer = {0};

    world_question_init(&question, w);
    question.spec.workload = workload;
    if (gang_fit(snapshot, &question.spec, &question.arena, &result, &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
    answer.verdict = result.verdict;
    if (result.verdict == GANG_FITS) {
        json_t *json = placement_to_json(result.placement, &question.spec);

        answer.text = json_dumps(json, JSON_COMPACT);
        answer.problem = world_check(w, result.placement);
        json_decref(json);
    }
    gang_result_release(&result);
    world_question_release(&question);
    return answer;
}

static bool same_answers(const struct answer *a, const struct answer *b)
{
    return a->verdict == b->verdict && (!a->text || strcmp(a->text, b->text) == 0);
}

static void check_verdict(uint64_t seed, const struct world *w, const struct answer *have, struct tally *tally)
{
    enum world_answer want = world_fits(w);

    tally->fits += have->verdict == GANG_FITS;
    tally->does_not += have->verdict == GANG_WAITS || have->verdict == GANG_NEVER;
    tally->undecided += have->verdict == GANG_UNDECIDED;
    if (have->verdict == GANG_REFUSED)
        complain(tally, seed, "refused");
    if (have->verdict == GANG_FITS && want == WORLD_DOES_NOT_FIT)
        complain(tally, seed, "a false fit");
    if (have->verdict != GANG_FITS && want == WORLD_FITS)
        complain(tally, seed, "a false refusal");
    if (have->problem)
        complain(tally, seed, have->problem);
}

/* Jobs that want the same of devices, equally often, but of CPUs more. */
static void check_other_workload(uint64_t seed, const struct world *w, const struct snapshot *snapshot,
                                 const struct world *other, const struct rng *rng, struct tally *tally)
{
    struct snapshot *fresh = world_snapshot(w);
    struct world more = *other;
    struct gang_workload *workload;
    struct answer warm, cold;

    for (int g = 0; g < more.n_groups; g++)
        more.groups[g].cpu += 3;
    workload = workload_of(&more, *rng);
    warm = answer_of(w, snapshot, workload);
    cold = answer_of(w, fresh, workload);
    if (!same_answers(&warm, &cold))
        complain(tally, seed, "another workload is taken for this one");
    free(warm.text);
    free(cold.text);
    snapshot_unref(fresh);
    gang_workload_free(workload);
}

static void check_world(uint64_t seed, const struct world *w, const struct world *other, struct rng *rng,
                        struct tally *tally)
{
    struct gang_workload *workload = workload_of(other, *rng);
    struct snapshot_builder *builder = world_builder(w);
    struct snapshot *snapshot = snapshot_builder_build(builder), *changed, *fresh;
    struct answer first = answer_of(w, snapshot, workload), again = answer_of(w, snapshot, workload);
    struct answer unscored = answer_of(w, snapshot, NULL), warm, cold;
    int node = (int)rng_below(rng, (uint64_t)w->n_nodes);
    struct world next = *w;

    check_verdict(seed, w, &first, tally);
    tally->moved += !same_answers(&first, &unscored);
    if (!same_answers(&first, &again))
        complain(tally, seed, "two runs differ");
    check_other_workload(seed, w, snapshot, other, rng, tally);
    next.nodes[node].cpu += 2;
    for (int d = 0; d < next.n_devices; d++)
        if (next.devices[d].node == node)
            next.devices[d].model = 1 - next.devices[d].model;
    world_put_node(builder, &next, node);
    changed = snapshot_builder_build(builder);
    fresh = world_snapshot(&next);
    warm = answer_of(&next, changed, workload);
    cold = answer_of(&next, fresh, workload);
    check_verdict(seed, &next, &warm, tally);
    if (!same_answers(&warm, &cold))
        complain(tally, seed, "what was remembered changed the answer");
    free(first.text);
    free(again.text);
    free(unscored.text);
    free(warm.text);
    free(cold.text);
    snapshot_unref(snapshot);
    snapshot_unref(changed);
    snapshot_unref(fresh);
    snapshot_builder_free(builder);
    gang_workload_free(workload);
}

static void test_score__only_chooses(void **state)
{
    uint64_t first = setting("SCORE_SEED", 1), n = getenv("SCORE_SEED") ? 1 : setting("SCORE_CASES", CASES);
    struct tally tally = {0};

    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct rng rng = {.state = seed * UINT64_C(0x9e3779b97f4a7c15)};
        struct world w = world_random(&rng), other = world_random(&rng);

        if (rng_below(&rng, 4) > 0)
            make_plain(&w);
        if (rng_below(&rng, 2) > 0)
            other = w;
        if (getenv("SCORE_SEED"))
            world_print(&w);
        check_world(seed, &w, &other, &rng, &tally);
    }
    print_message(
        "seeds %llu..%llu: %zu fit, %zu do not, %zu undecided; %zu placed otherwise than without a workload\n",
        (unsigned long long)first, (unsigned long long)(first + n - 1), tally.fits, tally.does_not, tally.undecided,
        tally.moved);
    assert_int_equal(tally.wrong, 0);
    assert_true(tally.moved * 20 > n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_score__only_chooses)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
