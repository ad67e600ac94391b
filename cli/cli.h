/* cli/cli.h - one run of dra-submit: its streams, settings and exit codes. No mutable globals: everything hangs from
 * here. */
#ifndef QUEUED_CLI_CLI_H
#define QUEUED_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "allocator/base/error.h"
#include "cli/args.h"

struct client;

/* What the exit status says; the words of the help come from exit_codes[] in help.c. */
enum exit_code {
    EXIT_OK = 0,
    EXIT_JOB_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_REFUSED = 3,
    EXIT_NOT_FOUND = 4,
    EXIT_DENIED = 5,
    EXIT_UNREACHABLE = 6,
    EXIT_TIMED_OUT = 7,
    EXIT_CONFLICT = 8,
    EXIT_SERVER = 9,
};

enum output { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_NAME, OUTPUT_JSON, OUTPUT_YAML, OUTPUT_CSV };

struct cli {
    FILE *out, *err;
    bool is_tty;    /* of out: tables are cut to its width */
    bool has_color; /* of err: places of problems stand out */
    size_t width;
    const char *(*env)(const char *name); /* getenv, or a test's */
    struct args args;
    enum output output;
    struct client *client; /* made when a command first needs it */
};

/* Run the command line `argv`; returns the exit status. Prints to cli->out and cli->err only. */
int cli_run(struct cli *cli, int argc, const char *const *argv);

/* Say why and return the exit status that belongs to the error's code. */
int cli_fail(struct cli *cli, const struct error *err);
/* A wrong command line: words and where to look it up; EXIT_USAGE. */
int cli_usage(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The exit status for an error's code. */
int exit_code_of(enum err_code code);

#endif
