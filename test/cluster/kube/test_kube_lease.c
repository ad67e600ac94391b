/* The lease against a server with optimistic concurrency, on the virtual clock. */
#include "test/support/cmocka.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "allocator/base/rng.h"
#include "queued/cluster/kube/lease.h"
#include "test/cluster/kube/stub.h"

#include "allocator/base/banned.h"

#define START_MS INT64_C(1767225600000)
#define PATH     "/apis/coordination.k8s.io/v1/namespaces/ns/leases"

enum { N_MAX = 3 };

struct node {
    struct world *world;
    struct http http;
    struct lease *lease;
    char name[16];
    char holder[64]; /* told by `waiting` */
    int64_t acquired_ms, lost_ms, released_ms;
    int n_failed;
    int64_t boot_skew_ms; /* its clock that counts suspended time is so much ahead of the timers' */
};

struct world {
    struct clock *clock;
    struct stub_server server;
    json_t *lease; /* as stored, or NULL */
    int64_t version;
    int refuse_with; /* a status for every request; 0: served */
    int n_held_max;  /* the largest number of nodes that held it at one instant */
    struct node nodes[N_MAX];
    size_t n;
};

/* ---- the server ---- */

static int64_t version_in(const json_t *object)
{
    const char *text = json_string_value(json_object_get(json_object_get(object, "metadata"), "resourceVersion"));

    return text ? strtoll(text, NULL, 10) : -1;
}

static void store(struct world *world, json_t *object, struct stub_reply *out, int status)
{
    char version[24], *text;

    snprintf(version, sizeof(version), "%lld", (long long)++world->version);
    json_object_set_new(json_object_get(object, "metadata"), "resourceVersion", json_string(version));
    json_decref(world->lease);
    world->lease = json_incref(object);
    text = json_dumps(object, JSON_COMPACT);
    stub_reply(out, status, text);
    free(text);
}

static void serve_write(struct world *world, const struct stub_request *request, struct stub_reply *out)
{
    json_t *object = json_loads(request->body, 0, NULL);
    bool is_creation = strcmp(request->method, "POST") == 0;

    assert_non_null(object);
    assert_string_equal(request->path, is_creation ? PATH : PATH "/l");
    if (is_creation && world->lease)
        stub_reply(out, 409, "{\"kind\":\"Status\",\"code\":409,\"reason\":\"AlreadyExists\",\"message\":\"exists\"}");
    else if (is_creation)
        store(world, object, out, 201);
    else if (!world->lease)
        stub_reply(out, 404, "{\"kind\":\"Status\",\"code\":404,\"message\":\"not found\"}");
    else if (version_in(object) != world->version)
        stub_reply(out, 409, "{\"kind\":\"Status\",\"code\":409,\"reason\":\"Conflict\",\"message\":\"modified\"}");
    else
        store(world, object, out, 200);
    json_decref(object);
}

static void serve(void *ctx, const struct stub_request *request, struct stub_reply *out)
{
    struct world *world = ctx;
    char *text;

    if (world->refuse_with) {
        stub_reply(out, world->refuse_with, "{\"kind\":\"Status\",\"message\":\"no\"}");
    } else if (strcmp(request->method, "GET") != 0) {
        serve_write(world, request, out);
    } else if (!world->lease) {
        stub_reply(out, 404, "{\"kind\":\"Status\",\"code\":404,\"message\":\"not found\"}");
    } else {
        text = json_dumps(world->lease, JSON_COMPACT);
        stub_reply(out, 200, text);
        free(text);
    }
}

static const char *stored(const struct world *world, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(world->lease, "spec"), key));

    return text ? text : "";
}

/* ---- the nodes ---- */

static int64_t boot_ms(void *ctx)
{
    const struct node *node = ctx;

    return clock_now_ms(node->world->clock) - START_MS + 1000 + node->boot_skew_ms;
}

static void on_acquired(void *ctx)
{
    struct node *node = ctx;

    node->acquired_ms = clock_now_ms(node->world->clock) - START_MS;
    assert_true(lease_is_held(node->lease));
}

static void on_waiting(void *ctx, const char *holder)
{
    struct node *node = ctx;

    snprintf(node->holder, sizeof(node->holder), "%s", holder);
}

static void on_lost(void *ctx, const struct error *err)
{
    struct node *node = ctx;

    assert_true(err->text[0]);
    assert_false(lease_is_held(node->lease));
    node->lost_ms = clock_now_ms(node->world->clock) - START_MS;
}

static void on_failed(void *ctx, const struct error *err)
{
    struct node *node = ctx;

    assert_true(err->text[0]);
    node->n_failed++;
}

