#include "queued/cluster/kube/mend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/banned.h"

#define SAFE_DIGITS 18 /* any whole number of so many fits into 64 bits */

static const char replacement[] = "\\ufffd";

/* The four hex digits behind "\u" at `at`, or -1. */
static int hex4(struct str text, size_t at)
{
    int value = 0;

    if (text.len < 6 || at > text.len - 6 || text.ptr[at] != '\\' || text.ptr[at + 1] != 'u')
        return -1;
    for (size_t i = at + 2; i < at + 6; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit =
            text.ptr[i] ? strchr(digits, text.ptr[i] | ('A' <= text.ptr[i] && text.ptr[i] <= 'F' ? 0x20 : 0)) : NULL;

        if (!digit)
            return -1;
        value = value * 16 + (int)(digit - digits);
    }
    return value;
}

/* An escape that begins at `at`; returns where it ends. */
static size_t mend_escape(struct str text, size_t at, struct buf *out)
{
    int code = hex4(text, at), next = hex4(text, at + 6);
    size_t len = code < 0 ? 2 : 6;

    if (code >= 0xd800 && code < 0xdc00 && next >= 0xdc00 && next < 0xe000)
        len = 12;
    else if (code == 0 || (code >= 0xd800 && code < 0xe000)) {
        buf_adds(out, replacement);
        return at + len;
    }
    len = len < text.len - at ? len : text.len - at;
    buf_add(out, text.ptr + at, len);
    return at + len;
}

static size_t mend_string(struct str text, size_t at, struct buf *out)
{
    buf_addc(out, text.ptr[at++]);
    while (at < text.len && text.ptr[at] != '"') {
        if (text.ptr[at] == '\\')
            at = mend_escape(text, at, out);
        else
            buf_addc(out, text.ptr[at++]);
    }
    if (at < text.len)
        buf_addc(out, text.ptr[at++]);
    return at;
}

static bool is_of_number(char c)
{
    return c && strchr("+-.0123456789eE", c);
}

static size_t mend_number(struct str text, size_t at, struct buf *out)
{
    size_t end = at;
    BUF number = {0};

    while (end < text.len && is_of_number(text.ptr[end]))
        end++;
    buf_add(&number, text.ptr + at, end - at);
    if (end - at > SAFE_DIGITS && !strpbrk(buf_str(&number), ".eE"))
        buf_adds(&number, ".0");
    if (isinf(strtod(buf_str(&number), NULL)))
        buf_adds(out, "0");
    else
        buf_add(out, number.data, number.len);
    return end;
}

static size_t skip_string(struct str text, size_t at)
{
    for (at++; at < text.len && text.ptr[at] != '"'; at++)
        at += text.ptr[at] == '\\';
    return at < text.len ? at + 1 : text.len;
}

/* Over a whole array or object. */
static size_t skip_nested(struct str text, size_t at)
{
    size_t depth = 0;

    do {
        char c = text.ptr[at];

        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        at = c == '"' ? skip_string(text, at) : at + 1;
    } while (depth && at < text.len);
    return at;
}

void mend_json(struct str text, size_t max_depth, struct buf *out)
{
    size_t depth = 0, at = 0;

    while (at < text.len) {
        char c = text.ptr[at];
        bool opens = c == '{' || c == '[';

        if (c == '"') {
            at = mend_string(text, at, out);
        } else if (c == '-' || (c >= '0' && c <= '9')) {
            at = mend_number(text, at, out);
        } else if (opens && depth == max_depth) {
            buf_adds(out, "null");
            at = skip_nested(text, at);
        } else {
            depth += opens;
            depth -= (c == '}' || c == ']') && depth;
            buf_addc(out, c);
            at++;
        }
    }
}
