/* bench-allocator [--json] [--nodes N[,N...]] [--kind KIND] [--inventory FILE] [--warm ROUNDS]
 *
 * How fast the allocator predicts.
 *
 * For clusters of 100, 1,000 and 10,000 nodes with 8 devices, and for each kind of claim:
 *
 * - predict_warm_ns: one pod over all nodes, asked again: every expression, and every answer on an unchanged node, is
 *   known; per_second: how many of these in a second
 * - predict_cold_ns: the first prediction after loading
 * - predict_changed_ns: one pod over all nodes after one device changed
 * - change_device_us, change_claim_us: to absorb a changed slice or claim into a new snapshot
 * - load_ms, peak_rss_kib
 *
 * The baseline of the three predictions is the plain search, which mirrors the specification: no equivalence, no
 * tables, no memory of answers; it must give the same answers, which is checked first. --inventory reads objects as
 * JSON lines, the pod's claim last, and measures those instead. --warm only asks again so many times, in a function of
 * its own, so that instructions can be counted (README.md). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/model.h"
#include "test/bench/cluster.h"

#include "allocator/base/banned.h"

#define DEVICES 8

struct run {
    bool json;
    const char *label; /* "plain/1000" */
    struct features features;
    struct snapshot_builder *builder;
    struct arena claim_arena;
    struct claim *claim;
    long warm_rounds; /* 0: everything is measured */
};

/* ---- measuring ---- */

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), by_value);
    return values[n / 2];
}

static void report(const struct run *b, const char *metric, double value, const char *unit, double baseline)
{
    if (!b->json) {
        printf("%-22s %-20s %14.1f %-4s", b->label, metric, value, unit);
        if (baseline > 0)
            printf("  plain search %14.1f  x%.1f", baseline, baseline / value);
        printf("\n");
        return;
    }
    printf("{\"bench\":\"allocator\",\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.1f,\"unit\":\"%s\"", b->label,
           metric, value, unit);
    if (baseline > 0)
        printf(",\"baseline\":%.1f,\"ratio\":%.3f", baseline, value / baseline);
    printf("}\n");
}

static long peak_rss_kib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* ---- predicting ---- */

static size_t predict_all(const struct run *b, const struct snapshot *snapshot, bool plain)
{
    const struct claim *claims[] = {b->claim};
    struct search_options options = {.plain = plain};
    struct shape *shape = shape_new(snapshot, claims, 1);
    struct arena arena = {0};
    size_t n, n_fit = 0;
    const uint32_t *nodes = snapshot_sorted_nodes(snapshot, &n);
    struct arena_mark mark = arena_mark(&arena);

    for (size_t i = 0; i < n; i++) {
        struct prediction prediction;

        predict_shape(shape, NULL, snapshot_node(snapshot, nodes[i]), &options, &arena, &prediction);
        n_fit += prediction.verdict == PREDICT_ALLOCATED;
        arena_rewind(&arena, mark);
    }
    arena_release(&arena);
    shape_free(shape);
    return n_fit;
}

/* Median time of predictions over at least `n` rounds. */
static double time_predictions(const struct run *b, const struct snapshot *snapshot, bool plain, size_t n)
{
    double *times = mem_array(double, n);
    double result;

    for (size_t i = 0; i < n; i++) {
        int64_t start = now_ns();

        predict_all(b, snapshot, plain);
        times[i] = (double)(now_ns() - start);
    }
    result = median(times, n);
    free(times);
    return result;
}

static char *answer_text(const struct run *b, const struct snapshot *snapshot, const struct node *node, bool plain)
{
    const struct claim *claims[] = {b->claim};
    struct search_options options = {.plain = plain};
    struct shape *shape = shape_new(snapshot, claims, 1);
    struct arena arena = {0};
    struct prediction prediction;
    char *text;

    predict_shape(shape, NULL, node, &options, &arena, &prediction);
    if (prediction.verdict == PREDICT_ALLOCATED) {
        json_t *json = allocation_to_json(&prediction.allocations[0], NULL, NULL);

        text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
        json_decref(json);
    } else {
        text = mem_strdup(prediction.message);
    }
    arena_release(&arena);
    shape_free(shape);
    return text;
}

/* The fast search must say the same as the plain one. */
static void check_answers(const struct run *b, const struct snapshot *snapshot)
{
    size_t n, step;
    const uint32_t *nodes = snapshot_sorted_nodes(snapshot, &n);

    step = n > 1000 ? n / 500 : 1;
    for (size_t i = 0; i < n; i += step) {
        const struct node *node = snapshot_node(snapshot, nodes[i]);
        char *fast = answer_text(b, snapshot, node, false), *plain = answer_text(b, snapshot, node, true);

        if (strcmp(fast, plain) != 0) {
            fprintf(stderr, "%s: node %s: answers differ\n  fast:  %s\n  plain: %s\n", b->label, node->info->name, fast,
                    plain);
            exit(1);
        }
        free(fast);
        free(plain);
    }
}

