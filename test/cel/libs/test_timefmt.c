#include "test/support/cmocka.h"

#include <string.h>

#include "allocator/base/error.h"
#include "allocator/cel/timefmt.h"

static const struct timestamp_case {
    const char *name; /* the text */
    int64_t seconds;
    int32_t nanos;
    const char *printed;
} timestamp_cases[] = {
    {"2009-02-13T23:31:30Z", 1234567890, 0, "2009-02-13T23:31:30Z"},
    {"1970-01-01T00:00:00Z", 0, 0, "1970-01-01T00:00:00Z"},
    {"0001-01-01T00:00:00Z", TIMESTAMP_MIN_SECONDS, 0, "0001-01-01T00:00:00Z"},
    {"9999-12-31T23:59:59.999999999Z", TIMESTAMP_MAX_SECONDS, 999999999, "9999-12-31T23:59:59.999999999Z"},
    {"2000-02-29T00:00:00Z", 951782400, 0, "2000-02-29T00:00:00Z"},
    {"1969-12-31T23:59:59.5Z", -1, 500000000, "1969-12-31T23:59:59.5Z"},
    {"2023-06-15T08:00:00+02:00", 1686808800, 0, "2023-06-15T08:00:00+02:00"},
    {"2024-01-01T00:00:00-07:30", 1704094200, 0, "2024-01-01T00:00:00-07:30"},
    {"2024-01-01T00:00:00+00:00", 1704067200, 0, "2024-01-01T00:00:00Z"},
    {"2024-01-01T00:00:00,25Z", 1704067200, 250000000, "2024-01-01T00:00:00.25Z"},
    {"2024-01-01T00:00:00.1234567899Z", 1704067200, 123456789, "2024-01-01T00:00:00.123456789Z"},
    {"2024-01-01T5:00:00Z", 1704085200, 0, "2024-01-01T05:00:00Z"}, /* Go reads one digit of an hour */
    {"2024-01-02T00:00:00+24:60", 1704063600, 0, "2024-01-02T00:00:00+25:00"},
};

static void test_timefmt__timestamp(void **state)
{
    const struct timestamp_case *c = *state;
    struct timestamp t;
    BUF text = {0};

    assert_int_equal(timestamp_parse(str_of(c->name), &t, NULL), 0);
    assert_int_equal(t.seconds, c->seconds);
    assert_int_equal(t.nanos, c->nanos);
    timestamp_format_to(&t, &text);
    assert_string_equal(buf_str(&text), c->printed);
}

static const struct refusal_case {
    const char *name; /* the text */
    const char *why;
} timestamp_refusals[] = {
    {"", "RFC 3339"},
    {"2024-01-01 00:00:00Z", "RFC 3339"},
    {"2024-01-01T00:00:00", "RFC 3339"},
    {"2024-01-01t00:00:00Z", "RFC 3339"},
    {"2024-01-01T00:00:00z", "RFC 3339"},
    {"2024-02-30T00:00:00Z", "RFC 3339"},
    {"1900-02-29T00:00:00Z", "RFC 3339"},
    {"2024-13-01T00:00:00Z", "RFC 3339"},
    {"2024-01-01T24:00:00Z", "RFC 3339"},
    {"2024-01-01T00:00:60Z", "RFC 3339"},
    {"2024-01-01T00:00:00.Z", "RFC 3339"},
    {"2024-01-01T00:00:00+25:00", "RFC 3339"},
    {"2024-01-01T00:00:00+0100", "RFC 3339"},
    {"10000-01-01T00:00:00Z", "RFC 3339"},
    {"0000-01-01T00:00:00Z", "timestamp overflow"},
    {"9999-12-31T23:59:59-01:00", "timestamp overflow"},
};

static void test_timefmt__timestamp_refusal(void **state)
{
    const struct refusal_case *c = *state;
    struct error err = {0};
    struct timestamp t;

    assert_int_equal(timestamp_parse(str_of(c->name), &t, &err), -1);
    assert_non_null(strstr(err.text, c->why));
}

