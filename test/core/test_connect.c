/* Which cluster a configuration means, and the lease by which a process leads there. */
#include "queued/connect.h"
#include "test/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>

#include "queued/clock.h"
#include "queued/config.h"
#include "queued/log.h"

#include "allocator/base/banned.h"

static const struct wanted_case {
    const char *name;
    const char *keys; /* as a configuration file */
    const char *want; /* "kubernetes", "embedded", or the field that is refused */
} wanted_cases[] = {
    {"nothing", "", "kubeconfig"},
    {"a kubeconfig", "kubeconfig = f\n", "kubernetes"},
    {"a kubeconfig with a context", "kubeconfig = f\ncontext = c\n", "kubernetes"},
    {"in the cluster", "in-cluster = true\n", "kubernetes"},
    {"manifests", "embedded = d\n", "embedded"},
    {"manifests in virtual time", "embedded = d\nclock = virtual\n", "embedded"},
    {"Kubernetes in virtual time", "kubeconfig = f\nclock = virtual\n", "clock"},
    {"manifests and a kubeconfig", "embedded = d\nkubeconfig = f\n", "embedded"},
    {"manifests and in the cluster", "embedded = d\nin-cluster = true\n", "in-cluster"},
    {"a kubeconfig and in the cluster", "kubeconfig = f\nin-cluster = true\n", "in-cluster"},
    {"a context of nothing", "embedded = d\ncontext = c\n", "context"},
};

static void load(struct config *config, const char *keys)
{
    struct error err = {0};

    config_init(config);
    if (config_parse(config, "test", keys, &err) < 0)
        fail_msg("%s", err.text);
}

static void test_connect__wanted(void **state)
{
    const struct wanted_case *c = *state;
    struct config config;
    struct error err = {0};
    bool is_kubernetes = false;

    unsetenv("KUBERNETES_SERVICE_HOST");
    load(&config, c->keys);
    if (connection_is_wanted(&config, &is_kubernetes, &err) < 0)
        assert_string_equal(err.field, c->want);
    else
        assert_string_equal(is_kubernetes ? "kubernetes" : "embedded", c->want);
    config_release(&config);
}

/* ---- opening one ---- */

struct world {
    struct event_base *base;
    struct clock *clock;
    char folder[64];
    struct config config;
    struct connection *connection;
    bool leads;
    char reason[256];
};

static void on_leads(void *ctx)
{
    struct world *world = ctx;

    world->leads = true;
}

static void on_waits(void *ctx, const char *reason)
{
    struct world *world = ctx;

    snprintf(world->reason, sizeof(world->reason), "%s", reason);
}

static void on_lost(void *ctx, const struct error *err)
{
    (void)ctx;
    fail_msg("%s", err->text);
}

static void on_taken(void *ctx)
{
    (void)ctx;
    fail_msg("nobody else leads");
}

static void write_kubeconfig(const struct world *world)
{
    BUF path = {0};
    FILE *file;

    buf_addf(&path, "%s/config", world->folder);
    file = fopen(buf_str(&path), "we");
    assert_non_null(file);
    fputs("apiVersion: v1\nkind: Config\ncurrent-context: c\n"
          "contexts: [{name: c, context: {cluster: k, user: u, namespace: team}}]\n"
          "clusters: [{name: k, cluster: {server: 'https://127.0.0.1:1'}}]\n"
          "users: [{name: u, user: {token: t}}]\n",
          file);
    fclose(file);
}

static int world_begin(void **state)
{
    struct world *world = test_calloc(1, sizeof(*world));

    log_setup(LOG_ERROR, LOG_TEXT);
    snprintf(world->folder, sizeof(world->folder), "/tmp/queued-test-connect.XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    world->base = event_base_new();
    world->clock = clock_real_new(world->base);
    write_kubeconfig(world);
    *state = world;
    return 0;
}

static int world_end(void **state)
{
    static const char *const files[] = {"config", "identity"};
    struct world *world = *state;

    connection_free(world->connection);
    config_release(&world->config);
    clock_free(world->clock);
    event_base_free(world->base);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        BUF path = {0};

        buf_addf(&path, "%s/%s", world->folder, files[i]);
        unlink(buf_str(&path));
    }
    rmdir(world->folder);
    test_free(world);
    return 0;
}

static int open_with(struct world *world, const char *more, struct error *err)
{
    struct connection_options options = {.base = world->base,
                                         .clock = world->clock,
                                         .config = &world->config,
                                         .ctx = world,
                                         .leads = on_leads,
                                         .waits = on_waits,
                                         .lost = on_lost,
                                         .taken = on_taken};
    BUF keys = {0};

    buf_addf(&keys, "state = %s\nkubeconfig = %s/config\n%s", world->folder, world->folder, more);
    load(&world->config, buf_str(&keys));
    return connection_open(&options, &world->connection, err);
}

static void test_connect__without_a_lease_it_leads_at_once(void **state)
{
    struct world *world = *state;
    struct error err = {0};

    assert_int_equal(open_with(world, "lease = none\n", &err), 0);
    connection_begin(world->connection);
    assert_true(world->leads);
}

/* Nobody listens at port 1: the lease cannot be read, and that is told. */
static void test_connect__with_a_lease_it_waits_and_says_why(void **state)
{
    struct world *world = *state;
    struct error err = {0};

    assert_int_equal(open_with(world, "", &err), 0);
    connection_begin(world->connection);
    assert_string_equal(world->reason, "the lease has not been read yet");
    for (int i = 0; i < 200 && !strstr(world->reason, "cannot be had"); i++)
        event_base_loop(world->base, EVLOOP_ONCE);
    assert_non_null(strstr(world->reason, "the lease team/queued cannot be had: "));
    assert_false(world->leads);
}

static const char *const bad_leases[] = {"a/b/c", "/b", "a/"};

static void test_connect__a_lease_is_a_name_in_a_namespace(void **state)
{
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_SIZE(bad_leases); i++) {
        struct error err = {0};
        BUF key = {0};

        buf_addf(&key, "lease = %s\n", bad_leases[i]);
        assert_int_equal(open_with(world, buf_str(&key), &err), -1);
        assert_string_equal(err.field, "lease");
        config_release(&world->config);
    }
}

static void test_connect__a_kubeconfig_that_is_not_there_is_named(void **state)
{
    struct world *world = *state;
    struct error err = {0};

    assert_int_equal(open_with(world, "kubeconfig = /no/such/file\n", &err), -1);
    assert_non_null(strstr(err.text, "/no/such/file"));
}

static void test_connect__given_back_what_it_never_had_it_ends_at_once(void **state)
{
    struct world *world = *state;
    struct error err = {0};

    assert_int_equal(open_with(world, "", &err), 0);
    connection_begin(world->connection);
    connection_release(world->connection, on_leads, world);
    assert_true(world->leads); /* `done`, from inside */
}

#define FACT(name) cmocka_unit_test_setup_teardown(test_connect__##name, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FACT(without_a_lease_it_leads_at_once),
        FACT(with_a_lease_it_waits_and_says_why),
        FACT(a_lease_is_a_name_in_a_namespace),
        FACT(a_kubeconfig_that_is_not_there_is_named),
        FACT(given_back_what_it_never_had_it_ends_at_once),
    };
    int failed = RUN_TABLE(test_connect__wanted, wanted_cases);

    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
