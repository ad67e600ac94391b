#include "test/support/cmocka.h"

#include <string.h>

#include "allocator/base/str.h"
#include "cli/commands.h"

/* What a command line means: "ls queue=a all | word word", or the reason why it means nothing. */
static void describe(int argc, const char *const *argv, struct buf *out)
{
    struct error err = {0};
    struct args args;

    if (args_parse(argc, argv, &args, &err) < 0) {
        buf_adds(out, err.text);
        args_release(&args);
        return;
    }
    buf_adds(out, args.command ? args.command->name : "-");
    for (size_t i = 0; i < OPT_COUNT; i++)
        if (args.values[i])
            buf_addf(out, " %s%s%s", options[i].name, *args.values[i] ? "=" : "", args.values[i]);
    buf_adds(out, args.n_words ? " |" : "");
    for (size_t i = 0; i < args.n_words; i++)
        buf_addf(out, " %s", args.words[i]);
    args_release(&args);
}

static const struct args_case {
    const char *name;
    const char *argv[8];
    const char *want;
} args_cases[] = {
    {"nothing", {NULL}, "-"},
    {"a file alone is submitted", {"job.yaml"}, "submit | job.yaml"},
    {"files with options of submit",
     {"-q", "a", "x.yaml", "--dry-run", "y.yaml"},
     "submit queue=a dry-run | x.yaml y.yaml"},
    {"standard input", {"-"}, "submit | -"},
    {"as kubectl has it", {"-f", "x.yaml"}, "submit file=x.yaml | x.yaml"},
    {"several of them", {"apply", "-f", "x", "-f", "y"}, "apply file=y | x y"},
    {"a command", {"ls"}, "ls"},
    {"its other name", {"squeue", "-u", "me"}, "ls user=me"},
    {"two words", {"tokens", "create", "alice"}, "tokens create | alice"},
    {"the first word alone", {"tokens"}, "tokens"},
    {"global options before the command", {"-s", "unix:/x", "ls"}, "ls server=unix:/x"},
    {"values attached", {"ls", "-qa", "--user=b", "-t=Held"}, "ls queue=a user=b state=Held"},
    {"flags together", {"ls", "-ao", "json"}, "ls output=json all"},
    {"a letter's meaning is its command's", {"logs", "-f", "x"}, "logs follow | x"},
    {"a file with the name of a command", {"./ls"}, "submit | ./ls"},
    {"words after --", {"cancel", "--", "-x"}, "cancel | -x"},
    {"help wins over what is missing", {"show", "-h"}, "show help"},
    {"an empty value", {"ls", "--user="}, "ls user"},
    {"an unknown option", {"ls", "--foo"}, "the command ls has no option --foo"},
    {"another command's option", {"ls", "--dry-run"}, "the command ls has no option --dry-run"},
    {"another command's option before it", {"--dry-run", "ls"}, "the command ls has no option --dry-run"},
    {"no value", {"ls", "-q"}, "option -q needs a value: NAME"},
    {"a value too many", {"ls", "--all=yes"}, "option --all takes no value"},
    {"twice", {"ls", "-q", "a", "-q", "b"}, "option --queue is given twice"},
    {"too few words", {"show"}, "show needs JOB..."},
    {"too many words", {"ls", "x"}, "ls does not take \"x\""},
};

static void test_cli_args__case(void **state)
{
    const struct args_case *c = *state;
    const char *argv[10] = {"dra-submit"};
    int argc = 1;
    BUF got = {0};

    for (; argc < 9 && c->argv[argc - 1]; argc++)
        argv[argc] = c->argv[argc - 1];
    describe(argc, argv, &got);
    assert_string_equal(buf_str(&got), c->want);
}

/* Every command is found, has a help line and only options of the table; no option's letter means two things in one. */
static void test_cli_args__the_table_is_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < commands_count(); i++) {
        const struct command *command = &commands[i];

        assert_non_null(command->run);
        assert_true(strlen(command->help) > 0 && command->min_words <= command->max_words);
        for (size_t a = 0; a < OPT_COUNT; a++)
            for (size_t b = a + 1; b < OPT_COUNT; b++)
                if (command_has_option(command, (enum option_id)a) && command_has_option(command, (enum option_id)b) &&
                    options[a].letter)
                    assert_int_not_equal(options[a].letter, options[b].letter);
    }
    for (size_t i = 0; i < OPT_COUNT; i++)
        assert_true(options[i].name && options[i].help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cli_args__the_table_is_sound)};

    return RUN_TABLE(test_cli_args__case, args_cases) + cmocka_run_group_tests(tests, NULL, NULL);
}
