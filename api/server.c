/* How it works: a connection is a row of steps (server.h draws them). Callbacks of libevent only note what happened and
 * resume; an exchange that ends schedules the resumption instead of going on at once, so that neither a handler nor the
 * core ever runs inside another handler. */
#include "api/server.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "api/listen.h"
#include "api/problem.h"
#include "queued/log.h"

#include "allocator/base/banned.h"

enum {
    LISTENERS_MAX = 4,
    INPUT_MAX = 65536,       /* read ahead of the parser */
    OUTPUT_MAX = 262144,     /* unsent bytes beyond which no further request of the connection is begun */
    REFUSED_MAX = 64,        /* connections over the limit that are being told so */
    LINGER_MS = 2000,        /* for a peer to read a refusal before the connection is cut */
    LINGER_BYTES = 16 << 20, /* that it may still send meanwhile */
    RETRY_ACCEPT_MS = 500,
};

enum step { STEP_MORE, STEP_WAIT, STEP_DONE };
enum conn_at { CONN_HEAD, CONN_BODY, CONN_HANDLE, CONN_FLUSH, CONN_LINGER };

struct listener {
    struct server *server;
    struct evconnlistener *listener;
    struct event *retry; /* after accept failed: out of file descriptors, most likely */
    bool is_unix;
    char *path; /* to be removed */
};

struct conn {
    struct server *server;
    struct conn *next, *prev;
    struct bufferevent *bev;
    struct event *deadline, *resume;
    enum conn_at at;
    struct peer peer;
    struct exchange *exchange; /* from its head until its end */
    size_t scanned;            /* of the head, see http_head_length */
    size_t lingered;           /* bytes thrown away */
    bool is_over_limit, is_last, is_eof, is_late, has_shut;
};

struct exchange {
    struct server *server;
    struct exchange *next, *prev;
    struct conn *conn; /* NULL once it is gone */
    struct peer peer;
    struct exchange_owner owner;
    char *head_bytes;
    struct http_head head;
    struct http_chunks chunks;
    struct buf body, headers;
    char id[40];
    bool is_head, is_streaming, is_chunked_reply;
};

struct server {
    struct event_base *base;
    struct server_options options;
    struct listener listeners[LISTENERS_MAX];
    size_t n_listeners;
    struct conn *conns;
    struct exchange *exchanges;
    size_t n_tcp, n_unix, n_refused;
    uint64_t start, n_exchanges; /* make the ids */
    bool is_stopping;
};

static void conn_resume(struct conn *conn);

/* ---- exchanges ---- */

static struct exchange *exchange_new(struct conn *conn, const char *bytes, size_t len)
{
    struct exchange *exchange = mem_new(struct exchange);
    struct server *server = conn->server;

    exchange->server = server;
    exchange->conn = conn;
    exchange->peer = conn->peer;
    exchange->head_bytes = mem_strndup(bytes, len);
    snprintf(exchange->id, sizeof(exchange->id), "%llx-%llx", (unsigned long long)server->start,
             (unsigned long long)++server->n_exchanges);
    exchange->next = server->exchanges;
    if (exchange->next)
        exchange->next->prev = exchange;
    server->exchanges = exchange;
    return exchange;
}

static void exchange_free(struct exchange *exchange)
{
    if (exchange->prev)
        exchange->prev->next = exchange->next;
    else
        exchange->server->exchanges = exchange->next;
    if (exchange->next)
        exchange->next->prev = exchange->prev;
    if (exchange->conn)
        exchange->conn->exchange = NULL;
    if (exchange->owner.release)
        exchange->owner.release(exchange->owner.owner);
    buf_release(&exchange->body);
    buf_release(&exchange->headers);
    free(exchange->head_bytes);
    free(exchange);
}

const struct http_head *exchange_head(const struct exchange *exchange)
{
    return &exchange->head;
}

struct str exchange_body(const struct exchange *exchange)
{
    return (struct str){exchange->body.data, exchange->body.len};
}

const struct peer *exchange_peer(const struct exchange *exchange)
{
    return &exchange->peer;
}

const char *exchange_id(const struct exchange *exchange)
{
    return exchange->id;
}

void exchange_own(struct exchange *exchange, const struct exchange_owner *owner)
{
    exchange->owner = *owner;
}

