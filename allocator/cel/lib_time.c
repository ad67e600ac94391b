/* Fields of timestamps and lengths of durations. */
#include "allocator/cel/lib.h"

#include "allocator/base/error.h"
#include "allocator/cel/timefmt.h"

#include "allocator/base/banned.h"

/* The calendar of a timestamp in UTC or in the zone of the second argument; false with the error in *out. */
static bool civil_of(struct cel_eval *e, const struct cel_value *args, size_t n_args, struct civil *out,
                     struct cel_value *out_error)
{
    struct timestamp t = {args[0].as.i, (int32_t)args[0].n, 0};
    struct error err = {0};
    int64_t offset = 0;

    if (n_args == 2 && zone_offset(cel_str(args[1]), &t, &offset, &err) < 0) {
        *out_error = cel_errorf(e, "%s", err.text);
        return false;
    }
    *out = timestamp_civil(&t, offset);
    return true;
}

#define FIELD(name, expression)                                                                                        \
    struct cel_value cel_fn_##name(struct cel_eval *e, const struct cel_value *args, size_t n_args)                    \
    {                                                                                                                  \
        struct cel_value error;                                                                                        \
        struct civil c;                                                                                                \
                                                                                                                       \
        return civil_of(e, args, n_args, &c, &error) ? cel_int(expression) : error;                                    \
    }

FIELD(full_year, c.year)
FIELD(month, c.month - 1)
FIELD(day_of_year, c.year_day)
FIELD(day_of_month, c.day - 1)
FIELD(date, c.day)
FIELD(day_of_week, c.weekday)

/* The same on a duration gives the whole of it in that unit. */
#define FIELD_OR_LENGTH(name, expression, nanos)                                                                       \
    struct cel_value cel_fn_##name(struct cel_eval *e, const struct cel_value *args, size_t n_args)                    \
    {                                                                                                                  \
        struct cel_value error;                                                                                        \
        struct civil c;                                                                                                \
                                                                                                                       \
        if (args[0].kind == CEL_V_DURATION)                                                                            \
            return cel_int(args[0].as.i / (nanos));                                                                    \
        return civil_of(e, args, n_args, &c, &error) ? cel_int(expression) : error;                                    \
    }

FIELD_OR_LENGTH(hours, c.hour, INT64_C(3600000000000))
FIELD_OR_LENGTH(minutes, c.minute, INT64_C(60000000000))
FIELD_OR_LENGTH(seconds, c.second, INT64_C(1000000000))
FIELD_OR_LENGTH(milliseconds, c.millisecond, INT64_C(1000000))
