/* The fragmentation score of jobs of one pod.
 *
 * A node's fragments, for a typical pod, are the free shares of its devices that this pod could not use there: all of
 * them if the pod does not fit the node, else those that are too small or of the wrong kind, and in part (COPIES) those
 * that would still be free when the node is filled with such pods. Weighted over the workload this is the node's
 * fragmentation; a pod goes to the node and devices where it adds the least to it. Between equal increases the fullest
 * node wins.
 *
 * A typical pod weighs as much as it is common, times how scarce the devices are that it selects: all shares that exist
 * by those that it could use. Else pods that take any device use up the few that others depend on.
 *
 * Source: the idea of fragmentation gradient descent (Weng et al., USENIX ATC 2023, section 3), written from the idea.
 * Departures: copies and scarcity.
 *
 * It must be quick, because every waiting pod asks it of every node. So what is known of a node (its facts: room on
 * each device, which selections of the workload match it, how many devices serve each typical shape) is kept per node
 * state, and the verdict for a question as well: after a placement one node is looked at anew. Nodes whose devices
 * share counters or lie in the network, and jobs with more to them than one request, go the general way. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/gang_internal.h"
#include "allocator/gang_notes.h"

#include "allocator/base/banned.h"

#define MAX_DEVICES    16 /* of a node that is scored */
#define MAX_SELECTIONS 64
#define MAX_SHAPES     256
#define WHOLE          INT64_MAX /* need: all of the device */
#define PER_CLAIM      32
#define MAX_COPIES     1024 /* of a pod on one device: more say nothing */
/* How much of a typical pod's fragments is what many of them would leave, the rest being what one of them could not
 * use. One alone says too little about CPU that runs out, many alone too much about what may never come. In the openb
 * traces 0.05 and 0.1 gained over none on all workloads; 0.2 lost 0.02 % of all GPUs on one. */
#define COPIES 0.1f

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
    struct selection selections[MAX_SELECTIONS];
    size_t n_selections;
    struct typical_shape *shapes;
    size_t n_shapes, cap_shapes;
    struct typical_pod *pods;
    size_t n_pods, cap_pods;
    const struct claim **claims; /* that ask for every selection, in order */
    size_t n_claims;
    struct digest digest;
};

/* ---- the workload ---- */

static bool same_texts(const char *const *a, const char *const *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!a[i] || !b[i] || strcmp(a[i], b[i]) != 0)
            return false;
    return true;
}

static bool same_selection(const struct claim_ask *a, const struct claim_ask *b)
{
    return strcmp(a->class_name, b->class_name) == 0 && a->n_selectors == b->n_selectors &&
           same_texts(a->selectors, b->selectors, a->n_selectors);
}

/* The number of the selection, or MAX_SELECTIONS when it is unknown. */
static uint32_t find_selection(const struct gang_workload *w, const struct claim_ask *ask)
{
    uint32_t s = 0;

    while (s < w->n_selections && !same_selection(w->selections[s].ask, ask))
        s++;
    return s < w->n_selections ? s : MAX_SELECTIONS;
}

static int64_t thousandths(const struct quantity *amount)
{
    gs_amount exact = gang_amount(amount) / 1000000;

    return exact > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)exact;
}

static int64_t need_of(const struct claim_ask *ask)
{
    return ask->n_capacity ? thousandths(&ask->capacity[0].amount) : WHOLE;
}

static uint32_t shape_number(struct gang_workload *w, const struct claim_ask *ask)
{
    uint32_t selection = find_selection(w, ask);
    struct typical_shape shape;

    if (selection == MAX_SELECTIONS) {
        if (w->n_selections == MAX_SELECTIONS || w->n_shapes == MAX_SHAPES)
            return UINT32_MAX;
        selection = (uint32_t)w->n_selections;
        w->selections[w->n_selections++].ask = ask;
    }
    shape = (struct typical_shape){selection, (uint32_t)ask->count, need_of(ask)};
    for (size_t i = 0; i < w->n_shapes; i++)
        if (w->shapes[i].selection == shape.selection && w->shapes[i].count == shape.count &&
            w->shapes[i].need == shape.need)
            return (uint32_t)i;
    if (w->n_shapes == MAX_SHAPES)
        return UINT32_MAX;
    mem_grow(w->shapes, w->n_shapes, w->cap_shapes);
    w->shapes[w->n_shapes] = shape;
    return (uint32_t)w->n_shapes++;
}

