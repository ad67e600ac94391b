/* How it works.
 *
 * An amount is value * 10^scale with a 64-bit value, or, when no such pair is exact, a row of decimal digits (struct
 * quantity_big). Hardware amounts never need the row, so everything that allocates is about absurd inputs and is
 * written for clarity: one digit per byte, least significant first, school arithmetic. The length of texts and
 * exponents is bounded, and so are the rows.
 *
 * Kubernetes has two forms too, int64 and arbitrary precision, but chooses them by the spelling, and its isInteger
 * shows the choice. We remember that choice in `is_dec` and `dec_scale` beside the amount instead of computing with it.
 */
#include "allocator/base/quantity.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/arena.h"
#include "allocator/base/checked.h"
#include "allocator/base/error.h"
#include "allocator/base/invariant.h"

#include "allocator/base/banned.h"

#define NANO              (-9)
#define MAX_SMALL_DIGITS  18 /* that Kubernetes takes into its small form */
#define MAX_INT64_DIGITS  19
#define MAX_BINARY_FACTOR 6 /* Ei is 1024^6 */

__extension__ typedef __int128 wide;

struct quantity_big {
    bool negative;
    size_t n;
    const uint8_t *digits; /* least significant first; neither end is 0 */
};

#define E3(n) (n), (n)*10, (n)*100
#define E9(n) E3(n), E3((n)*1000), E3((n)*1000000)
#define E_TOP INT64_C(1000000000000000000)
static const int64_t powers_of_ten[] = {E9(INT64_C(1)), E9(INT64_C(1000000000)), E_TOP};

/* ---- rows of digits ---- */

/* A number on its way: digits least significant first, times 10^scale. */
struct row {
    bool negative;
    size_t n;
    uint8_t *digits;
    int32_t scale;
};

/* Read-only digits of any amount; a small one's are put into `store`. */
struct digits_view {
    bool negative;
    size_t n;
    const uint8_t *digits;
    int32_t scale;
    uint8_t store[MAX_INT64_DIGITS + 1];
};

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static size_t digits_of(uint64_t value, uint8_t *out)
{
    size_t n = 0;

    for (; value != 0; value /= 10)
        out[n++] = (uint8_t)(value % 10);
    return n;
}

static void view(const struct quantity *q, struct digits_view *out)
{
    out->scale = q->scale;
    if (q->big) {
        out->negative = q->big->negative;
        out->n = q->big->n;
        out->digits = q->big->digits;
        return;
    }
    out->negative = q->value < 0;
    out->n = digits_of(magnitude(q->value), out->store);
    out->digits = out->store;
}

/* The digit that stands for 10^place. */
static uint8_t digit_at(const struct digits_view *v, int64_t place)
{
    int64_t i = place - v->scale;

    return i >= 0 && (size_t)i < v->n ? v->digits[i] : 0;
}

static int64_t top_place(const struct digits_view *v)
{
    return (int64_t)v->n + v->scale; /* one above the highest digit */
}

/* Compares magnitudes of two non-zero numbers. */
static int compare_digits(const struct digits_view *a, const struct digits_view *b)
{
    int64_t low = a->scale < b->scale ? a->scale : b->scale;

    if (top_place(a) != top_place(b))
        return top_place(a) < top_place(b) ? -1 : 1;
    for (int64_t place = top_place(a) - 1; place >= low; place--) {
        uint8_t da = digit_at(a, place), db = digit_at(b, place);

        if (da != db)
            return da < db ? -1 : 1;
    }
    return 0;
}

static void trim_row(struct row *row)
{
    size_t zeros = 0;

    while (row->n > 0 && row->digits[row->n - 1] == 0)
        row->n--;
    while (zeros < row->n && row->digits[zeros] == 0)
        zeros++;
    row->digits += zeros;
    row->n -= zeros;
    row->scale += (int32_t)zeros;
    if (row->n == 0)
        row->scale = 0;
}

static bool is_zero_row(const struct row *row)
{
    bool zero = true;

    for (size_t i = 0; i < row->n; i++)
        zero = zero && row->digits[i] == 0;
    return zero;
}

