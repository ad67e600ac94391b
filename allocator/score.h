/* allocator/score.h - internal to the fragmentation score.
 *
 *   workload.c      what jobs usually look like
 *   score_node.c    a node as the score sees it
 *   score_member.c  one more member on a node: where, and what that adds
 *   score.c         the members of a gang, dealt out over the nodes */
#ifndef QUEUED_SCORE_H
#define QUEUED_SCORE_H

#include "allocator/gang_internal.h"

#define SCORE_MAX_DEVICES    16 /* of a node that is scored */
#define SCORE_MAX_SELECTIONS 64
#define SCORE_MAX_SHAPES     256
#define SCORE_MAX_PARTS      4         /* requests of a member */
#define SCORE_WHOLE          INT64_MAX /* need: all of the device */

/* ---- workload.c ---- */

struct selection {
    const struct claim_ask *ask; /* class and selectors */
};
struct typical_shape { /* what a typical pod wants of devices */
    uint32_t selection, count;
    int64_t need; /* of the device's one capacity, in thousandths */
};
struct typical_pod {
    float weight;
    uint32_t shape; /* UINT32_MAX: no devices */
    int64_t cpu, memory;
    double per_cpu, per_memory; /* one by them */
};
struct gang_workload {
    struct arena arena;
    struct selection selections[SCORE_MAX_SELECTIONS];
    size_t n_selections;
    struct typical_shape *shapes;
    size_t n_shapes, cap_shapes;
    struct typical_pod *pods;
    size_t n_pods, cap_pods;
    const struct claim **claims; /* that ask for every selection, in order */
    size_t n_claims;
    struct digest shapes_digest; /* of selections and shapes: what the facts of a node depend on */
    struct digest digest;        /* of all */
};

/* The number of the selection, or SCORE_MAX_SELECTIONS when it is unknown. */
uint32_t score_selection(const struct gang_workload *w, const struct claim_ask *ask);
/* The amount in thousandths, cut to what can be counted; *out_exact (may be NULL) becomes false when it is not just
 * that.
 */
int64_t score_thousandths(const struct quantity *amount, bool *out_exact);
int64_t score_demand(const struct pod_rules *rules, const char *resource);

/* ---- score_node.c ---- */

struct room {            /* on one device */
    int64_t left, total; /* of its one capacity, in thousandths; a device that is not shared is all or nothing */
    float share;         /* of the device, per thousandth */
    uint32_t index;      /* in its pool */
    uint32_t pool;       /* slot */
    bool multi;
    uint64_t selections;
    const struct device *device; /* alive as long as the state is the snapshot's */
};
struct facts {
    struct digest state;
    struct digest likeness; /* equal: the same in all that follows, but for the names of devices */
    bool is_simple;         /* the score knows what to do with the node */
    uint64_t failures;      /* bits of selections that fail on a device: it is not known what they end in */
    uint32_t n_devices;
    int64_t cpu, memory, pods; /* left */
    float free;                /* sum of shares that are left */
    uint64_t weights;          /* that the fragments were computed with; 0: not yet */
    float fragments;           /* before anything is placed */
    struct room devices[SCORE_MAX_DEVICES];
    struct use_of_shape { /* per shape of the workload */
        float wasted;     /* shares that it cannot use */
        float served;     /* shares that go to copies of it, as many as the devices hold */
        uint32_t n;       /* devices that serve it */
        uint32_t copies;  /* of the need */
    } shapes[];
};
static inline size_t score_facts_size(const struct gang_workload *w)
{
    return sizeof(struct facts) + w->n_shapes * sizeof(struct use_of_shape);
}

/* Look at the node; `shape` is that of w->claims. */
void score_look(struct gang *gang, const struct gang_workload *w, struct shape *shape, const struct node *node,
                struct facts *facts);
/* What is left is too small or of the wrong kind for the typical pods, in shares, weighted. */
float score_fragments(const struct gang_workload *w, const float *weights, const struct facts *facts);
/* Take so much of a device (SCORE_WHOLE: all). */
void score_take(const struct gang_workload *w, struct facts *facts, uint32_t device, int64_t need);

/* ---- score_member.c ---- */

/* One request of a member. */
struct part {
    const struct claim_ask *ask;
    uint32_t claim, request, number; /* number: of the ask in the shape */
    uint32_t selection, count;       /* SCORE_MAX_SELECTIONS: one that no typical pod makes */
    struct rounded {                 /* what the request takes of a capacity, by the capacity's hash */
        uint64_t hash;
        int64_t need; /* 0: nothing of such a device can be had; -1: not in whole thousandths */
    } rounded[4];
    size_t n_rounded; /* ever; the oldest is forgotten */
};

/* What members of one kind want of a node. */
struct question {
    const struct gang_kind *kind;
    const struct gang_unit *unit;
    struct part parts[SCORE_MAX_PARTS];
    size_t n_parts;
    int64_t cpu, memory;
    bool is_anew;             /* some part is of a selection that the facts do not know */
    struct gang_notes *notes; /* of score.c */
};

/* One more member on a node. */
struct step {
    bool fits, is_simple;              /* is_simple: this is known */
    float increase, left;              /* of fragments; what would be free on the node then */
    uint32_t devices[SCORE_MAX_PARTS]; /* bits of the facts' devices */
};

struct scratch {
    struct gang *gang;
    const struct gang_workload *w;
    float *weights; /* of the typical pods, with scarcity */
    /* the node with the member in work; with devices on trial; with the best of these */
    struct facts *base, *trial, *best;
    bool has_choice; /* how many members a node takes may depend on which devices they get */
};

void score_copy(const struct gang_workload *w, struct facts *to, const struct facts *from);
/* False: members with more to them than the score understands. */
bool score_read_question(const struct gang *gang, const struct gang_workload *w, size_t kind, struct question *out);
/* One more member on a node that admits it and has these facts (with fragments); s->base is what they would be then. */
struct step score_step(struct scratch *s, struct question *q, const struct node *node, const struct facts *facts);
/* Make it so. */
void score_apply(struct scratch *s, struct question *q, const struct step *step, struct facts *facts);

#endif
