#include "allocator/cel/value.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "allocator/base/arena.h"
#include "allocator/cel/doublefmt.h"
#include "allocator/cel/eval.h"
#include "allocator/cel/namedformat.h"
#include "allocator/cel/net.h"
#include "allocator/cel/semver.h"
#include "allocator/cel/timefmt.h"
#include "allocator/cel/url.h"

#include "allocator/base/banned.h"

struct cel_value cel_errorf(struct cel_eval *e, const char *fmt, ...)
{
    va_list args;
    struct cel_value v;

    va_start(args, fmt);
    v = cel_error(arena_vprintf(e->arena, fmt, args));
    va_end(args);
    return v;
}

static const struct cel_type *const kind_types[CEL_V_KINDS] = {
    [CEL_V_ERROR] = &cel_t_error,
    [CEL_V_NULL] = &cel_t_null,
    [CEL_V_BOOL] = &cel_t_bool,
    [CEL_V_INT] = &cel_t_int,
    [CEL_V_UINT] = &cel_t_uint,
    [CEL_V_DOUBLE] = &cel_t_double,
    [CEL_V_STRING] = &cel_t_string,
    [CEL_V_BYTES] = &cel_t_bytes,
    [CEL_V_TIMESTAMP] = &cel_t_timestamp,
    [CEL_V_DURATION] = &cel_t_duration,
    [CEL_V_TYPE] = &cel_t_type,
    [CEL_V_LIST] = &cel_t_list_dyn,
    [CEL_V_MAP] = &cel_t_map_dyn,
    [CEL_V_OPTIONAL] = &cel_t_optional_a,
    [CEL_V_QUANTITY] = &cel_t_quantity,
    [CEL_V_SEMVER] = &cel_t_semver,
    [CEL_V_IP] = &cel_t_ip,
    [CEL_V_CIDR] = &cel_t_cidr,
    [CEL_V_URL] = &cel_t_url,
    [CEL_V_FORMAT] = &cel_t_format,
};

const struct cel_type *cel_value_type(struct cel_value v)
{
    return kind_types[v.kind];
}

const char *cel_kind_name(struct cel_value v)
{
    return cel_type_name(cel_value_type(v));
}

/* ---- lists ---- */

int64_t cel_list_len(struct cel_value list)
{
    switch ((enum cel_list_form)list.form) {
    case CEL_LIST_FLAT:
        return list.n;
    case CEL_LIST_CONCAT:
        return list.as.concat->n;
    case CEL_LIST_GROWING:
        return (int64_t)list.as.growing->n;
    }
    return 0;
}

struct cel_value cel_list_at(struct cel_value list, int64_t i)
{
    while (list.form == CEL_LIST_CONCAT) {
        int64_t left = cel_list_len(list.as.concat->left);

        if (i < left) {
            list = list.as.concat->left;
        } else {
            list = list.as.concat->right;
            i -= left;
        }
    }
    return list.form == CEL_LIST_GROWING ? list.as.growing->items[i] : list.as.items[i];
}

/* ---- comparison ---- */

