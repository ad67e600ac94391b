#include "allocator/cel/timefmt.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/checked.h"
#include "allocator/base/error.h"
#include "allocator/cel/doublefmt.h"
#include "allocator/cel/utf8.h"
#include "allocator/cel/zone.h"

#include "allocator/base/banned.h"

#define NANOS_PER_SECOND INT64_C(1000000000)
#define SECONDS_PER_DAY  86400
#define DAYS_PER_ERA     146097 /* 400 years */
#define EPOCH_DAYS       719468 /* from 0000-03-01 to 1970-01-01 */

/* ---- calendar ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Days since 1970-01-01. Years begin in March here, so that the leap day is the last of its year and months have
 * lengths that (153 m + 2) / 5 adds up. */
int64_t civil_days(int64_t year, int month, int day)
{
    int64_t y = year - (month <= 2), era = floor_div(y, 400), year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - EPOCH_DAYS;
}

int civil_weekday(int64_t days)
{
    return (int)(((days + 4) % 7 + 7) % 7);
}

static void date_of(int64_t days, struct civil *out)
{
    int64_t era = floor_div(days + EPOCH_DAYS, DAYS_PER_ERA), day = days + EPOCH_DAYS - era * DAYS_PER_ERA;
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int64_t day_of_year = day - (365 * year + year / 4 - year / 100), month = (5 * day_of_year + 2) / 153;

    out->day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    out->month = (int)(month < 10 ? month + 3 : month - 9);
    out->year = year + era * 400 + (out->month <= 2);
    out->weekday = civil_weekday(days);
    out->year_day = (int)(days - civil_days(out->year, 1, 1));
}

struct civil timestamp_civil(const struct timestamp *t, int64_t offset)
{
    int64_t seconds = t->seconds + offset, days = floor_div(seconds, SECONDS_PER_DAY);
    int second_of_day = (int)(seconds - days * SECONDS_PER_DAY);
    struct civil c = {0};

    date_of(days, &c);
    c.hour = second_of_day / 3600;
    c.minute = second_of_day / 60 % 60;
    c.second = second_of_day % 60;
    c.millisecond = t->nanos / 1000000;
    return c;
}

int civil_month_length(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (month == 2 && leap);
}

/* ---- timestamps ---- */

static int overflow(struct error *err)
{
    return error_set(err, ERR_INVALID, "timestamp overflow");
}

int timestamp_of_unix(int64_t seconds, struct timestamp *out, struct error *err)
{
    if (seconds < TIMESTAMP_MIN_SECONDS || seconds > TIMESTAMP_MAX_SECONDS)
        return overflow(err);
    *out = (struct timestamp){.seconds = seconds};
    return 0;
}

/* Reading position; every reader moves it and gives false when the text is not as expected. */
struct cursor {
    struct str text;
    size_t at;
};

static bool is_digit_at(const struct cursor *c, size_t ahead)
{
    size_t i = c->at + ahead;

    return i < c->text.len && c->text.ptr[i] >= '0' && c->text.ptr[i] <= '9';
}

static bool read_char(struct cursor *c, char expected)
{
    if (c->at >= c->text.len || c->text.ptr[c->at] != expected)
        return false;
    c->at++;
    return true;
}

/* From `min` to `max` digits; a value above `limit` fails. */
static bool read_digits(struct cursor *c, int min, int max, int limit, int *out)
{
    int n = 0;

    for (*out = 0; n < max && is_digit_at(c, 0); n++)
        *out = *out * 10 + (c->text.ptr[c->at++] - '0');
    return n >= min && *out <= limit;
}

static bool read_date(struct cursor *c, int64_t *days)
{
    int year, month, day;

    if (!read_digits(c, 4, 4, 9999, &year) || !read_char(c, '-') || !read_digits(c, 2, 2, 12, &month) ||
        !read_char(c, '-') || !read_digits(c, 2, 2, 31, &day))
        return false;
    if (month < 1 || day < 1 || day > civil_month_length(year, month))
        return false;
    *days = civil_days(year, month, day);
    return true;
}

/* Go reads an hour of one digit too. */
static bool read_clock(struct cursor *c, int *seconds)
{
    int hour, minute, second;

    if (!read_digits(c, 1, 2, 23, &hour) || !read_char(c, ':') || !read_digits(c, 2, 2, 59, &minute) ||
        !read_char(c, ':') || !read_digits(c, 2, 2, 59, &second))
        return false;
    *seconds = (hour * 60 + minute) * 60 + second;
    return true;
}

/* [. or , digits], cut to nanoseconds; without digits behind it the point belongs to what follows. */
static void read_fraction(struct cursor *c, int32_t *nanos)
{
    int32_t unit = 100000000;

    *nanos = 0;
    if (c->at >= c->text.len || (c->text.ptr[c->at] != '.' && c->text.ptr[c->at] != ',') || !is_digit_at(c, 1))
        return;
    for (c->at++; is_digit_at(c, 0); c->at++, unit /= 10)
        *nanos += unit * (c->text.ptr[c->at] - '0');
}

