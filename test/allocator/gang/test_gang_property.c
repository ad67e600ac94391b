/* Small random clusters and gangs against a plain exhaustive search. The seed of a failing case is printed; GANG_SEED
 * runs that one alone, GANG_CASES sets how many. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "test/allocator/gang/world.h"

#include "allocator/base/banned.h"

#define CASES 1500

struct tally {
    size_t fits, does_not, undecided, bind_only, in_turns, too_large, wrong;
};

static uint64_t setting(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : fallback;
}

static size_t complain(uint64_t seed, const char *what)
{
    print_message("seed %llu: %s\n", (unsigned long long)seed, what);
    return 1;
}

/* The verdict on a world, and its placement as text (to free). */
static enum gang_verdict fit_text(const struct world *w, const struct snapshot *snapshot, char **out_text,
                                  const char **out_problem, bool *out_bind_only)
{
    struct world_question question;
    struct gang_result result;
    struct error err = {0};
    enum gang_verdict verdict;

    *out_text = NULL;
    *out_problem = NULL;
    *out_bind_only = false;
    world_question_init(&question, w);
    if (gang_fit(snapshot, &question.spec, &question.arena, &result, &err) < 0) {
        print_message("%s: %s\n", err.field, err.text);
        abort();
    }
    verdict = result.verdict;
    if (verdict == GANG_FITS) {
        json_t *json = placement_to_json(result.placement, &question.spec);

        *out_text = json_dumps(json, JSON_COMPACT);
        *out_problem = world_check(w, result.placement);
        *out_bind_only = result.placement->bind_only;
        json_decref(json);
    }
    gang_result_release(&result);
    world_question_release(&question);
    return verdict;
}

static size_t compare_to_reference(uint64_t seed, const struct world *w, struct tally *tally)
{
    enum world_answer want = world_fits(w);
    struct snapshot *snapshot = world_snapshot(w);
    enum gang_verdict have, again;
    const char *problem;
    char *text, *second;
    bool bind_only;
    size_t wrong = 0;

    have = fit_text(w, snapshot, &text, &problem, &bind_only);
    again = fit_text(w, snapshot, &second, &problem, &bind_only);
    tally->fits += have == GANG_FITS;
    tally->does_not += have == GANG_WAITS || have == GANG_NEVER;
    tally->undecided += have == GANG_UNDECIDED;
    tally->bind_only += bind_only;
    tally->too_large += want == WORLD_TOO_LARGE;
    if (have == GANG_REFUSED)
        wrong += complain(seed, "refused");
    if (have == GANG_FITS && want == WORLD_DOES_NOT_FIT)
        wrong += complain(seed, "a false fit");
    if ((have == GANG_WAITS || have == GANG_NEVER) && want == WORLD_FITS)
        wrong += complain(seed, "a false refusal");
    if (problem)
        wrong += complain(seed, problem);
    if (have != again || (text && strcmp(text, second) != 0))
        wrong += complain(seed, "two runs differ");
    free(text);
    free(second);
    snapshot_unref(snapshot);
    return wrong;
}

/* With nothing in use, and no node cordoned: NEVER must mean that it does not fit then, WAITS that it does. */
static size_t compare_on_empty(uint64_t seed, const struct world *w)
{
    struct snapshot *snapshot = world_snapshot(w);
    struct world empty = *w;
    const char *problem;
    enum gang_verdict have;
    enum world_answer want;
    bool bind_only;
    size_t wrong = 0;
    char *text;

    for (int d = 0; d < empty.n_devices; d++)
        empty.devices[d].used = false;
    for (int n = 0; n < empty.n_nodes; n++)
        empty.nodes[n].cordoned = false;
    want = world_fits(&empty);
    have = fit_text(w, snapshot, &text, &problem, &bind_only);
    if (have == GANG_NEVER && want == WORLD_FITS)
        wrong += complain(seed, "a false never");
    if (have == GANG_WAITS && want == WORLD_DOES_NOT_FIT)
        wrong += complain(seed, "a false waits");
    free(text);
    snapshot_unref(snapshot);
    return wrong;
}

