/* What a context gave, and the token that is good now.
 *
 * A token is fixed, or comes from a file that others replace (read again after a minute, and after a refusal), or from
 * a plugin, which may bring a client certificate as well. All who ask while a plugin runs wait for that one run.
 *
 * Files of certificates and keys are replaced by others as well (cert-manager, kubelets), and are read again likewise.
 * They are compared by what is in them, since links are swapped and times can be anything. What is not whole, or does
 * not fit together, is being written: what we have stays until it is. */
#include "queued/cluster/kube/access_internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/cluster/kube/plugin.h"
#include "queued/cluster/kube/secret.h"
#include "queued/log.h"

#include "allocator/base/banned.h"

#define FILE_FRESH_MS    60000 /* the kubelet replaces the token of a pod long before it ends */
#define REFUSED_FRESH_MS 1000  /* for files of certificates that were refused */
#define REFUSAL_PAUSE_MS 5000  /* a token that is refused again so soon is not worth another run of the plugin */

static int64_t now_mono_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t now_utc_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct access *access_new(void)
{
    struct access *access = mem_new(struct access);

    access->renew_ms = INT64_MAX;
    access->files_mono_ms = now_mono_ms();
    access->refused_mono_ms = INT64_MIN / 2;
    return access;
}

void access_free(struct access *access)
{
    if (!access)
        return;
    plugin_cancel(access->run);
    plugin_free(access->plugin);
    secret_free(access->token);
    secret_free(access->key);
    secret_free(access->proxy);
    free(access->server);
    free(access->namespace);
    free(access->ca);
    free(access->certificate);
    free(access->server_name);
    free(access->token_path);
    free(access->ca_path);
    free(access->certificate_path);
    free(access->key_path);
    for (size_t i = 0; i < access->n_headers; i++)
        free(access->headers[i]);
    free(access->headers);
    free(access->waiters);
    free(access);
}

const char *access_server(const struct access *access)
{
    return access->server;
}

const char *access_namespace(const struct access *access)
{
    return access->namespace && access->namespace[0] ? access->namespace : "default";
}

const struct access_tls *access_tls(const struct access *access)
{
    return &access->tls;
}

void access_tls_changed(struct access *access)
{
    access->tls = (struct access_tls){
        .ca = access->ca,
        .certificate = access->certificate,
        .key = access->key,
        .server_name = access->server_name,
        .is_unverified = access->is_unverified,
        .proxy = access->proxy,
        .generation = access->tls.generation + 1,
    };
}

const char *const *access_headers(const struct access *access)
{
    static const char *const none[] = {NULL};

    return access->headers ? (const char *const *)access->headers : none;
}

bool access_is_uncompressed(const struct access *access)
{
    return access->is_uncompressed;
}

uint64_t access_round(const struct access *access)
{
    return access->round;
}

int access_add_header(struct access *access, const char *name, const char *value, struct error *err)
{
    BUF header = {0};

    for (const char *c = value; *c; c++)
        if (iscntrl((unsigned char)*c))
            return error_set(err, ERR_INVALID, "has characters that no header may have");
    /* libcurl takes "Name:" for the wish to send no such header at all */
    if (!value[0])
        return error_set(err, ERR_INVALID, "is empty");
    buf_addf(&header, "%s: %s", name, value);
    if (access->n_headers + 1 >= access->cap_headers) {
        access->cap_headers = access->cap_headers ? access->cap_headers * 2 : 8;
        access->headers = mem_resize(access->headers, access->cap_headers, sizeof(*access->headers));
    }
    access->headers[access->n_headers++] = buf_take(&header);
    access->headers[access->n_headers] = NULL;
    return 0;
}

/* ---- files ---- */

static int fd_read_all(int fd, size_t max_bytes, char **out, struct error *err)
{
    SECRET_TEXT *text = mem_zalloc(max_bytes + 2, 1);
    size_t len = 0;
    ssize_t n;

    while (len <= max_bytes && (n = read(fd, text + len, max_bytes + 1 - len)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(err, ERR_IO, "%s", strerror(errno));
        len += (size_t)n;
    }
    if (len > max_bytes)
        return error_set(err, ERR_LIMIT, "larger than %zu bytes", max_bytes);
    if (strlen(text) != len)
        return error_set(err, ERR_INVALID, "holds bytes that are no text");
    *out = mem_strndup(text, len);
    return 0;
}

char *access_read_file(const char *path, size_t max_bytes, struct error *err)
{
    /* a pipe without a writer must not hold us */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat is;
    char *text = NULL;

    if (fd < 0) {
        error_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: %s", path, strerror(errno));
        return NULL;
    }
    if (fstat(fd, &is) < 0 || !S_ISREG(is.st_mode))
        error_set(err, ERR_INVALID, "%s: not a regular file", path);
    else if (fd_read_all(fd, max_bytes, &text, err) < 0)
        error_wrap(err, "%s", path);
    close(fd);
    return text;
}

/* ---- certificates ---- */

static int no_passphrase(char *out, int size, int is_writing, void *ctx)
{
    (void)out, (void)size, (void)is_writing, (void)ctx;
    return -1; /* OpenSSL's own would ask at the terminal */
}

static BIO *bio_of(const char *pem)
{
    size_t len = strlen(pem);

    return len <= INT_MAX ? BIO_new_mem_buf(pem, (int)len) : NULL;
}

static X509 *read_certificate(const char *pem)
{
    BIO *bio = bio_of(pem);
    X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, no_passphrase, NULL) : NULL;

    BIO_free(bio);
    return certificate;
}