static bool read_zone(struct cursor *c, int *offset)
{
    int hours, minutes;
    bool west;

    *offset = 0;
    if (read_char(c, 'Z'))
        return true;
    west = c->at < c->text.len && c->text.ptr[c->at] == '-';
    if (!(west ? read_char(c, '-') : read_char(c, '+')) || !read_digits(c, 2, 2, 24, &hours) || !read_char(c, ':') ||
        !read_digits(c, 2, 2, 60, &minutes))
        return false;
    *offset = (hours * 60 + minutes) * (west ? -60 : 60);
    return true;
}

int timestamp_parse(struct str text, struct timestamp *out, struct error *err)
{
    struct cursor c = {text, 0};
    struct timestamp t;
    BUF quoted = {0};
    int64_t days;
    int seconds, offset;

    if (!read_date(&c, &days) || !read_char(&c, 'T') || !read_clock(&c, &seconds)) {
        utf8_quote_to(text, &quoted);
        return error_set(err, ERR_INVALID, "parsing time %s: not an RFC 3339 timestamp", buf_str(&quoted));
    }
    read_fraction(&c, &t.nanos);
    if (!read_zone(&c, &offset) || c.at != text.len) {
        utf8_quote_to(text, &quoted);
        return error_set(err, ERR_INVALID, "parsing time %s: not an RFC 3339 timestamp", buf_str(&quoted));
    }
    t.seconds = days * SECONDS_PER_DAY + seconds - offset;
    t.offset = offset;
    if (t.seconds < TIMESTAMP_MIN_SECONDS || t.seconds > TIMESTAMP_MAX_SECONDS)
        return overflow(err);
    *out = t;
    return 0;
}

/* ".5", ".123456789" or nothing. */
static void add_fraction(int32_t nanos, struct buf *out)
{
    int digits = 9;

    if (nanos == 0)
        return;
    for (; nanos % 10 == 0; nanos /= 10)
        digits--;
    buf_addf(out, ".%0*d", digits, nanos);
}

