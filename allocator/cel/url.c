#include "allocator/cel/url.h"

#include <string.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "allocator/cel/net.h"
#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

#define MAX_PARAMETERS 10000 /* Go drops a query with more */

/* ---- percent encoding ---- */

/* Which characters, beside letters, digits and "-_.~", stand for themselves in a part of a URL. */
enum part { PART_PATH, PART_USER, PART_HOST, PART_ZONE, PART_QUERY, PART_FRAGMENT };

static const char *const plain_in[] = {
    [PART_PATH] = "$&+,/:;=@",          [PART_USER] = "$&+,;=", [PART_HOST] = "!$&'()*+,;=:[]<>\"",
    [PART_ZONE] = "!$&'()*+,;=:[]<>\"", [PART_QUERY] = "",      [PART_FRAGMENT] = "$&+,/:;=?@!()*",
};

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_in(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static bool is_plain(char c, enum part part)
{
    return is_alnum(c) || is_in(c, "-_.~") || is_in(c, plain_in[part]);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static struct str slice(struct str s, size_t from, size_t to)
{
    return (struct str){s.ptr + from, to - from};
}

static bool contains(struct str s, char c)
{
    return s.len > 0 && memchr(s.ptr, c, s.len) != NULL;
}

/* The text before the first `c`; the rest behind it, empty when there is none. */
static struct str cut_at(struct str s, char c, struct str *rest)
{
    const char *p = s.len ? memchr(s.ptr, c, s.len) : NULL;
    size_t n = p ? (size_t)(p - s.ptr) : s.len;

    *rest = p ? slice(s, n + 1, s.len) : (struct str){0};
    return (struct str){s.ptr, n};
}

/* What reading a URL carries along. */
struct reader {
    struct arena *arena;
    struct buf *why; /* the reason of a failure */
};

static bool fail(struct reader *r, const char *why)
{
    buf_adds(r->why, why);
    return false;
}

static bool fail_quoting(struct reader *r, const char *before, struct str text, const char *after)
{
    buf_adds(r->why, before);
    utf8_quote_to(text, r->why);
    buf_adds(r->why, after);
    return false;
}

/* A host may encode only what is not ASCII, and the percent sign of a zone; a zone also what a host may contain. */
static bool escape_is_allowed(struct str escape, enum part part)
{
    int value = hex_value(escape.ptr[1]) << 4 | hex_value(escape.ptr[2]);

    if ((part != PART_HOST && part != PART_ZONE) || str_is(escape, "%25"))
        return true;
    if (part == PART_HOST)
        return value >= 0x80;
    return value == ' ' || is_plain((char)value, PART_HOST);
}

static bool check_escapes(struct str s, enum part part, struct reader *r)
{
    for (size_t i = 0; i < s.len; i++) {
        size_t end = i + 3 < s.len ? i + 3 : s.len;

        if (s.ptr[i] == '%') {
            if (i + 2 >= s.len || hex_value(s.ptr[i + 1]) < 0 || hex_value(s.ptr[i + 2]) < 0 ||
                !escape_is_allowed(slice(s, i, end), part))
                return fail_quoting(r, "invalid URL escape ", slice(s, i, end), "");
            i += 2;
        } else if ((part == PART_HOST || part == PART_ZONE) && (unsigned char)s.ptr[i] < 0x80 &&
                   !is_plain(s.ptr[i], part)) {
            return fail_quoting(r, "invalid character ", slice(s, i, i + 1), " in host name");
        }
    }
    return true;
}

static bool unescape(struct str s, enum part part, struct reader *r, struct str *out)
{
    char *text;
    size_t n = 0;

    if (!check_escapes(s, part, r))
        return false;
    *out = s;
    if (!contains(s, '%') && !(part == PART_QUERY && contains(s, '+')))
        return true;
    text = arena_alloc(r->arena, s.len + 1, 1);
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '%') {
            text[n++] = (char)(hex_value(s.ptr[i + 1]) << 4 | hex_value(s.ptr[i + 2]));
            i += 2;
        } else {
            text[n++] = s.ptr[i] == '+' && part == PART_QUERY ? ' ' : s.ptr[i];
        }
    }
    *out = (struct str){text, n};
    return true;
}

static void add_escaped(struct str s, enum part part, struct buf *out)
{
    for (size_t i = 0; i < s.len; i++) {
        if (is_plain(s.ptr[i], part))
            buf_addc(out, s.ptr[i]);
        else
            buf_addf(out, "%%%02X", (unsigned char)s.ptr[i]);
    }
}

static struct str in_arena(const struct buf *buf, struct arena *arena)
{
    return (struct str){arena_strndup(arena, buf_str(buf), buf->len), buf->len};
}

static struct str escape(struct str s, enum part part, struct arena *arena)
{
    BUF text = {0};

