/* How long a turn of the embedded cluster takes that changes many pods with claims, state folder included.
 *
 *   bench_embedded_disk FOLDER [PODS]     FOLDER is made; on the disk to be measured. Prints milliseconds per turn. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/clock.h"
#include "queued/cluster/embedded/embedded.h"

#define NODE_DEVICES 8

static double now_ms(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

static void put(const char *folder, const char *name, const struct buf *text)
{
    BUF path = {0};
    FILE *file;

    buf_addf(&path, "%s/%s", folder, name);
    file = fopen(buf_str(&path), "w");
    if (!file || fwrite(text->data, 1, text->len, file) != text->len || fclose(file) != 0)
        abort();
}

static void write_manifests(const char *folder, size_t n_nodes)
{
    BUF yaml = {0};

    buf_adds(&yaml, "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {}}\n");
    for (size_t i = 0; i < n_nodes; i++) {
        buf_addf(
            &yaml,
            "---\n{apiVersion: v1, kind: Node, metadata: {name: n%zu}, status: {allocatable: {pods: '110'}}}\n"
            "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: n%zu}, spec: {driver: "
            "gpu.example.com, nodeName: n%zu, pool: {name: n%zu, generation: 1, resourceSliceCount: 1}, devices: [",
            i, i, i, i);
        for (int k = 0; k < NODE_DEVICES; k++)
            buf_addf(&yaml, "%s{name: gpu-%d}", k ? ", " : "", k);
        buf_adds(&yaml, "]}}\n");
    }
    put(folder, "cluster.yaml", &yaml);
}

static void ignore(void *ctx, const struct error *err, const json_t *object)
{
    (void)ctx, (void)object;
    if (err)
        fprintf(stderr, "%s\n", err->text);
}

static void create(struct cluster *cluster, json_t *object)
{
    cluster->ops->create(cluster, object, ignore, NULL);
    json_decref(object);
}

static void create_pod(struct cluster *cluster, size_t i)
{
    char name[32];

    snprintf(name, sizeof(name), "p%zu", i);
    create(cluster, json_pack("{s:s,s:s,s:{s:s},s:{s:{s:[{s:s,s:{s:s}}]}}}", "apiVersion", "resource.k8s.io/v1", "kind",
                              "ResourceClaim", "metadata", "name", name, "spec", "devices", "requests", "name", "r",
                              "exactly", "deviceClassName", "gpu"));
    create(cluster, json_pack("{s:s,s:s,s:{s:s,s:{s:s}},s:{s:[{s:s}],s:[{s:s,s:s}],s:[{s:s,s:s}]}}", "apiVersion", "v1",
                              "kind", "Pod", "metadata", "name", name, "annotations", EMBEDDED_DURATION, "10s", "spec",
                              "schedulingGates", "name", "g", "containers", "name", "c", "image", "i", "resourceClaims",
                              "name", "d", "resourceClaimName", name));
}

static void run_to(struct clock *clock, const char *what, int64_t ms)
{
    double began = now_ms();

    clock_advance(clock, ms, NULL, NULL);
    printf("%-34s %9.1f ms\n", what, now_ms() - began);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

int main(int argc, char **argv)
{
    size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
    struct embedded_options options = {.manifests = argv[1]};
    struct clock *clock = clock_virtual_new(0);
    struct cluster *cluster;
    struct error err = {0};
    BUF state = {0};

    if (argc < 2 || mkdir(argv[1], 0700) < 0) {
        fprintf(stderr, "usage: %s NEW-FOLDER [PODS]\n", argv[0]);
        return 2;
    }
    write_manifests(argv[1], n / NODE_DEVICES + 1);
    buf_addf(&state, "%s/state", argv[1]);
    options.state = buf_str(&state);
    if (embedded_new(&options, clock, NULL, NULL, &cluster, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    run_to(clock, "start", 0);
    for (size_t i = 0; i < n; i++)
        create_pod(cluster, i);
    run_to(clock, "created: claims and pods", 1000);
    for (size_t i = 0; i < n; i++) {
        char name[32];

        snprintf(name, sizeof(name), "p%zu", i);
        cluster->ops->ungate(cluster, "default", name, NULL, ignore, NULL);
    }
    run_to(clock, "ungated: pods", 1000);
    run_to(clock, "scheduled: claims and pods", 1050);
    run_to(clock, "started: pods", 1150);
    run_to(clock, "ended: pods and claims", 11150);
    cluster->ops->free(cluster);
    clock_free(clock);
    return nftw(argv[1], remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
