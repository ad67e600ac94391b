/* queued/admission/order.h - who is looked at next: the walk from the root to a leaf, and the line inside a leaf.
 *
 * At each queue the walk goes to the child with the lowest weighted share (share.h) among those that still have
 * somebody in line; equal shares go by name. Inside a queue a table of rules decides, first rule first: priority,
 * submission, id. Jobs of an inner queue itself (it got children after they were submitted) are served before its
 * children. */
#ifndef QUEUED_ADMISSION_ORDER_H
#define QUEUED_ADMISSION_ORDER_H

#include "queued/admission/tree.h"

struct order {
    const struct tree *tree;
    size_t *line;    /* indexes of pending jobs, grouped by queue, in the order of service */
    size_t *begin;   /* per queue: where its part of `line` begins; n_queues + 1 entries */
    size_t *next;    /* per queue: the next to be served */
    size_t *in_line; /* per node: how many of its subtree are still to be served */
    int64_t *totals; /* what the cluster has of each resource */
};

/* Everybody in input->pending stands in line. */
void order_init(struct order *order, const struct tree *tree, struct arena *arena);
/* Take the next pending job out of the line; PLAN_ROOT when nobody is left. Shares are read from the tree as it is now.
 */
size_t order_next(struct order *order);
/* Negative when a is served before b: the rule table. */
int order_cmp(const struct plan_job *a, const struct plan_job *b);

#endif
