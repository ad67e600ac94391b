/* conformance-gang PATH... - run gang cases (one YAML file each, or folders of them) and compare.
 *
 * A case is a cluster, a submission that is one job, and the answer. A placement is also replayed: the steered claims
 * go through predict one member after the other on snapshots that are built from JSON after every step, in the order of
 * the manifest, in reverse and in four random ones, and each must end with the planned devices.
 *
 * Prints one line per failing case with the difference, and closes with "N passed, N failed, N skipped". */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "allocator/base/mem.h"
#include "allocator/base/rng.h"
#include "allocator/gang.h"
#include "queued/admission/question.h"
#include "queued/manifest/job.h"
#include "queued/manifest/yaml.h"

#include "allocator/base/banned.h"

#define MIXED_ORDERS   4
#define ORDERS_FOR_ANY 200

struct outcome {
    size_t passed, failed;
};

struct one_case {
    const char *path;
    json_t *document;
    struct arena arena;
    struct snapshot_builder *builder;
    struct snapshot *snapshot;
    json_t *jobs;
    struct job_spec job;
    struct gang_spec spec;
    struct gang_result result;
    struct buf difference;
};

/* ---- loading ---- */

static bool load_cluster(struct one_case *c)
{
    struct features features = features_default(37);
    json_t *object;
    size_t i;

    c->builder = snapshot_builder_new(&features, false);
    json_array_foreach (json_object_get(c->document, "cluster"), i, object) {
        struct error err = {0};

        if (snapshot_builder_put(c->builder, object, &err) < 0) {
            buf_addf(&c->difference, "cluster[%zu]: %s %s", i, err.field, err.text);
            return false;
        }
    }
    c->snapshot = snapshot_builder_build(c->builder);
    return true;
}

static bool load_job(struct one_case *c)
{
    const struct job_decode_options options = {.default_namespace = "default", .one_job = true};
    struct job_problem problem = {0};
    struct error err = {0};

    if (jobs_decode(json_object_get(c->document, "submit"), &options, &c->jobs, &problem) < 0) {
        c->result.verdict = GANG_REFUSED;
        c->result.explanation =
            json_sprintf("submit[%zu]: %s: %s", problem.document, problem.error.field, problem.error.text);
        return false;
    }
    if (json_array_size(c->jobs) != 1) {
        buf_addf(&c->difference, "submit gives %zu jobs instead of one", json_array_size(c->jobs));
        return false;
    }
    if (job_spec_parse(json_array_get(c->jobs, 0), &c->arena, &c->job, &err) < 0) {
        buf_addf(&c->difference, "job: %s: %s", err.field, err.text);
        return false;
    }
    question_of_shape(&c->job, 0, c->job.placement, &c->arena, &c->spec);
    return true;
}

/* ---- comparing ---- */

static const char *const verdicts[] = {"fits", "waits", "never", "undecided", "refused"};

static const char *summary_of(const struct one_case *c)
{
    const json_t *text = json_is_string(c->result.explanation) ? c->result.explanation
                                                               : json_object_get(c->result.explanation, "summary");

    return json_string_value(text) ? json_string_value(text) : "";
}

static bool compare_verdict(struct one_case *c, const json_t *expect)
{
    bool fits = json_is_true(json_object_get(expect, "fits"));

    if (c->result.verdict == GANG_UNDECIDED || fits != (c->result.verdict == GANG_FITS)) {
        buf_addf(&c->difference, "want %s, have %s: %s", fits ? "fits" : "does not fit", verdicts[c->result.verdict],
                 summary_of(c));
        return false;
    }
    if (json_is_true(json_object_get(expect, "steered")) && c->result.placement->bind_only) {
        buf_addf(&c->difference, "bind only: %s", c->result.placement->bind_reason);
        return false;
    }
    return true;
}

