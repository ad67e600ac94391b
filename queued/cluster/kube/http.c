/* A request waits in a queue until there is room, asks for credentials, is a transfer of a pool, and ends.
 *
 *   QUEUED ──► ASKING (the plugin may run) ──► ACTIVE ──► answered, failed, out of time
 *     ▲                                          │
 *     └──────── 401: other credentials, once ────┘           cancelled: from every state
 *
 * Two pools: one for requests that end soon, over few connections; one for streams, over as many as it takes, since a
 * watch may hold an HTTP/1.1 connection for minutes. A pool is replaced when the client certificate changed, and when a
 * request ran out of time while nothing at all came over its connections: HTTP/2 would put the next one there too. */
#include "queued/cluster/kube/http.h"

#include <ctype.h>
#include <curl/curl.h>
#include <event2/event.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <utlist.h>

#include "allocator/base/checked.h"
#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/clock.h"
#include "queued/cluster/kube/http_pool.h"
#include "queued/cluster/kube/secret.h"

#include "allocator/base/banned.h"

#define MAX_CONNECTIONS 8
#define MAX_ACTIVE      128 /* requests that are no streams; more wait for their turn */
#define MAX_BODY        ((size_t)64 << 20)
#define MAX_HEADERS     ((size_t)64 << 10)
#define MAX_RETRY_S     86400

enum call_at { CALL_QUEUED, CALL_ASKING, CALL_ACTIVE, CALL_ENDED };
enum lane { LANE_CALLS, LANE_STREAMS, LANE_COUNT };

/* A pool and how many transfers it has: the last one to leave a replaced pool ends it. */
struct http_pool {
    struct http *http;
    struct pool *pool;
    size_t n_calls;
    int64_t heard_mono_ms; /* when a byte last came over it */
    bool is_replaced;
};

struct http {
    struct event_base *base;
    struct access *access;
    char *user_agent;
    long max_connections;
    bool is_http1;
    struct clock *clock;
    struct http_pool *pools[LANE_COUNT];          /* for new requests; NULL until the first */
    struct http_call *queued[LANE_COUNT], *begun; /* each call is in one of them */
    struct event *pump;
    size_t n_active; /* calls that take room: no streams */
    size_t n_doomed; /* cancelled from inside libcurl */
    uint64_t n_sent, n_failed;
};

struct http_call {
    struct http *http;
    struct http_call *prev, *next, **list;
    struct http_request request; /* texts are ours */
    enum call_at at;
    enum lane lane;
    struct http_pool *pool; /* while active */
    CURL *easy;
    struct curl_slist *headers;
    struct event *timer;
    int64_t sent_mono_ms, heard_mono_ms;
    uint64_t round; /* of the credentials that it bears */
    bool is_renewed, is_begun, is_repeated, is_cancelled, is_doomed;

    int status;
    int64_t retry_after_ms;
    size_t n_header_bytes;
    struct buf body;
    struct error err; /* why a callback of ours ended the transfer */
    char words[CURL_ERROR_SIZE];
};

static int64_t now_mono_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- pools ---- */

static void pool_leave(struct http_pool *pool)
{
    if (pool->n_calls || !pool->is_replaced)
        return;
    pool_free(pool->pool);
    free(pool);
}

static void pool_replace(struct http *http, enum lane lane)
{
    struct http_pool *pool = http->pools[lane];

    http->pools[lane] = NULL;
    if (!pool)
        return;
    pool->is_replaced = true;
    pool_leave(pool);
}

static void on_transfer_end(void *ctx, CURL *easy, CURLcode result);
static void on_settled(void *ctx);

static struct http_pool *pool_for(struct http *http, enum lane lane, struct error *err)
{
    struct http_pool *pool = http->pools[lane];

