#include "allocator/cel/namedformat.h"

#include <stdarg.h>
#include <string.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "allocator/base/invariant.h"
#include "allocator/cel/timefmt.h"
#include "allocator/cel/url.h"
#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

#define MAX_PROBLEMS   4 /* that one text can have */
#define LABEL_MAX      63
#define SUBDOMAIN_MAX  253
#define LABEL_PATTERN  "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define NAME_PATTERN   "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
#define PATTERN_IS(re) "regex used for validation is '" re "')"

struct format_problems {
    struct arena *arena;
    struct str *reasons;
    size_t n;
};

static void add(struct format_problems *p, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void add(struct format_problems *p, const char *fmt, ...)
{
    va_list args;

    if (!p->reasons)
        p->reasons = arena_array(p->arena, struct str, MAX_PROBLEMS);
    INVARIANT(p->n < MAX_PROBLEMS);
    va_start(args, fmt);
    p->reasons[p->n++] = str_of(arena_vprintf(p->arena, fmt, args));
    va_end(args);
}

/* ---- characters ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_lower_alnum(char c)
{
    return is_lower(c) || is_digit(c);
}

static bool is_alnum(char c)
{
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

static bool is_lower_alnum_or_dash(char c)
{
    return is_lower_alnum(c) || c == '-';
}

static bool is_name_char(char c)
{
    return is_alnum(c) || c == '-' || c == '_' || c == '.';
}

/* Not empty; the first, the inner and the last character pass their tests. */
static bool is_word(struct str s, bool (*first)(char), bool (*inner)(char), bool (*last)(char))
{
    for (size_t i = 0; i < s.len; i++)
        if (!inner(s.ptr[i]))
            return false;
    return s.len > 0 && first(s.ptr[0]) && last(s.ptr[s.len - 1]);
}

static struct str slice(struct str s, size_t from, size_t to)
{
    return (struct str){s.ptr + from, to - from};
}

/* ---- DNS names ---- */

static bool is_label(struct str s)
{
    return is_word(s, is_lower_alnum, is_lower_alnum_or_dash, is_lower_alnum);
}

static bool is_subdomain(struct str s)
{
    size_t from = 0;

    for (size_t i = 0; i <= s.len; i++) {
        if (i < s.len && s.ptr[i] != '.')
            continue;
        if (!is_label(slice(s, from, i)))
            return false;
        from = i + 1;
    }
    return s.len > 0;
}

/* Kubernetes counts bytes in both cases, whatever it calls them. */
static void check_length(struct str s, size_t max, const char *part, const char *unit, struct format_problems *p)
{
    if (s.len > max)
        add(p, "%smust be no more than %zu %s", part, max, unit);
}

static void check_dns1123_label(struct str s, struct format_problems *p)
{
    check_length(s, LABEL_MAX, "", "characters", p);
    if (is_label(s))
        return;
    if (is_subdomain(s))
        add(p, "must not contain dots");
    else
        add(p,
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
            "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', " PATTERN_IS(LABEL_PATTERN));
}

static void check_subdomain_part(struct str s, const char *part, struct format_problems *p)
{
    check_length(s, SUBDOMAIN_MAX, part, *part ? "bytes" : "characters", p);
    if (!is_subdomain(s))
        add(p,
            "%sa lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', " PATTERN_IS(LABEL_PATTERN
                                                                                            "(\\." LABEL_PATTERN ")*"),
            part);
}

static void check_dns1123_subdomain(struct str s, struct format_problems *p)
{
    check_subdomain_part(s, "", p);
}

static void check_dns1035_label(struct str s, struct format_problems *p)
{
    check_length(s, LABEL_MAX, "", "characters", p);
    if (!is_word(s, is_lower, is_lower_alnum_or_dash, is_lower_alnum))
        add(p, "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
               "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', " PATTERN_IS(
                   "[a-z]([-a-z0-9]*[a-z0-9])?"));
}

/* A prefix may end in a dash: Kubernetes judges it as if its last two characters were an "a". */
static void check_prefix(struct str s, void (*check)(struct str, struct format_problems *), struct format_problems *p)
{
    char *masked;

    if (s.len < 2 || s.ptr[s.len - 1] != '-') {
        check(s, p);
        return;
    }
    masked = arena_strndup(p->arena, s.ptr, s.len - 1);
    masked[s.len - 2] = 'a';
    check((struct str){masked, s.len - 1}, p);
}

static void check_dns1123_label_prefix(struct str s, struct format_problems *p)
{
    check_prefix(s, check_dns1123_label, p);
}

static void check_dns1123_subdomain_prefix(struct str s, struct format_problems *p)
{
    check_prefix(s, check_dns1123_subdomain, p);
}

static void check_dns1035_label_prefix(struct str s, struct format_problems *p)
{
    check_prefix(s, check_dns1035_label, p);
}

/* ---- labels ---- */

#define NAME_RULE                                                                                                      \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " \
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', " PATTERN_IS(NAME_PATTERN)

static void check_name_part(struct str s, struct format_problems *p)
{
    if (s.len == 0)
        add(p, "name part must be non-empty");
    check_length(s, LABEL_MAX, "name part ", "bytes", p);
    if (!is_word(s, is_alnum, is_name_char, is_alnum))
        add(p, "name part " NAME_RULE);
}

/* [ subdomain "/" ] name */
static void check_qualified_name(struct str s, struct format_problems *p)
{
    const char *slash = s.len ? memchr(s.ptr, '/', s.len) : NULL;
    size_t n = slash ? (size_t)(slash - s.ptr) : 0;

    if (!slash) {
        check_name_part(s, p);
        return;
    }
    if (memchr(slash + 1, '/', s.len - n - 1)) {
        add(p, "a valid label key " NAME_RULE " with an optional DNS subdomain prefix and '/' (e.g. "
               "'example.com/MyName')");
        return;
    }
    if (n == 0)
        add(p, "prefix part must be non-empty");
    else
        check_subdomain_part(slice(s, 0, n), "prefix part ", p);
    check_name_part(slice(s, n + 1, s.len), p);
}

static void check_label_value(struct str s, struct format_problems *p)
{
    check_length(s, LABEL_MAX, "", "bytes", p);
    if (s.len > 0 && !is_word(s, is_alnum, is_name_char, is_alnum))
        add(p, "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
               "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', " PATTERN_IS(
                   "(" NAME_PATTERN ")?"));
}

/* ---- others ---- */

static void check_uri(struct str s, struct format_problems *p)
{
    struct error err = {0};

    if (url_check(s, p->arena, &err) < 0)
        add(p, "%s", err.text);
}

static bool is_hex(char c)
{
    char lower = (char)(c | 0x20);

    return is_digit(c) || (lower >= 'a' && lower <= 'f');
}

/* 8, 4, 4, 4 and 12 hex digits; a dash between two groups may be missing. */
static bool is_uuid(struct str s)
{
    static const int groups[] = {8, 4, 4, 4, 12};
    size_t at = 0;

    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        if (i > 0 && at < s.len && s.ptr[at] == '-')
            at++;
        for (int k = 0; k < groups[i]; k++, at++)
            if (at >= s.len || !is_hex(s.ptr[at]))
                return false;
    }
    return at == s.len;
}

