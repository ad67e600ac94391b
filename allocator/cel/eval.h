/* allocator/cel/eval.h - the state of one evaluation, and the program that it runs.
 *
 * A program is a tree of nodes, immutable once planned. Paths (`device.attributes["d"].x`) are one node: a root and a
 * row of qualifiers, looked up without building anything. Values go up by return value; costs are charged after each
 * node, in the order of the real implementation, whose tracker finds operands by looking for node ids on a stack. That
 * stack is kept here too, because its accidents decide costs. */
#ifndef QUEUED_CEL_EVAL_H
#define QUEUED_CEL_EVAL_H

#include "allocator/base/arena.h"
#include "allocator/cel/cel.h"
#include "allocator/cel/functions.h"
#include "allocator/cel/value.h"

struct cel_device;
struct regex;

/* ---- programs ---- */

enum cel_op {
    OP_CONST,
    OP_PATH, /* also ?: , which the real implementation treats as one */
    OP_HAS,  /* a path whose last qualifier tests presence */
    OP_AND,
    OP_OR,
    OP_EQUAL,
    OP_NOT_EQUAL,
    OP_CALL,
    OP_OR_OPTIONAL,
    OP_OR_VALUE,
    OP_IN_SET, /* `in` a constant list of simple values */
    OP_LIST,
    OP_MAP,
    OP_MESSAGE,
    OP_FOLD,
};

enum cel_root {
    ROOT_DEVICE,
    ROOT_SLOT,   /* a variable of a macro */
    ROOT_GLOBAL, /* a bound variable (specification mode) */
    ROOT_EXPR,   /* the value of a node */
    ROOT_CHOICE, /* cond ? path : path */
    ROOT_MISSING /* a name that nothing binds (unchecked expressions) */
};

enum cel_qualifier_kind {
    QUAL_CONST,
    QUAL_PATH, /* [path]: resolved without being charged as a node */
    QUAL_EXPR  /* [node] */
};

struct cel_qualifier {
    uint8_t kind;
    bool is_optional;
    bool tests_presence;
    int8_t device_field; /* index into the device's entries, or -1 */
    uint32_t id;
    uint32_t fingerprint; /* of a constant string */
    struct cel_value key;
    struct cel_path *path; /* of QUAL_PATH */
    struct cel_node *node; /* of QUAL_EXPR */
};

struct cel_path {
    enum cel_root root;
    bool is_outer;         /* reached past a local variable of the same name: its qualifiers are not charged */
    uint32_t id;           /* of the root */
    uint32_t slot;         /* of ROOT_SLOT, ROOT_GLOBAL */
    struct cel_node *node; /* of ROOT_EXPR; the condition of ROOT_CHOICE */
    struct cel_path *truthy, *falsy;  /* of ROOT_CHOICE */
    struct cel_qualifier *qualifiers; /* a ROOT_CHOICE hands its own to both branches */
    size_t n, cap;
    struct str name;      /* of ROOT_MISSING */
    bool has_shortcut;    /* ROOT_DEVICE: device.attributes["domain"].id, with constant names */
    uint32_t fingerprint; /* then */
};

/* Loops: three slots each. */
struct cel_fold {
    struct cel_node *range, *init, *condition, *step, *result;
    uint32_t accu, iter, iter2; /* slots */
    bool has_iter2;
};

/* A map of a literal or the fields of a message keep keys and values alternating in `args`. */
struct cel_node {
    uint8_t op;        /* enum cel_op */
    uint8_t binding;   /* enum cel_binding, of OP_CALL */
    bool is_untracked; /* nobody looks for its id on the stack */
    uint32_t id;
    uint32_t pos;
    uint32_t n; /* args */
    union {
        struct cel_value value; /* OP_CONST */
        struct cel_path *path;  /* OP_PATH, OP_HAS */
        struct cel_fold *fold;
        struct {
            struct cel_node **args;
            const struct cel_function *function;
            const struct cel_overload *overload; /* the only candidate, or NULL */
            const struct regex *regex;           /* a constant pattern */
            const bool *optionals;               /* of a list or map, NULL when none is */
            const struct cel_map *set;           /* of OP_IN_SET */
            const struct cel_type *message;
            const struct str *fields;
            struct str name; /* of a message */
        } call;
    } as;
};