    add_escaped(s, part, &text);
    return in_arena(&text, arena);
}

/* A path or fragment as it was written, if that is a spelling that means it, else encoded anew. `decoded` is its
 * meaning. */
static struct str keep_or_escape(struct str written, struct str decoded, enum part part, struct arena *arena)
{
    bool is_valid = true;

    for (size_t i = 0; i < written.len; i++)
        is_valid = is_valid && (is_in(written.ptr[i], "!$&'()*+,;=:@[]%") || is_plain(written.ptr[i], part));
    if (is_valid || (part == PART_PATH && str_is(decoded, "*")))
        return written;
    return escape(decoded, part, arena);
}

/* ---- the parts ---- */

struct parts {
    struct str scheme, opaque, user, password, host, path, written_path, query;
    bool has_user, has_password, force_query, omit_host;
};

/* letter { letter | digit | + - . } ":"; a text that does not begin so has no scheme. */
static bool read_scheme(struct str text, struct str *scheme, struct str *rest, struct reader *r)
{
    *scheme = (struct str){0};
    *rest = text;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (c == ':') {
            if (i == 0)
                return fail(r, "missing protocol scheme");
            *scheme = utf8_lower_ascii(slice(text, 0, i), r->arena);
            *rest = slice(text, i + 1, text.len);
            return true;
        }
        if (!is_alnum(c) && !is_in(c, "+-."))
            return true;
        if (i == 0 && (c < 'A' || c > 'z'))
            return true;
    }
    return true;
}

/* "" or ":" digits */
static bool is_optional_port(struct str port)
{
    if (port.len > 0 && port.ptr[0] != ':')
        return false;
    for (size_t i = 1; i < port.len; i++)
        if (port.ptr[i] < '0' || port.ptr[i] > '9')
            return false;
    return true;
}

static bool join_host(struct str name, struct str zone, struct str port, struct reader *r, struct str *out)
{
    char *text = arena_printf(r->arena, "[%.*s%.*s]%.*s", STR_FMT(name), STR_FMT(zone), STR_FMT(port));

    *out = str_of(text);
    return true;
}

/* What stands in brackets must be an IPv6 address, perhaps with a zone. */
static bool check_literal(struct str name, struct str zone, struct reader *r)
{
    BUF whole = {0};
    BUF why = {0};
    bool is_v4;

    buf_add(&whole, name.ptr, name.len);
    buf_add(&whole, zone.ptr, zone.len);
    if (!ip_is_go_address((struct str){buf_str(&whole), whole.len}, &is_v4, &why)) {
        buf_addf(r->why, "invalid host: %s", buf_str(&why));
        return false;
    }
    return !is_v4 || fail(r, "invalid IP-literal");
}

/* "[" address [ "%25" zone ] "]" [ ":" port ] */
static bool read_ip_literal(struct str host, struct reader *r, struct str *out)
{
    const char *bracket = memrchr(host.ptr, ']', host.len), *percent;
    struct str name, zone = {0}, port;

    if (!bracket)
        return fail(r, "missing ']' in host");
    name = slice(host, 1, (size_t)(bracket - host.ptr));
    port = slice(host, (size_t)(bracket - host.ptr) + 1, host.len);
    if (!is_optional_port(port))
        return fail_quoting(r, "invalid port ", port, " after host");
    percent = name.len ? memmem(name.ptr, name.len, "%25", 3) : NULL;
    if (percent) {
        zone = slice(name, (size_t)(percent - name.ptr), name.len);
        name.len -= zone.len;
    }
    return unescape(name, PART_HOST, r, &name) && unescape(zone, PART_ZONE, r, &zone) && check_literal(name, zone, r) &&
           join_host(name, zone, port, r, out);
}

/* For http and https a name holds no colon; elsewhere the last one begins the port. */
static bool read_host(struct str host, struct str scheme, struct reader *r, struct str *out)
{
    bool strict = str_is(scheme, "http") || str_is(scheme, "https");
    const char *open = host.len ? memrchr(host.ptr, '[', host.len) : NULL, *colon;
    struct str port;

    if (open && open != host.ptr)
        return fail(r, "invalid IP-literal");
    if (open)
        return read_ip_literal(host, r, out);
    colon = host.len ? (strict ? memchr(host.ptr, ':', host.len) : memrchr(host.ptr, ':', host.len)) : NULL;
    if (colon) {
        port = slice(host, (size_t)(colon - host.ptr), host.len);
        if (!is_optional_port(port))
            return fail_quoting(r, "invalid port ", port, " after host");
    }
    return unescape(host, PART_HOST, r, out);
}