    if (pool && pool_generation(pool->pool) != access_tls(http->access)->generation)
        pool_replace(http, lane);
    if (http->pools[lane])
        return http->pools[lane];
    pool = mem_new(struct http_pool);
    pool->http = http;
    struct pool_options options = {
        .base = http->base,
        .access = http->access,
        .user_agent = http->user_agent,
        .max_connections = lane == LANE_CALLS ? http->max_connections : 0,
        .is_http1 = http->is_http1,
        .clock = http->clock,
        .ended = on_transfer_end,
        .settled = on_settled,
        .ctx = http,
    };
    if (pool_new(&options, &pool->pool, err) < 0) {
        free(pool);
        return NULL;
    }
    return http->pools[lane] = pool;
}

/* ---- the life of a call ---- */

static void pump_soon(struct http *http)
{
    event_active(http->pump, EV_TIMEOUT, 0);
}

static void call_list(struct http_call *call, struct http_call **list)
{
    if (call->list)
        DL_DELETE(*call->list, call);
    call->list = list;
    if (list)
        DL_APPEND(*list, call);
}

static void call_move(struct http_call *call, enum call_at at)
{
    bool had_room = call->at == CALL_ASKING || call->at == CALL_ACTIVE;
    bool has_room = at == CALL_ASKING || at == CALL_ACTIVE;
    struct http *http = call->http;

    if (call->lane == LANE_CALLS)
        http->n_active += (size_t)has_room - (size_t)had_room;
    call->at = at;
    call_list(call, at == CALL_QUEUED ? &http->queued[call->lane] : &http->begun);
    pump_soon(http);
}

static void call_drop_headers(struct http_call *call)
{
    for (struct curl_slist *header = call->headers; header; header = header->next)
        explicit_bzero(header->data, strlen(header->data)); /* one is the token */
    curl_slist_free_all(call->headers);
    call->headers = NULL;
}

/* Nothing is left of this try. */
static void call_unload(struct http_call *call, enum call_at next)
{
    struct http_pool *pool = TAKE(call->pool);

    if (call->at == CALL_ASKING)
        access_token_cancel(call->http->access, call);
    call_move(call, next);
    if (call->easy) {
        if (pool)
            pool_remove(pool->pool, call->easy);
        curl_easy_cleanup(call->easy);
        call->easy = NULL;
    }
    call_drop_headers(call);
    if (pool) {
        pool->n_calls--;
        pool_leave(pool);
    }
}

static void call_free(struct http_call *call)
{
    if (call->is_doomed)
        call->http->n_doomed--;
    if (call->at != CALL_ENDED)
        call_unload(call, CALL_ENDED);
    call_list(call, NULL);
    event_free(call->timer);
    free((char *)call->request.method);
    free((char *)call->request.path);
    free((char *)call->request.content_type);
    free((char *)call->request.accept);
    free((char *)call->request.body);
    buf_release(&call->body);
    free(call);
}

/* Its connection and its room are free before `done` runs; what `done` borrows goes afterwards. */
static void call_end(struct http_call *call, const struct http_answer *answer)
{
    event_del(call->timer);
    call_unload(call, CALL_ENDED);
    call->is_cancelled = true; /* http_cancel() from inside `done` is nothing */
    call->request.done(call->request.ctx, answer);
    call_free(call);
}

static void call_fail(struct http_call *call, const struct error *err)
{
    struct http_answer answer = {.body = "", .retry_after_ms = -1, .may_be_done = call->is_begun, .err = *err};

    call->http->n_failed++;
    error_wrap(&answer.err, "%s %.200s", call->request.method, call->request.path);
    call_end(call, &answer);
}

static void call_answer(struct http_call *call)
{
    struct http_answer answer = {
        .status = call->status,
        .body = buf_str(&call->body),
        .len = call->body.len,
        .retry_after_ms = call->retry_after_ms,
    };

    call_end(call, &answer);
}

/* ---- time ---- */

static int64_t call_due_ms(const struct http_call *call)
{
    int64_t due = INT64_MAX, at;

    if (call->request.timeout_ms && checked_add(call->sent_mono_ms, call->request.timeout_ms, &at))
        due = at;
    if (call->request.idle_ms && checked_add(call->heard_mono_ms, call->request.idle_ms, &at) && at < due)
        due = at;
    return due;
}

