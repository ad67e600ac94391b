/* cli/client.h - HTTP with the server, through libcurl: a request has a time limit, an answer is JSON or text, a
 * failure is told in the words of the server's problem document. */
#ifndef QUEUED_CLI_CLIENT_H
#define QUEUED_CLI_CLIENT_H

#include <jansson.h>

#include "allocator/base/error.h"
#include "allocator/base/str.h"
#include "cli/settings.h"

struct client;

/* Takes the settings. */
struct client *client_new(struct settings *settings, int64_t timeout_ms);
void client_free(struct client *client);
const struct settings *client_settings(const struct client *client);

struct request {
    const char *method;          /* "GET" */
    const char *path;            /* encoded, with query: "/v1/jobs?limit=100" */
    const json_t *body;          /* or NULL */
    const char *idempotency_key; /* or NULL */
    int64_t more_ms;             /* on top of the time limit, where the server itself waits */
};

struct response {
    long status;
    json_t *json;    /* or NULL when it is no JSON */
    struct buf text; /* of other bodies */
};
void response_release(struct response *response);

/* Returns 0 with an answer of 2xx. Else -1: err has the code and words; for a problem document of the server, out->json
 * is that document. ERR_IO when the server cannot be reached, ERR_TIMEOUT when it is silent; what fails inside the
 * server is ERR_REMOTE. */
MUST_CHECK int client_request(struct client *client, const struct request *request, struct response *out,
                              struct error *err);

/* Append text as one segment of a path or one value of a query: everything but letters, digits and -._~ is encoded. */
void url_add(struct buf *url, const char *text);
/* Append "?name=value" or "&name=value"; nothing when value is NULL. */
void url_query(struct buf *url, const char *name, const char *value);

#endif
