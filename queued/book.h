/* queued/book.h - queues, quotas, resources and priority classes as one immutable value, made anew when they change.
 *
 * The loop and a planning round on the worker may hold the same book: it is reference-counted. References are taken and
 * given back on the loop thread only; reading is for any thread. cpu, memory and pods are resources of every book. */
#ifndef QUEUED_BOOK_H
#define QUEUED_BOOK_H

#include <jansson.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "queued/admission/plan.h"

struct store;

struct book_resource { /* what plan_resource does not tell */
    const char *device_class, *selector;
};

struct book_priority {
    const char *name;
    int64_t value;
};

struct book {
    unsigned refs;
    struct arena arena;
    struct plan_resource *resources; /* by name; total is 0: that depends on the snapshot */
    struct book_resource *defined;   /* one per resource */
    size_t n_resources;
    struct plan_queue *queues; /* by name */
    size_t n_queues;
    struct book_priority *priorities; /* by name */
    size_t n_priorities;
};

/* Read what the store has, also what the open transaction wrote. Returns 0, or -1: ERR_IO, or ERR_INVALID for a
 * resource whose selector does not compile. */
MUST_CHECK int book_load(struct store *store, struct book **out, struct error *err);
struct book *book_ref(struct book *book);
void book_unref(struct book *book); /* NULL is fine */

/* Index by name, or SIZE_MAX. */
size_t book_find_queue(const struct book *book, const char *name);
size_t book_find_resource(const struct book *book, const char *name);
const struct book_priority *book_find_priority(const struct book *book, const char *name);
/* Whether a queue has no children: only those take jobs. */
bool book_is_leaf(const struct book *book, size_t queue);

/* The kind of a resource by its name: the three built-in ones, or devices. */
enum resource_kind resource_kind_of(const char *name);

/* An amount as people write it (a whole number or a quantity, cpu in cores) to units and back. Returns 0, or -1 with
 * ERR_INVALID. amount_json: STORE_UNLIMITED is null; cpu is in cores. */
MUST_CHECK int amount_parse(enum resource_kind kind, const json_t *value, int64_t *out, struct error *err);
json_t *amount_json(enum resource_kind kind, int64_t amount);

#endif
