#include "test/api/fixture.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "queued/clock.h"
#include "queued/log.h"

#include "allocator/base/banned.h"

static int64_t mono_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int advance(void *ctx, int64_t ms, struct error *err)
{
    struct fixture *fixture = ctx;

    (void)err;
    fixture->advanced_ms += ms;
    clock_advance(fixture->clock, clock_now_ms(fixture->clock) + ms, NULL, NULL);
    return 0;
}

static int command(void *ctx, const json_t *value, struct error *err)
{
    struct fixture *fixture = ctx;
    char *text = json_dumps(value, JSON_COMPACT);

    snprintf(fixture->command, sizeof(fixture->command), "%s", text);
    free(text);
    return json_object_get(value, "bad") ? error_field(err, "bad", "it is bad") : 0;
}

struct fixture *fixture_new(const struct fixture_options *options)
{
    static const struct fixture_options defaults = {0};
    struct fixture *fixture = mem_new(struct fixture);
    const struct fixture_options *o = options ? options : &defaults;
    struct error err = {0};

    signal(SIGPIPE, SIG_IGN);
    log_setup(LOG_ERROR, LOG_TEXT);
    fixture->base = event_base_new();
    fixture->clock = clock_virtual_new(1767225600000);
    fixture->core = fake_core_new();
    fixture->api = api_new(&(struct api_options){
        .base = fixture->base,
        .core = o->on_standby ? NULL : fixture->core,
        .clock = fixture->clock,
        .max_body_bytes = o->max_body_bytes ? o->max_body_bytes : 65536,
        .max_connections = o->max_connections ? o->max_connections : 16,
        .request_timeout_ms = o->timeout_ms ? o->timeout_ms : 30000,
        .advance = o->without_machine ? NULL : advance,
        .command = o->without_machine ? NULL : command,
        .ctx = fixture,
    });
    snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/queued-test-api.XXXXXX");
    INVARIANT(mkdtemp(fixture->folder));
    snprintf(fixture->socket, sizeof(fixture->socket), "%s/socket", fixture->folder);
    if (api_listen_tcp(fixture->api, "127.0.0.1:0", &fixture->port, &err) < 0 ||
        api_listen_unix(fixture->api, fixture->socket, 0600, &err) < 0)
        fprintf(stderr, "fixture: %s\n", err.text);
    INVARIANT(err.code == ERR_NONE);
    return fixture;
}

void fixture_free(struct fixture *fixture)
{
    api_stop(fixture->api);
    core_free(fixture->core);
    api_free(fixture->api);
    clock_free(fixture->clock);
    event_base_free(fixture->base);
    rmdir(fixture->folder);
    free(fixture);
    libevent_global_shutdown();
}

static void on_patience(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
}

void fixture_turn(struct fixture *fixture, int wait_ms)
{
    if (wait_ms > 0) {
        struct timeval tv = {wait_ms / 1000, wait_ms % 1000 * 1000};

        event_base_once(fixture->base, -1, EV_TIMEOUT, on_patience, NULL, &tv);
        event_base_loop(fixture->base, EVLOOP_ONCE);
    }
    event_base_loop(fixture->base, EVLOOP_NONBLOCK);
    core_end_turn(fixture->core);
    event_base_loop(fixture->base, EVLOOP_NONBLOCK);
}

/* ---- clients ---- */

int client_open(struct fixture *fixture, bool is_unix)
{
    struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_port = htons((uint16_t)fixture->port)};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    int fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failed;

    tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    snprintf(local.sun_path, sizeof(local.sun_path), "%s", fixture->socket);
    failed = is_unix ? connect(fd, (struct sockaddr *)&local, sizeof(local))
                     : connect(fd, (struct sockaddr *)&tcp, sizeof(tcp));
    if (failed < 0) {
        close(fd);
        return -1;
    }
    fixture_turn(fixture, 0);
    return fd;
}

void client_send(struct fixture *fixture, int fd, const char *bytes, size_t len)
{
    int64_t until = mono_ms() + 5000;

    while (len > 0 && mono_ms() < until) {
        ssize_t n = send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        } else if (errno != EAGAIN) {
            break; /* the server may have refused already */
        }
        fixture_turn(fixture, 0);
    }
    fixture_turn(fixture, 0);
}

void client_say(struct fixture *fixture, int fd, const char *text)
{
    client_send(fixture, fd, text, strlen(text));
}

/* Whether more came; *is_closed at the end. */
static bool receive(int fd, struct buf *in, bool *is_closed)
{
    char bytes[16384];
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n > 0)
        buf_add(in, bytes, (size_t)n);
    else if (n == 0 || errno != EAGAIN)
        *is_closed = true;
    return n > 0;
}

