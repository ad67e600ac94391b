/* allocator/cel/timefmt.h - timestamps and durations of CEL: text, arithmetic, calendar.
 *
 * A timestamp is an instant of the proleptic Gregorian calendar, without leap seconds, from 0001-01-01T00:00:00Z to
 * 9999-12-31T23:59:59.999999999Z; it remembers the offset it was written with, which only its text shows. A duration is
 * int64_t nanoseconds. Pure: nothing reads the clock or the machine's time zone ("Local" is UTC). Any thread. */
#ifndef QUEUED_CEL_TIMEFMT_H
#define QUEUED_CEL_TIMEFMT_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/compiler.h"
#include "allocator/base/str.h"

struct error;

#define TIMESTAMP_MIN_SECONDS (-62135596800)
#define TIMESTAMP_MAX_SECONDS 253402300799

struct timestamp {
    int64_t seconds; /* since 1970-01-01T00:00:00Z, rounded down */
    int32_t nanos;   /* 0 .. 999999999 */
    int32_t offset;  /* seconds east of UTC, for the text only */
};

/* RFC 3339 as CEL accepts it. Returns 0, or -1 with ERR_INVALID: the text is malformed, or out of range ("timestamp
 * overflow"). */
MUST_CHECK int timestamp_parse(struct str text, struct timestamp *out, struct error *err);
/* From seconds since 1970; fails out of range. */
MUST_CHECK int timestamp_of_unix(int64_t seconds, struct timestamp *out, struct error *err);
/* RFC 3339 with the remembered offset and as many fraction digits as needed. */
void timestamp_format_to(const struct timestamp *t, struct buf *out);

int timestamp_cmp(const struct timestamp *a, const struct timestamp *b); /* -1, 0, 1; by instant */
/* t plus (or minus) a duration; fails with "timestamp overflow". Keeps the offset of t. */
MUST_CHECK int timestamp_add(const struct timestamp *t, int64_t nanos, struct timestamp *out, struct error *err);
MUST_CHECK int timestamp_sub(const struct timestamp *t, int64_t nanos, struct timestamp *out, struct error *err);
/* a - b in nanoseconds; fails with "integer overflow". */
MUST_CHECK int timestamp_diff(const struct timestamp *a, const struct timestamp *b, int64_t *out, struct error *err);

/* The calendar and clock of an instant in some zone, in natural counting; CEL's own bases are for the caller. */
struct civil {
    int64_t year;
    int month;    /* 1 .. 12 */
    int day;      /* 1 .. 31 */
    int weekday;  /* 0 is Sunday */
    int year_day; /* 0 .. 365 */
    int hour, minute, second;
    int millisecond; /* 0 .. 999 */
};
/* `offset` in seconds east of UTC; 0 for accessors without a zone argument, whatever the timestamp remembers. */
struct civil timestamp_civil(const struct timestamp *t, int64_t offset);

/* Days since 1970-01-01 of a date; the day of the week (0 is Sunday) of such a day; the days of a month (1 .. 12). */
int64_t civil_days(int64_t year, int month, int day);
int civil_weekday(int64_t days);
int civil_month_length(int64_t year, int month);

/* The offset that a zone argument means at an instant: "+02:00", "5:30" (not range-checked, as in CEL), "UTC", "" and
 * "Local" (UTC), or an IANA name. Returns 0, or -1 with ERR_NOT_FOUND for an unknown name, ERR_INVALID for a bad
 * offset. */
MUST_CHECK int zone_offset(struct str zone, const struct timestamp *t, int64_t *out_offset, struct error *err);

/* Go's ParseDuration: "1h30m", "-1.5s", "100ms", "0". Returns 0, or -1 with ERR_INVALID. */
MUST_CHECK int cel_duration_parse(struct str text, int64_t *out_nanos, struct error *err);
/* Decimal seconds with "s", by way of a double as the reference does: digits beyond its precision are rounded. */
void duration_format_to(int64_t nanos, struct buf *out);

#endif