/* What can be counted in copies. Mode All takes whatever a node has, and no claim can hold more than CLAIM_MAX_RESULTS.
 */
static bool is_countable(const struct claim_ask *ask)
{
    return ask->mode == MODE_EXACT_COUNT && ask->count > 0 && ask->count <= CLAIM_MAX_RESULTS;
}

static int64_t demand_of(const struct pod_rules *rules, const char *resource)
{
    for (size_t i = 0; i < rules->demand.n_resources; i++)
        if (strcmp(rules->demand.resources[i].name, resource) == 0)
            return scheduler_units(resource, &rules->demand.resources[i].amount);
    return 0;
}

static int add_typical(struct gang_workload *w, const struct gang_typical *typical, const struct features *features,
                       struct error *err)
{
    struct typical_pod pod = {.weight = (float)typical->weight, .shape = UINT32_MAX};
    struct pod_rules rules;
    struct claim *claim = NULL;

    if (!(typical->weight > 0) || !isfinite(typical->weight))
        return error_field(err, "weight", "must be a positive number");
    if (pod_rules_parse(typical->pod, NULL, &w->arena, &rules, err) < 0)
        return error_in(err, "pod");
    if (typical->claim && claim_parse(typical->claim, features, false, &w->arena, &claim, err) < 0)
        return error_in(err, "claim");
    pod.cpu = demand_of(&rules, "cpu");
    pod.memory = demand_of(&rules, "memory");
    pod.per_cpu = pod.cpu > 0 ? 1 / (double)pod.cpu : 0;
    pod.per_memory = pod.memory > 0 ? 1 / (double)pod.memory : 0;
    if (claim && claim->n_requests && claim->requests[0].n_asks && is_countable(&claim->requests[0].asks[0]))
        pod.shape = shape_number(w, &claim->requests[0].asks[0]);
    mem_grow(w->pods, w->n_pods, w->cap_pods);
    w->pods[w->n_pods++] = pod;
    return 0;
}

/* Claims that ask for one device of every selection: what a bench is asked with. */
static void make_claims(struct gang_workload *w)
{
    w->n_claims = (w->n_selections + PER_CLAIM - 1) / PER_CLAIM;
    w->claims = arena_array(&w->arena, const struct claim *, w->n_claims + 1);
    for (size_t c = 0; c < w->n_claims; c++) {
        size_t first = c * PER_CLAIM;
        size_t n = w->n_selections - first < PER_CLAIM ? w->n_selections - first : PER_CLAIM;
        struct claim *claim = arena_new(&w->arena, struct claim);
        struct claim_request *requests = arena_array(&w->arena, struct claim_request, n);

        for (size_t i = 0; i < n; i++) {
            struct claim_ask *ask = arena_new(&w->arena, struct claim_ask);

            *ask = *w->selections[first + i].ask;
            ask->mode = MODE_EXACT_COUNT;
            ask->count = 1;
            ask->n_capacity = 0;
            ask->has_capacity = false;
            requests[i] = (struct claim_request){.name = arena_printf(&w->arena, "s%zu", i), .asks = ask, .n_asks = 1};
        }
        *claim = (struct claim){.ns = "", .name = "workload", .requests = requests, .n_requests = n};
        w->claims[c] = claim;
    }
}

