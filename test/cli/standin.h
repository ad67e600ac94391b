/* test/cli/standin.h - a server that answers what the test says and remembers what it was asked, on a thread of its
 * own. */
#ifndef QUEUED_TEST_CLI_STANDIN_H
#define QUEUED_TEST_CLI_STANDIN_H

#include <stddef.h>

struct reply {
    const char *request; /* "GET /v1/jobs?limit=1000": method and address, exactly */
    int status;
    const char *body; /* JSON, or text when it begins with neither { nor [; NULL: none */
    int delay_ms;
};

struct standin;

/* Listen on a free port of the loopback, or on a Unix socket when `socket` is given. Each reply is used as often as it
 * is asked for; of several for one request each but the last is used once, in their order. The replies are borrowed. */
struct standin *standin_new(const char *socket, const struct reply *replies, size_t n);
void standin_free(struct standin *standin);
int standin_port(const struct standin *standin);
/* What was asked, one request after the other: "GET /v1/jobs\n"; with "  body\n" below where there was one, and
 * "  Authorization: ..." and "  Idempotency-Key: present" where these headers were sent. Borrowed until the next call.
 */
const char *standin_log(struct standin *standin);

#endif
