/* Where nothing couples nodes, the gang fits exactly when the nodes' mixes add up to it.
 *
 * A mix says how many members of each kind one node takes at the same time. Nodes in equal state are one class; a class
 * is asked only once whether it can take a mix, by the exact search on one of its nodes. What a node can take is
 * monotone (taking a member away never hurts), so answers imply others, and only maximal mixes have to be tried.
 *
 * With one kind the question is a sum. With several, the classes are walked depth first, every node taking a maximal
 * mix of what is still to be placed, and states that failed are remembered. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/gang_internal.h"

#include "allocator/base/banned.h"

struct known_mix {
    struct known_mix *next;
    enum gs_outcome outcome;
    uint32_t counts[];
};

struct class_node {               /* the first that is met is looked at; others when they are given members */
    struct gs_node *node;         /* NULL: not looked at */
    const struct gang_spot *spot; /* then this */
};

struct node_class {
    struct gs_hash hash;
    struct class_node *nodes; /* in the order of names */
    size_t n_nodes, cap_nodes;
    struct gs_node *example;
    struct gs_memo *memo;
    struct known_mix *known;
    uint32_t *most; /* per kind: how many a node takes when it takes no other; UINT32_MAX: not asked yet */
    uint32_t room;  /* for pack(): how many members of the one kind a node is to take */
    size_t n_free;  /* for order_classes(): free devices that are asked for, and what is left of them */
    gs_amount amounts;
};

struct assigned { /* what one node takes */
    struct node_class *class;
    size_t node; /* in the class */
    const uint32_t *mix;
};

struct by_classes {
    struct gang *gang;
    const struct gang_survey *survey;
    struct gs_problem *problem;
    struct arena *arena;
    struct node_class *classes; /* in the order of their first nodes, so that hashes decide nothing */
    size_t n_classes, cap_classes;
    uint32_t *slots; /* hash table of class index + 1 */
    size_t n_slots;
    uint32_t *order; /* of kinds: hardest first */
    struct gs_memo *dead_ends;
    struct assigned *assigned;
    size_t n_assigned, cap_assigned;
    bool is_undecided; /* the budget ended somewhere */
};

/* ---- classes ---- */

static void rehash(struct by_classes *s)
{
    s->n_slots = s->n_slots ? s->n_slots * 2 : 64;
    s->slots = mem_resize(s->slots, s->n_slots, sizeof(*s->slots));
    memset(s->slots, 0, s->n_slots * sizeof(*s->slots));
    for (size_t c = 0; c < s->n_classes; c++) {
        size_t at = s->classes[c].hash.a & (s->n_slots - 1);

        while (s->slots[at])
            at = (at + 1) & (s->n_slots - 1);
        s->slots[at] = (uint32_t)(c + 1);
    }
}

static struct node_class *class_of(struct by_classes *s, struct gs_hash hash)
{
    size_t at;

    if ((s->n_classes + 1) * 2 > s->n_slots)
        rehash(s);
    for (at = hash.a & (s->n_slots - 1); s->slots[at]; at = (at + 1) & (s->n_slots - 1))
        if (gs_hash_eq(s->classes[s->slots[at] - 1].hash, hash))
            return &s->classes[s->slots[at] - 1];
    mem_grow(s->classes, s->n_classes, s->cap_classes);
    s->classes[s->n_classes] = (struct node_class){.hash = hash, .memo = gs_memo_new()};
    s->slots[at] = (uint32_t)++s->n_classes;
    return &s->classes[s->n_classes - 1];
}

static void add_to_class(struct by_classes *s, struct gs_hash hash, struct class_node node)
{
    struct node_class *class = class_of(s, hash);

    mem_grow(class->nodes, class->n_nodes, class->cap_nodes);
    class->nodes[class->n_nodes++] = node;
    if (!class->example)
        class->example = node.node;
}

