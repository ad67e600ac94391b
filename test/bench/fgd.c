/* bench-fgd [--json] --trace DIR --workload NAME [--seeds N] [--first N] [--gang N] [--roles N] [--placement NAME] -
 * the experiment of fragmentation gradient descent, through the planner.
 *
 * Empty cluster, pods drawn at random with replacement until their GPU demand is 130 % of the cluster's GPUs, offered
 * one after the other; each is a job of one pod. Every GPU is a device with a model and a capacity of 1000 "milli" that
 * can be shared; a fractional pod asks for a part of one, a whole-GPU pod for all of each of its GPUs; wanted models
 * are a CEL selector; CPU and memory are ordinary requests. What is planned is taken on the next snapshot. The workload
 * that the score knows is the trace's own distribution of pods.
 *
 * With --gang N a job is N members, all placed or none: as many groups as --roles says (1), each of pods like one that
 * is drawn. --placement is fragmentation, pack or spread. The published figures are for single pods placed by the
 * score.
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
#define MAX_ROLES   4

static const char *const role_names[MAX_ROLES] = {"a", "b", "c", "d"};

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

struct bench {
    const struct snapshot *empty;
    const struct trace *trace;
    const struct job *jobs;
    const struct gang_workload *workload;
    enum gang_score score;
    size_t n_members, n_roles; /* of every job */
};

struct run {
    double allocated, offered, gpus; /* in thousandths */
    double at_100;
    size_t n_offered, n_placed;
};

