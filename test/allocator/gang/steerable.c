/* Can kube-scheduler place the gang of a world by itself, whatever claims it is shown? Every member in every order on
 * every node, with every alternative, each request narrowed to every set of looks: a selector sees of a device only its
 * attributes, its capacities and whether it can be shared, so that sets of looks are all that a claim can say. What a
 * claim is given is left to predict(); nothing else of the product is used.
 *
 * A request is never narrowed to more looks than it wants devices: what first fit chooses among more it also chooses
 * among those of its choice alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/predict.h"
#include "test/allocator/gang/world.h"

#include "allocator/base/banned.h"

#define MAX_PREDICTIONS 300000
#define MAX_OPTIONS     4096 /* of one member on one node */

/* Where a run of members stands; compared as bytes. */
struct stage {
    int left[MAX_GROUPS], cpu[MAX_NODES], memory[MAX_DEVICES];
    bool port[MAX_NODES], taken[MAX_DEVICES], has_shared, reached[MAX_NODES], numa_used[MAX_DEVICES];
    int alternatives[MAX_GROUPS][MAX_CLAIMS][MAX_REQUESTS]; /* -1: free */
    int zone, model;                                        /* -1: any */
};

/* What one request of a claim is narrowed to. */
struct wish {
    int alternative, n_looks;
    int looks[2]; /* devices that look like what is admitted */
};

struct option { /* of the claims to be allocated, request by request */
    struct wish wishes[(MAX_CLAIMS + 1) * MAX_REQUESTS];
};

struct judge {
    const struct world *w;
    struct arena arena;
    const struct snapshot *snapshot;
    struct world_question question;
    struct stage *dead;
    size_t n_dead, cap_dead;
    size_t n_predictions;
};

/* ---- claims ---- */

static const struct world_claim *claim_of(const struct world *w, int group, int claim)
{
    return claim == w->groups[group].n_claims ? &w->shared : &w->groups[group].claims[claim];
}

static const json_t *object_of(const struct judge *j, int group, int claim)
{
    return claim == j->w->groups[group].n_claims ? j->question.spec.shared[0]
                                                 : j->question.spec.groups[group].claims[claim].object;
}

static json_t *looks_json(const struct world *w, const struct wish *wish)
{
    char text[1024], *at = text;

    for (int i = 0; i < wish->n_looks; i++) {
        const struct world_device *d = &w->devices[wish->looks[i]];

        at += snprintf(at, sizeof(text) - (size_t)(at - text),
                       "%s(device.attributes[\"d.example\"].model == \"m%d\" && "
                       "device.attributes[\"d.example\"].numa == %d && device.allowMultipleAllocations == %s && "
                       "device.capacity[\"d.example\"].memory.compareTo(quantity(\"%dGi\")) == 0)",
                       i ? " || " : "", d->model, d->numa, d->multi ? "true" : "false", d->memory);
    }
    return json_pack("{s:{s:s}}", "cel", "expression", text);
}

static json_t *narrowed(const struct world *w, const json_t *request, const struct wish *wish)
{
    json_t *list = json_object_get(request, "firstAvailable"), *selectors;
    json_t *ask =
        json_deep_copy(list ? json_array_get(list, (size_t)wish->alternative) : json_object_get(request, "exactly"));

    json_object_del(ask, "name");
    if (wish->n_looks) {
        selectors = json_object_get(ask, "selectors") ? json_object_get(ask, "selectors") : json_array();
        json_object_set(ask, "selectors", selectors);
        json_array_append_new(selectors, looks_json(w, wish));
    }
    return json_pack("{s:O, s:o}", "name", json_object_get(request, "name"), "exactly", ask);
}

static const struct claim *make_claim(struct judge *j, const json_t *object, const struct wish *wishes)
{
    struct features features = features_default(37);
    const json_t *spec = json_object_get(object, "spec"), *inner = json_object_get(spec, "spec"), *from;
    json_t *requests = json_array(), *devices, *whole, *one;
    struct claim *out;
    struct error err = {0};
    size_t r;

    from = json_object_get(inner ? inner : spec, "devices");
    json_array_foreach (json_object_get(from, "requests"), r, one) {
        json_array_append_new(requests, narrowed(j->w, one, &wishes[r]));
    }
    devices = json_pack("{s:o}", "requests", requests);
    if (json_object_get(from, "constraints"))
        json_object_set(devices, "constraints", json_object_get(from, "constraints"));
    whole = json_pack("{s:s, s:s, s:{s:s}, s:{s:o}}", "apiVersion", "resource.k8s.io/v1", "kind", "ResourceClaim",
                      "metadata", "name", "c", "spec", "devices", devices);
    if (claim_parse(whole, &features, true, &j->arena, &out, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err.field, err.text);
        abort();
    }
    json_decref(whole);
    return out;
}

/* ---- options ---- */

static bool reaches(const struct world *w, int device, int node)
{
    const struct world_device *d = &w->devices[device];

    return d->node >= 0 ? d->node == node : d->zone < 0 || d->zone == w->nodes[node].zone;
}

