/* test/cli/harness.h - one run of the command line with its output in memory. */
#ifndef QUEUED_TEST_CLI_HARNESS_H
#define QUEUED_TEST_CLI_HARNESS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

struct run {
    int status;
    char *out, *err;
};

static inline const char *harness_env(const char *name)
{
    return getenv(name);
}

/* A line of words that are separated by one space; '_' stands for a space within a word. */
static inline struct run run_line(const char *line)
{
    struct run run = {0};
    size_t out_len = 0, err_len = 0;
    struct cli cli = {.width = 80, .env = harness_env};
    char *words = strdup(line), *save = NULL;
    const char *argv[64] = {"dra-submit"};
    int argc = 1;

    for (char *word = strtok_r(words, " ", &save); word && argc < 63; word = strtok_r(NULL, " ", &save)) {
        for (char *c = word; *c; c++)
            if (*c == '_')
                *c = ' ';
        argv[argc++] = word;
    }
    cli.out = open_memstream(&run.out, &out_len);
    cli.err = open_memstream(&run.err, &err_len);
    run.status = cli_run(&cli, argc, argv);
    fclose(cli.out);
    fclose(cli.err);
    free(words);
    return run;
}

static inline void run_release(struct run *run)
{
    free(run->out);
    free(run->err);
}

#endif
