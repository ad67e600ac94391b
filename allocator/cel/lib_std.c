/* Operators and conversions. Arithmetic of integers is checked; that of doubles never fails. */
#include "allocator/cel/lib.h"

#include <math.h>
#include <string.h>

#include "allocator/base/checked.h"
#include "allocator/base/error.h"
#include "allocator/cel/doublefmt.h"
#include "allocator/cel/timefmt.h"
#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

#define INT_OVERFLOW  "integer overflow"
#define UINT_OVERFLOW "unsigned integer overflow"

static struct timestamp stamp_of(struct cel_value v)
{
    return (struct timestamp){v.as.i, (int32_t)v.n, v.zone * 60};
}

static struct cel_value of_stamp(struct timestamp t)
{
    return cel_timestamp(t.seconds, (uint32_t)t.nanos, (int16_t)(t.offset / 60));
}

static struct cel_value error_of(struct cel_eval *e, const struct error *err)
{
    return cel_errorf(e, "%s", err->text);
}

/* ---- logic ---- */

struct cel_value cel_fn_not(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return args[0].kind == CEL_V_BOOL ? cel_bool(!args[0].as.b) : cel_no_overload();
}

struct cel_value cel_fn_not_strictly_false(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return args[0].kind == CEL_V_BOOL ? args[0] : cel_bool(true);
}

/* ---- arithmetic ---- */

struct cel_value cel_fn_negate(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    int64_t i;

    (void)e, (void)n_args;
    switch ((enum cel_kind)args[0].kind) {
    case CEL_V_INT:
        return checked_sub((int64_t)0, args[0].as.i, &i) ? cel_int(i) : cel_error(INT_OVERFLOW);
    case CEL_V_DURATION:
        return checked_sub((int64_t)0, args[0].as.i, &i) ? cel_duration(i) : cel_error(INT_OVERFLOW);
    case CEL_V_DOUBLE:
        return cel_double(-args[0].as.d);
    default:
        return cel_no_overload();
    }
}

static struct cel_value join_texts(struct cel_eval *e, struct cel_value a, struct cel_value b)
{
    char *room = cel_text_room(e, (size_t)a.n + b.n);

    if (!room)
        return cel_error(e->fatal_words);
    if (a.n)
        memcpy(room, a.as.s, a.n);
    if (b.n)
        memcpy(room + a.n, b.as.s, b.n);
    a.as.s = room;
    a.n += b.n;
    return a;
}

static struct cel_value add_time(struct cel_eval *e, struct cel_value stamp, int64_t nanos)
{
    struct timestamp t = stamp_of(stamp), sum;
    struct error err = {0};

    return timestamp_add(&t, nanos, &sum, &err) < 0 ? error_of(e, &err) : of_stamp(sum);
}

struct cel_value cel_fn_add(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cel_value a = args[0], b = args[1];
    int64_t i;
    uint64_t u;

    (void)n_args;
    if (a.kind == CEL_V_DURATION && b.kind == CEL_V_TIMESTAMP)
        return add_time(e, b, a.as.i);
    if (a.kind == CEL_V_TIMESTAMP && b.kind == CEL_V_DURATION)
        return add_time(e, a, b.as.i);
    if (a.kind != b.kind)
        return cel_no_overload();
    switch ((enum cel_kind)a.kind) {
    case CEL_V_INT:
        return checked_add(a.as.i, b.as.i, &i) ? cel_int(i) : cel_error(INT_OVERFLOW);
    case CEL_V_DURATION:
        return checked_add(a.as.i, b.as.i, &i) ? cel_duration(i) : cel_error(INT_OVERFLOW);
    case CEL_V_UINT:
        return checked_add(a.as.u, b.as.u, &u) ? cel_uint(u) : cel_error(UINT_OVERFLOW);
    case CEL_V_DOUBLE:
        return cel_double(a.as.d + b.as.d);
    case CEL_V_STRING:
    case CEL_V_BYTES:
        return join_texts(e, a, b);
    case CEL_V_LIST:
        return cel_concat_lists(e, a, b);
    default:
        return cel_no_overload();
    }
}

struct cel_value cel_fn_subtract(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cel_value a = args[0], b = args[1];
    struct error err = {0};
    struct timestamp s = stamp_of(a), t;
    int64_t i;
    uint64_t u;

    (void)n_args;
    if (a.kind == CEL_V_TIMESTAMP && b.kind == CEL_V_DURATION)
        return timestamp_sub(&s, b.as.i, &t, &err) < 0 ? error_of(e, &err) : of_stamp(t);
    if (a.kind != b.kind)
        return cel_no_overload();
    switch ((enum cel_kind)a.kind) {
    case CEL_V_INT:
        return checked_sub(a.as.i, b.as.i, &i) ? cel_int(i) : cel_error(INT_OVERFLOW);
    case CEL_V_DURATION:
        return checked_sub(a.as.i, b.as.i, &i) ? cel_duration(i) : cel_error(INT_OVERFLOW);
    case CEL_V_UINT:
        return checked_sub(a.as.u, b.as.u, &u) ? cel_uint(u) : cel_error(UINT_OVERFLOW);
    case CEL_V_DOUBLE:
        return cel_double(a.as.d - b.as.d);
    case CEL_V_TIMESTAMP:
        t = stamp_of(b);
        return timestamp_diff(&s, &t, &i, &err) < 0 ? error_of(e, &err) : cel_duration(i);
    default:
        return cel_no_overload();
    }
}