static bool looks_like(const struct world_device *a, const struct world_device *b)
{
    return a->model == b->model && a->numa == b->numa && a->memory == b->memory && a->multi == b->multi;
}

/* One device of each look that the node offers to the request. */
static int find_looks(const struct judge *j, const struct stage *s, int node, const struct world_ask *ask, int *out)
{
    int n = 0;

    for (int d = 0; d < j->w->n_devices; d++) {
        const struct world_device *device = &j->w->devices[d];
        bool is_new = reaches(j->w, d, node) && (ask->model < 0 || ask->model == device->model) &&
                      (s->model < 0 || s->model == device->model) && ask->memory <= device->memory;

        for (int i = 0; i < n && is_new; i++)
            is_new = !looks_like(device, &j->w->devices[out[i]]);
        if (is_new)
            out[n++] = d;
    }
    return n;
}

struct options {
    struct option *items;
    size_t n;
};

/* The wishes of one request, each put behind every option so far. */
static struct options extend(struct judge *j, const struct options *so_far, size_t at, const struct wish *wishes,
                             size_t n)
{
    struct options out = {arena_array(&j->arena, struct option, so_far->n * n), 0};

    for (size_t i = 0; i < so_far->n; i++)
        for (size_t k = 0; k < n && out.n < MAX_OPTIONS; k++) {
            out.items[out.n] = so_far->items[i];
            out.items[out.n++].wishes[at] = wishes[k];
        }
    return out;
}

static size_t wishes_of(const struct judge *j, const struct stage *s, int node, const struct world_request *request,
                        int settled, struct wish *out)
{
    size_t n = 0;

    for (int a = 0; a < request->n_alts; a++) {
        int looks[MAX_DEVICES], n_looks = find_looks(j, s, node, &request->alts[a], looks);

        if (settled >= 0 && settled != a)
            continue;
        if (request->alts[a].all)
            out[n++] = (struct wish){.alternative = a};
        for (int x = 0; x < n_looks && !request->alts[a].all; x++) {
            out[n++] = (struct wish){a, 1, {looks[x], 0}};
            for (int y = x + 1; y < n_looks && request->alts[a].count > 1; y++)
                out[n++] = (struct wish){a, 2, {looks[x], looks[y]}};
        }
    }
    return n;
}

/* The claims that a member of the group still needs: all, but for a shared one that is allocated. */
static int n_asked(const struct judge *j, const struct stage *s, int group)
{
    return j->w->groups[group].n_claims + (j->w->groups[group].shares && !s->has_shared);
}

static struct options options_of(struct judge *j, const struct stage *s, int group, int node)
{
    struct options out = {arena_new(&j->arena, struct option), 1};

    for (int c = 0; c < n_asked(j, s, group); c++) {
        const struct world_claim *claim = claim_of(j->w, group, c);

        for (int r = 0; r < claim->n_requests; r++) {
            struct wish wishes[MAX_ALTS * MAX_DEVICES * MAX_DEVICES];
            bool is_own = c < j->w->groups[group].n_claims;
            size_t n = wishes_of(j, s, node, &claim->requests[r],
                                 is_own && j->w->same_alternative ? s->alternatives[group][c][r] : -1, wishes);

            out = extend(j, &out, (size_t)(c * MAX_REQUESTS + r), wishes, n);
        }
    }
    return out;
}

/* ---- one member ---- */

static bool note_device(const struct judge *j, struct stage *s, const struct device_result *result)
{
    int d = (int)strtol(result->device + 1, NULL, 10);
    int64_t amount = 0;

    if (s->model >= 0 && j->w->devices[d].model != s->model)
        return false;
    s->taken[d] = true;
    for (size_t i = 0; i < result->n_consumed; i++)
        if (quantity_to_int(&result->consumed[i].amount, &amount))
            s->memory[d] += (int)(amount >> 30);
    if (j->w->gang_rule == RULE_DISTINCT_NUMA) {
        if (s->numa_used[j->w->devices[d].numa])
            return false;
        s->numa_used[j->w->devices[d].numa] = true;
    }
    return true;
}

static void reach_shared(const struct judge *j, struct stage *s, const struct allocation *shared)
{
    s->has_shared = true;
    for (int n = 0; n < j->w->n_nodes; n++) {
        s->reached[n] = true;
        for (size_t i = 0; i < shared->n_results; i++)
            s->reached[n] = s->reached[n] && reaches(j->w, (int)strtol(shared->results[i].device + 1, NULL, 10), n);
    }
}

/* The stage after the member, and the cluster; false when it finds no devices, or what the gang asks does not hold. */
static bool play(struct judge *j, const struct snapshot *now, int group, int node, const struct option *option,
                 struct stage *s, struct snapshot **out_next)
{
    int n = n_asked(j, s, group), n_own = j->w->groups[group].n_claims;
    const struct claim *claims[MAX_CLAIMS + 1];
    struct placed_claim placed[MAX_CLAIMS + 1] = {{0}};
    struct placed_member member = {.claims = placed, .n_claims = (size_t)n};
    struct placement step = {.members = &member, .n_members = 1};
    struct prediction got;
    char name[16];