/* ---- loading ---- */

static void put_object(void *ctx, const json_t *object)
{
    struct run *b = ctx;
    struct error err = {0};

    if (snapshot_builder_put(b->builder, object, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err.field, err.text);
        exit(1);
    }
}

static void take_claim(struct run *b, const json_t *object)
{
    struct error err = {0};

    arena_release(&b->claim_arena);
    if (claim_parse(object, &b->features, false, &b->claim_arena, &b->claim, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err.field, err.text);
        exit(1);
    }
}

struct source {
    const char *kind, *file;
    size_t n_nodes;
};

static void load_file(struct run *b, const char *path)
{
    FILE *file = fopen(path, "r");
    json_t *last = NULL;
    char *line = NULL;
    size_t cap = 0;

    if (!file) {
        perror(path);
        exit(1);
    }
    while (getline(&line, &cap, file) > 0) {
        json_t *object = json_loads(line, 0, NULL);

        if (last)
            put_object(b, last);
        json_decref(last);
        last = object;
    }
    free(line);
    fclose(file);
    take_claim(b, last);
    json_decref(last);
}

static struct snapshot *load(struct run *b, const struct source *source)
{
    b->builder = snapshot_builder_new(&b->features, false);
    if (source->file) {
        load_file(b, source->file);
    } else {
        json_t *claim = cluster_claim(source->kind);

        cluster_each(source->kind, source->n_nodes, DEVICES, put_object, b);
        take_claim(b, claim);
        json_decref(claim);
    }
    return snapshot_builder_build(b->builder);
}

static void unload(struct run *b, struct snapshot *snapshot)
{
    snapshot_unref(snapshot);
    snapshot_builder_free(b->builder);
    b->builder = NULL;
}

/* ---- cold, warm, changed ---- */

static double time_cold(struct run *b, const struct source *source, size_t rounds)
{
    double times[16];

    for (size_t i = 0; i < rounds; i++) {
        struct snapshot *snapshot = load(b, source);
        int64_t start = now_ns();

        predict_all(b, snapshot, false);
        times[i] = (double)(now_ns() - start);
        unload(b, snapshot);
    }
    return median(times, rounds);
}

static void bench_predictions(struct run *b, const struct source *source)
{
    size_t rounds = source->n_nodes > 1000 ? 3 : 9;
    double cold = time_cold(b, source, rounds), warm, plain;
    int64_t start = now_ns();
    struct snapshot *snapshot = load(b, source);
    double load_ms = (double)(now_ns() - start) / 1e6;

    check_answers(b, snapshot);
    plain = time_predictions(b, snapshot, true, rounds);
    predict_all(b, snapshot, false);
    warm = time_predictions(b, snapshot, false, source->n_nodes > 1000 ? 25 : 200);
    report(b, "predict_warm_ns", warm, "ns", plain);
    report(b, "predict_cold_ns", cold, "ns", plain);
    report(b, "per_second", 1e9 / warm, "1/s", 0);
    report(b, "fitting_nodes", (double)predict_all(b, snapshot, false), "", 0);
    report(b, "load_ms", load_ms, "ms", 0);
    unload(b, snapshot);
}

static void bench_changes(struct run *b, const struct source *source)
{
    enum { N = 101 };
    struct snapshot *snapshot = load(b, source);
    double change[N], changed[N];

    predict_all(b, snapshot, false);
    for (unsigned i = 0; i < N; i++) {
        json_t *slice = cluster_changed_slice(source->kind, (i * 7919u) % source->n_nodes, DEVICES, i);
        struct snapshot *next;
        int64_t start = now_ns();

        put_object(b, slice);
        next = snapshot_builder_build(b->builder);
        snapshot_unref(snapshot);
        change[i] = (double)(now_ns() - start) / 1e3;
        snapshot = next;
        start = now_ns();
        predict_all(b, snapshot, false);
        changed[i] = (double)(now_ns() - start);
        json_decref(slice);
    }
    report(b, "change_device_us", median(change, N), "us", 0);
    report(b, "predict_changed_ns", median(changed, N), "ns", 0);
    unload(b, snapshot);
}

