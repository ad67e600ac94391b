/* allocator/grow.h - internal: a snapshot with empty copies of one of its nodes, as an autoscaler would add them. */
#ifndef QUEUED_ALLOCATOR_GROW_H
#define QUEUED_ALLOCATOR_GROW_H

#include "allocator/inventory.h"

/* Copies of a node: its labels (but for its host name), taints and allocatable amounts, and the pools that are its
 * alone, with nothing on them, no DeviceTaintRule, and ready. Their devices have the attributes of the originals, also
 * those that tell devices apart. What the node shares with others is not copied. */
struct growth;
/* Borrows the snapshot, which must outlive the growth and every snapshot made of it. */
struct growth *growth_new(const struct snapshot *snapshot, const struct node *like);
void growth_free(struct growth *growth);
/* The cluster with `n` of them more, with one reference for the caller. */
struct snapshot *growth_snapshot(struct growth *growth, size_t n);

#endif
