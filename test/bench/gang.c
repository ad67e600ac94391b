/* bench-gang [--json] [--nodes N] [--pack] - gang plans per second on clusters of 100, 1,000 and 10,000 nodes with
 * eight devices each.
 *
 * Shapes: 8 members of 8 devices, 64 of 8, 512 of 1, and two roles; plain claims, with a selector, with a constraint.
 * plan_cold_ms is the first plan after loading, plan_changed_ms the median of first plans after one device changed
 * (another version of an attribute; the new snapshot is not counted), plan_warm_ms the median of plans on an unchanged
 * cluster; the baseline of both is the cold plan, where nothing is remembered yet. All plans of a gang must be equal.
 *
 * Members are placed by the fragmentation score, for a workload of 24 kinds of pods; with --pack they are packed.
 * (Claims with a constraint are packed in any case.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "allocator/base/mem.h"
#include "allocator/gang.h"

#include "allocator/base/banned.h"

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void put(struct snapshot_builder *builder, json_t *object)
{
    struct error err = {0};

    if (snapshot_builder_put(builder, object, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err.field, err.text);
        exit(1);
    }
    json_decref(object);
}

/* ---- the cluster ---- */

static json_t *device_json(int node, int d, int mark)
{
    return json_pack("{s:o, s:{s:{s:s}, s:{s:o}, s:{s:i}, s:{s:i}}, s:{s:{s:s}}}", "name", json_sprintf("gpu-%d", d),
                     "attributes", "model", "string", node % 4 ? "H100" : "A100", "uuid", "string",
                     json_sprintf("GPU-%d-%d", node, d), "numa", "int", d / 4, "index", "int", d + 100 * mark,
                     "capacity", "memory", "value", "80Gi");
}

/* With another mark the first device is told differently. */
static void put_slice(struct snapshot_builder *builder, int n, int mark)
{
    json_t *devices = json_array();
    char name[32];

    snprintf(name, sizeof(name), "node-%05d", n);
    for (int d = 0; d < 8; d++)
        json_array_append_new(devices, device_json(n, d, d == 0 ? mark : 0));
    put(builder,
        json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:{s:s, s:i, s:i}, s:s, s:o}}", "apiVersion", "resource.k8s.io/v1",
                  "kind", "ResourceSlice", "metadata", "name", name, "spec", "driver", "gpu.example.com", "pool",
                  "name", name, "generation", 1, "resourceSliceCount", 1, "nodeName", name, "devices", devices));
}

static void put_node(struct snapshot_builder *builder, int n)
{
    char name[32];

    snprintf(name, sizeof(name), "node-%05d", n);
    put(builder, json_pack("{s:s, s:s, s:{s:s, s:{s:s, s:o}}, s:{s:{s:s, s:s, s:s}, s:[{s:s, s:s}]}}", "apiVersion",
                           "v1", "kind", "Node", "metadata", "name", name, "labels", "kubernetes.io/hostname", name,
                           "rack", json_sprintf("r%d", n / 16), "status", "allocatable", "cpu", "128", "memory", "1Ti",
                           "pods", "110", "conditions", "type", "Ready", "status", "True"));
    put_slice(builder, n, 0);
}

/* Claims of others hold some devices of every third node. */
static void put_holder(struct snapshot_builder *builder, int n, int n_held)
{
    json_t *results = json_array();
    char name[32], pool[32];

    snprintf(name, sizeof(name), "held-%05d", n);
    snprintf(pool, sizeof(pool), "node-%05d", n);
    for (int d = 0; d < n_held; d++)
        json_array_append_new(results, json_pack("{s:s, s:s, s:s, s:o}", "request", "r", "driver", "gpu.example.com",
                                                 "pool", pool, "device", json_sprintf("gpu-%d", (n + d) % 8)));
    put(builder,
        json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:{s:[]}}, s:{s:{s:{s:o}}}}", "apiVersion", "resource.k8s.io/v1", "kind",
                  "ResourceClaim", "metadata", "name", name, "namespace", "other", "spec", "devices", "requests",
                  "status", "allocation", "devices", "results", results));
}

static struct snapshot *cluster(int n_nodes, struct snapshot_builder **out_builder)
{
    struct features features = features_default(37);
    struct snapshot_builder *builder = snapshot_builder_new(&features, false);

