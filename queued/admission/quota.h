/* queued/admission/quota.h - how much more a queue may use: nominal quota, lent and borrowed within the tree.
 *
 * A node's quota for a resource is its own nominal amount plus what its children lend. It lends its parent all of that,
 * or at most its lending limit; the rest stays local. It may use its local part, and of what is free above it as much
 * as its borrowing limit allows beyond its own. A queue without a quota for a resource has none of its own and may
 * borrow without limit; a resource that no queue has a quota for is unlimited.
 *
 * Source: the quota tree of Kueue's cohorts (nominalQuota, borrowingLimit, lendingLimit), so that quotas mean the same
 * after a move. Departure: all queues without a parent share one root and so lend to each other; amounts are exact and
 * saturate. */
#ifndef QUEUED_ADMISSION_QUOTA_H
#define QUEUED_ADMISSION_QUOTA_H

#include "queued/admission/tree.h"

/* Fill subtree and local of every node; usage is 0. */
void quota_init(struct tree *tree);
/* Use `charges` in a queue: each level keeps what its local part covers and hands the rest up. */
void quota_charge(struct tree *tree, size_t queue, const int64_t *charges);

/* How much more of a resource a queue may use now. Negative when it, or a queue above it, is over its quota (after a
 * quota was lowered, or lent quota taken into use). PLAN_UNLIMITED for a resource without quotas. */
int64_t quota_available(const struct tree *tree, size_t queue, size_t resource);
/* How much it could use if nothing ran at all: what is more than this can never be admitted. */
int64_t quota_potential(const struct tree *tree, size_t queue, size_t resource);
/* Of what the queue's subtree holds, how much is beyond its own quota: 0 while it borrows nothing. */
int64_t quota_borrowed(const struct tree *tree, size_t queue, size_t resource);

#endif
