/* Random histories of a small API server and random failures of everything between it and the reflector: what is told,
 * replayed, is in the end what the server has, and every word on the way is legal. REFLECTOR_RUNS=N for more seeds. */
#include "queued/cluster/kube/reflector.h"
#include "test/cluster/kube/fake_api.h"
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

#define N_NAMES  8
#define N_EVENTS 4000
#define PAGE     3

/* The state of one name after a change; uid 0: it does not exist. */
struct state {
    int uid, version;
};

struct event {
    int name;
    struct state before, after;
};

/* The server: version v is the state after the first v events. */
struct server {
    struct event events[N_EVENTS + 1]; /* the v-th made version v */
    struct state now[N_NAMES];
    int version, compacted; /* what is older than `compacted` is forgotten */
    int n_uids;
};

/* How far an open watch is. */
struct cursor {
    int version;
};

struct play {
    struct server server;
    struct clock *clock;
    struct http http;
    struct rng rng;
    struct reflector *reflector;
    int refusals;    /* of the next requests */
    bool is_healthy; /* nothing fails any more */
    struct state told[N_NAMES];
    int n_synced;
    uint64_t seed;
    bool is_illegal;
};

static uint64_t below(struct play *p, uint64_t n)
{
    return rng_below(&p->rng, n);
}

/* ---- the server's history ---- */

static void change(struct play *p)
{
    struct server *s = &p->server;
    int name = (int)below(p, N_NAMES);
    struct state *now = &s->now[name];
    struct event *event;

    if (s->version == N_EVENTS)
        return;
    event = &s->events[++s->version];
    event->name = name;
    event->before = *now;
    if (!now->uid)
        *now = (struct state){++s->n_uids, s->version};
    else if (below(p, 3) == 0)
        *now = (struct state){0};
    else
        now->version = s->version;
    event->after = *now;
}

static void state_at(const struct server *s, int version, struct state out[N_NAMES])
{
    memset(out, 0, N_NAMES * sizeof(*out));
    for (int v = 1; v <= version; v++)
        out[s->events[v].name] = s->events[v].after;
}

static void put_object(struct buf *out, int name, struct state state, int version)
{
    buf_addf(out, "{\"metadata\":{\"name\":\"n%d\",\"namespace\":\"x\",\"uid\":\"%d\",\"resourceVersion\":\"%d\"}}",
             name, state.uid, version);
}

/* ---- lists ---- */

#define EXPIRED "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}"

/* A token is "version-name". */
static bool read_token(const struct http_call *call, int *version, int *name)
{
    char *token = fake_parameter(call, "continue");
    bool has = token && sscanf(token, "%d-%d", version, name) == 2;

    free(token);
    return has;
}

static void put_page(const struct server *s, int version, int name, size_t limit, struct buf *out)
{
    struct state states[N_NAMES];
    size_t n = 0;

    state_at(s, version, states);
    buf_adds(out, "{\"items\":[");
    for (; name < N_NAMES && n < limit; name++) {
        if (!states[name].uid)
            continue;
        buf_adds(out, n++ ? "," : "");
        put_object(out, name, states[name], states[name].version);
    }
    buf_addf(out, "],\"metadata\":{\"resourceVersion\":\"%d\"", version);
    if (name < N_NAMES)
        buf_addf(out, ",\"continue\":\"%d-%d\"", version, name);
    buf_adds(out, "}}");
}

/* Some of the bytes and then no more, or all of them. */
static void answer(struct play *p, struct http_call *call, const struct buf *bytes)
{
    if (!p->is_healthy && below(p, 8) == 0) {
        if (fake_send(call, buf_str(bytes), below(p, bytes->len)))
            fake_break(call, ERR_REMOTE);
    } else if (fake_send(call, buf_str(bytes), bytes->len)) {
        fake_end(call);
    }
}

static void list(struct play *p, struct http_call *call)
{
    int version = p->server.version, name = 0;
    char *limit = fake_parameter(call, "limit");
    bool goes_on = read_token(call, &version, &name);
    BUF out = {0};

    if (goes_on && version < p->server.compacted) {
        fake_refuse(call, 410, EXPIRED, -1);
    } else {
        put_page(&p->server, version, name, limit ? PAGE : SIZE_MAX, &out);
        answer(p, call, &out);
    }
    free(limit);
}

/* ---- watches ---- */

static void watch(struct play *p, struct http_call *call)
{
    char *from = fake_parameter(call, "resourceVersion");
    int version = (int)strtol(from, NULL, 10);
    static const char expired[] = "{\"type\":\"ERROR\",\"object\":" EXPIRED "}";

    free(from);
    if (version < p->server.compacted && below(p, 2)) {
        fake_refuse(call, 410, EXPIRED, -1);
    } else if (version < p->server.compacted) {
        if (fake_send(call, expired, strlen(expired)))
            fake_end(call);
    } else {
        call->mark = mem_new(struct cursor);
        ((struct cursor *)call->mark)->version = version;
    }
}

static void put_event(const struct event *event, int version, struct buf *out)
{
    const char *type = !event->after.uid ? "DELETED" : event->before.uid ? "MODIFIED" : "ADDED";

    buf_addf(out, "{\"type\":\"%s\",\"object\":", type);
    put_object(out, event->name, event->after.uid ? event->after : event->before, version);
    buf_adds(out, "}\n");
}

static struct http_call *open_watch(struct play *p)
{
    return p->http.calls && p->http.calls->mark ? p->http.calls : NULL;
}

