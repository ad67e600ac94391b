/* Small random gangs on small random clusters, packed and spread: which of the two is asked for never changes whether a
 * gang fits, what comes out holds, and to spread takes no fewer nodes than to pack. The seed of a failing case is
 * printed; GANG_SEED runs that one alone, GANG_CASES sets how many. */
#include "test/support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "test/allocator/gang/world.h"

#include "allocator/base/banned.h"

#define CASES 700

struct outcome {
    enum gang_verdict verdict;
    const char *problem;
    size_t n_nodes;
    bool bind_only;
};

static uint64_t setting(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : fallback;
}

static size_t count_nodes(const struct placement *placement)
{
    size_t n = 0;

    for (size_t m = 0; m < placement->n_members; m++) {
        bool is_new = true;

        for (size_t k = 0; k < m; k++)
            is_new = is_new && strcmp(placement->members[k].node, placement->members[m].node) != 0;
        n += is_new;
    }
    return n;
}

static struct outcome fit(const struct world *w, const struct snapshot *snapshot, enum gang_score score)
{
    struct world_question question;
    struct gang_result result;
    struct outcome outcome = {0};

    world_question_init(&question, w);
    question.spec.score = score;
    assert_int_equal(gang_fit(snapshot, &question.spec, &question.arena, &result, NULL), 0);
    outcome.verdict = result.verdict;
    if (result.verdict == GANG_FITS) {
        outcome.problem = world_check(w, result.placement);
        outcome.n_nodes = count_nodes(result.placement);
        outcome.bind_only = result.placement->bind_only;
    }
    gang_result_release(&result);
    world_question_release(&question);
    return outcome;
}

struct tally {
    size_t fits, does_not, more_nodes, undecided;
};

static void compare(uint64_t seed, struct tally *tally)
{
    struct rng rng = {seed};
    struct world w = world_random(&rng);
    enum world_answer want = world_fits(&w);
    struct snapshot *snapshot = world_snapshot(&w);
    const struct outcome packed = fit(&w, snapshot, GANG_SCORE_PACK), spread = fit(&w, snapshot, GANG_SCORE_SPREAD);
    const char *problem = packed.problem ? packed.problem : spread.problem;

    snapshot_unref(snapshot);
    if (packed.verdict == GANG_UNDECIDED || spread.verdict == GANG_UNDECIDED) {
        tally->undecided++;
        return;
    }
    if (problem)
        fail_msg("seed %llu: %s", (unsigned long long)seed, problem);
    if (packed.verdict != spread.verdict)
        fail_msg("seed %llu: packed and spread differ", (unsigned long long)seed);
    if (want != WORLD_TOO_LARGE && (packed.verdict == GANG_FITS) != (want == WORLD_FITS))
        fail_msg("seed %llu: a false answer", (unsigned long long)seed);
    if (spread.n_nodes < packed.n_nodes && !spread.bind_only && !packed.bind_only)
        fail_msg("seed %llu: spread over %zu, packed over %zu nodes", (unsigned long long)seed, spread.n_nodes,
                 packed.n_nodes);
    tally->fits += packed.verdict == GANG_FITS;
    tally->does_not += packed.verdict != GANG_FITS;
    tally->more_nodes += spread.n_nodes > packed.n_nodes;
}

static void test_placement__whether_it_fits_is_the_same(void **state)
{
    uint64_t first = setting("GANG_SEED", 1), n = getenv("GANG_SEED") ? 1 : setting("GANG_CASES", CASES);
    struct tally tally = {0};

    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++)
        compare(seed, &tally);
    print_message("seeds %llu..%llu: %zu fit, %zu of them on more nodes when spread; %zu do not, %zu undecided\n",
                  (unsigned long long)first, (unsigned long long)(first + n - 1), tally.fits, tally.more_nodes,
                  tally.does_not, tally.undecided);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_placement__whether_it_fits_is_the_same)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