static bool has_all(const struct world_claim *claim)
{
    for (int r = 0; r < claim->n_requests; r++)
        for (int a = 0; a < claim->requests[r].n_alts; a++)
            if (claim->requests[r].alts[a].all)
                return true;
    return false;
}

static bool wants_all(const struct world *w)
{
    for (int g = 0; g < w->n_groups; g++)
        for (int c = 0; c < w->groups[g].n_claims; c++)
            if (has_all(&w->groups[g].claims[c]))
                return true;
    return false;
}

/* One more free device never makes a gang unfit that fitted (mode All apart, which wants that one too). */
static size_t add_a_device(uint64_t seed, const struct world *w, struct rng *rng)
{
    struct world more = *w;
    struct snapshot *before = world_snapshot(w), *after;
    const char *problem;
    enum gang_verdict first, second;
    bool bind_only;
    char *text;

    more.devices[more.n_devices] = (struct world_device){.node = (int)rng_below(rng, (uint64_t)w->n_nodes),
                                                         .zone = -1,
                                                         .model = (int)rng_below(rng, 2),
                                                         .numa = (int)rng_below(rng, 2),
                                                         .memory = 4};
    more.n_devices++;
    after = world_snapshot(&more);
    first = fit_text(w, before, &text, &problem, &bind_only);
    free(text);
    second = fit_text(&more, after, &text, &problem, &bind_only);
    free(text);
    snapshot_unref(before);
    snapshot_unref(after);
    return first == GANG_FITS && second != GANG_FITS ? complain(seed, "a device more makes it unfit") : 0;
}

/* What is remembered of nodes changes no answer: a cluster that changes under the same builder and a fresh one agree.
 */
static size_t change_a_node(uint64_t seed, const struct world *w, struct rng *rng)
{
    struct snapshot_builder *builder = world_builder(w);
    struct snapshot *snapshot = snapshot_builder_build(builder), *fresh;
    struct world changed = *w;
    int node = (int)rng_below(rng, (uint64_t)w->n_nodes);
    enum gang_verdict warm, cold;
    const char *problem;
    bool bind_only;
    char *warm_text, *cold_text;
    size_t wrong = 0;

    (void)fit_text(w, snapshot, &warm_text, &problem, &bind_only);
    free(warm_text);
    snapshot_unref(snapshot);
    for (int d = 0; d < w->n_devices; d++)
        if (changed.devices[d].node == node)
            changed.devices[d].model = 1 - changed.devices[d].model;
    changed.nodes[node].cpu += 2;
    world_put_node(builder, &changed, node);
    snapshot = snapshot_builder_build(builder);
    fresh = world_snapshot(&changed);
    warm = fit_text(&changed, snapshot, &warm_text, &problem, &bind_only);
    cold = fit_text(&changed, fresh, &cold_text, &problem, &bind_only);
    if (warm != cold || (warm_text && strcmp(warm_text, cold_text) != 0))
        wrong = complain(seed, "what was remembered changed the answer");
    free(warm_text);
    free(cold_text);
    snapshot_unref(snapshot);
    snapshot_unref(fresh);
    snapshot_builder_free(builder);
    return wrong;
}

static void test_gang__agrees_with_plain_search(void **state)
{
    uint64_t first = setting("GANG_SEED", 1), n = getenv("GANG_SEED") ? 1 : setting("GANG_CASES", CASES);
    struct tally tally = {0};

    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct rng rng = {.state = seed * UINT64_C(0x9e3779b97f4a7c15)};
        struct world w = world_random(&rng);

        if (getenv("GANG_SEED"))
            world_print(&w);
        tally.wrong += compare_to_reference(seed, &w, &tally);
        tally.wrong += compare_on_empty(seed, &w);
        tally.wrong += change_a_node(seed, &w, &rng);
        if (w.n_devices < MAX_DEVICES && !wants_all(&w))
            tally.wrong += add_a_device(seed, &w, &rng);
    }
    print_message("seeds %llu..%llu: %zu fit, %zu do not, %zu undecided, %zu only when bound, %zu too large for the "
                  "reference\n",
                  (unsigned long long)first, (unsigned long long)(first + n - 1), tally.fits, tally.does_not,
                  tally.undecided, tally.bind_only, tally.too_large);
    assert_int_equal(tally.wrong, 0);
    assert_true(tally.undecided * 100 <= n);
}

