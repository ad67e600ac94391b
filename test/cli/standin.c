#include "test/cli/standin.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/thread.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/base/str.h"

struct standin {
    struct event_base *base;
    struct evhttp *http;
    const struct reply *replies;
    bool *used;
    size_t n;
    pthread_t thread;
    pthread_mutex_t lock;
    struct buf log;
    char *shown;
    int port;
};

static const char *method_name(struct evhttp_request *request)
{
    switch (evhttp_request_get_command(request)) {
    case EVHTTP_REQ_GET:
        return "GET";
    case EVHTTP_REQ_POST:
        return "POST";
    case EVHTTP_REQ_DELETE:
        return "DELETE";
    default:
        return "OTHER";
    }
}

static void remember(struct standin *s, struct evhttp_request *request)
{
    struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
    const char *authorization = evhttp_find_header(headers, "Authorization");
    struct evbuffer *body = evhttp_request_get_input_buffer(request);
    size_t len = evbuffer_get_length(body);

    pthread_mutex_lock(&s->lock);
    buf_addf(&s->log, "%s %s\n", method_name(request), evhttp_request_get_uri(request));
    if (authorization)
        buf_addf(&s->log, "  Authorization: %s\n", authorization);
    if (evhttp_find_header(headers, "Idempotency-Key"))
        buf_adds(&s->log, "  Idempotency-Key: present\n");
    if (len > 0)
        buf_addf(&s->log, "  %.*s\n", (int)len, (const char *)evbuffer_pullup(body, -1));
    pthread_mutex_unlock(&s->lock);
}

static const struct reply *reply_for(struct standin *s, const char *asked)
{
    const struct reply *last = NULL;

    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->replies[i].request, asked) != 0)
            continue;
        last = &s->replies[i];
        if (!s->used[i]) {
            s->used[i] = true;
            break;
        }
    }
    return last;
}

static void on_request(struct evhttp_request *request, void *arg)
{
    struct standin *s = arg;
    struct evbuffer *body = evbuffer_new();
    const struct reply *reply;
    BUF asked = {0};

    remember(s, request);
    buf_addf(&asked, "%s %s", method_name(request), evhttp_request_get_uri(request));
    reply = reply_for(s, buf_str(&asked));
    if (reply && reply->delay_ms)
        usleep((useconds_t)reply->delay_ms * 1000);
    if (reply && reply->body) {
        bool json = reply->body[0] == '{' || reply->body[0] == '[';

        evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                          !json                 ? "text/plain; charset=utf-8"
                          : reply->status < 300 ? "application/json"
                                                : "application/problem+json");
        evbuffer_add(body, reply->body, strlen(reply->body));
    }
    evhttp_send_reply(request, reply ? reply->status : 500, NULL, body);
    evbuffer_free(body);
}

static void *serve(void *arg)
{
    struct standin *s = arg;

    event_base_loop(s->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

static void listen_socket(struct standin *s, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    unlink(path);
    INVARIANT(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 16) == 0);
    INVARIANT(evhttp_accept_socket(s->http, fd) == 0);
}

static void listen_port(struct standin *s)
{
    struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(s->http, "127.0.0.1", 0);
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);

    INVARIANT(bound && getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &len) == 0);
    s->port = ntohs(((const struct sockaddr_in *)&address)->sin_port);
}

struct standin *standin_new(const char *socket, const struct reply *replies, size_t n)
{
    struct standin *s = mem_new(struct standin);

    evthread_use_pthreads();
    s->replies = replies;
    s->n = n;
    s->used = mem_array(bool, n + 1);
    s->base = event_base_new();
    s->http = evhttp_new(s->base);
    evhttp_set_gencb(s->http, on_request, s);
    pthread_mutex_init(&s->lock, NULL);
    if (socket)
        listen_socket(s, socket);
    else
        listen_port(s);
    INVARIANT(pthread_create(&s->thread, NULL, serve, s) == 0);
    return s;
}

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    event_base_loopbreak(arg);
}

/* From within the loop: one that has not begun yet would forget it. */
void standin_free(struct standin *s)
{
    event_base_once(s->base, -1, EV_TIMEOUT, on_stop, s->base, NULL);
    pthread_join(s->thread, NULL);
    evhttp_free(s->http);
    event_base_free(s->base);
    pthread_mutex_destroy(&s->lock);
    buf_release(&s->log);
    free(s->shown);
    free(s->used);
    free(s);
}

int standin_port(const struct standin *s)
{
    return s->port;
}

const char *standin_log(struct standin *s)
{
    pthread_mutex_lock(&s->lock);
    free(s->shown);
    s->shown = mem_strdup(buf_str(&s->log));
    pthread_mutex_unlock(&s->lock);
    return s->shown;
}