/* Nodes and spots both come in the order of names. */
static void find_classes(struct by_classes *s)
{
    const struct gang_survey *survey = s->survey;
    size_t n = 0, p = 0;

    while (n < s->problem->n_nodes || p < survey->n_spots) {
        struct gs_node *node = n < s->problem->n_nodes ? s->problem->nodes[n] : NULL;
        const struct gang_spot *spot = p < survey->n_spots ? &survey->spots[p] : NULL;
        bool is_node = node && (!spot || node->rank < spot->rank);

        add_to_class(s, is_node ? node->hash : spot->class,
                     is_node ? (struct class_node){.node = node} : (struct class_node){.spot = spot});
        n += is_node;
        p += !is_node;
    }
    for (size_t c = 0; c < s->n_classes; c++) {
        s->classes[c].most = arena_array(s->arena, uint32_t, s->problem->n_groups);
        for (size_t k = 0; k < s->problem->n_groups; k++)
            s->classes[c].most[k] = UINT32_MAX;
    }
}

/* ---- what one node takes ---- */

static bool mix_covers(const uint32_t *a, const uint32_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] < b[i])
            return false;
    return true;
}

static const struct known_mix *implied(const struct by_classes *s, const struct node_class *class, const uint32_t *mix)
{
    size_t n = s->problem->n_groups;

    for (const struct known_mix *known = class->known; known; known = known->next)
        if ((known->outcome == GS_FOUND && mix_covers(known->counts, mix, n)) ||
            (known->outcome == GS_NONE && mix_covers(mix, known->counts, n)))
            return known;
    return NULL;
}

static bool room_suffices(const struct by_classes *s, const struct gs_node *node, const uint32_t *mix)
{
    for (size_t r = 0; r < s->problem->n_resources; r++) {
        gs_amount sum = 0;

        for (size_t k = 0; k < s->problem->n_groups; k++)
            if (mix[k])
                sum += (gs_amount)mix[k] * s->problem->groups[k].forms[node->form].demand[r];
        if (sum > node->left[r])
            return false;
    }
    for (size_t k = 0; k < s->problem->n_groups; k++)
        if (mix[k] && (!(node->groups >> k & 1) || (mix[k] > 1 && s->problem->groups[k].port_clashes)))
            return false;
    return true;
}

static enum gs_outcome search_node(struct by_classes *s, struct gs_node *node, struct gs_memo *memo,
                                   const uint32_t *mix, struct arena *arena, struct gs_solution *out)
{
    struct gs_problem one = *s->problem;

    one.nodes = &node;
    one.n_nodes = 1;
    return gs_search(&one, mix, s->order, s->problem->n_groups, memo, &s->gang->steps, arena, out);
}

static enum gs_outcome ask_class(struct by_classes *s, struct node_class *class, const uint32_t *mix)
{
    const struct known_mix *known = implied(s, class, mix);
    size_t bytes = s->problem->n_groups * sizeof(*mix);
    struct known_mix *fresh;
    struct arena_mark mark;
    struct gs_solution solution;
    enum gs_outcome outcome;

    if (known)
        return known->outcome;
    if (!room_suffices(s, class->example, mix))
        return GS_NONE;
    mark = arena_mark(s->arena);
    outcome = search_node(s, class->example, class->memo, mix, s->arena, &solution);
    arena_rewind(s->arena, mark);
    if (outcome == GS_BUDGET) {
        s->is_undecided = true;
        return outcome;
    }
    fresh = arena_alloc(s->arena, sizeof(*fresh) + bytes, 8);
    fresh->next = class->known;
    fresh->outcome = outcome;
    memcpy(fresh->counts, mix, bytes);
    class->known = fresh;
    return outcome;
}