static void digest_workload(struct gang_workload *w)
{
    w->digest = (struct digest){23, 29};
    for (size_t i = 0; i < w->n_selections; i++) {
        const struct claim_ask *ask = w->selections[i].ask;

        digest_text(&w->digest, ask->class_name, strlen(ask->class_name));
        digest_add(&w->digest, ask->n_selectors);
        for (size_t s = 0; s < ask->n_selectors; s++)
            if (ask->selectors[s])
                digest_text(&w->digest, ask->selectors[s], strlen(ask->selectors[s]));
    }
    for (size_t i = 0; i < w->n_shapes; i++) {
        digest_add(&w->digest, (uint64_t)w->shapes[i].selection << 32 | w->shapes[i].count);
        digest_add(&w->digest, (uint64_t)w->shapes[i].need);
    }
    for (size_t i = 0; i < w->n_pods; i++) {
        digest_text(&w->digest, (const char *)&w->pods[i].weight, sizeof(w->pods[i].weight));
        digest_add(&w->digest, w->pods[i].shape);
        digest_add(&w->digest, (uint64_t)w->pods[i].cpu);
        digest_add(&w->digest, (uint64_t)w->pods[i].memory);
    }
}

struct gang_workload *gang_workload_new(const struct gang_typical *typical, size_t n, const struct features *features,
                                        struct error *err)
{
    struct gang_workload *w = mem_new(struct gang_workload);
    float total = 0;

    for (size_t i = 0; i < n; i++)
        if (add_typical(w, &typical[i], features, err) < 0) {
            (void)error_in(err, "typical[%zu]", i);
            gang_workload_free(w);
            return NULL;
        }
    for (size_t i = 0; i < w->n_pods; i++)
        total += w->pods[i].weight;
    for (size_t i = 0; i < w->n_pods; i++)
        w->pods[i].weight /= total;
    make_claims(w);
    digest_workload(w);
    return w;
}

void gang_workload_free(struct gang_workload *workload)
{
    if (!workload)
        return;
    arena_release(&workload->arena);
    free(workload->shapes);
    free(workload->pods);
    free(workload);
}

/* ---- facts of a node ---- */

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
    bool is_simple; /* the score knows what to do with the node */
    uint32_t n_devices;
    int64_t cpu, memory, pods; /* left */
    float free;                /* sum of shares that are left */
    uint64_t weights;          /* that the fragments were computed with; 0: not yet */
    float fragments;           /* before anything is placed */
    struct room devices[MAX_DEVICES];
    struct use_of_shape { /* per shape of the workload */
        float wasted;     /* shares that it cannot use */
        float served;     /* shares that go to copies of it, as many as the devices hold */
        uint32_t n;       /* devices that serve it */
        uint32_t copies;  /* of the need */
    } shapes[];
};

static bool serves(const struct typical_shape *shape, const struct room *room, int64_t left)
{
    return (room->selections >> shape->selection & 1) && left > 0 &&
           left >= (shape->need == WHOLE ? room->total : shape->need);
}

/* Count a device with so much left in (sign 1) or out (-1) of what serves the shape. */
static void count_room(const struct typical_shape *shape, const struct room *room, int64_t left, int sign,
                       struct use_of_shape *use)
{
    int64_t need = shape->need == WHOLE ? room->total : shape->need, copies;

    if (!serves(shape, room, left)) {
        use->wasted += (float)sign * (float)left * room->share;
        return;
    }
    copies = need > 0 ? left / need : 1;
    if (copies > MAX_COPIES)
        copies = MAX_COPIES;
    use->n += (uint32_t)sign;
    use->copies += (uint32_t)sign * (uint32_t)copies;
    use->served += (float)sign * (float)(copies * need) * room->share;
}

static void fill_shapes(const struct gang_workload *w, struct facts *facts)
{
    for (size_t s = 0; s < w->n_shapes; s++) {
        facts->shapes[s] = (struct use_of_shape){0};
        for (size_t d = 0; d < facts->n_devices; d++)
            count_room(&w->shapes[s], &facts->devices[d], facts->devices[d].left, 1, &facts->shapes[s]);
    }
}

static uint32_t fitting(int64_t amount, double per, uint32_t copies)
{
    double n = (double)amount * per + 1e-9;

    return per > 0 && n < copies ? (uint32_t)(n > 0 ? n : 0) : copies;
}

