#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "api/http.h"

#include "allocator/base/banned.h"

#define GET  "GET / HTTP/1.1\r\n"
#define HOST "Host: a\r\n"
#define END  "\r\n"

static const struct head_case {
    const char *name;
    const char *bytes;
    int want;              /* status of the refusal, 0: accepted */
    const char *want_what; /* method target minor length flags, of what is accepted */
} head_cases[] = {
    {"a request", GET HOST END, 0, "GET / 1 0 k"},
    {"a query", "GET /a?b=c HTTP/1.1\r\n" HOST END, 0, "GET /a?b=c 1 0 k"},
    {"any method", "BREW /pot HTTP/1.1\r\n" HOST END, 0, "BREW /pot 1 0 k"},
    {"1.0 closes", "GET / HTTP/1.0\r\n" END, 0, "GET / 0 0 -"},
    {"1.0 may keep alive", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n" END, 0, "GET / 0 0 k"},
    {"1.1 may close", GET HOST "Connection: foo, close\r\n" END, 0, "GET / 1 0 -"},
    {"a later 1.x is 1.1", "GET / HTTP/1.7\r\n" HOST END, 0, "GET / 1 0 k"},
    {"a length", GET HOST "Content-Length: 12\r\n" END, 0, "GET / 1 12 k"},
    {"chunked", GET HOST "Transfer-Encoding: Chunked\r\n" END, 0, "GET / 1 0 kc"},
    {"expectation", GET HOST "Expect: 100-continue\r\n" END, 0, "GET / 1 0 ke"},
    {"the form for proxies", "GET http://h:1/x HTTP/1.1\r\n" HOST END, 0, "GET /x 1 0 k"},
    {"the form for proxies without a path", "GET http://h HTTP/1.1\r\n" HOST END, 0, "GET / 1 0 k"},
    {"an empty header", GET HOST "X:\r\n" END, 0, "GET / 1 0 k"},
    {"bytes beyond ASCII in a header", GET HOST "X: \xc3\xa4\r\n" END, 0, "GET / 1 0 k"},

    {"bare line ends", "GET / HTTP/1.1\nHost: a\n\n", 400, NULL},
    {"no version", "GET /\r\n" END, 400, NULL},
    {"a wrong version", "GET / HTTP/x.1\r\n" HOST END, 400, NULL},
    {"HTTP/2", "PRI * HTTP/2.0\r\n" END, 505, NULL},
    {"no path", "GET x HTTP/1.1\r\n" HOST END, 400, NULL},
    {"an asterisk", "OPTIONS * HTTP/1.1\r\n" HOST END, 400, NULL},
    {"two spaces", "GET  / HTTP/1.1\r\n" HOST END, 400, NULL},
    {"a space in the path", "GET /a b HTTP/1.1\r\n" HOST END, 400, NULL},
    {"a byte beyond ASCII in the path", "GET /\xc3\xa4 HTTP/1.1\r\n" HOST END, 400, NULL},
    {"a fragment", "GET /#a HTTP/1.1\r\n" HOST END, 400, NULL},
    {"a method of other characters", "G(T / HTTP/1.1\r\n" HOST END, 400, NULL},
    {"TLS", "\x16\x03\x01\x02\r\n\r\n", 400, NULL},
    {"no host", GET END, 400, NULL},
    {"two hosts", GET HOST HOST END, 400, NULL},
    {"a space before the colon", GET HOST "X : a\r\n" END, 400, NULL},
    {"a folded header", GET HOST "X: a\r\n b\r\n" END, 400, NULL},
    {"no colon", GET HOST "X\r\n" END, 400, NULL},
    {"no name", GET HOST ": a\r\n" END, 400, NULL},
    {"a control character", GET HOST "X: a\x01\r\n" END, 400, NULL},
    {"a carriage return inside", GET HOST "X: a\rb\r\n" END, 400, NULL},
    {"two lengths", GET HOST "Content-Length: 1\r\nContent-Length: 1\r\n" END, 400, NULL},
    {"a list of lengths", GET HOST "Content-Length: 1, 1\r\n" END, 400, NULL},
    {"a length and chunked", GET HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n" END, 400, NULL},
    {"a negative length", GET HOST "Content-Length: -1\r\n" END, 400, NULL},
    {"a signed length", GET HOST "Content-Length: +1\r\n" END, 400, NULL},
    {"an empty length", GET HOST "Content-Length:\r\n" END, 400, NULL},
    {"a length that fits nowhere", GET HOST "Content-Length: 99999999999999999999\r\n" END, 413, NULL},
    {"another coding", GET HOST "Transfer-Encoding: gzip, chunked\r\n" END, 501, NULL},
    {"two codings", GET HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END, 400, NULL},
    {"chunked in 1.0", "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" END, 400, NULL},
    {"another expectation", GET HOST "Expect: tea\r\n" END, 417, NULL},
};

static void test_http__head(void **state)
{
    const struct head_case *c = *state;
    struct http_head head;
    struct http_refusal why = {0};
    char what[128];

    if (http_head_parse(str_of(c->bytes), &head, &why) < 0) {
        assert_int_equal(why.status, c->want);
        assert_non_null(why.detail);
        return;
    }
    assert_int_equal(c->want, 0);
    snprintf(what, sizeof(what), "%.*s %.*s %d %d %s%s%s", STR_FMT(head.method), STR_FMT(head.target), head.minor,
             (int)head.content_length, head.keep_alive ? "k" : "-", head.is_chunked ? "c" : "",
             head.expects_continue ? "e" : "");
    assert_string_equal(what, c->want_what);
}

static void test_http__headers_are_limited(void **state)
{
    struct http_head head;
    struct http_refusal why = {0};
    BUF bytes = {0};

    (void)state;
    buf_adds(&bytes, GET HOST);
    for (int i = 1; i < HTTP_HEADERS_MAX; i++)
        buf_addf(&bytes, "X-%d: a\r\n", i);
    buf_adds(&bytes, "X: a\r\n" END);
    assert_int_equal(http_head_parse((struct str){bytes.data, bytes.len}, &head, &why), -1);
    assert_int_equal(why.status, 431);
}

static void test_http__the_end_of_a_head_is_found_in_any_pieces(void **state)
{
    static const char bytes[] = GET HOST END "body";
    const size_t want = sizeof(bytes) - 1 - 4;

    (void)state;
    for (size_t piece = 1; piece < sizeof(bytes); piece++) {
        size_t scanned = 0, len = 0;

        for (size_t n = piece; !len; n += piece) {
            size_t seen = n < sizeof(bytes) - 1 ? n : sizeof(bytes) - 1;

            len = http_head_length((struct str){bytes, seen}, &scanned);
            assert_true(len || seen < want);
        }
        assert_int_equal(len, want);
    }
}

static void test_http__a_header_is_found_in_any_case(void **state)
{
    struct http_head head;
    struct http_refusal why = {0};

    (void)state;
    assert_int_equal(http_head_parse(str_of(GET HOST "X-Thing:  a b \t\r\nx-thing: second\r\n" END), &head, &why), 0);
    assert_true(str_is(http_header_find(&head, "x-thing"), "a b"));
    assert_null(http_header_find(&head, "x-other").ptr);
}

static const struct list_case {
    const char *name;
    const char *list, *element;
    bool want;
} list_cases[] = {
    {"alone", "close", "close", true},
    {"in any case", "Close", "close", true},
    {"last", "a, b ,close", "close", true},
    {"with parameters", "text/yaml; charset=utf-8", "text/yaml", true},
    {"a part is not it", "closed", "close", false},
    {"empty", "", "close", false},
    {"empty elements", ",, ,", "close", false},
};

static void test_http__list(void **state)
{
    const struct list_case *c = *state;

    assert_int_equal(http_list_has(str_of(c->list), c->element), c->want);
}

static const struct chunk_case {
    const char *name;
    const char *bytes;
    enum http_progress want;
    int want_status;
    const char *want_content;
} chunk_cases[] = {
    {"one chunk", "3\r\nabc\r\n0\r\n\r\n", HTTP_DONE, 0, "abc"},
    {"several", "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", HTTP_DONE, 0, "abc0123456789"},
    {"none", "0\r\n\r\n", HTTP_DONE, 0, ""},
    {"extensions and trailers are skipped", "1;a=\"b\"\r\nx\r\n0;c\r\nX: y\r\nZ: 1\r\n\r\n", HTTP_DONE, 0, "x"},
    {"not yet", "3\r\nab", HTTP_MORE, 0, "ab"},
    {"no size", "\r\nabc\r\n", HTTP_REFUSED, 400, ""},
    {"no hexadecimal size", "g\r\n", HTTP_REFUSED, 400, ""},
    {"a negative size", "-1\r\n", HTTP_REFUSED, 400, ""},
    {"a size that fits nowhere", "11111111111111111\r\n", HTTP_REFUSED, 400, ""},
    {"too large", "41\r\n", HTTP_REFUSED, 413, ""},
    {"too large together", "3f\r\n000000000000000000000000000000000000000000000000000000000000000\r\n2\r\n",
     HTTP_REFUSED, 413, "000000000000000000000000000000000000000000000000000000000000000"},
    {"the largest size", "ffffffffffffffff\r\n", HTTP_REFUSED, 413, ""},
    {"content that goes on", "1\r\nab", HTTP_REFUSED, 400, "a"},
    {"bare line ends", "1\na\n0\n\n", HTTP_REFUSED, 400, ""},
};

static enum http_progress decode(const char *bytes, size_t piece, struct buf *out, int *status)
{
    struct http_chunks chunks = {0};
    struct http_refusal why = {0};
    enum http_progress progress = HTTP_MORE;
    size_t len = strlen(bytes), used;

    for (size_t at = 0; at < len && progress == HTTP_MORE; at += used) {
        size_t n = len - at < piece ? len - at : piece;

        progress = http_chunks_decode(&chunks, (struct str){bytes + at, n}, 64, out, &used, &why);
        assert_true(used > 0 && used <= n);
    }
    *status = why.status;
    return progress;
}

static void test_http__chunks(void **state)
{
    const struct chunk_case *c = *state;

    for (size_t piece = 1; piece < 100; piece += piece < 4 ? 1 : 95) {
        int status;
        BUF out = {0};

        assert_int_equal(decode(c->bytes, piece, &out, &status), c->want);
        assert_int_equal(status, c->want_status);
        assert_string_equal(buf_str(&out), c->want_content);
    }
}

static void test_http__chunk_lines_and_trailers_are_limited(void **state)
{
    int status;
    BUF line = {0};
    BUF trailer = {0};
    BUF out = {0};

    (void)state;
    for (int i = 0; i < HTTP_CHUNK_LINE_MAX + 2; i++)
        buf_addc(&line, '0');
    assert_int_equal(decode(buf_str(&line), 1000, &out, &status), HTTP_REFUSED);
    buf_adds(&trailer, "0\r\n");
    for (int i = 0; i < HTTP_HEAD_MAX; i++)
        buf_adds(&trailer, "X\r\n");
    assert_int_equal(decode(buf_str(&trailer), 1000, &out, &status), HTTP_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http__headers_are_limited),
        cmocka_unit_test(test_http__the_end_of_a_head_is_found_in_any_pieces),
        cmocka_unit_test(test_http__a_header_is_found_in_any_case),
        cmocka_unit_test(test_http__chunk_lines_and_trailers_are_limited),
    };
    int failed = RUN_TABLE(test_http__head, head_cases);

    failed += RUN_TABLE(test_http__list, list_cases);
    failed += RUN_TABLE(test_http__chunks, chunk_cases);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
