/* bench-cel [--json] [--devices N] - selectors over many devices: evaluations per second, cold and warm, and what is
 * taken from the heap.
 *
 * cold   compile one expression and evaluate it once, for each of N/10 devices
 * warm   evaluate a compiled expression on each of N devices, again and again
 *
 * Every figure is the best of several rounds, so that a busy machine disturbs it little. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allocator/base/mem.h"
#include "allocator/cel/cel.h"

#include "allocator/base/banned.h"

/* ---- counting ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_ALLOCATIONS 0
static size_t allocations(void)
{
    return 0;
}
#else
#define COUNTS_ALLOCATIONS 1
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *old, size_t size);
void *aligned_alloc(size_t align, size_t size);

static size_t n_allocations; /* the one global of this program: malloc has no other place to count */

void *malloc(size_t size)
{
    n_allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    n_allocations++;
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    n_allocations++;
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    n_allocations++;
    return __libc_memalign(align, size);
}

static size_t allocations(void)
{
    return n_allocations;
}
#endif

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- devices and selectors ---- */

static const struct {
    const char *name, *text;
} selectors[] = {
    {"attribute", "device.attributes[\"gpu.example.com\"].architecture == \"Hopper\""},
    {"driver-and-type",
     "device.driver == \"gpu.example.com\" && device.attributes[\"gpu.example.com\"].type == \"gpu\""},
    {"capacity", "device.capacity[\"gpu.example.com\"].memory.compareTo(quantity(\"40Gi\")) >= 0"},
    {"version", "device.attributes[\"gpu.example.com\"].cudaComputeCapability.isGreaterThan(semver(\"8.5.0\"))"},
    {"model", "has(device.attributes[\"gpu.example.com\"].productName) && "
              "device.attributes[\"gpu.example.com\"].productName.matches(\"H(100|200)\") && "
              "device.attributes[\"gpu.example.com\"].numa in [0, 1]"},
};

/* A GPU as drivers publish it; odd ones are of the older kind. */
static const struct cel_device *make_device(size_t i, struct arena *arena)
{
    union cel_attribute_value values[] = {
        {.s = STR("gpu")},
        {.s = str_of(arena_printf(arena, "GPU-%08zx-0000", i))},
        {.i = (int64_t)(i % 8)},
        {.i = (int64_t)(i % 2)},
        {.s = i % 2 ? STR("NVIDIA A100-SXM4-80GB") : STR("NVIDIA H100 80GB HBM3")},
        {.s = i % 2 ? STR("Ampere") : STR("Hopper")},
        {.s = i % 2 ? STR("8.0.0") : STR("9.0.0")},
        {.s = STR("550.54.15")},
        {.s = STR("12.4.0")},
        {.s = str_of(arena_printf(arena, "pci0000:%02zx", i % 16))},
    };
    const struct cel_attribute attributes[] = {
        {STR("type"), CEL_ATTR_STRING, false, 1, &values[0]},
        {STR("uuid"), CEL_ATTR_STRING, false, 1, &values[1]},
        {STR("index"), CEL_ATTR_INT, false, 1, &values[2]},
        {STR("numa"), CEL_ATTR_INT, false, 1, &values[3]},
        {STR("productName"), CEL_ATTR_STRING, false, 1, &values[4]},
        {STR("architecture"), CEL_ATTR_STRING, false, 1, &values[5]},
        {STR("cudaComputeCapability"), CEL_ATTR_VERSION, false, 1, &values[6]},
        {STR("driverVersion"), CEL_ATTR_VERSION, false, 1, &values[7]},
        {STR("cudaDriverVersion"), CEL_ATTR_VERSION, false, 1, &values[8]},
        {STR("resource.kubernetes.io/pcieRoot"), CEL_ATTR_STRING, false, 1, &values[9]},
    };
    struct cel_capacity capacity = {.name = STR("memory")};
    struct cel_device_spec spec = {STR("gpu.example.com"), attributes, ARRAY_SIZE(attributes), &capacity, 1, false};

    if (quantity_parse(STR("80Gi"), arena, &capacity.value, NULL) < 0)
        abort();
    return cel_device_prepare(&spec, NULL, arena);
}