void exchange_header(struct exchange *exchange, const char *name, const char *value)
{
    INVARIANT(!strpbrk(name, "\r\n") && !strpbrk(value, "\r\n"));
    buf_addf(&exchange->headers, "%s: %s\r\n", name, value);
}

void exchange_close_after(struct exchange *exchange)
{
    if (exchange->conn)
        exchange->conn->is_last = true;
}

/* ---- writing ---- */

static void set_deadline(struct conn *conn, int64_t ms)
{
    struct timeval tv = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};

    INVARIANT(event_add(conn->deadline, &tv) == 0);
}

static void add_date(struct evbuffer *out)
{
    time_t now = time(NULL);
    struct tm tm;
    char text[64];

    gmtime_r(&now, &tm);
    strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    evbuffer_add_printf(out, "Date: %s\r\n", text);
}

static void write_head(struct conn *conn, int status, const char *content_type, const char *headers, const char *id)
{
    struct evbuffer *out = bufferevent_get_output(conn->bev);

    evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\n", status, http_status_title(status));
    add_date(out);
    if (content_type)
        evbuffer_add_printf(out, "Content-Type: %s\r\nX-Content-Type-Options: nosniff\r\n", content_type);
    if (id)
        evbuffer_add_printf(out, "X-Request-Id: %s\r\n", id);
    if (conn->is_last)
        evbuffer_add_printf(out, "Connection: close\r\n");
    evbuffer_add_printf(out, "%s", headers);
}

static void end_head(struct conn *conn, size_t content_length)
{
    evbuffer_add_printf(bufferevent_get_output(conn->bev), "Content-Length: %zu\r\n\r\n", content_length);
}

/* The exchange has been answered: on to the next request, or towards the end. */
static void conn_go_on(struct conn *conn)
{
    conn->at = conn->is_last ? CONN_FLUSH : CONN_HEAD;
    conn->scanned = 0;
    set_deadline(conn, conn->server->options.timeout_ms);
    event_active(conn->resume, 0, 0);
}

static bool has_no_body(int status)
{
    return status == 204 || status == 304;
}

void exchange_reply(struct exchange *exchange, int status, const char *content_type, struct str body)
{
    struct conn *conn = exchange->conn;

    INVARIANT(!exchange->is_streaming);
    if (conn) {
        conn->is_last = conn->is_last || !exchange->head.keep_alive || conn->server->is_stopping || conn->is_eof;
        write_head(conn, status, body.len ? content_type : NULL, buf_str(&exchange->headers), exchange->id);
        if (has_no_body(status))
            evbuffer_add(bufferevent_get_output(conn->bev), "\r\n", 2);
        else
            end_head(conn, body.len);
        if (body.len && !exchange->is_head && !has_no_body(status))
            evbuffer_add(bufferevent_get_output(conn->bev), body.ptr, body.len);
        conn_go_on(conn);
    }
    exchange_free(exchange);
}

void exchange_drop(struct exchange *exchange)
{
    struct conn *conn = exchange->conn;

    exchange_free(exchange);
    if (conn) {
        conn->is_last = conn->is_eof = true;
        conn_go_on(conn);
    }
}

void exchange_stream_start(struct exchange *exchange, int status, const char *content_type)
{
    struct conn *conn = exchange->conn;

    exchange->is_streaming = true;
    if (!conn)
        return;
    exchange->is_chunked_reply = exchange->head.minor > 0;
    conn->is_last = conn->is_last || !exchange->head.keep_alive || exchange->head.minor == 0;
    write_head(conn, status, content_type, buf_str(&exchange->headers), exchange->id);
    evbuffer_add_printf(bufferevent_get_output(conn->bev), "%s\r\n",
                        exchange->is_chunked_reply ? "Transfer-Encoding: chunked\r\n" : "");
}

void exchange_stream_add(struct exchange *exchange, struct str bytes)
{
    struct evbuffer *out;

    if (!exchange->conn || exchange->is_head || bytes.len == 0)
        return;
    out = bufferevent_get_output(exchange->conn->bev);
    if (exchange->is_chunked_reply)
        evbuffer_add_printf(out, "%zx\r\n", bytes.len);
    evbuffer_add(out, bytes.ptr, bytes.len);
    if (exchange->is_chunked_reply)
        evbuffer_add(out, "\r\n", 2);
}

