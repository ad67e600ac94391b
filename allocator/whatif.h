/* allocator/whatif.h - internal to what-if: trials of the gang with one thing changed. */
#ifndef QUEUED_ALLOCATOR_WHATIF_H
#define QUEUED_ALLOCATOR_WHATIF_H

#include "allocator/explain.h"

struct trial {
    struct gang *gang;
    enum gang_verdict verdict;
    struct ledger *empty; /* where trials are made when the gang never fits; else NULL */
    const json_t *groups;
    json_t *blocking, *hints;
    json_t *ends; /* hints about holders: they come first, because nobody has to change anything for them */
    size_t n_trials, max_trials;
    unsigned obstacles; /* of nodes, as bits: enum node_obstacle */
};

/* Plan again with something lifted (NULL: nothing) and on a ledger (NULL: as things are, or the empty cluster
 * when the gang never fits); the nodes that would be used,
 * new reference, or NULL when it still does not fit or there have been enough trials. */
json_t *whatif_fits(struct trial *t, const struct gang_lift *lift, const struct ledger *ledger);
/* Something that makes it fit; takes `nodes`. Returns the entry of `blocking`, borrowed. */
json_t *whatif_report(struct trial *t, const char *kind, const char *name, const char *detail, json_t *nodes,
                      const char *hint);

/* whatif_ends.c: which holders would have to end. */
void whatif_holders(struct trial *t);
/* whatif_nodes.c: how many empty nodes more, like one that is there, would do; appended to `more`, the fewest first, as
 * gang.h has it. */
void whatif_more_nodes(struct trial *t, json_t *more);

#endif