static void compare_nodes(struct one_case *c, const json_t *expect)
{
    json_t *want = json_object_get(expect, "nodes"), *have = json_object();
    const struct placement *placement = c->result.placement;
    const char *node;
    json_t *n;

    for (size_t i = 0; i < placement->n_members; i++) {
        json_int_t before = json_integer_value(json_object_get(have, placement->members[i].node));

        json_object_set_new(have, placement->members[i].node, json_integer(before + 1));
    }
    if (want && !json_equal(want, have)) {
        buf_adds(&c->difference, "nodes:");
        json_object_foreach (have, node, n) {
            buf_addf(&c->difference, " %s: %lld", node, (long long)json_integer_value(n));
        }
    }
    json_decref(have);
}

/* Whether the claim belongs to the owner: its template's or claim's name, or the member's group. */
static bool is_owner(const struct one_case *c, const struct placed_member *member, const struct placed_claim *claim,
                     const char *owner, size_t len)
{
    const struct gang_group *group = &c->spec.groups[member->group];
    const char *names[2] = {group->name, NULL};

    for (size_t i = 0; i < group->n_claims; i++)
        if (strcmp(group->claims[i].pod_claim, claim->pod_claim) == 0)
            names[1] = group->claims[i].name;
    for (size_t i = 0; i < 2; i++)
        if (names[i] && strlen(names[i]) == len && strncmp(names[i], owner, len) == 0)
            return true;
    return false;
}

/* How many members took which alternative for "owner/request", as {sub: n}. */
static json_t *count_chosen(const struct one_case *c, const char *key)
{
    const char *slash = strchr(key, '/'), *request = slash ? slash + 1 : "";
    size_t owner = slash ? (size_t)(slash - key) : 0, len = strlen(request);
    json_t *have = json_object();

    for (size_t i = 0; i < c->result.placement->n_members; i++) {
        const struct placed_member *member = &c->result.placement->members[i];

        for (size_t k = 0; k < member->n_claims; k++)
            for (size_t d = 0; d < member->claims[k].allocation.n_results; d++) {
                const char *name = member->claims[k].allocation.results[d].request;

                if (!is_owner(c, member, &member->claims[k], key, owner) || strncmp(name, request, len) != 0 ||
                    name[len] != '/')
                    continue;
                json_object_set_new(have, name + len + 1,
                                    json_integer(json_integer_value(json_object_get(have, name + len + 1)) + 1));
                break;
            }
    }
    return have;
}

static void compare_chosen(struct one_case *c, const json_t *expect)
{
    const char *key;
    json_t *want;

    json_object_foreach (json_object_get(expect, "chosen"), key, want) {
        json_t *have = count_chosen(c, key);

        if (json_object_size(have) != 1 || !json_object_get(have, json_string_value(want)))
            buf_addf(&c->difference, " chosen %s: not %s for all", key, json_string_value(want));
        json_decref(have);
    }
    json_object_foreach (json_object_get(expect, "chosenCounts"), key, want) {
        json_t *have = count_chosen(c, key);

        if (!json_equal(have, want))
            buf_addf(&c->difference, " chosenCounts %s differ", key);
        json_decref(have);
    }
}

static void compare_words(struct one_case *c, const json_t *expect)
{
    char *text = json_dumps(c->result.explanation, JSON_COMPACT | JSON_ENCODE_ANY);
    json_t *word;
    size_t i;

    json_array_foreach (json_object_get(expect, "mustName"), i, word) {
        if (!strcasestr(text, json_string_value(word)))
            buf_addf(&c->difference, "%s %s", c->difference.len ? "" : "words:", json_string_value(word));
    }
    free(text);
}

/* ---- replaying ---- */

struct replay {
    struct one_case *c;
    struct arena arena;
    struct snapshot *snapshot; /* after what has been placed so far */
    bool *shared_done;
};

static json_t *claim_object(const struct one_case *c, const char *name, json_t *spec, const struct allocation *got)
{
    json_t *object = json_pack("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion", "resource.k8s.io/v1", "kind",
                               "ResourceClaim", "metadata", "name", name, "namespace", c->spec.ns, "spec", spec);

    if (got)
        json_object_set_new(object, "status", json_pack("{s:o}", "allocation", allocation_to_json(got, NULL, NULL)));
    return object;
}

