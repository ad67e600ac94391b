#include "allocator/cel/semver.h"

#include <inttypes.h>
#include <string.h>

#include "allocator/base/checked.h"
#include "allocator/base/error.h"
#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

static bool all(struct str s, bool (*test)(char))
{
    for (size_t i = 0; i < s.len; i++)
        if (!test(s.ptr[i]))
            return false;
    return true;
}

static struct str after(struct str s, size_t n)
{
    return (struct str){s.ptr + n, s.len - n};
}

/* The text before the first `c`, which is cut off together with it; all of it when there is none. */
static struct str cut_at(struct str *s, char c, bool *found)
{
    const char *p = s->len ? memchr(s->ptr, c, s->len) : NULL;
    struct str head = {s->ptr, p ? (size_t)(p - s->ptr) : s->len};

    *found = p != NULL;
    *s = p ? after(*s, head.len + 1) : (struct str){0};
    return head;
}

/* A part between dots. Normalising puts a zero before one of several characters that begins with no digit. */
struct part {
    struct str text;
    bool has_zero; /* before the text */
};

/* "what "text"" with the text quoted. */
static int refuse(struct error *err, const char *what, struct part part)
{
    BUF text = {0};
    BUF quoted = {0};

    buf_adds(&text, part.has_zero ? "0" : "");
    buf_add(&text, part.text.ptr, part.text.len);
    utf8_quote_to((struct str){buf_str(&text), text.len}, &quoted);
    return error_set(err, ERR_INVALID, "%s %s", what, buf_str(&quoted));
}

static int parse_uint(struct str digits, uint64_t *out, struct error *err)
{
    uint64_t value = 0;

    if (digits.len == 0)
        return error_set(err, ERR_INVALID, "strconv.ParseUint: parsing \"\": invalid syntax");
    for (size_t i = 0; i < digits.len; i++)
        if (!checked_mul(value, 10u, &value) || !checked_add(value, (unsigned)(digits.ptr[i] - '0'), &value))
            return error_set(err, ERR_INVALID, "strconv.ParseUint: parsing \"%.*s\": value out of range",
                             STR_FMT(digits));
    *out = value;
    return 0;
}

/* Normalising strips zeros from "007" and "00-rc"; what is left of a part that is all zeros is one zero. */
static void strip_zeros(struct part *part)
{
    struct str text = part->text;
    size_t n = 0;

    if (text.len < 2)
        return;
    while (n < text.len && text.ptr[n] == '0')
        n++;
    part->has_zero = n == text.len || !is_digit(text.ptr[n]);
    part->text = after(text, n);
}

struct number_words {
    const char *bad_character, *leading_zero;
};

static int parse_number(struct part part, const struct number_words *words, uint64_t *out, struct error *err)
{
    if (!all(part.text, is_digit))
        return refuse(err, words->bad_character, part);
    if (part.text.len > 1 && part.text.ptr[0] == '0')
        return refuse(err, words->leading_zero, part);
    if (part.has_zero) { /* and nothing behind it, else it would not be there */
        *out = 0;
        return 0;
    }
    return parse_uint(part.text, out, err);
}

static int check_pre(struct str pre, struct error *err)
{
    static const struct number_words words = {"", "Numeric PreRelease version must not contain leading zeroes"};
    bool more = true;
    uint64_t number;

    while (more) {
        struct part part = {.text = cut_at(&pre, '.', &more)};

        if (part.text.len == 0)
            return error_set(err, ERR_INVALID, "Prerelease is empty");
        if (!all(part.text, is_word))
            return refuse(err, "Invalid character(s) found in prerelease", part);
        if (all(part.text, is_digit) && parse_number(part, &words, &number, err) < 0)
            return -1;
    }
    return 0;
}

static int check_build(struct str build, struct error *err)
{
    bool more = true;

    while (more) {
        struct part part = {.text = cut_at(&build, '.', &more)};

        if (part.text.len == 0)
            return error_set(err, ERR_INVALID, "Build meta data is empty");
        if (!all(part.text, is_word))
            return refuse(err, "Invalid character(s) found in build meta data", part);
    }
    return 0;
}

