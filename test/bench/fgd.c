/* bench-fgd [--json] --trace DIR --workload NAME [--seeds N] - the experiment of fragmentation gradient descent,
 * through the planner.
 *
 * Empty cluster, pods drawn at random with replacement until their GPU demand is 130 % of the cluster's GPUs, offered
 * one after the other; each is a job of one pod. Every GPU is a device with a model and a capacity of 1000 "milli" that
 * can be shared; a fractional pod asks for a part of one, a whole-GPU pod for all of each of its GPUs; wanted models
 * are a CEL selector; CPU and memory are ordinary requests. What is planned is taken on the next snapshot. The workload
 * that the score knows is the trace's own distribution of pods.
 *
 * Reports allocated_percent_100 and allocated_percent_130, the mean of the seeds, beside the published figures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allocator/base/mem.h"
#include "allocator/base/rng.h"
#include "allocator/gang.h"

#include "allocator/base/banned.h"

#define MAX_FIELDS  16
#define MAX_TYPICAL 256

struct pod {
    long cpu, memory, gpus, milli;
    char spec[160];
    size_t kind; /* index of the first pod like it */
};
struct trace {
    struct pod *pods;
    size_t n_pods, cap_pods;
    size_t n_gpus;
};

static const struct published {
    const char *workload;
    double at_100, at_130;
} published[] /* of that policy, in percent of all GPUs */ = {{"default", 95.23, 95.39},
                                                              {"gpuspec33", 87.84, 94.55},
                                                              {"multigpu50", 97.09, 97.18},
                                                              {"gpushare100", 86.64, 86.90}};

/* ---- reading ---- */

static size_t split(char *line, char **fields)
{
    size_t n = 0;

    line[strcspn(line, "\r\n")] = 0;
    for (char *at = line; at && n < MAX_FIELDS; n++) {
        fields[n] = at;
        at = strchr(at, ',');
        if (at)
            *at++ = 0;
    }
    return n;
}

/* Call `row` with the values of the named columns for every line. */
static void read_csv(const char *path, const char *const *columns, size_t n_columns,
                     void (*row)(void *ctx, char *const *values), void *ctx)
{
    FILE *file = fopen(path, "r");
    char line[4096], *fields[MAX_FIELDS], *values[MAX_FIELDS], empty[1] = "";
    size_t at[MAX_FIELDS];
    bool is_head = true;

    if (!file) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    while (fgets(line, sizeof(line), file)) {
        size_t n = split(line, fields);

        for (size_t c = 0; c < n_columns; c++) {
            if (is_head)
                at[c] = SIZE_MAX;
            for (size_t f = 0; is_head && f < n; f++)
                if (strcmp(fields[f], columns[c]) == 0)
                    at[c] = f;
            values[c] = at[c] < n ? fields[at[c]] : empty;
        }
        if (!is_head)
            row(ctx, values);
        is_head = false;
    }
    fclose(file);
}

static long number(const char *text)
{
    return (long)strtod(text, NULL);
}

static void add_pod(void *ctx, char *const *v)
{
    struct trace *t = ctx;
    struct pod pod = {.cpu = number(v[0]), .memory = number(v[1]), .gpus = number(v[2]), .milli = number(v[3])};

    snprintf(pod.spec, sizeof(pod.spec), "%s", v[4]);
    if (pod.gpus != 1)
        pod.milli = 1000;
    pod.kind = t->n_pods;
    for (size_t i = 0; i < t->n_pods && pod.kind == t->n_pods; i++)
        if (t->pods[i].cpu == pod.cpu && t->pods[i].memory == pod.memory && t->pods[i].gpus == pod.gpus &&
            t->pods[i].milli == pod.milli && strcmp(t->pods[i].spec, pod.spec) == 0)
            pod.kind = t->pods[i].kind;
    mem_grow(t->pods, t->n_pods, t->cap_pods);
    t->pods[t->n_pods++] = pod;
}

/* ---- the cluster ---- */

struct loading {
    struct snapshot_builder *builder;
    struct trace *trace;
};

static void put(struct snapshot_builder *builder, json_t *object)
{
    struct error err = {0};

    if (snapshot_builder_put(builder, object, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err.field, err.text);
        exit(1);
    }
    json_decref(object);
}