static void call_set_timer(struct http_call *call)
{
    int64_t due = call_due_ms(call), after = due - now_mono_ms();
    struct timeval wait;

    if (due == INT64_MAX)
        return;
    if (after < 0)
        after = 0;
    wait = (struct timeval){after / 1000, after % 1000 * 1000};
    evtimer_add(call->timer, &wait);
}

/* The loop may have slept since the clock was read. */
static void begin_turn(const struct http *http)
{
    if (http->clock)
        clock_new_turn(http->clock);
}

static void on_call_timer(evutil_socket_t fd, short what, void *arg)
{
    struct http_call *call = arg;
    struct http *http = call->http;
    struct http_pool *pool = call->pool;
    struct error err;

    (void)fd, (void)what;
    begin_turn(http);
    if (now_mono_ms() < call_due_ms(call)) {
        call_set_timer(call);
        return;
    }
    if (pool && pool == http->pools[call->lane] && pool->heard_mono_ms < call->sent_mono_ms)
        pool_replace(http, call->lane);
    if (call->status)
        error_set(&err, ERR_TIMEOUT, "the answer broke off: nothing more came in time");
    else
        error_set(&err, ERR_TIMEOUT, "no answer in time");
    call_fail(call, &err);
}

static void call_heard(struct http_call *call)
{
    call->heard_mono_ms = now_mono_ms();
    call->pool->heard_mono_ms = call->heard_mono_ms;
}

/* ---- callbacks of libcurl: they note, and end a transfer by refusing its bytes ---- */

/* libcurl is about to send the request over a connection that is there. It does so again by itself when a connection
 * that was used before turns out to be closed, also for a request that may have been carried out: not with us. */
static int on_begin(void *arg, char *peer, char *local, int peer_port, int local_port)
{
    struct http_call *call = arg;

    (void)peer, (void)local, (void)peer_port, (void)local_port;
    if (call->is_begun && strcmp(call->request.method, "GET") != 0) {
        call->is_repeated = true;
        return CURL_PREREQFUNC_ABORT;
    }
    call->is_begun = true;
    return CURL_PREREQFUNC_OK;
}

static struct str trim(struct str s)
{
    while (s.len && isspace((unsigned char)s.ptr[0]))
        s.ptr++, s.len--;
    while (s.len && isspace((unsigned char)s.ptr[s.len - 1]))
        s.len--;
    return s;
}

/* Seconds or a date; a day at most. */
static int64_t retry_after_ms(struct str value)
{
    char text[64];
    int64_t seconds = 0;
    time_t date;

    if (!value.len || value.len >= sizeof(text))
        return -1;
    memcpy(text, value.ptr, value.len);
    text[value.len] = '\0';
    if (strspn(text, "0123456789") == value.len) {
        seconds = value.len > 6 ? MAX_RETRY_S : strtoll(text, NULL, 10);
    } else {
        date = curl_getdate(text, NULL);
        if (date < 0)
            return -1;
        seconds = (int64_t)date - (int64_t)time(NULL);
    }
    seconds = seconds < 0 ? 0 : seconds > MAX_RETRY_S ? MAX_RETRY_S : seconds;
    return seconds * 1000;
}

