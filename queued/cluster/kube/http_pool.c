/* libcurl's multi interface, driven by events.
 *
 * libcurl tells which sockets to watch and when to wake it; we tell it what happened with curl_multi_socket_action().
 * Its rules: its functions are never called from inside its callbacks (adding and removing there is refused), so what a
 * callback wants is noted and done when libcurl has returned; a message is read before its handle is removed. */
#include "queued/cluster/kube/http_pool.h"

#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/clock.h"
#include "queued/cluster/kube/access.h"
#include "queued/cluster/kube/secret.h"

#include "allocator/base/banned.h"

/* A peer that acknowledges nothing for so long is gone. Without it requests would go on into a dead connection for a
 * quarter of an hour, since HTTP/2 sends them all into the one that is there. */
#define PEER_SILENT_MS  30000
#define KEEPALIVE_S     15L
#define CONNECT_MS      10000L
#define BUFFER_SIZE     65536L
#define IDLE_CONNECTION 60L /* seconds; the server keeps them for longer */

struct pool {
    CURLM *multi;
    struct event_base *base;
    struct event *timer;
    const char *user_agent;
    bool is_http1;
    struct clock *clock;
    void (*ended)(void *ctx, CURL *easy, CURLcode result);
    void (*settled)(void *ctx);
    void *ctx;
    int inside;   /* calls of libcurl on the stack */
    int settling; /* calls of ours that need the pool afterwards */
    bool is_freed;

    char *url; /* of the server, in the name that its certificate must have; no slash at its end */
    char *host_header;
    struct curl_slist *connect_to;
    bool is_tls, is_unverified, is_direct;
    char *ca, *certificate, *key, *proxy;
    uint64_t generation;
};

static void pool_settle(struct pool *pool)
{
    CURLMsg *message;
    int left;

    pool->settling++;
    while ((message = curl_multi_info_read(pool->multi, &left))) {
        CURL *easy = message->easy_handle;
        CURLcode result = message->data.result;

        if (message->msg != CURLMSG_DONE)
            continue;
        pool_remove(pool, easy);
        pool->ended(pool->ctx, easy, result);
    }
    pool->settled(pool->ctx);
    pool->settling--;
    if (pool->is_freed)
        pool_free(pool);
}

static void pool_act(struct pool *pool, curl_socket_t fd, int what)
{
    int running;

    if (pool->clock)
        clock_new_turn(pool->clock); /* the loop may have slept since it was read */
    pool->inside++;
    curl_multi_socket_action(pool->multi, fd, what, &running);
    pool->inside--;
    pool_settle(pool);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    pool_act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
    int bits = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);

    pool_act(arg, fd, bits);
}

static int want_timer(CURLM *multi, long timeout_ms, void *arg)
{
    struct pool *pool = arg;
    struct timeval after = {timeout_ms / 1000, timeout_ms % 1000 * 1000};

    (void)multi;
    if (timeout_ms < 0)
        evtimer_del(pool->timer);
    else
        evtimer_add(pool->timer, &after);
    return 0;
}

static int want_socket(CURL *easy, curl_socket_t fd, int action, void *arg, void *socket_arg)
{
    struct pool *pool = arg;
    struct event *event = socket_arg;
    short what = EV_PERSIST;

    (void)easy;
    if (event)
        event_free(event);
    event = NULL;
    if (action != CURL_POLL_REMOVE) {
        what |= action & CURL_POLL_IN ? EV_READ : 0;
        what |= action & CURL_POLL_OUT ? EV_WRITE : 0;
        event = event_new(pool->base, fd, what, on_socket, pool);
        INVARIANT(event);
        event_add(event, NULL);
    }
    curl_multi_assign(pool->multi, fd, event);
    return 0;
}

/* ---- the server and its TLS ---- */

static int url_get(CURLU *url, CURLUPart part, unsigned flags, struct buf *out)
{
    char *text = NULL;

    if (curl_url_get(url, part, &text, flags))
        return -1;
    buf_adds(out, text);
    curl_free(text);
    return 0;
}

/* tls-server-name: the URL bears that name, for SNI and for the certificate's check, and the connection goes to the
 * real host, whose name stays in the Host header. */
static int pool_rename(struct pool *pool, CURLU *url, const char *name)
{
    BUF real = {0}, port = {0}, host = {0}, to = {0}, header = {0};

    buf_addf(&host, strchr(name, ':') ? "[%s]" : "%s", name);
    if (url_get(url, CURLUPART_HOST, 0, &real) < 0 || url_get(url, CURLUPART_PORT, CURLU_DEFAULT_PORT, &port) < 0 ||
        curl_url_set(url, CURLUPART_HOST, buf_str(&host), 0))
        return -1;
    buf_addf(&to, "::%s:%s", buf_str(&real), buf_str(&port));
    buf_addf(&header, "Host: %s:%s", buf_str(&real), buf_str(&port));
    pool->connect_to = curl_slist_append(NULL, buf_str(&to));
    pool->host_header = buf_take(&header);
    return 0;
}

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0;
}

static int pool_aim(struct pool *pool, CURLU *url, const struct access *access)
{
    const struct access_tls *tls = access_tls(access);
    BUF scheme = {0}, host = {0}, whole = {0};

    if (curl_url_set(url, CURLUPART_URL, access_server(access), 0) || url_get(url, CURLUPART_SCHEME, 0, &scheme) < 0 ||
        url_get(url, CURLUPART_HOST, 0, &host) < 0)
        return -1;
    pool->is_tls = strcmp(buf_str(&scheme), "https") == 0;
    pool->is_direct = is_loopback(buf_str(&host));
    if (pool->is_tls && tls->server_name && pool_rename(pool, url, tls->server_name) < 0)
        return -1;
    if (url_get(url, CURLUPART_URL, 0, &whole) < 0)
        return -1;
    pool->url = buf_take(&whole);
    for (size_t n = strlen(pool->url); n > 0 && pool->url[n - 1] == '/'; n--)
        pool->url[n - 1] = '\0';
    return 0;
}