static bool row_to_int64(const struct row *row, int64_t *out)
{
    int64_t value = 0;

    if (row->n > MAX_INT64_DIGITS)
        return false;
    for (size_t i = row->n; i-- > 0;) {
        int digit = row->negative ? -(int)row->digits[i] : (int)row->digits[i];

        if (!checked_mul(value, 10, &value) || !checked_add(value, digit, &value))
            return false;
    }
    *out = value;
    return true;
}

/* The amount that a row stands for; only what does not fit 64 bits is copied into the arena. */
static struct quantity quantity_of_row(struct row row, enum quantity_format format, struct arena *arena)
{
    struct quantity q = {.format = format};
    struct quantity_big *big;

    trim_row(&row);
    q.scale = row.scale;
    if (row_to_int64(&row, &q.value))
        return q;
    big = arena_new(arena, struct quantity_big);
    *big = (struct quantity_big){row.negative, row.n, memcpy(arena_alloc(arena, row.n, 1), row.digits, row.n)};
    q.big = big;
    return q;
}

/* Multiplies by 2^exponent, exponent <= 60: a digit and the carry stay below 10 * 2^60 < 2^64. */
static void multiply_by_power_of_two(struct row *row, int exponent)
{
    uint64_t carry = 0;

    for (size_t i = 0; i < row->n; i++) {
        uint64_t d = ((uint64_t)row->digits[i] << exponent) + carry;

        row->digits[i] = (uint8_t)(d % 10);
        carry = d / 10;
    }
    for (; carry != 0; carry /= 10)
        row->digits[row->n++] = (uint8_t)(carry % 10);
}

/* Drops the digits below 10^scale, rounding the magnitude up. The row needs room for one more digit. */
static void round_up_to_scale(struct row *row, int32_t scale)
{
    size_t drop, i;
    bool lost = false;

    if (row->scale >= scale || row->n == 0)
        return;
    drop = (size_t)(scale - row->scale);
    for (i = 0; i < drop && i < row->n; i++)
        lost = lost || row->digits[i] != 0;
    row->digits += i;
    row->n -= i;
    row->scale = scale;
    for (i = 0; lost; i++) {
        if (i == row->n)
            row->digits[row->n++] = 0;
        lost = row->digits[i] == 9;
        row->digits[i] = lost ? 0 : (uint8_t)(row->digits[i] + 1);
    }
}

/* Divides by 1024 and gives the remainder. */
static unsigned divide_by_1024(struct row *row)
{
    unsigned rest = 0;

    for (size_t i = row->n; i-- > 0;) {
        rest = rest * 10 + row->digits[i];
        row->digits[i] = (uint8_t)(rest / 1024);
        rest %= 1024;
    }
    while (row->n > 0 && row->digits[row->n - 1] == 0)
        row->n--;
    return rest;
}

/* ---- parsing ---- */

/* The pieces of "-0012.50Mi". The texts are as Kubernetes cuts them: num without leading zeros, "0" when that leaves
 * nothing. */
struct pieces {
    bool negative;
    struct str value; /* sign, number and fraction as written */
    struct str num, denom, suffix;
};