/* "HTTP/1.1 200 OK": a new head, of which the one of the final answer is the last. */
static void head_begin(struct http_call *call, struct str line)
{
    const char *space = memchr(line.ptr, ' ', line.len);

    call->status = 0;
    call->retry_after_ms = -1;
    if (!space || line.ptr + line.len - space < 4)
        return;
    for (int i = 1; i <= 3; i++)
        call->status = call->status * 10 + (isdigit((unsigned char)space[i]) ? space[i] - '0' : 0);
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
    struct http_call *call = arg;
    struct str line = {bytes, size * n};
    static const char retry_after[] = "retry-after:";

    call_heard(call);
    call->n_header_bytes += line.len;
    if (call->is_cancelled)
        return 0;
    if (call->n_header_bytes > MAX_HEADERS) {
        error_set(&call->err, ERR_LIMIT, "the answer's headers are larger than %zu bytes", MAX_HEADERS);
        return 0;
    }
    if (str_starts(line, "HTTP/"))
        head_begin(call, line);
    else if (line.len >= sizeof(retry_after) && strncasecmp(line.ptr, retry_after, sizeof(retry_after) - 1) == 0)
        call->retry_after_ms =
            retry_after_ms(trim((struct str){line.ptr + sizeof(retry_after) - 1, line.len - sizeof(retry_after) + 1}));
    return size * n;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct http_call *call = arg;
    size_t len = size * n;
    size_t max = call->request.max_bytes ? call->request.max_bytes : MAX_BODY;

    call_heard(call);
    if (call->is_cancelled)
        return 0;
    if (call->request.data && call->status >= 200 && call->status < 300) {
        if (call->request.data(call->request.ctx, bytes, len, &call->err) == 0)
            return call->is_cancelled ? 0 : len;
        if (!call->err.code)
            error_set(&call->err, ERR_REMOTE, "the answer was not accepted");
        return 0;
    }
    if (len > max - call->body.len) {
        error_set(&call->err, ERR_LIMIT, "the answer is larger than %zu bytes", max);
        return 0;
    }
    buf_add(&call->body, bytes, len);
    return len;
}

/* ---- how a transfer ended ---- */

static const struct {
    CURLcode code;
    enum err_code err;
} failures[] = {
    {CURLE_COULDNT_RESOLVE_HOST, ERR_UNAVAILABLE},
    {CURLE_COULDNT_RESOLVE_PROXY, ERR_UNAVAILABLE},
    {CURLE_COULDNT_CONNECT, ERR_UNAVAILABLE},
    {CURLE_SSL_CONNECT_ERROR, ERR_UNAVAILABLE}, /* also a server that goes while TLS begins */
    {CURLE_PROXY, ERR_UNAVAILABLE},
    {CURLE_PEER_FAILED_VERIFICATION, ERR_DENIED},
    {CURLE_SSL_CERTPROBLEM, ERR_DENIED},
    {CURLE_SSL_CACERT_BADFILE, ERR_DENIED},
    {CURLE_SSL_ISSUER_ERROR, ERR_DENIED},
    {CURLE_URL_MALFORMAT, ERR_INVALID},
    {CURLE_UNSUPPORTED_PROTOCOL, ERR_INVALID},
};

static enum err_code code_of(const struct http_call *call, CURLcode result)
{
    for (size_t i = 0; i < ARRAY_SIZE(failures); i++)
        if (failures[i].code == result)
            return failures[i].err;
    /* whatever breaks before the request was sent means that the server was not reached */
    return call->is_begun ? ERR_REMOTE : ERR_UNAVAILABLE;
}

/* TLS itself did not come about: libcurl's words when the connection broke, and the part of OpenSSL that an unexpected
 * end or nonsense is told by. A certificate is looked at by others. */
static bool is_before_certificates(const char *words)
{
    return strstr(words, "SSL_connect: ") || strstr(words, "SSL routines");
}

/* An authority of the same name with another key (a cluster that was made anew) does not end as a failed verification
 * with libcurl, but as a failure of TLS, "unspecified". But so is what was not verified at all. */
static bool is_unverified(const struct http_call *call, CURLcode result, struct error *err)
{
    long verified = 0;

    if (result != CURLE_SSL_CONNECT_ERROR ||
        curl_easy_getinfo(call->easy, CURLINFO_SSL_VERIFYRESULT, &verified) != CURLE_OK || !verified ||
        (verified == X509_V_ERR_UNSPECIFIED && is_before_certificates(call->words)))
        return false;
    error_set(err, ERR_DENIED, "the server's certificate: %s", X509_verify_cert_error_string(verified));
    return true;
}

static void call_fail_with(struct http_call *call, CURLcode result)
{
    const char *words = call->words[0] ? call->words : curl_easy_strerror(result);
    struct error err;

    if (call->is_repeated)
        words = "the connection broke before the answer";
    if (!is_unverified(call, result, &err))
        error_set(&err, code_of(call, result), "%s", words);
    call_fail(call, call->err.code ? &call->err : &err);
}

