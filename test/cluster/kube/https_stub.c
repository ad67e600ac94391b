#include "test/cluster/kube/https_stub.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <utlist.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/base/str.h"

#include "allocator/base/banned.h"

#define MAX_REPLIES 16

struct peer {
    struct https_stub *stub;
    struct peer *prev, *next;
    struct bufferevent *io;
    struct event *timer;
    struct bufferevent *far; /* of a tunnel */
    size_t number;
    const struct https_reply *reply; /* being sent */
    size_t n_sent;                   /* chunks; the head comes first */
    bool has_head, closes;
};

struct https_stub {
    struct event_base *base;
    struct evconnlistener *listener;
    SSL_CTX *tls;
    struct peer *peers;
    size_t n_peers;
    const struct https_reply *replies;
    size_t n_replies;
    int used[MAX_REPLIES];
    struct https_request *requests;
    size_t n_requests, cap_requests;
};

static void peer_free(struct peer *peer)
{
    DL_DELETE(peer->stub->peers, peer);
    event_free(peer->timer);
    bufferevent_free(peer->io);
    if (peer->far)
        bufferevent_free(peer->far);
    free(peer);
}

/* ---- answers ---- */

static size_t n_chunks(const struct https_reply *reply)
{
    size_t n = 0;

    while (n < 8 && reply->chunks[n])
        n++;
    return reply->repeat ? reply->repeat : n;
}

static const char *chunk_of(const struct https_reply *reply, size_t i)
{
    return reply->repeat ? reply->chunks[0] : reply->chunks[i];
}

static void peer_wait(struct peer *peer, int ms)
{
    struct timeval wait = {ms / 1000, ms % 1000 * 1000};

    evtimer_add(peer->timer, &wait);
}

static void peer_next_request(struct peer *peer);

static void peer_send_head(struct peer *peer)
{
    const struct https_reply *reply = peer->reply;

    evbuffer_add_printf(bufferevent_get_output(peer->io),
                        "HTTP/1.1 %d Scripted\r\n%sTransfer-Encoding: chunked\r\n\r\n",
                        reply->status ? reply->status : 200, reply->headers ? reply->headers : "");
    peer->has_head = true;
}

static void peer_end_answer(struct peer *peer)
{
    const struct https_reply *reply = peer->reply;

    if (reply->end == HTTPS_HANG)
        return;
    if (reply->end == HTTPS_WHOLE || reply->end == HTTPS_CLOSE)
        evbuffer_add_printf(bufferevent_get_output(peer->io), "0\r\n\r\n");
    peer->reply = NULL;
    if (reply->end == HTTPS_BROKEN || reply->end == HTTPS_CLOSE)
        peer->closes = true; /* once it is written */
    else
        peer_next_request(peer);
}

static void on_peer_timer(evutil_socket_t fd, short what, void *arg)
{
    struct peer *peer = arg;
    const struct https_reply *reply = peer->reply;

    (void)fd, (void)what;
    if (reply->end == HTTPS_NO_ANSWER) {
        peer_free(peer);
        return;
    }
    if (!peer->has_head)
        peer_send_head(peer);
    while (peer->n_sent < n_chunks(reply)) {
        const char *chunk = chunk_of(reply, peer->n_sent++);

        evbuffer_add_printf(bufferevent_get_output(peer->io), "%zx\r\n%s\r\n", strlen(chunk), chunk);
        if (reply->gap_ms) {
            peer_wait(peer, reply->gap_ms);
            return;
        }
    }
    peer_end_answer(peer);
}

/* ---- a proxy ---- */

static void on_far_read(struct bufferevent *io, void *arg)
{
    struct peer *peer = arg;

    bufferevent_read_buffer(io, bufferevent_get_output(io == peer->far ? peer->io : peer->far));
}

static void on_far_event(struct bufferevent *io, short what, void *arg)
{
    (void)io;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        peer_free(arg);
}

static void peer_tunnel(struct peer *peer, const char *path)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *port = strrchr(path, ':');

    INVARIANT(port);
    address.sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10));
    peer->far = bufferevent_socket_new(peer->stub->base, -1, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(peer->far, on_far_read, NULL, on_far_event, peer);
    bufferevent_setcb(peer->io, on_far_read, NULL, on_far_event, peer);
    bufferevent_enable(peer->far, EV_READ | EV_WRITE);
    bufferevent_socket_connect(peer->far, (struct sockaddr *)&address, sizeof(address));
    evbuffer_add_printf(bufferevent_get_output(peer->io), "HTTP/1.1 200 Go on\r\n\r\n");
}

static const struct https_reply not_found = {.status = 404};

static void peer_answer(struct peer *peer, const char *path)
{
    struct https_stub *stub = peer->stub;

    peer->reply = &not_found;
    for (size_t i = 0; i < stub->n_replies; i++) {
        const struct https_reply *reply = &stub->replies[i];

        if ((reply->path && strncmp(path, reply->path, strlen(reply->path)) != 0) ||
            (reply->times && stub->used[i] == reply->times))
            continue;
        stub->used[i]++;
        peer->reply = reply;
        break;
    }
    peer->n_sent = 0;
    peer->has_head = false;
    if (peer->reply->end == HTTPS_TUNNEL)
        peer_tunnel(peer, path);
    else
        peer_wait(peer, peer->reply->delay_ms);
}

/* ---- requests ---- */

static char *client_of(struct peer *peer)
{
    SSL *tls = peer->stub->tls ? bufferevent_openssl_get_ssl(peer->io) : NULL;
    X509 *certificate = tls ? SSL_get1_peer_certificate(tls) : NULL;
    char name[128] = "";

    if (!certificate)
        return NULL;
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof(name));
    X509_free(certificate);
    return mem_strdup(name);
}

