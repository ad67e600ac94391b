/* allocator/gang_notes.h - internal: what was found out about nodes the last time a question was asked.
 *
 * For every (question, node) one item is kept together with the state of the node that it holds for. Only remembered,
 * never decided. Safe for several threads. */
#ifndef QUEUED_GANG_NOTES_H
#define QUEUED_GANG_NOTES_H

#include "allocator/cache.h"
#include "allocator/gang_search.h"

/* An item begins with the state in which it is true. */
struct gang_note { /* of the survey */
    struct digest state;
    struct gs_hash class; /* equal: interchangeable for the question */
    uint64_t kinds;       /* that the node admits; 0: the node is of no use */
};

struct gang_notes;
/* The notes of a question, items of `size` bytes, with one reference. */
struct gang_notes *gang_notes_open(const struct snapshot *snapshot, struct digest question, size_t size);
void gang_notes_unref(struct gang_notes *notes);
/* Copy the node's item when it was made in this state; slot as in the snapshot. */
bool gang_notes_find(struct gang_notes *notes, uint32_t slot, struct digest state, void *out);
void gang_notes_put(struct gang_notes *notes, uint32_t slot, const void *item);

/* Equal digests: nothing changed about the node, its pools and those of the network. */
struct digest gang_node_state(const struct snapshot *snapshot, const struct node *node);

#endif
