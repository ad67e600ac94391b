#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "queued/config.h"

#include "allocator/base/banned.h"

enum { ARGS_MAX = 8 };

/* What the sources give, or the words of the refusal. */
static const struct load_case {
    const char *name;
    const char *environ[4];
    const char *args[ARGS_MAX];
    const char *want_line; /* of the printed configuration, or NULL */
    const char *want_error;
} load_cases[] = {
    {"the default", {0}, {0}, "max-connections = 512\n", NULL},
    {"a flag", {0}, {"--max-connections", "7"}, "max-connections = 7\n", NULL},
    {"a flag with equals", {0}, {"--state=/s"}, "state = /s\n", NULL},
    {"a value may hold an equals sign", {0}, {"--state=/a=b"}, "state = /a=b\n", NULL},
    {"an empty value", {0}, {"--listen="}, "listen = \n", NULL},
    {"the environment", {"QUEUED_LOG_LEVEL=debug"}, {0}, "log-level = debug\n", NULL},
    {"flags win over the environment", {"QUEUED_LOG_LEVEL=debug"}, {"--log-level", "warn"}, "log-level = warn\n", NULL},
    {"other variables are no business of ours",
     {"QUEUED=1", "QUEUED_LOG=1", "HOME=/"},
     {0},
     "log-level = info\n",
     NULL},
    {"sizes have units", {0}, {"--max-body-bytes", "64KiB"}, "max-body-bytes = 64KiB\n", NULL},
    {"sizes are printed in the largest", {0}, {"--max-body-bytes", "2097152"}, "max-body-bytes = 2MiB\n", NULL},
    {"times have units", {0}, {"--request-timeout", "90s"}, "request-timeout = 90s\n", NULL},
    {"modes are octal", {0}, {"--socket-mode", "0660"}, "socket-mode = 0660\n", NULL},
    {"KUBECONFIG is not taken", {"KUBECONFIG=/k"}, {0}, "kubeconfig = \n", NULL},
    {"a kubeconfig", {"QUEUED_KUBECONFIG=/k"}, {0}, "kubeconfig = /k\n", NULL},
    {"a lease", {0}, {"--lease", "ns/name"}, "lease = ns/name\n", NULL},
    {"a lease too short to be kept",
     {0},
     {"--lease-duration", "1s"},
     NULL,
     "flag: lease-duration must be a time (ms, s, m, h) from 2s to 5m, not '1s'"},
    {"a yes or no", {0}, {"--in-cluster", "maybe"}, NULL, "flag: in-cluster must be false or true, not 'maybe'"},
    {"unknown flag", {0}, {"--colour", "red"}, NULL, "there is no flag --colour; see --help"},
    {"unexpected word", {0}, {"serve"}, NULL, "unexpected argument 'serve'; see --help"},
    {"no value", {0}, {"--state"}, NULL, "--state wants a value; see --help"},
    {"too large",
     {0},
     {"--max-connections", "100001"},
     NULL,
     "flag: max-connections must be a number from 1 to 100000, not '100001'"},
    {"too small",
     {0},
     {"--max-connections", "0"},
     NULL,
     "flag: max-connections must be a number from 1 to 100000, not '0'"},
    {"no number",
     {0},
     {"--max-connections", "12x"},
     NULL,
     "flag: max-connections must be a number from 1 to 100000, not '12x'"},
    {"a number that fits nowhere",
     {0},
     {"--max-connections", "99999999999999999999"},
     NULL,
     "flag: max-connections must be a number from 1 to 100000, not '99999999999999999999'"},
    {"a product that fits nowhere",
     {0},
     {"--request-timeout", "9999999999999999h"},
     NULL,
     "flag: request-timeout must be a time (ms, s, m, h) from 100ms to 1h, not '9999999999999999h'"},
    {"a time without its unit",
     {0},
     {"--request-timeout", "30"},
     NULL,
     "flag: request-timeout must be a time (ms, s, m, h) from 100ms to 1h, not '30'"},
    {"a negative number",
     {0},
     {"--crash-at", "-1"},
     NULL,
     "flag: crash-at must be a number from 0 to 1000000, not '-1'"},
    {"a choice", {0}, {"--clock", "sundial"}, NULL, "flag: clock must be real or virtual, not 'sundial'"},
    {"a mode",
     {0},
     {"--socket-mode", "0999"},
     NULL,
     "flag: socket-mode must be an octal number from 00 to 0777, not '0999'"},
    {"a required text", {0}, {"--state="}, NULL, "flag: state must be a text of 1 to 4096 bytes, not ''"},
    {"control characters", {0}, {"--state=a\nb"}, NULL, "flag: state must be a text of 1 to 4096 bytes, not 'a\nb'"},
    {"the environment is checked too",
     {"QUEUED_CLOCK=x"},
     {0},
     NULL,
     "environment: clock must be real or virtual, not 'x'"},
    {"no such file",
     {0},
     {"--config", "/nowhere/queued.conf"},
     NULL,
     "/nowhere/queued.conf: No such file or directory"},
};

static int load(const struct load_case *c, struct config *config, enum config_action *action, struct error *err)
{
    const char *argv[ARGS_MAX + 2] = {"queued"};
    int argc = 1;

    while (argc <= ARGS_MAX && c->args[argc - 1]) {
        argv[argc] = c->args[argc - 1];
        argc++;
    }
    return config_load(config, argc, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)c->environ, action, err);
}