static const struct civil_case {
    const char *name;
    const char *time, *zone;
    struct civil want;
} civil_cases[] = {
    {"in UTC", "2009-02-13T23:31:30.123456789Z", "UTC", {2009, 2, 13, 5, 43, 23, 31, 30, 123}},
    {"the offset of the text does not count", "2009-02-14T01:31:30+02:00", "", {2009, 2, 13, 5, 43, 23, 31, 30, 0}},
    {"east of UTC", "2009-02-13T23:31:30Z", "+11:00", {2009, 2, 14, 6, 44, 10, 31, 30, 0}},
    {"west of UTC", "2009-02-13T02:00:00Z", "-02:30", {2009, 2, 12, 4, 42, 23, 30, 0, 0}},
    {"no sign", "2009-02-13T23:31:30Z", "02:00", {2009, 2, 14, 6, 44, 1, 31, 30, 0}},
    {"far offsets", "2009-02-13T23:31:30Z", "+99:00", {2009, 2, 18, 3, 48, 2, 31, 30, 0}},
    {"a zone by name", "2009-02-13T23:31:30Z", "Asia/Kathmandu", {2009, 2, 14, 6, 44, 5, 16, 30, 0}},
    {"an old name of a zone", "2009-02-13T23:31:30Z", "US/Central", {2009, 2, 13, 5, 43, 17, 31, 30, 0}},
    {"its summer", "2009-07-13T23:31:30Z", "US/Central", {2009, 7, 13, 1, 193, 18, 31, 30, 0}},
    {"summer in the south", "2009-02-13T23:31:30Z", "Australia/Sydney", {2009, 2, 14, 6, 44, 10, 31, 30, 0}},
    {"the last second of summer time", "2024-11-03T05:59:59Z", "America/New_York", {2024, 11, 3, 0, 307, 1, 59, 59, 0}},
    {"the first one after it", "2024-11-03T06:00:00Z", "America/New_York", {2024, 11, 3, 0, 307, 1, 0, 0, 0}},
    {"a rule goes on for ever", "9999-07-01T12:00:00Z", "Europe/Berlin", {9999, 7, 1, 4, 181, 14, 0, 0, 0}},
    {"local mean time before the zones", "0001-01-01T12:00:00Z", "America/New_York", {1, 1, 1, 1, 0, 7, 3, 58, 0}},
    {"winter time is the special one", "2024-01-15T12:00:00Z", "Europe/Dublin", {2024, 1, 15, 1, 14, 12, 0, 0, 0}},
    {"no changes since long", "2024-07-01T00:00:00Z", "Asia/Tokyo", {2024, 7, 1, 1, 182, 9, 0, 0, 0}},
    {"the last day of a leap year", "2024-12-31T00:00:00Z", "Local", {2024, 12, 31, 2, 365, 0, 0, 0, 0}},
    {"before the first year", "0001-01-01T00:00:00Z", "-01:00", {0, 12, 31, 0, 365, 23, 0, 0, 0}},
};

static void test_timefmt__civil(void **state)
{
    const struct civil_case *c = *state;
    struct timestamp t;
    struct civil got;
    int64_t offset;

    assert_int_equal(timestamp_parse(str_of(c->time), &t, NULL), 0);
    assert_int_equal(zone_offset(str_of(c->zone), &t, &offset, NULL), 0);
    got = timestamp_civil(&t, offset);
    assert_int_equal(got.year, c->want.year);
    assert_int_equal(got.month, c->want.month);
    assert_int_equal(got.day, c->want.day);
    assert_int_equal(got.weekday, c->want.weekday);
    assert_int_equal(got.year_day, c->want.year_day);
    assert_int_equal(got.hour, c->want.hour);
    assert_int_equal(got.minute, c->want.minute);
    assert_int_equal(got.second, c->want.second);
    assert_int_equal(got.millisecond, c->want.millisecond);
}

static const char *const bad_zones[] = {
    "utc", "x:00", "1:", ":00", "Nowhere/City", "asia/tokyo", "Asia/Tokyo ", "../UTC", "12345678901234:00", "+1:2:3"};

static void test_timefmt__bad_zones_are_refused(void **state)
{
    struct timestamp t = {0};
    int64_t offset;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad_zones); i++)
        assert_int_equal(zone_offset(str_of(bad_zones[i]), &t, &offset, NULL), -1);
}