static bool has_other_credentials(const struct http_call *call, CURLcode result)
{
    struct error err = {0};

    if (result)
        return (is_unverified(call, result, &err) || code_of(call, result) == ERR_DENIED) &&
               access_tls_refused(call->http->access, call->round);
    return call->status == 401 && access_token_refused(call->http->access, call->round);
}

/* Refused, or not connected at all for a certificate: from the beginning, with others if they can be had. */
static bool call_renew(struct http_call *call, CURLcode result)
{
    if (call->is_renewed || !has_other_credentials(call, result))
        return false;
    call_unload(call, CALL_QUEUED);
    call->is_renewed = true;
    call->is_begun = false;
    call->status = 0;
    call->n_header_bytes = 0;
    call->retry_after_ms = -1;
    call->words[0] = '\0';
    buf_clear(&call->body);
    return true;
}

static void on_transfer_end(void *ctx, CURL *easy, CURLcode result)
{
    struct http_call *call = NULL;
    struct http_pool *pool;

    (void)ctx;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&call);
    INVARIANT(call && call->easy == easy);
    /* it is out of the pool already */
    pool = TAKE(call->pool);
    if (call->is_cancelled)
        call_free(call);
    else if (!call_renew(call, result))
        (result ? call_fail_with(call, result) : call_answer(call));
    pool->n_calls--; /* only now: it has to outlive what `done` may cancel */
    pool_leave(pool);
}

/* What was cancelled from inside libcurl and has not ended by itself. */
static void on_settled(void *ctx)
{
    struct http *http = ctx;
    struct http_call *call, *next;

    if (!http->n_doomed)
        return;
    DL_FOREACH_SAFE (http->begun, call, next) {
        if (call->is_doomed && !pool_is_inside(call->pool->pool))
            call_free(call);
    }
}

/* ---- how a transfer begins ---- */

static void add_header(struct http_call *call, const char *text)
{
    call->headers = curl_slist_append(call->headers, text);
    INVARIANT(call->headers);
}

static void call_add_headers(struct http_call *call, const char *token)
{
    const struct http_request *request = &call->request;
    const char *host = pool_header(call->pool->pool);
    SECRET_BUF authorization = {0};
    BUF accept = {0};
    BUF type = {0};

    buf_addf(&accept, "Accept: %s", request->accept ? request->accept : "application/json");
    add_header(call, buf_str(&accept));
    add_header(call, "Expect:"); /* no waiting for leave to send the body */
    if (host)
        add_header(call, host);
    if (request->body) {
        buf_addf(&type, "Content-Type: %s", request->content_type ? request->content_type : "application/json");
        add_header(call, buf_str(&type));
    }
    for (const char *const *header = access_headers(call->http->access); *header; header++)
        add_header(call, *header);
    if (token) {
        buf_addf(&authorization, "Authorization: Bearer %s", token);
        add_header(call, buf_str(&authorization));
    }
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
}

static void call_set_body(struct http_call *call)
{
    const struct http_request *request = &call->request;

    if (request->body) {
        curl_easy_setopt(call->easy, CURLOPT_POST, 1L);
        curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->len);
        curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, request->body);
    }
    if (strcmp(request->method, "GET") != 0)
        curl_easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, request->method);
    else if (!access_is_uncompressed(call->http->access))
        curl_easy_setopt(call->easy, CURLOPT_ACCEPT_ENCODING, "gzip");
}

