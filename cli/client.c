#include "cli/client.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

#define ANSWER_MAX         (64u << 20)
#define CONNECT_TIMEOUT_MS 5000

struct client {
    CURL *curl;
    struct settings settings;
    char *base;   /* before each path */
    char *socket; /* path, or NULL */
    int64_t timeout_ms;
};

static bool is_loopback(const char *base)
{
    static const char *const hosts[] = {"http://localhost", "http://127.", "http://[::1]"};

    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
        if (strncmp(base, hosts[i], strlen(hosts[i])) == 0)
            return true;
    return false;
}

struct client *client_new(struct settings *settings, int64_t timeout_ms)
{
    struct client *client = mem_new(struct client);
    size_t len;

    client->curl = curl_easy_init();
    INVARIANT(client->curl);
    client->settings = *settings;
    *settings = (struct settings){0};
    client->timeout_ms = timeout_ms;
    if (strncmp(client->settings.server, "unix:", 5) == 0) {
        client->socket = mem_strdup(client->settings.server + 5);
        client->base = mem_strdup("http://localhost");
    } else {
        client->base = mem_strdup(client->settings.server);
    }
    for (len = strlen(client->base); len > 0 && client->base[len - 1] == '/'; len--)
        client->base[len - 1] = '\0';
    return client;
}

void client_free(struct client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->curl);
    settings_release(&client->settings);
    free(client->base);
    free(client->socket);
    free(client);
}

const struct settings *client_settings(const struct client *client)
{
    return &client->settings;
}

void response_release(struct response *response)
{
    json_decref(response->json);
    buf_release(&response->text);
    *response = (struct response){0};
}

/* ---- one request ---- */

static size_t on_bytes(char *bytes, size_t size, size_t n, void *arg)
{
    struct buf *text = arg;

    if (text->len + size * n > ANSWER_MAX)
        return 0;
    buf_add(text, bytes, size * n);
    return size * n;
}

static struct curl_slist *add_header(struct curl_slist *headers, const char *name, const char *prefix,
                                     const char *value)
{
    BUF line = {0};
    struct curl_slist *more;

    buf_addf(&line, "%s: %s%s", name, prefix, value);
    more = curl_slist_append(headers, buf_str(&line));
    INVARIANT(more);
    return more;
}

static struct curl_slist *headers_of(const struct client *client, const struct request *request)
{
    struct curl_slist *headers =
        add_header(NULL, "Accept", "", "application/json, application/problem+json, text/plain");

    if (client->settings.token)
        headers = add_header(headers, "Authorization", "Bearer ", client->settings.token);
    if (request->body)
        headers = add_header(headers, "Content-Type", "", "application/json");
    if (request->idempotency_key)
        headers = add_header(headers, "Idempotency-Key", "", request->idempotency_key);
    return add_header(headers, "Expect", "", ""); /* no round trip before a body */
}

static void prepare(struct client *client, const struct request *request, const char *url, const char *body,
                    struct curl_slist *headers, struct buf *answer)
{
    CURL *curl = client->curl;

    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "dra-submit/" QUEUED_VERSION);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(client->timeout_ms + request->more_ms));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    if (client->socket)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, client->socket);
    if (client->socket || is_loopback(client->base))
        curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* whatever the environment says */
    if (body) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
    } else if (strcmp(request->method, "POST") == 0) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "");
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
}

static int transport_failure(const struct client *client, CURLcode rc, struct error *err)
{
    const char *server = client->settings.server;

    if (rc == CURLE_OPERATION_TIMEDOUT)
        return error_set(err, ERR_TIMEOUT, "%s does not answer in time", server);
    if (rc == CURLE_WRITE_ERROR)
        return error_set(err, ERR_LIMIT, "the answer of %s is larger than %u bytes", server, ANSWER_MAX);
    if (rc == CURLE_COULDNT_CONNECT && client->socket)
        return error_set(err, ERR_IO, "cannot connect to %s (from %s): is queued running, and may you use its socket?",
                         server, client->settings.origin);
    return error_set(err, ERR_IO, "cannot reach %s (from %s): %s", server, client->settings.origin,
                     curl_easy_strerror(rc));
}

/* ---- answers ---- */