static void test_config__load(void **state)
{
    const struct load_case *c = *state;
    struct config config;
    enum config_action action;
    struct error err = {0};
    int result;
    BUF text = {0};

    config_init(&config);
    result = load(c, &config, &action, &err);
    assert_string_equal(err.text, c->want_error ? c->want_error : "");
    assert_int_equal(result, c->want_error ? -1 : 0);
    config_format_to(&config, &text);
    if (c->want_line)
        assert_non_null(strstr(buf_str(&text), c->want_line));
    config_release(&config);
}

static const struct action_case {
    const char *name;
    const char *args[ARGS_MAX];
    enum config_action want;
} action_cases[] = {
    {"run", {"--state", "x"}, CONFIG_RUN},
    {"help", {"--help"}, CONFIG_HELP},
    {"version", {"--version"}, CONFIG_VERSION},
    {"print", {"--print-config", "--state", "x"}, CONFIG_PRINT},
    {"help wins over what would be refused later", {"--help", "--nonsense"}, CONFIG_HELP},
};

static void test_config__action(void **state)
{
    const struct action_case *c = *state;
    struct load_case load_case = {0};
    struct config config;
    enum config_action action;
    struct error err = {0};

    memcpy(load_case.args, c->args, sizeof(load_case.args));
    config_init(&config);
    assert_int_equal(load(&load_case, &config, &action, &err), 0);
    assert_int_equal(action, c->want);
    config_release(&config);
}

static const struct file_case {
    const char *name;
    const char *text;
    const char *want_line, *want_error;
} file_cases[] = {
    {"a line", "state = /var/lib/queued\n", "state = /var/lib/queued\n", NULL},
    {"white space, comments, empty lines", "# a\n\n   state=/s  \n\t# b\n", "state = /s\n", NULL},
    {"the last line needs no end", "clock = virtual", "clock = virtual\n", NULL},
    {"the last value wins", "clock = virtual\nclock = real\n", "clock = real\n", NULL},
    {"carriage returns", "clock = virtual\r\n", "clock = virtual\n", NULL},
    {"a value may hold a hash", "state = /a#b\n", "state = /a#b\n", NULL},
    {"unknown key", "state = /s\n\ncolour = red\n", NULL, "f.conf:3: there is no key 'colour'"},
    {"wrong value", "clock = sundial\n", NULL, "f.conf:1: clock must be real or virtual, not 'sundial'"},
    {"no equals sign", "# x\nstate\n", NULL, "f.conf:2: 'state' is not of the form: key = value"},
    {"no key", "= x\n", NULL, "f.conf:1: there is no key ''"},
};

static void test_config__file(void **state)
{
    const struct file_case *c = *state;
    struct config config;
    struct error err = {0};
    int result;
    BUF text = {0};

    config_init(&config);
    result = config_parse(&config, "f.conf", c->text, &err);
    assert_string_equal(err.text, c->want_error ? c->want_error : "");
    assert_int_equal(result, c->want_error ? -1 : 0);
    config_format_to(&config, &text);
    if (c->want_line)
        assert_non_null(strstr(buf_str(&text), c->want_line));
    config_release(&config);
}

static void test_config__printed_form_is_read_back(void **state)
{
    struct config first, second;
    struct error err = {0};
    BUF one = {0};
    BUF two = {0};

    (void)state;
    config_init(&first);
    config_init(&second);
    assert_int_equal(config_set(&first, "state", "/s", &err), 0);
    assert_int_equal(config_set(&first, "request-timeout", "1500ms", &err), 0);
    assert_int_equal(config_set(&first, "socket-mode", "0640", &err), 0);
    assert_int_equal(config_set(&first, "log-format", "json", &err), 0);
    config_format_to(&first, &one);
    assert_int_equal(config_parse(&second, "printed", buf_str(&one), &err), 0);
    config_format_to(&second, &two);
    assert_string_equal(buf_str(&one), buf_str(&two));
    config_release(&first);
    config_release(&second);
}

/* The table of keys in api/README.md is config_markdown_to, byte for byte. */
static void test_config__readme_has_the_table(void **state)
{
    FILE *file = fopen("api/README.md", "re");
    char bytes[4096];
    size_t n;
    BUF readme = {0};
    BUF table = {0};

    (void)state;
    assert_non_null(file);
    while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0)
        buf_add(&readme, bytes, n);
    fclose(file);
    config_markdown_to(&table);
    if (!strstr(buf_str(&readme), buf_str(&table)))
        fail_msg("api/README.md should have:\n%s", buf_str(&table));
}

static void test_config__help_names_every_key(void **state)
{
    struct config config;
    BUF help = {0};
    BUF values = {0};

    (void)state;
    config_init(&config);
    config_help_to(&help);
    config_format_to(&config, &values);
    for (const char *line = buf_str(&values); *line; line += strcspn(line, "\n") + 1)
        if (line[0] != '#') {
            BUF flag = {0};

            buf_addf(&flag, "  --%.*s ", (int)strcspn(line, " "), line);
            assert_non_null(strstr(buf_str(&help), buf_str(&flag)));
        }
    config_release(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config__printed_form_is_read_back),
        cmocka_unit_test(test_config__help_names_every_key),
        cmocka_unit_test(test_config__readme_has_the_table),
    };
    int failed = RUN_TABLE(test_config__load, load_cases);

    failed += RUN_TABLE(test_config__action, action_cases);
    failed += RUN_TABLE(test_config__file, file_cases);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
