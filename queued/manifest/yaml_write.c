/* JSON to block-style YAML, the way kubectl lays it out: lists at the level of their key, text plain where it cannot be
 * mistaken, a literal block where it has lines, else in double quotes. The property that holds: reading it gives an
 * equal value, with our reader and with one that follows YAML 1.1 or 1.2. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/str.h"
#include "queued/manifest/yaml_internal.h"

#include "allocator/base/banned.h"

/* libyaml takes no longer key without "? ". */
#define KEY_MAX 100

static void write_value(struct buf *out, const json_t *value, size_t indent);

static void write_indent(struct buf *out, size_t indent)
{
    for (size_t i = 0; i < indent; i++)
        buf_addc(out, ' ');
}

/* ---- text ---- */

static bool is_plain_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' || c == '_' ||
           c == '.';
}

static bool is_plain_inside(char c)
{
    return is_plain_start(c) || strchr(" -+:#=()$@*<>~^;'\"%|&!?\\", c);
}

/* 12:30:45 and 2001-01-01 are numbers and dates to readers of YAML 1.1, "." and "=" are odd in some. */
static bool looks_numeric(const char *s, size_t len)
{
    return len == 0 || strspn(s, "0123456789_:.-+TtZz ") == len;
}

static bool is_plain(const char *s, size_t len)
{
    bool option = len >= 2 && s[0] == '-' && is_plain_start(s[s[1] == '-' ? 2 : 1]); /* "-c", "--flag" */

    if (len == 0 || (!is_plain_start(s[0]) && !option) || s[len - 1] == ' ' || s[len - 1] == ':' ||
        looks_numeric(s, len))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!s[i] || !is_plain_inside(s[i]))
            return false;
        if (s[i] == ':' && s[i + 1] == ' ')
            return false;
        if (s[i] == '#' && s[i - 1] == ' ')
            return false;
    }
    return scalar_resolve(s, len).type == SCALAR_STRING;
}

/* How many bytes the character has when a literal or quoted text may show it as it is; 0 when it must be escaped. Valid
 * UTF-8 is given (jansson holds nothing else). */
static size_t printable(const char *s)
{
    const unsigned char *c = (const unsigned char *)s;

    if (c[0] < 0x80)
        return c[0] >= 0x20 && c[0] < 0x7f;
    if (c[0] < 0xe0)
        return c[0] == 0xc2 && c[1] < 0xa0 ? 0 : 2; /* C1 controls */
    if (c[0] < 0xf0) {
        if (c[0] == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9))
            return 0; /* line and paragraph separator end a line in YAML */
        if (c[0] == 0xef && ((c[1] == 0xbb && c[2] == 0xbf) || (c[1] == 0xbf && c[2] >= 0xbe)))
            return 0; /* byte order mark and the two that are no characters */
        return 3;
    }
    return 4;
}

static unsigned decode_utf8(const char *s, size_t *len)
{
    const unsigned char *c = (const unsigned char *)s;

    if (c[0] < 0x80) {
        *len = 1;
        return c[0];
    }
    if (c[0] < 0xe0) {
        *len = 2;
        return ((c[0] & 0x1fu) << 6) | (c[1] & 0x3fu);
    }
    *len = 3; /* longer ones are all printable */
    return ((c[0] & 0x0fu) << 12) | ((c[1] & 0x3fu) << 6) | (c[2] & 0x3fu);
}

static void write_escape(struct buf *out, unsigned code)
{
    static const struct {
        unsigned code;
        const char *text;
    } escapes[] = {{'\n', "\\n"}, {'\t', "\\t"}, {'\r', "\\r"}, {'"', "\\\""}, {'\\', "\\\\"}};

    for (size_t i = 0; i < ARRAY_SIZE(escapes); i++)
        if (escapes[i].code == code) {
            buf_adds(out, escapes[i].text);
            return;
        }
    buf_addf(out, "\\u%04x", code);
}

static void write_quoted(struct buf *out, const char *s, size_t len)
{
    const char *end = s + len;

    buf_addc(out, '"');
    while (s < end) {
        size_t n = printable(s);

        if (n > 0 && *s != '"' && *s != '\\') {
            buf_add(out, s, n);
        } else {
            unsigned code = decode_utf8(s, &n);

            write_escape(out, code);
        }
        s += n;
    }
    buf_addc(out, '"');
}