static int order_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int order_i64(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int order_double(double a, double b)
{
    return a < b ? -1 : a > b;
}

static int order_double_int(double d, int64_t i)
{
    if (d < -0x1p63)
        return -1;
    if (d > 0x1p63) /* the largest int64 becomes 2^63 as a double */
        return 1;
    return order_double(d, (double)i);
}

static int order_double_uint(double d, uint64_t u)
{
    if (d < 0)
        return -1;
    if (d > 0x1p64)
        return 1;
    return order_double(d, (double)u);
}

static int order_int_uint(int64_t i, uint64_t u)
{
    return i < 0 || u > INT64_MAX ? -1 : order_i64(i, (int64_t)u);
}

static bool is_number(struct cel_value v)
{
    return v.kind == CEL_V_INT || v.kind == CEL_V_UINT || v.kind == CEL_V_DOUBLE;
}

/* Two numbers, neither of them NaN. */
static int order_numbers(struct cel_value a, struct cel_value b)
{
    if (a.kind == b.kind) {
        if (a.kind == CEL_V_INT)
            return order_i64(a.as.i, b.as.i);
        return a.kind == CEL_V_UINT ? order_u64(a.as.u, b.as.u) : order_double(a.as.d, b.as.d);
    }
    if (a.kind == CEL_V_DOUBLE)
        return b.kind == CEL_V_INT ? order_double_int(a.as.d, b.as.i) : order_double_uint(a.as.d, b.as.u);
    if (b.kind == CEL_V_DOUBLE)
        return -order_numbers(b, a);
    return a.kind == CEL_V_INT ? order_int_uint(a.as.i, b.as.u) : -order_int_uint(b.as.i, a.as.u);
}

static bool is_nan(struct cel_value v)
{
    return v.kind == CEL_V_DOUBLE && isnan(v.as.d);
}

const char *cel_compare(struct cel_value a, struct cel_value b, int *out)
{
    if (is_nan(a) || (is_number(a) && is_nan(b)))
        return "NaN values cannot be ordered";
    if (is_number(a) && is_number(b)) {
        *out = order_numbers(a, b);
        return NULL;
    }
    if (a.kind != b.kind)
        return CEL_NO_OVERLOAD;
    switch ((enum cel_kind)a.kind) {
    case CEL_V_BOOL:
        *out = (int)a.as.b - (int)b.as.b;
        return NULL;
    case CEL_V_STRING:
    case CEL_V_BYTES:
        *out = str_cmp(cel_str(a), cel_str(b));
        *out = *out < 0 ? -1 : *out > 0;
        return NULL;
    case CEL_V_DURATION:
        *out = order_i64(a.as.i, b.as.i);
        return NULL;
    case CEL_V_TIMESTAMP:
        *out = order_i64(a.as.i, b.as.i);
        if (!*out)
            *out = order_u64(a.n, b.n);
        return NULL;
    default:
        return CEL_NO_OVERLOAD;
    }
}

/* ---- equality ---- */

static enum cel_equality verdict(bool equal)
{
    return equal ? CEL_EQUAL : CEL_DIFFERENT;
}

static enum cel_equality equal_lists(struct cel_eval *e, struct cel_value a, struct cel_value b)
{
    int64_t n = cel_list_len(a);
    bool incomparable = false;

    if (b.kind != CEL_V_LIST || n != cel_list_len(b))
        return CEL_DIFFERENT;
    for (int64_t i = 0; i < n && !e->fatal; i++) {
        enum cel_equality one = cel_equal(e, cel_list_at(a, i), cel_list_at(b, i));

        if (one == CEL_DIFFERENT)
            return CEL_DIFFERENT;
        incomparable = incomparable || one == CEL_INCOMPARABLE;
    }
    /* Only a concatenation reports that elements could not be compared. */
    return incomparable && a.form == CEL_LIST_CONCAT ? CEL_INCOMPARABLE : CEL_EQUAL;
}

static enum cel_equality equal_maps(struct cel_eval *e, struct cel_value a, struct cel_value b)
{
    if (b.kind != CEL_V_MAP || a.as.map->n != b.as.map->n)
        return CEL_DIFFERENT;
    for (size_t i = 0; i < a.as.map->n && !e->fatal; i++) {
        const struct cel_entry *entry = &a.as.map->entries[i];
        struct cel_value other;

        if (!cel_map_lookup(e, b.as.map, entry->key, &other) || cel_equal(e, entry->value, other) == CEL_DIFFERENT)
            return CEL_DIFFERENT;
    }
    return CEL_EQUAL;
}

/* Values of the Kubernetes libraries refuse everything but their own kind. */
static enum cel_equality equal_hosts(struct cel_value a, struct cel_value b)
{
    if (a.kind != b.kind)
        return CEL_INCOMPARABLE;
    switch ((enum cel_kind)a.kind) {
    case CEL_V_QUANTITY:
        if (b.form == CEL_QUANTITY_COMPUTED)
            return CEL_INCOMPARABLE;
        return verdict(quantity_cmp(a.as.quantity, b.as.quantity) == 0);
    case CEL_V_SEMVER:
        return verdict(semver_cmp(a.as.semver, b.as.semver) == 0);
    case CEL_V_IP:
        return verdict(ip_eq(a.as.ip, b.as.ip));
    case CEL_V_CIDR:
        return verdict(cidr_eq(a.as.cidr, b.as.cidr));
    case CEL_V_URL:
        return verdict(url_eq(a.as.url, b.as.url));
    default:
        return verdict(strcmp(a.as.format->title, b.as.format->title) == 0);
    }
}

enum cel_equality cel_equal_method(struct cel_eval *e, struct cel_value a, struct cel_value b)
{
    if (!cel_work(e, 1))
        return CEL_INCOMPARABLE;
    switch ((enum cel_kind)a.kind) {
    case CEL_V_ERROR:
        return CEL_INCOMPARABLE;
    case CEL_V_NULL:
        return verdict(b.kind == CEL_V_NULL);
    case CEL_V_BOOL:
        return verdict(b.kind == CEL_V_BOOL && a.as.b == b.as.b);
    case CEL_V_INT:
    case CEL_V_UINT:
    case CEL_V_DOUBLE:
        return verdict(is_number(b) && !is_nan(a) && !is_nan(b) && order_numbers(a, b) == 0);
    case CEL_V_STRING:
    case CEL_V_BYTES:
        return verdict(a.kind == b.kind && a.n == b.n && (!a.n || memcmp(a.as.s, b.as.s, a.n) == 0));
    case CEL_V_TIMESTAMP:
        return verdict(b.kind == CEL_V_TIMESTAMP && a.as.i == b.as.i && a.n == b.n);
    case CEL_V_DURATION:
        return verdict(b.kind == CEL_V_DURATION && a.as.i == b.as.i);
    case CEL_V_TYPE:
        return verdict(b.kind == CEL_V_TYPE && strcmp(cel_type_name(a.as.type), cel_type_name(b.as.type)) == 0);
    case CEL_V_LIST:
        return equal_lists(e, a, b);
    case CEL_V_MAP:
        return equal_maps(e, a, b);
    case CEL_V_OPTIONAL:
        if (b.kind != CEL_V_OPTIONAL)
            return CEL_DIFFERENT;
        if (!a.as.content || !b.as.content)
            return verdict(!a.as.content && !b.as.content);
        return cel_equal_method(e, *a.as.content, *b.as.content);
    case CEL_V_QUANTITY:
    case CEL_V_SEMVER:
    case CEL_V_IP:
    case CEL_V_CIDR:
    case CEL_V_URL:
    case CEL_V_FORMAT:
        return equal_hosts(a, b);
    case CEL_V_KINDS:
        break;
    }
    return CEL_DIFFERENT;
}

enum cel_equality cel_equal(struct cel_eval *e, struct cel_value a, struct cel_value b)
{
    if (a.kind == CEL_V_NULL || b.kind == CEL_V_NULL)
        return verdict(a.kind == b.kind);
    return cel_equal_method(e, a, b);
}

/* ---- words ---- */

static void show_map(const struct cel_map *map, struct buf *out, size_t max)
{
    buf_addc(out, '{');
    for (size_t i = 0; i < map->n && out->len < max; i++) {
        if (i)
            buf_adds(out, ", ");
        cel_value_show(map->entries[i].key, out, max);
        buf_adds(out, ": ");
        cel_value_show(map->entries[i].value, out, max);
    }
    buf_addc(out, '}');
}

static void show_list(struct cel_value list, struct buf *out, size_t max)
{
    buf_addc(out, '[');
    for (int64_t i = 0; i < cel_list_len(list) && out->len < max; i++) {
        if (i)
            buf_adds(out, ", ");
        cel_value_show(cel_list_at(list, i), out, max);
    }
    buf_addc(out, ']');
}

static void show_host(struct cel_value v, struct buf *out)
{
    switch ((enum cel_kind)v.kind) {
    case CEL_V_QUANTITY:
        quantity_format_to(v.as.quantity, out);
        break;
    case CEL_V_SEMVER:
        semver_format_to(v.as.semver, out);
        break;
    case CEL_V_IP:
        ip_format_to(v.as.ip, out);
        break;
    case CEL_V_CIDR:
        cidr_format_to(v.as.cidr, out);
        break;
    case CEL_V_URL:
        buf_add(out, v.as.url->normal.ptr, v.as.url->normal.len);
        break;
    default:
        buf_adds(out, v.as.format->name);
        break;
    }
}

void cel_value_show(struct cel_value v, struct buf *out, size_t max)
{
    if (out->len >= max)
        return;
    switch ((enum cel_kind)v.kind) {
    case CEL_V_ERROR:
        buf_adds(out, v.as.s);
        break;
    case CEL_V_NULL:
        buf_adds(out, "null");
        break;
    case CEL_V_BOOL:
        buf_adds(out, v.as.b ? "true" : "false");
        break;
    case CEL_V_INT:
        buf_addf(out, "%lld", (long long)v.as.i);
        break;
    case CEL_V_UINT:
        buf_addf(out, "%llu", (unsigned long long)v.as.u);
        break;
    case CEL_V_DOUBLE:
        double_format_to(v.as.d, out);
        break;
    case CEL_V_STRING:
    case CEL_V_BYTES:
        buf_add(out, v.as.s, v.n < max - out->len ? v.n : max - out->len);
        break;
    case CEL_V_TIMESTAMP:
        timestamp_format_to(&(struct timestamp){v.as.i, (int32_t)v.n, v.zone * 60}, out);
        break;
    case CEL_V_DURATION:
        duration_format_to(v.as.i, out);
        break;
    case CEL_V_TYPE:
        buf_adds(out, cel_type_name(v.as.type));
        break;
    case CEL_V_LIST:
        show_list(v, out, max);
        break;
    case CEL_V_MAP:
        show_map(v.as.map, out, max);
        break;
    case CEL_V_OPTIONAL:
        buf_adds(out, v.as.content ? "optional(" : "optional.none()");
        if (v.as.content) {
            cel_value_show(*v.as.content, out, max);
            buf_addc(out, ')');
        }
        break;
    case CEL_V_QUANTITY:
    case CEL_V_SEMVER:
    case CEL_V_IP:
    case CEL_V_CIDR:
    case CEL_V_URL:
    case CEL_V_FORMAT:
        show_host(v, out);
        break;
    case CEL_V_KINDS:
        break;
    }
}