static void check_uuid(struct str s, struct format_problems *p)
{
    if (!is_uuid(s))
        add(p, "does not match the UUID format");
}

/* Base64 with padding, at least one group. */
static bool is_base64(struct str s)
{
    size_t n = s.len;

    if (n == 0 || n % 4 != 0)
        return false;
    n -= s.ptr[n - 1] == '=';
    n -= n < s.len && s.ptr[n - 1] == '=';
    for (size_t i = 0; i < n; i++)
        if (!is_alnum(s.ptr[i]) && s.ptr[i] != '+' && s.ptr[i] != '/')
            return false;
    return true;
}

static void check_byte(struct str s, struct format_problems *p)
{
    if (!is_base64(s))
        add(p, "invalid base64");
}

static bool is_date(struct str s)
{
    struct timestamp t;
    char text[sizeof("2006-01-02T00:00:00Z")] = "2006-01-02T00:00:00Z";

    if (s.len != 10)
        return false;
    if (memcmp(s.ptr, "0000", 4) == 0) /* a leap year outside the range of timestamps */
        memcpy(text, "2000", 4);
    else
        memcpy(text, s.ptr, 4);
    memcpy(text + 4, s.ptr + 4, 6);
    return timestamp_parse(str_of(text), &t, NULL) == 0;
}

