#include "api/uri.h"

#include <stdbool.h>
#include <string.h>

#include "allocator/base/banned.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Smallest value that a sequence of n bytes may encode: shorter forms exist for less. */
static bool is_utf8_value(unsigned value, size_t n)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};

    return value >= least[n] && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff) &&
           (value < 0x80 || value > 0x9f);
}

/* Printable UTF-8: no control characters of ASCII or Latin-1. */
static bool is_text(const unsigned char *s, size_t len)
{
    size_t i = 0;

    while (i < len) {
        size_t n = s[i] < 0x80 ? 1 : s[i] < 0xc2 ? 0 : s[i] < 0xe0 ? 2 : s[i] < 0xf0 ? 3 : s[i] < 0xf5 ? 4 : 0;
        unsigned value = n == 1 ? s[i] : s[i] & (0x7fu >> n);

        if (n == 0 || n > len - i || (n == 1 && (value < 0x20 || value == 0x7f)))
            return false;
        for (size_t k = 1; k < n; k++) {
            if ((s[i + k] & 0xc0) != 0x80)
                return false;
            value = value << 6 | (s[i + k] & 0x3f);
        }
        if (n > 1 && !is_utf8_value(value, n))
            return false;
        i += n;
    }
    return true;
}

/* In a query a plus is a space (as forms and most clients write it), in a path it is itself. */
static int decode(struct str in, bool is_query, struct arena *arena, const char **out, struct error *err)
{
    char *text = arena_alloc(arena, in.len + 1, 1);
    size_t n = 0;

    for (size_t i = 0; i < in.len; i++) {
        int high, low;

        if (in.ptr[i] != '%') {
            text[n++] = is_query && in.ptr[i] == '+' ? ' ' : in.ptr[i];
            continue;
        }
        if (in.len - i < 3 || (high = hex_digit(in.ptr[i + 1])) < 0 || (low = hex_digit(in.ptr[i + 2])) < 0)
            return error_set(err, ERR_INVALID, "the target holds a %% that two hexadecimal digits do not follow");
        text[n++] = (char)(high << 4 | low);
        i += 2;
    }
    if (!is_text((const unsigned char *)text, n))
        return error_set(err, ERR_INVALID, "the target holds control characters or is no UTF-8");
    *out = text;
    return 0;
}

static struct str cut(struct str *rest, char separator)
{
    const char *at = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    struct str part = {rest->ptr, at ? (size_t)(at - rest->ptr) : rest->len};

    rest->ptr += part.len + (at != NULL);
    rest->len -= part.len + (at != NULL);
    return part;
}

static int parse_path(struct str path, struct arena *arena, struct uri *out, struct error *err)
{
    if (path.len == 0 || path.ptr[0] != '/')
        return error_set(err, ERR_NOT_FOUND, "a path begins with a slash");
    while (path.len > 1) {
        struct str segment;

        path.ptr++, path.len--; /* the slash before the segment */
        segment = (struct str){path.ptr, path.len};
        segment.len = cut(&segment, '/').len;
        segment.ptr = path.ptr;
        if (segment.len == 0 || out->n_segments == URI_SEGMENTS_MAX)
            return error_set(err, ERR_NOT_FOUND, "there is no such path");
        if (decode(segment, false, arena, &out->segments[out->n_segments++], err) < 0)
            return -1;
        path.ptr += segment.len;
        path.len -= segment.len;
    }
    if (path.len == 1 && out->n_segments > 0)
        return error_set(err, ERR_NOT_FOUND, "a path does not end with a slash");
    return 0;
}

const char *uri_param_find(const struct uri *uri, const char *name)
{
    for (size_t i = 0; i < uri->n_params; i++)
        if (strcmp(uri->params[i].name, name) == 0)
            return uri->params[i].value;
    return NULL;
}

/* pair = name [ "=" value ] */
static int parse_pair(struct str pair, struct arena *arena, struct uri *out, struct error *err)
{
    struct str name = cut(&pair, '=');
    struct uri_param param;

    if (decode(name, true, arena, &param.name, err) < 0 || decode(pair, true, arena, &param.value, err) < 0)
        return -1;
    if (out->n_params == URI_PARAMS_MAX)
        return error_set(err, ERR_INVALID, "the query has too many parameters");
    if (uri_param_find(out, param.name))
        return error_field(err, param.name, "the query has '%.60s' more than once", param.name);
    out->params[out->n_params++] = param;
    return 0;
}

int uri_parse(struct str target, struct arena *arena, struct uri *out, struct error *err)
{
    struct str path = cut(&target, '?');

    *out = (struct uri){0};
    if (parse_path(path, arena, out, err) < 0)
        return -1;
    while (target.len > 0) {
        struct str pair = cut(&target, '&');

        if (pair.len > 0 && parse_pair(pair, arena, out, err) < 0)
            return -1;
    }
    return 0;
}