static void call_set_callbacks(struct http_call *call)
{
    curl_easy_setopt(call->easy, CURLOPT_PRIVATE, (char *)call);
    curl_easy_setopt(call->easy, CURLOPT_ERRORBUFFER, call->words);
    curl_easy_setopt(call->easy, CURLOPT_PREREQFUNCTION, on_begin);
    curl_easy_setopt(call->easy, CURLOPT_PREREQDATA, call);
    curl_easy_setopt(call->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(call->easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, call);
}

static int call_load(struct http_call *call, const char *token, struct error *err)
{
    struct http_pool *pool = pool_for(call->http, call->lane, err);
    CURL *easy;

    if (!pool)
        return -1;
    easy = pool_easy(pool->pool, call->request.path, err);
    if (!easy)
        return -1;
    call->easy = easy;
    call->pool = pool;
    pool->n_calls++;
    call_add_headers(call, token);
    call_set_body(call);
    call_set_callbacks(call);
    return pool_add(pool->pool, easy, err);
}

static void on_token(void *ctx, const struct error *err, const char *token)
{
    struct http_call *call = ctx;
    struct error why = {0};

    begin_turn(call->http);
    call_move(call, CALL_ACTIVE);
    if (err && err->code) {
        call_fail(call, err);
        return;
    }
    call->round = access_round(call->http->access);
    call->http->n_sent++;
    if (call_load(call, token, &why) < 0)
        call_fail(call, &why);
}

static struct http_call *next_to_begin(const struct http *http)
{
    if (http->queued[LANE_CALLS] && http->n_active < MAX_ACTIVE)
        return http->queued[LANE_CALLS];
    return http->queued[LANE_STREAMS];
}

static void on_pump(evutil_socket_t fd, short what, void *arg)
{
    struct http *http = arg;
    struct http_call *call;

    (void)fd, (void)what;
    begin_turn(http);
    while ((call = next_to_begin(http))) {
        call_move(call, CALL_ASKING);
        access_token(http->access, http->base, on_token, call);
    }
}

/* ---- the interface ---- */

int http_new(const struct http_options *options, struct http **out, struct error *err)
{
    struct http *http;

    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        return error_set(err, ERR_IO, "libcurl does not start");
    http = mem_new(struct http);
    http->base = options->base;
    http->access = options->access;
    http->user_agent = mem_strdup(options->user_agent ? options->user_agent : "queued");
    http->max_connections = options->max_connections > 0 ? options->max_connections : MAX_CONNECTIONS;
    http->is_http1 = options->is_http1;
    http->clock = options->clock;
    http->pump = evtimer_new(http->base, on_pump, http);
    INVARIANT(http->pump);
    *out = http;
    return 0;
}

void http_free(struct http *http)
{
    if (!http)
        return;
    while (http->begun)
        call_free(http->begun);
    for (size_t i = 0; i < LANE_COUNT; i++) {
        while (http->queued[i])
            call_free(http->queued[i]);
        pool_replace(http, (enum lane)i);
    }
    event_free(http->pump);
    free(http->user_agent);
    free(http);
    curl_global_cleanup();
}

struct http_call *http_send(struct http *http, const struct http_request *request)
{
    struct http_call *call = mem_new(struct http_call);

    INVARIANT(request->done);
    call->http = http;
    call->request = *request;
    call->request.method = mem_strdup(request->method);
    call->request.path = mem_strdup(request->path);
    call->request.content_type = mem_strdup(request->content_type);
    call->request.accept = mem_strdup(request->accept);
    call->request.body = request->body ? mem_strndup(request->body, request->len) : NULL;
    call->lane = request->data ? LANE_STREAMS : LANE_CALLS;
    call->retry_after_ms = -1;
    call->sent_mono_ms = call->heard_mono_ms = now_mono_ms();
    call->timer = evtimer_new(http->base, on_call_timer, call);
    INVARIANT(call->timer);
    call_set_timer(call);
    call_move(call, CALL_QUEUED);
    return call;
}

void http_cancel(struct http_call *call)
{
    if (call->is_cancelled)
        return;
    call->is_cancelled = true;
    event_del(call->timer);
    if (call->pool && pool_is_inside(call->pool->pool)) {
        call->is_doomed = true; /* its next callback ends it, or on_settled() */
        call->http->n_doomed++;
        return;
    }
    call_free(call);
}

uint64_t http_n_sent(const struct http *http)
{
    return http->n_sent;
}

uint64_t http_n_failed(const struct http *http)
{
    return http->n_failed;
}