/* How many more members of kind k the class takes on top of `mix`, at most `limit`: doubling, then halving. */
static uint32_t most_of(struct by_classes *s, struct node_class *class, uint32_t *mix, size_t k, uint32_t limit)
{
    uint32_t low = 0, high = 1, before = mix[k];

    while (high <= limit) {
        mix[k] = high;
        if (ask_class(s, class, mix) != GS_FOUND)
            break;
        low = high;
        high = high == limit ? limit + 1 : high * 2 > limit ? limit : high * 2;
    }
    if (high > limit)
        high = limit + 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        mix[k] = middle;
        if (ask_class(s, class, mix) == GS_FOUND)
            low = middle;
        else
            high = middle;
    }
    mix[k] = before;
    return low;
}

static uint32_t class_most(struct by_classes *s, struct node_class *class, size_t k)
{
    if (class->most[k] == UINT32_MAX) {
        uint32_t *mix = arena_array(s->arena, uint32_t, s->problem->n_groups);

        class->most[k] = class->example->groups >> k & 1 ? most_of(s, class, mix, k, s->gang->kinds[k].n_members) : 0;
    }
    return class->most[k];
}

/* ---- one kind ---- */

static void assign(struct by_classes *s, struct node_class *class, size_t node, const uint32_t *mix)
{
    size_t bytes = s->problem->n_groups * sizeof(*mix);
    uint32_t *copy = arena_alloc(s->arena, bytes, 8);

    memcpy(copy, mix, bytes);
    mem_grow(s->assigned, s->n_assigned, s->cap_assigned);
    s->assigned[s->n_assigned++] = (struct assigned){class, node, copy};
}

/* Whether some of the node's devices can be taken in parts: shares of them, or partitions. */
static bool has_parts(const struct gs_node *node)
{
    for (size_t c = 0; c < node->n_cells; c++)
        for (size_t d = 0; d < node->cells[c].n_devices; d++)
            if (node->cells[c].n_counters > 0 || node->cells[c].devices[d]->multi)
                return true;
    return false;
}

static bool breaks_up(const struct gs_device *device)
{
    bool is_parted = device->n_counters == 0 && !device->multi;

    for (size_t d = 0; d < device->cell->n_devices && !is_parted; d++)
        is_parted = device->cell->devices[d]->parted;
    return !is_parted;
}

/* How many members of the one kind a node takes before it has to break up something whole for one. The search tries
 * what is broken first. */
static uint32_t gentle_most(struct by_classes *s, struct node_class *class)
{
    uint32_t most = class_most(s, class, 0), n = 0;
    uint64_t steps = s->gang->steps; /* what has been found once already costs nothing again */
    struct arena_mark mark = arena_mark(s->arena);
    struct gs_solution solution = {0};
    bool is_gentle = true;

    if (most == 0 || !has_parts(class->example))
        return most;
    if (search_node(s, class->example, class->memo, &most, s->arena, &solution) != GS_FOUND)
        n = most;
    for (; n < solution.n_members && is_gentle; n += is_gentle)
        for (size_t i = 0; i < solution.members[n].n_picks; i++)
            is_gentle = is_gentle && !breaks_up(solution.members[n].picks[i].candidate->device);
    s->gang->steps = steps;
    arena_rewind(s->arena, mark);
    return n;
}

/* Few nodes, filled: the smallest that takes all that is left, else the largest. */
static struct node_class *next_packed(struct by_classes *s, const size_t *used, uint32_t left)
{
    struct node_class *best = NULL;

    for (size_t c = 0; c < s->n_classes; c++) {
        struct node_class *class = &s->classes[c];
        bool closes;

        if (used[c] == class->n_nodes || class->room == 0)
            continue;
        closes = class->room >= left;
        if (!best || (closes && best->room < left) || (closes && class->room < best->room) ||
            (!closes && best->room<left &&class->room> best->room))
            best = class;
    }
    return best;
}

/* Give a node so many more members of the one kind; it may be one of those that got theirs first. */
static void assign_more(struct by_classes *s, struct node_class *class, size_t node, uint32_t n, size_t n_first)
{
    for (size_t i = 0; i < n_first; i++)
        if (s->assigned[i].class == class && s->assigned[i].node == node) {
            *(uint32_t *)(uintptr_t)s->assigned[i].mix += n;
            return;
        }
    assign(s, class, node, &n);
}