static size_t body_len(const char *head)
{
    const char *line = strcasestr(head, "\r\ncontent-length:");

    return line ? (size_t)strtoul(line + 17, NULL, 10) : 0;
}

/* The next whole request of the connection is read and answered; further ones wait until that is sent. */
static void peer_next_request(struct peer *peer)
{
    struct evbuffer *in = bufferevent_get_input(peer->io);
    struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
    struct https_stub *stub = peer->stub;
    struct https_request request = {.connection = peer->number};
    size_t head_len, len;

    if (peer->reply || peer->closes || end.pos < 0)
        return;
    head_len = (size_t)end.pos + 4;
    request.head = mem_zalloc(head_len + 1, 1);
    evbuffer_copyout(in, request.head, head_len);
    len = body_len(request.head);
    if (evbuffer_get_length(in) < head_len + len) {
        free(request.head);
        return;
    }
    evbuffer_drain(in, head_len);
    request.body = mem_zalloc(len + 1, 1);
    evbuffer_remove(in, request.body, len);
    request.method = mem_strndup(request.head, strcspn(request.head, " "));
    request.path = request.head + strlen(request.method) + 1;
    request.path = mem_strndup(request.path, strcspn(request.path, " "));
    request.client = client_of(peer);
    mem_grow(stub->requests, stub->n_requests, stub->cap_requests);
    stub->requests[stub->n_requests++] = request;
    peer_answer(peer, request.path);
}

static void on_read(struct bufferevent *io, void *arg)
{
    (void)io;
    peer_next_request(arg);
}

static void on_written(struct bufferevent *io, void *arg)
{
    struct peer *peer = arg;

    (void)io;
    if (peer->closes)
        peer_free(peer);
}

static void on_peer_event(struct bufferevent *io, short what, void *arg)
{
    (void)io;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        peer_free(arg);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int len, void *arg)
{
    struct https_stub *stub = arg;
    struct peer *peer = mem_new(struct peer);

    (void)listener, (void)address, (void)len;
    peer->stub = stub;
    peer->number = stub->n_peers++;
    peer->timer = evtimer_new(stub->base, on_peer_timer, peer);
    if (stub->tls)
        peer->io = bufferevent_openssl_socket_new(stub->base, fd, SSL_new(stub->tls), BUFFEREVENT_SSL_ACCEPTING,
                                                  BEV_OPT_CLOSE_ON_FREE);
    else
        peer->io = bufferevent_socket_new(stub->base, fd, BEV_OPT_CLOSE_ON_FREE);
    DL_APPEND(stub->peers, peer);
    bufferevent_setcb(peer->io, on_read, on_written, on_peer_event, peer);
    bufferevent_enable(peer->io, EV_READ | EV_WRITE);
}

/* ---- the server ---- */

static X509 *certificate_of(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);

    BIO_free(bio);
    return certificate;
}

static SSL_CTX *tls_new(const struct https_options *options)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    X509 *certificate = certificate_of(options->certificate);
    BIO *bio = BIO_new_mem_buf(options->key, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);

    INVARIANT(SSL_CTX_use_certificate(tls, certificate) == 1 && SSL_CTX_use_PrivateKey(tls, key) == 1);
    BIO_free(bio);
    EVP_PKEY_free(key);
    X509_free(certificate);
    if (options->client_ca) {
        X509 *ca = certificate_of(options->client_ca);

        X509_STORE_add_cert(SSL_CTX_get_cert_store(tls), ca);
        X509_free(ca);
        SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    }
    return tls;
}

struct https_stub *https_stub_new(const struct https_options *options)
{
    struct https_stub *stub = mem_new(struct https_stub);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    stub->base = options->base;
    if (options->certificate)
        stub->tls = tls_new(options);
    stub->listener = evconnlistener_new_bind(options->base, on_accept, stub, LEV_OPT_CLOSE_ON_FREE, -1,
                                             (struct sockaddr *)&address, sizeof(address));
    INVARIANT(stub->listener);
    return stub;
}

void https_stub_free(struct https_stub *stub)
{
    while (stub->peers)
        peer_free(stub->peers);
    for (size_t i = 0; i < stub->n_requests; i++) {
        free(stub->requests[i].method);
        free(stub->requests[i].path);
        free(stub->requests[i].body);
        free(stub->requests[i].head);
        free(stub->requests[i].client);
    }
    free(stub->requests);
    evconnlistener_free(stub->listener);
    SSL_CTX_free(stub->tls);
    free(stub);
}

int https_stub_port(const struct https_stub *stub)
{
    struct sockaddr_in address;
    socklen_t len = sizeof(address);

    getsockname(evconnlistener_get_fd(stub->listener), (struct sockaddr *)&address, &len);
    return ntohs(address.sin_port);
}

void https_stub_script(struct https_stub *stub, const struct https_reply *replies, size_t n)
{
    INVARIANT(n <= MAX_REPLIES);
    stub->replies = replies;
    stub->n_replies = n;
    memset(stub->used, 0, sizeof(stub->used));
}

size_t https_stub_n_requests(const struct https_stub *stub)
{
    return stub->n_requests;
}

const struct https_request *https_stub_request(const struct https_stub *stub, size_t i)
{
    INVARIANT(i < stub->n_requests);
    return &stub->requests[i];
}

size_t https_stub_n_connections(const struct https_stub *stub)
{
    return stub->n_peers;
}
