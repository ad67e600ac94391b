#include "queued/cluster/kube/status.h"

#include <string.h>

#include "allocator/base/str.h"

#include "allocator/base/banned.h"

#define MAX_STATUS_BYTES ((size_t)1 << 20) /* of an answer that is read as a Status */
#define MAX_WORDS        400
#define GONE             410

/* What a status means where reading and writing differ: a write that failed inside the server may have been done. */
static const struct {
    int status;
    enum err_code on_read, on_write;
} meanings[] = {
    {400, ERR_INVALID, ERR_INVALID},     {401, ERR_DENIED, ERR_DENIED},        {403, ERR_DENIED, ERR_DENIED},
    {404, ERR_NOT_FOUND, ERR_NOT_FOUND}, {405, ERR_NOT_FOUND, ERR_INVALID},    {408, ERR_TIMEOUT, ERR_TIMEOUT},
    {409, ERR_CONFLICT, ERR_CONFLICT},   {GONE, ERR_NOT_FOUND, ERR_NOT_FOUND}, {413, ERR_LIMIT, ERR_LIMIT},
    {415, ERR_INVALID, ERR_INVALID},     {422, ERR_INVALID, ERR_INVALID},      {429, ERR_UNAVAILABLE, ERR_UNAVAILABLE},
    {500, ERR_UNAVAILABLE, ERR_TIMEOUT}, {502, ERR_UNAVAILABLE, ERR_TIMEOUT},  {503, ERR_UNAVAILABLE, ERR_UNAVAILABLE},
    {504, ERR_TIMEOUT, ERR_TIMEOUT},
};

static enum err_code meaning_of(int status, bool is_write)
{
    for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
        if (meanings[i].status == status)
            return is_write ? meanings[i].on_write : meanings[i].on_read;
    return status >= 500 && is_write ? ERR_TIMEOUT : ERR_REMOTE;
}

/* Foreign words for one line of ours: control characters become spaces, and no character is cut in its middle. */
static void put_words(struct buf *out, const char *words, size_t len)
{
    for (size_t i = 0; i < len && out->len < MAX_WORDS; i++)
        buf_addc(out, (unsigned char)words[i] < 0x20 || words[i] == 0x7f ? ' ' : words[i]);
    if (out->len < MAX_WORDS)
        return;
    while (out->len && ((unsigned char)out->data[out->len - 1] & 0xc0) == 0x80)
        out->len--;
    if (out->len && (unsigned char)out->data[out->len - 1] >= 0x80)
        out->len--;
    out->data[out->len] = '\0';
}

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static bool is_text(const json_t *object, const char *key, const char *wanted)
{
    const char *value = text(object, key);

    return value && strcmp(value, wanted) == 0;
}

static const char *field_of(const json_t *status)
{
    const json_t *causes = json_object_get(json_object_get(status, "details"), "causes"), *cause;
    size_t i;

    json_array_foreach (causes, i, cause)
        if (text(cause, "field") && *text(cause, "field"))
            return text(cause, "field");
    return NULL;
}

static bool is_quota_race(const json_t *status)
{
    return is_text(status, "reason", "Conflict") &&
           is_text(json_object_get(status, "details"), "kind", "resourcequotas");
}

static void fill(struct error *err, int code, bool is_write, const json_t *status, const char *words)
{
    enum err_code meaning = code == 409 && is_quota_race(status) ? ERR_UNAVAILABLE : meaning_of(code, is_write);
    const char *reason = text(status, "reason"), *field = meaning == ERR_INVALID ? field_of(status) : NULL;
    BUF said = {0};

    put_words(&said, words, strlen(words));
    if (!said.len)
        buf_adds(&said, reason ? reason : "the server gave no reason");
    error_set(err, meaning, "%d %s", code, buf_str(&said));
    if (err && field)
        error_in(err, "%s", field);
}

/* The first line of what is no Status: a proxy's page, a plain text. */
static void first_line(const struct http_answer *answer, struct buf *out)
{
    const char *from = answer->body ? answer->body : "";
    size_t len;

    from += strspn(from, " \r\n\t");
    len = strcspn(from, "\r\n");
    put_words(out, from, len);
}

static json_t *status_of(const struct http_answer *answer)
{
    return answer->body && answer->len <= MAX_STATUS_BYTES ? json_loadb(answer->body, answer->len, 0, NULL) : NULL;
}

int status_check(const struct http_answer *answer, bool is_write, struct error *err)
{
    json_t *status;
    BUF line = {0};

    if (answer->status >= 200 && answer->status < 300)
        return 0;
    if (answer->status == 0) {
        if (err)
            *err = answer->err;
        if (err && is_write && answer->may_be_done)
            err->code = ERR_TIMEOUT;
        return -1;
    }
    status = status_of(answer);
    if (!text(status, "message"))
        first_line(answer, &line);
    fill(err, answer->status, is_write, status, text(status, "message") ? text(status, "message") : buf_str(&line));
    json_decref(status);
    return -1;
}

bool status_is_no_right(const struct http_answer *answer)
{
    json_t *status = answer->status == 403 ? status_of(answer) : NULL;
    const json_t *details = json_object_get(status, "details");
    bool is_no_right = text(details, "kind") && !text(details, "name");

    json_decref(status);
    return is_no_right;
}

bool status_is_expired(const struct http_answer *answer)
{
    return answer->status == GONE;
}

bool status_of_event(const json_t *status, struct error *err)
{
    json_int_t code = json_integer_value(json_object_get(status, "code"));
    const char *words = text(status, "message");

    fill(err, code >= 400 && code < 600 ? (int)code : 500, false, status, words ? words : "");
    return code == GONE || is_text(status, "reason", "Expired") || is_text(status, "reason", "Gone");
}