    put(builder, json_pack("{s:s, s:s, s:{s:s}, s:{s:[{s:{s:s}}]}}", "apiVersion", "resource.k8s.io/v1", "kind",
                           "DeviceClass", "metadata", "name", "gpu", "spec", "selectors", "cel", "expression",
                           "device.driver == \"gpu.example.com\""));
    for (int n = 0; n < n_nodes; n++) {
        put_node(builder, n);
        if (n % 3 == 0)
            put_holder(builder, n, 1 + n / 3 % 7);
    }
    *out_builder = builder;
    return snapshot_builder_build(builder);
}

/* ---- the gang ---- */

struct shape {
    const char *name;
    int members, count;
    const char *selector, *constraint; /* or NULL */
    bool two_roles;
};

static const struct shape shapes[] = {
    {"plain_8x8", 8, 8, NULL, NULL, false},
    {"plain_64x8", 64, 8, NULL, NULL, false},
    {"plain_512x1", 512, 1, NULL, NULL, false},
    {"plain_64x1", 64, 1, NULL, NULL, false},
    {"selector_64x4", 64, 4, "device.attributes[\"gpu.example.com\"].model == \"H100\"", NULL, false},
    {"match_64x4", 64, 4, NULL, "gpu.example.com/numa", false},
    {"roles_32x4_32x1", 32, 4, NULL, NULL, true},
};

static json_t *template_json(const struct shape *s, int count)
{
    json_t *exactly = json_pack("{s:s, s:i}", "deviceClassName", "gpu", "count", count), *devices;

    if (s->selector)
        json_object_set_new(exactly, "selectors", json_pack("[{s:{s:s}}]", "cel", "expression", s->selector));
    devices = json_pack("{s:[{s:s, s:o}]}", "requests", "name", "gpu", "exactly", exactly);
    if (s->constraint)
        json_object_set_new(devices, "constraints", json_pack("[{s:s}]", "matchAttribute", s->constraint));
    return json_pack("{s:s, s:s, s:{s:s}, s:{s:{s:o}}}", "apiVersion", "resource.k8s.io/v1", "kind",
                     "ResourceClaimTemplate", "metadata", "name", "t", "spec", "spec", "devices", devices);
}

/* In milliseconds. Every plan of a gang must be the same one: *placement is what the first gave. */
static double plan_once(const struct snapshot *snapshot, const struct gang_spec *spec, json_t **placement)
{
    json_t *given;
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
    given = result.verdict == GANG_FITS ? placement_to_json(result.placement, spec) : json_null();
    if (!*placement)
        *placement = json_incref(given);
    if (json_is_null(given) || !json_equal(given, *placement)) {
        fprintf(stderr, "another answer than that of the first plan\n");
        exit(1);
    }
    json_decref(given);
    gang_result_release(&result);
    arena_release(&arena);
    return took;
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void report(bool json, const char *shape, int n_nodes, const char *metric, double value, const char *unit,
                   double baseline)
{
    if (json)
        printf("{\"bench\":\"gang\",\"case\":\"%s/%d\",\"metric\":\"%s\",\"value\":%.3f,\"unit\":\"%s\"", shape,
               n_nodes, metric, value, unit);
    else
        printf("%-18s %6d nodes  %-16s %12.3f %s", shape, n_nodes, metric, value, unit);
    if (baseline > 0 && json)
        printf(",\"baseline\":%.3f,\"ratio\":%.4f", baseline, value / baseline);
    else if (baseline > 0)
        printf("   nothing remembered %12.3f   x%.1f", baseline, baseline / value);
    printf(json ? "}\n" : "\n");
    fflush(stdout);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), compare_double);
    return values[n / 2];
}

struct bed {
    bool json;
    enum gang_score score;
    const struct gang_workload *workload;
    int n_nodes, mark;
    struct snapshot_builder *builder;
    struct snapshot *snapshot;
};

/* The first plan after one device changed. */
static double plan_changed(struct bed *bed, const struct gang_spec *spec, json_t **placement)
{
    double took[5];

    for (size_t i = 0; i < ARRAY_SIZE(took); i++) {
        put_slice(bed->builder, (int)i * 7 % bed->n_nodes, ++bed->mark);
        snapshot_unref(bed->snapshot);
        bed->snapshot = snapshot_builder_build(bed->builder);
        took[i] = plan_once(bed->snapshot, spec, placement);
    }
    return median(took, ARRAY_SIZE(took));
}

