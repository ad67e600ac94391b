/* Follows a real cluster with every reflector and prints, every two seconds, what was asked and told and what it costs.
 *
 *   probe_kube KUBECONFIG SECONDS [all]      all: each change on a line of its own
 *
 * For trying things by hand: restart the API server, compact etcd, make thousands of pods, and watch what happens. */
#include <event2/event.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "queued/cluster/kube/discovery.h"
#include "queued/cluster/kube/reflector.h"

#include "allocator/base/banned.h"

#define MAX_SOURCES 32
#define PERIOD_MS   2000

struct follow {
    struct probe *probe;
    const struct source *source;
    struct reflector *reflector;
    uint64_t puts, gones, stales;
};

struct probe {
    struct event_base *base;
    struct clock *clock;
    struct http *http;
    struct discovery *found;
    struct follow follows[MAX_SOURCES];
    struct clock_timer *tick;
    int64_t began_ms, until_ms;
    bool tells_all;
};

static void on_changed(void *ctx, enum cluster_change change, const json_t *object)
{
    struct follow *f = ctx;
    const json_t *metadata = json_object_get(object, "metadata");

    f->puts += change == CLUSTER_PUT;
    f->gones += change == CLUSTER_GONE;
    if (f->probe->tells_all)
        printf("%s %s %s\n", change == CLUSTER_PUT ? "put" : "gone", f->source->kind->name,
               json_string_value(json_object_get(metadata, "name")));
}

static double seconds(const struct probe *probe)
{
    return (double)(clock_now_ms(probe->clock) - probe->began_ms) / 1000;
}

static void on_synced(void *ctx)
{
    struct follow *f = ctx;

    printf("%.2f s: %s%s synced, %zu objects\n", seconds(f->probe), f->source->kind->name,
           f->source->is_ours ? " (ours)" : "", reflector_counts(f->reflector).known);
}

static void on_stale(void *ctx, const struct error *err)
{
    struct follow *f = ctx;

    f->stales++;
    printf("%.2f s: %s stale: %s\n", seconds(f->probe), f->source->kind->name, err->text);
}

static void report(struct probe *probe)
{
    printf("%.1f s, heap %zu KiB\n", seconds(probe), mallinfo2().uordblks / 1024);
    for (size_t i = 0; i < n_kube_sources; i++) {
        struct follow *f = &probe->follows[i];
        struct reflector_counts c;

        if (!f->reflector)
            continue;
        c = reflector_counts(f->reflector);
        printf("  %-16s%-5s known %6zu (%7zu B) put %7llu gone %6llu lists %3llu watches %4llu failures %3llu\n",
               f->source->kind->name, f->source->is_ours ? "ours" : "", c.known, c.bytes, (unsigned long long)f->puts,
               (unsigned long long)f->gones, (unsigned long long)c.lists, (unsigned long long)c.watches,
               (unsigned long long)c.failures);
    }
    fflush(stdout);
}

static void on_tick(void *ctx)
{
    struct probe *probe = ctx;

    report(probe);
    if (clock_now_ms(probe->clock) >= probe->until_ms)
        event_base_loopbreak(probe->base);
    else
        clock_timer_set(probe->tick, clock_now_ms(probe->clock) + PERIOD_MS);
}

static void follow(struct probe *probe)
{
    for (size_t i = 0; i < n_kube_sources && i < MAX_SOURCES; i++) {
        struct follow *f = &probe->follows[i];
        const char *version = discovery_version_of(probe->found, kube_sources[i].kind);

        if (!version)
            continue;
        f->probe = probe;
        f->source = &kube_sources[i];
        f->reflector = reflector_new(&(struct reflector_options){.http = probe->http,
                                                                 .clock = probe->clock,
                                                                 .source = f->source,
                                                                 .version = version,
                                                                 .seed = i + 1,
                                                                 .ctx = f,
                                                                 .changed = on_changed,
                                                                 .synced = on_synced,
                                                                 .stale = on_stale});
    }
}

static void on_found(void *ctx, const struct error *err, struct discovery *found)
{
    struct probe *probe = ctx;

    if (err) {
        printf("discovery: %s\n", err->text);
        event_base_loopbreak(probe->base);
        return;
    }
    printf("%.2f s: Kubernetes 1.%d (%s), features \"%s\"\n", seconds(probe), discovery_minor(found),
           discovery_git(found), discovery_features(found));
    for (size_t i = 0; i < kind_count(); i++)
        printf("  %s %s\n", kind_at(i)->name,
               discovery_version_of(found, kind_at(i)) ? discovery_version_of(found, kind_at(i)) : "-");
    probe->found = found;
    follow(probe);
}

static void on_loop_turn(evutil_socket_t fd, short what, void *arg)
{
    struct probe *probe = arg;

    (void)fd, (void)what;
    clock_new_turn(probe->clock);
}

static int run(struct probe *probe, const char *kubeconfig, long run_s, struct error *err)
{
    struct access *access;
    struct event *turns;
    int result = access_from_kubeconfig(kubeconfig, NULL, &access, err);

    if (result < 0)
        return -1;
    result = http_new(&(struct http_options){.base = probe->base, .access = access, .user_agent = "probe_kube"},
                      &probe->http, err);
    if (result == 0) {
        turns = event_new(probe->base, -1, EV_PERSIST, on_loop_turn, probe);
        event_add(turns, &(struct timeval){.tv_usec = 20000});
        probe->until_ms = probe->began_ms + run_s * 1000;
        clock_timer_set(probe->tick, probe->began_ms + PERIOD_MS);
        discover(probe->http, on_found, probe);
        event_base_dispatch(probe->base);
        event_free(turns);
        for (size_t i = 0; i < MAX_SOURCES; i++)
            reflector_free(probe->follows[i].reflector);
        discovery_free(probe->found);
        http_free(probe->http);
    }
    access_free(access);
    return result;
}

int main(int argc, char **argv)
{
    struct probe probe = {0};
    struct error err = {0};
    int result;

    if (argc < 3) {
        fprintf(stderr, "usage: %s KUBECONFIG SECONDS [all]\n", argv[0]);
        return 2;
    }
    probe.base = event_base_new();
    probe.clock = clock_real_new(probe.base);
    probe.tick = clock_timer_new(probe.clock, on_tick, &probe);
    probe.began_ms = clock_now_ms(probe.clock);
    probe.tells_all = argc > 3;
    result = run(&probe, argv[1], strtol(argv[2], NULL, 10), &err);
    if (result < 0)
        fprintf(stderr, "%s\n", err.text);
    clock_timer_free(probe.tick);
    clock_free(probe.clock);
    event_base_free(probe.base);
    return result < 0;
}