static json_t *gpu_json(const char *node, long index, const char *model)
{
    return json_pack("{s:o, s:{s:{s:s}, s:{s:o}}, s:{s:{s:s, s:{s:s, s:{s:s, s:s, s:s}}}}, s:b}", "name",
                     json_sprintf("gpu-%ld", index), "attributes", "model", "string", model, "uuid", "string",
                     json_sprintf("%s-%ld", node, index), "capacity", "milli", "value", "1000", "requestPolicy",
                     "default", "1000", "validRange", "min", "1", "max", "1000", "step", "1",
                     "allowMultipleAllocations", 1);
}

static void add_node(void *ctx, char *const *v)
{
    struct loading *l = ctx;
    json_t *gpus = json_array();

    put(l->builder,
        json_pack("{s:s, s:s, s:{s:s}, s:{s:{s:o, s:o, s:s}, s:[{s:s, s:s}]}}", "apiVersion", "v1", "kind", "Node",
                  "metadata", "name", v[0], "status", "allocatable", "cpu", json_sprintf("%sm", v[1]), "memory",
                  json_sprintf("%sMi", v[2]), "pods", "1000", "conditions", "type", "Ready", "status", "True"));
    for (long i = 0; i < number(v[3]); i++)
        json_array_append_new(gpus, gpu_json(v[0], i, v[4]));
    l->trace->n_gpus += json_array_size(gpus);
    if (json_array_size(gpus) > 0)
        put(l->builder,
            json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:{s:s, s:i, s:i}, s:s, s:O}}", "apiVersion", "resource.k8s.io/v1",
                      "kind", "ResourceSlice", "metadata", "name", v[0], "spec", "driver", "gpu.example.com", "pool",
                      "name", v[0], "generation", 1, "resourceSliceCount", 1, "nodeName", v[0], "devices", gpus));
    json_decref(gpus);
}

static struct snapshot_builder *load_cluster(const char *dir, struct trace *trace)
{
    static const char *const columns[] = {"sn", "cpu_milli", "memory_mib", "gpu", "model"};
    struct features features = features_default(37);
    struct loading loading = {snapshot_builder_new(&features, false), trace};
    BUF path = {0};

    put(loading.builder, json_pack("{s:s, s:s, s:{s:s}, s:{s:[{s:{s:s}}]}}", "apiVersion", "resource.k8s.io/v1", "kind",
                                   "DeviceClass", "metadata", "name", "gpu", "spec", "selectors", "cel", "expression",
                                   "device.driver == \"gpu.example.com\""));
    buf_addf(&path, "%s/openb_node_list_all_node.csv", dir);
    read_csv(buf_str(&path), columns, ARRAY_SIZE(columns), add_node, &loading);
    return loading.builder;
}

/* ---- pods as objects ---- */

static json_t *pod_json(const struct pod *pod)
{
    return json_pack("{s:{}, s:{s:[{s:s, s:{s:{s:o, s:o}}}]}}", "metadata", "spec", "containers", "name", "main",
                     "resources", "requests", "cpu", json_sprintf("%ldm", pod->cpu), "memory",
                     json_sprintf("%ldMi", pod->memory));
}

/* "V100M16|V100M32" as a selector. */
static json_t *selectors_json(const char *spec)
{
    json_t *list = json_array();
    BUF text = {0};

    if (!*spec)
        return list;
    buf_adds(&text, "device.attributes[\"gpu.example.com\"].model in [\"");
    for (const char *p = spec; *p; p++)
        if (*p == '|')
            buf_adds(&text, "\", \"");
        else
            buf_addc(&text, *p);
    buf_adds(&text, "\"]");
    json_array_append_new(list, json_pack("{s:{s:s}}", "cel", "expression", buf_str(&text)));
    return list;
}