void timestamp_format_to(const struct timestamp *t, struct buf *out)
{
    struct civil c = timestamp_civil(t, t->offset);
    int minutes = abs(t->offset) / 60;

    buf_addf(out, "%04d-%02d-%02dT%02d:%02d:%02d", (int)c.year, c.month, c.day, c.hour, c.minute, c.second);
    add_fraction(t->nanos, out);
    if (t->offset == 0)
        buf_addc(out, 'Z');
    else
        buf_addf(out, "%c%02d:%02d", t->offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

int timestamp_cmp(const struct timestamp *a, const struct timestamp *b)
{
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return (a->nanos > b->nanos) - (a->nanos < b->nanos);
}

int timestamp_add(const struct timestamp *t, int64_t nanos, struct timestamp *out, struct error *err)
{
    struct timestamp sum = *t;
    int64_t fraction = t->nanos + nanos % NANOS_PER_SECOND, carry = floor_div(fraction, NANOS_PER_SECOND);

    sum.seconds += nanos / NANOS_PER_SECOND + carry;
    sum.nanos = (int32_t)(fraction - carry * NANOS_PER_SECOND);
    if (sum.seconds < TIMESTAMP_MIN_SECONDS || sum.seconds > TIMESTAMP_MAX_SECONDS)
        return overflow(err);
    *out = sum;
    return 0;
}

int timestamp_sub(const struct timestamp *t, int64_t nanos, struct timestamp *out, struct error *err)
{
    if (nanos == INT64_MIN)
        return error_set(err, ERR_INVALID, "integer overflow");
    return timestamp_add(t, -nanos, out, err);
}

int timestamp_diff(const struct timestamp *a, const struct timestamp *b, int64_t *out, struct error *err)
{
    int64_t nanos;

    if (!checked_mul(a->seconds - b->seconds, NANOS_PER_SECOND, &nanos) ||
        !checked_add(nanos, a->nanos - b->nanos, &nanos))
        return error_set(err, ERR_INVALID, "integer overflow");
    *out = nanos;
    return 0;
}

/* ---- zones ---- */

/* A number as Go's Atoi reads it, within a range that keeps all arithmetic below 64 bits. */
static int read_number(struct str text, int64_t *out, struct error *err)
{
    bool negative = text.len > 0 && text.ptr[0] == '-';
    size_t i = text.len > 0 && (text.ptr[0] == '-' || text.ptr[0] == '+');
    BUF quoted = {0};
    int64_t value = 0;
    bool ok = i < text.len && text.len <= 12;

    for (; ok && i < text.len; i++) {
        ok = text.ptr[i] >= '0' && text.ptr[i] <= '9';
        value = value * 10 + (text.ptr[i] - '0');
    }
    if (ok) {
        *out = negative ? -value : value;
        return 0;
    }
    utf8_quote_to(text, &quoted);
    return error_set(err, ERR_INVALID, "strconv.Atoi: parsing %s: invalid syntax", buf_str(&quoted));
}

static int numeric_offset(struct str zone, size_t colon, int64_t *out, struct error *err)
{
    int64_t hours, minutes;

    if (read_number((struct str){zone.ptr, colon}, &hours, err) < 0 ||
        read_number((struct str){zone.ptr + colon + 1, zone.len - colon - 1}, &minutes, err) < 0)
        return -1;
    *out = (hours * 60 + (zone.ptr[0] == '-' ? -minutes : minutes)) * 60;
    return 0;
}

int zone_offset(struct str zone, const struct timestamp *t, int64_t *out_offset, struct error *err)
{
    const char *colon = zone.len ? memchr(zone.ptr, ':', zone.len) : NULL;

    if (colon)
        return numeric_offset(zone, (size_t)(colon - zone.ptr), out_offset, err);
    *out_offset = 0;
    if (zone.len == 0 || str_is(zone, "UTC") || str_is(zone, "Local"))
        return 0;
    if (zone_rules_offset(zone, t->seconds, out_offset))
        return 0;
    return error_set(err, ERR_NOT_FOUND, "unknown time zone %.*s", STR_FMT(zone));
}

/* ---- durations ---- */

static const struct unit {
    const char *name;
    uint64_t nanos;
} units[] = {
    {"ns", 1},       {"us", 1000},      {"\xC2\xB5s", 1000}, {"\xCE\xBCs", 1000},
    {"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000},  {"h", 3600000000000},
};

#define DURATION_LIMIT ((uint64_t)1 << 63)

/* Digits before the point; false beyond 2^63. */
static bool read_whole(struct cursor *c, uint64_t *out)
{
    for (*out = 0; is_digit_at(c, 0); c->at++) {
        unsigned digit = (unsigned)(c->text.ptr[c->at] - '0');

        if (*out > DURATION_LIMIT / 10)
            return false;
        *out = *out * 10 + digit;
        if (*out > DURATION_LIMIT)
            return false;
    }
    return true;
}

/* Digits behind the point as numerator and power of ten; digits that do not fit are passed over. */
static void read_part(struct cursor *c, uint64_t *numerator, double *scale)
{
    bool full = false;

    for (; is_digit_at(c, 0); c->at++) {
        unsigned digit = (unsigned)(c->text.ptr[c->at] - '0');

        full = full || *numerator > (DURATION_LIMIT - 1) / 10 || *numerator * 10 + digit > DURATION_LIMIT;
        if (full)
            continue;
        *numerator = *numerator * 10 + digit;
        *scale *= 10;
    }
}

static const struct unit *read_unit(struct cursor *c)
{
    size_t from = c->at;
    struct str name;

    while (c->at < c->text.len && c->text.ptr[c->at] != '.' && !is_digit_at(c, 0))
        c->at++;
    name = (struct str){c->text.ptr + from, c->at - from};
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (str_is(name, units[i].name))
            return &units[i];
    return NULL;
}

/* One number with its unit, added to the sum; false when malformed or too large. */
static bool read_term(struct cursor *c, uint64_t *sum)
{
    uint64_t whole, numerator = 0;
    double scale = 1;
    size_t from = c->at;
    bool digits;
    const struct unit *unit;

    if (!read_whole(c, &whole))
        return false;
    digits = c->at > from;
    if (read_char(c, '.')) {
        from = c->at;
        read_part(c, &numerator, &scale);
        digits = digits || c->at > from;
    }
    unit = digits ? read_unit(c) : NULL;
    if (!unit || whole > DURATION_LIMIT / unit->nanos)
        return false;
    whole *= unit->nanos;
    if (numerator > 0)
        whole += (uint64_t)((double)numerator * ((double)unit->nanos / scale));
    if (whole > DURATION_LIMIT)
        return false;
    *sum += whole;
    return *sum <= DURATION_LIMIT;
}

/* [sign] 0 | [sign] term { term } */
static bool read_duration(struct str text, int64_t *out)
{
    struct cursor c = {text, 0};
    bool negative = read_char(&c, '-');
    uint64_t sum = 0;

    if (!negative)
        (void)read_char(&c, '+');
    if (c.at == text.len)
        return false;
    if (c.at + 1 == text.len && text.ptr[c.at] == '0') {
        *out = 0;
        return true;
    }
    while (c.at < text.len)
        if (!read_term(&c, &sum))
            return false;
    if (sum == DURATION_LIMIT && !negative)
        return false;
    *out = (int64_t)(negative ? 0 - sum : sum);
    return true;
}

int cel_duration_parse(struct str text, int64_t *out_nanos, struct error *err)
{
    BUF quoted = {0};

    if (read_duration(text, out_nanos))
        return 0;
    utf8_quote_to(text, &quoted);
    return error_set(err, ERR_INVALID, "time: invalid duration %s", buf_str(&quoted));
}

void duration_format_to(int64_t nanos, struct buf *out)
{
    double seconds = (double)(nanos / NANOS_PER_SECOND) + (double)(nanos % NANOS_PER_SECOND) / 1e9;

    double_format_plain_to(seconds, out);
    buf_addc(out, 's');
}
