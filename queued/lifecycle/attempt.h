/* queued/lifecycle/attempt.h - one try to launch a gang: what was decided, the objects it creates, and what is known of
 * each of them. Loop thread only. */
#ifndef QUEUED_LIFECYCLE_ATTEMPT_H
#define QUEUED_LIFECYCLE_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "allocator/base/error.h"

struct store;
struct attempt_row;

/* The order in which kinds are created; each waits for the one before to be complete. */
enum object_rank {
    RANK_ANCHOR,
    RANK_SERVICE,
    RANK_POD_GROUP,
    RANK_CLAIM,
    RANK_POD,
    RANK_ASSUMED, /* never created: see objects.h */
    RANK_COUNT
};

struct launch_object {
    const char *kind, *ns, *name; /* borrowed from body */
    enum object_rank rank;
    json_t *body;      /* as created, without owner reference */
    const char *until; /* assumed claims: the pod that brings the real one, or NULL; borrowed from body */
    json_t *planned;   /* claims: status.allocation; pods: the node's name; or NULL */
    json_t *observed;  /* as the cluster told it last, or NULL */
    size_t turn;       /* pods: the gate stays until those of lower turns are bound */
    bool is_there;     /* created or observed, and not gone since */
    bool is_told;      /* in the present stream of changes, or created since it began */
    bool is_asked;     /* a call is on its way */
    bool is_let_go;    /* pods: the gates are off, or it is bound by us, whatever the stream has told */
    bool is_bound;     /* claims: we write the allocation (bind.c) */
    bool is_loose;     /* claims: kube-scheduler may give it other devices than the planned ones (behind.c) */
    bool is_allocated; /* those: it is written, whatever the stream has told */
    bool is_sick;      /* pods: a device of it was told to be unhealthy */
    bool is_given_up;  /* pods: its node is not asked any more; not stored */
    bool is_foreign;   /* somebody else has an object of its name */
    char *gone_uid;    /* of the last one of which the stream told the end, or NULL */
    char *gone_words;  /* pods: why that one went, as far as it was told before; or NULL */
    int failures;      /* of calls in a row */
    int64_t retry_ms;  /* no call before */
};

struct attempt {
    int64_t number;
    size_t shape;
    json_t *placement, *chosen, *charges; /* as the API shows them; charges: resource -> amount */
    json_t *effective; /* what it was placed by, as the API shows it; NULL: a version planned it that did not say */
    struct launch_object *objects; /* in the order of creation; the first is the anchor */
    size_t n_objects;
    int64_t created_ms;
    int64_t step_ms; /* since when the server waits for the present step (not stored: a restart gives it more time) */
    uint64_t order;  /* of planning, among live attempts; not stored: a restart goes by created_ms and job */
    int64_t behind;  /* the job whose devices it waits for with its gates on, or 0; not stored */
    uint64_t claims_seen; /* the lifecycle's claims_version when devices were last found to be ours alone */
    char *waits; /* the job's sentence while it waits for others: for devices, for silent nodes to end it; or NULL */
    int64_t remove_ms; /* since when the anchor is known to be removed; 0: not yet */
};

struct attempt *attempt_new(int64_t number, size_t shape, int64_t created_ms);
void attempt_free(struct attempt *attempt); /* NULL is fine */
static inline void attempt_freep(struct attempt **attempt)
{
    attempt_free(*attempt);
}

/* Take over what was decided: an array as attempt_objects() makes it (borrowed); references to the others are taken. */
void attempt_decide(struct attempt *attempt, json_t *objects, json_t *placement, json_t *chosen, json_t *charges);

/* Write it, with its objects. */
void attempt_store(const struct attempt *attempt, int64_t job, struct store *store);
/* Write the charges again after they changed. */
void attempt_store_charges(const struct attempt *attempt, int64_t job, struct store *store);
/* The same for the placement. */
void attempt_store_placement(const struct attempt *attempt, int64_t job, struct store *store);
/* Read it back. Returns 0, or -1: ERR_NOT_FOUND when it is not there, ERR_IO. */
MUST_CHECK int attempt_load(struct store *store, int64_t job, int64_t number, struct attempt **out, struct error *err);

/* The object of that kind and name; NULL if the attempt has none. */
struct launch_object *attempt_find(const struct attempt *attempt, const char *kind, const char *name);

bool attempt_is_bound(const struct attempt *attempt); /* has claims that we allocate */

static inline struct launch_object *attempt_anchor(const struct attempt *attempt)
{
    return &attempt->objects[0];
}

/* What the cluster told: a new version, or NULL when it is gone. */
void launch_object_observe(struct launch_object *object, const json_t *observed);
/* "metadata.uid" of what was observed, or NULL. */
const char *launch_object_uid(const struct launch_object *object);

#endif