/* ---- devices that look alike ---- */

/* One order of the members, as kube-scheduler would take them: the claims of a pod in the order of the pod. */
struct schedule {
    const struct snapshot *cluster;
    const struct gang_spec *spec;
    const struct placement *plan;
    struct arena arena;
    struct snapshot *now;
    const struct snapshot *seen; /* what kube-scheduler takes for `now`, or NULL: that */
    bool has_shared;
    struct allocation given[MAX_MEMBERS + MAX_GROUPS * 3]; /* the shares that each member brought, of all its claims */
    bool is_as_planned;
};

static bool same_devices(const struct allocation *a, const struct allocation *b)
{
    for (size_t i = 0; i < a->n_results; i++) {
        bool found = false;

        for (size_t k = 0; k < b->n_results && !found; k++)
            found = strcmp(a->results[i].device, b->results[k].device) == 0 &&
                    strcmp(a->results[i].pool, b->results[k].pool) == 0;
        if (!found)
            return false;
    }
    return a->n_results == b->n_results;
}

static const struct claim *created(struct schedule *s, const json_t *object, const struct allocation *planned)
{
    struct features features = features_default(37);
    json_t *whole = json_pack("{s:s, s:s, s:{s:s}, s:o}", "apiVersion", "resource.k8s.io/v1", "kind", "ResourceClaim",
                              "metadata", "name", "c", "spec", steered_claim_spec(s->cluster, object, planned));
    struct claim *claim;
    struct error err = {0};

    if (claim_parse(whole, &features, true, &s->arena, &claim, &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
    json_decref(whole);
    return claim;
}

/* The claims that are still to be allocated when the member is scheduled; their entries in its claims. */
static size_t asked_claims(struct schedule *s, const struct placed_member *member, const struct claim **out,
                           size_t *out_entries)
{
    const struct gang_group *group = &s->spec->groups[member->group];
    size_t n = 0;

    for (size_t c = 0; c < group->n_claims; c++) {
        bool shared = group->claims[c].source == GANG_CLAIM_SHARED;

        if (shared && s->has_shared)
            continue;
        out[n] = shared ? created(s, s->spec->shared[0], &s->plan->shared[0])
                        : created(s, group->claims[c].object, &member->claims[c].allocation);
        out_entries[n++] = c;
    }
    return n;
}

/* Add the shares of an allocation to what the member brought. */
static void note_shares(struct schedule *s, size_t index, const struct allocation *got)
{
    struct allocation *given = &s->given[index];
    struct device_result *results = arena_array(&s->arena, struct device_result, given->n_results + got->n_results);
    size_t n = 0;

    for (size_t i = 0; i < given->n_results; i++)
        results[n++] = given->results[i];
    for (size_t i = 0; i < got->n_results; i++)
        if (got->results[i].is_share)
            results[n++] = got->results[i];
    given->results = results;
    given->n_results = n;
}

static bool schedule_member(struct schedule *s, size_t index)
{
    struct placed_member member = s->plan->members[index];
    struct placed_claim claims[MAX_CLAIMS + 1];
    struct placement step = *s->plan;
    const struct claim *asked[MAX_CLAIMS + 1];
    size_t entries[MAX_CLAIMS + 1], n = asked_claims(s, &member, asked, entries);
    struct prediction got;
    struct snapshot *next;

    predict(s->seen ? s->seen : s->now, member.node, asked, n, 0, &s->arena, &got);
    if (got.verdict != PREDICT_ALLOCATED)
        return false;
    memcpy(claims, member.claims, member.n_claims * sizeof(*claims));
    member.claims = claims;
    step.members = &member;
    step.n_members = 1;
    step.n_shared = 0;
    for (size_t i = 0; i < n; i++) {
        bool shared = claims[entries[i]].source == GANG_CLAIM_SHARED;

        note_shares(s, index, &got.allocations[i]);
        s->is_as_planned =
            s->is_as_planned &&
            same_devices(&got.allocations[i], shared ? &s->plan->shared[0] : &claims[entries[i]].allocation);
        if (!shared) {
            claims[entries[i]].allocation = got.allocations[i];
            continue;
        }
        s->has_shared = true;
        step.shared = &got.allocations[i];
        step.n_shared = 1;
    }
    next = snapshot_with(s->now, &step);
    snapshot_unref(s->now);
    s->now = next;
    return true;
}

static bool schedule_all(const struct snapshot *cluster, const struct gang_spec *spec, const struct placement *plan,
                         const size_t *order, bool *out_as_planned)
{
    struct schedule s = {.cluster = cluster, .spec = spec, .plan = plan, .is_as_planned = true};
    bool held = true;

    arena_init(&s.arena);
    s.now = snapshot_ref(cluster);
    for (size_t i = 0; i < plan->n_members && held; i++)
        held = schedule_member(&s, order[i]);
    snapshot_unref(s.now);
    arena_release(&s.arena);
    *out_as_planned = s.is_as_planned;
    return held;
}

static void sort_by_turn(const struct placement *plan, size_t *order)
{
    for (size_t i = 1; i < plan->n_members; i++)
        for (size_t k = i; k > 0 && plan->members[order[k]].turn < plan->members[order[k - 1]].turn; k--) {
            size_t kept = order[k];

            order[k] = order[k - 1];
            order[k - 1] = kept;
        }
}

/* The members in any order; in that of their turns where only those hold the plan. */
static void mix(const struct placement *plan, struct rng *rng, size_t *order)
{
    for (size_t i = plan->n_members; i > 1; i--) {
        size_t k = rng_below(rng, i), kept = order[i - 1];

        order[i - 1] = order[k];
        order[k] = kept;
    }
    if (plan->needs_turns)
        sort_by_turn(plan, order);
}

/* What is not bind_only must hold in every order (in many of many members), and in the plain one to the device; what
 * needs turns, in every order of them to the device. */
static size_t replay_orders(uint64_t seed, const struct snapshot *cluster, const struct gang_spec *spec,
                            const struct placement *plan)
{
    struct rng rng = {.state = seed + 1};
    size_t order[MAX_MEMBERS + MAX_GROUPS], n = plan->n_members;
    bool as_planned;

    for (size_t i = 0; i < n; i++)
        order[i] = i;
    if (plan->needs_turns)
        sort_by_turn(plan, order);
    if (!schedule_all(cluster, spec, plan, order, &as_planned))
        return complain(seed, "a member finds no devices in the plain order");
    if (!as_planned)
        return complain(seed, "other devices than planned, and nobody interfered");
    for (size_t t = 0; t < 24; t++) {
        mix(plan, &rng, order);
        if (!schedule_all(cluster, spec, plan, order, &as_planned))
            return complain(seed, "a member finds no devices in another order");
        if (plan->needs_turns && !as_planned)
            return complain(seed, "other devices than planned, although all kept their turns");
    }
    return 0;
}

/* ---- claims in flight ---- */

/* As kube-scheduler would see it while all claims of these members are both written and in flight: what they consume of
 * shared devices counts once more. */
static struct snapshot *counted_twice(const struct schedule *s, const size_t *order, size_t n)
{
    struct snapshot *seen = snapshot_ref(s->now);

    for (size_t i = 0; i < n; i++) {
        struct placed_claim claim = {.source = GANG_CLAIM_OWN, .allocation = s->given[order[i]]};
        struct placed_member member = {.node = s->plan->members[order[i]].node, .claims = &claim, .n_claims = 1};
        struct placement step = {.members = &member, .n_members = 1};
        struct snapshot *next = snapshot_with(seen, &step);

        snapshot_unref(seen);
        seen = next;
    }
    return seen;
}

static bool plays_in_turns(struct schedule *s, const size_t *order)
{
    size_t n = s->plan->n_members, begin = 0;

    for (size_t i = 0; i < n; i++) {
        struct snapshot *seen;
        bool held;

        if (s->plan->members[order[i]].turn != s->plan->members[order[begin]].turn)
            begin = i;
        seen = counted_twice(s, order + begin, i - begin);
        s->seen = seen;
        held = schedule_member(s, order[i]);
        s->seen = NULL;
        snapshot_unref(seen);
        if (!held)
            return false;
    }
    return true;
}

/* Cards that are told apart, so that whatever a card seems to lack is lacking. */
static struct world shares_world(struct rng *rng)
{
    struct world w = {.n_nodes = 1 + (int)rng_below(rng, 2), .n_groups = 1 + (int)rng_below(rng, MAX_GROUPS)};

    for (int n = 0; n < w.n_nodes; n++)
        w.nodes[n] = (struct world_node){.cpu = 64, .counters = {9, 9}};
    w.n_devices = w.n_nodes + (int)rng_below(rng, 4);
    for (int d = 0; d < w.n_devices; d++)
        w.devices[d] = (struct world_device){
            .node = d % w.n_nodes, .zone = -1, .numa = d, .memory = 3 + (int)rng_below(rng, 6), .multi = true};
    for (int g = 0; g < w.n_groups; g++) {
        struct world_group *group = &w.groups[g];

        *group = (struct world_group){.members = 1 + (int)rng_below(rng, 3), .cpu = 1, .n_claims = 1};
        for (int c = 0; c < group->n_claims; c++)
            group->claims[c] = (struct world_claim){
                .n_requests = 1,
                .rule_request = -1,
                .requests = {{.n_alts = 1, .alts = {{.model = -1, .count = 1, .memory = 1 + (int)rng_below(rng, 4)}}}}};
    }
    return w;
}

static size_t play_in_turns(uint64_t seed, const struct world *w, size_t *n_waiting, size_t *n_together)
{
    struct snapshot *cluster = world_snapshot(w);
    struct rng rng = {.state = seed};
    struct world_question question;
    struct gang_result result;
    struct error err = {0};
    size_t wrong = 0;

    world_question_init(&question, w);
    assert_int_equal(gang_fit(cluster, &question.spec, &question.arena, &result, &err), 0);
    for (size_t t = 0; t < 6 && result.verdict == GANG_FITS && !result.placement->bind_only && !wrong; t++) {
        const struct placement *plan = result.placement;
        struct schedule s = {.cluster = cluster, .spec = &question.spec, .plan = plan, .is_as_planned = true};
        size_t order[MAX_MEMBERS + MAX_GROUPS * 3];

        for (size_t i = 0; i < plan->n_members; i++) {
            order[i] = i;
            *n_waiting += t == 0 && plan->members[i].turn > 0;
            *n_together += t == 0 && plan->members[i].turn == 0 && i > 0;
        }
        mix(plan, &rng, order);
        sort_by_turn(plan, order);
        arena_init(&s.arena);
        s.now = snapshot_ref(cluster);
        if (!plays_in_turns(&s, order) || (!s.is_as_planned && !w->alike))
            wrong += complain(seed, "a member is refused while claims of its turn are in flight");
        snapshot_unref(s.now);
        arena_release(&s.arena);
    }
    gang_result_release(&result);
    world_question_release(&question);
    snapshot_unref(cluster);
    return wrong;
}

static void test_gang__holds_while_claims_are_in_flight(void **state)
{
    uint64_t first = setting("GANG_SEED", 1), n = getenv("GANG_SEED") ? 1 : setting("GANG_CASES", CASES);
    size_t wrong = 0, n_waiting = 0, n_together = 0;

    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct rng rng = {.state = seed * UINT64_C(0x9e3779b97f4a7c15)};
        struct world w = shares_world(&rng);

        wrong += play_in_turns(seed, &w, &n_waiting, &n_together);
        w.alike = true;
        wrong += play_in_turns(seed, &w, &n_waiting, &n_together);
        w = world_random(&rng);
        wrong += play_in_turns(seed, &w, &n_waiting, &n_together);
        w.alike = true;
        wrong += play_in_turns(seed, &w, &n_waiting, &n_together);
    }
    print_message("%zu members wait for a turn, %zu do not\n", n_waiting, n_together);
    assert_int_equal(wrong, 0);
}

/* Members that start together may bring the claim that they share, each of them. */
static void test_gang__counts_a_shared_claim_for_whoever_brings_it(void **state)
{
    static const uint64_t seeds[] = {1767, 2512};
    size_t wrong = 0, n_waiting = 0, n_together = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(seeds); i++)
        for (int alike = 0; alike < 2; alike++) {
            struct rng rng = {.state = seeds[i] * UINT64_C(0x9e3779b97f4a7c15)};
            struct world w;

            (void)shares_world(&rng);
            w = world_random(&rng);
            w.alike = alike;
            wrong += play_in_turns(seeds[i], &w, &n_waiting, &n_together);
        }
    assert_int_equal(wrong, 0);
}