static void measure(struct bed *bed, const struct shape *shape, const struct gang_spec *spec)
{
    json_t *placement = NULL;
    double cold = plan_once(bed->snapshot, spec, &placement), changed, warm[9], middle;

    for (size_t i = 0; i < ARRAY_SIZE(warm); i++)
        warm[i] = plan_once(bed->snapshot, spec, &placement);
    middle = median(warm, ARRAY_SIZE(warm));
    changed = plan_changed(bed, spec, &placement);
    json_decref(placement);
    report(bed->json, shape->name, bed->n_nodes, "plan_cold_ms", cold, "ms", 0);
    report(bed->json, shape->name, bed->n_nodes, "plan_changed_ms", changed, "ms", cold);
    report(bed->json, shape->name, bed->n_nodes, "plan_warm_ms", middle, "ms", cold);
    report(bed->json, shape->name, bed->n_nodes, "per_second", 1e3 / middle, "1/s", 0);
}

static json_t *pod_json(const char *cpu)
{
    return json_pack("{s:{}, s:{s:[{s:s, s:{s:{s:s, s:s}}}]}}", "metadata", "spec", "containers", "name", "main",
                     "resources", "requests", "cpu", cpu, "memory", "8Gi");
}

static void bench_shape(struct bed *bed, const struct shape *shape)
{
    json_t *pod = pod_json("4");
    json_t *first = template_json(shape, shape->count), *second = template_json(shape, 1);
    struct gang_claim claims[2] = {{.pod_claim = "gpu", .source = GANG_CLAIM_OWN, .object = first, .name = "t"},
                                   {.pod_claim = "gpu", .source = GANG_CLAIM_OWN, .object = second, .name = "u"}};
    struct gang_group groups[2] = {{"main", (size_t)shape->members, pod, &claims[0], 1},
                                   {"side", (size_t)shape->members, pod, &claims[1], 1}};
    struct gang_spec spec = {.ns = "lab",
                             .groups = groups,
                             .n_groups = shape->two_roles ? 2 : 1,
                             .score = bed->score,
                             .workload = bed->workload,
                             .is_brief = true};

    measure(bed, shape, &spec);
    json_decref(pod);
    json_decref(first);
    json_decref(second);
}

/* Pods of one, two, four and eight devices, of any model or of one, with few CPUs and with more. */
static struct gang_workload *make_workload(void)
{
    static const char *const selectors[] = {NULL, "device.attributes[\"gpu.example.com\"].model == \"H100\"",
                                            "device.attributes[\"gpu.example.com\"].model == \"A100\""};
    static const char *const cpus[] = {"4", "12"};
    struct features features = features_default(37);
    struct gang_typical typical[24];
    struct gang_workload *workload;
    struct error err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(typical); i++) {
        const struct shape shape = {.selector = selectors[i / 2 % 3]};

        typical[i] = (struct gang_typical){1.0 + (double)i, pod_json(cpus[i % 2]), template_json(&shape, 1 << i / 6)};
    }
    workload = gang_workload_new(typical, ARRAY_SIZE(typical), &features, &err);
    if (!workload) {
        fprintf(stderr, "%s: %s\n", err.field, err.text);
        exit(1);
    }
    for (size_t i = 0; i < ARRAY_SIZE(typical); i++) {
        json_decref((json_t *)(uintptr_t)typical[i].pod);
        json_decref((json_t *)(uintptr_t)typical[i].claim);
    }
    return workload;
}

/* On a cluster of its own for every shape, so that cold is cold. */
static void bench_cluster(int n_nodes, bool json, enum gang_score score)
{
    struct gang_workload *workload = make_workload();
    struct rusage usage;

    for (size_t s = 0; s < ARRAY_SIZE(shapes); s++) {
        struct bed bed = {.json = json, .score = score, .workload = workload, .n_nodes = n_nodes};

        bed.snapshot = cluster(n_nodes, &bed.builder);
        bench_shape(&bed, &shapes[s]);
        snapshot_unref(bed.snapshot);
        snapshot_builder_free(bed.builder);
    }
    gang_workload_free(workload);
    getrusage(RUSAGE_SELF, &usage);
    report(json, "all", n_nodes, "peak_rss_mib", (double)usage.ru_maxrss / 1024, "MiB", 0);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {100, 1000, 10000};
    enum gang_score score = GANG_SCORE_FRAGMENTATION;
    bool json = false;
    long nodes = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--pack") == 0)
            score = GANG_SCORE_PACK;
        else if (strcmp(argv[i], "--nodes") == 0 && i + 1 < argc)
            nodes = strtol(argv[++i], NULL, 10);
    }
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        if (nodes == 0 || nodes == sizes[i])
            bench_cluster(sizes[i], json, score);
    return 0;
}