static void on_released(void *ctx)
{
    struct node *node = ctx;

    node->released_ms = clock_now_ms(node->world->clock) - START_MS;
}

static struct node *node_begin(struct world *world, const char *name)
{
    struct node *node = &world->nodes[world->n++];

    *node = (struct node){.world = world, .acquired_ms = -1, .lost_ms = -1, .released_ms = -1};
    snprintf(node->name, sizeof(node->name), "%s", name);
    node->http = (struct http){.clock = world->clock, .server = &world->server, .latency_ms = 5};
    node->lease = lease_new(&(struct lease_options){
        .http = &node->http,
        .clock = world->clock,
        .ns = "ns",
        .name = "l",
        .identity = node->name,
        .seed = world->n,
        .ctx = node,
        .acquired = on_acquired,
        .waiting = on_waiting,
        .lost = on_lost,
        .failed = on_failed,
        .boot_ms = boot_ms,
    });
    return node;
}

/* The process is no more. */
static void node_kill(struct node *node)
{
    lease_free(node->lease);
    stub_http_release(&node->http);
    node->lease = NULL;
}

static void count_held(void *ctx)
{
    struct world *world = ctx;
    int n = 0;

    for (size_t i = 0; i < world->n; i++)
        n += world->nodes[i].lease && lease_is_held(world->nodes[i].lease);
    world->n_held_max = n > world->n_held_max ? n : world->n_held_max;
}

static void run(struct world *world, int64_t ms)
{
    clock_advance(world->clock, clock_now_ms(world->clock) + ms, count_held, world);
}

static int world_begin(void **state)
{
    struct world *world = test_calloc(1, sizeof(*world));

    world->clock = clock_virtual_new(START_MS);
    world->server = (struct stub_server){.serve = serve, .ctx = world};
    *state = world;
    return 0;
}

static int world_end(void **state)
{
    struct world *world = *state;

    for (size_t i = 0; i < world->n; i++)
        node_kill(&world->nodes[i]);
    assert_true(world->n_held_max <= 1);
    json_decref(world->lease);
    buf_release(&world->server.log);
    clock_free(world->clock);
    test_free(world);
    return 0;
}

/* ---- facts ---- */

static void test_lease__the_first_creates_it(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a");

    assert_false(lease_is_held(a->lease));
    run(world, 100);
    assert_int_equal(a->acquired_ms, 10);
    assert_string_equal(stored(world, "holderIdentity"), "a");
    assert_string_equal(stored(world, "acquireTime"), "2026-01-01T00:00:00.005000Z");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(world->lease, "spec"), "leaseDurationSeconds")),
                     10);
    assert_string_equal(buf_str(&world->server.log), "GET " PATH "/l\nPOST " PATH "\n");
}

static void test_lease__is_renewed_and_kept(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a");

    run(world, 3600000);
    assert_int_equal(a->lost_ms, -1);
    assert_true(lease_is_held(a->lease));
    assert_true(world->version >= 1700 && world->version <= 1802); /* every two seconds */
    assert_string_equal(stored(world, "acquireTime"), "2026-01-01T00:00:00.005000Z");
}

static void test_lease__the_second_waits(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a"), *b;

    run(world, 500);
    b = node_begin(world, "b");
    run(world, 120000);
    assert_int_equal(b->acquired_ms, -1);
    assert_string_equal(b->holder, "a");
    assert_true(lease_is_held(a->lease));
}

static void test_lease__is_taken_over_within_15_s_of_a_death(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a"), *b;
    int64_t died_ms;

    run(world, 500);
    b = node_begin(world, "b");
    run(world, 60000 + 777);
    node_kill(a);
    died_ms = clock_now_ms(world->clock) - START_MS;
    run(world, 20000);
    assert_true(b->acquired_ms > died_ms + 5000); /* not before it may */
    assert_true(b->acquired_ms <= died_ms + 13000);
    assert_string_equal(stored(world, "holderIdentity"), "b");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(world->lease, "spec"), "leaseTransitions")), 1);
}

static void test_lease__two_who_wait_do_not_both_get_it(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a"), *b, *c;

    run(world, 500);
    b = node_begin(world, "b");
    c = node_begin(world, "c");
    run(world, 10000);
    node_kill(a);
    run(world, 30000);
    assert_int_equal((b->acquired_ms >= 0) + (c->acquired_ms >= 0), 1);
    assert_string_equal(b->acquired_ms >= 0 ? c->holder : b->holder, b->acquired_ms >= 0 ? "b" : "c");
}

