/* allocator/cel/zone_internal.h - how zone_data.c holds the time zones; for zone.c only. */
#ifndef QUEUED_CEL_ZONE_INTERNAL_H
#define QUEUED_CEL_ZONE_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

/* One change of an offset: seconds since the change before (since 1970 for the first), and by how much. */
struct zone_step {
    int64_t seconds;
    int32_t change;
};

/* The day of a month on which a yearly change falls, and the second of that day on the clock before the change. Week 5
 * is the last one; weekday 0 is Sunday. */
struct zone_day {
    int month, week, weekday, second;
};

/* Yearly changes behind the last step: to `other` at start, back to `standard` at end. */
struct zone_rule {
    int32_t standard, other;
    struct zone_day start, end;
};

struct zone_history {
    int32_t first;     /* offset before all steps */
    int rule;          /* index + 1, 0 for none */
    const char *steps; /* indexes of steps, two digits of base 64 each, in the alphabet 0-9 A-Z a-z - _ */
};

struct zone_name {
    const char *name;
    int history;
};

struct zone_data {
    const struct zone_step *steps;
    const struct zone_rule *rules;
    const struct zone_history *histories;
    const struct zone_name *names; /* in byte order */
    size_t n_names;
};

extern const struct zone_data zone_data;

#endif