static json_t *template_json(const struct pod *pod)
{
    json_t *exactly;

    if (pod->gpus == 0)
        return NULL;
    exactly =
        json_pack("{s:s, s:I, s:o, s:{s:{s:o}}}", "deviceClassName", "gpu", "count", (json_int_t)pod->gpus, "selectors",
                  selectors_json(pod->spec), "capacity", "requests", "milli", json_sprintf("%ld", pod->milli));
    return json_pack("{s:s, s:s, s:{s:s}, s:{s:{s:{s:[{s:s, s:o}]}}}}", "apiVersion", "resource.k8s.io/v1", "kind",
                     "ResourceClaimTemplate", "metadata", "name", "gpu", "spec", "spec", "devices", "requests", "name",
                     "gpu", "exactly", exactly);
}

struct job { /* a kind of pod, made once */
    json_t *pod, *claim;
    size_t count; /* in the trace */
};

static struct job *make_jobs(const struct trace *trace)
{
    struct job *jobs = mem_array(struct job, trace->n_pods);

    for (size_t i = 0; i < trace->n_pods; i++) {
        struct job *job = &jobs[trace->pods[i].kind];

        if (!job->pod) {
            job->pod = pod_json(&trace->pods[i]);
            job->claim = template_json(&trace->pods[i]);
        }
        job->count++;
    }
    return jobs;
}

static int compare_typical(const void *a, const void *b)
{
    const struct gang_typical *x = a, *y = b;

    return x->weight > y->weight ? -1 : x->weight < y->weight;
}

/* The most common kinds of pods. */
static struct gang_workload *make_workload(const struct trace *trace, const struct job *jobs)
{
    struct gang_typical *all = mem_array(struct gang_typical, trace->n_pods);
    struct features features = features_default(37);
    struct gang_workload *workload;
    struct error err = {0};
    size_t n = 0;

    for (size_t i = 0; i < trace->n_pods; i++)
        if (jobs[i].count)
            all[n++] = (struct gang_typical){(double)jobs[i].count, jobs[i].pod, jobs[i].claim};
    qsort(all, n, sizeof(*all), compare_typical);
    workload = gang_workload_new(all, n < MAX_TYPICAL ? n : MAX_TYPICAL, &features, &err);
    if (!workload) {
        fprintf(stderr, "%s: %s\n", err.field, err.text);
        exit(1);
    }
    free(all);
    return workload;
}

/* ---- one run ---- */

struct run {
    double allocated, offered, gpus; /* in thousandths */
    double at_100;
    size_t n_offered, n_placed;
};

static bool offer(struct snapshot **snapshot, const struct job *job, const struct gang_workload *workload)
{
    struct gang_claim claim = {.pod_claim = "gpu", .source = GANG_CLAIM_OWN, .object = job->claim, .name = "gpu"};
    struct gang_group group = {
        .name = "main", .n_members = 1, .pod = job->pod, .claims = &claim, .n_claims = job->claim != NULL};
    struct gang_spec spec = {.ns = "lab", .groups = &group, .n_groups = 1, .workload = workload, .is_brief = true};
    struct gang_result result;
    struct arena arena;
    struct error err = {0};
    bool fits;

    arena_init(&arena);
    if (gang_fit(*snapshot, &spec, &arena, &result, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err.field, err.text);
        exit(1);
    }
    fits = result.verdict == GANG_FITS;
    if (fits) {
        struct snapshot *next = snapshot_with(*snapshot, result.placement);

        snapshot_unref(*snapshot);
        *snapshot = next;
    }
    gang_result_release(&result);
    arena_release(&arena);
    return fits;
}