static void test_lease__a_leader_that_is_cut_off_stops_before_another_begins(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a"), *b;

    run(world, 500);
    b = node_begin(world, "b");
    run(world, 20000);
    a->http.is_cut = true;
    run(world, 30000);
    assert_true(a->lost_ms >= 20500 && a->lost_ms <= 28600);
    assert_true(b->acquired_ms > a->lost_ms + 1000);
    assert_false(lease_is_held(a->lease));
}

static void test_lease__cut_off_alone_it_has_it_again_when_the_server_is_back(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a");

    run(world, 500);
    a->http.is_cut = true;
    run(world, 20000);
    assert_true(a->lost_ms > 0 && a->acquired_ms < a->lost_ms);
    assert_false(lease_is_held(a->lease));
    a->http.is_cut = false;
    run(world, 5000);
    assert_true(a->acquired_ms > a->lost_ms);
    assert_true(lease_is_held(a->lease));
    assert_string_equal(a->holder, "");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(world->lease, "spec"), "leaseTransitions")), 0);
}

static void test_lease__cut_off_it_sees_who_has_it_now(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a"), *b;

    run(world, 500);
    b = node_begin(world, "b");
    run(world, 5000);
    a->http.is_cut = true;
    run(world, 20000);
    assert_true(lease_is_held(b->lease));
    a->http.is_cut = false;
    run(world, 5000);
    assert_string_equal(a->holder, "b");
    assert_false(lease_is_held(a->lease));
    node_kill(b);
    run(world, 20000);
    assert_true(lease_is_held(a->lease));
}

static void test_lease__lost_answers_are_found_out(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a");

    run(world, 5000);
    a->http.is_half_cut = true; /* renewed, and we do not know */
    run(world, 4500);
    a->http.is_half_cut = false;
    run(world, 60000);
    assert_int_equal(a->lost_ms, -1);
    assert_true(lease_is_held(a->lease));
}

static void test_lease__a_lost_creation_is_found_out(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a");

    a->http.is_half_cut = true;
    run(world, 2500);
    world->nodes[0].http.is_half_cut = false;
    run(world, 10000);
    assert_true(lease_is_held(a->lease));
}

static void test_lease__short_failures_are_survived(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a");

    run(world, 5000);
    world->refuse_with = 500;
    run(world, 6000);
    world->refuse_with = 0;
    run(world, 60000);
    assert_int_equal(a->lost_ms, -1);
    assert_true(lease_is_held(a->lease));
}

static void test_lease__a_process_that_slept_leads_no_more(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a");

    run(world, 5000);
    assert_true(lease_is_held(a->lease));
    a->boot_skew_ms += 60000; /* the machine was suspended: timers have not fired yet */
    assert_false(lease_is_held(a->lease));
    run(world, 10000);
    assert_true(a->lost_ms >= 5000);
}

/* Timers follow when the system's time is set forward; the lease's own clock does not. */
static void test_lease__a_step_of_the_system_time_loses_nothing(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a");

    run(world, 5000);
    a->boot_skew_ms -= 3600000; /* an hour passes for the timers in one step, and none for us */
    run(world, 3600000);
    assert_int_equal(a->lost_ms, -1);
}

/* The times written into it say nothing: a holder whose clock is wrong is not overtaken. */
static void test_lease__times_in_it_are_not_believed(void **state)
{
    struct world *world = *state;
    struct node *b;

    world->version = 7;
    world->lease = json_pack("{s:s, s:s, s:{s:s, s:s, s:s}, s:{s:s, s:i, s:s, s:i}}", "apiVersion",
                             "coordination.k8s.io/v1", "kind", "Lease", "metadata", "name", "l", "namespace", "ns",
                             "resourceVersion", "7", "spec", "holderIdentity", "x", "leaseDurationSeconds", 20,
                             "renewTime", "2001-01-01T00:00:00.000000Z", "leaseTransitions", 4);
    b = node_begin(world, "b");
    run(world, 19000);
    assert_int_equal(b->acquired_ms, -1);
    run(world, 5000);
    assert_true(b->acquired_ms >= 20000); /* as long as the holder promised */
    assert_int_equal(json_integer_value(json_object_get(json_object_get(world->lease, "spec"), "leaseTransitions")), 5);
}

static void test_lease__our_own_identity_is_no_other(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a"), *again;
    int64_t died_ms;

    run(world, 5000);
    node_kill(a);
    died_ms = clock_now_ms(world->clock) - START_MS;
    again = node_begin(world, "a");
    run(world, 1000);
    assert_in_range(again->acquired_ms, died_ms, died_ms + 20);
}

