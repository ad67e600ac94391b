/* bench-explain [--json] [--show] [--nodes N] [--case NAME] - how long it takes to say why a gang does not run, on
 * clusters of 100, 1,000 and 10,000 nodes with eight devices each, two fifths of them in use.
 *
 * Gangs of 64 members that are refused for different reasons; the explanation is the whole one that people are shown:
 * counts, reasons, holders, what would make the gang fit. explain_cold_ms is the first one after loading,
 * explain_warm_ms the median of others on the same cluster; the baseline is the same question with a brief answer,
 * warm, as planning rounds ask it. --show prints the sentences. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allocator/base/mem.h"
#include "allocator/gang.h"
#include "test/bench/cluster.h"

#include "allocator/base/banned.h"

#define DEVICES       8
#define MEMBERS       64
#define NODES_PER_JOB 8

static const struct refusal {
    const char *name;
    int count;
    const char *selector, *match, *memory; /* or NULL */
    const char *cpu, *node_selector;
    bool by_jobs; /* the devices are held by jobs of 8 members, not by claims of others */
} refusals[] = {
    {.name = "held_by_claims", .count = 8},
    {.name = "held_by_jobs", .count = 8, .by_jobs = true},
    {.name = "too_many_on_a_node", .count = 16},
    {.name = "no_such_model", .count = 1, .selector = "device.attributes[\"gpu.example.com\"].productName == \"B200\""},
    {.name = "not_on_one_root", .count = 4, .match = "resource.kubernetes.io/pcieRoot"},
    {.name = "too_much_memory", .count = 1, .memory = "100Gi"},
    {.name = "too_much_cpu", .count = 1, .cpu = "100000"},
    {.name = "no_such_label", .count = 1, .node_selector = "nowhere"},
};

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* one thread: what a core of its own would take */
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- the cluster ---- */

struct loading {
    struct snapshot_builder *builder;
    bool by_jobs;
};

/* The holders of neighbouring nodes are one job. */
static json_t *of_job(const json_t *claim)
{
    const char *name = json_string_value(json_object_get(json_object_get(claim, "metadata"), "name"));
    long job = 1 + strtol(strrchr(name, '-') + 1, NULL, 10) / NODES_PER_JOB;
    json_t *out = json_deep_copy(claim), *metadata = json_object_get(out, "metadata");

    json_object_set_new(metadata, "labels", json_pack("{s:o}", "queue.dra/job", json_sprintf("%ld", job)));
    json_object_set_new(metadata, "name", json_sprintf("train-%ld-1-%s", job, name));
    return out;
}

static json_t *with_amounts(const json_t *node)
{
    json_t *out = json_deep_copy(node);

    json_object_set_new(out, "status",
                        json_pack("{s:{s:s, s:s, s:s}, s:[{s:s, s:s}]}", "allocatable", "cpu", "128", "memory", "1Ti",
                                  "pods", "110", "conditions", "type", "Ready", "status", "True"));
    return out;
}

static void put(void *ctx, const json_t *object)
{
    struct loading *loading = ctx;
    const char *kind = json_string_value(json_object_get(object, "kind"));
    json_t *changed = NULL;
    struct error err = {0};

    if (strcmp(kind, "Node") == 0)
        changed = with_amounts(object);
    else if (loading->by_jobs && strcmp(kind, "ResourceClaim") == 0)
        changed = of_job(object);
    if (snapshot_builder_put(loading->builder, changed ? changed : object, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err.field, err.text);
        exit(1);
    }
    json_decref(changed);
}

static struct snapshot *load(size_t n_nodes, bool by_jobs)
{
    struct features features = features_default(37);
    struct loading loading = {snapshot_builder_new(&features, false), by_jobs};
    struct snapshot *snapshot;

    cluster_each("plain", n_nodes, DEVICES, put, &loading);
    snapshot = snapshot_builder_build(loading.builder);
    snapshot_builder_free(loading.builder);
    return snapshot;
}

/* ---- the gang ---- */

