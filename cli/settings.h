/* cli/settings.h - where the server is and how we are let in: flags, environment, the user's file, the default sockets.
 */
#ifndef QUEUED_CLI_SETTINGS_H
#define QUEUED_CLI_SETTINGS_H

#include "cli/cli.h"

struct settings {
    char *server;       /* http://..., https://... or unix:PATH */
    char *token;        /* or NULL; never printed */
    char *ns, *queue;   /* the user's defaults, or NULL */
    const char *origin; /* which of them named the server, for messages */
};

/* Returns 0, or -1: ERR_INVALID for a wrong file or address, ERR_NOT_FOUND when a file that was named is missing,
 * ERR_IO when there is no server to be found. */
MUST_CHECK int settings_load(const struct cli *cli, struct settings *out, struct error *err);
void settings_release(struct settings *settings);

#endif