static const char *head_value(const char *head, const char *name, char *out, size_t size)
{
    size_t len = strlen(name);

    out[0] = '\0';
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, name, len) == 0 && line[2 + len] == ':') {
            const char *value = line + 2 + len + 1;

            value += strspn(value, " ");
            snprintf(out, size, "%.*s", (int)strcspn(value, "\r\n"), value);
            break;
        }
    return out;
}

/* The length of the first reply in the bytes, or 0 when it is not whole. */
static size_t whole_reply(const char *bytes, size_t len, bool is_head, bool is_closed)
{
    const char *end = len ? strstr(bytes, "\r\n\r\n") : NULL;
    size_t head_len, body_len;
    char value[64], *head;
    int status;

    if (!end)
        return 0;
    head_len = (size_t)(end + 4 - bytes);
    status = len > 12 ? (int)strtol(bytes + 9, NULL, 10) : 0;
    head = mem_strndup(bytes, head_len);
    head_value(head, "Content-Length", value, sizeof(value));
    free(head);
    if (is_head || status == 304 || status == 204)
        return head_len;
    if (value[0] == '\0')
        return is_closed ? len : 0;
    body_len = (size_t)strtoul(value, NULL, 10);
    return len >= head_len + body_len ? head_len + body_len : 0;
}

struct answer client_read(struct fixture *fixture, int fd, bool is_head, int wait_ms)
{
    int64_t until = mono_ms() + wait_ms;
    struct answer answer = {0};
    size_t len = 0;
    BUF in = {0};

    while (!len && !answer.is_closed && mono_ms() <= until) {
        bool has_more = receive(fd, &in, &answer.is_closed);

        len = whole_reply(buf_str(&in), in.len, is_head, answer.is_closed);
        if (!len && !has_more)
            fixture_turn(fixture, 2);
    }
    if (len) {
        const char *end = strstr(buf_str(&in), "\r\n\r\n") + 4;

        answer.status = (int)strtol(buf_str(&in) + 9, NULL, 10);
        answer.head = mem_strndup(buf_str(&in), (size_t)(end - in.data));
        answer.body = mem_strndup(end, len - (size_t)(end - in.data));
    }
    return answer;
}

char *client_read_all(struct fixture *fixture, int fd, int wait_ms)
{
    int64_t until = mono_ms() + wait_ms;
    bool is_closed = false;
    BUF in = {0};

    while (!is_closed && mono_ms() <= until) {
        if (receive(fd, &in, &is_closed))
            until = mono_ms() + wait_ms;
        else
            fixture_turn(fixture, 2);
    }
    return in.data ? buf_take(&in) : mem_strdup("");
}

void answer_release(struct answer *answer)
{
    free(answer->head);
    free(answer->body);
    *answer = (struct answer){0};
}

const char *answer_header(const struct answer *answer, const char *name)
{
    static char value[512];

    return answer->head ? head_value(answer->head, name, value, sizeof(value)) : "";
}

const char *answer_member(const struct answer *answer, const char *name)
{
    static char value[1024];
    json_t *body = json_loads(answer->body ? answer->body : "", 0, NULL);
    json_t *member = json_object_get(body, name);
    char *text = member && !json_is_string(member) ? json_dumps(member, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    snprintf(value, sizeof(value), "%s", text ? text : member ? json_string_value(member) : "");
    free(text);
    json_decref(body);
    return value;
}

struct answer ask(struct fixture *fixture, const char *token, const char *method, const char *target,
                  const char *headers, const char *body)
{
    int fd = client_open(fixture, !token);
    struct answer answer;
    BUF request = {0};

    buf_addf(&request, "%s %s HTTP/1.1\r\nHost: test\r\n%s", method, target, headers ? headers : "");
    if (token && token[0])
        buf_addf(&request, "Authorization: Bearer %s\r\n", token);
    if (body)
        buf_addf(&request, "Content-Length: %zu\r\n", strlen(body));
    buf_addf(&request, "\r\n%s", body ? body : "");
    client_send(fixture, fd, request.data, request.len);
    answer = client_read(fixture, fd, strcmp(method, "HEAD") == 0, 5000);
    close(fd);
    fixture_turn(fixture, 0);
    return answer;
}

struct answer ask_raw(struct fixture *fixture, const char *bytes, size_t len)
{
    int fd = client_open(fixture, false);
    struct answer answer;

    client_send(fixture, fd, bytes, len);
    answer = client_read(fixture, fd, false, 2000);
    close(fd);
    fixture_turn(fixture, 0);
    return answer;
}
