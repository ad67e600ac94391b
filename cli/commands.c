#include "cli/commands.h"

#include <string.h>

#include "allocator/base/banned.h"

#define JOB_WORDS "JOB..."
#define JOB_MORE                                                                                                       \
    "JOB is an id (17), a name or NAMESPACE/NAME. Of several jobs with one name the newest that has not ended is "     \
    "meant,\n"                                                                                                         \
    "else the newest."

const struct command commands[] = {
    {"submit",
     "sbatch",
     "FILE...",
     0,
     ARGS_WORDS_MAX,
     {OPT_FILE, OPT_NAMESPACE, OPT_QUEUE, OPT_ONE_JOB, OPT_DRY_RUN, OPT_WAIT, OPT_TIMEOUT, OPT_SKIP, OPT_KEY},
     "Submit manifests: all their jobs are accepted or none",
     "Reads batch/v1 Job, JobSet, v1 Pod and GangJob with the ResourceClaimTemplates and ResourceClaims beside them, "
     "as YAML or\n"
     "JSON, several documents in a file. FILE may be a folder (its *.yaml, *.yml and *.json) or - for standard input.\n"
     "`dra-submit FILE...` is the same. A problem is shown with its file, line and field. With -o name only the jobs'\n"
     "ids are printed, for scripts.",
     run_submit},
    {"ls",
     "squeue",
     "",
     0,
     0,
     {OPT_ALL, OPT_NAMESPACE, OPT_QUEUE, OPT_USER, OPT_STATE, OPT_LABEL, OPT_LIMIT},
     "List jobs",
     "Without --all and --state, jobs that have ended are left out. -o wide has more columns.",
     run_ls},
    {"show",
     "get",
     JOB_WORDS,
     1,
     ARGS_WORDS_MAX,
     {OPT_NAMESPACE},
     "Show all about jobs: placement, charges, what they asked for",
     JOB_MORE,
     run_show},
    {"explain",
     "why",
     JOB_WORDS,
     1,
     ARGS_WORDS_MAX,
     {OPT_NAMESPACE},
     "Say why a job waits, or where it runs, down to the devices",
     JOB_MORE,
     run_explain},
    {"wait",
     NULL,
     JOB_WORDS,
     1,
     ARGS_WORDS_MAX,
     {OPT_NAMESPACE, OPT_FOR, OPT_TIMEOUT},
     "Wait until jobs have ended, or reached a state",
     "The exit status is 0 when every job got there (with --for=ended: succeeded), 1 when one failed or was "
     "cancelled,\n"
     "7 when the time was over.",
     run_wait},
    {"cancel",
     "scancel",
     JOB_WORDS,
     1,
     ARGS_WORDS_MAX,
     {OPT_NAMESPACE},
     "End jobs, waiting or running",
     JOB_MORE,
     run_action},
    {"hold",
     NULL,
     JOB_WORDS,
     1,
     ARGS_WORDS_MAX,
     {OPT_NAMESPACE},
     "Keep waiting jobs from starting",
     JOB_MORE,
     run_action},
    {"release", NULL, JOB_WORDS, 1, ARGS_WORDS_MAX, {OPT_NAMESPACE}, "Let held jobs start again", JOB_MORE, run_action},
    {"requeue",
     NULL,
     JOB_WORDS,
     1,
     ARGS_WORDS_MAX,
     {OPT_NAMESPACE},
     "Stop jobs and queue them again",
     JOB_MORE,
     run_action},
    {"logs",
     NULL,
     "JOB",
     1,
     1,
     {OPT_NAMESPACE, OPT_MEMBER, OPT_TAIL, OPT_FOLLOW},
     "Print the output of a member",
     JOB_MORE,
     run_logs},
    {"events",
     NULL,
     "[JOB]",
     0,
     1,
     {OPT_NAMESPACE, OPT_FOLLOW, OPT_LIMIT},
     "Print what happened to a job, or to all jobs",
     "With -f, goes on printing until the job has ended; for all jobs, until it is interrupted.",
     run_events},
    {"queues",
     "quota",
     "[QUEUE...]",
     0,
     ARGS_WORDS_MAX,
     {0},
     "Show queues with quota, use and share",
     NULL,
     run_queues},
    {"resources", NULL, "", 0, 0, {0}, "Show what quota counts", NULL, run_resources},
    {"devices",
     NULL,
     "",
     0,
     0,
     {OPT_NODE},
     "Show devices by node, and who holds them",
     "-o wide has one line for each device.",
     run_devices},
    {"nodes", "sinfo", "", 0, 0, {0}, "Show the nodes", NULL, run_nodes},
    {"apply",
     NULL,
     "FILE...",
     0,
     ARGS_WORDS_MAX,
     {OPT_FILE},
     "Create or change queues, resources and priority classes; all or none",
     NULL,
     run_apply},
    {"tokens", NULL, "", 0, 0, {0}, "List bearer tokens (never their text)", NULL, run_tokens},
    {"tokens create",
     NULL,
     "USER",
     1,
     1,
     {OPT_ROLE, OPT_QUEUES},
     "Create a token for a user; its text is printed this once",
     NULL,
     run_tokens_create},
    {"tokens delete", NULL, "ID...", 1, ARGS_WORDS_MAX, {0}, "Revoke tokens", NULL, run_tokens_delete},
    {"clock", NULL, "", 0, 0, {0}, "Show the server's time", NULL, run_clock},
    {"clock advance",
     NULL,
     "DURATION",
     1,
     1,
     {0},
     "Move a virtual clock; returns when all that is due has happened",
     NULL,
     run_clock_advance},
    {"cluster command",
     NULL,
     "JSON",
     1,
     1,
     {0},
     "Make something fail in the embedded cluster",
     NULL,
     run_cluster_command},
    {"version",
     NULL,
     "",
     0,
     0,
     {0},
     "Show the versions of this program, the server and the cluster",
     NULL,
     run_version},
    {"completion",
     NULL,
     "bash",
     1,
     1,
     {0},
     "Print completion for a shell",
     "For this shell: source <(dra-submit completion bash)",
     run_completion},
    {"help", NULL, "[COMMAND]", 0, 2, {0}, "Explain a command", NULL, run_help},
};

size_t commands_count(void)
{
    return ARRAY_SIZE(commands);
}

static const struct command *command_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        if (strcmp(commands[i].name, name) == 0 || (commands[i].alias && strcmp(commands[i].alias, name) == 0))
            return &commands[i];
    return NULL;
}

const struct command *command_find(const char *first, const char *second, size_t *out_used)
{
    const struct command *command;
    char both[64];

    if (second) {
        snprintf(both, sizeof(both), "%.30s %.30s", first, second);
        command = command_named(both);
        *out_used = 2;
        if (command)
            return command;
    }
    *out_used = 1;
    return command_named(first);
}

bool command_has_option(const struct command *command, enum option_id id)
{
    if (id < OPT_GLOBAL_COUNT)
        return true;
    for (size_t i = 0; i < COMMAND_OPTIONS_MAX && command->options[i] != OPT_HELP; i++)
        if (command->options[i] == id)
            return true;
    return false;
}

const struct command *command_submit(void)
{
    return &commands[0];
}
