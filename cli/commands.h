/* cli/commands.h - the table of commands: names, words, options, help and function. One more command is one more row.
 */
#ifndef QUEUED_CLI_COMMANDS_H
#define QUEUED_CLI_COMMANDS_H

#include <stddef.h>

#include "cli/cli.h"

#define COMMAND_OPTIONS_MAX 12

struct command {
    const char *name;  /* may be two words: "tokens create" */
    const char *alias; /* for hands that know another tool; or NULL */
    const char *words; /* as the help shows them */
    size_t min_words, max_words;
    enum option_id options[COMMAND_OPTIONS_MAX]; /* beside the global ones; ends with OPT_HELP (0) */
    const char *help;                            /* one line */
    const char *more;                            /* paragraphs; or NULL */
    int (*run)(struct cli *cli);
};

extern const struct command commands[];
size_t commands_count(void);

/* The command that one or two words name, or NULL; *out_used is how many words it took. */
const struct command *command_find(const char *first, const char *second, size_t *out_used);
bool command_has_option(const struct command *command, enum option_id id);
/* The submit command, which files alone mean too. */
const struct command *command_submit(void);

/* help.c */
void help_overview(struct cli *cli);
void help_command(struct cli *cli, const struct command *command);

/* ---- the functions ---- */

int run_help(struct cli *cli);
int run_completion(struct cli *cli);
int run_submit(struct cli *cli); /* submit.c */
int run_apply(struct cli *cli);
int run_ls(struct cli *cli); /* jobs.c */
int run_show(struct cli *cli);
int run_action(struct cli *cli);
int run_wait(struct cli *cli); /* follow.c */
int run_logs(struct cli *cli);
int run_events(struct cli *cli);
int run_explain(struct cli *cli); /* explain.c */
int run_queues(struct cli *cli);  /* admin.c */
int run_resources(struct cli *cli);
int run_tokens(struct cli *cli);
int run_tokens_create(struct cli *cli);
int run_tokens_delete(struct cli *cli);
int run_devices(struct cli *cli); /* machine.c */
int run_nodes(struct cli *cli);
int run_clock(struct cli *cli);
int run_clock_advance(struct cli *cli);
int run_cluster_command(struct cli *cli);
int run_version(struct cli *cli);

#endif
