/* api/body.h - bodies of requests: JSON or YAML, limited before they cost anything. Pure; any thread. */
#ifndef QUEUED_API_BODY_H
#define QUEUED_API_BODY_H

#include <stddef.h>

#include <jansson.h>

#include "allocator/base/error.h"
#include "allocator/base/str.h"

struct manifest;

/* A node costs about a hundred times the byte that it may be written with, so bytes alone are no limit. */
enum { BODY_DEPTH_MAX = 100, BODY_NODES_MAX = 300000, BODY_DOCUMENTS_MAX = 10000 };

enum body_type { BODY_TYPE_JSON, BODY_TYPE_YAML, BODY_TYPE_NONE, BODY_TYPE_OTHER };

/* What a Content-Type says; parameters (charset) are ignored. BODY_TYPE_NONE when ptr is NULL. */
enum body_type body_type_of(struct str content_type);

/* Parse one JSON value with unique keys. Returns 0 and a new reference, or -1: ERR_INVALID, or ERR_LIMIT when it is
 * nested too deep or has too many values. */
MUST_CHECK int body_parse_json(struct str text, json_t **out, struct error *err);

/* Parse {"documents": [object, ...]} or YAML documents to an array of objects (new reference). A YAML manifest is
 * handed over too, to manifest_free(): it knows the lines. */
MUST_CHECK int body_parse_documents(struct str text, enum body_type type, json_t **out, struct manifest **out_manifest,
                                    struct error *err);

#endif
