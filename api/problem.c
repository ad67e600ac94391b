#include "api/problem.h"

#include <stddef.h>

#include "allocator/base/invariant.h"
#include "api/http.h"

#include "allocator/base/banned.h"

/* A code has one status here; for a status the first row with it names the code. */
static const struct {
    enum err_code code;
    int status;
} statuses[] = {
    {ERR_INVALID, 400},     {ERR_DENIED, 403},  {ERR_DENIED, 401},  {ERR_NOT_FOUND, 404}, {ERR_CONFLICT, 409},
    {ERR_LIMIT, 429},       {ERR_LIMIT, 413},   {ERR_LIMIT, 431},   {ERR_IO, 500},        {ERR_REMOTE, 502},
    {ERR_UNAVAILABLE, 503}, {ERR_TIMEOUT, 504}, {ERR_TIMEOUT, 408}, {ERR_INVALID, 405},   {ERR_INVALID, 406},
    {ERR_INVALID, 415},     {ERR_INVALID, 417}, {ERR_INVALID, 501}, {ERR_INVALID, 505},
};

int problem_status(enum err_code code)
{
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
        if (statuses[i].code == code)
            return statuses[i].status;
    return 500;
}

enum err_code problem_code(int status)
{
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
        if (statuses[i].status == status)
            return statuses[i].code;
    return ERR_IO;
}

/* Words come from anywhere, and jansson refuses what is no UTF-8: then the bytes beyond ASCII are replaced. */
static json_t *text_json(const char *text)
{
    json_t *value = json_string(text);

    if (!value) {
        BUF ascii = {0};

        for (; *text; text++)
            buf_addc(&ascii, (unsigned char)*text < 0x80 ? *text : '?');
        value = json_string(buf_str(&ascii));
    }
    INVARIANT(value);
    return value;
}

char *problem_format(int status, enum err_code code, const char *field, const char *detail, const json_t *problems)
{
    json_t *document =
        json_pack("{s:s, s:s, s:i}", "type", "about:blank", "title", http_status_title(status), "status", status);
    char *text;

    if (detail && detail[0])
        json_object_set_new(document, "detail", text_json(detail));
    json_object_set_new(document, "code", json_string(err_code_name(code)));
    if (field && field[0])
        json_object_set_new(document, "field", text_json(field));
    if (problems)
        json_object_set_new(document, "problems", json_deep_copy(problems));
    text = json_dumps(document, JSON_COMPACT);
    INVARIANT(text);
    json_decref(document);
    return text;
}