/* Fill the rooms of nodes; returns how many members are left. */
static uint32_t fill(struct by_classes *s, uint32_t left)
{
    size_t *used = arena_array(s->arena, size_t, s->n_classes), n_first = s->n_assigned;
    struct node_class *class;

    while (left > 0 && (class = next_packed(s, used, left))) {
        uint32_t mix = class->room < left ? class->room : left;

        assign_more(s, class, used[class - s->classes]++, mix, n_first);
        left -= mix;
    }
    return left;
}

/* By default whatever breaks up nothing whole is filled first. */
static void pack(struct by_classes *s, uint32_t left)
{
    for (size_t c = 0; c < s->n_classes; c++)
        s->classes[c].room = s->gang->spec->score == GANG_SCORE_FRAGMENTATION ? gentle_most(s, &s->classes[c])
                                                                              : class_most(s, &s->classes[c], 0);
    left = fill(s, left);
    for (size_t c = 0; c < s->n_classes && left > 0; c++)
        s->classes[c].room = class_most(s, &s->classes[c], 0) - s->classes[c].room;
    fill(s, left);
}

/* As even as the nodes allow: one more for every node that still takes one, until all are placed. */
static void spread(struct by_classes *s, uint32_t left)
{
    for (uint32_t level = 1; left > 0; level++)
        for (size_t c = 0; c < s->n_classes && left > 0; c++)
            for (size_t n = 0; n < s->classes[c].n_nodes && left > 0 && s->classes[c].most[0] >= level; n++) {
                if (level == 1)
                    assign(s, &s->classes[c], n, &level);
                for (size_t i = 0; level > 1 && i < s->n_assigned; i++)
                    if (s->assigned[i].class == &s->classes[c] && s->assigned[i].node == n)
                        *(uint32_t *)(uintptr_t)s->assigned[i].mix = level;
                left--;
            }
}

static size_t n_free(const struct gs_node *node, size_t n_asks)
{
    size_t n = 0;

    for (size_t i = 0; i < n_asks; i++)
        n += node->lists[i].n;
    return n;
}

/* What is left of their capacities and counters. The units are mixed, which is good enough to tell more from less; of
 * billionths sixteen bits are dropped, so that no sum of them has too many. */
static gs_amount amounts_left(const struct gs_node *node, size_t n_asks)
{
    gs_amount sum = 0;

    for (size_t i = 0; i < n_asks; i++)
        for (size_t k = 0; k < node->lists[i].n; k++) {
            const struct gs_device *device = node->lists[i].items[k].device;

            for (size_t c = 0; device->multi && c < device->n_left; c++)
                sum += device->left[c] >> 16;
        }
    for (size_t i = 0; i < node->n_cells; i++)
        for (size_t c = 0; c < node->cells[i].n_counters; c++)
            sum += node->cells[i].counters[c] >> 16;
    return sum;
}

static uint32_t first_rank(const struct node_class *class)
{
    return class->nodes[0].node ? class->nodes[0].node->rank : class->nodes[0].spot->rank;
}

/* The fullest first: with the fewest free devices that are asked for, then the least left of them, then of all else. */
static int by_room(const struct by_classes *s, const struct node_class *a, const struct node_class *b)
{
    if (a->n_free != b->n_free)
        return a->n_free < b->n_free ? -1 : 1;
    if (a->amounts != b->amounts)
        return a->amounts < b->amounts ? -1 : 1;
    for (size_t r = 0; r < s->problem->n_resources; r++)
        if (a->example->left[r] != b->example->left[r])
            return a->example->left[r] < b->example->left[r] ? -1 : 1;
    return 0;
}

static int cmp_packed(const void *a, const void *b, void *ctx)
{
    int order = by_room(ctx, a, b);

    return order ? order : first_rank(a) < first_rank(b) ? -1 : first_rank(a) > first_rank(b);
}

