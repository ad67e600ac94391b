/* allocator/cel/url.h - URLs as Go's net/url reads them, and what Kubernetes' CEL library asks of them.
 *
 * Valid is what ParseRequestURI accepts: an absolute URL or an absolute path. The parts are then those of Parse, which
 * knows fragments. Pure; any thread. */
#ifndef QUEUED_CEL_URL_H
#define QUEUED_CEL_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "allocator/base/compiler.h"
#include "allocator/base/str.h"

struct arena;
struct error;

#define URL_MAX_TEXT 65536 /* bytes */

/* Parts; absent ones are empty. Texts live in the arena given to url_parse or borrow from its text. */
struct url {
    struct str scheme;       /* lower case */
    struct str host;         /* host with port, decoded */
    struct str escaped_path; /* as in the text where that is a valid spelling, else encoded anew */
    struct str raw_query;    /* without the question mark */
    struct str normal;       /* the URL written out again; equal URLs have equal ones */
};

/* Returns 0, or -1 with ERR_INVALID and Go's words ("parse \"x\": invalid URI for request"). */
MUST_CHECK int url_parse(struct str text, struct arena *arena, struct url *out, struct error *err);
/* What isURL and format.uri ask: ParseRequestURI alone. It takes a few texts that url_parse refuses, such as a bad
 * escape in a fragment behind a query. `scratch` is rewound. Fails as url_parse. */
MUST_CHECK int url_check(struct str text, struct arena *scratch, struct error *err);

struct str url_hostname(const struct url *url); /* without port and brackets */
struct str url_port(const struct url *url);     /* digits, or empty */
bool url_eq(const struct url *a, const struct url *b);

/* The decoded query: keys in the order of their first appearance, each with its values in order. Pairs that cannot be
 * decoded, or that contain a semicolon, are left out, as in Go. */
struct url_parameter {
    struct str key;
    const struct str *values;
    size_t n_values;
};
struct url_query {
    const struct url_parameter *parameters;
    size_t n_parameters;
};
struct url_query url_query(const struct url *url, struct arena *arena);

#endif
