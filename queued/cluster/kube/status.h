/* queued/cluster/kube/status.h - what an API server's refusal means: a Status object (or plain text) to our error
 * codes.
 *
 *   400 422          ERR_INVALID, with the first cause's field        404        ERR_NOT_FOUND
 *   401 403          ERR_DENIED, in the server's words                409        ERR_CONFLICT
 *   429 503 500 504  ERR_UNAVAILABLE or ERR_TIMEOUT (504, and 500s of a write whose outcome is unknown)
 *   410              ERR_NOT_FOUND with `is_expired`
 *
 * A 409 that only says that a quota was being counted by somebody else at the same moment is ERR_UNAVAILABLE: nothing
 * was created, and the next try will do. Pure. */
#ifndef QUEUED_KUBE_STATUS_H
#define QUEUED_KUBE_STATUS_H

#include <stdbool.h>

#include <jansson.h>

#include "queued/cluster/kube/http.h"

/* Returns 0 for a 2xx answer, else -1 with err. `is_write`: a request that changes something. */
MUST_CHECK int status_check(const struct http_answer *answer, bool is_write, struct error *err);
/* A right that is missing: a 403 of the authorization, which knows the kind alone. Quotas and admission refuse an
 * object, which they name. */
bool status_is_no_right(const struct http_answer *answer);
/* 410 Gone. */
bool status_is_expired(const struct http_answer *answer);

/* The object of a watch's ERROR event: fills err in the same way; returns whether it says that the version asked for is
 * too old. */
bool status_of_event(const json_t *status, struct error *err);

#endif
