/* allocator/gang_replay.h - internal to gang fit: the steered claims of a placement, replayed in orders of its members.
 *
 * The claims of a pod go in the order of its spec.resourceClaims, as kube-scheduler gives them to the allocator; those
 * that are allocated already are left out, and a shared claim is allocated by the first member that names it. */
#ifndef QUEUED_GANG_REPLAY_H
#define QUEUED_GANG_REPLAY_H

#include "allocator/gang_internal.h"

struct replay_claim {
    const struct claim *claim;
    const struct allocation *planned;
    size_t shared; /* index into gang->shared; SIZE_MAX: the member's own */
    size_t entry;  /* in the placed member's claims */
    bool is_exact;
};
struct replay_member {
    const struct placed_member *placed;
    const struct node *node;
    const struct pod_demand *demand;
    struct replay_claim *claims;
    size_t n_claims;
};
struct replay {
    struct gang *gang;
    struct arena *arena;
    struct replay_member *members;
    size_t n_members;
    struct replay_claim *shared; /* per gang->shared */
    bool is_exact;
};

struct replay_turn { /* the state of one replay */
    struct ledger *ledger;
    struct arena *arena;
    const struct allocation **shared; /* what each shared claim was given; NULL: nothing yet */
    const struct node **shared_nodes; /* where */
    const struct allocation ***got;   /* per member of the replay, per claim of it; NULL: not replayed */
};

/* Steer all claims of the placement; everything lives in gang->work. */
void replay_prepare(struct replay *r, struct gang *gang, const struct placement *placement);
/* A turn begins on the gang's snapshot; its ledger is the caller's to free. */
void replay_turn_init(struct replay_turn *turn, const struct replay *r, struct arena *arena);
/* A turn as it stands, to return to. */
struct replay_kept {
    size_t mark;
    const void *shared, *shared_nodes, *got;
};
struct replay_kept replay_keep(const struct replay *r, const struct replay_turn *turn);
void replay_return(const struct replay *r, struct replay_turn *turn, const struct replay_kept *kept);
enum replay_wish {
    REPLAY_WHAT_IS_GIVEN, /* exact claims as planned, the others as first fit gives */
    REPLAY_AS_PLANNED,    /* all as planned */
    REPLAY_TRY            /* the same, and nothing is taken */
};
/* Whether the member finds devices now; then it has them, and what it is given stays in `turn`. */
bool replay_member(const struct replay *r, struct replay_turn *turn, size_t index, enum replay_wish wish);
/* Whether what the gang asks of all its devices together holds of what was given. */
bool replay_agrees(const struct replay *r, const struct replay_turn *turn);
/* Whether all of these members find devices in this order, those of exact claims as planned, and what the gang asks of
 * all its devices together holds. What they are given stays in `turn`. */
bool replay_play(const struct replay *r, struct replay_turn *turn, const size_t *order, size_t n);
/* Take from the gang's budget what replaying n members costs where first fit has a say. */
void replay_charge(const struct replay *r, size_t n);
/* The same in other orders than the plain one. */
bool replay_holds_in_other_orders(const struct replay *r);
bool replay_as_planned(const struct allocation *got, const struct allocation *planned);
/* Whether the constraint on an attribute covers the gang's shared claim. */
bool replay_covers_shared(const struct gang *gang, const struct gang_constraint *constraint, size_t shared);

#endif