static int pool_identify(struct pool *pool, const struct access *access, struct error *err)
{
    const struct access_tls *tls = access_tls(access);
    CURLU *url = curl_url();
    int r;

    INVARIANT(url);
    r = pool_aim(pool, url, access);
    curl_url_cleanup(url);
    if (r < 0)
        return error_set(err, ERR_INVALID, "\"%s\" is no address of a server", access_server(access));
    pool->is_unverified = tls->is_unverified;
    pool->ca = mem_strdup(tls->ca);
    pool->certificate = mem_strdup(tls->certificate);
    pool->key = mem_strdup(tls->key);
    pool->proxy = mem_strdup(tls->proxy);
    pool->generation = tls->generation;
    return 0;
}

int pool_new(const struct pool_options *options, struct pool **out, struct error *err)
{
    struct pool *pool = mem_new(struct pool);

    pool->multi = curl_multi_init();
    INVARIANT(pool->multi);
    pool->base = options->base;
    pool->user_agent = options->user_agent;
    pool->is_http1 = options->is_http1;
    pool->clock = options->clock;
    pool->ended = options->ended;
    pool->settled = options->settled;
    pool->ctx = options->ctx;
    pool->timer = evtimer_new(pool->base, on_timer, pool);
    INVARIANT(pool->timer);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, want_timer);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    curl_multi_setopt(pool->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, options->max_connections);
    if (options->max_connections)
        curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS, options->max_connections);
    if (pool_identify(pool, options->access, err) < 0) {
        pool_free(pool);
        return -1;
    }
    *out = pool;
    return 0;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    INVARIANT(!pool->inside);
    pool->is_freed = true;
    if (pool->settling)
        return;
    pool->inside++; /* closing tells want_socket() */
    curl_multi_cleanup(pool->multi);
    event_free(pool->timer);
    curl_slist_free_all(pool->connect_to);
    free(pool->url);
    free(pool->host_header);
    free(pool->ca);
    free(pool->certificate);
    secret_free(pool->key);
    secret_free(pool->proxy); /* may bear a password */
    free(pool);
}

/* ---- transfers ---- */

static int on_new_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    int silent_ms = PEER_SILENT_MS;

    (void)ctx, (void)purpose;
    /* may be refused (no TCP in some sandboxes): the timeouts of requests remain */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof(silent_ms));
    return CURL_SOCKOPT_OK;
}

static void set_blob(CURL *easy, CURLoption option, char *text)
{
    struct curl_blob blob = {text, text ? strlen(text) : 0, CURL_BLOB_NOCOPY};

    if (text)
        curl_easy_setopt(easy, option, &blob);
}

static void set_tls(const struct pool *pool, CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, pool->is_unverified ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, pool->is_unverified ? 0L : 2L);
    if (pool->ca) {
        /* else the system's authorities would be good as well */
        curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    set_blob(easy, CURLOPT_CAINFO_BLOB, pool->ca);
    set_blob(easy, CURLOPT_SSLCERT_BLOB, pool->certificate);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, pool->key);
    curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
    curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
}

/* A proxy of the context is used always, one of the environment not for this machine itself (as kubectl does). */
static void set_proxy(const struct pool *pool, CURL *easy)
{
    if (pool->proxy) {
        curl_easy_setopt(easy, CURLOPT_PROXY, pool->proxy);
        curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
    } else if (pool->is_direct) {
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    }
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

static void set_connection(const struct pool *pool, CURL *easy)
{
    bool is_http1 = pool->is_http1 || !pool->is_tls;

    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)(is_http1 ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, is_http1 ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, IDLE_CONNECTION);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_SIZE);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    if (pool->connect_to)
        curl_easy_setopt(easy, CURLOPT_CONNECT_TO, pool->connect_to);
}

CURL *pool_easy(struct pool *pool, const char *path, struct error *err)
{
    BUF url = {0};
    CURL *easy = curl_easy_init();

    INVARIANT(easy);
    INVARIANT(path[0] == '/');
    buf_adds(&url, pool->url);
    buf_adds(&url, path);
    if (curl_easy_setopt(easy, CURLOPT_URL, buf_str(&url))) {
        curl_easy_cleanup(easy);
        error_set(err, ERR_INVALID, "no path of a request: %.100s", path);
        return NULL;
    }
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, pool->is_tls ? "https" : "http");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, pool->user_agent);
    set_connection(pool, easy);
    set_proxy(pool, easy);
    if (pool->is_tls)
        set_tls(pool, easy);
    return easy;
}

const char *pool_header(const struct pool *pool)
{
    return pool->host_header;
}

int pool_add(struct pool *pool, CURL *easy, struct error *err)
{
    CURLMcode r;

    INVARIANT(!pool->inside);
    pool->inside++;
    r = curl_multi_add_handle(pool->multi, easy);
    pool->inside--;
    if (r)
        return error_set(err, ERR_UNAVAILABLE, "%s", curl_multi_strerror(r));
    return 0;
}

void pool_remove(struct pool *pool, CURL *easy)
{
    INVARIANT(!pool->inside);
    pool->inside++;
    curl_multi_remove_handle(pool->multi, easy);
    pool->inside--;
}

bool pool_is_inside(const struct pool *pool)
{
    return pool->inside > 0;
}

uint64_t pool_generation(const struct pool *pool)
{
    return pool->generation;
}
