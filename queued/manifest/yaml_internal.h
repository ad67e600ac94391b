/* queued/manifest/yaml_internal.h - between the readers (YAML, JSON), the scalars and the manifest that they fill. */
#ifndef QUEUED_MANIFEST_YAML_INTERNAL_H
#define QUEUED_MANIFEST_YAML_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/arena.h"
#include "queued/manifest/yaml.h"

/* Where a value stands: a tree beside the JSON tree. Children in the order of the source; merged keys last. */
struct mark {
    const char *key; /* of an object's member; NULL for a list's entry */
    struct mark *children, *last, *next;
    uint32_t line, column; /* from 1: of the key, or of the entry */
};

struct manifest_entry {
    json_t *value;
    struct mark *mark;
};

struct manifest {
    char *name;
    struct arena arena; /* of the marks */
    struct manifest_entry *entries;
    size_t n_entries, cap_entries;
    char *text; /* kept for manifest_source_line(), or NULL */
    size_t text_len;
    size_t n_nodes; /* counted against the limit */
    bool duplicate; /* a key set twice was met: no other reading of the text helps */
};

/* A value on its way into its parent. */
struct node {
    json_t *value; /* owned */
    struct mark *mark;
    size_t height; /* 1 for a scalar */
};

/* "name:line:column: words". Always -1. */
int manifest_fail(const struct manifest *manifest, enum err_code code, size_t line, size_t column, struct error *err,
                  const char *fmt, ...) PRINTF_LIKE(6, 7);
/* One more value (or n) against the limit of nodes. */
int manifest_count(struct manifest *manifest, const struct manifest_limits *limits, size_t n, size_t line,
                   size_t column, struct error *err);
struct mark *mark_new(struct manifest *manifest, size_t line, size_t column);
void mark_add(struct mark *parent, struct mark *child);
/* Set a member of an object that has no such key yet; takes the value. Refuses duplicates with both lines. */
int manifest_member(struct manifest *manifest, struct node *object, const char *key, struct node *member,
                    struct error *err);
/* Takes the node as one more document, unless it is null; limits the number of documents. */
int manifest_add(struct manifest *manifest, const struct manifest_limits *limits, struct node *document,
                 struct error *err);

/* Text that may go into a JSON string: UTF-8 without NUL. */
json_t *manifest_text(const char *bytes, size_t len);

/* yaml_json.c: strict JSON, one value after the other. */
int json_stream_read(struct manifest *manifest, const char *bytes, size_t len, const struct manifest_limits *limits,
                     struct error *err);
/* yaml_read.c */
int yaml_stream_read(struct manifest *manifest, const char *bytes, size_t len, const struct manifest_limits *limits,
                     struct error *err);

/* ---- yaml_scalar.c: what a plain scalar means ---- */

enum scalar_type { SCALAR_STRING, SCALAR_NULL, SCALAR_BOOL, SCALAR_INT, SCALAR_REAL, SCALAR_UNFIT };
struct scalar {
    enum scalar_type type; /* UNFIT: a number that JSON has no word for (.inf, .nan) */
    bool boolean;
    int64_t integer;
    double real;
};
struct scalar scalar_resolve(const char *text, size_t len);

#endif
