/* cli/call.h - requests as the commands make them: a failure is told to the user and comes back as exit status. */
#ifndef QUEUED_CLI_CALL_H
#define QUEUED_CLI_CALL_H

#include "cli/cli.h"
#include "cli/client.h"

/* The client, made at the first call. NULL when there is no server to be found or the settings are wrong; then err says
 * why. */
struct client *cli_client(struct cli *cli, struct error *err);

/* Each returns EXIT_OK and a new reference (out may be NULL), or another status after the reason was printed. */
MUST_CHECK int cli_get(struct cli *cli, const char *path, json_t **out);
MUST_CHECK int cli_send(struct cli *cli, const char *method, const char *path, const json_t *body, json_t **out);

/* The address of a job, "/v1/jobs/NAMESPACE%2FNAME", for a word of the command line: 17, job/17, train, team-a/train.
 */
void job_path(const struct cli *cli, const char *word, struct buf *out);
/* The server's time if it tells, else ours. */
int64_t cli_now_ms(struct cli *cli);

/* ---- the user's own defaults ---- */

/* -n, or the configuration's; NULL when neither is there. The client must exist. */
const char *cli_namespace(const struct cli *cli);
const char *cli_queue(const struct cli *cli);

#endif