size_t exchange_backlog(const struct exchange *exchange)
{
    return exchange->conn ? evbuffer_get_length(bufferevent_get_output(exchange->conn->bev)) : 0;
}

void exchange_stream_end(struct exchange *exchange)
{
    struct conn *conn = exchange->conn;

    if (conn) {
        if (exchange->is_chunked_reply && !exchange->is_head)
            evbuffer_add(bufferevent_get_output(conn->bev), "0\r\n\r\n", 5);
        conn->is_last = conn->is_last || conn->server->is_stopping || conn->is_eof;
        conn_go_on(conn);
    }
    exchange_free(exchange);
}

/* ---- connections ---- */

static size_t *conn_count(struct conn *conn)
{
    struct server *server = conn->server;

    return conn->is_over_limit ? &server->n_refused : conn->peer.is_unix ? &server->n_unix : &server->n_tcp;
}

static void conn_close(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;

    if (conn->prev)
        conn->prev->next = conn->next;
    else
        conn->server->conns = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
    --*conn_count(conn);
    event_free(conn->deadline);
    event_free(conn->resume);
    bufferevent_free(conn->bev);
    if (exchange)
        exchange->conn = NULL;
    if (exchange && conn->at == CONN_BODY)
        exchange_free(exchange); /* nobody owns it yet */
    else if (exchange && exchange->owner.gone)
        exchange->owner.gone(exchange->owner.owner);
    free(conn);
}

/* The server's own refusal; nothing that the peer still sends is looked at. */
static enum step refuse(struct conn *conn, int status, const char *detail)
{
    char *body = problem_format(status, problem_code(status), NULL, detail, NULL);
    const char *id = conn->exchange ? conn->exchange->id : NULL;

    log_debug("http.refused", LOG_STR("peer", conn->peer.address), LOG_INT("status", status),
              LOG_STR("detail", detail));
    conn->is_last = true;
    write_head(conn, status, PROBLEM_CONTENT_TYPE, "", id);
    end_head(conn, strlen(body));
    evbuffer_add(bufferevent_get_output(conn->bev), body, strlen(body));
    free(body);
    if (conn->exchange)
        exchange_free(conn->exchange);
    conn->at = CONN_FLUSH;
    set_deadline(conn, conn->server->options.timeout_ms);
    return STEP_MORE;
}

/* RFC 9112, section 2.2: empty lines before a request are skipped. */
static void skip_empty_lines(struct evbuffer *in)
{
    struct evbuffer_iovec piece;

    while (evbuffer_peek(in, 1, NULL, &piece, 1) > 0 && piece.iov_len > 0) {
        const char *bytes = piece.iov_base;
        size_t n = 0;

        while (n < piece.iov_len && (bytes[n] == '\r' || bytes[n] == '\n'))
            n++;
        evbuffer_drain(in, n);
        if (n == 0)
            break;
    }
}

static enum step begin_exchange(struct conn *conn, const char *bytes, size_t len)
{
    struct exchange *exchange = exchange_new(conn, bytes, len);
    struct http_refusal why;

    conn->exchange = exchange;
    evbuffer_drain(bufferevent_get_input(conn->bev), len);
    if (http_head_parse((struct str){exchange->head_bytes, len}, &exchange->head, &why) < 0)
        return refuse(conn, why.status, why.detail);
    exchange->is_head = str_is(exchange->head.method, "HEAD");
    if (exchange->head.content_length > conn->server->options.max_body_bytes)
        return refuse(conn, 413, "the body is too large");
    if (exchange->head.expects_continue && evbuffer_get_length(bufferevent_get_input(conn->bev)) == 0)
        evbuffer_add_printf(bufferevent_get_output(conn->bev), "HTTP/1.1 100 Continue\r\n\r\n");
    conn->at = CONN_BODY;
    set_deadline(conn, conn->server->options.timeout_ms);
    return STEP_MORE;
}

/* No further request; replies to earlier ones may still be on their way. */
static enum step end(struct conn *conn)
{
    conn->at = CONN_FLUSH;
    return STEP_MORE;
}