static const struct suffix {
    const char *text;
    int base, exponent;
} suffixes[] = {
    {"", 10, 0},   {"n", 10, -9}, {"u", 10, -6}, {"m", 10, -3}, {"k", 10, 3},  {"M", 10, 6},
    {"G", 10, 9},  {"T", 10, 12}, {"P", 10, 15}, {"E", 10, 18}, {"Ki", 2, 10}, {"Mi", 2, 20},
    {"Gi", 2, 30}, {"Ti", 2, 40}, {"Pi", 2, 50}, {"Ei", 2, 60},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t skip_digits(struct str text, size_t at)
{
    while (at < text.len && is_digit(text.ptr[at]))
        at++;
    return at;
}

static struct str slice(struct str text, size_t from, size_t to)
{
    return (struct str){text.ptr + from, to - from};
}

/* [sign] zeros digits [. digits] letters [sign] digits; false when text is left over. */
static bool cut(struct str text, struct pieces *p)
{
    size_t at = 0, from;

    *p = (struct pieces){.num = STR("0")};
    if (text.len > 0 && (text.ptr[0] == '-' || text.ptr[0] == '+')) {
        p->negative = text.ptr[0] == '-';
        at = 1;
    }
    while (at < text.len && text.ptr[at] == '0')
        at++;
    from = at;
    at = skip_digits(text, at);
    if (at > from)
        p->num = slice(text, from, at);
    if (at < text.len && text.ptr[at] == '.') {
        from = at + 1;
        at = skip_digits(text, from);
        p->denom = slice(text, from, at);
    }
    p->value = slice(text, 0, at);
    from = at;
    while (at < text.len && text.ptr[at] != '\0' && strchr("eEinumkKMGTP", text.ptr[at]))
        at++;
    if (at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+'))
        at++;
    at = skip_digits(text, at);
    p->suffix = slice(text, from, at);
    return at == text.len;
}

/* The number behind e or E. Kubernetes reads 64 bits and keeps 32 of them. */
static int parse_exponent(struct str digits, int32_t *out, struct error *err)
{
    bool negative = digits.len > 0 && digits.ptr[0] == '-';
    size_t at = digits.len > 0 && (digits.ptr[0] == '-' || digits.ptr[0] == '+');
    int64_t value = 0;

    if (at == digits.len)
        return error_set(err, ERR_INVALID, "unable to parse quantity's suffix");
    for (; at < digits.len; at++) {
        int digit = digits.ptr[at] - '0';

        if (!is_digit(digits.ptr[at]) || !checked_mul(value, 10, &value) ||
            !checked_add(value, negative ? -digit : digit, &value))
            return error_set(err, ERR_INVALID, "unable to parse quantity's suffix");
    }
    *out = (int32_t)(uint32_t)(uint64_t)value;
    if (*out > QUANTITY_MAX_EXPONENT || *out < -QUANTITY_MAX_EXPONENT)
        return error_set(err, ERR_LIMIT, "the exponent of a quantity is beyond %d", QUANTITY_MAX_EXPONENT);
    return 0;
}

static int parse_suffix(struct str text, int *base, int32_t *exponent, enum quantity_format *format, struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        if (!str_is(text, suffixes[i].text))
            continue;
        *base = suffixes[i].base;
        *exponent = suffixes[i].exponent;
        *format = *base == 2 ? QUANTITY_BINARY_SI : QUANTITY_DECIMAL_SI;
        return 0;
    }
    if (text.len < 2 || (text.ptr[0] != 'e' && text.ptr[0] != 'E'))
        return error_set(err, ERR_INVALID, "unable to parse quantity's suffix");
    *base = 10;
    *format = QUANTITY_DECIMAL_EXPONENT;
    return parse_exponent(slice(text, 1, text.len), exponent, err);
}

/* Whether the small form of Kubernetes takes the number; if so its value and scale. */
static bool parse_small(const struct pieces *p, int base, int32_t exponent, int64_t *value, int32_t *scale)
{
    size_t n_digits = p->num.len + p->denom.len;
    int64_t number = 0;

    if (base == 2) {
        if (p->denom.len > 0 || (int)p->num.len > 14 - exponent * 3 / 10)
            return false;
        *scale = 0;
    } else {
        if (n_digits > MAX_SMALL_DIGITS)
            return false;
        *scale = exponent - (int32_t)p->denom.len;
    }
    if (*scale < NANO)
        return false;
    for (size_t i = 0; i < p->num.len; i++)
        number = number * 10 + (p->num.ptr[i] - '0');
    for (size_t i = 0; i < p->denom.len; i++)
        number = number * 10 + (p->denom.ptr[i] - '0');
    *value = base == 2 ? number << exponent : number;
    return true;
}

/* Kubernetes remembers the spelling of numbers that it takes for canonical. */
static bool spelling_is_kept(const struct pieces *p, int base, const struct quantity *q, int32_t exponent)
{
    struct str last = p->denom.len > 0 ? p->denom : p->num;
    size_t zeros = 0;

    if (base == 2)
        return ((q->value >> exponent) & 7) != 0;
    for (size_t i = last.len; i-- > 0 && last.ptr[i] == '0';)
        zeros++;
    if (zeros == p->denom.len && p->denom.len > 0)
        for (size_t i = p->num.len; i-- > 0 && p->num.ptr[i] == '0';)
            zeros++;
    return q->scale % 3 == 0 && zeros < 3 && p->num.ptr[0] != '0';
}

/* Keep the spelling itself only where it is not what we would print anyway; the plain ones are told apart by a look. */
static void keep_spelling(struct quantity *q, struct str text, struct arena *arena)
{
    BUF canonical = {0};

    if (q->format != QUANTITY_DECIMAL_EXPONENT && text.ptr[0] != '+' && text.ptr[0] != '0' &&
        !(text.ptr[0] == '-' && text.ptr[1] == '0') && !memchr(text.ptr, '.', text.len))
        return;
    quantity_format_to(q, &canonical);
    if (!str_is(text, buf_str(&canonical)))
        q->text = arena_strndup(arena, text.ptr, text.len);
}

static const struct quantity max_binary = {.value = INT64_MAX};
static const struct quantity one = {.value = 1};

/* What is left: many digits, tiny scales, binary fractions. Rounded up to nano; binary ones are capped. */
static int parse_dec(const struct pieces *p, int base, int32_t exponent, enum quantity_format format,
                     struct arena *arena, struct quantity *out, struct error *err)
{
    uint8_t digits[QUANTITY_MAX_TEXT + MAX_INT64_DIGITS + 1];
    struct row row = {.digits = digits};
    struct quantity q;

    if (memchr(p->value.ptr, '0', p->value.len) == NULL && p->denom.len == 0 && str_is(p->num, "0"))
        return error_set(err, ERR_INVALID, "unable to parse numeric part of quantity");
    for (size_t i = 0; i < p->denom.len; i++)
        row.digits[row.n++] = (uint8_t)(p->denom.ptr[p->denom.len - 1 - i] - '0');
    for (size_t i = 0; i < p->num.len; i++)
        row.digits[row.n++] = (uint8_t)(p->num.ptr[p->num.len - 1 - i] - '0');
    row.scale = -(int32_t)p->denom.len;
    if (base == 2)
        multiply_by_power_of_two(&row, exponent);
    else
        row.scale += exponent;
    q = (struct quantity){.format = format, .dec_scale = row.scale};
    if (!is_zero_row(&row)) {
        round_up_to_scale(&row, NANO);
        q = quantity_of_row(row, format, arena);
        q.dec_scale = NANO;
    }
    if (base == 2 && quantity_cmp(&q, &max_binary) > 0) {
        q = max_binary;
        q.format = format;
    }
    if (base == 2 && quantity_sign(&q) > 0 && quantity_cmp(&q, &one) < 0)
        q.format = QUANTITY_DECIMAL_SI;
    q.is_dec = true;
    *out = p->negative ? quantity_neg(&q, arena) : q;
    return 0;
}

int quantity_parse(struct str text, struct arena *arena, struct quantity *out, struct error *err)
{
    struct pieces p;
    struct quantity q = {0};
    int base = 10;
    int32_t exponent = 0;

    if (text.len > QUANTITY_MAX_TEXT)
        return error_set(err, ERR_LIMIT, "a quantity is longer than %d bytes", QUANTITY_MAX_TEXT);
    if (text.len == 0 || !cut(text, &p))
        return error_set(err, ERR_INVALID,
                         "quantities must match the regular expression "
                         "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    if (parse_suffix(p.suffix, &base, &exponent, &q.format, err) < 0)
        return -1;
    if (!parse_small(&p, base, exponent, &q.value, &q.scale))
        return parse_dec(&p, base, exponent, q.format, arena, out, err);
    q.keeps_text = str_is(text, "0") || spelling_is_kept(&p, base, &q, exponent);
    q.value = p.negative ? -q.value : q.value;
    if (q.keeps_text)
        keep_spelling(&q, text, arena);
    *out = q;
    return 0;
}

struct quantity quantity_copy(const struct quantity *q, struct arena *arena)
{
    struct quantity copy = *q;
    struct quantity_big *big;

    copy.text = q->text ? arena_strdup(arena, q->text) : NULL;
    if (!q->big)
        return copy;
    big = arena_new(arena, struct quantity_big);
    *big = (struct quantity_big){q->big->negative, q->big->n,
                                 memcpy(arena_alloc(arena, q->big->n, 1), q->big->digits, q->big->n)};
    copy.big = big;
    return copy;
}

struct quantity quantity_of_int(int64_t value)
{
    return (struct quantity){.value = value};
}

struct quantity quantity_of_milli(int64_t milli, enum quantity_format format)
{
    return (struct quantity){.value = milli, .scale = -3, .format = format};
}

/* ---- comparing ---- */

int quantity_sign(const struct quantity *q)
{
    if (q->big)
        return q->big->negative ? -1 : 1;
    return (q->value > 0) - (q->value < 0);
}

/* Different scales, both within 64 bits. A step of more than 18 places outweighs any 64-bit number. */
static int compare_scaled(int64_t coarse, int64_t fine, int64_t places)
{
    wide scaled;

    if (coarse == 0 || places > MAX_SMALL_DIGITS)
        return coarse == 0 ? (fine < 0) - (fine > 0) : (coarse > 0 ? 1 : -1);
    scaled = (wide)coarse * powers_of_ten[places];
    return (scaled > fine) - (scaled < fine);
}

static int compare_big(const struct quantity *a, const struct quantity *b)
{
    int sign_a = quantity_sign(a), sign_b = quantity_sign(b);
    struct digits_view va, vb;

    if (sign_a != sign_b || sign_a == 0)
        return (sign_a > sign_b) - (sign_a < sign_b);
    view(a, &va);
    view(b, &vb);
    return sign_a * compare_digits(&va, &vb);
}

int quantity_cmp_any(const struct quantity *a, const struct quantity *b)
{
    if (a->big || b->big)
        return compare_big(a, b);
    if (a->scale == b->scale)
        return (a->value > b->value) - (a->value < b->value);
    if (a->scale > b->scale)
        return compare_scaled(a->value, b->value, (int64_t)a->scale - b->scale);
    return -compare_scaled(b->value, a->value, (int64_t)b->scale - a->scale);
}

bool quantity_identical(const struct quantity *a, const struct quantity *b)
{
    return !a->is_dec && !b->is_dec && a->value == b->value && a->scale == b->scale && a->format == b->format &&
           a->keeps_text == b->keeps_text && str_eq(str_of(a->text), str_of(b->text));
}

/* ---- adding ---- */

struct quantity quantity_neg(const struct quantity *q, struct arena *arena)
{
    struct quantity negated = *q;
    struct quantity_big *big;

    negated.text = NULL;
    negated.keeps_text = false;
    if (!q->big && checked_sub((int64_t)0, q->value, &negated.value))
        return negated;
    big = arena_new(arena, struct quantity_big);
    if (q->big) {
        *big = *q->big;
        big->negative = !big->negative;
    } else { /* 2^63 */
        uint8_t *digits = arena_alloc(arena, MAX_INT64_DIGITS + 1, 1);

        *big = (struct quantity_big){.n = digits_of(magnitude(q->value), digits), .digits = digits};
        negated.is_dec = true;
        negated.dec_scale = q->scale;
    }
    negated.big = big;
    return negated;
}

static int32_t held_scale(const struct quantity *q)
{
    return q->is_dec ? q->dec_scale : q->scale;
}

/* |a| + |b|, or |a| - |b| where that is not negative, written over the places low .. high - 1. */
static void combine_digits(struct row *out, const struct digits_view *a, const struct digits_view *b, bool subtract)
{
    int carry = 0;

    for (size_t i = 0; i < out->n; i++) {
        int64_t place = (int64_t)out->scale + (int64_t)i;
        int other = digit_at(b, place);
        int d = digit_at(a, place) + (subtract ? -other : other) + carry;

        carry = d < 0 ? -1 : d / 10;
        out->digits[i] = (uint8_t)(d - carry * 10);
    }
    INVARIANT(carry == 0);
}

/* The sum of two non-zero amounts, one of which may be beyond 64 bits. */
static struct quantity add_rows(const struct quantity *a, const struct quantity *b, struct arena *arena)
{
    struct digits_view va, vb;
    struct row row = {0};
    int64_t high;
    bool subtract, swap;

    view(a, &va);
    view(b, &vb);
    subtract = va.negative != vb.negative;
    swap = subtract && compare_digits(&va, &vb) < 0;
    row.negative = swap ? vb.negative : va.negative;
    row.scale = va.scale < vb.scale ? va.scale : vb.scale;
    high = top_place(&va) > top_place(&vb) ? top_place(&va) : top_place(&vb);
    row.n = (size_t)(high - row.scale) + 1;
    row.digits = arena_alloc(arena, row.n, 1);
    combine_digits(&row, swap ? &vb : &va, swap ? &va : &vb, subtract);
    return quantity_of_row(row, a->format, arena);
}

/* Value and scale of the sum when the finer of the two scales holds it in 64 bits. */
static bool add_small(const struct quantity *a, const struct quantity *b, struct quantity *sum)
{
    const struct quantity *coarse = a->scale > b->scale ? a : b, *fine = coarse == a ? b : a;
    int64_t places = (int64_t)coarse->scale - fine->scale, scaled;

    if (places > MAX_SMALL_DIGITS || !checked_mul(coarse->value, powers_of_ten[places], &scaled))
        return false;
    sum->scale = fine->scale;
    return checked_add(scaled, fine->value, &sum->value);
}

struct quantity quantity_add(const struct quantity *a, const struct quantity *b, struct arena *arena)
{
    const struct quantity zero = {0};
    bool a_is_zero = quantity_sign(a) == 0, b_is_zero = quantity_sign(b) == 0;
    enum quantity_format format = a_is_zero ? b->format : a->format;
    struct quantity sum = zero;

    if (b_is_zero)
        sum = *a;
    else if (a_is_zero)
        sum = *b;
    else if (a->big || b->big || !add_small(a, b, &sum)) {
        sum = add_rows(a, b, arena);
        sum.is_dec = true;
    }
    if (a->is_dec || b->is_dec || sum.is_dec) {
        sum.is_dec = true;
        sum.dec_scale = held_scale(a) < held_scale(b) ? held_scale(a) : held_scale(b);
    }
    sum.format = format;
    sum.text = NULL;
    sum.keeps_text = false;
    return sum;
}

struct quantity quantity_sub(const struct quantity *a, const struct quantity *b, struct arena *arena)
{
    struct quantity negated = quantity_neg(b, arena);

    return quantity_add(a, &negated, arena);
}

/* ---- as numbers ---- */

/* The number in units of 10^scale, rounded away from zero; false when that is beyond 64 bits. */
static bool to_scaled(const struct quantity *q, int32_t scale, int64_t *out, bool *exact)
{
    struct digits_view v;
    int64_t value = 0;

    *exact = true;
    if (!q->big && q->scale == scale) {
        *out = q->value;
        return true;
    }
    view(q, &v);
    if (v.n > 0 && top_place(&v) - scale > MAX_INT64_DIGITS)
        return false;
    for (int64_t place = top_place(&v) - 1; v.n > 0 && place >= scale; place--) {
        int digit = digit_at(&v, place);

        if (!checked_mul(value, 10, &value) || !checked_add(value, v.negative ? -digit : digit, &value))
            return false;
    }
    for (int64_t place = v.scale; place < scale && place < top_place(&v); place++)
        *exact = *exact && digit_at(&v, place) == 0;
    *out = value;
    return *exact || checked_add(value, v.negative ? -1 : 1, out);
}

bool quantity_to_int(const struct quantity *q, int64_t *out)
{
    bool exact;

    return to_scaled(q, 0, out, &exact);
}

bool quantity_to_milli(const struct quantity *q, int64_t *out)
{
    bool exact;

    return to_scaled(q, -3, out, &exact);
}

bool quantity_is_milli_exact(const struct quantity *q)
{
    int64_t milli;
    bool exact;

    return to_scaled(q, -3, &milli, &exact) && exact;
}

bool quantity_as_integer(const struct quantity *q, int64_t *out)
{
    bool exact;

    return !q->is_dec && q->scale >= 0 && to_scaled(q, 0, out, &exact);
}

/* 10^n as Go's math.Pow10 has it: the product or quotient of two table entries, which is not always the nearest double.
 */
static double power_of_ten(int n)
{
    static const double ones[32] = {1e00, 1e01, 1e02, 1e03, 1e04, 1e05, 1e06, 1e07, 1e08, 1e09, 1e10,
                                    1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21,
                                    1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31};
    static const double up[] = {1e00, 1e32, 1e64, 1e96, 1e128, 1e160, 1e192, 1e224, 1e256, 1e288};
    static const double down[] = {1e-00, 1e-32, 1e-64, 1e-96, 1e-128, 1e-160, 1e-192, 1e-224, 1e-256, 1e-288, 1e-320};

    if (n > 308)
        return (double)INFINITY;
    if (n < -323)
        return 0;
    return n >= 0 ? up[n / 32] * ones[n % 32] : down[-n / 32] / ones[-n % 32];
}

static void add_digits(struct buf *out, const struct digits_view *v)
{
    for (size_t i = v->n; i-- > 0;)
        buf_addc(out, (char)('0' + v->digits[i]));
}

/* The integer that Kubernetes holds in its arbitrary-precision form, rounded to the nearest double. */
static double dec_to_double(const struct quantity *q)
{
    BUF text = {0};
    struct digits_view v;

    view(q, &v);
    if (v.negative)
        buf_addc(&text, '-');
    buf_addc(&text, '0');
    add_digits(&text, &v);
    buf_addf(&text, "e%d", v.scale - q->dec_scale);
    return strtod(buf_str(&text), NULL);
}

double quantity_as_double(const struct quantity *q)
{
    double base = q->is_dec || q->big ? dec_to_double(q) : (double)q->value;
    int32_t scale = held_scale(q);

    return scale == 0 ? base : base * power_of_ten(scale);
}

/* ---- printing ---- */

static const char *suffix_for(int base, int exponent)
{
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
        if (suffixes[i].base == base && suffixes[i].exponent == exponent)
            return suffixes[i].text;
    return NULL;
}

/* Digits without trailing zeros, times 10^exponent with an exponent that 3 divides. */
static void format_decimal(const struct quantity *q, enum quantity_format format, struct buf *out)
{
    struct digits_view v;
    const char *suffix;
    int exponent, zeros;

    view(q, &v);
    while (v.n > 1 && v.digits[0] == 0) {
        v.digits++;
        v.n--;
        v.scale++;
    }
    zeros = ((v.scale % 3) + 3) % 3;
    exponent = v.scale - zeros;
    if (v.negative)
        buf_addc(out, '-');
    add_digits(out, &v);
    buf_add(out, "00", (size_t)zeros);
    suffix = format == QUANTITY_DECIMAL_EXPONENT && exponent != 0 ? NULL : suffix_for(10, exponent);
    if (suffix)
        buf_adds(out, suffix);
    else
        buf_addf(out, "e%d", exponent);
}

static bool is_whole(const struct quantity *q)
{
    struct digits_view v;
    bool whole = true;

    view(q, &v);
    for (int64_t place = v.scale; place < 0 && place < top_place(&v); place++)
        whole = whole && digit_at(&v, place) == 0;
    return whole;
}

/* A whole number of at least 1024: all its digits, divided by 1024 as often as that leaves no rest. */
static void format_binary(const struct quantity *q, struct buf *out)
{
    BUF work = {0};
    BUF last = {0};
    struct digits_view v;
    struct row row;
    int factors = 0;

    view(q, &v);
    for (int64_t place = 0; place < top_place(&v); place++)
        buf_addc(&work, (char)digit_at(&v, place));
    row = (struct row){.n = work.len, .digits = (uint8_t *)work.data};
    for (; factors <= MAX_BINARY_FACTOR; factors++) {
        buf_clear(&last);
        for (size_t i = row.n; i-- > 0;)
            buf_addc(&last, (char)('0' + row.digits[i]));
        if (factors == MAX_BINARY_FACTOR || divide_by_1024(&row) != 0)
            break;
    }
    if (v.negative)
        buf_addc(out, '-');
    buf_adds(out, buf_str(&last));
    if (factors > 0)
        buf_adds(out, suffix_for(2, factors * 10));
}

void quantity_format_to(const struct quantity *q, struct buf *out)
{
    static const struct quantity low = {.value = -1024}, high = {.value = 1024};

    if (q->text)
        buf_adds(out, q->text);
    else if (quantity_sign(q) == 0)
        buf_addc(out, '0');
    else if (q->format != QUANTITY_BINARY_SI)
        format_decimal(q, q->format, out);
    else if ((quantity_cmp(q, &low) > 0 && quantity_cmp(q, &high) < 0) || !is_whole(q))
        format_decimal(q, QUANTITY_DECIMAL_SI, out);
    else
        format_binary(q, out);
}