    snprintf(name, sizeof(name), "n%d", node);
    member.node = name;
    for (int c = 0; c < n; c++)
        claims[c] = make_claim(j, object_of(j, group, c), &option->wishes[c * MAX_REQUESTS]);
    j->n_predictions++;
    predict(now, name, claims, (size_t)n, 0, &j->arena, &got);
    if (got.verdict != PREDICT_ALLOCATED)
        return false;
    for (int c = 0; c < n; c++) {
        placed[c] = (struct placed_claim){.source = GANG_CLAIM_OWN, .allocation = got.allocations[c]};
        for (size_t i = 0; i < got.allocations[c].n_results; i++)
            if (!note_device(j, s, &got.allocations[c].results[i]))
                return false;
        for (int r = 0; r < claim_of(j->w, group, c)->n_requests && c < n_own && j->w->same_alternative; r++)
            s->alternatives[group][c][r] = option->wishes[c * MAX_REQUESTS + r].alternative;
    }
    if (n > n_own)
        reach_shared(j, s, &got.allocations[n_own]);
    s->left[group]--;
    s->cpu[node] -= j->w->groups[group].cpu;
    s->port[node] = s->port[node] || j->w->groups[group].port;
    *out_next = snapshot_with(now, &step);
    return true;
}

/* ---- all members ---- */

static bool is_dead(const struct judge *j, const struct stage *s)
{
    for (size_t i = 0; i < j->n_dead; i++)
        if (memcmp(&j->dead[i], s, sizeof(*s)) == 0)
            return true;
    return false;
}

static bool admits(const struct judge *j, const struct stage *s, int group, int node)
{
    const struct world_group *g = &j->w->groups[group];

    return s->left[group] > 0 && !j->w->nodes[node].cordoned && s->cpu[node] >= g->cpu && !(g->port && s->port[node]) &&
           (s->zone < 0 || j->w->nodes[node].zone == s->zone) && (!g->shares || !s->has_shared || s->reached[node]);
}

static bool is_done(const struct judge *j, const struct stage *s)
{
    for (int g = 0; g < j->w->n_groups; g++)
        if (s->left[g] > 0)
            return false;
    return true;
}

static bool go_on(struct judge *j, const struct stage *s, const struct snapshot *now);

static bool place_one(struct judge *j, const struct stage *s, const struct snapshot *now, int group, int node)
{
    struct arena_mark mark = arena_mark(&j->arena);
    struct options options = options_of(j, s, group, node);
    bool found = false;

    for (size_t i = 0; i < options.n && !found && j->n_predictions < MAX_PREDICTIONS; i++) {
        struct arena_mark inner = arena_mark(&j->arena);
        struct snapshot *next;
        struct stage after;

        memcpy(&after, s, sizeof(after));
        if (play(j, now, group, node, &options.items[i], &after, &next)) {
            found = go_on(j, &after, next);
            snapshot_unref(next);
        }
        arena_rewind(&j->arena, inner);
    }
    arena_rewind(&j->arena, mark);
    return found;
}

static bool go_on(struct judge *j, const struct stage *s, const struct snapshot *now)
{
    if (is_done(j, s))
        return true;
    if (is_dead(j, s))
        return false;
    for (int g = 0; g < j->w->n_groups; g++)
        for (int n = 0; n < j->w->n_nodes; n++)
            if (admits(j, s, g, n) && place_one(j, s, now, g, n))
                return true;
    mem_grow(j->dead, j->n_dead, j->cap_dead);
    memcpy(&j->dead[j->n_dead++], s, sizeof(*s));
    return false;
}

static bool begin(struct judge *j, int zone, int model)
{
    struct stage s;

    memset(&s, 0, sizeof(s));
    memset(s.alternatives, -1, sizeof(s.alternatives));
    s.zone = zone;
    s.model = model;
    for (int g = 0; g < j->w->n_groups; g++)
        s.left[g] = j->w->groups[g].members;
    for (int n = 0; n < j->w->n_nodes; n++)
        s.cpu[n] = j->w->nodes[n].cpu;
    return go_on(j, &s, j->snapshot);
}

enum world_answer world_can_be_steered(const struct world *w)
{
    int n_models = w->gang_rule == RULE_MATCH_MODEL ? 2 : 1, n_zones = w->same_zone ? 2 : 1;
    struct snapshot *snapshot = world_snapshot(w);
    struct judge j = {.w = w, .snapshot = snapshot};
    bool found = false;

    arena_init(&j.arena);
    world_question_init(&j.question, w);
    for (int m = 0; m < n_models; m++)
        for (int z = 0; z < n_zones; z++)
            found = found || begin(&j, n_zones > 1 ? z : -1, n_models > 1 ? m : -1);
    free(j.dead);
    world_question_release(&j.question);
    arena_release(&j.arena);
    snapshot_unref(snapshot);
    if (found)
        return WORLD_FITS;
    return j.n_predictions < MAX_PREDICTIONS ? WORLD_DOES_NOT_FIT : WORLD_TOO_LARGE;
}
