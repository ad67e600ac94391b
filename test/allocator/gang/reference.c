/* The plain search over a world: every member on every node with every alternative and every set of devices, one after
 * the other, with nothing left out and nothing remembered. Shares no code with the product. */
#include <string.h>

#include "test/allocator/gang/world.h"

#include "allocator/base/banned.h"

#define MAX_STEPS 400000L

struct pick {
    int device, request, amount;
};

struct trial {
    const struct world *w;
    int cpu[MAX_NODES];
    bool port[MAX_NODES];
    int counters[MAX_NODES][N_SETS];
    int memory[MAX_DEVICES]; /* left, of shared ones */
    bool taken[MAX_DEVICES];
    struct pick picks[64]; /* of the claim in work */
    int n_picks;
    bool shared_on[MAX_NODES];
    bool numa_used[8];
    int gang_model;                                         /* -1: not settled */
    int zone;                                               /* -1: any */
    long *steps;                                            /* left */
    int alternatives[MAX_GROUPS][MAX_CLAIMS][MAX_REQUESTS]; /* -1: free */
};

static bool next_unit(struct trial *t, int group, int member);

struct place {               /* where the search is */
    int group, member, node; /* group -1: the shared claim */
    int claim, request, alt, slot, from;
};

static bool go_on(struct trial *t, struct place p);

static const struct world_claim *claim_at(const struct trial *t, const struct place *p)
{
    return p->group < 0 ? &t->w->shared : &t->w->groups[p->group].claims[p->claim];
}

static bool reaches(const struct trial *t, int device, int node)
{
    const struct world_device *d = &t->w->devices[device];

    return d->node >= 0 ? d->node == node : d->zone < 0 || d->zone == t->w->nodes[node].zone;
}

/* Matching and large enough at all: what mode All goes by. */
static bool selected(const struct trial *t, int device, int node, const struct world_ask *ask)
{
    const struct world_device *d = &t->w->devices[device];

    return reaches(t, device, node) && (ask->model < 0 || ask->model == d->model) && ask->memory <= d->memory;
}

static int value_of(enum world_rule rule, const struct world_device *d)
{
    return rule == RULE_MATCH_MODEL ? d->model : d->numa;
}

static bool rule_holds(const struct trial *t, const struct world_claim *claim, int device, int request)
{
    if (claim->rule == RULE_NONE || (claim->rule_request >= 0 && claim->rule_request != request))
        return true;
    for (int i = 0; i < t->n_picks; i++) {
        bool equal =
            value_of(claim->rule, &t->w->devices[t->picks[i].device]) == value_of(claim->rule, &t->w->devices[device]);

        if (claim->rule_request >= 0 && claim->rule_request != t->picks[i].request)
            continue;
        if (equal == (claim->rule == RULE_DISTINCT_NUMA))
            return false;
    }
    return true;
}

static bool take(struct trial *t, const struct place *p, const struct world_ask *ask, int device)
{
    const struct world_device *d = &t->w->devices[device];
    int amount = ask->memory ? ask->memory : d->memory;

    if (d->used || (d->tainted && !ask->tolerates) || (!d->multi && t->taken[device]))
        return false;
    if (d->multi && amount > t->memory[device])
        return false;
    if (d->takes && d->takes > t->counters[d->node][d->set])
        return false;
    if (!rule_holds(t, claim_at(t, p), device, p->request))
        return false;
    if (t->w->gang_rule == RULE_MATCH_MODEL && t->gang_model != d->model)
        return false;
    if (t->w->gang_rule == RULE_DISTINCT_NUMA && t->numa_used[d->numa])
        return false;
    t->taken[device] = true;
    t->memory[device] -= d->multi ? amount : 0;
    if (d->takes)
        t->counters[d->node][d->set] -= d->takes;
    if (t->w->gang_rule == RULE_DISTINCT_NUMA)
        t->numa_used[d->numa] = true;
    t->picks[t->n_picks++] = (struct pick){device, p->request, amount};
    return true;
}

static bool take_all(struct trial *t, const struct place *p, const struct world_ask *ask)
{
    int n = 0;

    for (int d = 0; d < t->w->n_devices; d++)
        if (selected(t, d, p->node, ask)) {
            if (!take(t, p, ask, d))
                return false;
            n++;
        }
    return n > 0;
}

