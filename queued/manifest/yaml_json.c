/* Strict JSON (RFC 8259) with positions: what `kubectl -o json` and other programs write, one value after the other.
 *
 * jansson would read it too, but tells no positions; the numbers follow its rules (int64, else a real). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/str.h"
#include "queued/manifest/yaml_internal.h"

#include "allocator/base/banned.h"

struct json_reader {
    struct manifest *manifest;
    const struct manifest_limits *limits;
    const char *at, *end;
    const char *line_start;
    size_t line;
    const char *column_at; /* up to where `column` has counted: a whole file may be one line */
    size_t column;
    struct buf text; /* of the string being read */
    struct error *err;
};

static int json_value(struct json_reader *r, size_t depth, struct node *out);

static size_t json_column(struct json_reader *r)
{
    if (r->column_at < r->line_start) {
        r->column_at = r->line_start;
        r->column = 1;
    }
    for (; r->column_at < r->at; r->column_at++)
        r->column += ((unsigned char)*r->column_at & 0xc0) != 0x80;
    return r->column;
}

static int json_fail(struct json_reader *r, const char *words)
{
    return manifest_fail(r->manifest, ERR_INVALID, r->line, json_column(r), r->err, "%s", words);
}

static void json_space(struct json_reader *r)
{
    for (; r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r' || *r->at == '\n'); r->at++)
        if (*r->at == '\n') {
            r->line++;
            r->line_start = r->at + 1;
        }
}

/* The next character after white space, or NUL at the end. */
static char json_peek(struct json_reader *r)
{
    json_space(r);
    return r->at < r->end ? *r->at : '\0';
}

/* four hexadecimal digits; false when they are not there */
static bool json_hex4(struct json_reader *r, unsigned *out)
{
    unsigned value = 0;

    if (r->end - r->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = *r->at++;
        unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a') + 10;

        if (digit > 15)
            return false;
        value = value * 16 + digit;
    }
    *out = value;
    return true;
}

static void buf_add_utf8(struct buf *buf, unsigned code)
{
    if (code < 0x80) {
        buf_addc(buf, (char)code);
        return;
    }
    if (code < 0x800) {
        buf_addc(buf, (char)(0xc0 | (code >> 6)));
    } else {
        if (code < 0x10000) {
            buf_addc(buf, (char)(0xe0 | (code >> 12)));
        } else {
            buf_addc(buf, (char)(0xf0 | (code >> 18)));
            buf_addc(buf, (char)(0x80 | ((code >> 12) & 0x3f)));
        }
        buf_addc(buf, (char)(0x80 | ((code >> 6) & 0x3f)));
    }
    buf_addc(buf, (char)(0x80 | (code & 0x3f)));
}

/* escape = "\" ( one of "\/bfnrt | "u" hex4 [ "\u" hex4 ] ) ; the backslash is behind us */
static int json_escape(struct json_reader *r)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = r->at < r->end ? *r->at++ : '\0';
    const char *simple = c ? strchr(from, c) : NULL;
    unsigned code, low;

    if (simple) {
        buf_addc(&r->text, to[simple - from]);
        return 0;
    }
    if (c != 'u' || !json_hex4(r, &code))
        return json_fail(r, "unknown escape in a string");
    if (code >= 0xd800 && code < 0xdc00) {
        if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
            return json_fail(r, "half of a surrogate pair");
        r->at += 2;
        if (!json_hex4(r, &low) || low < 0xdc00 || low > 0xdfff)
            return json_fail(r, "half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
        return json_fail(r, "half of a surrogate pair");
    }
    if (code == 0)
        return json_fail(r, "NUL in a string");
    buf_add_utf8(&r->text, code);
    return 0;
}

/* string = '"' ( character | escape )* '"' ; into r->text */
static int json_string_read(struct json_reader *r)
{
    buf_clear(&r->text);
    r->at++;
    while (r->at < r->end && *r->at != '"') {
        const char *run = r->at;

        if (*r->at == '\\') {
            r->at++;
            if (json_escape(r) < 0)
                return -1;
            continue;
        }
        while (r->at < r->end && *r->at != '"' && *r->at != '\\' && (unsigned char)*r->at >= 0x20)
            r->at++;
        if (r->at == run)
            return json_fail(r, "control character in a string");
        buf_add(&r->text, run, (size_t)(r->at - run));
    }
    if (r->at == r->end)
        return json_fail(r, "a string is not closed");
    r->at++;
    return 0;
}

static int json_text(struct json_reader *r, json_t **out)
{
    if (json_string_read(r) < 0)
        return -1;
    *out = manifest_text(buf_str(&r->text), r->text.len);
    return *out ? 0 : json_fail(r, "invalid UTF-8 in a string");
}

/* number = [ "-" ] ( "0" | digit1-9 digit* ) [ "." digit+ ] [ ( "e" | "E" ) [ "+" | "-" ] digit+ ] */
static int json_number_read(struct json_reader *r, json_t **out)
{
    const char *start = r->at;
    struct scalar scalar;
    size_t len, digits;
    bool real = false;

    while (r->at < r->end && *r->at && strchr("+-.eE0123456789", *r->at)) {
        real = real || strchr(".eE", *r->at);
        r->at++;
    }
    len = (size_t)(r->at - start);
    digits = *start == '-';
    if (len == digits || start[digits] < '0' || start[digits] > '9' || start[len - 1] == '.' ||
        (start[digits] == '0' && len > digits + 1 && !strchr(".eE", start[digits + 1])) ||
        (memchr(start, '.', len) && strchr("eE", ((const char *)memchr(start, '.', len))[1])))
        return json_fail(r, "not a number");
    scalar = scalar_resolve(start, len);
    if (scalar.type == SCALAR_INT && !real)
        *out = json_integer(scalar.integer);
    else if (scalar.type == SCALAR_REAL)
        *out = json_real(scalar.real);
    else
        return json_fail(r, "not a number, or too large");
    return 0;
}

static int json_word(struct json_reader *r, json_t **out)
{
    static const struct {
        const char *text;
        size_t len;
    } json_words[] = {{"true", 4}, {"false", 5}, {"null", 4}};
    size_t left = (size_t)(r->end - r->at);

    for (size_t i = 0; i < ARRAY_SIZE(json_words); i++)
        if (left >= json_words[i].len && memcmp(r->at, json_words[i].text, json_words[i].len) == 0) {
            r->at += json_words[i].len;
            *out = i == 0 ? json_true() : i == 1 ? json_false() : json_null();
            return 0;
        }
    return json_fail(r, r->at < r->end ? "not JSON" : "the text ends too early");
}

static bool text_is_utf8(const struct buf *text)
{
    json_t *string = manifest_text(buf_str(text), text->len);
    bool valid = string != NULL;

    json_decref(string);
    return valid;
}

/* member = string ":" value */
static int json_member(struct json_reader *r, size_t depth, struct node *object)
{
    struct node member = {0};
    size_t line, column;
    char *key;
    int rc;

    if (json_peek(r) != '"')
        return json_fail(r, "a key in double quotes is expected");
    line = r->line;
    column = json_column(r);
    if (json_string_read(r) < 0)
        return -1;
    if (json_peek(r) != ':')
        return json_fail(r, "':' is expected");
    r->at++;
    if (!text_is_utf8(&r->text))
        return json_fail(r, "invalid UTF-8 in a key");
    key = buf_take(&r->text);
    rc = json_value(r, depth, &member);
    if (rc == 0) {
        member.mark->line = (uint32_t)line;
        member.mark->column = (uint32_t)column;
        rc = manifest_member(r->manifest, object, key, &member, r->err);
    }
    free(key);
    return rc;
}

static int json_element(struct json_reader *r, size_t depth, struct node *list)
{
    struct node element = {0};

    if (json_value(r, depth, &element) < 0)
        return -1;
    mark_add(list->mark, element.mark);
    if (element.height + 1 > list->height)
        list->height = element.height + 1;
    INVARIANT(json_array_append_new(list->value, TAKE(element.value)) == 0);
    return 0;
}

/* object = "{" [ member ( "," member )* ] "}" ; array alike */
static int json_container(struct json_reader *r, size_t depth, struct node *out)
{
    bool object = *r->at == '{';
    char close = object ? '}' : ']';

    if (depth == 0)
        return manifest_fail(r->manifest, ERR_LIMIT, r->line, json_column(r), r->err, "nested deeper than %zu",
                             r->limits->max_depth);
    out->value = object ? json_object() : json_array();
    r->at++;
    if (json_peek(r) == close) {
        r->at++;
        return 0;
    }
    for (;;) {
        if ((object ? json_member(r, depth - 1, out) : json_element(r, depth - 1, out)) < 0)
            return -1;
        if (json_peek(r) == close)
            break;
        if (json_peek(r) != ',')
            return json_fail(r, object ? "',' or '}' is expected" : "',' or ']' is expected");
        r->at++;
    }
    r->at++;
    return 0;
}

static int json_value(struct json_reader *r, size_t depth, struct node *out)
{
    char c = json_peek(r);
    size_t line = r->line, column = json_column(r);
    int rc;

    *out = (struct node){.mark = mark_new(r->manifest, line, column), .height = 1};
    if (manifest_count(r->manifest, r->limits, 1, line, column, r->err) < 0)
        return -1;
    if (c == '{' || c == '[')
        rc = json_container(r, depth, out);
    else if (c == '"')
        rc = json_text(r, &out->value);
    else if (c == '-' || (c >= '0' && c <= '9'))
        rc = json_number_read(r, &out->value);
    else
        rc = json_word(r, &out->value);
    if (rc < 0)
        json_decref(TAKE(out->value));
    return rc;
}

int json_stream_read(struct manifest *manifest, const char *bytes, size_t len, const struct manifest_limits *limits,
                     struct error *err)
{
    struct json_reader r = {.manifest = manifest,
                            .limits = limits,
                            .at = bytes,
                            .end = bytes + len,
                            .line_start = bytes,
                            .line = 1,
                            .column_at = bytes,
                            .column = 1,
                            .err = err};
    struct node document;
    int rc = 0;

    while (rc == 0 && json_peek(&r) != '\0') {
        rc = json_value(&r, limits->max_depth, &document);
        if (rc == 0)
            rc = manifest_add(manifest, limits, &document, err);
    }
    if (rc == 0 && r.at < r.end)
        rc = json_fail(&r, "not JSON");
    buf_release(&r.text);
    return rc;
}
