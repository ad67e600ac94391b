/* allocator/shape.h - internal: the insides of shapes and benches, for the search and its parts. */
#ifndef QUEUED_ALLOCATOR_SHAPE_H
#define QUEUED_ALLOCATOR_SHAPE_H

#include "allocator/cache.h"
#include "allocator/inventory.h"

struct ask { /* a shape_ask and what is known about it before any node is seen */
    struct shape_ask view;
    const struct claim_ask *ask;
    const struct device_class *device_class;
    size_t claim, request, alternative;
    struct expression **expressions; /* of the class, then of the request */
    size_t n_expressions;
    const char *problem; /* FATAL when preparation gets here, or NULL */
    const char *label;   /* "claim c, request r/s", for messages */
};

struct request {
    const struct claim_request *request;
    size_t first_ask, n_asks;
    bool is_list;
    const char *problem;
};

struct claim_shape {
    const struct claim *claim;
    const struct request *requests;
    size_t n_requests;
    const char *problem; /* of its constraints */
};

struct shape {
    const struct snapshot *snapshot;
    const struct features *features;
    const struct behaviour *behaviour;
    struct arena arena;
    struct claim_shape *claims;
    size_t n_claims;
    struct ask *asks;
    size_t n_asks;
    const char **attributes; /* that constraints look at */
    size_t n_attributes;
    bool has_derived, has_all;
    bool costly;             /* some search of it was long: signatures pay */
    struct need_place *rows; /* see capacity_row; open addressing */
    size_t n_rows, rows_size;
    struct digest question;
    struct memo *memo; /* NULL until used */
    struct arena scratch;
};

/* What a bench knows beside its public part. Filled lazily; one thread. */
struct bench_table {
    struct bench bench;            /* first */
    const struct device_use **use; /* per offer */
    uint8_t *selects;              /* [offer * n_asks + ask]: enum selectable + 1, 0 unknown */
    bool has_kinds, plain;
    bool has_counters;      /* some offer consumes counters */
    uint64_t problem_order; /* of bench.problem in the input */
    const struct ledger *ledger;
    struct arena *arena;
};
static inline struct bench_table *bench_table(const struct bench *bench)
{
    return (struct bench_table *)bench;
}

/* The attribute by the name of a constraint: qualified first, then bare in the device's own domain (6.2); or NULL. */
const struct attribute *attribute_find(const char *driver, const struct device *device, const char *name);
/* The kinds of all offers. */
void bench_kinds(struct shape *shape, const struct bench *bench);
/* Whether a taint that the ask does not tolerate keeps the device away (section 8). */
bool ask_is_blocked(const struct shape *shape, const struct claim_ask *ask, const struct pool_device *device);

/* ---- capacity.c ---- */

enum capacity_state { CAPACITY_OK, CAPACITY_MISSING, CAPACITY_ERROR };
/* What an ask consumes of a device: one amount per capacity of the device, whatever is in use (10.2, 10.3).
 * MISSING: it names a capacity that the device does not have, or breaks a policy. Not remembered. */
enum capacity_state capacity_consumption(const struct shape *shape, const struct claim_ask *ask,
                                         const struct device *device, struct arena *arena, const struct quantity **out,
                                         const char **out_message);

struct need_row {
    enum capacity_state state;
    const struct quantity *amounts;
    const char *message; /* of an error, without the device's name */
};
/* The same, remembered per ask and distinct set of capacities; lives as long as the shape. */
const struct need_row *capacity_row(struct shape *shape, size_t ask, const struct device *device);

/* ---- constraint.c ---- */

struct constraint;
struct constraint *constraints_new(const struct shape *shape, const struct claim *claim, struct arena *arena);
/* Let constraint i see a pick; false: it refuses. */
bool constraint_add(struct constraint *constraints, size_t i, const char *request, const char *alternative,
                    const char *driver, const struct device *device, struct arena *scratch);
void constraint_remove(struct constraint *constraints, size_t i, const char *request, const char *alternative);
/* Whether constraint i may admit picks with this device in one order and refuse them in another. */
bool constraint_heeds_order(const struct constraint *constraints, size_t i, const char *driver,
                            const struct device *device);

/* ---- result.c ---- */

/* What an answer needs to know of a pick. */
void pick_describe(const struct shape *shape, const struct bench *bench, const struct pick *pick,
                   struct memo_pick *out);
/* The allocations of picks in the order of the search. Returns 0, or -1 with words. */
int allocations_build(struct shape *shape, const struct node *node, const struct memo_pick *picks, size_t n,
                      struct arena *arena, struct allocation **out, const char **out_message);

#endif
