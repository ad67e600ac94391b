#include "allocator/cel/zone.h"

#include "allocator/cel/timefmt.h"
#include "allocator/cel/zone_internal.h"

#include "allocator/base/banned.h"

#define SECONDS_PER_DAY 86400

static const struct zone_history *find(struct str name)
{
    size_t low = 0, high = zone_data.n_names;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_cmp(name, str_of(zone_data.names[middle].name));

        if (order == 0)
            return &zone_data.histories[zone_data.names[middle].history];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'Z')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 36;
    return c == '-' ? 62 : 63;
}

/* Seconds since 1970 of the rule's day in a year, read on a clock with that offset. */
static int64_t instant(const struct zone_day *day, int64_t year, int32_t offset)
{
    int64_t first = civil_days(year, day->month, 1);
    int weekday = civil_weekday(first), length = civil_month_length(year, day->month);
    int date = 1 + (day->weekday - weekday + 7) % 7 + (day->week - 1) * 7;

    if (date > length)
        date -= 7;
    return (first + date - 1) * SECONDS_PER_DAY + day->second - offset;
}

static int32_t rule_offset(const struct zone_rule *rule, int64_t seconds)
{
    struct timestamp t = {.seconds = seconds};
    int64_t year = timestamp_civil(&t, rule->standard).year;
    int64_t start = instant(&rule->start, year, rule->standard), end = instant(&rule->end, year, rule->other);
    bool is_between = start < end ? seconds >= start && seconds < end : seconds >= start || seconds < end;

    return is_between ? rule->other : rule->standard;
}

bool zone_rules_offset(struct str name, int64_t seconds, int64_t *out_offset)
{
    const struct zone_history *history = find(name);
    int64_t at = 0, offset;

    if (!history)
        return false;
    offset = history->first;
    for (const char *p = history->steps; *p != '\0'; p += 2) {
        const struct zone_step *step = &zone_data.steps[digit(p[0]) * 64 + digit(p[1])];

        at += step->seconds;
        if (seconds < at) {
            *out_offset = offset;
            return true;
        }
        offset += step->change;
    }
    *out_offset = history->rule ? rule_offset(&zone_data.rules[history->rule - 1], seconds) : offset;
    return true;
}