static size_t steer_alike(uint64_t seed, const struct world *w, struct tally *tally)
{
    enum world_answer want = world_fits(w);
    struct snapshot *snapshot = world_snapshot(w);
    struct world_question question;
    struct gang_result result;
    struct error err = {0};
    const char *problem = NULL;
    size_t wrong = 0;

    world_question_init(&question, w);
    assert_int_equal(gang_fit(snapshot, &question.spec, &question.arena, &result, &err), 0);
    tally->fits += result.verdict == GANG_FITS;
    tally->undecided += result.verdict == GANG_UNDECIDED;
    if (result.verdict == GANG_FITS && want == WORLD_DOES_NOT_FIT)
        wrong += complain(seed, "a false fit");
    if ((result.verdict == GANG_WAITS || result.verdict == GANG_NEVER) && want == WORLD_FITS)
        wrong += complain(seed, "a false refusal");
    if (result.verdict == GANG_FITS)
        problem = world_check(w, result.placement);
    if (problem)
        wrong += complain(seed, problem);
    if (result.verdict == GANG_FITS && result.placement->bind_only) {
        tally->bind_only++;
        if (world_can_be_steered(w) == WORLD_FITS)
            wrong += complain(seed, "only when bound, although claims can steer it");
    } else if (result.verdict == GANG_FITS) {
        tally->in_turns += result.placement->needs_turns;
        wrong += replay_orders(seed, snapshot, &question.spec, result.placement);
    }
    gang_result_release(&result);
    world_question_release(&question);
    snapshot_unref(snapshot);
    return wrong;
}