static enum step conn_head(struct conn *conn)
{
    struct evbuffer *in = bufferevent_get_input(conn->bev);
    size_t len, head_len, seen;
    const char *bytes;

    if (evbuffer_get_length(bufferevent_get_output(conn->bev)) > OUTPUT_MAX)
        return conn->is_late ? STEP_DONE : STEP_WAIT;
    if (conn->scanned == 0)
        skip_empty_lines(in);
    len = evbuffer_get_length(in);
    if (len == 0 && conn->is_late)
        return STEP_DONE;
    if (len == 0)
        return conn->is_eof || conn->server->is_stopping ? end(conn) : STEP_WAIT;
    seen = len < HTTP_HEAD_MAX ? len : HTTP_HEAD_MAX;
    bytes = (const char *)evbuffer_pullup(in, (ev_ssize_t)seen);
    head_len = http_head_length((struct str){bytes, seen}, &conn->scanned);
    if (head_len > 0)
        return begin_exchange(conn, bytes, head_len);
    if (seen == HTTP_HEAD_MAX)
        return refuse(conn, 431, "the head of the request is too large");
    if (conn->is_late)
        return refuse(conn, 408, "the head of the request did not arrive in time");
    return conn->is_eof ? end(conn) : STEP_WAIT;
}

static bool take_content(struct exchange *exchange, struct evbuffer *in)
{
    size_t left = (size_t)exchange->head.content_length - exchange->body.len, len = evbuffer_get_length(in);
    size_t n = len < left ? len : left;

    if (n > 0) {
        buf_add(&exchange->body, (const char *)evbuffer_pullup(in, (ev_ssize_t)n), n);
        evbuffer_drain(in, n);
    }
    return n == left;
}

static enum http_progress take_chunks(struct exchange *exchange, struct evbuffer *in, struct http_refusal *why)
{
    size_t len = evbuffer_get_length(in), used;
    enum http_progress progress;

    if (len == 0)
        return HTTP_MORE;
    progress =
        http_chunks_decode(&exchange->chunks, (struct str){(const char *)evbuffer_pullup(in, (ev_ssize_t)len), len},
                           exchange->server->options.max_body_bytes, &exchange->body, &used, why);
    evbuffer_drain(in, used);
    return progress;
}

static enum step conn_body(struct conn *conn)
{
    struct evbuffer *in = bufferevent_get_input(conn->bev);
    struct exchange *exchange = conn->exchange;
    struct http_refusal why = {0};
    enum http_progress progress;

    if (exchange->head.is_chunked)
        progress = take_chunks(exchange, in, &why);
    else
        progress = take_content(exchange, in) ? HTTP_DONE : HTTP_MORE;
    if (progress == HTTP_REFUSED)
        return refuse(conn, why.status, why.detail);
    if (progress == HTTP_DONE) {
        conn->at = CONN_HANDLE;
        event_del(conn->deadline);
        conn->server->options.handle(conn->server->options.ctx, exchange);
        return STEP_WAIT;
    }
    if (conn->is_late)
        return refuse(conn, 408, "the body of the request did not arrive in time");
    return conn->is_eof ? STEP_DONE : STEP_WAIT;
}

/* Bytes of a further request wait in the input, whose length is limited. */
static enum step conn_handle(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;

    if (conn->is_eof && exchange && exchange->owner.gone)
        exchange->owner.gone(exchange->owner.owner);
    return STEP_WAIT;
}

static enum step conn_flush(struct conn *conn)
{
    struct evbuffer *in = bufferevent_get_input(conn->bev);

    conn->lingered += evbuffer_get_length(in);
    evbuffer_drain(in, evbuffer_get_length(in));
    if (conn->is_late || conn->lingered > LINGER_BYTES)
        return STEP_DONE;
    if (evbuffer_get_length(bufferevent_get_output(conn->bev)) > 0)
        return STEP_WAIT;
    conn->at = CONN_LINGER;
    set_deadline(conn, LINGER_MS);
    return STEP_MORE;
}

/* Closing with unread bytes would reset the connection, and the peer might never see our reply. */
static enum step conn_linger(struct conn *conn)
{
    struct evbuffer *in = bufferevent_get_input(conn->bev);

