/* api/uri.h - the target of a request: path segments and query parameters, percent-decoded. Pure; any thread.
 *
 * Decoded text is valid UTF-8 without control characters, so that it may stand in JSON, logs and messages. An encoded
 * slash is part of its segment: "/v1/jobs/default%2Ftrain" names the job "default/train". */
#ifndef QUEUED_API_URI_H
#define QUEUED_API_URI_H

#include <stddef.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "allocator/base/str.h"

enum { URI_SEGMENTS_MAX = 16, URI_PARAMS_MAX = 32 };

struct uri_param {
    const char *name, *value;
};

struct uri {
    const char *segments[URI_SEGMENTS_MAX]; /* "/" has none */
    size_t n_segments;
    struct uri_param params[URI_PARAMS_MAX]; /* in the order of the query; names are unique */
    size_t n_params;
};

/* Parse "/path/segments?name=value&name=value"; text lives in the arena. Returns 0, or -1: ERR_NOT_FOUND for a path
 * that no route can have (empty segments, too many), ERR_INVALID for malformed encoding and repeated parameters. */
MUST_CHECK int uri_parse(struct str target, struct arena *arena, struct uri *out, struct error *err);

/* The value of a parameter, or NULL. */
const char *uri_param_find(const struct uri *uri, const char *name);

#endif