static int cmp_spread(const void *a, const void *b, void *ctx)
{
    int order = by_room(ctx, b, a);

    return order ? order : first_rank(a) < first_rank(b) ? -1 : first_rank(a) > first_rank(b);
}

/* Of nodes that take as many, pack has the fullest and spread the emptiest; else their names decide. */
static void order_classes(struct by_classes *s)
{
    enum gang_score score = s->gang->spec->score;

    if (score != GANG_SCORE_PACK && score != GANG_SCORE_SPREAD)
        return;
    for (size_t c = 0; c < s->n_classes; c++) {
        s->classes[c].n_free = n_free(s->classes[c].example, s->problem->n_asks);
        s->classes[c].amounts = amounts_left(s->classes[c].example, s->problem->n_asks);
    }
    qsort_r(s->classes, s->n_classes, sizeof(*s->classes), score == GANG_SCORE_PACK ? cmp_packed : cmp_spread, s);
}

static enum gs_outcome solve_one(struct by_classes *s)
{
    uint32_t wanted = s->gang->kinds[0].n_members;
    uint64_t total = 0;

    for (size_t c = 0; c < s->n_classes; c++)
        total += (uint64_t)class_most(s, &s->classes[c], 0) * s->classes[c].n_nodes;
    if (total < wanted)
        return s->is_undecided ? GS_BUDGET : GS_NONE;
    order_classes(s);
    if (s->gang->spec->score == GANG_SCORE_SPREAD || s->gang->spreads)
        spread(s, wanted);
    else
        pack(s, wanted);
    return GS_FOUND;
}

/* ---- several kinds ---- */

static bool walk(struct by_classes *s, size_t class, size_t node, uint32_t *left);

static bool is_done(const struct by_classes *s, const uint32_t *left)
{
    for (size_t k = 0; k < s->problem->n_groups; k++)
        if (left[k])
            return false;
    return true;
}

/* Whether each kind alone could still be placed on the nodes that are left. */
static bool may_suffice(struct by_classes *s, size_t class, size_t node, const uint32_t *left)
{
    for (size_t k = 0; k < s->problem->n_groups; k++) {
        uint64_t total = 0;

        for (size_t c = class; c < s->n_classes && total < left[k]; c++)
            total += (uint64_t)class_most(s, &s->classes[c], k) * (s->classes[c].n_nodes - (c == class ? node : 0));
        if (total < left[k])
            return false;
    }
    return true;
}

static bool take_mix(struct by_classes *s, size_t class, size_t node, uint32_t *left, const uint32_t *mix)
{
    bool found;

    for (size_t k = 0; k < s->problem->n_groups; k++)
        left[k] -= mix[k];
    assign(s, &s->classes[class], node, mix);
    found = walk(s, class, node + 1, left);
    if (!found)
        s->n_assigned--;
    for (size_t k = 0; k < s->problem->n_groups; k++)
        left[k] += mix[k];
    return found;
}

static bool is_maximal(struct by_classes *s, struct node_class *class, uint32_t *mix, const uint32_t *left)
{
    for (size_t k = 0; k < s->problem->n_groups; k++) {
        bool more;

        if (mix[k] == left[k])
            continue;
        mix[k]++;
        more = ask_class(s, class, mix) == GS_FOUND;
        mix[k]--;
        if (more)
            return false;
    }
    return true;
}

/* Choose the mix kind by kind, as many as possible first. */
static bool choose_mix(struct by_classes *s, size_t class, size_t node, uint32_t *left, uint32_t *mix, size_t at)
{
    size_t k;

    if (s->gang->steps == 0) {
        s->is_undecided = true;
        return false;
    }
    s->gang->steps--;
    if (at == s->problem->n_groups)
        return is_maximal(s, &s->classes[class], mix, left) && take_mix(s, class, node, left, mix);
    k = s->order[at];
    for (uint32_t n = left[k] ? most_of(s, &s->classes[class], mix, k, left[k]) + 1 : 1; n-- > 0;) {
        bool found;

        mix[k] = n;
        found = choose_mix(s, class, node, left, mix, at + 1);
        mix[k] = 0;
        if (found)
            return true;
    }
    return false;
}