static json_t *template_json(const struct refusal *r)
{
    json_t *exactly = json_pack("{s:s, s:i}", "deviceClassName", "gpu", "count", r->count), *devices;

    if (r->selector)
        json_object_set_new(exactly, "selectors", json_pack("[{s:{s:s}}]", "cel", "expression", r->selector));
    if (r->memory)
        json_object_set_new(exactly, "capacity", json_pack("{s:{s:s}}", "requests", "memory", r->memory));
    devices = json_pack("{s:[{s:s, s:o}]}", "requests", "name", "gpu", "exactly", exactly);
    if (r->match)
        json_object_set_new(devices, "constraints", json_pack("[{s:s}]", "matchAttribute", r->match));
    return json_pack("{s:s, s:s, s:{s:s}, s:{s:{s:o}}}", "apiVersion", "resource.k8s.io/v1", "kind",
                     "ResourceClaimTemplate", "metadata", "name", "t", "spec", "spec", "devices", devices);
}

static json_t *pod_json(const struct refusal *r)
{
    json_t *spec = json_pack("{s:[{s:s, s:{s:{s:s}}}]}", "containers", "name", "main", "resources", "requests", "cpu",
                             r->cpu ? r->cpu : "1");

    if (r->node_selector)
        json_object_set_new(spec, "nodeSelector", json_pack("{s:s}", "rack", r->node_selector));
    return json_pack("{s:{}, s:o}", "metadata", "spec", spec);
}

static double explain_once(const struct snapshot *snapshot, const struct gang_spec *spec, const struct refusal *r,
                           bool show)
{
    struct gang_result result;
    struct arena arena;
    struct error err = {0};
    double start = now_ms(), took;

    arena_init(&arena);
    if (gang_fit(snapshot, spec, &arena, &result, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err.field, err.text);
        exit(1);
    }
    took = now_ms() - start;
    if (result.verdict != GANG_WAITS && result.verdict != GANG_NEVER) {
        fprintf(stderr, "%s is not refused\n", r->name);
        exit(1);
    }
    if (show)
        printf("%-20s %s\n", r->name, json_string_value(json_object_get(result.explanation, "summary")));
    gang_result_release(&result);
    arena_release(&arena);
    return took;
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), compare_double);
    return values[n / 2];
}

static void report(bool json, const char *name, size_t n_nodes, const char *metric, double value, double baseline)
{
    if (json)
        printf("{\"bench\":\"explain\",\"case\":\"%s/%zu\",\"metric\":\"%s\",\"value\":%.3f,\"unit\":\"ms\","
               "\"baseline\":%.3f,\"ratio\":%.4f}\n",
               name, n_nodes, metric, value, baseline, value / baseline);
    else
        printf("%-20s %6zu nodes  %-16s %10.3f ms   brief %10.3f ms\n", name, n_nodes, metric, value, baseline);
    fflush(stdout);
}

static void bench_refusal(size_t n_nodes, const struct refusal *r, bool json, bool show)
{
    json_t *object = template_json(r), *pod = pod_json(r);
    struct gang_claim claim = {.pod_claim = "gpu", .source = GANG_CLAIM_OWN, .object = object, .name = "t"};
    struct gang_group group = {"main", MEMBERS, pod, &claim, 1};
    struct gang_spec spec = {.ns = "lab", .groups = &group, .n_groups = 1}, brief;
    struct snapshot *snapshot = load(n_nodes, r->by_jobs);
    double cold = explain_once(snapshot, &spec, r, show), warm[5], quick[5];

    brief = spec;
    brief.is_brief = true;
    for (size_t i = 0; i < ARRAY_SIZE(warm); i++) {
        warm[i] = explain_once(snapshot, &spec, r, false);
        quick[i] = explain_once(snapshot, &brief, r, false);
    }
    report(json, r->name, n_nodes, "explain_cold_ms", cold, median(quick, ARRAY_SIZE(quick)));
    report(json, r->name, n_nodes, "explain_warm_ms", median(warm, ARRAY_SIZE(warm)), median(quick, ARRAY_SIZE(quick)));
    snapshot_unref(snapshot);
    json_decref(object);
    json_decref(pod);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {100, 1000, 10000};
    const char *only = NULL;
    bool json = false, show = false;
    size_t nodes = 0;

    for (int i = 1; i < argc; i++) {
        json = json || strcmp(argv[i], "--json") == 0;
        show = show || strcmp(argv[i], "--show") == 0;
        if (strcmp(argv[i], "--nodes") == 0 && i + 1 < argc)
            nodes = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--case") == 0 && i + 1 < argc)
            only = argv[++i];
    }
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        for (size_t r = 0; r < ARRAY_SIZE(refusals) && (nodes == 0 || nodes == sizes[i]); r++)
            if (!only || strcmp(only, refusals[r].name) == 0)
                bench_refusal(sizes[i], &refusals[r], json, show);
    return 0;
}
