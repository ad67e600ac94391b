#include "test/support/cmocka.h"

#include <string.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "allocator/cel/url.h"

static const struct url_case {
    const char *name; /* the text */
    const char *scheme, *host, *hostname, *port, *path, *normal;
} url_cases[] = {
    {"https://user@example.com:8080/a/b?x=1#f", "https", "example.com:8080", "example.com", "8080", "/a/b",
     "https://user@example.com:8080/a/b?x=1#f"},
    {"HTTP://EXAMPLE.com/%7Ea", "http", "EXAMPLE.com", "EXAMPLE.com", "", "/%7Ea", "http://EXAMPLE.com/%7Ea"},
    {"http://h/a b", "http", "h", "h", "", "/a%20b", "http://h/a%20b"},
    {"/abs/path?q=v", "", "", "", "", "/abs/path", "/abs/path?q=v"},
    {"file:///etc/hosts", "file", "", "", "", "/etc/hosts", "file:///etc/hosts"},
    {"mailto:a@b", "mailto", "", "", "", "", "mailto:a@b"},
    {"http://[2001:db8::1]:80/p", "http", "[2001:db8::1]:80", "2001:db8::1", "80", "/p", "http://[2001:db8::1]:80/p"},
    {"http://[fe80::1%25en0]/", "http", "[fe80::1%en0]", "fe80::1%en0", "", "/", "http://[fe80::1%25en0]/"},
    {"https://example.com:/p", "https", "example.com:", "example.com", "", "/p", "https://example.com:/p"},
    {"//h/p", "", "h", "h", "", "/p", "//h/p"},
    {"http://h?", "http", "h", "h", "", "", "http://h?"},
    {"*", "", "", "", "", "*", "*"},
    {"postgres://a:1,b:2/db", "postgres", "a:1,b:2", "a:1,b", "2", "/db", "postgres://a:1,b:2/db"},
};

static void test_url__parts(void **state)
{
    const struct url_case *c = *state;
    struct arena arena = {0};
    struct error err = {0};
    struct url url;

    if (url_parse(str_of(c->name), &arena, &url, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(str_is(url.scheme, c->scheme));
    assert_true(str_is(url.host, c->host));
    assert_true(str_is(url_hostname(&url), c->hostname));
    assert_true(str_is(url_port(&url), c->port));
    assert_true(str_is(url.escaped_path, c->path));
    assert_true(str_is(url.normal, c->normal));
    arena_release(&arena);
}

static const struct refusal_case {
    const char *name; /* the text */
    const char *why;
    bool check_takes_it; /* what isURL says */
} refusal_cases[] = {
    {"", "parse \"\": empty url", false},
    {"relative/p", "invalid URI for request", false},
    {"://x", "missing protocol scheme", false},
    {"http://a b/", "invalid character \" \" in host name", false},
    {"http://h/%zz", "invalid URL escape \"%zz\"", false},
    {"http://h:port/", "invalid port \":port\" after host", false},
    {"http://a:1:2/", "invalid port \":1:2\" after host", false},
    {"http://[::1/", "missing ']' in host", false},
    {"http://[1.2.3.4]/", "invalid IP-literal", false},
    {"http://a%20b/", "invalid URL escape \"%20\"", false},
    {"http://u s@h/", "net/url: invalid userinfo", false},
    {"http://h/\x7F", "invalid control character in URL", false},
    {"http://h/?q#%zz", "invalid URL escape \"%zz\"", true},
    {"//a b/", "invalid character \" \" in host name", true},
};

static void test_url__refusal(void **state)
{
    const struct refusal_case *c = *state;
    struct arena arena = {0};
    struct error err = {0};
    struct url url;

    assert_int_equal(url_parse(str_of(c->name), &arena, &url, &err), -1);
    assert_non_null(strstr(err.text, c->why));
    assert_int_equal(url_check(str_of(c->name), &arena, &err), c->check_takes_it ? 0 : -1);
    arena_release(&arena);
}

static void add_query(struct str text, struct buf *out)
{
    struct arena arena = {0};
    struct url url;
    struct url_query query;

    assert_int_equal(url_parse(text, &arena, &url, NULL), 0);
    query = url_query(&url, &arena);
    for (size_t i = 0; i < query.n_parameters; i++) {
        buf_addf(out, "%.*s:", STR_FMT(query.parameters[i].key));
        for (size_t k = 0; k < query.parameters[i].n_values; k++)
            buf_addf(out, "[%.*s]", STR_FMT(query.parameters[i].values[k]));
        buf_addc(out, ' ');
    }
    arena_release(&arena);
}

static const struct query_case {
    const char *name; /* the URL */
    const char *want;
} query_cases[] = {
    {"/p", ""},
    {"/p?", ""},
    {"/p?b=1&a=2&b=3", "b:[1][3] a:[2] "},
    {"/p?k", "k:[] "},
    {"/p?=v", ":[v] "},
    {"/p?a+b=c%20d+e", "a b:[c d e] "},
    {"/p?a=1=2", "a:[1=2] "},
    {"/p?a;b=1&c=2", "c:[2] "},
    {"/p?a=%zz&c=2", "c:[2] "},
    {"/p?&&a=1&", "a:[1] "},
};

static void test_url__query(void **state)
{
    const struct query_case *c = *state;
    BUF text = {0};

    add_query(str_of(c->name), &text);
    assert_string_equal(buf_str(&text), c->want);
}

int main(void)
{
    return RUN_TABLE(test_url__parts, url_cases) + RUN_TABLE(test_url__refusal, refusal_cases) +
           RUN_TABLE(test_url__query, query_cases);
}