static float fragments_of(const struct gang_workload *w, const float *weights, const struct use_of_shape *shapes,
                          float free, int64_t cpu, int64_t memory)
{
    float sum = 0;

    if (!(free > 0))
        return 0;
    for (size_t p = 0; p < w->n_pods; p++) {
        const struct typical_pod *pod = &w->pods[p];
        const struct use_of_shape *use;
        uint32_t count, copies = 0;

        if (pod->shape == UINT32_MAX)
            continue;
        use = &shapes[pod->shape];
        count = w->shapes[pod->shape].count;
        if (use->n >= count && pod->cpu <= cpu && pod->memory <= memory)
            copies = fitting(memory, pod->per_memory, fitting(cpu, pod->per_cpu, use->copies / count));
        if (copies == 0) {
            sum += weights[p] * free;
            continue;
        }
        sum += weights[p] * ((1 - COPIES) * use->wasted +
                             COPIES * (free - (float)(copies * count) * use->served / (float)use->copies));
    }
    return sum;
}

static bool is_plain(const struct offer *offer)
{
    return offer->slice->node_name && !offer->slice->per_device && offer->device->n_consumes == 0 &&
           offer->device->n_capacities <= 1 && offer->device->n_taints == 0 &&
           offer->view->pool->devices[offer->index].n_rule_taints == 0;
}

static bool add_room(const struct gang_workload *w, struct shape *shape, const struct bench *bench, size_t o,
                     struct facts *facts)
{
    const struct offer *offer = &bench->offers[o];
    const struct device_use *use = &offer->view->pool->use[offer->index];
    struct room *room = &facts->devices[facts->n_devices];

    if (facts->n_devices == MAX_DEVICES || !is_plain(offer))
        return false;
    *room = (struct room){
        .index = offer->index, .pool = offer->view->pool->slot, .multi = offer->device->multi, .device = offer->device};
    room->total = offer->device->n_capacities ? thousandths(&offer->device->capacities[0].value) : 1000;
    room->left = use->n_dedicated ? 0 : room->total;
    if (room->multi && use->consumed && room->left)
        room->left -= thousandths(&use->consumed[0]);
    room->share = room->total > 0 ? 1.0f / (float)room->total : 0;
    for (size_t s = 0; s < w->n_selections; s++)
        if (bench_selects(shape, bench, o, s, NULL) == SELECT_YES)
            room->selections |= (uint64_t)1 << s;
    facts->free += (float)room->left * room->share;
    facts->n_devices++;
    return true;
}

static void find_facts(struct gang *gang, const struct gang_workload *w, struct shape *shape, const struct node *node,
                       struct facts *facts)
{
    struct arena_mark mark = arena_mark(&gang->work);
    const struct bench *bench = bench_make(shape, NULL, node, &gang->work);

    *facts = (struct facts){.state = gang_node_state(gang->snapshot, node), .is_simple = bench->problem == NULL};
    facts->cpu = node_allocatable(node->info, "cpu") - node_used(&node->use, "cpu");
    facts->memory = node_allocatable(node->info, "memory") - node_used(&node->use, "memory");
    facts->pods = node_allocatable(node->info, "pods") - node_used(&node->use, "pods");
    for (size_t o = 0; o < bench->n_offers && facts->is_simple; o++)
        facts->is_simple = add_room(w, shape, bench, o, facts);
    fill_shapes(w, facts);
    arena_rewind(&gang->work, mark);
}

/* ---- the pod ---- */

struct pod_question {
    const struct gang_kind *kind;
    const struct gang_unit *unit;
    const struct claim_ask *ask; /* NULL: no devices */
    uint32_t selection, count;
    int64_t cpu, memory;
    struct rounded { /* what the request takes of a capacity, by the capacity's hash */
        uint64_t hash;
        int64_t need; /* 0: nothing of such a device can be had */
    } rounded[4];
    size_t n_rounded; /* ever; the oldest is forgotten */
};

/* What was found about a node for this pod. */
struct verdict {
    struct digest state;
    bool fits, is_simple;
    float increase, left; /* of fragments; what would be free on the node then, to tell equal ones apart */
    uint32_t devices;     /* bits of the facts' devices */
};