static struct gs_hash walk_key(const struct by_classes *s, size_t class, size_t node, const uint32_t *left)
{
    struct gs_hash key = gs_hash_mix((struct gs_hash){class, 17}, node);

    for (size_t k = 0; k < s->problem->n_groups; k++)
        key = gs_hash_mix(key, left[k]);
    return key;
}

static bool walk(struct by_classes *s, size_t class, size_t node, uint32_t *left)
{
    bool was_undecided = s->is_undecided, found;
    uint32_t *mix;
    struct gs_hash key;

    if (is_done(s, left))
        return true;
    while (class < s->n_classes && node == s->classes[class].n_nodes) {
        class ++;
        node = 0;
    }
    if (class == s->n_classes)
        return false;
    key = walk_key(s, class, node, left);
    if (gs_memo_has(s->dead_ends, key) || !may_suffice(s, class, node, left))
        return false;
    mix = arena_array(s->arena, uint32_t, s->problem->n_groups);
    if (class + 1 == s->n_classes && node + 1 == s->classes[class].n_nodes) { /* the last node takes the rest */
        found = ask_class(s, &s->classes[class], left) == GS_FOUND;
        if (found)
            assign(s, &s->classes[class], node, left);
        return found;
    }
    s->is_undecided = false;
    found = choose_mix(s, class, node, left, mix, 0);
    if (!found && !s->is_undecided)
        gs_memo_put(s->dead_ends, key);
    s->is_undecided = s->is_undecided || was_undecided;
    return found;
}

/* All on one node: the first class that takes them. */
static bool pack_together(struct by_classes *s, const uint32_t *all)
{
    for (size_t c = 0; c < s->n_classes; c++)
        if (ask_class(s, &s->classes[c], all) == GS_FOUND) {
            assign(s, &s->classes[c], 0, all);
            return true;
        }
    return false;
}

/* One more member of any kind that is left, the hardest to place first. Returns whether the class takes one. */
static bool take_one(struct by_classes *s, struct node_class *class, uint32_t *mix, uint32_t *left)
{
    for (size_t i = 0; i < s->problem->n_groups; i++) {
        uint32_t k = s->order[i];

        if (left[k] == 0)
            continue;
        mix[k]++;
        if (ask_class(s, class, mix) == GS_FOUND) {
            left[k]--;
            return true;
        }
        mix[k]--;
    }
    return false;
}

/* A member for each node that takes one. Whoever takes none now takes none later, when fewer kinds are left. */
static void spread_first(struct by_classes *s, uint32_t *left)
{
    uint32_t *mix = arena_array(s->arena, uint32_t, s->problem->n_groups);
    size_t bytes = s->problem->n_groups * sizeof(*mix);

    for (size_t c = 0; c < s->n_classes; c++)
        for (size_t n = 0; n < s->classes[c].n_nodes && take_one(s, &s->classes[c], mix, left); n++) {
            assign(s, &s->classes[c], n, mix);
            memset(mix, 0, bytes);
        }
}

/* One more for each node in turn, until all are placed. When some are left over nothing is assigned: others may fit. */
static bool spread_kinds(struct by_classes *s, uint32_t *left)
{
    bool progress = true;

    spread_first(s, left);
    while (progress && !is_done(s, left)) {
        progress = false;
        for (size_t i = 0; i < s->n_assigned; i++)
            progress |= take_one(s, s->assigned[i].class, (uint32_t *)(uintptr_t)s->assigned[i].mix, left);
    }
    if (!is_done(s, left))
        s->n_assigned = 0;
    return is_done(s, left);
}

static void count_members(const struct by_classes *s, uint32_t *left)
{
    for (size_t k = 0; k < s->problem->n_groups; k++)
        left[k] = s->gang->kinds[k].n_members;
}

