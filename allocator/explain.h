/* allocator/explain.h - internal: what the files of the explanation share.
 *
 *   explain.c           the whole: per group the nodes that admit a member, and why the others do not
 *   explain_requests.c  per request: how many devices there are, match, are free
 *   explain_problem.c   per request: what is missing, in one phrase
 *   explain_values.c    constraints in numbers: how many devices with one value are needed, how many are free
 *   explain_amounts.c   resources of nodes in numbers
 *   explain_holders.c   who holds what: jobs with all their claims, and claims of others
 *   explain_summary.c   the sentence
 *   explain_passing.c   never, or not as long as some nodes and pools are as they are
 *   whatif.c            which single change would make it fit; whatif_ends.c: which holders would have to end;
 *                       whatif_nodes.c: how many nodes more would do */
#ifndef QUEUED_ALLOCATOR_EXPLAIN_H
#define QUEUED_ALLOCATOR_EXPLAIN_H

#include "allocator/gang_internal.h"

/* Members of what has been written already: "" and 0 where there is none. */
static inline const char *explain_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}
static inline long long explain_number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* ---- explain.c ---- */

/* Why the node does not admit a member, without numbers that differ from node to node; in gang->work. */
const char *explain_finding(struct gang *gang, const struct node_finding *finding);
/* The benches' devices are counted once even where several nodes reach them: false when this one was. */
bool explain_mark(struct gang *gang, uint64_t **sets, const struct pool *pool, uint32_t index);
/* Look at the empty cluster from here on, when the gang never fits: only what holds there too is a reason. Returns
 * what explain_restore() takes. */
struct ledger *explain_empty(struct gang *gang, enum gang_verdict verdict);
void explain_restore(struct gang *gang, struct ledger *empty);
/* "a", "a and b", "a, b and c": add one more of n items. */
void explain_join(struct buf *out, size_t i, size_t n);

/* ---- explain_requests.c ---- */

/* The "requests" of a group; `nodes`: bitset over node slots, those that admit a member; pools that cannot be used and
 * matter to them are appended to `pools`. */
json_t *explain_requests(struct gang *gang, const struct gang_kind *kind, const struct gang_group *group,
                         enum gang_verdict verdict, const uint64_t *nodes, json_t *pools);

/* ---- explain_values.c: phrases in gang->arena; NULL when there is nothing to count ---- */

/* For the constraints of claims on an attribute. */
const char *explain_claim_constraint(struct gang *gang, enum gang_verdict verdict, const char *attribute);
/* For one of the gang's own constraints. */
const char *explain_gang_constraint(struct gang *gang, enum gang_verdict verdict, size_t constraint);

/* ---- explain_amounts.c ---- */

/* An amount for people: exact where that is short, else cut to one digit behind the point ("63.9Gi"). */
const char *explain_quantity(const struct quantity *quantity, struct arena *arena);
/* Whole billionths as a quantity in the form of another. */
struct quantity explain_quantity_of(gs_amount amount, enum quantity_format format);
/* An amount of a node's resource, in the scheduler's unit. */
const char *explain_resource(const char *resource, int64_t amount, struct arena *arena);
/* What members ask of a resource, and what the nodes have left. */
const char *explain_shortage(struct gang *gang, enum gang_verdict verdict, const char *resource);

/* ---- explain_holders.c ---- */

struct holder {
    const char *job;  /* label queue.dra/job; NULL: a claim of somebody else */
    const char *name; /* the job's, as its claims tell it, or NULL; of somebody else's claim "namespace/name" */
    const char *text; /* "job 1 (train)", "claim other/gpus" */
    const struct cluster_claim **claims;
    size_t n_claims;
};
struct holder_list {
    struct holder *items; /* jobs by id, then claims by name */
    size_t n;
};
/* Whoever holds devices now; lives in the arena. */
struct holder_list explain_holders(const struct snapshot *snapshot, struct arena *arena);

/* ---- explain_summary.c ---- */

/* `phrase`: what would make it fit; NULL: nothing known. New reference. */
json_t *explain_summary(const struct gang *gang, enum gang_verdict verdict, const json_t *groups,
                        const json_t *blocking, const char *phrase);

/* ---- whatif.c ---- */

/* Appends to `blocking` and `hints` (JSON arrays) which single changes would make the gang fit now; `groups` is what
 * has been counted; to `more_nodes` which nodes, added to those there are, would. Returns a phrase for the summary in the gang's arena, or NULL when no single change helps. */
const char *gang_what_if(struct gang *gang, enum gang_verdict verdict, const json_t *groups, json_t *blocking,
                         json_t *hints, json_t *more_nodes);

#endif