/* The claim is done: the next one of the member starts with no picks. */
static bool next_claim(struct trial *t, struct place p)
{
    p.claim++;
    p.request = p.alt = p.slot = p.from = 0;
    t->n_picks = 0;
    if (p.claim < t->w->groups[p.group].n_claims)
        return go_on(t, p);
    return next_unit(t, p.group, p.member + 1);
}

static bool shared_done(struct trial *t, const struct place *p)
{
    for (int n = 0; n < t->w->n_nodes; n++) {
        t->shared_on[n] = true;
        for (int i = 0; i < t->n_picks; i++)
            t->shared_on[n] = t->shared_on[n] && reaches(t, t->picks[i].device, n);
    }
    (void)p;
    t->n_picks = 0;
    return next_unit(t, 0, 0);
}

static bool try_alternative(struct trial *t, struct place p)
{
    const struct world_ask *ask = &claim_at(t, &p)->requests[p.request].alts[p.alt];

    if (ask->all) {
        struct trial before = *t;
        struct place next = p;

        next.request++;
        next.alt = next.slot = next.from = 0;
        if (take_all(t, &p, ask) && go_on(t, next))
            return true;
        *t = before;
        return false;
    }
    if (p.slot == ask->count) {
        p.request++;
        p.alt = p.slot = p.from = 0;
        return go_on(t, p);
    }
    for (int d = p.from; d < t->w->n_devices && --*t->steps > 0; d++) {
        struct trial before = *t;
        struct place next = p;

        next.slot++;
        next.from = d + 1;
        if (selected(t, d, p.node, ask) && take(t, &p, ask, d) && try_alternative(t, next))
            return true;
        *t = before;
    }
    return false;
}

static bool go_on(struct trial *t, struct place p)
{
    const struct world_claim *claim = claim_at(t, &p);

    if (p.request == claim->n_requests)
        return p.group < 0 ? shared_done(t, &p) : next_claim(t, p);
    for (p.alt = 0; p.alt < claim->requests[p.request].n_alts; p.alt++) {
        struct trial before = *t;

        p.slot = p.from = 0;
        if (p.group >= 0 && t->w->same_alternative) {
            int *settled = &t->alternatives[p.group][p.claim][p.request];

            if (*settled >= 0 && *settled != p.alt)
                continue;
            *settled = p.alt;
        }
        if (try_alternative(t, p))
            return true;
        *t = before;
    }
    return false;
}

static bool next_unit(struct trial *t, int group, int member)
{
    while (group < t->w->n_groups && member == t->w->groups[group].members) {
        group++;
        member = 0;
    }
    if (group == t->w->n_groups)
        return true;
    for (int n = 0; n < t->w->n_nodes; n++) {
        const struct world_group *g = &t->w->groups[group];
        struct trial before = *t;

        if (t->w->nodes[n].cordoned || t->cpu[n] < g->cpu || (g->port && t->port[n]) ||
            (g->shares && !t->shared_on[n]) || (t->zone >= 0 && t->w->nodes[n].zone != t->zone))
            continue;
        t->cpu[n] -= g->cpu;
        t->port[n] = t->port[n] || g->port;
        t->n_picks = 0;
        if (go_on(t, (struct place){.group = group, .member = member, .node = n}))
            return true;
        *t = before;
    }
    return false;
}

/* The shared claim is allocated with its first user, so on a node where one may run. */
static bool place_shared(struct trial *t)
{
    for (int n = 0; n < t->w->n_nodes; n++) {
        struct trial before = *t;

        if (t->w->nodes[n].cordoned)
            continue;
        if (go_on(t, (struct place){.group = -1, .node = n}))
            return true;
        *t = before;
    }
    return false;
}