    if (!conn->has_shut) {
        conn->has_shut = true;
        shutdown(bufferevent_getfd(conn->bev), SHUT_WR);
    }
    conn->lingered += evbuffer_get_length(in);
    evbuffer_drain(in, evbuffer_get_length(in));
    return conn->is_eof || conn->is_late || conn->lingered > LINGER_BYTES ? STEP_DONE : STEP_WAIT;
}

static const struct {
    enum step (*run)(struct conn *conn);
} conn_steps[] = {
    [CONN_HEAD] = {conn_head},     /* until the empty line */
    [CONN_BODY] = {conn_body},     /* until it is whole; then the handler is called */
    [CONN_HANDLE] = {conn_handle}, /* until the exchange ends */
    [CONN_FLUSH] = {conn_flush},   /* until the last reply is written */
    [CONN_LINGER] = {conn_linger}, /* until the peer has read it */
};

static void conn_resume(struct conn *conn)
{
    enum step step;

    do {
        step = conn_steps[conn->at].run(conn);
        conn->is_late = conn->is_late && step == STEP_MORE && conn->at != CONN_FLUSH;
    } while (step == STEP_MORE);
    if (step == STEP_DONE)
        conn_close(conn);
}

/* ---- what libevent tells ---- */

static void on_read(struct bufferevent *bev, void *arg)
{
    (void)bev;
    conn_resume(arg);
}

static void on_written(struct bufferevent *bev, void *arg)
{
    struct conn *conn = arg;
    struct exchange *exchange = conn->exchange;

    (void)bev;
    if (exchange && exchange->is_streaming && exchange->owner.drained)
        exchange->owner.drained(exchange->owner.owner);
    else
        conn_resume(conn);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct conn *conn = arg;

    (void)bev;
    if (what & (BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)) {
        conn_close(conn);
    } else if (what & BEV_EVENT_EOF) {
        conn->is_eof = true;
        conn_resume(conn);
    }
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    conn_resume(arg);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;

    (void)fd, (void)what;
    conn->is_late = true;
    conn_resume(conn);
}

/* ---- accepting ---- */

static void identify_peer(struct conn *conn, evutil_socket_t fd, const struct sockaddr *address, int len)
{
    struct ucred cred;
    socklen_t cred_len = sizeof(cred);

    if (!conn->peer.is_unix) {
        if (getnameinfo(address, (socklen_t)len, conn->peer.address, sizeof(conn->peer.address), NULL, 0,
                        NI_NUMERICHOST) != 0)
            snprintf(conn->peer.address, sizeof(conn->peer.address), "unknown");
        return;
    }
    snprintf(conn->peer.address, sizeof(conn->peer.address), "unix");
    conn->peer.uid = (uid_t)-1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) == 0)
        conn->peer.uid = cred.uid;
}

static struct bufferevent *bufferevent_for(struct server *server, evutil_socket_t fd, struct conn *conn)
{
    struct bufferevent *bev = bufferevent_socket_new(server->base, fd, BEV_OPT_CLOSE_ON_FREE);
    int64_t ms = server->options.timeout_ms;
    struct timeval patience = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};

    INVARIANT(bev);
    bufferevent_setcb(bev, on_read, on_written, on_event, conn);
    bufferevent_setwatermark(bev, EV_READ, 0, INPUT_MAX);
    bufferevent_set_timeouts(bev, NULL, &patience); /* a stream that nobody reads has no other end */
    bufferevent_enable(bev, EV_READ | EV_WRITE);
    return bev;
}

static struct conn *conn_new(struct server *server, evutil_socket_t fd, bool is_unix)
{
    struct conn *conn = mem_new(struct conn);

    conn->server = server;
    conn->peer.is_unix = is_unix;
    conn->bev = bufferevent_for(server, fd, conn);
    conn->deadline = evtimer_new(server->base, on_deadline, conn);
    conn->resume = event_new(server->base, -1, 0, on_resume, conn);
    INVARIANT(conn->deadline && conn->resume);
    conn->next = server->conns;
    if (conn->next)
        conn->next->prev = conn;
    server->conns = conn;
    set_deadline(conn, server->options.timeout_ms);
    return conn;
}

