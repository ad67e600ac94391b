#include "cli/cli.h"

#include <stdarg.h>
#include <string.h>

#include "allocator/base/str.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/text.h"

#include "allocator/base/banned.h"

static const struct {
    enum err_code code;
    enum exit_code exit;
} exits[] = {
    {ERR_NONE, EXIT_SERVER},         {ERR_INVALID, EXIT_REFUSED},      {ERR_LIMIT, EXIT_REFUSED},
    {ERR_NOT_FOUND, EXIT_NOT_FOUND}, {ERR_DENIED, EXIT_DENIED},        {ERR_CONFLICT, EXIT_CONFLICT},
    {ERR_TIMEOUT, EXIT_TIMED_OUT},   {ERR_UNAVAILABLE, EXIT_CONFLICT}, {ERR_IO, EXIT_UNREACHABLE},
    {ERR_REMOTE, EXIT_SERVER},
};

int exit_code_of(enum err_code code)
{
    for (size_t i = 0; i < ARRAY_SIZE(exits); i++)
        if (exits[i].code == code)
            return exits[i].exit;
    return EXIT_SERVER;
}

int cli_fail(struct cli *cli, const struct error *err)
{
    BUF words = {0};

    text_add(&words, err->text);
    fprintf(cli->err, "dra-submit: %s\n", buf_str(&words));
    return exit_code_of(err->code);
}

int cli_usage(struct cli *cli, const char *fmt, ...)
{
    const struct command *command = cli->args.command;
    va_list args;

    fputs("dra-submit: ", cli->err);
    va_start(args, fmt);
    vfprintf(cli->err, fmt, args);
    va_end(args);
    fprintf(cli->err, "\nFor help: dra-submit help%s%s\n", command ? " " : "", command ? command->name : "");
    return EXIT_USAGE;
}

static int choose_output(struct cli *cli, struct error *err)
{
    static const char *const names[] = {
        [OUTPUT_TABLE] = "table", [OUTPUT_WIDE] = "wide", [OUTPUT_NAME] = "name",
        [OUTPUT_JSON] = "json",   [OUTPUT_YAML] = "yaml", [OUTPUT_CSV] = "csv",
    };
    const char *name = args_value(&cli->args, OPT_OUTPUT, "table");

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], name) == 0) {
            cli->output = (enum output)i;
            return 0;
        }
    return error_set(err, ERR_INVALID, "--output: \"%.40s\" is none of table, wide, name, json, yaml, csv", name);
}

static int run_command(struct cli *cli)
{
    const struct command *command = cli->args.command;

    if (args_has(&cli->args, OPT_HELP)) {
        if (command)
            help_command(cli, command);
        else
            help_overview(cli);
        return EXIT_OK;
    }
    if (args_has(&cli->args, OPT_VERSION))
        return run_version(cli);
    if (!command) {
        help_overview(cli);
        return EXIT_USAGE;
    }
    return command->run(cli);
}

int cli_run(struct cli *cli, int argc, const char *const *argv)
{
    struct error err = {0};
    int status;

    if (args_parse(argc, argv, &cli->args, &err) < 0 || choose_output(cli, &err) < 0)
        status = cli_usage(cli, "%s", err.text);
    else
        status = run_command(cli);
    if (fflush(cli->out) != 0 && status == EXIT_OK)
        status = EXIT_SERVER;
    client_free(cli->client);
    cli->client = NULL;
    args_release(&cli->args);
    return status;
}