static void write_text(struct buf *out, const char *s, size_t len)
{
    if (is_plain(s, len))
        buf_add(out, s, len);
    else
        write_quoted(out, s, len);
}

/* Lines that a literal block keeps exactly: printable (tabs inside are fine), the first one not blank and not indented.
 */
static bool is_literal(const char *s, size_t len)
{
    const char *end = s + len;

    if (!memchr(s, '\n', len) || strchr(" \t\n", s[0]))
        return false;
    for (const char *at = s; at < end;) {
        size_t n = *at == '\n' || *at == '\t' ? 1 : printable(at);

        if (n == 0 || (*at == ' ' && at[1] == '\n'))
            return false;
        at += n;
    }
    return true;
}

/* The header says what the end is: "|" one line end, "|-" none, "|+" several. */
static void write_literal(struct buf *out, const char *s, size_t len, size_t indent)
{
    const char *end = s + len;

    buf_addc(out, '|');
    if (end[-1] != '\n')
        buf_addc(out, '-');
    else if (len >= 2 && end[-2] == '\n')
        buf_addc(out, '+');
    while (s < end) {
        const char *stop = memchr(s, '\n', (size_t)(end - s));

        if (!stop)
            stop = end;
        buf_addc(out, '\n');
        if (stop > s) {
            write_indent(out, indent);
            buf_add(out, s, (size_t)(stop - s));
        }
        s = stop + 1;
    }
}

/* ---- values ---- */

static bool is_block(const json_t *value)
{
    return (json_is_object(value) && json_object_size(value) > 0) ||
           (json_is_array(value) && json_array_size(value) > 0);
}

static void write_scalar(struct buf *out, const json_t *value, size_t indent)
{
    char real[MANIFEST_REAL_SIZE];

    switch (json_typeof(value)) {
    case JSON_NULL:
        buf_adds(out, "null");
        return;
    case JSON_TRUE:
        buf_adds(out, "true");
        return;
    case JSON_FALSE:
        buf_adds(out, "false");
        return;
    case JSON_INTEGER:
        buf_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return;
    case JSON_REAL:
        manifest_format_real(json_real_value(value), real);
        buf_adds(out, real);
        return;
    case JSON_OBJECT:
        buf_adds(out, "{}");
        return;
    case JSON_ARRAY:
        buf_adds(out, "[]");
        return;
    case JSON_STRING:
        if (is_literal(json_string_value(value), json_string_length(value)))
            write_literal(out, json_string_value(value), json_string_length(value), indent);
        else
            write_text(out, json_string_value(value), json_string_length(value));
        return;
    }
}

/* Behind a key: a block goes to lines of its own, a scalar behind the colon. */
static void write_member(struct buf *out, const char *key, const json_t *value, size_t indent)
{
    size_t len = strlen(key);
    bool list = json_is_array(value);

    if (len > KEY_MAX) {
        buf_adds(out, "? ");
        write_text(out, key, len);
        buf_addc(out, '\n');
        write_indent(out, indent);
    } else {
        write_text(out, key, len);
    }
    buf_addc(out, ':');
    if (!is_block(value)) {
        buf_addc(out, ' ');
        write_scalar(out, value, indent + 2);
        return;
    }
    buf_addc(out, '\n');
    write_indent(out, list ? indent : indent + 2);
    write_value(out, value, list ? indent : indent + 2);
}

/* The first line is written at the place where the buffer stands; all others are indented. */
static void write_value(struct buf *out, const json_t *value, size_t indent)
{
    const char *key;
    json_t *member;
    bool first = true;
    size_t i;

    if (!is_block(value)) {
        write_scalar(out, value, indent > 0 ? indent : 2); /* "---" in a text must not end the document */
        return;
    }
    if (json_is_object(value)) {
        json_object_foreach ((json_t *)value, key, member) { /* the macro wants it mutable; it reads only */
            if (!first) {
                buf_addc(out, '\n');
                write_indent(out, indent);
            }
            first = false;
            write_member(out, key, member, indent);
        }
        return;
    }
    json_array_foreach (value, i, member) {
        if (i > 0) {
            buf_addc(out, '\n');
            write_indent(out, indent);
        }
        buf_adds(out, "- ");
        write_value(out, member, indent + 2);
    }
}

char *manifest_to_yaml(const json_t *value)
{
    struct buf out = {0};

    write_value(&out, value, 0);
    buf_addc(&out, '\n');
    return buf_take(&out);
}
