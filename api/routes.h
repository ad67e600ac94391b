/* api/routes.h - the table of what is served: method, path, role, parameters, handler, documentation.
 *
 * One more route is one more row; dispatch, refusals (404, 405, unknown parameters, roles) and /openapi.json follow
 * from it. */
#ifndef QUEUED_API_ROUTES_H
#define QUEUED_API_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "allocator/base/str.h"
#include "api/uri.h"
#include "queued/core.h"

struct request;

enum { ROUTE_ARGS_MAX = 1 };

enum param_kind { PARAM_TEXT, PARAM_FLAG, PARAM_INT };

/* A query parameter; the table of a route ends with a row without a name. */
struct param {
    const char *name;
    enum param_kind kind;
    int64_t min, max; /* of PARAM_INT */
    const char *help;
};

enum body_kind { BODY_NONE, BODY_OBJECT, BODY_DOCUMENTS };

struct route {
    const char *method;
    const char *path; /* "/v1/jobs/{job}" */
    enum role role;   /* the least that may; ROLE_NONE needs no authentication */
    void (*handle)(struct request *request);
    enum body_kind body;
    int status; /* of success */
    const struct param *params;
    const char *schema; /* of the answer, a name in /openapi.json, or NULL */
    const char *help;
    int arg; /* for handlers that serve several rows */
};

/* All rows, ending with one without a method. */
const struct route *routes_all(void);

/* The row for a path and method; HEAD finds GET's. When there is none, `out_allow` gets the methods that the path has
 * ("GET, HEAD, POST"), and stays empty for a path that is not served. `args` gets the path parameters. Pure. */
const struct route *route_find(struct str method, const struct uri *uri, const char **args, struct buf *out_allow);

#endif