static bool fits_with(const struct world *w, int model, int zone, long *steps)
{
    struct trial t = {.w = w, .gang_model = model, .zone = zone, .steps = steps};

    for (int n = 0; n < w->n_nodes; n++) {
        t.cpu[n] = w->nodes[n].cpu;
        memcpy(t.counters[n], w->nodes[n].counters, sizeof(t.counters[n]));
    }
    for (int d = 0; d < w->n_devices; d++) {
        t.memory[d] = w->devices[d].memory;
        if (w->devices[d].used && w->devices[d].takes)
            t.counters[w->devices[d].node][w->devices[d].set] -= w->devices[d].takes;
    }
    /* One overdrawn counter blocks every partition of the pool. */
    for (int n = 0; n < w->n_nodes; n++)
        for (int s = 0; s < N_SETS; s++)
            if (t.counters[n][s] < 0)
                t.counters[n][0] = t.counters[n][1] = -1;
    memset(t.alternatives, -1, sizeof(t.alternatives));
    return w->has_shared ? place_shared(&t) : next_unit(&t, 0, 0);
}

enum world_answer world_fits(const struct world *w)
{
    int n_models = w->gang_rule == RULE_MATCH_MODEL ? 2 : 1, n_zones = w->same_zone ? 2 : 1;
    long steps = MAX_STEPS;

    for (int m = 0; m < n_models; m++)
        for (int z = 0; z < n_zones; z++)
            if (fits_with(w, n_models > 1 ? m : -1, n_zones > 1 ? z : -1, &steps))
                return WORLD_FITS;
    return steps > 0 ? WORLD_DOES_NOT_FIT : WORLD_TOO_LARGE;
}

/* ---- a placement against the numbers ---- */

struct tally {
    const struct world *w;
    int cpu[MAX_NODES], counters[MAX_NODES][N_SETS], memory[MAX_DEVICES], takers[MAX_DEVICES];
    const char *problem;
};

static int number_in(const char *text, const char *prefix)
{
    int value = 0;

    for (const char *p = text + strlen(prefix); *p >= '0' && *p <= '9'; p++)
        value = value * 10 + (*p - '0');
    return value;
}

static void count_result(struct tally *t, const struct device_result *result, int node, bool may_be_far)
{
    int d = number_in(result->device, "d");
    const struct world_device *device = &t->w->devices[d];
    bool near = device->node < 0 ? device->zone < 0 || device->zone == t->w->nodes[node].zone : device->node == node;

    t->takers[d]++;
    if (!near && !may_be_far)
        t->problem = "a device that the node does not reach";
    if (device->used)
        t->problem = "a device that is in use";
    if (!device->multi && t->takers[d] > 1)
        t->problem = "a device twice";
    if (device->takes && (t->counters[device->node][device->set] -= device->takes) < 0)
        t->problem = "more of a counter than there is";
    for (size_t i = 0; device->multi && i < result->n_consumed; i++) {
        int64_t amount = 0;

        if (!quantity_to_int(&result->consumed[i].amount, &amount) || (t->memory[d] -= (int)(amount >> 30)) < 0)
            t->problem = "more of a capacity than there is";
    }
}

const char *world_check(const struct world *w, const struct placement *placement)
{
    struct tally t = {.w = w};

    for (int n = 0; n < w->n_nodes; n++) {
        t.cpu[n] = w->nodes[n].cpu;
        memcpy(t.counters[n], w->nodes[n].counters, sizeof(t.counters[n]));
    }
    for (int d = 0; d < w->n_devices; d++) {
        t.memory[d] = w->devices[d].memory;
        if (w->devices[d].used && w->devices[d].takes)
            t.counters[w->devices[d].node][w->devices[d].set] -= w->devices[d].takes;
    }
    for (size_t i = 0; i < placement->n_members; i++) {
        const struct placed_member *member = &placement->members[i];
        int node = number_in(member->node, "n");

        if ((t.cpu[node] -= w->groups[member->group].cpu) < 0)
            t.problem = "more CPUs than there are";
        for (size_t c = 0; c < member->n_claims; c++)
            for (size_t k = 0; k < member->claims[c].allocation.n_results; k++)
                count_result(&t, &member->claims[c].allocation.results[k], node, false);
    }
    for (size_t s = 0; s < placement->n_shared; s++)
        for (size_t k = 0; k < placement->shared[s].n_results; k++)
            count_result(&t, &placement->shared[s].results[k], 0, true);
    return t.problem;
}
