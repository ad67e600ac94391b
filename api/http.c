#include "api/http.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "allocator/base/checked.h"

#include "allocator/base/banned.h"

static int refuse(struct http_refusal *why, int status, const char *detail)
{
    *why = (struct http_refusal){status, detail};
    return -1;
}

/* ---- characters ---- */

/* RFC 9110 5.6.2: token characters. */
static bool is_token_char(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_token_char(s.ptr[i]))
            return false;
    return s.len > 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static struct str trimmed(struct str s)
{
    while (s.len && is_space(s.ptr[0]))
        s.ptr++, s.len--;
    while (s.len && is_space(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

bool http_text_is(struct str text, const char *lower)
{
    return text.len == strlen(lower) && strncasecmp(text.ptr ? text.ptr : "", lower, text.len) == 0;
}

bool http_list_has(struct str list, const char *lower)
{
    while (list.len > 0) {
        const char *comma = memchr(list.ptr, ',', list.len);
        size_t len = comma ? (size_t)(comma - list.ptr) : list.len;
        const char *semicolon = memchr(list.ptr, ';', len);
        struct str element = {list.ptr, semicolon ? (size_t)(semicolon - list.ptr) : len};

        if (http_text_is(trimmed(element), lower))
            return true;
        len += comma != NULL;
        list.ptr += len;
        list.len -= len;
    }
    return false;
}

/* ---- the head ---- */

/* A head ends with an empty line. A bare LF counts here, so that a request in the wrong form is refused by the parser
 * at once instead of waiting for its time to run out. */
size_t http_head_length(struct str bytes, size_t *scanned)
{
    size_t at = *scanned > 2 ? *scanned - 2 : 0;

    for (; at < bytes.len; at++) {
        if (bytes.ptr[at] != '\n')
            continue;
        if (at + 1 < bytes.len && bytes.ptr[at + 1] == '\n')
            return at + 2;
        if (at + 2 < bytes.len && bytes.ptr[at + 1] == '\r' && bytes.ptr[at + 2] == '\n')
            return at + 3;
    }
    *scanned = bytes.len;
    return 0;
}

/* Cut the next line off; it must end with CRLF and hold no other control character than tab. */
static int next_line(struct str *rest, struct str *line, struct http_refusal *why)
{
    const char *end = memchr(rest->ptr, '\n', rest->len);

    if (!end || end == rest->ptr || end[-1] != '\r')
        return refuse(why, 400, "lines of the head must end with CRLF");
    *line = (struct str){rest->ptr, (size_t)(end - rest->ptr) - 1};
    rest->len -= line->len + 2;
    rest->ptr += line->len + 2;
    for (size_t i = 0; i < line->len; i++)
        if (((unsigned char)line->ptr[i] < 0x20 && line->ptr[i] != '\t') || line->ptr[i] == 0x7f)
            return refuse(why, 400, "the head holds a control character");
    return 0;
}

static bool cut(struct str *rest, char separator, struct str *part)
{
    const char *at = memchr(rest->ptr, separator, rest->len);

    if (!at)
        return false;
    *part = (struct str){rest->ptr, (size_t)(at - rest->ptr)};
    rest->len -= part->len + 1;
    rest->ptr = at + 1;
    return true;
}

static int parse_version(struct str version, struct http_head *out, struct http_refusal *why)
{
    if (version.len != 8 || !str_starts(version, "HTTP/") || version.ptr[6] != '.' ||
        !isdigit((unsigned char)version.ptr[5]) || !isdigit((unsigned char)version.ptr[7]))
        return refuse(why, 400, "the request line must end with the version");
    if (version.ptr[5] != '1')
        return refuse(why, 505, "only HTTP/1.1 and HTTP/1.0 are served");
    out->minor = version.ptr[7] == '0' ? 0 : 1;
    return 0;
}

/* The origin form; the absolute form of a client that thinks we are its proxy is cut to it. */
static int parse_target(struct str target, struct http_head *out, struct http_refusal *why)
{
    static const char scheme[] = "http://";

    for (size_t i = 0; i < target.len; i++)
        if ((unsigned char)target.ptr[i] <= 0x20 || (unsigned char)target.ptr[i] >= 0x7f || target.ptr[i] == '#')
            return refuse(why, 400, "the target holds a character that must be percent-encoded");
    if (str_starts(target, scheme)) {
        const char *slash;

        target.ptr += sizeof(scheme) - 1;
        target.len -= sizeof(scheme) - 1;
        slash = memchr(target.ptr, '/', target.len);
        target = slash ? (struct str){slash, target.len - (size_t)(slash - target.ptr)} : STR("/");
    }
    if (target.len == 0 || target.ptr[0] != '/')
        return refuse(why, 400, "the target must begin with a slash");
    out->target = target;
    return 0;
}

/* request-line = method SP request-target SP HTTP-version */
static int parse_request_line(struct str line, struct http_head *out, struct http_refusal *why)
{
    struct str target;

    if (!cut(&line, ' ', &out->method) || !is_token(out->method) || !cut(&line, ' ', &target))
        return refuse(why, 400, "the request line must be: METHOD TARGET HTTP/1.1");
    if (parse_version(line, out, why) < 0)
        return -1;
    return parse_target(target, out, why);
}

/* field-line = field-name ":" OWS field-value OWS */
static int parse_header(struct str line, struct http_head *out, struct http_refusal *why)
{
    struct http_header *header;

    if (out->n_headers == HTTP_HEADERS_MAX)
        return refuse(why, 431, "too many headers");
    header = &out->headers[out->n_headers];
    if (!cut(&line, ':', &header->name) || !is_token(header->name))
        return refuse(why, 400, "a header must be: Name: value");
    header->value = trimmed(line);
    out->n_headers++;
    return 0;
}

struct str http_header_find(const struct http_head *head, const char *name)
{
    for (size_t i = 0; i < head->n_headers; i++)
        if (http_text_is(head->headers[i].name, name))
            return head->headers[i].value;
    return (struct str){NULL, 0};
}

static size_t header_count(const struct http_head *head, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < head->n_headers; i++)
        n += http_text_is(head->headers[i].name, name);
    return n;
}

static int parse_content_length(struct http_head *out, struct http_refusal *why)
{
    struct str text = http_header_find(out, "content-length");

    if (text.len == 0)
        return refuse(why, 400, "Content-Length must be a number");
    for (size_t i = 0; i < text.len; i++) {
        if (!isdigit((unsigned char)text.ptr[i]))
            return refuse(why, 400, "Content-Length must be a number");
        if (!checked_mul(out->content_length, 10u, &out->content_length) ||
            !checked_add(out->content_length, (unsigned)(text.ptr[i] - '0'), &out->content_length))
            return refuse(why, 413, "the body is too large");
    }
    return 0;
}

/* How long the body is (RFC 9112, section 6.3), with everything ambiguous refused. */
static int frame(struct http_head *out, struct http_refusal *why)
{
    size_t lengths = header_count(out, "content-length"), codings = header_count(out, "transfer-encoding");

    if (lengths > 1 || codings > 1 || (lengths && codings))
        return refuse(why, 400, "the length of the body is stated more than once");
    if (lengths)
        return parse_content_length(out, why);
    if (!codings)
        return 0;
    if (out->minor == 0)
        return refuse(why, 400, "HTTP/1.0 knows no Transfer-Encoding");
    if (!http_text_is(http_header_find(out, "transfer-encoding"), "chunked"))
        return refuse(why, 501, "no transfer coding but chunked is served");
    out->is_chunked = true;
    return 0;
}

static int check_connection(struct http_head *out, struct http_refusal *why)
{
    struct str connection = http_header_find(out, "connection"), expect = http_header_find(out, "expect");

    if (header_count(out, "host") > 1 || (out->minor > 0 && !http_header_find(out, "host").ptr))
        return refuse(why, 400, "one Host header is needed");
    out->keep_alive = out->minor > 0 ? !http_list_has(connection, "close") : http_list_has(connection, "keep-alive");
    if (expect.ptr && !http_text_is(expect, "100-continue"))
        return refuse(why, 417, "nothing but 100-continue can be expected");
    out->expects_continue = expect.ptr && out->minor > 0;
    return 0;
}

int http_head_parse(struct str bytes, struct http_head *out, struct http_refusal *why)
{
    struct str line;

    out->method = out->target = (struct str){NULL, 0};
    out->n_headers = 0;
    out->content_length = 0;
    out->is_chunked = false;
    if (next_line(&bytes, &line, why) < 0 || parse_request_line(line, out, why) < 0)
        return -1;
    for (;;) {
        if (next_line(&bytes, &line, why) < 0)
            return -1;
        if (line.len == 0)
            break;
        if (parse_header(line, out, why) < 0)
            return -1;
    }
    if (frame(out, why) < 0)
        return -1;
    return check_connection(out, why);
}

/* ---- chunks ---- */

/*  SIZE --LF--> DATA --all--> DATA_CR --> DATA_LF --> SIZE
 *    | size 0
 *    +----> TRAILER --empty line--> END                     (RFC 9112, section 7.1) */
enum {
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER,
    CHUNK_TRAILER_LF,
    CHUNK_END
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool size_byte(struct http_chunks *chunks, char c)
{
    int digit = hex_digit(c);

    if (digit >= 0) {
        chunks->has_digits = true;
        return checked_mul(chunks->left, 16u, &chunks->left) &&
               checked_add(chunks->left, (unsigned)digit, &chunks->left);
    }
    if (!chunks->has_digits)
        return false;
    chunks->at = c == '\r' ? CHUNK_SIZE_LF : CHUNK_EXTENSION;
    return c == '\r' || c == ';' || is_space(c);
}

static bool size_end(struct http_chunks *chunks, char c)
{
    chunks->at = chunks->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
    chunks->line = 0;
    return c == '\n';
}

static bool trailer_end(struct http_chunks *chunks, char c)
{
    chunks->at = chunks->line == 0 ? CHUNK_END : CHUNK_TRAILER;
    chunks->line = 0;
    return c == '\n';
}

/* One byte that is no content. Returns false where it may not stand. */
static bool framing_byte(struct http_chunks *chunks, char c)
{
    switch (chunks->at) {
    case CHUNK_SIZE:
        return size_byte(chunks, c);
    case CHUNK_EXTENSION:
        if (c == '\r')
            chunks->at = CHUNK_SIZE_LF;
        return c == '\r' || is_space(c) || (unsigned char)c > 0x20;
    case CHUNK_SIZE_LF:
        return size_end(chunks, c);
    case CHUNK_DATA_CR:
        chunks->at = CHUNK_DATA_LF;
        return c == '\r';
    case CHUNK_DATA_LF:
        chunks->at = CHUNK_SIZE;
        chunks->has_digits = false;
        return c == '\n';
    case CHUNK_TRAILER:
        if (c == '\r')
            chunks->at = CHUNK_TRAILER_LF;
        else
            chunks->line++;
        return c == '\r' || is_space(c) || (unsigned char)c > 0x20;
    case CHUNK_TRAILER_LF:
        return trailer_end(chunks, c);
    default:
        return false;
    }
}

static bool within_limits(struct http_chunks *chunks)
{
    switch (chunks->at) {
    case CHUNK_SIZE:
    case CHUNK_EXTENSION:
        return ++chunks->line <= HTTP_CHUNK_LINE_MAX;
    case CHUNK_TRAILER:
    case CHUNK_TRAILER_LF:
        return ++chunks->trailer <= HTTP_HEAD_MAX;
    default:
        return true;
    }
}

static void content(struct http_chunks *chunks, struct str in, size_t *used, struct buf *out)
{
    size_t n = in.len - *used;

    if (n > chunks->left)
        n = (size_t)chunks->left;
    buf_add(out, in.ptr + *used, n);
    chunks->left -= n;
    *used += n;
    if (chunks->left == 0)
        chunks->at = CHUNK_DATA_CR;
}

enum http_progress http_chunks_decode(struct http_chunks *chunks, struct str in, size_t max_bytes, struct buf *out,
                                      size_t *used, struct http_refusal *why)
{
    *used = 0;
    while (*used < in.len && chunks->at != CHUNK_END) {
        if (chunks->at == CHUNK_DATA) {
            content(chunks, in, used, out);
            continue;
        }
        if (!framing_byte(chunks, in.ptr[(*used)++]) || !within_limits(chunks)) {
            refuse(why, 400, "the chunked body is malformed");
            return HTTP_REFUSED;
        }
        if (chunks->at == CHUNK_DATA && (chunks->left > max_bytes || out->len > max_bytes - chunks->left)) {
            refuse(why, 413, "the body is too large");
            return HTTP_REFUSED;
        }
    }
    return chunks->at == CHUNK_END ? HTTP_DONE : HTTP_MORE;
}

/* ---- statuses ---- */

static const struct {
    int status;
    const char *title;
} titles[] = {
    {200, "OK"},
    {201, "Created"},
    {204, "No Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

const char *http_status_title(int status)
{
    for (size_t i = 0; i < ARRAY_SIZE(titles); i++)
        if (titles[i].status == status)
            return titles[i].title;
    return "Status";
}