struct scoring {
    struct gang *gang;
    const struct gang_workload *w;
    float *weights;          /* of the typical pods, with scarcity */
    uint64_t weights_digest; /* never 0 */
    struct pod_question pod;
    const uint32_t *slots; /* of the nodes, sorted by name */
    struct digest *states; /* of the nodes, in that order */
    size_t n_nodes;
    struct shape *shape; /* of the workload's selections */
    struct gang_notes *facts_notes, *verdicts, *supplies;
    struct facts *facts;        /* of the node in work */
    struct use_of_shape *after; /* scratch */
};

/* What the request takes of a device, after the rounding of its policy. */
static int64_t need_on(struct scoring *s, const struct room *room)
{
    const struct capacity *capacity = room->device->n_capacities ? &room->device->capacities[0] : NULL;
    const struct quantity *amounts;
    const char *message;
    struct rounded *known;

    if (!s->pod.ask->n_capacity && (!capacity || !room->multi))
        return WHOLE;
    for (size_t i = 0; i < s->pod.n_rounded && i < ARRAY_SIZE(s->pod.rounded); i++)
        if (capacity && s->pod.rounded[i].hash == capacity->hash)
            return s->pod.rounded[i].need;
    known = &s->pod.rounded[s->pod.n_rounded++ % ARRAY_SIZE(s->pod.rounded)];
    *known = (struct rounded){.hash = capacity ? capacity->hash : 0};
    if (capacity && capacity_consumption(s->pod.unit->shape, s->pod.ask, room->device, &s->gang->work, &amounts,
                                         &message) == CAPACITY_OK)
        known->need = thousandths(&amounts[0]);
    return known->need;
}

static void try_devices(struct scoring *s, uint32_t devices, struct verdict *best)
{
    const struct facts *facts = s->facts;
    int64_t cpu = facts->cpu - s->pod.cpu, memory = facts->memory - s->pod.memory;
    float free = facts->free, increase, left;

    if (devices)
        memcpy(s->after, facts->shapes, s->w->n_shapes * sizeof(*s->after));
    for (uint32_t d = 0; devices >> d; d++) {
        const struct room *room = &facts->devices[d];
        int64_t rest, need;

        if (!(devices >> d & 1))
            continue;
        need = need_on(s, room);
        rest = room->multi && need != WHOLE ? room->left - need : 0;
        free -= (float)(room->left - rest) * room->share;
        for (size_t k = 0; k < s->w->n_shapes; k++) {
            count_room(&s->w->shapes[k], room, room->left, -1, &s->after[k]);
            count_room(&s->w->shapes[k], room, rest, 1, &s->after[k]);
        }
    }
    increase = fragments_of(s->w, s->weights, devices ? s->after : facts->shapes, free, cpu, memory) - facts->fragments;
    left = free;
    if (best->fits && (increase > best->increase || (increase >= best->increase && left >= best->left)))
        return;
    best->fits = true;
    best->increase = increase;
    best->left = left;
    best->devices = devices;
}

static bool takes(struct scoring *s, const struct room *room)
{
    const struct typical_shape shape = {s->pod.selection, 1, need_on(s, room)};

    return shape.need > 0 && serves(&shape, room, room->left);
}

/* One device: every different room is tried. Several: those with the least room. */
static void try_all_devices(struct scoring *s, struct verdict *best)
{
    const struct facts *facts = s->facts;
    uint32_t chosen = 0;

    for (uint32_t d = 0; s->pod.count == 1 && d < facts->n_devices; d++) {
        bool seen = false;

        for (uint32_t e = 0; e < d && !seen; e++)
            seen = facts->devices[e].left == facts->devices[d].left &&
                   facts->devices[e].selections == facts->devices[d].selections &&
                   facts->devices[e].total == facts->devices[d].total;
        if (!seen && takes(s, &facts->devices[d]))
            try_devices(s, BIT(d), best);
    }
    for (uint32_t n = 0; s->pod.count > 1; n++) {
        uint32_t least = MAX_DEVICES;

        if (n == s->pod.count) {
            try_devices(s, chosen, best);
            return;
        }
        for (uint32_t d = 0; d < facts->n_devices; d++)
            if (!(chosen >> d & 1) && takes(s, &facts->devices[d]) &&
                (least == MAX_DEVICES || facts->devices[d].left < facts->devices[least].left))
                least = d;
        if (least == MAX_DEVICES)
            return;
        chosen |= BIT(least);
    }
}

