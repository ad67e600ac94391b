/* test/api/fixture.h - the API on a fake core, and clients that talk bytes to it, all in one thread. */
#ifndef QUEUED_TEST_API_FIXTURE_H
#define QUEUED_TEST_API_FIXTURE_H

#include <stdbool.h>

#include "allocator/base/str.h"
#include "api/api.h"
#include "test/api/fake_core.h"

struct fixture {
    struct event_base *base;
    struct clock *clock;
    struct core *core;
    struct api *api;
    int port;
    char socket[108], folder[64];
    int64_t advanced_ms;
    char command[128]; /* the last for the embedded cluster */
};

struct fixture_options {
    size_t max_body_bytes, max_connections; /* 0: 64 KiB, 16 */
    int64_t timeout_ms;                     /* 0: 30 s */
    bool without_machine;                   /* no virtual clock, no embedded cluster */
    bool on_standby;                        /* without a core until api_lead(api, core) */
};

struct fixture *fixture_new(const struct fixture_options *options); /* NULL: defaults */
void fixture_free(struct fixture *fixture);
/* Run the loop for whatever is due now and end the core's turn; waits at most wait_ms for something to come. */
void fixture_turn(struct fixture *fixture, int wait_ms);

/* A connection of a client; -1 when it cannot be made. */
int client_open(struct fixture *fixture, bool is_unix);
void client_send(struct fixture *fixture, int fd, const char *bytes, size_t len);
void client_say(struct fixture *fixture, int fd, const char *text);

struct answer {
    int status; /* 0: the connection ended without a reply */
    char *head, *body;
    bool is_closed; /* the server closed the connection */
};
/* Read one reply; gives up after wait_ms with status 0. For HEAD the body is not waited for. What comes behind it in
 * the same moment is lost: use client_read_all for several. */
struct answer client_read(struct fixture *fixture, int fd, bool is_head, int wait_ms);
/* Everything that comes until the peer closes or nothing has come for wait_ms; to free(). */
char *client_read_all(struct fixture *fixture, int fd, int wait_ms);
void answer_release(struct answer *answer);
/* The value of a header ("Allow"), or "". Until the next call. */
const char *answer_header(const struct answer *answer, const char *name);
/* A member of the JSON body as text: strings as they are, else JSON; "" when absent. Until the next call. */
const char *answer_member(const struct answer *answer, const char *name);

/* One request on a connection of its own, over TCP with the token, or over the Unix socket when token is NULL. Headers
 * end with CRLF each; body may be NULL. */
struct answer ask(struct fixture *fixture, const char *token, const char *method, const char *target,
                  const char *headers, const char *body);
/* The raw bytes on a TCP connection of its own. */
struct answer ask_raw(struct fixture *fixture, const char *bytes, size_t len);

#endif