static void test_timefmt__every_day_follows_the_one_before(void **state)
{
    struct timestamp t = {.seconds = TIMESTAMP_MIN_SECONDS};
    struct civil before = timestamp_civil(&t, 0);

    (void)state;
    for (t.seconds += 86400; t.seconds <= TIMESTAMP_MAX_SECONDS; t.seconds += 86400) {
        struct civil c = timestamp_civil(&t, 0);

        assert_int_equal(c.weekday, (before.weekday + 1) % 7);
        if (c.day == 1)
            assert_true(before.day >= 28 && c.month == before.month % 12 + 1);
        else
            assert_true(c.day == before.day + 1 && c.month == before.month && c.year_day == before.year_day + 1);
        before = c;
    }
    assert_true(before.year == 9999 && before.month == 12 && before.day == 31);
}

static void test_timefmt__arithmetic(void **state)
{
    struct timestamp t, sum;
    struct error err = {0};
    int64_t nanos;

    (void)state;
    assert_int_equal(timestamp_parse(STR("0001-01-01T00:00:01.000000001Z"), &t, NULL), 0);
    assert_int_equal(timestamp_add(&t, -999999999, &sum, NULL), 0);
    assert_true(sum.seconds == TIMESTAMP_MIN_SECONDS && sum.nanos == 2);
    assert_int_equal(timestamp_diff(&t, &sum, &nanos, NULL), 0);
    assert_int_equal(nanos, 999999999);
    assert_int_equal(timestamp_sub(&t, 2000000000, &sum, &err), -1);
    assert_string_equal(err.text, "timestamp overflow");
    assert_int_equal(timestamp_of_unix(TIMESTAMP_MAX_SECONDS, &sum, NULL), 0);
    assert_int_equal(timestamp_diff(&sum, &t, &nanos, &err), -1);
    assert_string_equal(err.text, "integer overflow");
    assert_int_equal(timestamp_of_unix(TIMESTAMP_MAX_SECONDS + 1, &sum, &err), -1);
}

static const struct duration_case {
    const char *name; /* the text */
    int64_t nanos;
    const char *printed;
} duration_cases[] = {
    {"0", 0, "0s"},
    {"-0", 0, "0s"},
    {"1h30m", 5400000000000, "5400s"},
    {"-1.5s", -1500000000, "-1.5s"},
    {"100ms", 100000000, "0.1s"},
    {"1us2ns", 1002, "0.000001002s"},
    {"1\xC2\xB5s", 1000, "0.000001s"},
    {"1\xCE\xBCs", 1000, "0.000001s"},
    {".5m", 30000000000, "30s"},
    {"1.h", 3600000000000, "3600s"},
    {"0.000000001h", 3600, "0.0000036s"},
    {"9223372036854775807ns", INT64_MAX, "9223372036.854776s"}, /* by way of a double */
    {"-9223372036854775808ns", INT64_MIN, "-9223372036.854776s"},
};

static void test_timefmt__duration(void **state)
{
    const struct duration_case *c = *state;
    BUF text = {0};
    int64_t nanos;

    assert_int_equal(cel_duration_parse(str_of(c->name), &nanos, NULL), 0);
    assert_int_equal(nanos, c->nanos);
    duration_format_to(nanos, &text);
    assert_string_equal(buf_str(&text), c->printed);
}

static const struct refusal_case duration_refusals[] = {
    {"", "time: invalid duration \"\""}, {"1", "invalid duration"},
    {"1d", "invalid duration"},          {"1 s", "invalid duration"},
    {".s", "invalid duration"},          {"-", "invalid duration"},
    {"1S", "invalid duration"},          {"9223372036854775808ns", "invalid duration"},
    {"2562048h", "invalid duration"},    {"99999999999999999999h", "invalid duration"},
};

static void test_timefmt__duration_refusal(void **state)
{
    const struct refusal_case *c = *state;
    struct error err = {0};
    int64_t nanos;

    assert_int_equal(cel_duration_parse(str_of(c->name), &nanos, &err), -1);
    assert_non_null(strstr(err.text, c->why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timefmt__bad_zones_are_refused),
        cmocka_unit_test(test_timefmt__every_day_follows_the_one_before),
        cmocka_unit_test(test_timefmt__arithmetic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_TABLE(test_timefmt__timestamp, timestamp_cases) +
           RUN_TABLE(test_timefmt__timestamp_refusal, timestamp_refusals) +
           RUN_TABLE(test_timefmt__civil, civil_cases) + RUN_TABLE(test_timefmt__duration, duration_cases) +
           RUN_TABLE(test_timefmt__duration_refusal, duration_refusals);
}
