/* queued/manifest/yaml.h - YAML and JSON text to JSON values that still know their lines.
 *
 * Reads what people and kubectl write: several documents in one stream, block and flow style, anchors and aliases, tags
 * of the core schema; JSON is YAML. Plain scalars mean what they mean to kubectl, which is YAML 1.1 where that matters:
 * yes, no, on, off, y and n are booleans, 0644 is octal, 1_000 is a thousand; dates and 12:30 stay text. Keys are
 * always text. Everything foreign is limited before it costs anything: bytes, depth, nodes, documents, and what aliases
 * may expand to. Duplicate keys are refused with both lines. Shared by the server, the command line and the tests. */
#ifndef QUEUED_MANIFEST_YAML_H
#define QUEUED_MANIFEST_YAML_H

#include <jansson.h>

#include "allocator/base/error.h"
#include "allocator/base/str.h"

struct manifest_limits {
    size_t max_bytes; /* of the stream */
    size_t max_depth; /* of nesting */
    size_t max_nodes; /* values of all documents, aliases counted as often as they are used */
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
/* Where the field at `path` ("spec.groups[0].replicas", "metadata.labels[a.b/c]") of document i begins, from 1: its
 * key, or a list's entry; the closest enclosing field when there is none of that path. An empty path is the document.
 */
struct manifest_position {
    size_t line, column;
};
struct manifest_position manifest_position(const struct manifest *manifest, size_t i, const char *path);
/* The line alone. */
size_t manifest_line(const struct manifest *manifest, size_t i, const char *path);
/* The text of a line (from 1) without its end; borrowed. Empty when there is no such line, or when the manifest was not
 * read by manifest_read_file() (only then the text is kept). */
struct str manifest_source_line(const struct manifest *manifest, size_t line);

/* JSON to block-style YAML for people (`-o yaml`); to free(). Reading it back gives an equal value. */
char *manifest_to_yaml(const json_t *value);
/* A number as the shortest decimal text that reads back as the same number: "0.1", not "0.10000000000000001".
 * Quantities that people wrote without quotes are only exact in this form. Always has a '.' or an 'e'. */
#define MANIFEST_REAL_SIZE 40
void manifest_format_real(double value, char out[MANIFEST_REAL_SIZE]);

#endif