static void check_date(struct str s, struct format_problems *p)
{
    if (!is_date(s))
        add(p, "invalid date");
}

/* The length of "z" or "+01:30" at the end; 0 when neither is there. */
static size_t zone_length(struct str s)
{
    const char *z = s.ptr + s.len - 6;

    if (s.len > 0 && (s.ptr[s.len - 1] | 0x20) == 'z')
        return 1;
    if (s.len < 6 || (z[0] != '+' && z[0] != '-') || z[3] != ':')
        return 0;
    return is_digit(z[1]) && is_digit(z[2]) && is_digit(z[4]) && is_digit(z[5]) ? 6 : 0;
}

/* One character of any kind and digits, or nothing: Kubernetes' pattern has an unescaped dot there. */
static bool is_fraction(struct str s)
{
    size_t at = 0;

    if (s.len == 0)
        return true;
    if (s.ptr[0] == '\n')
        return false;
    utf8_next(s, &at);
    if (at == s.len)
        return false;
    for (; at < s.len; at++)
        if (!is_digit(s.ptr[at]))
            return false;
    return true;
}

/* date "T" hh ":" mm ":" ss fraction zone, letters in either case; what follows a second "T" does not count. */
static bool is_datetime(struct str s)
{
    struct str clock;
    size_t end = 11, zone;

    if (s.len < 11 || !is_date(slice(s, 0, 10)) || (s.ptr[10] | 0x20) != 't')
        return false;
    while (end < s.len && (s.ptr[end] | 0x20) != 't')
        end++;
    clock = slice(s, 11, end);
    if (clock.len < 9)
        return false;
    for (size_t i = 0; i < 8; i++)
        if (i % 3 == 2 ? clock.ptr[i] != ':' : !is_digit(clock.ptr[i]))
            return false;
    if (memcmp(clock.ptr, "23", 2) > 0 || clock.ptr[3] > '5' || clock.ptr[6] > '5')
        return false;
    clock = slice(clock, 8, clock.len);
    zone = zone_length(clock);
    return zone > 0 && is_fraction(slice(clock, 0, clock.len - zone));
}

static void check_datetime(struct str s, struct format_problems *p)
{
    if (!is_datetime(s))
        add(p, "invalid datetime");
}

static const struct named_format formats[] = {
    {"dns1123Label", "DNS1123Label", 30, check_dns1123_label},
    {"dns1123Subdomain", "DNS1123Subdomain", 60, check_dns1123_subdomain},
    {"dns1035Label", "DNS1035Label", 30, check_dns1035_label},
    {"qualifiedName", "QualifiedName", 60, check_qualified_name},
    {"dns1123LabelPrefix", "DNS1123LabelPrefix", 30, check_dns1123_label_prefix},
    {"dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", 60, check_dns1123_subdomain_prefix},
    {"dns1035LabelPrefix", "DNS1035LabelPrefix", 30, check_dns1035_label_prefix},
    {"labelValue", "LabelValue", 40, check_label_value},
    {"uri", "URI", 1103, check_uri},
    {"uuid", "uuid", 70, check_uuid},
    {"byte", "byte", 84, check_byte},
    {"date", "date", 71, check_date},
    {"datetime", "datetime", 71, check_datetime},
};

const struct named_format *named_format_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
        if (str_is(name, formats[i].name))
            return &formats[i];
    return NULL;
}

const struct named_format *named_format_all(size_t *out_n)
{
    *out_n = ARRAY_SIZE(formats);
    return formats;
}

size_t named_format_validate(const struct named_format *format, struct str text, struct arena *arena,
                             const struct str **out_reasons)
{
    struct format_problems problems = {.arena = arena};

    format->check(text, &problems);
    *out_reasons = problems.reasons;
    return problems.n;
}