/* The id by which the tracker knows a path: that of its last qualifier. */
static inline uint32_t cel_path_id(const struct cel_path *path)
{
    while (path->root == ROOT_CHOICE) {
        if (!path->n)
            return path->id;
        path = path->truthy;
    }
    return path->n ? path->qualifiers[path->n - 1].id : path->id;
}
static inline uint32_t cel_node_id(const struct cel_node *node)
{
    return node->op == OP_PATH || node->op == OP_HAS ? cel_path_id(node->as.path) : node->id;
}

/* ---- one evaluation ---- */

struct cel_tracked {
    uint32_t id;
    struct cel_value v;
};

struct cel_slot {
    struct cel_value v;
    const struct cel_node *pending; /* not computed yet: an accumulator is, when it is first read */
    bool is_growing;                /* began as an empty list or map, which is changed in place */
};

#define CEL_INLINE_STACK 32
#define CEL_INLINE_SLOTS 12
#define CEL_INLINE_IDS   64

struct cel_eval {
    struct arena *arena;
    size_t arena_start;
    uint64_t cost, limit;
    uint64_t work; /* steps that no cost counts */
    bool fatal;    /* nothing absorbs this: unwind */
    bool is_uncertain;
    bool is_unwatched; /* within the qualifiers of a path that is_outer: nothing is charged or tracked */
    const char *fatal_words;
    const struct cel_device *device;
    const struct cel_value *globals;
    struct cel_slot *slots;
    struct cel_tracked *stack;
    size_t n_stack, cap_stack;
    uint32_t *live; /* by id: how often it is on the stack */
    struct cel_tracked inline_stack[CEL_INLINE_STACK];
    struct cel_slot inline_slots[CEL_INLINE_SLOTS];
    uint32_t inline_live[CEL_INLINE_IDS];
};

#define CEL_MAX_SCRATCH ((size_t)256 << 20) /* bytes of one evaluation */
#define CEL_MAX_STRING  ((size_t)32 << 20)  /* bytes of one text */
#define CEL_MAX_WORK    20000000            /* steps of comparisons and the like */

/* Prepare `e` for one run; the arena is borrowed. */
void cel_eval_begin(struct cel_eval *e, struct arena *arena, size_t n_slots, size_t n_ids, uint64_t limit);
/* The same for a further run with what the first prepared: what it takes does not depend on n_ids. */
void cel_eval_again(struct cel_eval *e);
struct cel_value cel_eval_node(struct cel_eval *e, const struct cel_node *node);
/* A path as the real implementation resolves it, without the charge of a node. False: *out is an error. */
bool cel_eval_path(struct cel_eval *e, const struct cel_path *path, struct cel_value *out);

/* End the evaluation: `words` must outlive it. */
void cel_fatal(struct cel_eval *e, const char *words);
/* Count steps that the cost does not bound; false when there were too many (and e is fatal). */
bool cel_work(struct cel_eval *e, uint64_t steps);
/* Scratch memory; sets e->fatal when the evaluation has taken too much, but never returns NULL for a size that has been
 * checked. cel_text_room is for texts and returns NULL when too large. */
void *cel_alloc(struct cel_eval *e, size_t n, size_t size);
char *cel_text_room(struct cel_eval *e, size_t n);
struct cel_value cel_text_copy(struct cel_eval *e, struct str s);
struct cel_value cel_optional_of(struct cel_eval *e, struct cel_value content);
/* Give back the content of an optional, or false for none. */
bool cel_optional_get(struct cel_value v, struct cel_value *out);
struct cel_value cel_concat_lists(struct cel_eval *e, struct cel_value a, struct cel_value b);
/* A flat list with the elements of any list. */
struct cel_value cel_list_flat(struct cel_eval *e, struct cel_value list);

/* ---- the tracker (cost.c) ---- */

void cel_track(struct cel_eval *e, uint32_t id, struct cel_value v);
void cel_track_drop(struct cel_eval *e, uint32_t id);
/* Charge; ends the evaluation beyond the limit. */
void cel_charge(struct cel_eval *e, uint64_t cost);
/* Take one back: has() of a choice is charged as if it had cost something. Below zero the real counter wraps, and the
 * evaluation ends. */
void cel_uncharge(struct cel_eval *e);
/* After a call: find its operands on the stack, and charge when all are there. */
void cel_charge_call(struct cel_eval *e, const struct cel_node *node, struct cel_value result);
/* Find and drop the operands of a call or literal, last first; false as soon as one is missing. `out` has room for the
 * n of them, or is NULL. */
bool cel_track_drop_args(struct cel_eval *e, struct cel_node *const *args, size_t n, struct cel_value *out);
/* Octets or code points, elements, entries; 1 for what has no size. */
uint64_t cel_size(struct cel_value v);

#endif
