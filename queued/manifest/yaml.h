/* queued/manifest/yaml.h - YAML and JSON text to JSON values that still know their lines.
 *
 * Reads what people and kubectl write: several documents in one stream, block and flow style, anchors and aliases, tags of
 * the core schema; JSON is YAML. Everything foreign is limited before it costs anything: bytes, depth, nodes, documents, and
 * what aliases may expand to. Duplicate keys are refused. Shared by the server, the command line and the tests. */
#ifndef QUEUED_MANIFEST_YAML_H
#define QUEUED_MANIFEST_YAML_H

#include <jansson.h>

#include "allocator/base/error.h"

struct manifest_limits {
    size_t max_bytes;     /* of the stream */
    size_t max_depth;     /* of nesting */
    size_t max_nodes;     /* values of all documents, aliases counted as often as they are used */
    size_t max_documents;
};
#define MANIFEST_LIMITS_DEFAULT ((struct manifest_limits){16u << 20, 100, 2000000, 10000})

struct manifest;

/* Parse a stream. `name` (a file name) opens each message: "jobs.yaml:12:5: ...". Empty documents are left out.
 * Returns 0 and a manifest to manifest_free(), or -1: ERR_INVALID for syntax, ERR_LIMIT for what is too much. */
MUST_CHECK int manifest_parse(const char *name, const char *bytes, size_t len, const struct manifest_limits *limits,
                              struct manifest **out, struct error *err);
/* Read and parse a file, "-" for standard input. */
MUST_CHECK int manifest_read_file(const char *path, const struct manifest_limits *limits, struct manifest **out,
                                  struct error *err);
void manifest_free(struct manifest *manifest);
static inline void manifest_freep(struct manifest **manifest)
{
    manifest_free(*manifest);
}

const char *manifest_name(const struct manifest *manifest);
size_t manifest_n_documents(const struct manifest *manifest);
/* Borrowed; json_incref() to keep it beyond the manifest. */
json_t *manifest_document(const struct manifest *manifest, size_t i);
/* The line (from 1) of the field at `path` ("spec.groups[0].replicas") in document i; of the closest enclosing field when
 * there is none of that path. An empty path is the document's first line. */
size_t manifest_line(const struct manifest *manifest, size_t i, const char *path);

/* JSON to block-style YAML for people (`-o yaml`); to free(). Reading it back gives an equal value. */
char *manifest_to_yaml(const json_t *value);

#endif
