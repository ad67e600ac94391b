#include "test/cluster/kube/fake_stream.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

struct fake_streams fake_streams;

struct discovery {
    const char *dra, *features;
};

struct discovery_call {
    struct clock_timer *timer;
    discovery_done *done;
    void *ctx;
};

static void answer(void *ctx)
{
    struct discovery_call *call = ctx;
    discovery_done *done = call->done;
    void *done_ctx = call->ctx;
    struct discovery *found;
    struct error err = {0};

    clock_timer_free(call->timer);
    free(call);
    if (fake_streams.is_away) {
        error_set(&err, ERR_UNAVAILABLE, "connection refused");
        done(done_ctx, &err, NULL);
        return;
    }
    found = mem_new(struct discovery);
    found->dra = fake_streams.has_no_claims ? NULL : fake_streams.dra;
    found->features = fake_streams.features ? fake_streams.features : "";
    done(done_ctx, NULL, found);
}

struct discovery_call *discover(struct http *http, discovery_done *done, void *ctx)
{
    struct discovery_call *call = mem_new(struct discovery_call);

    (void)http;
    fake_streams.n_discoveries++;
    *call = (struct discovery_call){clock_timer_new(fake_streams.clock, answer, call), done, ctx};
    clock_timer_set(call->timer, clock_now_ms(fake_streams.clock) + 1);
    return call;
}

void discovery_cancel(struct discovery_call *call)
{
    clock_timer_free(call->timer);
    free(call);
}

void discovery_free(struct discovery *discovery)
{
    free(discovery);
}

int discovery_minor(const struct discovery *discovery)
{
    (void)discovery;
    return 37;
}

const char *discovery_git(const struct discovery *discovery)
{
    (void)discovery;
    return "v1.37.2";
}

const char *discovery_version_of(const struct discovery *discovery, const struct kind *kind)
{
    if (strcmp(kind->name, "DeviceTaintRule") == 0)
        return NULL; /* it is optional, and not there */
    return strcmp(kind->group, "resource.k8s.io") == 0 ? discovery->dra : kind->versions[0];
}

const char *discovery_features(const struct discovery *discovery)
{
    return discovery->features;
}

/* ---- reflectors ---- */

struct reflector *reflector_new(const struct reflector_options *options)
{
    struct reflector *reflector = mem_new(struct reflector);

    INVARIANT(fake_streams.n_open < FAKE_STREAMS_MAX);
    reflector->options = *options;
    fake_streams.open[fake_streams.n_open++] = reflector;
    return reflector;
}

void reflector_free(struct reflector *reflector)
{
    for (size_t i = 0; i < fake_streams.n_open; i++)
        if (fake_streams.open[i] == reflector)
            fake_streams.open[i] = NULL;
    free(reflector);
}

bool reflector_is_synced(const struct reflector *reflector)
{
    return reflector->is_synced;
}

struct reflector_counts reflector_counts(const struct reflector *reflector)
{
    (void)reflector;
    return (struct reflector_counts){.lists = 1, .watches = 2};
}

void fake_streams_sync(void)
{
    for (size_t i = 0; i < fake_streams.n_open; i++) {
        struct reflector *reflector = fake_streams.open[i];

        if (!reflector || reflector->is_synced)
            continue;
        reflector->is_synced = true;
        reflector->options.synced(reflector->options.ctx);
    }
}

size_t fake_streams_n_alive(void)
{
    size_t n = 0;

    for (size_t i = 0; i < fake_streams.n_open; i++)
        n += fake_streams.open[i] != NULL;
    return n;
}

struct reflector *fake_streams_first(void)
{
    for (size_t i = 0; i < fake_streams.n_open; i++)
        if (fake_streams.open[i])
            return fake_streams.open[i];
    return NULL;
}
