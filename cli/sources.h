/* cli/sources.h - the documents of the files on a command line, each with the place it came from. */
#ifndef QUEUED_CLI_SOURCES_H
#define QUEUED_CLI_SOURCES_H

#include <jansson.h>

#include "cli/cli.h"
#include "queued/manifest/yaml.h"

struct origin {
    const struct manifest *manifest;
    size_t document;
};

struct sources {
    json_t *documents;      /* of all files, in order */
    struct origin *origins; /* one for each */
    size_t n_origins, cap_origins;
    struct manifest **manifests;
    size_t n_manifests, cap_manifests;
};

/* Read the files that the words name: a file, a folder (its *.yaml, *.yml, *.json by name), "-". Documents of the kinds
 * in
 * --skip are left out and named on stderr. Returns EXIT_OK, or another status after the reason was printed with the
 * line. */
MUST_CHECK int sources_read(struct cli *cli, struct sources *out);
void sources_release(struct sources *sources);

/* Print the server's problem document: each problem with file, line, field and the line itself. Returns the exit
 * status. */
int sources_problems(struct cli *cli, const struct sources *sources, const json_t *problem, const struct error *err);

#endif