/* The planned device, or one that no attribute tells from it: nothing can steer towards one of two such devices. */
static bool same_or_alike(const struct one_case *c, const struct device_result *a, const struct device_result *b)
{
    json_t *x, *y;
    bool alike;

    if (strcmp(a->driver, b->driver) == 0 && strcmp(a->pool, b->pool) == 0 && strcmp(a->device, b->device) == 0)
        return true;
    x = snapshot_device_json(c->snapshot, a->driver, a->pool, a->device);
    y = snapshot_device_json(c->snapshot, b->driver, b->pool, b->device);
    alike = strcmp(a->driver, b->driver) == 0 &&
            json_equal(json_object_get(x, "attributes"), json_object_get(y, "attributes"));
    json_decref(x);
    json_decref(y);
    return alike;
}

static bool same_results(const struct one_case *c, const struct allocation *got, const struct allocation *planned)
{
    bool *used = mem_array(bool, got->n_results);
    bool same = got->n_results == planned->n_results;

    for (size_t i = 0; i < planned->n_results && same; i++) {
        bool found = false;

        for (size_t k = 0; k < got->n_results && !found; k++) {
            found = !used[k] && same_or_alike(c, &got->results[k], &planned->results[i]);
            used[k] = used[k] || found;
        }
        same = found;
    }
    free(used);
    return same;
}

/* The claims of a member that kube-scheduler would still have to allocate. */
struct asked {
    const struct claim *claims[64];
    const struct allocation *planned[64];
    json_t *specs[64];
    char names[64][96];
    size_t n;
};

static bool ask_claim(struct replay *r, struct asked *asked, const json_t *object, const struct allocation *planned,
                      size_t member, const char *name)
{
    json_t *spec = steered_claim_spec(r->c->snapshot, object, planned), *whole;
    struct features features = features_default(37);
    struct error err = {0};
    struct claim *claim;
    int rc;

    if (!spec || asked->n == 64)
        return false;
    snprintf(asked->names[asked->n], sizeof(asked->names[0]), "m%zu-%s", member, name);
    whole = claim_object(r->c, asked->names[asked->n], json_incref(spec), NULL);
    rc = claim_parse(whole, &features, true, &r->arena, &claim, &err);
    json_decref(whole);
    asked->specs[asked->n] = spec;
    asked->planned[asked->n] = planned;
    asked->claims[asked->n++] = claim;
    if (rc < 0)
        buf_addf(&r->c->difference, " steered claim of member %zu: %s: %s", member, err.field, err.text);
    return rc == 0;
}

static bool ask_member(struct replay *r, size_t index, struct asked *asked)
{
    const struct placed_member *member = &r->c->result.placement->members[index];
    const struct gang_group *group = &r->c->spec.groups[member->group];

    for (size_t k = 0; k < group->n_claims; k++) {
        const struct gang_claim *claim = &group->claims[k];

        if (claim->source == GANG_CLAIM_OWN &&
            !ask_claim(r, asked, claim->object, &member->claims[k].allocation, index, claim->pod_claim))
            return false;
        if (claim->source == GANG_CLAIM_SHARED && !r->shared_done[claim->shared]) {
            r->shared_done[claim->shared] = true;
            if (!ask_claim(r, asked, r->c->spec.shared[claim->shared], &r->c->result.placement->shared[claim->shared],
                           index, claim->pod_claim))
                return false;
        }
    }
    return true;
}

static void put(struct replay *r, json_t *object)
{
    struct error err = {0};

    if (snapshot_builder_put(r->c->builder, object, &err) < 0)
        buf_addf(&r->c->difference, " replay: %s: %s", err.field, err.text);
    json_decref(object);
}