static void test_gang__holds_where_devices_look_alike(void **state)
{
    uint64_t first = setting("GANG_SEED", 1), n = getenv("GANG_SEED") ? 1 : setting("GANG_CASES", CASES);
    struct tally tally = {0};

    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct rng rng = {.state = seed * UINT64_C(0x9e3779b97f4a7c15)};
        struct world w = world_random(&rng);

        w.alike = true;
        tally.wrong += steer_alike(seed, &w, &tally);
    }
    print_message(
        "seeds %llu..%llu, devices alike: %zu fit, %zu of them in turns, %zu only when bound, %zu undecided\n",
        (unsigned long long)first, (unsigned long long)(first + n - 1), tally.fits, tally.in_turns, tally.bind_only,
        tally.undecided);
    assert_int_equal(tally.wrong, 0);
    assert_true(tally.undecided * 100 <= n);
}

/* ---- whose end would be enough ---- */

static bool is_named(const json_t *explanation, int device)
{
    const json_t *one;
    char name[32];
    size_t i;

    snprintf(name, sizeof(name), "claim other/held%d", device);
    json_array_foreach (json_object_get(explanation, "blocking"), i, one)
        if (strcmp(json_string_value(json_object_get(one, "kind")), "devices") == 0 &&
            strcmp(json_string_value(json_object_get(one, "name")), name) == 0)
            return true;
    return false;
}