/* A claim that takes or gives back one device. */
static json_t *changed_claim(size_t node, bool holds)
{
    char pool[32];

    snprintf(pool, sizeof(pool), "node-%04zu", node);
    return holds ? json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:{s:{s:[{s:s, s:s, s:s, s:s}]}}}}", "apiVersion",
                             "resource.k8s.io/v1", "kind", "ResourceClaim", "metadata", "name", "changing", "namespace",
                             "default", "status", "allocation", "devices", "results", "request", "r", "driver",
                             "gpu.example.com", "pool", pool, "device", "gpu-0")
                 : json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "resource.k8s.io/v1", "kind", "ResourceClaim",
                             "metadata", "name", "changing", "namespace", "default");
}

static void bench_claims(struct run *b, const struct source *source)
{
    enum { N = 101 };
    struct snapshot *snapshot = load(b, source);
    double change[N];

    for (size_t i = 0; i < N; i++) {
        json_t *claim = changed_claim((i / 2 * 7919) % source->n_nodes, i % 2 == 0);
        struct snapshot *next;
        int64_t start = now_ns();

        put_object(b, claim);
        next = snapshot_builder_build(b->builder);
        snapshot_unref(snapshot);
        change[i] = (double)(now_ns() - start) / 1e3;
        snapshot = next;
        json_decref(claim);
    }
    report(b, "change_claim_us", median(change, N), "us", 0);
    report(b, "peak_rss_kib", (double)peak_rss_kib(), "KiB", 0);
    unload(b, snapshot);
}

static size_t count_nodes(struct run *b, const struct source *source)
{
    struct snapshot *snapshot = load(b, source);
    size_t n = snapshot_n_nodes(snapshot);

    unload(b, snapshot);
    return n;
}

/* Not inlined: what counts instructions begins and ends with it. */
__attribute__((noinline)) static size_t predict_warm(const struct run *b, const struct snapshot *snapshot)
{
    size_t n_fit = 0;

    for (long i = 0; i < b->warm_rounds; i++)
        n_fit += predict_all(b, snapshot, false);
    return n_fit;
}

static void bench_warm(struct run *b, const struct source *source)
{
    struct snapshot *snapshot = load(b, source);
    size_t n_fit = predict_all(b, snapshot, false);

    INVARIANT(predict_warm(b, snapshot) == n_fit * (size_t)b->warm_rounds);
    unload(b, snapshot);
}

static void bench_source(struct run *b, const struct source *source)
{
    char label[64];

    snprintf(label, sizeof(label), "%s/%zu", source->kind, source->file ? count_nodes(b, source) : source->n_nodes);
    b->label = label;
    if (b->warm_rounds > 0) {
        bench_warm(b, source);
        return;
    }
    bench_predictions(b, source);
    if (!source->file) {
        bench_changes(b, source);
        bench_claims(b, source);
    }
    fflush(stdout);
}

/* ---- the command line ---- */

struct arguments {
    const char *kind, *file;
    char *nodes;
};

static int parse_arguments(int argc, char **argv, struct run *b, struct arguments *out)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            b->json = true;
        else if (strcmp(argv[i], "--nodes") == 0 && i + 1 < argc)
            out->nodes = argv[++i];
        else if (strcmp(argv[i], "--kind") == 0 && i + 1 < argc)
            out->kind = argv[++i];
        else if (strcmp(argv[i], "--inventory") == 0 && i + 1 < argc)
            out->file = argv[++i];
        else if (strcmp(argv[i], "--warm") == 0 && i + 1 < argc)
            b->warm_rounds = strtol(argv[++i], NULL, 10);
        else
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static char sizes[] = "100,1000,10000";
    struct run b = {.features = features_default(37)};
    struct arguments arguments = {.nodes = sizes};
    char *end;

    if (parse_arguments(argc, argv, &b, &arguments) < 0) {
        fprintf(
            stderr,
            "usage: bench-allocator [--json] [--nodes N[,N...]] [--kind KIND] [--inventory FILE] [--warm ROUNDS]\n");
        return 2;
    }
    if (arguments.file) {
        bench_source(&b,
                     &(struct source){.kind = arguments.kind ? arguments.kind : "inventory", .file = arguments.file});
        arena_release(&b.claim_arena);
        return 0;
    }
    for (char *at = arguments.nodes; *at; at = *end ? end + 1 : end) {
        size_t n_nodes = strtoul(at, &end, 10);

        for (size_t k = 0; k < n_cluster_kinds && n_nodes; k++)
            if (!arguments.kind || strcmp(arguments.kind, cluster_kinds[k]) == 0)
                bench_source(&b, &(struct source){.kind = cluster_kinds[k], .n_nodes = n_nodes});
        if (end == at)
            return 2;
    }
    arena_release(&b.claim_arena);
    return 0;
}