/* The member runs: its claims are allocated and its pod is bound. */
static void commit_member(struct replay *r, size_t index, const struct asked *asked, const struct allocation *got,
                          size_t n_extended)
{
    const struct placed_member *member = &r->c->result.placement->members[index];
    json_t *pod = json_deep_copy(r->c->spec.groups[member->group].pod);
    char name[32];

    for (size_t k = 0; k < asked->n; k++)
        put(r, claim_object(r->c, asked->names[k], json_incref(asked->specs[k]), &got[k]));
    for (size_t k = 0; k < n_extended; k++) {
        snprintf(name, sizeof(name), "extended-%zu", index);
        put(r, claim_object(r->c, name, json_pack("{s:{s:[]}}", "devices", "requests"), &got[asked->n + k]));
    }
    snprintf(name, sizeof(name), "member-%zu", index);
    json_object_set_new(pod, "apiVersion", json_string("v1"));
    json_object_set_new(pod, "kind", json_string("Pod"));
    json_object_set_new(pod, "metadata", json_pack("{s:s, s:s}", "name", name, "namespace", r->c->spec.ns));
    json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string(member->node));
    put(r, pod);
    snapshot_unref(r->snapshot);
    r->snapshot = snapshot_builder_build(r->c->builder);
}

/* Claims that kube-scheduler makes itself are replayed as planned: nobody can steer them. */
static size_t extended_of(const struct placed_member *member, const struct allocation **out)
{
    for (size_t k = 0; k < member->n_claims; k++)
        if (member->claims[k].source == GANG_CLAIM_EXTENDED) {
            *out = &member->claims[k].allocation;
            return 1;
        }
    return 0;
}

static bool replay_member(struct replay *r, size_t index)
{
    const struct placed_member *member = &r->c->result.placement->members[index];
    const struct allocation *extended = NULL;
    struct asked asked = {.n = 0};
    struct prediction prediction = {0};
    bool held = ask_member(r, index, &asked);

    if (held) {
        size_t n_extended = extended_of(member, &extended);
        struct allocation *got = arena_array(&r->arena, struct allocation, asked.n + 1);

        predict(r->snapshot, member->node, asked.claims, asked.n, 0, &r->arena, &prediction);
        held = prediction.verdict == PREDICT_ALLOCATED;
        for (size_t k = 0; held && k < asked.n; k++) {
            held = same_results(r->c, &prediction.allocations[k], asked.planned[k]);
            got[k] = prediction.allocations[k];
        }
        if (n_extended)
            got[asked.n] = *extended;
        if (held)
            commit_member(r, index, &asked, got, n_extended);
    }
    for (size_t k = 0; k < asked.n; k++)
        json_decref(asked.specs[k]);
    if (!held)
        buf_addf(&r->c->difference, " replay: member %zu on %s: %s", index, member->node,
                 prediction.message ? prediction.message : "other devices than planned");
    return held;
}

/* Take back what a replay has put into the builder. */
static void undo(struct replay *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct placed_member *member = &r->c->result.placement->members[i];
        const struct gang_group *group = &r->c->spec.groups[member->group];
        char name[96];

        snprintf(name, sizeof(name), "member-%zu", i);
        snapshot_builder_remove(r->c->builder, "Pod", r->c->spec.ns, name);
        snprintf(name, sizeof(name), "extended-%zu", i);
        snapshot_builder_remove(r->c->builder, "ResourceClaim", r->c->spec.ns, name);
        for (size_t k = 0; k < group->n_claims; k++) {
            snprintf(name, sizeof(name), "m%zu-%s", i, group->claims[k].pod_claim);
            snapshot_builder_remove(r->c->builder, "ResourceClaim", r->c->spec.ns, name);
        }
    }
}

static bool replay_order(struct one_case *c, const size_t *order, size_t n)
{
    struct replay r = {.c = c, .snapshot = snapshot_builder_build(c->builder)};
    bool held = true;

    arena_init(&r.arena);
    r.shared_done = arena_array(&r.arena, bool, c->spec.n_shared);
    for (size_t i = 0; i < n && held; i++)
        held = replay_member(&r, order[i]);
    undo(&r, n);
    snapshot_unref(r.snapshot);
    arena_release(&r.arena);
    return held;
}

/* The t-th order: of the manifest, its reverse, then mixed ones. */
static void next_order(size_t *order, size_t n, size_t t, struct rng *rng)
{
    for (size_t i = 0; i < n && t < 2; i++)
        order[i] = t == 0 ? i : n - 1 - i;
    for (size_t i = n; i > 1 && t >= 2; i--) {
        size_t j = rng_below(rng, i), kept = order[i - 1];

        order[i - 1] = order[j];
        order[j] = kept;
    }
}