struct cel_value cel_fn_multiply(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cel_value a = args[0], b = args[1];
    int64_t i;
    uint64_t u;

    (void)e, (void)n_args;
    if (a.kind != b.kind)
        return cel_no_overload();
    if (a.kind == CEL_V_INT)
        return checked_mul(a.as.i, b.as.i, &i) ? cel_int(i) : cel_error(INT_OVERFLOW);
    if (a.kind == CEL_V_UINT)
        return checked_mul(a.as.u, b.as.u, &u) ? cel_uint(u) : cel_error(UINT_OVERFLOW);
    return a.kind == CEL_V_DOUBLE ? cel_double(a.as.d * b.as.d) : cel_no_overload();
}

/* Division by zero of doubles is defined by IEEE 754; the sanitizer would still complain. */
__attribute__((no_sanitize("float-divide-by-zero"))) static double divide_doubles(double a, double b)
{
    return a / b;
}

struct cel_value cel_fn_divide(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cel_value a = args[0], b = args[1];

    (void)e, (void)n_args;
    if (a.kind != b.kind)
        return cel_no_overload();
    if (a.kind == CEL_V_DOUBLE)
        return cel_double(divide_doubles(a.as.d, b.as.d));
    if (a.kind != CEL_V_INT && a.kind != CEL_V_UINT)
        return cel_no_overload();
    if (b.as.u == 0)
        return cel_error("division by zero");
    if (a.kind == CEL_V_UINT)
        return cel_uint(a.as.u / b.as.u);
    return a.as.i == INT64_MIN && b.as.i == -1 ? cel_error(INT_OVERFLOW) : cel_int(a.as.i / b.as.i);
}

struct cel_value cel_fn_modulo(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cel_value a = args[0], b = args[1];

    (void)e, (void)n_args;
    if (a.kind != b.kind || (a.kind != CEL_V_INT && a.kind != CEL_V_UINT))
        return cel_no_overload();
    if (b.as.u == 0)
        return cel_error("modulus by zero");
    if (a.kind == CEL_V_UINT)
        return cel_uint(a.as.u % b.as.u);
    return a.as.i == INT64_MIN && b.as.i == -1 ? cel_error(INT_OVERFLOW) : cel_int(a.as.i % b.as.i);
}

/* ---- order and membership ---- */

static struct cel_value compare(const struct cel_value *args, int want_a, int want_b)
{
    int order = 0;
    const char *words = cel_compare(args[0], args[1], &order);

    return words ? cel_error(words) : cel_bool(order == want_a || order == want_b);
}

struct cel_value cel_fn_less(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return compare(args, -1, -1);
}

struct cel_value cel_fn_less_equal(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return compare(args, -1, 0);
}

struct cel_value cel_fn_greater(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return compare(args, 1, 1);
}

struct cel_value cel_fn_greater_equal(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return compare(args, 1, 0);
}

struct cel_value cel_fn_in(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cel_value found;

    (void)n_args;
    if (args[1].kind == CEL_V_MAP)
        return cel_bool(cel_map_find(e, args[1].as.map, args[0], &found));
    if (args[1].kind != CEL_V_LIST)
        return cel_no_overload();
    for (int64_t i = 0; i < cel_list_len(args[1]) && !e->fatal; i++)
        if (cel_equal_method(e, args[0], cel_list_at(args[1], i)) == CEL_EQUAL)
            return cel_bool(true);
    return cel_bool(false);
}

struct cel_value cel_fn_size(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    switch ((enum cel_kind)args[0].kind) {
    case CEL_V_STRING:
        return cel_int((int64_t)utf8_count(cel_str(args[0])));
    case CEL_V_BYTES:
        return cel_int(args[0].n);
    case CEL_V_LIST:
        return cel_int(cel_list_len(args[0]));
    case CEL_V_MAP:
        return cel_int((int64_t)args[0].as.map->n);
    default:
        return cel_no_overload();
    }
}

/* ---- conversions ---- */

static struct cel_value cannot_convert(struct cel_eval *e, struct cel_value v, const char *to)
{
    return cel_errorf(e, "type conversion error from '%s' to '%s'", cel_kind_name(v), to);
}

