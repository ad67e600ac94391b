/* allocator/search.h - internal: the state of one search and its parts. */
#ifndef QUEUED_ALLOCATOR_SEARCH_H
#define QUEUED_ALLOCATOR_SEARCH_H

#include "allocator/shape.h"

/* What the counters of a pool still have (9.1), and what this call took. */
struct bank {
    const struct pool_view *view; /* that defined it */
    struct quantity *left, *used;
    size_t n;
    bool is_ready;
    bool is_odd; /* something is negative: every counter must be compared every time */
};

/* A view's way to its bank. Releases that mixed up pools of equal names have several views to one bank (B3). */
struct bank_access {
    const struct pool_view *view;
    struct bank *bank;
    uint32_t *map; /* the view's counters to those of the bank; UNLIMITED: the bank has no such; NULL: the same */
};
#define UNLIMITED UINT32_MAX

struct offer_state {
    const struct device_use *use;
    struct bank_access *access; /* NULL: consumes no counters */
    uint32_t position;          /* in the view, for its counters */
    uint32_t n_busy;            /* picks in this call, when not multi */
    uint32_t n_taking;          /* picks in this call, when multi */
    struct quantity *taking;    /* one per capacity; NULL until first taken */
    uint64_t *busy;             /* bitset over claims; NULL until first taken */
    bool multi;
};

struct taken { /* a pick, with what undo needs */
    struct pick pick;
    bool counters; /* reserved by this pick */
    uint32_t n_constraints;
    const struct quantity *amounts; /* added to taking */
    struct arena_mark mark;         /* of the scratch arena before it */
};

struct ask_state {
    int64_t need;
    const uint32_t *list; /* MODE_ALL */
    size_t n_list;
};

/* What remains behind each position for one ask, computed when its request begins (fast search only). */
struct outlook {
    const uint16_t *candidates; /* at this position or behind it */
    const uint32_t *error;      /* the first one that fails to evaluate, or n_offers */
};

struct search {
    struct shape *shape;
    const struct bench *bench;
    const struct behaviour *behaviour;
    const struct features *features;
    const struct search_options *options;
    struct arena *arena;  /* of the answer and of what is computed once */
    struct arena scratch; /* of the picks, given back as they are undone */
    bool fast, consumable;
    uint64_t steps, max_steps, n_failures;
    uint32_t n_exhausted; /* requests of the current claim that found nothing */
    size_t hopeless; /* the claim that cannot be served beside the picks of those before it; SIZE_MAX: none known */
    const char *message;
    struct offer_state *offers;
    struct bank_access *accesses; /* one per view with counters */
    size_t n_accesses;
    uint8_t *blocked;                /* [offer * n_asks + ask]: 0 unknown, 1 no, 2 yes */
    struct constraint **constraints; /* per claim */
    struct ask_state *asks;
    struct taken *picks;
    size_t n_picks;
    uint32_t *n_claim_picks;
    size_t invalid_at; /* 1.34: the offer before which an invalid pool lies; SIZE_MAX: none */
    uint64_t n_too_many;
    /* symmetry.c */
    uint32_t *kinds;  /* small numbers for the kinds of offers; NULL until needed */
    uint64_t *listed; /* a bitset over offers: within reach of an All request under constraints */
    bool may_err;     /* the search can end with an error; known with the kinds */
};

enum step { STEP_OK, STEP_FAIL, STEP_TOO_MANY, STEP_FATAL, STEP_TIMEOUT };

/* ---- take.c ---- */

void search_init(struct search *s);
bool is_in_use(const struct search *s, const struct claim_ask *ask, size_t claim, size_t offer);
/* The capacity test of 10.2 against what is consumed and taken now; `fresh`: as if nothing were. */
enum capacity_state capacity_test(struct search *s, size_t ask, size_t offer, bool fresh);
/* Take the offer for the ask (4.4): STEP_OK taken, STEP_FAIL refused, STEP_FATAL. */
enum step search_take(struct search *s, size_t ask, size_t offer, bool must);
void search_undo(struct search *s);
bool is_blocked(struct search *s, size_t ask, size_t offer);
/* Let the constraints of the ask's claim see the offer as a pick. Returns how many accepted: all, or the index of the
 * first refusal. */
uint32_t enter_constraints(struct search *s, struct constraint *constraints, const struct ask *ask, size_t offer);

/* ---- symmetry.c ---- */

#define MAX_TRIED 48 /* kinds remembered per slot */

struct tried { /* what failed in one slot */
    size_t n;
    uint32_t offers[MAX_TRIED];
};

/* Whether the offer would fail in this slot as one of those tried did; `missing`: devices that the request still needs,
 * with this one. */
bool symmetry_excludes(const struct search *s, const struct tried *tried, size_t ask, size_t offer, int64_t missing);
/* The offer was taken for the slot and everything behind it failed. `met_too_many`: in part because alternatives were
 * too large for the claim. */
void symmetry_note(struct search *s, struct tried *tried, size_t offer, bool met_too_many);

#endif