static void sort_by_turn(const struct placement *placement, size_t *order)
{
    for (size_t i = 1; i < placement->n_members; i++)
        for (size_t k = i; k > 0 && placement->members[order[k]].turn < placement->members[order[k - 1]].turn; k--) {
            size_t kept = order[k];

            order[k] = order[k - 1];
            order[k - 1] = kept;
        }
}

/* A placement that only binding can hold must at least be reached in some order. One that needs turns is replayed in
 * orders of them: nobody else can start earlier. */
static void replay(struct one_case *c)
{
    size_t n = c->result.placement->n_members, *order = mem_array(size_t, n);
    bool any = c->result.placement->bind_only, held = !any;
    struct rng rng = {.state = 7};

    for (size_t t = 0; any ? t < ORDERS_FOR_ANY && !held : t < 2 + MIXED_ORDERS && held; t++) {
        next_order(order, n, t, &rng);
        if (c->result.placement->needs_turns)
            sort_by_turn(c->result.placement, order);
        held = replay_order(c, order, n);
        if (any && held)
            buf_clear(&c->difference);
    }
    free(order);
}

/* ---- one case ---- */

static void compare(struct one_case *c)
{
    const json_t *expect = json_object_get(c->document, "expect");

    if (!compare_verdict(c, expect))
        return;
    if (c->result.verdict != GANG_FITS) {
        compare_words(c, expect);
        return;
    }
    compare_nodes(c, expect);
    compare_chosen(c, expect);
    replay(c);
}

static void run_document(struct one_case *c)
{
    struct error err = {0};

    if (!load_cluster(c))
        return;
    if (!load_job(c)) { /* refused at the door */
        if (c->difference.len == 0)
            compare(c);
        return;
    }
    if (gang_fit(c->snapshot, &c->spec, &c->arena, &c->result, &err) < 0) {
        buf_addf(&c->difference, "gang_fit: %s: %s", err.field, err.text);
        return;
    }
    compare(c);
}

static void run_file(const char *path, bool verbose, struct outcome *outcome)
{
    CLEANUP(manifest) *manifest = NULL;
    struct one_case c = {.path = path};
    struct error err = {0};

    arena_init(&c.arena);
    if (manifest_read_file(path, &MANIFEST_LIMITS_DEFAULT, &manifest, &err) < 0) {
        buf_addf(&c.difference, "%s", err.text);
    } else {
        c.document = manifest_document(manifest, 0);
        run_document(&c);
    }
    if (c.difference.len)
        printf("FAIL %s: %s\n", path, buf_str(&c.difference));
    if (verbose)
        printf("%s: %s [%llu steps]\n", path, summary_of(&c), (unsigned long long)c.result.steps);
    outcome->failed += c.difference.len > 0;
    outcome->passed += c.difference.len == 0;
    gang_result_release(&c.result);
    json_decref(c.jobs);
    if (c.snapshot)
        snapshot_unref(c.snapshot);
    snapshot_builder_free(c.builder);
    buf_release(&c.difference);
    arena_release(&c.arena);
}

static int is_case(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 5 && strcmp(entry->d_name + len - 5, ".yaml") == 0;
}

static void run_folder(const char *path, bool verbose, struct outcome *outcome)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, is_case, alphasort);

    for (int i = 0; i < n; i++) {
        BUF file = {0};

        buf_addf(&file, "%s/%s", path, entries[i]->d_name);
        run_file(buf_str(&file), verbose, outcome);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    struct outcome outcome = {0};
    bool verbose = false;

    for (int i = 1; i < argc; i++) {
        struct stat st;

        if (strcmp(argv[i], "-v") == 0) {
            verbose = true;
        } else if (stat(argv[i], &st) < 0) {
            printf("FAIL %s: no such file or folder\n", argv[i]);
            outcome.failed++;
        } else if (S_ISDIR(st.st_mode)) {
            run_folder(argv[i], verbose, &outcome);
        } else {
            run_file(argv[i], verbose, &outcome);
        }
    }
    printf("%zu passed, %zu failed, 0 skipped\n", outcome.passed, outcome.failed);
    return outcome.failed > 0 || outcome.passed == 0;
}