/* OpenSSL says in the same way that there is no more, and that what there is cannot be read. */
static bool is_at_end(void)
{
    return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
}

int access_check_certificates(const char *pem, struct error *err)
{
    BIO *bio = bio_of(pem);
    X509 *certificate;
    size_t n = 0;
    int r = 0;

    ERR_clear_error();
    while (bio && (certificate = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL))) {
        X509_free(certificate);
        n++;
    }
    if (!n)
        r = error_set(err, ERR_INVALID, "holds no certificate in PEM form");
    else if (!is_at_end())
        r = error_set(err, ERR_INVALID, "certificate %zu is not in PEM form", n + 1);
    BIO_free(bio);
    ERR_clear_error();
    return r;
}

int access_check_pair(const char *certificate, const char *key, struct error *err)
{
    BIO *bio = bio_of(key);
    EVP_PKEY *private = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
    X509 *public = read_certificate(certificate);
    int r = 0;

    if (!public)
        r = error_set(err, ERR_INVALID, "the certificate is not in PEM form");
    else if (!private)
        r = error_set(err, ERR_INVALID, "the key is not in PEM form, or encrypted");
    else if (X509_check_private_key(public, private) != 1)
        r = error_set(err, ERR_INVALID, "the key is not that of the certificate");
    BIO_free(bio);
    X509_free(public);
    EVP_PKEY_free(private);
    ERR_clear_error();
    return r < 0 ? r : access_check_certificates(certificate, err);
}

/* ---- files of certificates ---- */

struct files {
    char *ca, *certificate, *key;
};

static void files_release(struct files *files)
{
    secret_free(files->ca);
    secret_free(files->certificate);
    secret_free(files->key);
}

/* What is in the file now; of no file, what it is anyway. */
static int file_read(const char *path, const char *present, char **out, struct error *err)
{
    *out = path ? access_read_file(path, ACCESS_MAX_FILE, err) : mem_strdup(present);
    return path && !*out ? -1 : 0;
}

static int files_read(const struct access *access, struct files *out, struct error *err)
{
    if (file_read(access->ca_path, access->ca, &out->ca, err) < 0 ||
        file_read(access->certificate_path, access->certificate, &out->certificate, err) < 0 ||
        file_read(access->key_path, access->key, &out->key, err) < 0)
        return -1;
    if (out->ca && access_check_certificates(out->ca, err) < 0)
        return error_wrap(err, "%s", access->ca_path ? access->ca_path : "certificate authority");
    if (out->key && access_check_pair(out->certificate, out->key, err) < 0)
        return error_wrap(err, "client certificate %s, key %s",
                          access->certificate_path ? access->certificate_path : "",
                          access->key_path ? access->key_path : "");
    return 0;
}

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void files_failed(struct access *access, const struct error *err)
{
    if (strcmp(access->files_failed.text, err->text) != 0)
        log_warn("credentials.unreadable", LOG_STR("why", err->text));
    access->files_failed = *err;
}

static void files_use(struct access *access, struct files *files)
{
    free(access->ca);
    free(access->certificate);
    access->ca = TAKE(files->ca);
    access->certificate = TAKE(files->certificate);
    secret_put(&access->key, TAKE(files->key));
    access_tls_changed(access);
    access->round++;
    log_info("credentials.changed");
}

/* Returns whether there are others now. */
static bool files_refresh(struct access *access, int64_t fresh_ms)
{
    struct files files __attribute__((cleanup(files_release))) = {0};
    struct error err = {0};

    if ((!access->ca_path && !access->certificate_path && !access->key_path) ||
        now_mono_ms() - access->files_mono_ms < fresh_ms)
        return false;
    access->files_mono_ms = now_mono_ms();
    if (files_read(access, &files, &err) < 0) {
        files_failed(access, &err);
        return false;
    }
    access->files_failed = (struct error){0};
    if (is_same(files.ca, access->ca) && is_same(files.certificate, access->certificate) &&
        is_same(files.key, access->key))
        return false;
    files_use(access, &files);
    return true;
}

bool access_tls_refused(struct access *access, uint64_t round)
{
    return round != access->round || files_refresh(access, REFUSED_FRESH_MS);
}

/* ---- the token ---- */