static bool offer(struct snapshot **snapshot, const struct bench *bench, const struct pod *const *roles)
{
    struct gang_claim claims[MAX_ROLES];
    struct gang_group groups[MAX_ROLES];
    struct gang_spec spec = {.ns = "lab",
                             .groups = groups,
                             .n_groups = bench->n_roles,
                             .score = bench->score,
                             .workload = bench->workload,
                             .is_brief = true};
    struct gang_result result;
    struct arena arena;
    struct error err = {0};
    bool fits;

    for (size_t r = 0; r < bench->n_roles; r++) {
        const struct job *job = &bench->jobs[roles[r]->kind];

        claims[r] =
            (struct gang_claim){.pod_claim = "gpu", .source = GANG_CLAIM_OWN, .object = job->claim, .name = "gpu"};
        groups[r] = (struct gang_group){.name = role_names[r],
                                        .n_members = bench->n_members / bench->n_roles,
                                        .pod = job->pod,
                                        .claims = &claims[r],
                                        .n_claims = job->claim != NULL};
    }
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

static struct run run_seed(const struct bench *bench, uint64_t seed)
{
    struct snapshot *snapshot = snapshot_ref(bench->empty);
    struct rng rng = {.state = seed};
    struct run run = {.gpus = (double)bench->trace->n_gpus * 1000};

    while (run.offered < run.gpus * 1.3) {
        const struct pod *roles[MAX_ROLES];
        double demand = 0;

        for (size_t r = 0; r < bench->n_roles; r++) {
            roles[r] = &bench->trace->pods[rng_below(&rng, bench->trace->n_pods)];
            demand += (double)(roles[r]->gpus * roles[r]->milli) * (double)(bench->n_members / bench->n_roles);
        }
        if (run.offered <= run.gpus && run.offered + demand > run.gpus)
            run.at_100 = run.allocated;
        run.offered += demand;
        run.n_offered++;
        if (offer(&snapshot, bench, roles)) {
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
    printf("seed %zu: %zu jobs offered, %zu placed, %.2f %% at 100 %%, %.2f %% at 130 %% of demand, %.1f s\n", seed,
           run->n_offered, run->n_placed, 100 * run->at_100 / run->gpus, 100 * run->allocated / run->gpus, took_s);
    fflush(stdout);
}

static const struct published *find_published(const struct bench *bench, const char *workload)
{
    static const struct published none;
    bool is_theirs = bench->n_members == 1 && bench->score == GANG_SCORE_FRAGMENTATION;

    for (size_t i = 0; is_theirs && i < ARRAY_SIZE(published); i++)
        if (strcmp(published[i].workload, workload) == 0)
            return &published[i];
    return &none;
}

struct options {
    const char *dir, *workload;
    size_t first, n_seeds, n_members, n_roles;
    enum gang_score score;
    bool json;
};

static void run_seeds(const struct bench *bench, const struct options *o)
{
    const struct published *known = find_published(bench, o->workload);
    double sum_100 = 0, sum_130 = 0, start = now_s(), n = (double)o->n_seeds;
    double cpu = (double)clock() / CLOCKS_PER_SEC;

    for (size_t seed = o->first; seed < o->first + o->n_seeds; seed++) {
        double begin = now_s();
        struct run run = run_seed(bench, seed);

        if (!o->json)
            report_seed(seed, &run, now_s() - begin);
        sum_100 += 100 * run.at_100 / run.gpus;
        sum_130 += 100 * run.allocated / run.gpus;
    }
    report(o->json, o->workload, "allocated_percent_100", sum_100 / n, "percent", known->at_100);
    report(o->json, o->workload, "allocated_percent_130", sum_130 / n, "percent", known->at_130);
    report(o->json, o->workload, "seconds_per_run", (now_s() - start) / n, "s", 0);
    report(o->json, o->workload, "cpu_seconds_per_run", ((double)clock() / CLOCKS_PER_SEC - cpu) / n, "s", 0);
}

static void run_all(const struct options *o)
{
    static const char *const columns[] = {"cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"};
    struct trace trace = {0};
    struct snapshot_builder *builder = load_cluster(o->dir, &trace);
    struct snapshot *empty = snapshot_builder_build(builder);
    struct gang_workload *workload;
    struct job *jobs;
    BUF path = {0};

    buf_addf(&path, "%s/openb_pod_list_%s.csv", o->dir, o->workload);
    read_csv(buf_str(&path), columns, ARRAY_SIZE(columns), add_pod, &trace);
    jobs = make_jobs(&trace);
    workload = make_workload(&trace, jobs);
    run_seeds(&(struct bench){empty, &trace, jobs, workload, o->score, o->n_members, o->n_roles}, o);
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

static bool read_score(const char *name, enum gang_score *out)
{
    static const char *const names[] = {
        [GANG_SCORE_FRAGMENTATION] = "fragmentation", [GANG_SCORE_PACK] = "pack", [GANG_SCORE_SPREAD] = "spread"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum gang_score)i;
            return true;
        }
    return false;
}

/* Whether the argument and its value are known. */
static bool read_option(struct options *o, const char *name, const char *value)
{
    const struct {
        const char *name;
        size_t *to;
    } numbers[] = {
        {"--seeds", &o->n_seeds}, {"--first", &o->first}, {"--gang", &o->n_members}, {"--roles", &o->n_roles}};

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        if (strcmp(numbers[i].name, name) == 0) {
            *numbers[i].to = strtoul(value, NULL, 10);
            return *numbers[i].to > 0;
        }
    if (strcmp(name, "--trace") == 0)
        o->dir = value;
    else if (strcmp(name, "--workload") == 0)
        o->workload = value;
    else
        return strcmp(name, "--placement") == 0 && read_score(value, &o->score);
    return true;
}

int main(int argc, char **argv)
{
    struct options o = {.workload = "default", .first = 1, .n_seeds = 10, .n_members = 1, .n_roles = 1};
    bool is_wrong = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            o.json = true;
            continue;
        }
        is_wrong = is_wrong || i + 1 == argc || !read_option(&o, argv[i], argv[i + 1]);
        i++;
    }
    if (is_wrong || !o.dir || o.n_roles > MAX_ROLES || o.n_members % o.n_roles != 0) {
        fprintf(stderr,
                "usage: bench-fgd [--json] --trace DIR --workload default|gpuspec33|multigpu50|gpushare100 [--seeds N]"
                " [--first N]\n                 [--gang N] [--roles 1..%d, a divisor of N]"
                " [--placement fragmentation|pack|spread]\n",
                MAX_ROLES);
        return 2;
    }
    run_all(&o);
    return 0;
}
