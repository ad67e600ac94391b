#include "queued/admission/order.h"

#include <stdlib.h>
#include <string.h>

#include "queued/admission/share.h"

#include "allocator/base/banned.h"

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_priority(const struct plan_job *a, const struct plan_job *b)
{
    return compare(b->priority, a->priority);
}

static int by_submission(const struct plan_job *a, const struct plan_job *b)
{
    return compare(a->submitted_ms, b->submitted_ms);
}

static int by_id(const struct plan_job *a, const struct plan_job *b)
{
    return compare(a->id, b->id);
}

/* One more rule is one more row; the last one must tell any two jobs apart. */
static int (*const rules[])(const struct plan_job *a, const struct plan_job *b) = {by_priority, by_submission, by_id};

int order_cmp(const struct plan_job *a, const struct plan_job *b)
{
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        int c = rules[i](a, b);

        if (c != 0)
            return c;
    }
    return 0;
}

static int cmp_in_line(const void *a, const void *b, void *ctx)
{
    const struct plan_job *jobs = ctx, *left = &jobs[*(const size_t *)a], *right = &jobs[*(const size_t *)b];
    int c = (left->queue > right->queue) - (left->queue < right->queue);

    return c ? c : order_cmp(left, right);
}

static void count_up(struct order *order, size_t queue)
{
    for (size_t node = queue; node != PLAN_ROOT; node = order->tree->parent[node])
        order->in_line[node]++;
}

void order_init(struct order *order, const struct tree *tree, struct arena *arena)
{
    const struct plan_input *input = tree->input;

    *order = (struct order){
        .tree = tree,
        .line = arena_array(arena, size_t, input->n_pending),
        .begin = arena_array(arena, size_t, input->n_queues + 1),
        .next = arena_array(arena, size_t, input->n_queues + 1),
        .in_line = arena_array(arena, size_t, tree->n_nodes),
        .totals = arena_array(arena, int64_t, input->n_resources),
    };
    for (size_t r = 0; r < input->n_resources; r++)
        order->totals[r] = input->resources[r].total;
    for (size_t i = 0; i < input->n_pending; i++) {
        order->line[i] = i;
        order->begin[input->pending[i].queue + 1]++;
        count_up(order, input->pending[i].queue);
    }
    for (size_t q = 0; q < input->n_queues; q++)
        order->begin[q + 1] += order->begin[q];
    memcpy(order->next, order->begin, (input->n_queues + 1) * sizeof(*order->next));
    if (input->n_pending > 1)
        qsort_r(order->line, input->n_pending, sizeof(*order->line), cmp_in_line, (void *)(uintptr_t)input->pending);
}

/* The child of `node` that is served next; bottom_up lists siblings by name, so that equal shares go by name. */
static size_t poorest_child(const struct order *order, size_t node)
{
    const struct tree *tree = order->tree;
    size_t best = PLAN_ROOT;
    struct share best_share = {0};

    for (size_t k = 0; k < tree->n_nodes; k++) {
        size_t child = tree->bottom_up[k];
        struct share share;

        if (tree->parent[child] != node || order->in_line[child] == 0)
            continue;
        share = share_of(tree_at(tree, tree->held, child), order->totals, tree->n_resources,
                         tree->input->queues[child].weight);
        if (best == PLAN_ROOT || share_cmp(&share, &best_share) < 0) {
            best = child;
            best_share = share;
        }
    }
    return best;
}

size_t order_next(struct order *order)
{
    const struct tree *tree = order->tree;
    size_t node = tree->root, job;

    if (order->in_line[tree->root] == 0)
        return PLAN_ROOT;
    while (node == tree->root || order->next[node] == order->begin[node + 1])
        node = poorest_child(order, node);
    job = order->line[order->next[node]++];
    for (; node != PLAN_ROOT; node = tree->parent[node])
        order->in_line[node]--;
    return job;
}
