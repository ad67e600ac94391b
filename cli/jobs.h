/* cli/jobs.h - what several commands do with jobs. */
#ifndef QUEUED_CLI_JOBS_H
#define QUEUED_CLI_JOBS_H

#include <jansson.h>

#include "allocator/base/str.h"
#include "cli/cli.h"

/* Print jobs as a list in the form that was asked for. */
void jobs_print(struct cli *cli, const json_t *jobs);
/* "job 17 team-a/train", on one line of text. */
void job_title(const json_t *job, struct buf *out);
bool job_has_ended(const json_t *job);

/* Wait until a job is in a state ("ended", "running" or a state's name); *timeout_ms counts down, negative is for ever.
 * A server that is away for a while (a restart) is waited for too. Prints how it came out; returns the exit status. */
int job_wait(struct cli *cli, const char *word, const char *state, int64_t *timeout_ms);

#endif
