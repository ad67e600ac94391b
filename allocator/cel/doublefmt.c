/* How it works.
 *
 * libc converts both ways with exact rounding, so all that is ours is the spelling. Whatever goes through libc is
 * written without a decimal point (digits and an exponent), because the locale of the process decides how a point
 * looks. */
#include "allocator/cel/doublefmt.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/error.h"
#include "allocator/base/invariant.h"
#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

#define MAX_DIGITS   17
#define MAX_EXPONENT 10000 /* where Go stops reading the digits of an exponent */

/* ---- reading ---- */

static char lower(char c)
{
    return (char)(c | 0x20);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex_letter(char c)
{
    return lower(c) >= 'a' && lower(c) <= 'f';
}

static char at(struct str s, size_t i)
{
    return i < s.len ? s.ptr[i] : '\0';
}

/* The word at the end of the text, in any case. */
static bool rest_is(struct str s, size_t from, const char *word)
{
    size_t n = strlen(word);

    if (s.len - from != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (lower(s.ptr[from + i]) != word[i])
            return false;
    return true;
}

static bool parse_special(struct str s, double *out)
{
    size_t sign = at(s, 0) == '+' || at(s, 0) == '-';

    if (rest_is(s, 0, "nan")) {
        *out = (double)NAN;
        return true;
    }
    if (!rest_is(s, sign, "inf") && !rest_is(s, sign, "infinity"))
        return false;
    *out = at(s, 0) == '-' ? -(double)INFINITY : (double)INFINITY;
    return true;
}

/* Go's rule: an underscore stands between two digits, or between the prefix 0x and a digit. */
static bool underscores_are_fine(struct str s)
{
    size_t i = at(s, 0) == '+' || at(s, 0) == '-';
    bool hex = false, after_digit = false, after_underscore = false;

    if (at(s, i) == '0' && strchr("box", lower(at(s, i + 1))) && at(s, i + 1) != '\0') {
        hex = lower(at(s, i + 1)) == 'x';
        after_digit = true;
        i += 2;
    }
    for (; i < s.len; i++) {
        bool digit = is_digit(s.ptr[i]) || (hex && is_hex_letter(s.ptr[i])), underscore = s.ptr[i] == '_';

        if ((underscore && !after_digit) || (after_underscore && !digit))
            return false;
        after_digit = digit;
        after_underscore = underscore;
    }
    return !after_underscore;
}

/* A number on its way: sign, digits without point in `text`, and the exponent that the point and the written one make.
 */
struct reading {
    struct buf *text;
    bool hex;
    long exponent;
    bool has_underscores;
};

/* digits [. digits], at least one of them; the number of bytes read, 0 when there is no digit. */
static size_t read_mantissa(struct str s, size_t from, struct reading *r)
{
    size_t i = from, n_digits = 0;
    bool point = false;

    for (; i < s.len; i++) {
        char c = s.ptr[i];

        if (c == '_') {
            r->has_underscores = true;
        } else if (c == '.' && !point) {
            point = true;
        } else if (is_digit(c) || (r->hex && is_hex_letter(c))) {
            buf_addc(r->text, c);
            n_digits++;
            r->exponent -= point ? (r->hex ? 4 : 1) : 0;
        } else {
            break;
        }
    }
    return n_digits ? i - from : 0;
}

/* [+-] digits behind e or p; false when there is no digit. */
static bool read_exponent(struct str s, size_t *i, struct reading *r)
{
    bool negative = at(s, *i) == '-';
    long e = 0;

    if (at(s, *i) == '+' || at(s, *i) == '-')
        ++*i;
    if (!is_digit(at(s, *i)))
        return false;
    for (; is_digit(at(s, *i)) || at(s, *i) == '_'; ++*i) {
        if (s.ptr[*i] == '_')
            r->has_underscores = true;
        else if (e < MAX_EXPONENT)
            e = e * 10 + (s.ptr[*i] - '0');
    }
    r->exponent += negative ? -e : e;
    return true;
}

/* Checks the form and leaves the number in a form that strtod reads alike in every locale. */
static bool read_number(struct str s, struct buf *text)
{
    struct reading r = {.text = text};
    size_t i = 0, n;

    if (at(s, 0) == '+' || at(s, 0) == '-')
        buf_addc(text, s.ptr[i++]);
    if (i + 2 < s.len && s.ptr[i] == '0' && lower(s.ptr[i + 1]) == 'x') {
        r.hex = true;
        i += 2;
        buf_adds(text, "0x");
    }
    n = read_mantissa(s, i, &r);
    if (n == 0)
        return false;
    i += n;
    if (i < s.len && lower(s.ptr[i]) == (r.hex ? 'p' : 'e')) {
        i++;
        if (!read_exponent(s, &i, &r))
            return false;
    } else if (r.hex) {
        return false;
    }
    buf_addf(text, "%c%ld", r.hex ? 'p' : 'e', r.exponent);
    return i == s.len && (!r.has_underscores || underscores_are_fine(s));
}

static int refuse(struct error *err, struct str text, const char *why)
{
    BUF quoted = {0};

    utf8_quote_to(text, &quoted);
    return error_set(err, ERR_INVALID, "strconv.ParseFloat: parsing %s: %s", buf_str(&quoted), why);
}

int double_parse(struct str text, double *out, struct error *err)
{
    BUF number = {0};
    double value;

    if (parse_special(text, out))
        return 0;
    if (!read_number(text, &number))
        return refuse(err, text, "invalid syntax");
    value = strtod(buf_str(&number), NULL);
    if (isinf(value))
        return refuse(err, text, "value out of range");
    *out = value;
    return 0;
}

/* ---- writing ---- */

/* Whether digits * 10^exponent reads as the value. */
static bool reads_back(const char *digits, int n, int exponent, double value)
{
    char text[64];

    snprintf(text, sizeof(text), "%.*se%d", n, digits, exponent);
    return strtod(text, NULL) == value;
}

/* The next larger number of as many digits; false when that needs one digit more. */
static bool increment(char *digits, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        if (digits[i] != '9') {
            digits[i]++;
            return true;
        }
        digits[i] = '0';
    }
    return false;
}

/* The nearest number of n digits, and its decimal exponent. */
static int nearest(double value, int n, char digits[MAX_DIGITS + 1])
{
    char text[64];
    int kept = 0, exponent;
    const char *p = text;

    snprintf(text, sizeof(text), "%.*e", n - 1, value);
    for (; *p != 'e'; p++)
        if (is_digit(*p))
            digits[kept++] = *p;
    digits[kept] = '\0';
    exponent = (int)strtol(p + 1, NULL, 10);
    return exponent;
}

/* The fewest digits that read back: for each length the nearest number of that length is tried. At a power of two the
 * doubles below are closer than those above, so that the nearest may fail where the next larger one reads back. */
int double_digits(double value, char digits[18], int *point)
{
    char larger[MAX_DIGITS + 1];
    int exponent;

    value = fabs(value);
    INVARIANT(isfinite(value) && value != 0);
    for (int n = 1; n <= MAX_DIGITS; n++) {
        exponent = nearest(value, n, digits);
        *point = exponent + 1;
        memcpy(larger, digits, sizeof(larger));
        if (reads_back(digits, n, exponent - n + 1, value))
            return n;
        if (increment(larger, n) && reads_back(larger, n, exponent - n + 1, value)) {
            memcpy(digits, larger, sizeof(larger));
            return n;
        }
    }
    return MAX_DIGITS;
}

/* Infinities, NaN and zero; false for all other numbers, whose sign is written. */
static bool add_special(double value, struct buf *out)
{
    if (isnan(value))
        buf_adds(out, "NaN");
    else if (isinf(value))
        buf_adds(out, value < 0 ? "-Inf" : "+Inf");
    else if (signbit(value))
        buf_addc(out, '-');
    if (value == 0)
        buf_addc(out, '0');
    return value == 0 || !isfinite(value);
}

static void add_zeros(struct buf *out, int n)
{
    for (; n > 0; n--)
        buf_addc(out, '0');
}

/* 0.digits * 10^point without an exponent. */
static void add_plain(const char *digits, int n, int point, struct buf *out)
{
    int whole = point < 0 ? 0 : point > n ? n : point;

    if (point <= 0)
        buf_addc(out, '0');
    buf_add(out, digits, (size_t)whole);
    add_zeros(out, point - n);
    if (whole == n)
        return;
    buf_addc(out, '.');
    add_zeros(out, -point);
    buf_add(out, digits + whole, (size_t)(n - whole));
}

void double_format_plain_to(double value, struct buf *out)
{
    char digits[MAX_DIGITS + 1];
    int point, n;

    if (add_special(value, out))
        return;
    n = double_digits(value, digits, &point);
    add_plain(digits, n, point, out);
}

void double_format_to(double value, struct buf *out)
{
    char digits[MAX_DIGITS + 1];
    int point, n, exponent;

    if (add_special(value, out))
        return;
    n = double_digits(value, digits, &point);
    exponent = point - 1;
    if (exponent >= -4 && exponent < 6) {
        add_plain(digits, n, point, out);
        return;
    }
    add_plain(digits, n, 1, out);
    buf_addf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}

void double_format_fixed_to(double value, int precision, struct buf *out)
{
    char text[512 + DOUBLE_MAX_PRECISION];
    int exact = precision > DOUBLE_MAX_PRECISION ? DOUBLE_MAX_PRECISION : precision, n, whole = 0;

    INVARIANT(precision >= 0);
    if (!isfinite(value)) {
        add_special(value, out);
        return;
    }
    n = snprintf(text, sizeof(text), "%.*f", exact, value);
    while (text[whole] == '-' || is_digit(text[whole]))
        whole++;
    buf_add(out, text, (size_t)whole);
    if (precision == 0)
        return;
    buf_addc(out, '.');
    buf_add(out, text + n - exact, (size_t)exact);
    add_zeros(out, precision - exact);
}

void double_format_exponent(double value, int precision, char *out, size_t size)
{
    char text[64];
    const char *p = text;
    size_t n = 0;

    INVARIANT(isfinite(value) && precision >= 0 && precision <= 40 && size >= sizeof(text));
    snprintf(text, sizeof(text), "%.*e", precision, fabs(value));
    if (signbit(value))
        out[n++] = '-';
    out[n++] = *p++;
    if (precision > 0)
        out[n++] = '.';
    for (; *p != 'e'; p++)
        if (is_digit(*p))
            out[n++] = *p;
    snprintf(out + n, size - n, "%s", p);
}