int access_put_token(struct access *access, char *text, struct error *err)
{
    SECRET_TEXT *raw = text;
    const char *from = raw;
    size_t len;

    while (isspace((unsigned char)*from))
        from++;
    len = strlen(from);
    while (len && isspace((unsigned char)from[len - 1]))
        len--;
    if (!len)
        return error_set(err, ERR_INVALID, "the token is empty");
    for (size_t i = 0; i < len; i++)
        if (!isgraph((unsigned char)from[i]))
            return error_set(err, ERR_INVALID, "the token has characters that no token may have");
    if (access->token && strlen(access->token) == len && memcmp(access->token, from, len) == 0)
        return 0;
    secret_put(&access->token, mem_strndup(from, len));
    access->round++;
    return 0;
}

int access_read_token(struct access *access, struct error *err)
{
    char *text = access_read_file(access->token_path, ACCESS_MAX_TOKEN, err);

    if (!text || access_put_token(access, text, err) < 0)
        return error_wrap(err, "token");
    access->read_mono_ms = now_mono_ms();
    access->is_stale = false;
    return 0;
}

/* One after the other, since each may ask again or have others cancelled. */
static void wake(struct access *access, const struct error *err)
{
    struct access_waiter *waiters = access->waiters;
    size_t n = access->n_waiters;

    access->waiters = NULL;
    access->n_waiters = access->cap_waiters = 0;
    for (size_t i = 0; i < n; i++) {
        access->waking = &waiters[i];
        access->n_waking = n - i;
        if (waiters[i].done)
            waiters[i].done(waiters[i].ctx, err, err ? NULL : access->token);
    }
    access->n_waking = 0;
    free(waiters);
}

static void on_plugin(void *ctx, const struct error *err, struct plugin_answer *answer)
{
    struct access *access = ctx;
    struct error why = {0};

    access->run = NULL;
    if (err) {
        why = *err;
    } else if (answer->token && access_put_token(access, TAKE(answer->token), &why) < 0) {
        error_wrap(&why, "exec plugin");
    } else if (answer->certificate) {
        free(access->certificate);
        access->certificate = TAKE(answer->certificate);
        secret_put(&access->key, TAKE(answer->key));
        access_tls_changed(access);
        access->round++;
    }
    if (!why.code) {
        access->is_stale = false;
        access->renew_ms = answer->renew_ms;
    }
    wake(access, why.code ? &why : NULL);
}

static bool plugin_is_needed(const struct access *access)
{
    return access->is_stale || now_utc_ms() >= access->renew_ms || (!access->token && !access->certificate);
}

static void ask_plugin(struct access *access, struct event_base *base, access_token_done *done, void *ctx)
{
    struct error err = {0};

    if (!access->run && !plugin_is_needed(access)) {
        done(ctx, NULL, access->token);
        return;
    }
    if (!access->run)
        access->run = plugin_start(access->plugin, base, on_plugin, access, &err);
    if (!access->run) {
        done(ctx, &err, NULL);
        return;
    }
    mem_grow(access->waiters, access->n_waiters, access->cap_waiters);
    access->waiters[access->n_waiters++] = (struct access_waiter){done, ctx};
}

static void ask_file(struct access *access, access_token_done *done, void *ctx)
{
    struct error err = {0};
    bool is_fresh = access->token && !access->is_stale && now_mono_ms() - access->read_mono_ms < FILE_FRESH_MS;

    /* a file that is not there at this moment: the token that we have may still be good */
    if (!is_fresh && access_read_token(access, &err) < 0 && !access->token)
        done(ctx, &err, NULL);
    else
        done(ctx, NULL, access->token);
}

void access_token(struct access *access, struct event_base *base, access_token_done *done, void *ctx)
{
    (void)files_refresh(access, FILE_FRESH_MS);
    switch (access->kind) {
    case TOKEN_NONE:
    case TOKEN_FIXED:
        done(ctx, NULL, access->token);
        return;
    case TOKEN_FILE:
        ask_file(access, done, ctx);
        return;
    case TOKEN_PLUGIN:
        ask_plugin(access, base, done, ctx);
        return;
    }
}

static void forget(struct access_waiter *waiters, size_t n, const void *ctx)
{
    for (size_t i = 0; i < n; i++)
        if (waiters[i].ctx == ctx)
            waiters[i].done = NULL;
}

void access_token_cancel(struct access *access, void *ctx)
{
    forget(access->waiters, access->n_waiters, ctx);
    forget(access->waking, access->n_waking, ctx);
}

bool access_token_refused(struct access *access, uint64_t round)
{
    int64_t now = now_mono_ms();

    if (access_tls_refused(access, round))
        return true;
    if (access->kind == TOKEN_NONE || access->kind == TOKEN_FIXED)
        return false;
    if (access->is_stale)
        return true;
    if (now - access->refused_mono_ms < REFUSAL_PAUSE_MS)
        return false;
    access->refused_mono_ms = now;
    access->is_stale = true;
    return true;
}
