/* Which server, and which token it gets to see. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/settings.h"

struct world {
    char folder[64];
};

static void write_file(const struct world *world, const char *name, const char *text)
{
    char path[200];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", world->folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int set_up(void **state)
{
    struct world *world = mem_new(struct world);
    char path[200];

    snprintf(world->folder, sizeof(world->folder), "/tmp/queued-test-cli-XXXXXX");
    if (!mkdtemp(world->folder))
        return -1;
    snprintf(path, sizeof(path), "%s/dra-submit", world->folder);
    mkdir(path, 0700);
    setenv("XDG_CONFIG_HOME", world->folder, 1);
    setenv("XDG_RUNTIME_DIR", world->folder, 1);
    unsetenv("DRA_SERVER");
    unsetenv("DRA_TOKEN");
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    static const char *const names[] = {"dra-submit/config", "token", "other", "queued.sock"};
    char path[200];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", world->folder, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/dra-submit", world->folder);
    rmdir(path);
    rmdir(world->folder);
    free(world);
    return 0;
}

static const char *environment(const char *name)
{
    return getenv(name);
}

/* "server token", or the reason why there is none. */
static void load(const struct cli *cli, char *out, size_t size)
{
    struct settings settings;
    struct error err = {0};

    if (settings_load(cli, &settings, &err) < 0) {
        snprintf(out, size, "%s", err.text);
        return;
    }
    snprintf(out, size, "%s %s", settings.server, settings.token ? settings.token : "-");
    settings_release(&settings);
}

static void configure(const struct world *world)
{
    char text[300];

    write_file(world, "token", " secret\n");
    write_file(world, "other", "other");
    snprintf(text, sizeof(text), "# mine\n\nserver = http://configured:1\ntoken-file=%s/token\nnamespace = team-a\r\n",
             world->folder);
    write_file(world, "dra-submit/config", text);
}

static void test_cli_settings__the_configuration_is_read(void **state)
{
    struct cli cli = {.env = environment};
    char got[300];

    configure(*state);
    load(&cli, got, sizeof(got));
    assert_string_equal(got, "http://configured:1 secret");
}

static void test_cli_settings__the_configured_token_is_for_the_configured_server(void **state)
{
    struct cli cli = {.env = environment};
    char got[300];

    configure(*state);
    setenv("DRA_SERVER", "http://elsewhere:2", 1);
    load(&cli, got, sizeof(got));
    assert_string_equal(got, "http://elsewhere:2 -");
    cli.args.values[OPT_SERVER] = "http://configured:1";
    load(&cli, got, sizeof(got));
    assert_string_equal(got, "http://configured:1 secret");
}

static void test_cli_settings__flags_win_over_environment_over_file(void **state)
{
    const struct world *world = *state;
    struct cli cli = {.env = environment};
    char got[300], path[200];

    configure(world);
    setenv("DRA_SERVER", "http://elsewhere:2", 1);
    setenv("DRA_TOKEN", "from-env", 1);
    load(&cli, got, sizeof(got));
    assert_string_equal(got, "http://elsewhere:2 from-env");
    snprintf(path, sizeof(path), "%s/other", world->folder);
    cli.args.values[OPT_SERVER] = "unix:/flag";
    cli.args.values[OPT_TOKEN_FILE] = path;
    load(&cli, got, sizeof(got));
    assert_string_equal(got, "unix:/flag other");
}

static void test_cli_settings__the_default_socket(void **state)
{
    const struct world *world = *state;
    struct cli cli = {.env = environment};
    char got[300], want[300];

    if (access("/run/queued/queued.sock", F_OK) == 0)
        skip();
    load(&cli, got, sizeof(got));
    assert_non_null(strstr(got, "no server"));
    write_file(world, "queued.sock", "");
    snprintf(want, sizeof(want), "unix:%s/queued.sock -", world->folder);
    load(&cli, got, sizeof(got));
    assert_string_equal(got, want);
}

static void test_cli_settings__mistakes_are_named(void **state)
{
    const struct world *world = *state;
    struct cli cli = {.env = environment};
    char got[300], want[300];

    write_file(world, "dra-submit/config", "server = http://a:1\n\nfoo = bar\n");
    load(&cli, got, sizeof(got));
    snprintf(want, sizeof(want),
             "%s/dra-submit/config:3: must be KEY = VALUE with a key of server, token-file, namespace, queue",
             world->folder);
    assert_string_equal(got, want);
    write_file(world, "dra-submit/config", "server = localhost\n");
    load(&cli, got, sizeof(got));
    assert_string_equal(got,
                        "the configuration: \"localhost\" must be http://HOST:PORT, https://HOST:PORT or unix:PATH");
    write_file(world, "token", "two words");
    write_file(world, "dra-submit/config", "");
    snprintf(want, sizeof(want), "%s/token", world->folder);
    cli.args.values[OPT_SERVER] = "unix:/x";
    cli.args.values[OPT_TOKEN_FILE] = want;
    load(&cli, got, sizeof(got));
    assert_non_null(strstr(got, "must hold one token and nothing else"));
    assert_null(strstr(got, "two words"));
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_cli_settings__the_configuration_is_read),
        WITH_WORLD(test_cli_settings__the_configured_token_is_for_the_configured_server),
        WITH_WORLD(test_cli_settings__flags_win_over_environment_over_file),
        WITH_WORLD(test_cli_settings__the_default_socket),
        WITH_WORLD(test_cli_settings__mistakes_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