static const struct {
    const char *name;
    enum err_code code;
} code_names[] = {
    {"invalid", ERR_INVALID}, {"not-found", ERR_NOT_FOUND}, {"conflict", ERR_CONFLICT},
    {"limit", ERR_LIMIT},     {"denied", ERR_DENIED},       {"io", ERR_REMOTE},
    {"remote", ERR_REMOTE},   {"timeout", ERR_TIMEOUT},     {"unavailable", ERR_UNAVAILABLE},
};

/* For answers without a problem document, of a proxy for instance. */
static enum err_code code_of_status(long status)
{
    static const struct {
        long status;
        enum err_code code;
    } rows[] = {{400, ERR_INVALID}, {401, ERR_DENIED},   {403, ERR_DENIED},      {404, ERR_NOT_FOUND},
                {408, ERR_TIMEOUT}, {409, ERR_CONFLICT}, {413, ERR_LIMIT},       {422, ERR_INVALID},
                {429, ERR_LIMIT},   {502, ERR_REMOTE},   {503, ERR_UNAVAILABLE}, {504, ERR_TIMEOUT}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].status == status)
            return rows[i].code;
    return ERR_REMOTE;
}

static enum err_code code_of(const struct response *response)
{
    const char *name = json_string_value(json_object_get(response->json, "code"));

    for (size_t i = 0; name && i < ARRAY_SIZE(code_names); i++)
        if (strcmp(code_names[i].name, name) == 0)
            return code_names[i].code;
    return code_of_status(response->status);
}

static int server_failure(const struct client *client, const struct response *response, struct error *err)
{
    const char *detail = json_string_value(json_object_get(response->json, "detail"));
    const char *title = json_string_value(json_object_get(response->json, "title"));
    const char *field = json_string_value(json_object_get(response->json, "field"));
    enum err_code code = code_of(response);

    if (response->status == 401 && !client->settings.token)
        return error_set(err, code, "%s wants a token: DRA_TOKEN, --token-file, or token-file = in the configuration",
                         client->settings.server);
    if (!detail && !title)
        return error_set(err, code, "%s answers with status %ld", client->settings.server, response->status);
    error_set(err, code, "%s", detail ? detail : title);
    if (field && err)
        snprintf(err->field, sizeof(err->field), "%s", field);
    return -1;
}

static bool is_json(CURL *curl)
{
    const char *type = NULL;

    curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
    return type && (strncmp(type, "application/json", 16) == 0 || strncmp(type, "application/problem+json", 24) == 0);
}

static int take_answer(const struct client *client, struct response *out, struct error *err)
{
    json_error_t at;

    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &out->status);
    if (is_json(client->curl)) {
        out->json = json_loadb(out->text.data ? out->text.data : "", out->text.len, JSON_DECODE_ANY, &at);
        if (!out->json)
            return error_set(err, ERR_REMOTE, "%s answers with broken JSON: %s", client->settings.server, at.text);
    }
    if (out->status < 200 || out->status > 299)
        return server_failure(client, out, err);
    return 0;
}

int client_request(struct client *client, const struct request *request, struct response *out, struct error *err)
{
    struct curl_slist *headers = headers_of(client, request);
    char *body = request->body ? json_dumps(request->body, JSON_COMPACT) : NULL;
    BUF url = {0};
    CURLcode rc;

    *out = (struct response){0};
    buf_addf(&url, "%s%s", client->base, request->path);
    prepare(client, request, buf_str(&url), body, headers, &out->text);
    rc = curl_easy_perform(client->curl);
    curl_slist_free_all(headers);
    free(body);
    if (rc != CURLE_OK)
        return transport_failure(client, rc, err);
    return take_answer(client, out, err);
}

/* ---- addresses ---- */

void url_add(struct buf *url, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if ((c < 0x80 && isalnum(c)) || strchr("-._~", c))
            buf_addc(url, *text);
        else
            buf_addf(url, "%%%02X", c);
    }
}

void url_query(struct buf *url, const char *name, const char *value)
{
    if (!value)
        return;
    buf_addf(url, "%c%s=", strchr(buf_str(url), '?') ? '&' : '?', name);
    url_add(url, value);
}