static enum gang_verdict fit_without(const struct world *w, int device)
{
    struct world less = *w;
    struct snapshot *snapshot;
    enum gang_verdict verdict;
    const char *problem;
    bool bind_only;
    char *text;

    less.devices[device].used = false;
    snapshot = world_snapshot(&less);
    verdict = fit_text(&less, snapshot, &text, &problem, &bind_only);
    free(text);
    snapshot_unref(snapshot);
    return verdict;
}

/* Exactly the claims are named without one of which the gang fits. */
static size_t end_each(uint64_t seed, const struct world *w, size_t *n_named)
{
    struct snapshot *snapshot = world_snapshot(w);
    struct world_question question;
    struct gang_result result;
    struct error err = {0};
    size_t wrong = 0;

    world_question_init(&question, w);
    question.spec.is_brief = false;
    assert_int_equal(gang_fit(snapshot, &question.spec, &question.arena, &result, &err), 0);
    for (int d = 0; d < w->n_devices && result.verdict == GANG_WAITS; d++) {
        bool named = w->devices[d].used && is_named(result.explanation, d);

        *n_named += named;
        if (w->devices[d].used && named != (fit_without(w, d) == GANG_FITS))
            wrong += complain(seed, named ? "the end of a claim would not be enough" : "a claim's end is not told");
    }
    gang_result_release(&result);
    world_question_release(&question);
    snapshot_unref(snapshot);
    return wrong;
}

