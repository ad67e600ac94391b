/* api/server.h - HTTP connections on libevent: listeners, limits, time, and one exchange at a time per connection.
 *
 * A connection reads a request whole, hands it to `handle` as an exchange, and goes on when the exchange has ended.
 * Everything that is no request of ours is answered here with a problem document and the connection is closed.
 *
 *     HEAD --head--> BODY --whole--> HANDLE --reply--> HEAD        kept alive
 *       |             |                 |                          not kept alive, or refused:
 *       +---refused---+-----------------+------------> FLUSH --written--> LINGER --peer's end--> closed
 *
 * Limits: size of head and body; connections per listener (one over the limit is told 503); `timeout_ms` for a head and
 * again for a body to arrive whole however slowly the bytes drip, for a reply to be taken, and for an idle connection.
 * Loop thread only. */
#ifndef QUEUED_API_SERVER_H
#define QUEUED_API_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "allocator/base/error.h"
#include "allocator/base/str.h"
#include "api/http.h"

struct event_base;
struct exchange;
struct server;

struct server_options {
    size_t max_body_bytes;
    size_t max_connections; /* on the TCP listeners together, and again on the Unix sockets together */
    int64_t timeout_ms;
    void (*handle)(void *ctx, struct exchange *exchange); /* must end the exchange, now or later */
    void *ctx;
};

struct server *server_new(struct event_base *base, const struct server_options *options);

/* Listen on "ADDRESS:PORT" ("127.0.0.1:0", "[::1]:7676"); the port that the system gave is *out_port. */
MUST_CHECK int server_listen_tcp(struct server *server, const char *listen, int *out_port, struct error *err);
/* Listen on a Unix socket with these permissions. A socket that nobody listens on any more is replaced; ERR_CONFLICT
 * when somebody does or when something else has that name. The file is removed by server_free. */
MUST_CHECK int server_listen_unix(struct server *server, const char *path, unsigned mode, struct error *err);

/* Accept nothing new, close idle connections, and let the others end with their reply. */
void server_stop(struct server *server);
/* No exchange is open and no reply is left to be written. */
bool server_is_quiet(const struct server *server);
size_t server_n_connections(const struct server *server);
/* Close everything. Exchanges that have not ended are released, without an answer. */
void server_free(struct server *server);

/* ---- one request and its reply ---- */

struct peer {
    bool is_unix;
    uid_t uid;        /* of a Unix socket's peer */
    char address[64]; /* of a TCP peer, without the port; "unix" */
};

/* Valid until the exchange ends; it outlives the connection. */
const struct http_head *exchange_head(const struct exchange *exchange);
struct str exchange_body(const struct exchange *exchange);
const struct peer *exchange_peer(const struct exchange *exchange);
const char *exchange_id(const struct exchange *exchange); /* unique, also in the X-Request-Id of the reply */

/* What the owner of the exchange wants to hear; each may be NULL. `release` is called exactly once, when the exchange
 * has ended or the server is freed. `gone`: the peer has closed its end while it waited; the owner may exchange_drop().
 * `drained`: everything written of a stream has left. */
struct exchange_owner {
    void *owner;
    void (*release)(void *owner);
    void (*gone)(void *owner);
    void (*drained)(void *owner);
};
void exchange_own(struct exchange *exchange, const struct exchange_owner *owner);

/* Add a header to the reply; neither name nor value may hold line ends. */
void exchange_header(struct exchange *exchange, const char *name, const char *value);
/* Close the connection after the reply. */
void exchange_close_after(struct exchange *exchange);

/* Each of these ends the exchange: it must not be used afterwards. A body for HEAD is counted and not sent. */
void exchange_reply(struct exchange *exchange, int status, const char *content_type, struct str body);
void exchange_drop(struct exchange *exchange); /* no answer; the connection is closed */

/* A reply of unknown length: start, add often, end. exchange_backlog says how many bytes wait to be sent: stop adding
 * when it grows, `drained` says when to go on. */
void exchange_stream_start(struct exchange *exchange, int status, const char *content_type);
void exchange_stream_add(struct exchange *exchange, struct str bytes);
size_t exchange_backlog(const struct exchange *exchange);
void exchange_stream_end(struct exchange *exchange); /* ends the exchange */

#endif
