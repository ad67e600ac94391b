/* cli/args.h - options and words of a command line, by the table of options. */
#ifndef QUEUED_CLI_ARGS_H
#define QUEUED_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/base/error.h"

enum option_id {
    OPT_HELP,
    OPT_VERSION,
    OPT_SERVER,
    OPT_TOKEN_FILE,
    OPT_CONFIG,
    OPT_OUTPUT,
    OPT_NO_HEADERS,
    OPT_REQUEST_TIMEOUT,
    OPT_GLOBAL_COUNT, /* those above belong to every command */
    OPT_FILE = OPT_GLOBAL_COUNT,
    OPT_NAMESPACE,
    OPT_QUEUE,
    OPT_USER,
    OPT_STATE,
    OPT_LABEL,
    OPT_ALL,
    OPT_LIMIT,
    OPT_ONE_JOB,
    OPT_DRY_RUN,
    OPT_WAIT,
    OPT_SKIP,
    OPT_KEY,
    OPT_FOR,
    OPT_TIMEOUT,
    OPT_MEMBER,
    OPT_TAIL,
    OPT_FOLLOW,
    OPT_NODE,
    OPT_ROLE,
    OPT_QUEUES,
    OPT_COUNT,
};

struct option {
    char letter; /* or NUL */
    const char *name;
    const char *value; /* what the help calls it; NULL for a flag */
    const char *help;
};
extern const struct option options[OPT_COUNT];

struct command;

#define ARGS_WORDS_MAX 4096

struct args {
    const struct command *command; /* NULL: none was named */
    const char *values[OPT_COUNT]; /* NULL when not given; "" for flags */
    const char **words;            /* without the command's own; to free() */
    size_t n_words;
};

/* Sort a command line into command, options and words. A first word that names no command is a file to submit. Strings
 * are borrowed from argv. Returns 0, or -1 with the reason. */
MUST_CHECK int args_parse(int argc, const char *const *argv, struct args *out, struct error *err);
void args_release(struct args *args);

static inline bool args_has(const struct args *args, enum option_id id)
{
    return args->values[id] != NULL;
}
/* The option's value or `otherwise`. */
static inline const char *args_value(const struct args *args, enum option_id id, const char *otherwise)
{
    return args->values[id] ? args->values[id] : otherwise;
}
/* A whole number from min to max; 0 and *out untouched when the option is not given. */
MUST_CHECK int args_number(const struct args *args, enum option_id id, long long min, long long max, long long *out,
                           struct error *err);
/* A duration ("90s") in milliseconds; a plain number means seconds. */
MUST_CHECK int args_duration(const struct args *args, enum option_id id, int64_t *out_ms, struct error *err);

#endif