/* As the placement has it, if that is simple: together on the fullest node, or evenly from the emptiest on. A pack that
 * needs several nodes begins with the emptiest, which take the most. */
static bool place_simply(struct by_classes *s, uint32_t *left)
{
    enum gang_score score = s->gang->spec->score;
    bool found = false;

    order_classes(s);
    if (score == GANG_SCORE_PACK)
        found = pack_together(s, left);
    else if (score == GANG_SCORE_SPREAD)
        found = spread_kinds(s, left);
    if (!found && score == GANG_SCORE_PACK)
        qsort_r(s->classes, s->n_classes, sizeof(*s->classes), cmp_spread, s);
    return found;
}

static enum gs_outcome solve_many(struct by_classes *s)
{
    uint32_t *left = arena_array(s->arena, uint32_t, s->problem->n_groups);

    count_members(s, left);
    if (place_simply(s, left))
        return GS_FOUND;
    count_members(s, left);
    if (walk(s, 0, 0, left))
        return GS_FOUND;
    return s->is_undecided ? GS_BUDGET : GS_NONE;
}

/* ---- the whole ---- */

/* Give every node its members. The state of each is as its class said, so that this cannot fail. */
static enum gs_outcome collect(struct by_classes *s, struct gs_solution *out)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_assigned; i++)
        for (size_t k = 0; k < s->problem->n_groups; k++)
            n += s->assigned[i].mix[k];
    *out = (struct gs_solution){.members = arena_array(s->arena, struct gs_placed, n)};
    for (size_t i = 0; i < s->n_assigned; i++) {
        struct assigned *one = &s->assigned[i];
        struct class_node *at = &one->class->nodes[one->node];
        struct gs_solution part = {0};

        if (!at->node)
            at->node = gang_visit(s->gang, s->survey->choice, at->spot);
        if (!at->node || search_node(s, at->node, one->class->memo, one->mix, s->arena, &part) != GS_FOUND)
            return GS_BUDGET;
        if (part.n_members)
            memcpy(out->members + out->n_members, part.members, part.n_members * sizeof(*part.members));
        out->n_members += part.n_members;
    }
    return GS_FOUND;
}

static void order_kinds(struct by_classes *s)
{
    s->order = arena_array(s->arena, uint32_t, s->problem->n_groups);
    gang_order_kinds(s->gang, s->survey, s->order);
}

static void release(struct by_classes *s)
{
    for (size_t c = 0; c < s->n_classes; c++) {
        gs_memo_free(s->classes[c].memo);
        free(s->classes[c].nodes);
    }
    free(s->slots);
    gs_memo_free(s->dead_ends);
    free(s->classes);
    free(s->assigned);
}

uint32_t gang_most_by_classes(struct gang *gang, const struct gang_survey *survey, size_t kind)
{
    struct by_classes s = {
        .gang = gang, .survey = survey, .problem = survey->problem, .arena = &gang->work, .dead_ends = gs_memo_new()};
    uint64_t total = 0;

    find_classes(&s);
    order_kinds(&s);
    for (size_t c = 0; c < s.n_classes && total < gang->kinds[kind].n_members; c++)
        total += (uint64_t)class_most(&s, &s.classes[c], kind) * s.classes[c].n_nodes;
    release(&s);
    return total < gang->kinds[kind].n_members ? (uint32_t)total : gang->kinds[kind].n_members;
}

enum gs_outcome gang_by_classes(struct gang *gang, const struct gang_survey *survey, struct gs_solution *out)
{
    struct by_classes s = {
        .gang = gang, .survey = survey, .problem = survey->problem, .arena = &gang->work, .dead_ends = gs_memo_new()};
    enum gs_outcome outcome;

    find_classes(&s);
    order_kinds(&s);
    outcome = s.problem->n_groups == 1 ? solve_one(&s) : solve_many(&s);
    if (outcome == GS_FOUND)
        outcome = collect(&s, out);
    release(&s);
    return outcome;
}