struct bench {
    const struct cel_device **devices;
    size_t n_devices;
    struct arena arena, scratch;
    bool json;
};

static struct cel_expr *compile(const char *text)
{
    struct cel_problem problem;
    struct cel_expr *expr;

    if (cel_compile(str_of(text), NULL, &expr, &problem) < 0) {
        fprintf(stderr, "%s\n", problem.excerpt);
        exit(1);
    }
    return expr;
}

#define ROUNDS 7

struct figures {
    double cold_ns, warm_ns, allocations;
    size_t matches;
};

static struct figures measure(struct bench *b, const char *text)
{
    struct cel_expr *expr = compile(text);
    struct figures f = {.cold_ns = 1e18, .warm_ns = 1e18};
    size_t n_cold = b->n_devices / 10 ? b->n_devices / 10 : 1, before;

    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns(), end;

        f.matches = 0;
        before = allocations();
        for (size_t i = 0; i < b->n_devices; i++)
            f.matches += cel_evaluate(expr, b->devices[i], &b->scratch).outcome == CEL_TRUE;
        end = now_ns();
        f.allocations = (double)(allocations() - before) / (double)b->n_devices;
        if ((end - start) / (double)b->n_devices < f.warm_ns)
            f.warm_ns = (end - start) / (double)b->n_devices;
        start = now_ns();
        for (size_t i = 0; i < n_cold; i++) {
            struct cel_expr *one = compile(text);

            if (cel_evaluate(one, b->devices[i], &b->scratch).outcome == CEL_ERROR)
                exit(1);
            cel_expr_free(one);
        }
        end = now_ns();
        if ((end - start) / (double)n_cold < f.cold_ns)
            f.cold_ns = (end - start) / (double)n_cold;
    }
    cel_expr_free(expr);
    return f;
}

static void print_metric(const char *name, const char *metric, double value, const char *unit)
{
    printf("{\"bench\": \"cel\", \"case\": \"%s\", \"metric\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"}\n", name,
           metric, value, unit);
}

static void report(const struct bench *b, const char *name, const struct figures *f)
{
    if (!b->json) {
        printf("%-18s %10.0f %12.0f %10.1f %12.0f %8.2f %9zu\n", name, f->cold_ns, 1e9 / f->cold_ns, f->warm_ns,
               1e9 / f->warm_ns, f->allocations, f->matches);
        return;
    }
    print_metric(name, "cold", f->cold_ns, "ns");
    print_metric(name, "cold_rate", 1e9 / f->cold_ns, "evaluations/s");
    print_metric(name, "warm", f->warm_ns, "ns");
    print_metric(name, "warm_rate", 1e9 / f->warm_ns, "evaluations/s");
    if (COUNTS_ALLOCATIONS)
        print_metric(name, "heap_allocations", f->allocations, "per evaluation");
}

int main(int argc, char **argv)
{
    struct bench b = {.n_devices = 10000};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            b.json = true;
        else if (strcmp(argv[i], "--devices") == 0 && i + 1 < argc)
            b.n_devices = strtoul(argv[++i], NULL, 10);
    }
    if (!b.n_devices || b.n_devices > 10000000) {
        fprintf(stderr, "usage: bench-cel [--json] [--devices N]\n");
        return 2;
    }
    arena_init(&b.arena);
    arena_init(&b.scratch);
    b.devices = mem_array(const struct cel_device *, b.n_devices);
    for (size_t i = 0; i < b.n_devices; i++)
        b.devices[i] = make_device(i, &b.arena);
    if (!b.json)
        printf("%zu devices%s\n%-18s %10s %12s %10s %12s %8s %9s\n", b.n_devices,
               COUNTS_ALLOCATIONS ? "" : " (allocations are not counted in this build)", "selector", "cold ns",
               "cold/s", "warm ns", "warm/s", "allocs", "matches");
    for (size_t i = 0; i < ARRAY_SIZE(selectors); i++) {
        struct figures f = measure(&b, selectors[i].text);

        report(&b, selectors[i].name, &f);
    }
    free(b.devices);
    arena_release(&b.scratch);
    arena_release(&b.arena);
    return 0;
}