static void test_lease__given_back_it_is_free_at_once(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a"), *b;

    run(world, 500);
    b = node_begin(world, "b");
    run(world, 10000);
    lease_release(a->lease, on_released, a);
    assert_false(lease_is_held(a->lease));
    run(world, 5000);
    assert_true(a->released_ms >= 10500 && a->released_ms <= 10510);
    assert_true(b->acquired_ms >= a->released_ms - 5 && b->acquired_ms <= a->released_ms + 2500);
    assert_int_equal(a->lost_ms, -1);
}

static void test_lease__giving_back_to_nobody_ends_too(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a");

    run(world, 500);
    a->http.is_cut = true;
    lease_release(a->lease, on_released, a);
    run(world, 10000);
    assert_int_equal(a->released_ms, 1500);
}

static void test_lease__deleted_by_hand_it_is_made_again(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a");

    run(world, 5000);
    json_decref(world->lease);
    world->lease = NULL;
    run(world, 5000);
    assert_int_equal(a->lost_ms, -1);
    assert_string_equal(stored(world, "holderIdentity"), "a");
}

static void test_lease__taken_by_hand_it_is_lost_at_once(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a");

    run(world, 5000);
    json_object_set_new(json_object_get(world->lease, "spec"), "holderIdentity", json_string("x"));
    json_object_set_new(json_object_get(world->lease, "metadata"), "resourceVersion", json_string("900"));
    world->version = 900;
    run(world, 2500);
    assert_true(a->lost_ms > 5000);
    assert_string_equal(a->holder, "x");
}

static void test_lease__refusals_are_told_once_and_asked_again_slowly(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a");

    world->refuse_with = 403;
    run(world, 60000);
    assert_int_equal(a->n_failed, 1);
    assert_true(a->http.n_sent < 40);
    world->refuse_with = 0;
    run(world, 5000);
    assert_true(lease_is_held(a->lease));
}

/* A server that says "conflict" for ever is not asked without a pause. */
static void test_lease__endless_conflicts_do_not_spin(void **state)
{
    struct world *world = *state;
    struct node *a = node_begin(world, "a");

    run(world, 2);
    world->refuse_with = 409;
    run(world, 60000);
    assert_true(a->http.n_sent < 80);
}

/* Any schedule of cuts, deaths and returns: never two at a time. */
static void test_lease__never_two(void **state)
{
    struct world *world = *state;
    struct rng rng = {7};

    for (int i = 0; i < N_MAX; i++)
        node_begin(world, i == 0 ? "a" : i == 1 ? "b" : "c");
    for (int step = 0; step < 2000; step++) {
        struct node *node = &world->nodes[rng_below(&rng, N_MAX)];

        node->http.is_cut = rng_below(&rng, 3) == 0;
        node->http.is_half_cut = rng_below(&rng, 4) == 0;
        node->http.latency_ms = (int64_t)rng_below(&rng, 1500);
        run(world, (int64_t)rng_below(&rng, 6000));
        if (rng_below(&rng, 10) == 0) { /* it ended, and a new process begins */
            char name[16];

            snprintf(name, sizeof(name), "%c%d", 'a' + (int)(node - world->nodes), step);
            node_kill(node);
            world->n = (size_t)(node - world->nodes);
            node_begin(world, name);
            world->n = N_MAX;
        }
        assert_true(world->n_held_max <= 1);
    }
}

#define FACT(name) cmocka_unit_test_setup_teardown(test_lease__##name, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FACT(the_first_creates_it),
        FACT(is_renewed_and_kept),
        FACT(the_second_waits),
        FACT(is_taken_over_within_15_s_of_a_death),
        FACT(two_who_wait_do_not_both_get_it),
        FACT(a_leader_that_is_cut_off_stops_before_another_begins),
        FACT(cut_off_alone_it_has_it_again_when_the_server_is_back),
        FACT(cut_off_it_sees_who_has_it_now),
        FACT(lost_answers_are_found_out),
        FACT(a_lost_creation_is_found_out),
        FACT(short_failures_are_survived),
        FACT(a_process_that_slept_leads_no_more),
        FACT(a_step_of_the_system_time_loses_nothing),
        FACT(times_in_it_are_not_believed),
        FACT(our_own_identity_is_no_other),
        FACT(given_back_it_is_free_at_once),
        FACT(giving_back_to_nobody_ends_too),
        FACT(deleted_by_hand_it_is_made_again),
        FACT(taken_by_hand_it_is_lost_at_once),
        FACT(refusals_are_told_once_and_asked_again_slowly),
        FACT(endless_conflicts_do_not_spin),
        FACT(never_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
