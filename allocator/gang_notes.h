/* allocator/gang_notes.h - internal: which nodes looked alike to a question the last time.
 *
 * For every (question, node) the class of the node is noted together with the state it was seen in, so that a warm plan
 * looks at one node of a class instead of at all. Only remembered, never decided. Safe for several threads. */
#ifndef QUEUED_GANG_NOTES_H
#define QUEUED_GANG_NOTES_H

#include "allocator/cache.h"
#include "allocator/gang_search.h"

struct gang_note {
    struct digest state;  /* of the node, its pools and those of the network */
    struct gs_hash class; /* equal: interchangeable for the question */
    uint64_t kinds;       /* that the node admits; 0: the node is of no use */
};

struct gang_notes;
/* The notes of a question, with one reference. */
struct gang_notes *gang_notes_open(struct cache *cache, struct digest question);
void gang_notes_unref(struct gang_notes *notes);
/* The node's note when it was made in this state; slot as in the snapshot. */
bool gang_notes_find(struct gang_notes *notes, uint32_t slot, struct digest state, struct gang_note *out);
void gang_notes_put(struct gang_notes *notes, uint32_t slot, const struct gang_note *note);

#endif