static void on_accept(struct evconnlistener *evl, evutil_socket_t fd, struct sockaddr *address, int len, void *arg)
{
    struct listener *listener = arg;
    struct server *server = listener->server;
    bool is_full = (listener->is_unix ? server->n_unix : server->n_tcp) >= server->options.max_connections;
    struct conn *conn;
    int on = 1;

    (void)evl;
    if (is_full && server->n_refused >= REFUSED_MAX) {
        close(fd);
        return;
    }
    conn = conn_new(server, fd, listener->is_unix);
    conn->is_over_limit = is_full;
    ++*conn_count(conn);
    identify_peer(conn, fd, address, len);
    if (!listener->is_unix)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (is_full) {
        log_warn("http.connections", LOG_STR("peer", conn->peer.address), LOG_STR("detail", "too many connections"));
        refuse(conn, 503, "the server has too many connections");
    }
}

/* Out of descriptors: a listener that stays readable would spin the loop, so it rests for a moment. */
static void on_accept_error(struct evconnlistener *evl, void *arg)
{
    struct listener *listener = arg;
    struct timeval pause = {0, RETRY_ACCEPT_MS * 1000};

    log_warn("http.accept", LOG_STR("detail", strerror(errno)));
    evconnlistener_disable(evl);
    event_add(listener->retry, &pause);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    struct listener *listener = arg;

    (void)fd, (void)what;
    evconnlistener_enable(listener->listener);
}

/* Takes the bound socket. */
static int add_listener(struct server *server, int fd, bool is_unix, const char *path, struct error *err)
{
    struct listener *listener = &server->listeners[server->n_listeners];

    if (server->n_listeners == LISTENERS_MAX || evutil_make_socket_nonblocking(fd) < 0 || listen(fd, 128) < 0) {
        error_set(err, ERR_IO, "listen: %s",
                  server->n_listeners == LISTENERS_MAX ? "too many listeners" : strerror(errno));
        close(fd);
        return -1;
    }
    listener->server = server;
    listener->is_unix = is_unix;
    listener->path = mem_strdup(path);
    listener->retry = evtimer_new(server->base, on_retry, listener);
    listener->listener =
        evconnlistener_new(server->base, on_accept, listener, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    INVARIANT(listener->retry && listener->listener);
    evconnlistener_set_error_cb(listener->listener, on_accept_error);
    server->n_listeners++;
    return 0;
}

int server_listen_tcp(struct server *server, const char *listen_at, int *out_port, struct error *err)
{
    int fd;

    if (listen_tcp(listen_at, &fd, out_port, err) < 0)
        return -1;
    return add_listener(server, fd, false, NULL, err);
}

int server_listen_unix(struct server *server, const char *path, unsigned mode, struct error *err)
{
    int fd;

    if (listen_unix(path, mode, &fd, err) < 0)
        return -1;
    return add_listener(server, fd, true, path, err);
}

/* ---- the whole ---- */

struct server *server_new(struct event_base *base, const struct server_options *options)
{
    struct server *server = mem_new(struct server);

    server->base = base;
    server->options = *options;
    server->start = (uint64_t)time(NULL);
    return server;
}

static void close_listeners(struct server *server)
{
    for (size_t i = 0; i < server->n_listeners; i++) {
        struct listener *listener = &server->listeners[i];

        evconnlistener_free(listener->listener);
        event_free(listener->retry);
        if (listener->path)
            unlink(listener->path);
        free(listener->path);
    }
    server->n_listeners = 0;
}

void server_stop(struct server *server)
{
    server->is_stopping = true;
    close_listeners(server);
    for (struct conn *conn = server->conns; conn; conn = conn->next)
        event_active(conn->resume, 0, 0);
}

bool server_is_quiet(const struct server *server)
{
    for (const struct conn *conn = server->conns; conn; conn = conn->next)
        if (evbuffer_get_length(bufferevent_get_output(conn->bev)) > 0)
            return false;
    return !server->exchanges;
}

size_t server_n_connections(const struct server *server)
{
    return server->n_tcp + server->n_unix;
}

void server_free(struct server *server)
{
    if (!server)
        return;
    close_listeners(server);
    for (struct exchange *x = server->exchanges; x; x = x->next)
        x->owner.gone = x->owner.drained = NULL; /* nothing of the owners runs any more but `release` */
    while (server->conns)
        conn_close(server->conns);
    while (server->exchanges)
        exchange_free(server->exchanges);
    free(server);
}
