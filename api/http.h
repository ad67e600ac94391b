/* api/http.h - HTTP/1.1 requests from bytes: pure functions of what has arrived, no sockets.
 *
 * Source: RFC 9110 and RFC 9112. Stricter than they demand where leniency lets two readers of one stream disagree
 * (request smuggling): lines end with CRLF, no folded headers, one Content-Length at most and never beside
 * Transfer-Encoding, no transfer coding but chunked, no white space before a colon.
 *
 * Why not libevent's evhttp: in 2.1 its own refusals are HTML pages, a connection that has not sent a request is
 * invisible (so neither the number of connections nor the time to send a header can be limited), and it accepts what is
 * said above. */
#ifndef QUEUED_API_HTTP_H
#define QUEUED_API_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/base/str.h"

enum { HTTP_HEAD_MAX = 16384, HTTP_HEADERS_MAX = 64, HTTP_CHUNK_LINE_MAX = 256 };

struct http_header {
    struct str name, value; /* the value without surrounding white space */
};

/* All text points into the bytes that were parsed. */
struct http_head {
    struct str method; /* as sent: "GET" */
    struct str target; /* origin form: "/v1/jobs?limit=5" */
    int minor;         /* HTTP/1.minor, 0 or 1 */
    struct http_header headers[HTTP_HEADERS_MAX];
    size_t n_headers;
    uint64_t content_length; /* 0 when there is none */
    bool is_chunked;
    bool keep_alive;
    bool expects_continue;
};

/* Why bytes are no request that we serve: a status of 4xx or 5xx and words. */
struct http_refusal {
    int status;
    const char *detail; /* static */
};

/* The length of the head with its empty line, or 0 when it has not ended within `bytes`. `scanned` (start at 0)
 * remembers how far earlier calls on the same growing bytes have looked. */
size_t http_head_length(struct str bytes, size_t *scanned);

/* Parse a whole head. Returns 0, or -1 with the refusal. */
MUST_CHECK int http_head_parse(struct str bytes, struct http_head *out, struct http_refusal *why);

/* The value of a header by its name in any case; ptr is NULL when it is absent. The first of several. */
struct str http_header_find(const struct http_head *head, const char *name);

/* Compare with ASCII letters of either case equal. */
bool http_text_is(struct str text, const char *lower);
/* Whether a comma-separated list ("gzip, chunked") has the element; parameters behind a semicolon are ignored. */
bool http_list_has(struct str list, const char *lower);

/* A body in the chunked coding, decoded as it arrives. A zeroed struct is the start. */
struct http_chunks {
    int at;         /* what comes next, see the source */
    uint64_t left;  /* bytes of the present chunk */
    size_t line;    /* length of the present line so far */
    size_t trailer; /* bytes of trailers so far */
    bool has_digits;
};

enum http_progress { HTTP_MORE, HTTP_DONE, HTTP_REFUSED };

/* Decode `in`, append the content to `out` and say how much of `in` was used. HTTP_MORE wants more bytes; HTTP_REFUSED
 * fills `why` (413 when the content would exceed max_bytes). Trailers are skipped. */
enum http_progress http_chunks_decode(struct http_chunks *chunks, struct str in, size_t max_bytes, struct buf *out,
                                      size_t *used, struct http_refusal *why);

/* The standard phrase of a status ("Not Found"); "Status" for one that the server does not use. */
const char *http_status_title(int status);

#endif