static bool read_user(struct str info, struct parts *p, struct reader *r)
{
    struct str name, password;

    for (size_t i = 0; i < info.len; i++)
        if (!is_alnum(info.ptr[i]) && !is_in(info.ptr[i], "-._:~!$&'()*+,;=%@"))
            return fail(r, "net/url: invalid userinfo");
    p->has_user = true;
    p->has_password = contains(info, ':');
    name = cut_at(info, ':', &password);
    return unescape(name, PART_USER, r, &p->user) && unescape(password, PART_USER, r, &p->password);
}

/* [ user [ ":" password ] "@" ] host */
static bool read_authority(struct str text, struct parts *p, struct reader *r)
{
    const char *sign = text.len ? memrchr(text.ptr, '@', text.len) : NULL;
    size_t n = sign ? (size_t)(sign - text.ptr) : 0;

    if (!read_host(sign ? slice(text, n + 1, text.len) : text, p->scheme, r, &p->host))
        return false;
    return !sign || read_user(slice(text, 0, n), p, r);
}

static bool starts(struct str s, const char *prefix)
{
    return str_starts(s, prefix);
}

/* Opaque parts end the reading; relative references are no request. */
static bool check_relative(struct str rest, bool via_request, struct reader *r)
{
    struct str ignored;

    if (via_request)
        return fail(r, "invalid URI for request");
    if (contains(cut_at(rest, '/', &ignored), ':'))
        return fail(r, "first path segment in URL cannot contain colon");
    return true;
}

static void read_query(struct str *rest, struct parts *p)
{
    struct str query;
    struct str head = cut_at(*rest, '?', &query);

    p->force_query = head.len + 1 == rest->len;
    p->query = query;
    *rest = head;
}

/* Go's parse: everything but the fragment. */
static bool read_parts(struct str text, bool via_request, struct parts *p, struct reader *r)
{
    struct str rest;

    *p = (struct parts){0};
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7F)
            return fail(r, "net/url: invalid control character in URL");
    if (text.len == 0 && via_request)
        return fail(r, "empty url");
    if (str_is(text, "*")) {
        p->path = p->written_path = text;
        return true;
    }
    if (!read_scheme(text, &p->scheme, &rest, r))
        return false;
    read_query(&rest, p);
    if (!starts(rest, "/")) {
        p->opaque = p->scheme.len > 0 ? rest : (struct str){0};
        if (p->scheme.len > 0)
            return true;
        if (!check_relative(rest, via_request, r))
            return false;
    }
    if (starts(rest, "//") && (p->scheme.len > 0 || (!via_request && !starts(rest, "///")))) {
        struct str authority = slice(rest, 2, rest.len), path;

        authority = cut_at(authority, '/', &path);
        rest = slice(rest, 2 + authority.len, rest.len);
        if (!read_authority(authority, p, r))
            return false;
    } else {
        p->omit_host = p->scheme.len > 0 && starts(rest, "/");
    }
    p->written_path = rest;
    return unescape(rest, PART_PATH, r, &p->path);
}

/* ---- writing it out again ---- */

static void add_authority(const struct parts *p, struct buf *out)
{
    if ((p->scheme.len == 0 && p->host.len == 0 && !p->has_user) || (p->omit_host && p->host.len == 0 && !p->has_user))
        return;
    if (p->host.len > 0 || p->path.len > 0 || p->has_user)
        buf_adds(out, "//");
    if (p->has_user) {
        add_escaped(p->user, PART_USER, out);
        if (p->has_password) {
            buf_addc(out, ':');
            add_escaped(p->password, PART_USER, out);
        }
        buf_addc(out, '@');
    }
    add_escaped(p->host, PART_HOST, out);
}

/* Go's URL.String. */
static void add_url(const struct parts *p, struct str path, struct str fragment, struct buf *out)
{
    struct str ignored;

    buf_add(out, p->scheme.ptr, p->scheme.len);
    if (p->scheme.len > 0)
        buf_addc(out, ':');
    if (p->opaque.len > 0) {
        buf_add(out, p->opaque.ptr, p->opaque.len);
    } else {
        add_authority(p, out);
        if (path.len > 0 && path.ptr[0] != '/' && p->host.len > 0)
            buf_addc(out, '/');
        if (out->len == 0 && contains(cut_at(path, '/', &ignored), ':'))
            buf_adds(out, "./");
        buf_add(out, path.ptr, path.len);
    }
    if (p->force_query || p->query.len > 0)
        buf_addc(out, '?');
    buf_add(out, p->query.ptr, p->query.len);
    if (fragment.len > 0)
        buf_addc(out, '#');
    buf_add(out, fragment.ptr, fragment.len);
}

/* ---- the interface ---- */

static int refuse(struct str text, const struct buf *why, struct error *err)
{
    BUF quoted = {0};

    utf8_quote_to(text, &quoted);
    return error_set(err, ERR_INVALID, "parse %s: %s", buf_str(&quoted), buf_str(why));
}