/* Cuts at the first two dots; returns the number of parts. */
static size_t cut_parts(struct str text, struct part parts[3])
{
    bool more = true;
    size_t n = 0;

    while (more && n < 2)
        parts[n++] = (struct part){.text = cut_at(&text, '.', &more)};
    if (more)
        parts[n++] = (struct part){.text = text};
    return n;
}

static int normalize_parts(struct part parts[3], size_t *n, struct error *err)
{
    struct str last = parts[*n - 1].text;

    if (*n < 3 && last.len > 0 && (memchr(last.ptr, '+', last.len) || memchr(last.ptr, '-', last.len)))
        return error_set(err, ERR_INVALID, "short version cannot contain PreRelease/Build meta data");
    for (size_t i = 0; i < *n; i++)
        strip_zeros(&parts[i]);
    while (*n < 3)
        parts[(*n)++] = (struct part){.text = STR("0")};
    return 0;
}

int semver_parse(struct str text, bool normalize, struct semver *out, struct error *err)
{
    static const struct number_words words[] = {
        {"Invalid character(s) found in major number", "Major number must not contain leading zeroes"},
        {"Invalid character(s) found in minor number", "Minor number must not contain leading zeroes"},
        {"Invalid character(s) found in patch number", "Patch number must not contain leading zeroes"},
    };
    struct part parts[3], patch;
    struct semver v = {0};
    size_t n;
    bool has_build, has_pre;

    if (normalize && str_starts(text, "v"))
        text = after(text, 1);
    if (text.len == 0 && !normalize)
        return error_set(err, ERR_INVALID, "Version string empty");
    n = cut_parts(text, parts);
    if (normalize && normalize_parts(parts, &n, err) < 0)
        return -1;
    if (n != 3)
        return error_set(err, ERR_INVALID, "No Major.Minor.Patch elements found");
    patch = parts[2];
    v.build = patch.text;
    v.pre = cut_at(&v.build, '+', &has_build);
    patch.text = cut_at(&v.pre, '-', &has_pre);
    if (parse_number(parts[0], &words[0], &v.major, err) < 0 || parse_number(parts[1], &words[1], &v.minor, err) < 0 ||
        parse_number(patch, &words[2], &v.patch, err) < 0)
        return -1;
    if ((has_pre && check_pre(v.pre, err) < 0) || (has_build && check_build(v.build, err) < 0))
        return -1;
    *out = v;
    return 0;
}

static int compare_uint(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Numbers have no leading zeros, so the longer one is larger. */
static int compare_identifiers(struct str a, struct str b)
{
    bool a_is_number = all(a, is_digit), b_is_number = all(b, is_digit);
    int order;

    if (a_is_number != b_is_number)
        return a_is_number ? -1 : 1;
    if (a_is_number && a.len != b.len)
        return a.len < b.len ? -1 : 1;
    order = str_cmp(a, b);
    return (order > 0) - (order < 0);
}

static int compare_pre(struct str a, struct str b)
{
    bool more_a = true, more_b = true;

    while (more_a && more_b) {
        struct str part_a = cut_at(&a, '.', &more_a), part_b = cut_at(&b, '.', &more_b);
        int order = compare_identifiers(part_a, part_b);

        if (order != 0)
            return order;
    }
    return (int)more_a - (int)more_b;
}

int semver_cmp(const struct semver *a, const struct semver *b)
{
    int order = compare_uint(a->major, b->major);

    if (order == 0)
        order = compare_uint(a->minor, b->minor);
    if (order == 0)
        order = compare_uint(a->patch, b->patch);
    if (order != 0)
        return order;
    if (a->pre.len == 0 || b->pre.len == 0)
        return (b->pre.len > 0) - (a->pre.len > 0);
    return compare_pre(a->pre, b->pre);
}

void semver_format_to(const struct semver *version, struct buf *out)
{
    buf_addf(out, "%" PRIu64 ".%" PRIu64 ".%" PRIu64, version->major, version->minor, version->patch);
    if (version->pre.len > 0) {
        buf_addc(out, '-');
        buf_add(out, version->pre.ptr, version->pre.len);
    }
    if (version->build.len > 0) {
        buf_addc(out, '+');
        buf_add(out, version->build.ptr, version->build.len);
    }
}
