/* queued/admission/tree.h - the queue tree of one round, with what runs in it: nodes numbered, the root last.
 *
 * Node i < n_queues is plan_input.queues[i]; node n_queues is the root above them all. Amounts are per node and
 * resource: tree_at(tree, tree->held, node)[resource]. Lives in the round's arena. */
#ifndef QUEUED_ADMISSION_TREE_H
#define QUEUED_ADMISSION_TREE_H

#include "queued/admission/plan.h"

struct tree {
    const struct plan_input *input;
    size_t n_nodes, root, n_resources;
    size_t *parent;    /* of a node; the root's is PLAN_ROOT */
    size_t *bottom_up; /* all nodes, children before parents; siblings by name */
    bool *is_limited;  /* per resource: some queue has a quota for it; else it is free for all */

    int64_t *held;                   /* what the subtree's jobs are charged for */
    int64_t *subtree;                /* quota that the subtree has (see quota.h) */
    int64_t *local;                  /* of that, what is not lent to the parent */
    int64_t *usage;                  /* of the node as its parent sees it: quota.h */
    const struct plan_quota **quota; /* of a node for a resource, or NULL */
};

/* Build it and charge what runs. The parents must form a tree (the core checks that when queues are applied). */
void tree_init(struct tree *tree, const struct plan_input *input, struct arena *arena);

static inline int64_t *tree_at(const struct tree *tree, int64_t *amounts, size_t node)
{
    return amounts + node * tree->n_resources;
}

/* Charge a queue, and all above it, for `charges` (one per resource). */
void tree_charge(struct tree *tree, size_t queue, const int64_t *charges);

/* The nearest queue at or above `queue` that is not open, or PLAN_ROOT. */
size_t tree_closed_by(const struct tree *tree, size_t queue);

#endif