/* Sends what the watch has not seen, or a part of it. Breaks in the middle of an event at times. */
static void pump(struct play *p)
{
    static const char error[] = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500}}\n";
    struct http_call *call = open_watch(p);
    struct cursor *cursor;
    BUF out = {0};
    int version;

    if (!call)
        return;
    cursor = call->mark;
    version = p->is_healthy ? p->server.version : cursor->version;
    if (!p->is_healthy && p->server.version > version)
        version += (int)below(p, (uint64_t)(p->server.version - version) + 1);
    while (cursor->version < version) {
        cursor->version++;
        put_event(&p->server.events[cursor->version], cursor->version, &out);
    }
    if (below(p, 3) == 0)
        buf_addf(&out, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%d\"}}}\n",
                 cursor->version);
    if (!p->is_healthy && out.len && below(p, 6) == 0) {
        if (fake_send(call, buf_str(&out), below(p, out.len)))
            fake_break(call, ERR_REMOTE);
        return;
    }
    if (!fake_send(call, buf_str(&out), out.len))
        return;
    if (!p->is_healthy && below(p, 8) == 0) {
        if (below(p, 2) && !fake_send(call, error, strlen(error)))
            return;
        fake_end(call);
    }
}

/* ---- between the two ---- */

static void on_request(void *ctx, struct http_call *call)
{
    static const int refusals[] = {429, 500, 503, 504, 401};
    struct play *p = ctx;

    if (p->refusals > 0) {
        p->refusals--;
        if (below(p, 2))
            fake_refuse(call, refusals[below(p, ARRAY_SIZE(refusals))], "{}", below(p, 2) ? 1000 : -1);
        else
            fake_break(call, ERR_UNAVAILABLE);
    } else if (fake_is_watch(call)) {
        watch(p, call);
    } else {
        list(p, call);
    }
}

/* ---- what is told ---- */

static void illegal(struct play *p, const char *why, int name)
{
    print_error("seed %llu: %s n%d\n", (unsigned long long)p->seed, why, name);
    p->is_illegal = true;
}

static int number(const json_t *metadata, const char *key)
{
    const char *digits = json_string_value(json_object_get(metadata, key));

    return digits ? (int)strtol(digits, NULL, 10) : 0;
}

static void on_changed(void *ctx, enum cluster_change what, const json_t *object)
{
    struct play *p = ctx;
    const json_t *metadata = json_object_get(object, "metadata");
    int name = (int)strtol(json_string_value(json_object_get(metadata, "name")) + 1, NULL, 10);
    int uid = number(metadata, "uid");
    int version = number(metadata, "resourceVersion");
    struct state *told = &p->told[name];

    if (what == CLUSTER_GONE) {
        if (!told->uid || told->uid != uid)
            illegal(p, "gone, and was not told", name);
        *told = (struct state){0};
        return;
    }
    if (told->uid && told->uid != uid)
        illegal(p, "replaced without a word", name);
    if (told->uid && told->version >= version)
        illegal(p, "told again, or back in time", name);
    *told = (struct state){uid, version};
}

static void on_synced(void *ctx)
{
    struct play *p = ctx;

    p->n_synced++;
}

static void on_stale(void *ctx, const struct error *err)
{
    (void)ctx, (void)err;
}

/* ---- a run ---- */

static void advance(struct play *p, int64_t ms)
{
    clock_advance(p->clock, clock_now_ms(p->clock) + ms, NULL, NULL);
}

static void step(struct play *p)
{
    switch (below(p, 8)) {
    case 0:
    case 1:
    case 2:
        change(p);
        break;
    case 3:
    case 4:
        pump(p);
        break;
    case 5:
        advance(p, (int64_t)below(p, 400));
        break;
    case 6:
        if (below(p, 12) == 0)
            p->server.compacted = p->server.version - (int)below(p, 3);
        break;
    default:
        if (below(p, 10) == 0)
            p->refusals = (int)below(p, 4);
        if (below(p, 10) == 0)
            advance(p, (int64_t)below(p, 90000));
    }
}

static void settle(struct play *p)
{
    p->is_healthy = true;
    p->refusals = 0;
    for (int i = 0; i < 40; i++) {
        advance(p, 5000);
        pump(p);
    }
}

static void check(struct play *p)
{
    for (int name = 0; name < N_NAMES; name++)
        if (memcmp(&p->told[name], &p->server.now[name], sizeof(struct state)) != 0)
            illegal(p, "not as on the server:", name);
    if (p->n_synced != 1)
        illegal(p, "not synced once", p->n_synced);
}

static void run(uint64_t seed)
{
    struct play *p = mem_new(struct play);
    bool is_illegal;

    p->seed = seed;
    p->rng = (struct rng){seed};
    p->clock = clock_virtual_new(1000);
    fake_init(&p->http, p->clock, seed);
    p->http.arrived = on_request;
    p->http.ctx = p;
    p->reflector = reflector_new(&(struct reflector_options){.http = &p->http,
                                                             .clock = p->clock,
                                                             .source = &kube_sources[0],
                                                             .version = "v1",
                                                             .seed = seed,
                                                             .page = PAGE,
                                                             .ctx = p,
                                                             .changed = on_changed,
                                                             .synced = on_synced,
                                                             .stale = on_stale});
    for (int i = 0; i < 400 && !p->is_illegal; i++)
        step(p);
    settle(p);
    check(p);
    is_illegal = p->is_illegal;
    reflector_free(p->reflector);
    fake_release(&p->http);
    clock_free(p->clock);
    free(p);
    assert_false(is_illegal);
}

static void test_reflector__tells_what_the_server_has(void **state)
{
    const char *wish = getenv("REFLECTOR_RUNS");
    uint64_t n = wish ? strtoull(wish, NULL, 10) : 400;

    (void)state;
    for (uint64_t seed = 1; seed <= n; seed++)
        run(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reflector__tells_what_the_server_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