struct cel_value cel_fn_identity(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return args[0];
}

struct cel_value cel_fn_type(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_type_value(cel_value_type(args[0]));
}

struct cel_value cel_fn_to_bool(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
    static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};

    (void)n_args;
    for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
        if (str_is(cel_str(args[0]), yes[i]))
            return cel_bool(true);
        if (str_is(cel_str(args[0]), no[i]))
            return cel_bool(false);
    }
    return cannot_convert(e, args[0], "bool");
}

struct cel_value cel_fn_to_bytes(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_octets(cel_str(args[0]));
}

struct cel_value cel_fn_to_double(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    double d;

    (void)n_args;
    switch ((enum cel_kind)args[0].kind) {
    case CEL_V_INT:
        return cel_double((double)args[0].as.i);
    case CEL_V_UINT:
        return cel_double((double)args[0].as.u);
    default:
        return double_parse(cel_str(args[0]), &d, NULL) < 0 ? cannot_convert(e, args[0], "double") : cel_double(d);
    }
}

struct cel_value cel_fn_to_duration(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    int64_t nanos;

    (void)n_args;
    if (cel_duration_parse(cel_str(args[0]), &nanos, NULL) < 0)
        return cannot_convert(e, args[0], "google.protobuf.Duration");
    return cel_duration(nanos);
}

/* Decimal digits with an optional sign, the whole text. */
static bool parse_digits(struct str s, bool allow_sign, bool *out_negative, uint64_t *out)
{
    size_t i = 0;

    *out = 0;
    *out_negative = false;
    if (allow_sign && s.len && (s.ptr[0] == '+' || s.ptr[0] == '-')) {
        *out_negative = s.ptr[0] == '-';
        i = 1;
    }
    if (i == s.len)
        return false;
    for (; i < s.len; i++)
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || !checked_mul(*out, 10u, out) ||
            !checked_add(*out, (unsigned)(s.ptr[i] - '0'), out))
            return false;
    return true;
}

struct cel_value cel_fn_to_int(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cel_value v = args[0];
    bool negative;
    uint64_t u;

    (void)n_args;
    switch ((enum cel_kind)v.kind) {
    case CEL_V_UINT:
        return v.as.u > INT64_MAX ? cel_error(INT_OVERFLOW) : cel_int((int64_t)v.as.u);
    case CEL_V_DOUBLE:
        return v.as.d > -0x1p63 && v.as.d < 0x1p63 ? cel_int((int64_t)v.as.d) : cel_error(INT_OVERFLOW);
    case CEL_V_DURATION:
    case CEL_V_TIMESTAMP:
        return cel_int(v.as.i);
    default:
        if (!parse_digits(cel_str(v), true, &negative, &u) || u > (uint64_t)INT64_MAX + negative)
            return cannot_convert(e, v, "int");
        return cel_int(negative ? (int64_t)(0 - u) : (int64_t)u);
    }
}

struct cel_value cel_fn_to_uint(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cel_value v = args[0];
    bool negative;
    uint64_t u;

    (void)n_args;
    switch ((enum cel_kind)v.kind) {
    case CEL_V_INT:
        return v.as.i < 0 ? cel_error(UINT_OVERFLOW) : cel_uint((uint64_t)v.as.i);
    case CEL_V_DOUBLE:
        return v.as.d >= 0 && v.as.d < 0x1p64 ? cel_uint((uint64_t)v.as.d) : cel_error(UINT_OVERFLOW);
    default:
        return parse_digits(cel_str(v), false, &negative, &u) ? cel_uint(u) : cannot_convert(e, v, "uint");
    }
}

struct cel_value cel_fn_to_timestamp(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct error err = {0};
    struct timestamp t;

    (void)n_args;
    if (args[0].kind == CEL_V_INT) {
        if (timestamp_of_unix(args[0].as.i, &t, &err) < 0)
            return error_of(e, &err);
    } else if (timestamp_parse(cel_str(args[0]), &t, &err) < 0) {
        if (strstr(err.text, "timestamp overflow"))
            return cel_error("timestamp overflow");
        return cannot_convert(e, args[0], "google.protobuf.Timestamp");
    }
    return of_stamp(t);
}

struct cel_value cel_fn_to_string(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cel_value v = args[0];
    struct timestamp t = stamp_of(v);
    BUF text = {0};

    (void)n_args;
    switch ((enum cel_kind)v.kind) {
    case CEL_V_BYTES:
        if (!utf8_is_valid(cel_str(v)))
            return cel_error("invalid UTF-8 in bytes, cannot convert to string");
        return cel_text(cel_str(v));
    case CEL_V_TIMESTAMP:
        timestamp_format_to(&t, &text);
        break;
    default:
        cel_value_show(v, &text, 64);
        break;
    }
    return cel_text_copy(e, (struct str){text.data, text.len});
}
