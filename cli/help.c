/* Help and completion, from the tables of commands, options and exit codes. */
#include <string.h>

#include "allocator/base/str.h"
#include "cli/commands.h"

#include "allocator/base/banned.h"

static const struct {
    enum exit_code code;
    const char *meaning;
} exit_codes[] = {
    {EXIT_OK, "done; the jobs that were waited for succeeded"},
    {EXIT_JOB_FAILED, "a job that was waited for failed or was cancelled"},
    {EXIT_USAGE, "wrong command line"},
    {EXIT_REFUSED, "the input is refused; nothing was changed"},
    {EXIT_NOT_FOUND, "no such job, queue, token or file"},
    {EXIT_DENIED, "not allowed: no token, a wrong one, or one without the right"},
    {EXIT_UNREACHABLE, "no server found, or it does not answer"},
    {EXIT_TIMED_OUT, "the time was over"},
    {EXIT_CONFLICT, "not in this state, changed by somebody else, or not now"},
    {EXIT_SERVER, "the server failed"},
};

static void option_line(struct cli *cli, enum option_id id)
{
    const struct option *option = &options[id];
    BUF left = {0};

    if (option->letter)
        buf_addf(&left, "-%c, ", option->letter);
    else
        buf_adds(&left, "    ");
    buf_addf(&left, "--%s%s%s", option->name, option->value ? " " : "", option->value ? option->value : "");
    if (left.len > 28)
        fprintf(cli->out, "  %s\n  %-28s  %s\n", buf_str(&left), "", option->help);
    else
        fprintf(cli->out, "  %-28s  %s\n", buf_str(&left), option->help);
}

static void global_options(struct cli *cli)
{
    fputs("\nOptions of every command:\n", cli->out);
    for (size_t i = 0; i < OPT_GLOBAL_COUNT; i++)
        option_line(cli, (enum option_id)i);
}

void help_overview(struct cli *cli)
{
    fputs("dra-submit - submit gangs to queued and look after them\n\n"
          "Usage: dra-submit FILE...            submit manifests\n"
          "       dra-submit COMMAND [OPTION]... [WORD]...\n\n"
          "Commands:\n",
          cli->out);
    for (size_t i = 0; i < commands_count(); i++) {
        BUF left = {0};

        buf_addf(&left, "%s %s", commands[i].name, commands[i].words);
        fprintf(cli->out, "  %-28s  %s", buf_str(&left), commands[i].help);
        fprintf(cli->out, commands[i].alias ? " (%s)\n" : "\n", commands[i].alias);
    }
    global_options(cli);
    fputs(
        "\nThe server is the first that is given of: --server, DRA_SERVER, server= in the configuration\n"
        "($XDG_CONFIG_HOME/dra-submit/config or ~/.config/dra-submit/config), the sockets /run/queued/queued.sock and\n"
        "$XDG_RUNTIME_DIR/queued.sock. The token: --token-file, DRA_TOKEN, token-file= in the configuration (for its "
        "own\n"
        "server only). The local administrator needs none on the socket. The configuration has lines KEY = VALUE;\n"
        "further keys: namespace, queue.\n\nExit status:\n",
        cli->out);
    for (size_t i = 0; i < ARRAY_SIZE(exit_codes); i++)
        fprintf(cli->out, "  %d  %s\n", (int)exit_codes[i].code, exit_codes[i].meaning);
    fputs("\nMore on a command: dra-submit help COMMAND\n", cli->out);
}

void help_command(struct cli *cli, const struct command *command)
{
    fprintf(cli->out, "dra-submit %s - %s\n\nUsage: dra-submit %s [OPTION]...%s%s\n", command->name, command->help,
            command->name, *command->words ? " " : "", command->words);
    if (command->alias)
        fprintf(cli->out, "       dra-submit %s ...\n", command->alias);
    if (command->more)
        fprintf(cli->out, "\n%s\n", command->more);
    if (command->options[0] != OPT_HELP)
        fputs("\nOptions:\n", cli->out);
    for (size_t i = 0; i < COMMAND_OPTIONS_MAX && command->options[i] != OPT_HELP; i++)
        option_line(cli, command->options[i]);
    global_options(cli);
}

int run_help(struct cli *cli)
{
    const struct args *args = &cli->args;
    const struct command *command;
    size_t used;

    if (args->n_words == 0) {
        help_overview(cli);
        return EXIT_OK;
    }
    command = command_find(args->words[0], args->n_words > 1 ? args->words[1] : NULL, &used);
    if (!command)
        return cli_usage(cli, "there is no command \"%.60s\"", args->words[0]);
    help_command(cli, command);
    return EXIT_OK;
}

/* ---- completion ---- */

static void complete_options(struct cli *cli, const struct command *command)
{
    for (size_t i = 0; i < OPT_COUNT; i++)
        if (command_has_option(command, (enum option_id)i))
            fprintf(cli->out, " --%s%s", options[i].name, options[i].value ? "=" : "");
}

/* Commands, options, and the ids of jobs where a job is meant. */
int run_completion(struct cli *cli)
{
    if (strcmp(cli->args.words[0], "bash") != 0)
        return cli_usage(cli, "there is completion for bash only, not for \"%.40s\"", cli->args.words[0]);
    fputs("_dra_submit() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        words=\"",
          cli->out);
    for (size_t i = 0; i < commands_count(); i++)
        if (!strchr(commands[i].name, ' '))
            fprintf(cli->out, "%s%s", i > 0 ? " " : "", commands[i].name);
    fputs("\"\n        COMPREPLY=($(compgen -W \"$words\" -- \"$word\") $(compgen -f -- \"$word\"))\n        return\n  "
          "  fi\n"
          "    case $command in\n",
          cli->out);
    for (size_t i = 0; i < commands_count(); i++) {
        if (strchr(commands[i].name, ' '))
            continue;
        fprintf(cli->out, "    %s%s%s) words=\"", commands[i].name, commands[i].alias ? "|" : "",
                commands[i].alias ? commands[i].alias : "");
        complete_options(cli, &commands[i]);
        fputs("\"", cli->out);
        if (strncmp(commands[i].words, "JOB", 3) == 0)
            fputs("\n        [[ $word == -* ]] || words+=\" $(dra-submit ls -a -o name 2>/dev/null)\"", cli->out);
        fputs(" ;;\n", cli->out);
    }
    fputs("    *) words=\"\" ;;\n    esac\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "    [[ $word == -* ]] || COMPREPLY+=($(compgen -f -- \"$word\"))\n"
          "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
          "}\n"
          "complete -o filenames -F _dra_submit dra-submit\n",
          cli->out);
    return EXIT_OK;
}
