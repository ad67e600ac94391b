/* RFC 9113: a frame is a length of 24 bits, a type, flags, a stream, and that many bytes. A head with nothing but the
 * status 200 is one byte, since HPACK (RFC 7541) has it in its static table. */
#include "test/cluster/kube/h2_stub.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

#define PREFACE_LEN 24
#define FRAME_HEAD  9
enum frame { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7 };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };
enum reason { NO_ERROR = 0, INTERNAL_ERROR = 2, REFUSED_STREAM = 7 };

struct link {
    struct h2_stub *stub;
    struct link *prev, *next;
    struct bufferevent *io;
    bool has_preface, closes;
};

struct h2_stub {
    struct event_base *base;
    struct evconnlistener *listener;
    SSL_CTX *tls;
    struct link *links;
    const enum h2_action *actions;
    size_t n_actions, n_requests, n_links;
};

static void link_free(struct link *link)
{
    DL_DELETE(link->stub->links, link);
    bufferevent_free(link->io);
    free(link);
}

static void put32(uint8_t *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void send_frame(struct link *link, enum frame type, int flags, uint32_t stream, const void *bytes, size_t len)
{
    uint8_t head[FRAME_HEAD] = {0, (uint8_t)(len >> 8), (uint8_t)len, (uint8_t)type, (uint8_t)flags};

    put32(head + 5, stream);
    evbuffer_add(bufferevent_get_output(link->io), head, sizeof(head));
    evbuffer_add(bufferevent_get_output(link->io), bytes, len);
}

static void send_reset(struct link *link, uint32_t stream, enum reason reason)
{
    uint8_t bytes[4];

    put32(bytes, reason);
    send_frame(link, RST_STREAM, 0, stream, bytes, sizeof(bytes));
}

static void send_goaway(struct link *link, uint32_t last_stream)
{
    uint8_t bytes[8];

    put32(bytes, last_stream);
    put32(bytes + 4, NO_ERROR);
    send_frame(link, GOAWAY, 0, 0, bytes, sizeof(bytes));
}

static void send_answer(struct link *link, uint32_t stream, bool is_whole)
{
    send_frame(link, HEADERS, END_HEADERS, stream, "\x88", 1);
    send_frame(link, DATA, is_whole ? END_STREAM : 0, stream, "fine", is_whole ? 4 : 2);
}

static void answer(struct link *link, uint32_t stream)
{
    struct h2_stub *stub = link->stub;
    size_t n = stub->n_requests++;

    switch (stub->actions[n < stub->n_actions ? n : stub->n_actions - 1]) {
    case H2_ANSWER:
        send_answer(link, stream, true);
        return;
    case H2_REFUSE:
        send_reset(link, stream, REFUSED_STREAM);
        return;
    case H2_RESET:
        send_reset(link, stream, INTERNAL_ERROR);
        return;
    case H2_CLOSE:
        link->closes = true;
        return;
    case H2_GO_AWAY:
        send_goaway(link, 0);
        link->closes = true;
        return;
    case H2_LAST_ANSWER:
        send_answer(link, stream, true);
        send_goaway(link, stream);
        return;
    case H2_HALF_RESET:
        send_answer(link, stream, false);
        send_reset(link, stream, INTERNAL_ERROR);
        return;
    case H2_HALF_CLOSE:
        send_answer(link, stream, false);
        link->closes = true;
        return;
    case H2_HALF_GO_AWAY:
        send_answer(link, stream, false);
        send_goaway(link, stream);
        link->closes = true;
        return;
    case H2_HANG:
        return;
    }
}

static void take_frame(struct link *link, const uint8_t *frame, size_t len)
{
    uint32_t stream = (uint32_t)(frame[5] & 0x7f) << 24 | (uint32_t)frame[6] << 16 | (uint32_t)frame[7] << 8 | frame[8];

    if (frame[3] == SETTINGS && !(frame[4] & ACK))
        send_frame(link, SETTINGS, ACK, 0, "", 0);
    else if (frame[3] == PING && !(frame[4] & ACK))
        send_frame(link, PING, ACK, 0, frame + FRAME_HEAD, len);
    else if ((frame[3] == HEADERS || frame[3] == DATA) && frame[4] & END_STREAM)
        answer(link, stream);
}

static bool take(struct link *link)
{
    struct evbuffer *in = bufferevent_get_input(link->io);
    uint8_t head[FRAME_HEAD], *frame;
    size_t len;

    if (!link->has_preface && evbuffer_get_length(in) >= PREFACE_LEN) {
        evbuffer_drain(in, PREFACE_LEN);
        link->has_preface = true;
        send_frame(link, SETTINGS, 0, 0, "", 0);
    }
    if (!link->has_preface || link->closes || evbuffer_copyout(in, head, sizeof(head)) < FRAME_HEAD)
        return false;
    len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    if (evbuffer_get_length(in) < FRAME_HEAD + len)
        return false;
    frame = mem_zalloc(FRAME_HEAD + len, 1);
    evbuffer_remove(in, frame, FRAME_HEAD + len);
    take_frame(link, frame, len);
    free(frame);
    return true;
}

static void on_written(struct bufferevent *io, void *arg)
{
    struct link *link = arg;

    (void)io;
    if (link->closes)
        link_free(link);
}

static void on_read(struct bufferevent *io, void *arg)
{
    struct link *link = arg;

    while (take(link))
        continue;
    if (link->closes && !evbuffer_get_length(bufferevent_get_output(io)))
        link_free(link);
}

static void on_event(struct bufferevent *io, short what, void *arg)
{
    (void)io;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        link_free(arg);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int len, void *arg)
{
    struct h2_stub *stub = arg;
    struct link *link = mem_new(struct link);

    (void)listener, (void)address, (void)len;
    stub->n_links++;
    link->stub = stub;
    link->io = bufferevent_openssl_socket_new(stub->base, fd, SSL_new(stub->tls), BUFFEREVENT_SSL_ACCEPTING,
                                              BEV_OPT_CLOSE_ON_FREE);
    DL_APPEND(stub->links, link);
    bufferevent_setcb(link->io, on_read, on_written, on_event, link);
    bufferevent_enable(link->io, EV_READ | EV_WRITE);
}

static int choose_h2(SSL *tls, const unsigned char **out, unsigned char *out_len, const unsigned char *offered,
                     unsigned n_offered, void *arg)
{
    (void)tls, (void)arg;
    if (SSL_select_next_proto((unsigned char **)out, out_len, (const unsigned char *)"\x02h2", 3, offered, n_offered) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *tls_new(const char *certificate, const char *key)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    BIO *certificate_bio = BIO_new_mem_buf(certificate, -1), *key_bio = BIO_new_mem_buf(key, -1);
    X509 *public = PEM_read_bio_X509(certificate_bio, NULL, NULL, NULL);
    EVP_PKEY *private = PEM_read_bio_PrivateKey(key_bio, NULL, NULL, NULL);

    INVARIANT(SSL_CTX_use_certificate(tls, public) == 1 && SSL_CTX_use_PrivateKey(tls, private) == 1);
    SSL_CTX_set_alpn_select_cb(tls, choose_h2, NULL);
    BIO_free(certificate_bio);
    BIO_free(key_bio);
    X509_free(public);
    EVP_PKEY_free(private);
    return tls;
}

struct h2_stub *h2_stub_new(struct event_base *base, const char *certificate, const char *key,
                            const enum h2_action *actions, size_t n_actions)
{
    struct h2_stub *stub = mem_new(struct h2_stub);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    stub->base = base;
    stub->actions = actions;
    stub->n_actions = n_actions;
    stub->tls = tls_new(certificate, key);
    stub->listener = evconnlistener_new_bind(base, on_accept, stub, LEV_OPT_CLOSE_ON_FREE, -1,
                                             (struct sockaddr *)&address, sizeof(address));
    INVARIANT(stub->listener);
    return stub;
}

void h2_stub_free(struct h2_stub *stub)
{
    while (stub->links)
        link_free(stub->links);
    evconnlistener_free(stub->listener);
    SSL_CTX_free(stub->tls);
    free(stub);
}

int h2_stub_port(const struct h2_stub *stub)
{
    struct sockaddr_in address;
    socklen_t len = sizeof(address);

    getsockname(evconnlistener_get_fd(stub->listener), (struct sockaddr *)&address, &len);
    return ntohs(address.sin_port);
}

size_t h2_stub_n_requests(const struct h2_stub *stub)
{
    return stub->n_requests;
}

size_t h2_stub_n_connections(const struct h2_stub *stub)
{
    return stub->n_links;
}