static void test_gang__tells_whose_end_would_be_enough(void **state)
{
    uint64_t first = setting("GANG_SEED", 1), n = getenv("GANG_SEED") ? 1 : setting("GANG_CASES", CASES) / 3 + 1;
    size_t wrong = 0, n_named = 0;

    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct rng rng = {.state = seed * UINT64_C(0x9e3779b97f4a7c15)};
        struct world w = world_random(&rng);

        wrong += end_each(seed, &w, &n_named);
    }
    print_message("%zu claims are named whose end would be enough\n", n_named);
    assert_int_equal(wrong, 0);
}

/* Worlds in which only binding could hold a gang that turns, or a selector on sharing, can hold. */
static void test_gang__holds_what_once_only_binding_could(void **state)
{
    static const uint64_t seeds[] = {1314,  2250,  3166,  4035,  4063,  5827,  7879,  10037, 10973, 12155, 13119,
                                     13135, 13645, 13798, 14014, 16633, 16673, 18559, 18685, 19336, 33598, 87145};
    struct tally tally = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
        struct rng rng = {.state = seeds[i] * UINT64_C(0x9e3779b97f4a7c15)};
        struct world w = world_random(&rng);

        w.alike = true;
        tally.wrong += steer_alike(seeds[i], &w, &tally);
    }
    assert_int_equal(tally.wrong, 0);
    assert_int_equal(tally.bind_only, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gang__agrees_with_plain_search),
                                       cmocka_unit_test(test_gang__holds_while_claims_are_in_flight),
                                       cmocka_unit_test(test_gang__counts_a_shared_claim_for_whoever_brings_it),
                                       cmocka_unit_test(test_gang__holds_where_devices_look_alike),
                                       cmocka_unit_test(test_gang__holds_what_once_only_binding_could),
                                       cmocka_unit_test(test_gang__tells_whose_end_would_be_enough)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
