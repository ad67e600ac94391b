/* What a large cluster costs: a list of N pods of others through a reflector, in pages, in the pieces of a TLS record.
 *
 *   bench_kube_list [PODS]     time per pod and MB/s of JSON; bytes held per pod afterwards */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "queued/cluster/kube/reflector.h"
#include "test/cluster/kube/fake_api.h"

#include "allocator/base/banned.h"

#define PAGE  500
#define PIECE 16384

struct bench {
    struct clock *clock;
    struct http http;
    size_t n, sent, bytes, most; /* pods; of them in pages so far; of JSON; of one page */
    size_t puts;
    bool is_synced;
};

/* As a kubelet and two controllers leave it: about 5 KB. */
static void put_pod(struct buf *out, size_t i)
{
    buf_addf(
        out,
        "{\"metadata\":{\"name\":\"deployment-5d9c7b8f6d-%zu\",\"generateName\":\"deployment-5d9c7b8f6d-\","
        "\"namespace\":"
        "\"team-%zu\",\"uid\":\"0f2c1c52-8a39-4f0e-9d3b-%012zu\",\"resourceVersion\":\"%zu\",\"creationTimestamp\":"
        "\"2026-01-31T12:00:00Z\",\"labels\":{\"app\":\"web\",\"pod-template-hash\":\"5d9c7b8f6d\"},"
        "\"ownerReferences\":[{"
        "\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"deployment-5d9c7b8f6d\",\"uid\":\"x\"}],"
        "\"managedFields\":[",
        i, i % 50, i, 1000000 + i);
    for (int f = 0; f < 40; f++)
        buf_addf(out, "%s{\"manager\":\"kubelet\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{}}}}", f ? "," : "");
    buf_addf(
        out,
        "]},\"spec\":{\"nodeName\":\"node-%zu\",\"volumes\":[{\"name\":\"token\",\"projected\":{\"sources\":[]}}],",
        i % 5000);
    buf_adds(out, "\"containers\":[{\"name\":\"web\",\"image\":\"registry.example/web:1\",\"env\":[");
    for (int e = 0; e < 15; e++)
        buf_addf(out, "%s{\"name\":\"VARIABLE_%d\",\"value\":\"a value of some length, as they are\"}", e ? "," : "",
                 e);
    buf_adds(
        out,
        "],\"resources\":{\"requests\":{\"cpu\":\"250m\",\"memory\":\"512Mi\"},\"limits\":{\"memory\":\"512Mi\"}}}]},"
        "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"podIP\":\"10.1."
        "2.3\"}}");
}

static void on_request(void *ctx, struct http_call *call)
{
    struct bench *b = ctx;
    size_t end = b->sent + PAGE < b->n ? b->sent + PAGE : b->n;
    struct error err = {0};
    BUF page = {0};

    if (fake_is_watch(call))
        return;
    buf_adds(&page, "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"9000000\"");
    buf_addf(&page, "%s},\"items\":[", end < b->n ? ",\"continue\":\"t\"" : "");
    for (size_t i = b->sent; i < end; i++) {
        buf_adds(&page, i > b->sent ? "," : "");
        put_pod(&page, i);
    }
    buf_adds(&page, "]}");
    b->sent = end;
    b->bytes += page.len;
    b->most = page.len > b->most ? page.len : b->most;
    for (size_t at = 0; at < page.len; at += PIECE)
        if (call->request.data(call->request.ctx, page.data + at, page.len - at < PIECE ? page.len - at : PIECE, &err) <
            0)
            abort();
    fake_end(call);
}

static void on_changed(void *ctx, enum cluster_change change, const json_t *object)
{
    struct bench *b = ctx;

    (void)change, (void)object;
    b->puts++;
}

static void on_synced(void *ctx)
{
    ((struct bench *)ctx)->is_synced = true;
}

static void on_stale(void *ctx, const struct error *err)
{
    (void)ctx, (void)err;
}

static const struct source *others(void)
{
    size_t i = 0;

    while (strcmp(kube_sources[i].kind->name, "Pod") != 0 || kube_sources[i].is_ours)
        i++;
    return &kube_sources[i];
}

static double processor_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    struct bench b = {.n = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000};
    struct reflector *reflector;
    struct reflector_counts counts;
    size_t before = mallinfo2().uordblks, after;
    double began, took;

    b.clock = clock_virtual_new(1000);
    fake_init(&b.http, b.clock, 1);
    b.http.arrived = on_request;
    b.http.ctx = &b;
    reflector = reflector_new(&(struct reflector_options){.http = &b.http,
                                                          .clock = b.clock,
                                                          .source = others(),
                                                          .version = "v1",
                                                          .page = PAGE,
                                                          .ctx = &b,
                                                          .changed = on_changed,
                                                          .synced = on_synced,
                                                          .stale = on_stale});
    began = processor_s();
    clock_advance(b.clock, 2000, NULL, NULL);
    took = processor_s() - began;
    counts = reflector_counts(reflector);
    after = mallinfo2().uordblks;
    printf("%zu pods, %.0f MB of JSON (making it counts too): %.2f s, %.1f us per pod, %.0f MB/s\n", b.puts,
           (double)b.bytes / 1e6, took, took * 1e6 / (double)b.n, (double)b.bytes / 1e6 / took);
    printf("held: %.0f B per pod in the table, %.0f B per pod of heap; largest page %zu KiB; synced: %s\n",
           (double)counts.bytes / (double)b.n, (double)(after - before) / (double)b.n, b.most / 1024,
           b.is_synced ? "yes" : "no");
    reflector_free(reflector);
    fake_release(&b.http);
    clock_free(b.clock);
    return !b.is_synced;
}