int url_parse(struct str text, struct arena *arena, struct url *out, struct error *err)
{
    BUF why = {0};
    BUF normal = {0};
    struct reader r = {arena, &why};
    struct parts p;
    struct str head, fragment, decoded;

    if (text.len > URL_MAX_TEXT)
        return error_set(err, ERR_LIMIT, "a URL is longer than %d bytes", URL_MAX_TEXT);
    if (!read_parts(text, true, &p, &r))
        return refuse(text, &why, err);
    head = cut_at(text, '#', &fragment);
    if (!read_parts(head, false, &p, &r))
        return refuse(head, &why, err);
    if (!unescape(fragment, PART_FRAGMENT, &r, &decoded))
        return refuse(text, &why, err);
    *out = (struct url){.scheme = p.scheme, .host = p.host, .raw_query = p.query};
    out->escaped_path = keep_or_escape(p.written_path, p.path, PART_PATH, arena);
    add_url(&p, out->escaped_path, keep_or_escape(fragment, decoded, PART_FRAGMENT, arena), &normal);
    out->normal = in_arena(&normal, arena);
    return 0;
}

int url_check(struct str text, struct arena *scratch, struct error *err)
{
    struct arena_mark mark = arena_mark(scratch);
    BUF why = {0};
    struct reader r = {scratch, &why};
    struct parts p;
    bool is_valid;

    if (text.len > URL_MAX_TEXT)
        return error_set(err, ERR_LIMIT, "a URL is longer than %d bytes", URL_MAX_TEXT);
    is_valid = read_parts(text, true, &p, &r);
    arena_rewind(scratch, mark);
    return is_valid ? 0 : refuse(text, &why, err);
}

/* Host and port of "name:80" and "[address]:80". */
static struct str split_port(struct str host, struct str *port)
{
    const char *colon = host.len ? memrchr(host.ptr, ':', host.len) : NULL;
    size_t n = colon ? (size_t)(colon - host.ptr) : host.len;

    *port = (struct str){0};
    if (colon && is_optional_port(slice(host, n, host.len))) {
        *port = slice(host, n + 1, host.len);
        host.len = n;
    }
    if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
        host = slice(host, 1, host.len - 1);
    return host;
}

struct str url_hostname(const struct url *url)
{
    struct str port;

    return split_port(url->host, &port);
}

struct str url_port(const struct url *url)
{
    struct str port;

    split_port(url->host, &port);
    return port;
}

bool url_eq(const struct url *a, const struct url *b)
{
    return str_eq(a->normal, b->normal);
}

/* ---- the query ---- */

struct pair {
    struct str key, value;
    size_t owner; /* index of the first pair with this key */
};

/* key [ "=" value ], decoded; false when the pair does not count. */
static bool read_pair(struct str text, struct reader *r, struct pair *out)
{
    struct str value;
    struct str key = cut_at(text, '=', &value);

    buf_clear(r->why);
    return text.len > 0 && !contains(text, ';') && unescape(key, PART_QUERY, r, &out->key) &&
           unescape(value, PART_QUERY, r, &out->value);
}

static size_t read_pairs(struct str query, struct reader *r, struct pair *pairs)
{
    size_t n = 0;

    while (query.len > 0) {
        struct str text = cut_at(query, '&', &query);

        if (!read_pair(text, r, &pairs[n]))
            continue;
        for (pairs[n].owner = 0; !str_eq(pairs[pairs[n].owner].key, pairs[n].key);)
            pairs[n].owner++;
        n++;
    }
    return n;
}

static struct url_parameter collect(const struct pair *pairs, size_t n, size_t owner, struct arena *arena)
{
    struct str *values;
    size_t n_values = 0;

    for (size_t i = owner; i < n; i++)
        n_values += pairs[i].owner == owner;
    values = arena_array(arena, struct str, n_values);
    n_values = 0;
    for (size_t i = owner; i < n; i++)
        if (pairs[i].owner == owner)
            values[n_values++] = pairs[i].value;
    return (struct url_parameter){pairs[owner].key, values, n_values};
}

struct url_query url_query(const struct url *url, struct arena *arena)
{
    BUF why = {0};
    struct reader r = {arena, &why};
    struct url_query query = {0};
    struct url_parameter *parameters;
    struct pair *pairs;
    size_t n = 1;

    for (size_t i = 0; i < url->raw_query.len; i++)
        n += url->raw_query.ptr[i] == '&';
    if (n > MAX_PARAMETERS)
        return query;
    pairs = arena_array(arena, struct pair, n);
    n = read_pairs(url->raw_query, &r, pairs);
    parameters = arena_array(arena, struct url_parameter, n);
    for (size_t i = 0; i < n; i++)
        if (pairs[i].owner == i)
            parameters[query.n_parameters++] = collect(pairs, n, i, arena);
    query.parameters = parameters;
    return query;
}
