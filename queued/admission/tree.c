#include "queued/admission/tree.h"

#include <string.h>

#include "allocator/base/checked.h"
#include "allocator/base/invariant.h"
#include "queued/admission/quota.h"

#include "allocator/base/banned.h"

static size_t depth_of(const struct tree *tree, size_t node)
{
    size_t depth = 0;

    for (; node != tree->root; node = tree->parent[node])
        INVARIANT(depth++ <= tree->n_nodes);
    return depth;
}

static bool comes_first(const struct tree *tree, const size_t *depth, size_t a, size_t b)
{
    if (depth[a] != depth[b])
        return depth[a] > depth[b];
    return a != tree->root && strcmp(tree->input->queues[a].name, tree->input->queues[b].name) < 0;
}

/* Deepest first, then by name: parents come after their children, and equal trees are walked alike. */
static void sort_bottom_up(struct tree *tree, struct arena *arena)
{
    size_t *depth = arena_array(arena, size_t, tree->n_nodes);

    for (size_t i = 0; i < tree->n_nodes; i++) {
        size_t at = i;

        depth[i] = depth_of(tree, i);
        for (; at > 0 && comes_first(tree, depth, i, tree->bottom_up[at - 1]); at--)
            tree->bottom_up[at] = tree->bottom_up[at - 1];
        tree->bottom_up[at] = i;
    }
}

static void index_quotas(struct tree *tree)
{
    for (size_t i = 0; i < tree->input->n_queues; i++) {
        const struct plan_queue *queue = &tree->input->queues[i];

        for (size_t k = 0; k < queue->n_quotas; k++) {
            tree->quota[i * tree->n_resources + queue->quotas[k].resource] = &queue->quotas[k];
            tree->is_limited[queue->quotas[k].resource] = true;
        }
    }
}

void tree_init(struct tree *tree, const struct plan_input *input, struct arena *arena)
{
    size_t n = input->n_queues + 1, cells = n * input->n_resources;

    *tree = (struct tree){
        .input = input,
        .n_nodes = n,
        .root = input->n_queues,
        .n_resources = input->n_resources,
        .parent = arena_array(arena, size_t, n),
        .bottom_up = arena_array(arena, size_t, n),
        .is_limited = arena_array(arena, bool, input->n_resources),
        .held = arena_array(arena, int64_t, cells),
        .subtree = arena_array(arena, int64_t, cells),
        .local = arena_array(arena, int64_t, cells),
        .usage = arena_array(arena, int64_t, cells),
        .quota = arena_array(arena, const struct plan_quota *, cells),
    };
    for (size_t i = 0; i < input->n_queues; i++)
        tree->parent[i] = input->queues[i].parent == PLAN_ROOT ? tree->root : input->queues[i].parent;
    tree->parent[tree->root] = PLAN_ROOT;
    sort_bottom_up(tree, arena);
    index_quotas(tree);
    quota_init(tree);
    for (size_t i = 0; i < input->n_running; i++)
        tree_charge(tree, input->running[i].queue, input->running[i].charges);
}

void tree_charge(struct tree *tree, size_t queue, const int64_t *charges)
{
    for (size_t node = queue; node != PLAN_ROOT; node = tree->parent[node])
        for (size_t r = 0; r < tree->n_resources; r++) {
            int64_t *held = &tree_at(tree, tree->held, node)[r];

            if (!checked_add(*held, charges[r], held))
                *held = INT64_MAX;
        }
    quota_charge(tree, queue, charges);
}

size_t tree_closed_by(const struct tree *tree, size_t queue)
{
    for (size_t node = queue; node != tree->root; node = tree->parent[node])
        if (tree->input->queues[node].state != QUEUE_OPEN)
            return node;
    return PLAN_ROOT;
}