static void load_facts(struct scoring *s, const struct node *node, struct digest state)
{
    if (gang_notes_find(s->facts_notes, node->slot, state, s->facts))
        return;
    find_facts(s->gang, s->w, s->shape, node, s->facts);
    gang_notes_put(s->facts_notes, node->slot, s->facts);
}

static struct verdict judge(struct scoring *s, const struct node *node, struct digest state)
{
    struct verdict verdict = {.state = state, .is_simple = true};

    if (node_admits(&s->pod.kind->rules, node->info).obstacle != NODE_ADMITS)
        return verdict;
    load_facts(s, node, state);
    verdict.is_simple = s->facts->is_simple;
    if (s->facts->cpu < s->pod.cpu || s->facts->memory < s->pod.memory || s->facts->pods < 1 || !verdict.is_simple)
        return verdict;
    if (s->facts->weights != s->weights_digest) {
        s->facts->fragments =
            fragments_of(s->w, s->weights, s->facts->shapes, s->facts->free, s->facts->cpu, s->facts->memory);
        s->facts->weights = s->weights_digest;
        gang_notes_put(s->facts_notes, node->slot, s->facts);
    }
    if (s->pod.ask)
        try_all_devices(s, &verdict);
    else
        try_devices(s, 0, &verdict);
    return verdict;
}

/* ---- scarcity ---- */

struct supply { /* devices of a node, in use or not */
    struct digest state;
    float by_selection[MAX_SELECTIONS + 1]; /* all of them last */
};

static void find_supply(struct scoring *s, const struct node *node, struct supply *supply)
{
    load_facts(s, node, supply->state);
    for (uint32_t d = 0; d < s->facts->n_devices; d++) {
        for (size_t k = 0; k < s->w->n_selections; k++)
            supply->by_selection[k] += (float)(s->facts->devices[d].selections >> k & 1);
        supply->by_selection[MAX_SELECTIONS]++;
    }
}

static void find_states(struct scoring *s)
{
    s->slots = snapshot_sorted_nodes(s->gang->snapshot, &s->n_nodes);
    s->states = arena_array(&s->gang->work, struct digest, s->n_nodes + 1);
    for (size_t i = 0; i < s->n_nodes; i++)
        s->states[i] = gang_node_state(s->gang->snapshot, snapshot_node(s->gang->snapshot, s->slots[i]));
}

/* Over all nodes; whole numbers, so that the order of adding does not matter. */
static void sum_supplies(struct scoring *s, struct supply *sum)
{
    for (size_t i = 0; i < s->n_nodes; i++) {
        struct supply supply;

        if (!gang_notes_find(s->supplies, s->slots[i], s->states[i], &supply)) {
            supply = (struct supply){.state = s->states[i]};
            find_supply(s, snapshot_node(s->gang->snapshot, s->slots[i]), &supply);
            gang_notes_put(s->supplies, s->slots[i], &supply);
        }
        for (size_t k = 0; k < s->w->n_selections; k++)
            sum->by_selection[k] += supply.by_selection[k];
        sum->by_selection[MAX_SELECTIONS] += supply.by_selection[MAX_SELECTIONS];
    }
}

