/* One question, one node: from the cache when nothing changed, else by the search. */
#include "allocator/shape.h"

#include <string.h>

#include "allocator/base/banned.h"

/* ---- what an answer depends on ---- */

/* The node, its pools and every pool without a node: equal digests mean that nothing changed. */
static struct digest node_state(const struct snapshot *s, const struct node *node)
{
    struct digest digest = {0};

    digest_add(&digest, node->stamp);
    for (size_t i = 0; i < node->n_pools && node->shares_pools; i++)
        digest_add(&digest, snapshot_pool(s, node->pools[i])->stamp);
    digest_add(&digest, s->globals_stamp);
    return digest;
}

/* ---- giving an answer ---- */

static void fail(struct prediction *out, enum predict_verdict verdict, const char *message, uint64_t steps)
{
    *out = (struct prediction){.verdict = verdict, .message = message, .steps = steps};
}

static void give_remembered(struct shape *shape, const struct node *node, const struct memo_answer *answer,
                            struct arena *arena, struct prediction *out)
{
    const char *message = NULL;

    if (answer->verdict == PREDICT_NO_FIT) {
        fail(out, PREDICT_NO_FIT, "cannot allocate all claims", answer->steps);
        return;
    }
    *out = (struct prediction){.verdict = PREDICT_ALLOCATED, .n_allocations = shape->n_claims, .steps = answer->steps};
    if (allocations_build(shape, node, answer->picks, answer->n_picks, arena, &out->allocations, &message) < 0)
        fail(out, PREDICT_FATAL, message, answer->steps);
}

/* The picks of an answer on this bench. */
static struct memo_answer locate(const struct shape *shape, const struct bench *bench, enum predict_verdict verdict,
                                 const struct pick *picks, size_t n, uint64_t steps, struct arena *arena)
{
    struct memo_pick *located = arena_array(arena, struct memo_pick, n);

    for (size_t i = 0; i < n; i++)
        pick_describe(shape, bench, &picks[i], &located[i]);
    return (struct memo_answer){verdict, (uint32_t)n, steps, located};
}

/* An answer that a node with the same signature gave, moved to this bench. */
static struct memo_answer transfer(const struct shape *shape, const struct bench *bench,
                                   const struct memo_answer *alike, struct arena *arena)
{
    struct pick *picks = arena_array(arena, struct pick, alike->n_picks + 1);

    for (size_t i = 0; i < alike->n_picks; i++)
        picks[i] = alike->picks[i].pick;
    return locate(shape, bench, alike->verdict, picks, alike->n_picks, alike->steps, arena);
}

/* ---- search, with and without the cache ---- */

/* A global pool makes views for each node, which live in the arena of the call only: their offers may be remembered as
 * pool and index, which outlive it. */
static void search_bench(struct shape *shape, const struct bench *bench, const struct search_options *options,
                         struct arena *arena, struct search_answer *answer)
{
    bench_table(bench)->plain = options->plain;
    search_run(shape, bench, bench_table(bench)->ledger, options, arena, answer);
}

static void answer_bench(struct shape *shape, const struct bench *bench, const struct search_answer *answer,
                         struct arena *arena, struct prediction *out)
{
    const char *message = NULL;

    if (answer->verdict != PREDICT_ALLOCATED) {
        fail(out, answer->verdict, answer->message, answer->steps);
        return;
    }
    *out = (struct prediction){.verdict = PREDICT_ALLOCATED, .n_allocations = shape->n_claims, .steps = answer->steps};
    if (solution_allocations(shape, bench, &answer->solution, arena, &out->allocations, &message) < 0)
        fail(out, PREDICT_FATAL, message, answer->steps);
}

static bool is_memorable(const struct search_options *options, const struct ledger *ledger)
{
    return !ledger && !options->plain && !options->distinct && !options->forbidden && !options->order &&
           !options->accept;
}

/* Small searches cost less than the signature that would find them again on another node. */
#define WORTH_A_SIGNATURE 64

static void remember(struct shape *shape, const struct bench *bench, struct digest state,
                     const struct search_answer *answer, struct arena *arena)
{
    struct memo_answer located;

    if (answer->verdict != PREDICT_ALLOCATED && answer->verdict != PREDICT_NO_FIT)
        return;
    located =
        locate(shape, bench, answer->verdict, answer->solution.picks, answer->solution.n_picks, answer->steps, arena);
    memo_put(shape->memo, bench->node->slot, state, &located);
    if (answer->steps >= WORTH_A_SIGNATURE)
        memo_put_alike(shape->memo, bench_signature(shape, bench, NULL), &located);
    shape->costly = shape->costly || answer->steps >= WORTH_A_SIGNATURE;
}

static void predict_anew(struct shape *shape, const struct node *node, struct digest state,
                         const struct search_options *options, struct arena *arena, struct prediction *out)
{
    const struct bench *bench = bench_make(shape, NULL, node, arena);
    struct memo_answer alike;
    struct search_answer answer;

    if (shape->costly && memo_find_alike(shape->memo, bench_signature(shape, bench, NULL), arena, &alike)) {
        struct memo_answer here = transfer(shape, bench, &alike, arena);

        memo_put(shape->memo, node->slot, state, &here);
        give_remembered(shape, node, &here, arena, out);
        return;
    }
    search_bench(shape, bench, options, arena, &answer);
    remember(shape, bench, state, &answer, arena);
    answer_bench(shape, bench, &answer, arena, out);
}

void predict_shape(struct shape *shape, const struct ledger *ledger, const struct node *node,
                   const struct search_options *options, struct arena *arena, struct prediction *out)
{
    struct digest state;
    struct memo_answer known;

    if (!is_memorable(options, ledger)) {
        const struct bench *bench = bench_make(shape, ledger, node, arena);
        struct search_answer answer;

        search_bench(shape, bench, options, arena, &answer);
        answer_bench(shape, bench, &answer, arena, out);
        return;
    }
    if (!shape->memo)
        shape->memo = cache_memo(shape->snapshot->cache, shape->question);
    state = node_state(shape->snapshot, node);
    if (memo_find(shape->memo, node->slot, state, arena, &known))
        give_remembered(shape, node, &known, arena, out);
    else
        predict_anew(shape, node, state, options, arena, out);
}

void predict(const struct snapshot *snapshot, const char *node_name, const struct claim *const *claims, size_t n_claims,
             uint64_t max_steps, struct arena *arena, struct prediction *out)
{
    const struct node *node = snapshot_find_node(snapshot, node_name);
    struct shape *shape;

    if (!node) {
        fail(out, PREDICT_NO_FIT, arena_printf(arena, "there is no node %s", node_name), 0);
        return;
    }
    shape = shape_new(snapshot, claims, n_claims);
    predict_shape(shape, NULL, node, &(struct search_options){.max_steps = max_steps}, arena, out);
    if (out->message)
        out->message = arena_strdup(arena, out->message);
    shape_free(shape);
}