static struct run run_seed(const struct snapshot *empty, const struct trace *trace, const struct job *jobs,
                           const struct gang_workload *workload, uint64_t seed)
{
    struct snapshot *snapshot = snapshot_ref(empty);
    struct rng rng = {.state = seed};
    struct run run = {.gpus = (double)trace->n_gpus * 1000};

    while (run.offered < run.gpus * 1.3) {
        const struct pod *pod = &trace->pods[rng_below(&rng, trace->n_pods)];
        double demand = (double)(pod->gpus * pod->milli);

        if (run.offered <= run.gpus && run.offered + demand > run.gpus)
            run.at_100 = run.allocated;
        run.offered += demand;
        run.n_offered++;
        if (offer(&snapshot, &jobs[pod->kind], workload)) {
            run.allocated += demand;
            run.n_placed++;
        }
    }
    snapshot_unref(snapshot);
    return run;
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void report(bool json, const char *name, const char *metric, double value, const char *unit, double baseline)
{
    if (json)
        printf("{\"bench\":\"fgd\",\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.2f,\"unit\":\"%s\"", name, metric,
               value, unit);
    else
        printf("%-12s %-22s %8.2f %s", name, metric, value, unit);
    if (baseline > 0 && json)
        printf(",\"published\":%.2f,\"difference\":%.2f", baseline, value - baseline);
    else if (baseline > 0)
        printf("   published %8.2f   %+.2f", baseline, value - baseline);
    printf(json ? "}\n" : "\n");
    fflush(stdout);
}

static void report_seed(size_t seed, const struct run *run, double took_s)
{
    printf("seed %zu: %zu pods offered, %zu placed, %.2f %% at 100 %%, %.2f %% at 130 %% of demand, %.1f s\n", seed,
           run->n_offered, run->n_placed, 100 * run->at_100 / run->gpus, 100 * run->allocated / run->gpus, took_s);
    fflush(stdout);
}

static const struct published *find_published(const char *workload)
{
    static const struct published none;

    for (size_t i = 0; i < ARRAY_SIZE(published); i++)
        if (strcmp(published[i].workload, workload) == 0)
            return &published[i];
    return &none;
}

static void run_seeds(const struct snapshot *empty, const struct trace *trace, const struct job *jobs,
                      const struct gang_workload *workload, const char *name, size_t n_seeds, bool json)
{
    const struct published *known = find_published(name);
    double sum_100 = 0, sum_130 = 0, start = now_s(), n = (double)n_seeds;
    double cpu = (double)clock() / CLOCKS_PER_SEC;

    for (size_t seed = 1; seed <= n_seeds; seed++) {
        double begin = now_s();
        struct run run = run_seed(empty, trace, jobs, workload, seed);

        if (!json)
            report_seed(seed, &run, now_s() - begin);
        sum_100 += 100 * run.at_100 / run.gpus;
        sum_130 += 100 * run.allocated / run.gpus;
    }
    report(json, name, "allocated_percent_100", sum_100 / n, "percent", known->at_100);
    report(json, name, "allocated_percent_130", sum_130 / n, "percent", known->at_130);
    report(json, name, "seconds_per_run", (now_s() - start) / n, "s", 0);
    report(json, name, "cpu_seconds_per_run", ((double)clock() / CLOCKS_PER_SEC - cpu) / n, "s", 0);
}

static void run_all(const char *dir, const char *workload_name, size_t n_seeds, bool json)
{
    static const char *const columns[] = {"cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"};
    struct trace trace = {0};
    struct snapshot_builder *builder = load_cluster(dir, &trace);
    struct snapshot *empty = snapshot_builder_build(builder);
    struct gang_workload *workload;
    struct job *jobs;
    BUF path = {0};

    buf_addf(&path, "%s/openb_pod_list_%s.csv", dir, workload_name);
    read_csv(buf_str(&path), columns, ARRAY_SIZE(columns), add_pod, &trace);
    jobs = make_jobs(&trace);
    workload = make_workload(&trace, jobs);
    run_seeds(empty, &trace, jobs, workload, workload_name, n_seeds, json);
    for (size_t i = 0; i < trace.n_pods; i++) {
        json_decref(jobs[i].pod);
        json_decref(jobs[i].claim);
    }
    free(jobs);
    free(trace.pods);
    gang_workload_free(workload);
    snapshot_unref(empty);
    snapshot_builder_free(builder);
}

int main(int argc, char **argv)
{
    const char *dir = NULL, *workload = "default";
    size_t n_seeds = 10;
    bool json = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--trace") == 0 && i + 1 < argc)
            dir = argv[++i];
        else if (strcmp(argv[i], "--workload") == 0 && i + 1 < argc)
            workload = argv[++i];
        else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc)
            n_seeds = strtoul(argv[++i], NULL, 10);
    }
    if (!dir || n_seeds == 0) {
        fprintf(
            stderr,
            "usage: bench-fgd [--json] --trace DIR --workload default|gpuspec33|multigpu50|gpushare100 [--seeds N]\n");
        return 2;
    }
    run_all(dir, workload, n_seeds, json);
    return 0;
}