/* A pod whose devices do not exist weighs nothing: no room can be kept for it. */
static void weigh(struct scoring *s)
{
    struct supply sum = {0};
    struct digest digest = {31, 37};
    float before = 0, after = 0;

    sum_supplies(s, &sum);
    for (size_t p = 0; p < s->w->n_pods; p++) {
        const struct typical_pod *pod = &s->w->pods[p];
        float usable = pod->shape == UINT32_MAX ? 0 : sum.by_selection[s->w->shapes[pod->shape].selection];

        s->weights[p] = usable > 0 ? pod->weight * sum.by_selection[MAX_SELECTIONS] / usable : 0;
        before += pod->shape == UINT32_MAX ? 0 : pod->weight;
        after += s->weights[p];
    }
    for (size_t p = 0; p < s->w->n_pods && after > 0; p++)
        s->weights[p] *= before / after;
    digest_text(&digest, (const char *)s->weights, s->w->n_pods * sizeof(*s->weights));
    s->weights_digest = digest.lo | 1;
}

/* ---- which jobs ---- */

static bool is_plain_pod(const struct gang *gang, const struct pod_rules *rules)
{
    static const char *const known[] = {"cpu", "memory", "pods"};

    for (size_t i = 0; i < rules->demand.n_resources; i++) {
        bool is_known = false;

        for (size_t k = 0; k < ARRAY_SIZE(known); k++)
            is_known = is_known || strcmp(rules->demand.resources[i].name, known[k]) == 0;
        if (!is_known)
            return false;
    }
    return gang->n_ports == 0 && gang->n_mapped == 0;
}

static bool is_plain_job(const struct gang *gang)
{
    const struct gang_spec *spec = gang->spec;

    return spec->workload && spec->score == GANG_SCORE_FRAGMENTATION && gang->n_kinds == 1 &&
           gang->kinds[0].n_members == 1 && gang->n_shared == 0 && spec->n_constraints == 0 && spec->n_excluded == 0 &&
           gang->kinds[0].n_allocated == 0 && !gang->ledger && !gang->lift && is_plain_pod(gang, &gang->kinds[0].rules);
}

static bool is_plain_ask(const struct claim *claim)
{
    const struct claim_ask *ask = claim->requests[0].asks;

    return claim->n_requests == 1 && claim->n_constraints == 0 && !claim->requests[0].is_list &&
           ask->mode == MODE_EXACT_COUNT && !ask->admin_access && ask->n_tolerations == 0 && ask->n_capacity <= 1 &&
           ask->n_derived == 0 && ask->count >= 1 && ask->count <= MAX_DEVICES;
}

static bool read_pod(struct scoring *s)
{
    const struct gang_kind *kind = &s->gang->kinds[0];
    const struct gang_unit *unit = kind->forms[0];

    s->pod = (struct pod_question){
        .kind = kind, .unit = unit, .cpu = demand_of(&kind->rules, "cpu"), .memory = demand_of(&kind->rules, "memory")};
    if (unit->n_claims == 0)
        return true;
    if (unit->n_claims > 1 || unit->claims[0]->n_requests == 0 || !is_plain_ask(unit->claims[0]))
        return false;
    s->pod.ask = &unit->claims[0]->requests[0].asks[0];
    s->pod.count = (uint32_t)s->pod.ask->count;
    s->pod.selection = find_selection(s->w, s->pod.ask);
    return s->pod.selection < MAX_SELECTIONS;
}

/* ---- the choice ---- */

static struct digest question_of(const struct scoring *s)
{
    struct digest d = s->w->digest;

    digest_add(&d, s->weights_digest);
    digest_text(&d, s->pod.kind->text, strlen(s->pod.kind->text));
    digest_add(&d, s->pod.unit->shape->question.lo);
    digest_add(&d, s->pod.unit->shape->question.hi);
    return d;
}

static struct digest supplies_of(const struct gang_workload *w)
{
    struct digest d = w->digest;

    digest_add(&d, 41);
    return d;
}

/* The best node for the pod; *out_simple is false when some node cannot be scored. */
static const struct node *best_node(struct scoring *s, uint32_t *out_rank, struct verdict *best, bool *out_simple)
{
    const struct node *chosen = NULL;

    *out_simple = true;
    for (size_t i = 0; i < s->n_nodes && *out_simple; i++) {
        const struct node *node = snapshot_node(s->gang->snapshot, s->slots[i]);
        struct verdict verdict;

        if (!gang_notes_find(s->verdicts, node->slot, s->states[i], &verdict)) {
            verdict = judge(s, node, s->states[i]);
            gang_notes_put(s->verdicts, node->slot, &verdict);
        }
        *out_simple = verdict.is_simple;
        if (!verdict.fits || (chosen && (verdict.increase > best->increase ||
                                         (verdict.increase >= best->increase && verdict.left >= best->left))))
            continue;
        chosen = node;
        *best = verdict;
        *out_rank = (uint32_t)i;
    }
    return chosen;
}

/* The placement in the words of the search: the node's candidates that are the chosen devices. */
static bool make_solution(struct scoring *s, const struct gang_choice *choice, const struct node *node, uint32_t rank,
                          const struct verdict *verdict, struct gs_solution *out)
{
    const struct gang_spot spot = {.slot = node->slot, .rank = rank};
    struct gs_node *visited = gang_visit(s->gang, choice, &spot);
    struct gs_placed *placed = arena_new(&s->gang->work, struct gs_placed);
    struct gs_pick *picks = arena_array(&s->gang->work, struct gs_pick, MAX_DEVICES);

    if (!visited)
        return false;
    *placed = (struct gs_placed){.node = visited, .variant = &s->pod.unit->variants[0], .picks = picks};
    if (s->pod.ask) {
        const struct gs_list *list = &visited->lists[s->pod.unit->asks[0]];

        for (size_t i = 0; i < list->n; i++) {
            const struct gang_device *device = gang_device_of(list->items[i].device);

            for (uint32_t d = 0; verdict->devices >> d; d++)
                if ((verdict->devices >> d & 1) && s->facts->devices[d].index == device->index &&
                    s->facts->devices[d].pool == device->pool->slot)
                    picks[placed->n_picks++] = (struct gs_pick){.candidate = &list->items[i]};
        }
        if (placed->n_picks != s->pod.count)
            return false;
    }
    *out = (struct gs_solution){.members = placed, .n_members = 1};
    return true;
}

static enum gang_scored choose(struct scoring *s, const struct gang_choice *choice, struct gs_solution *out)
{
    struct verdict best = {0};
    const struct node *node;
    uint32_t rank = 0;
    bool is_simple;

    node = best_node(s, &rank, &best, &is_simple);
    if (!is_simple)
        return GANG_NOT_SCORED;
    if (!node)
        return GANG_SCORED_NONE;
    load_facts(s, node, best.state);
    return make_solution(s, choice, node, rank, &best, out) ? GANG_SCORED : GANG_NOT_SCORED;
}

enum gang_scored gang_score_one(struct gang *gang, const struct gang_choice *choice, struct gs_solution *out)
{
    struct scoring s = {.gang = gang, .w = gang->spec->workload};
    enum gang_scored scored;
    size_t size;

    if (!is_plain_job(gang) || !read_pod(&s))
        return GANG_NOT_SCORED;
    s.shape = shape_new(gang->snapshot, s.w->claims, s.w->n_claims);
    if (shape_problem(s.shape)) {
        shape_free(s.shape);
        return GANG_NOT_SCORED;
    }
    size = sizeof(struct facts) + s.w->n_shapes * sizeof(struct use_of_shape);
    s.facts = arena_alloc(&gang->work, size, 16);
    s.after = arena_array(&gang->work, struct use_of_shape, s.w->n_shapes);
    s.weights = arena_array(&gang->work, float, s.w->n_pods + 1);
    s.facts_notes = gang_notes_open(gang->snapshot, s.w->digest, size);
    s.supplies = gang_notes_open(gang->snapshot, supplies_of(s.w), sizeof(struct supply));
    find_states(&s);
    weigh(&s);
    s.verdicts = gang_notes_open(gang->snapshot, question_of(&s), sizeof(struct verdict));
    scored = choose(&s, choice, out);
    gang_notes_unref(s.verdicts);
    gang_notes_unref(s.facts_notes);
    gang_notes_unref(s.supplies);
    shape_free(s.shape);
    return scored;
}
