#include "allocator/cel/strformat.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/checked.h"
#include "allocator/base/error.h"
#include "allocator/base/mem.h"
#include "allocator/cel/doublefmt.h"
#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

#define DEFAULT_PRECISION 6
#define SPECIAL_COLUMNS   6 /* %e pads infinities and NaN to as many */
#define MAX_PRECISION     1000000

/* ---- the clauses ---- */

#define INTEGERS (BIT(FORMAT_INT) | BIT(FORMAT_UINT))
#define TEXTS    (BIT(FORMAT_STRING) | BIT(FORMAT_BYTES))

static const struct format_clause clauses[] = {
    {'s', -1, BIT(FORMAT_OTHER) - 1,
     "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
     "timestamps"},
    {'d', -1, INTEGERS, "decimal clause can only be used on integers"},
    {'f', -1, BIT(FORMAT_DOUBLE) | BIT(FORMAT_STRING), "fixed-point clause can only be used on doubles"},
    {'e', -1, BIT(FORMAT_DOUBLE) | BIT(FORMAT_STRING), "scientific clause can only be used on doubles"},
    {'b', -1, INTEGERS | BIT(FORMAT_BOOL), "only integers and bools can be formatted as binary"},
    {'o', -1, INTEGERS, "octal clause can only be used on integers"},
    {'x', -1, INTEGERS | TEXTS, "only integers, byte buffers, and strings can be formatted as hex"},
    {'X', -1, INTEGERS | TEXTS, "only integers, byte buffers, and strings can be formatted as hex"},
};

static int refuse_clause(struct error *err, const char *why)
{
    return error_set(err, ERR_INVALID, "could not parse formatting clause: %s", why);
}

/* [ "." digits ]; *at is behind the percent sign. */
static int read_precision(struct str format, size_t *at, int *out, struct error *err)
{
    size_t from = *at + 1;
    int64_t value = 0;
    bool fits = true;

    *out = -1;
    if (format.ptr[*at] != '.')
        return 0;
    for (++*at; *at < format.len && format.ptr[*at] >= '0' && format.ptr[*at] <= '9'; ++*at)
        fits = fits && checked_mul(value, 10, &value) && checked_add(value, format.ptr[*at] - '0', &value);
    if (*at == format.len)
        return refuse_clause(err, "error while parsing precision: could not find end of precision specifier");
    if (*at == from)
        return refuse_clause(err, "error while parsing precision: error while converting precision to integer: "
                                  "strconv.Atoi: parsing \"\": invalid syntax");
    if (!fits)
        return error_set(err, ERR_INVALID,
                         "could not parse formatting clause: error while parsing precision: error while converting "
                         "precision to integer: strconv.Atoi: parsing \"%.*s\": value out of range",
                         (int)(*at - from), format.ptr + from);
    *out = value > INT_MAX ? INT_MAX : (int)value;
    return 0;
}

static int read_clause(struct str format, size_t *at, struct format_clause *out, struct error *err)
{
    char letter[4];
    int precision, n;

    if (*at == format.len)
        return error_set(err, ERR_INVALID, "unexpected end of string");
    if (read_precision(format, at, &precision, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(clauses); i++) {
        if (clauses[i].letter != format.ptr[*at])
            continue;
        *out = clauses[i];
        out->precision = precision;
        ++*at;
        return 1;
    }
    n = (int)utf8_encode((uint8_t)format.ptr[*at], letter);
    return error_set(err, ERR_INVALID, "could not parse formatting clause: unrecognized formatting clause \"%.*s\"", n,
                     letter);
}

/* Copies plain text until the next clause, which takes argument number `index`. */
static int next_clause(struct str format, size_t *at, size_t index, size_t n_arguments, struct buf *plain,
                       struct format_clause *out, struct error *err)
{
    for (; *at < format.len; ++*at) {
        if (format.ptr[*at] != '%') {
            buf_addc(plain, format.ptr[*at]);
            continue;
        }
        ++*at;
        if (*at < format.len && format.ptr[*at] == '%') {
            buf_addc(plain, '%');
            continue;
        }
        if (index >= n_arguments)
            return error_set(err, ERR_INVALID, "index %zu out of range", index);
        return read_clause(format, at, out, err);
    }
    return 0;
}

int format_next_clause(struct str format, size_t *at, size_t index, size_t n_arguments, struct format_clause *out,
                       struct error *err)
{
    BUF plain = {0};

    return next_clause(format, at, index, n_arguments, &plain, out, err);
}

int format_misfit(const struct format_clause *clause, struct str type_name, struct error *err)
{
    return error_set(err, ERR_INVALID, "error during formatting: %s, was given %.*s", clause->misfit,
                     STR_FMT(type_name));
}

static struct str type_name(const struct format_value *value)
{
    static const char *const names[] = {
        [FORMAT_BOOL] = "bool",
        [FORMAT_INT] = "int",
        [FORMAT_UINT] = "uint",
        [FORMAT_DOUBLE] = "double",
        [FORMAT_STRING] = "string",
        [FORMAT_BYTES] = "bytes",
        [FORMAT_NULL] = "null_type",
        [FORMAT_TYPE] = "type",
        [FORMAT_TIMESTAMP] = "google.protobuf.Timestamp",
        [FORMAT_DURATION] = "google.protobuf.Duration",
        [FORMAT_LIST] = "list",
        [FORMAT_MAP] = "map",
    };

    return value->kind == FORMAT_OTHER ? value->as.s : str_of(names[value->kind]);
}

/* ---- numbers ---- */

static void add_str(struct buf *out, struct str s)
{
    buf_add(out, s.ptr, s.len);
}

/* Sign and digits in a base. */
static void add_integer(const struct format_value *v, unsigned base, bool upper, struct buf *out)
{
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    bool negative = v->kind == FORMAT_INT && v->as.i < 0;
    uint64_t rest = negative ? 0 - (uint64_t)v->as.i : v->as.u;
    char text[64];
    size_t n = sizeof(text);

    if (v->kind == FORMAT_BOOL)
        rest = v->as.b;
    do {
        text[--n] = digits[rest % base];
        rest /= base;
    } while (rest != 0);
    if (negative)
        buf_addc(out, '-');
    buf_add(out, text + n, sizeof(text) - n);
}

static void add_hex_bytes(struct str s, bool upper, struct buf *out)
{
    for (size_t i = 0; i < s.len; i++)
        buf_addf(out, upper ? "%02X" : "%02x", (uint8_t)s.ptr[i]);
}

/* The double of %f and %e: a double, or one of three words. */
static bool double_of(const struct format_value *v, double *out)
{
    if (v->kind == FORMAT_DOUBLE) {
        *out = v->as.d;
        return true;
    }
    if (v->kind != FORMAT_STRING ||
        (!str_is(v->as.s, "NaN") && !str_is(v->as.s, "Infinity") && !str_is(v->as.s, "-Infinity")))
        return false;
    return double_parse(v->as.s, out, NULL) == 0;
}

static const char *special_text(double value)
{
    return isnan(value) ? "NaN" : value < 0 ? "-\xE2\x88\x9E" : "\xE2\x88\x9E";
}

/* An English number: digits grouped by three with commas. */
static void add_fixed(double value, int precision, struct buf *out)
{
    BUF text = {0};
    const char *digits;
    size_t whole;

    if (!isfinite(value)) {
        buf_adds(out, special_text(value));
        return;
    }
    double_format_fixed_to(value == 0 ? 0 : value, precision, &text); /* zero has no sign */
    digits = buf_str(&text);
    if (*digits == '-')
        buf_addc(out, *digits++);
    whole = strcspn(digits, ".");
    for (size_t i = 0; i < whole; i++) {
        if (i > 0 && (whole - i) % 3 == 0)
            buf_addc(out, ',');
        buf_addc(out, digits[i]);
    }
    buf_adds(out, digits + whole);
}

static void add_superscript(int exponent, struct buf *out)
{
    static const char *const digits[] = {"\xE2\x81\xB0", "\xC2\xB9",     "\xC2\xB2",     "\xC2\xB3",
                                         "\xE2\x81\xB4", "\xE2\x81\xB5", "\xE2\x81\xB6", "\xE2\x81\xB7",
                                         "\xE2\x81\xB8", "\xE2\x81\xB9"};
    char text[16];

    if (exponent < 0)
        buf_adds(out, "\xE2\x81\xBB");
    snprintf(text, sizeof(text), "%02d", abs(exponent));
    for (const char *p = text; *p; p++)
        buf_adds(out, digits[*p - '0']);
}

/* "2.718280" times ten to a superscript; six decimals whatever the precision. */
static void add_scientific(double value, struct buf *out)
{
    char text[64];
    const char *e;

    if (!isfinite(value)) {
        for (int columns = isnan(value) ? 3 : value < 0 ? 2 : 1; columns < SPECIAL_COLUMNS; columns++)
            buf_addc(out, ' ');
        buf_adds(out, special_text(value));
        return;
    }
    double_format_exponent(value == 0 ? 0 : value, DEFAULT_PRECISION, text, sizeof(text));
    e = strchr(text, 'e');
    buf_add(out, text, (size_t)(e - text));
    buf_adds(out, "\xC3\x97"
                  "10");
    add_superscript((int)strtol(e + 1, NULL, 10), out);
}

/* ---- values under %s ---- */

struct formatter {
    const struct format_reader *reader;
    struct buf *out;
    struct error *err;
    int depth;
};

static int add_nested(struct formatter *f, const struct format_value *v);

static int add_bytes_text(struct formatter *f, struct str s)
{
    if (!utf8_is_valid(s))
        return error_set(
            f->err, ERR_INVALID,
            "error during formatting: could not convert argument \"invalid UTF-8 in bytes, cannot convert to "
            "string\" to string");
    add_str(f->out, s);
    return 0;
}

static int add_list(struct formatter *f, const struct format_value *list)
{
    struct format_value element;

    buf_addc(f->out, '[');
    for (size_t i = 0; i < list->as.c.n; i++) {
        if (i > 0)
            buf_adds(f->out, ", ");
        f->reader->element(f->reader->context, list->as.c.container, i, &element);
        if (add_nested(f, &element) < 0)
            return -1;
    }
    buf_addc(f->out, ']');
    return 0;
}

/* An entry of a map as text. */
struct entry {
    struct buf key, value;
    size_t order;
};

struct entries {
    struct entry *items;
    size_t n;
};

static void entries_release(struct entries *entries)
{
    for (size_t i = 0; i < entries->n; i++) {
        buf_release(&entries->items[i].key);
        buf_release(&entries->items[i].value);
    }
    free(entries->items);
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(buf_str(&x->key), buf_str(&y->key));

    return order ? order : (x->order > y->order) - (x->order < y->order);
}

static int add_key(struct formatter *f, const struct format_value *key)
{
    struct str name = type_name(key);

    if (BIT(key->kind) & (INTEGERS | BIT(FORMAT_STRING) | BIT(FORMAT_BOOL)))
        return add_nested(f, key);
    return error_set(f->err, ERR_INVALID, "error during formatting: no formatting function for map key of type %.*s",
                     STR_FMT(name));
}

static int format_entry(struct formatter *f, const struct format_value *map, size_t i, struct entry *entry)
{
    struct format_value key, value;
    struct formatter to_key = *f, to_value = *f;

    to_key.out = &entry->key;
    to_value.out = &entry->value;
    entry->order = i;
    f->reader->entry(f->reader->context, map->as.c.container, i, &key, &value);
    if (add_key(&to_key, &key) < 0)
        return -1;
    return add_nested(&to_value, &value);
}

static int add_map(struct formatter *f, const struct format_value *map)
{
    __attribute__((cleanup(entries_release))) struct entries entries = {
        .items = mem_array(struct entry, map->as.c.n ? map->as.c.n : 1), .n = map->as.c.n};

    for (size_t i = 0; i < entries.n; i++)
        if (format_entry(f, map, i, &entries.items[i]) < 0)
            return -1;
    qsort(entries.items, entries.n, sizeof(*entries.items), compare_entries);
    buf_addc(f->out, '{');
    for (size_t i = 0; i < entries.n; i++)
        buf_addf(f->out, "%s%s:%s", i > 0 ? ", " : "", buf_str(&entries.items[i].key),
                 buf_str(&entries.items[i].value));
    buf_addc(f->out, '}');
    return 0;
}

static int add_container(struct formatter *f, const struct format_value *v)
{
    struct formatter inner = *f;

    if (++inner.depth > FORMAT_MAX_DEPTH || f->out->len > FORMAT_MAX_OUTPUT)
        return error_set(f->err, ERR_LIMIT, "a value is too large or too deep to be formatted");
    return v->kind == FORMAT_LIST ? add_list(&inner, v) : add_map(&inner, v);
}

/* A value as string() writes it. */
static int add_plain(struct formatter *f, const struct format_value *v)
{
    switch (v->kind) {
    case FORMAT_BOOL:
        buf_adds(f->out, v->as.b ? "true" : "false");
        return 0;
    case FORMAT_INT:
    case FORMAT_UINT:
        add_integer(v, 10, false, f->out);
        return 0;
    case FORMAT_DOUBLE:
        double_format_to(v->as.d, f->out);
        return 0;
    case FORMAT_STRING:
    case FORMAT_TYPE:
        add_str(f->out, v->as.s);
        return 0;
    case FORMAT_BYTES:
        return add_bytes_text(f, v->as.s);
    case FORMAT_NULL:
        buf_adds(f->out, "null");
        return 0;
    case FORMAT_TIMESTAMP:
        timestamp_format_to(&v->as.t, f->out);
        return 0;
    case FORMAT_DURATION:
        duration_format_to(v->as.i, f->out);
        return 0;
    case FORMAT_LIST:
    case FORMAT_MAP:
        return add_container(f, v);
    case FORMAT_OTHER:
        break;
    }
    return format_misfit(&clauses[0], v->as.s, f->err);
}

/* Quoted plain text between a prefix and a suffix. */
static int add_quoted(struct formatter *f, const struct format_value *v, const char *before, const char *after)
{
    BUF text = {0};
    struct formatter plain = *f;

    plain.out = &text;
    if (add_plain(&plain, v) < 0)
        return -1;
    buf_adds(f->out, before);
    utf8_quote_to((struct str){buf_str(&text), text.len}, f->out);
    buf_adds(f->out, after);
    return 0;
}

/* A value inside a list or map, spelt as a CEL literal. */
static int add_nested(struct formatter *f, const struct format_value *v)
{
    switch (v->kind) {
    case FORMAT_STRING:
        return add_quoted(f, v, "", "");
    case FORMAT_BYTES:
        return add_quoted(f, v, "b", "");
    case FORMAT_TIMESTAMP:
        return add_quoted(f, v, "timestamp(", ")");
    case FORMAT_DURATION:
        return add_quoted(f, v, "duration(", ")");
    case FORMAT_DOUBLE:
        if (!isfinite(v->as.d))
            return add_quoted(f, v, "", "");
        double_format_fixed_to(v->as.d, DEFAULT_PRECISION, f->out);
        return 0;
    case FORMAT_OTHER:
        return error_set(f->err, ERR_INVALID, "error during formatting: no formatting function for %.*s",
                         STR_FMT(v->as.s));
    case FORMAT_BOOL:
    case FORMAT_INT:
    case FORMAT_UINT:
    case FORMAT_NULL:
    case FORMAT_TYPE:
    case FORMAT_LIST:
    case FORMAT_MAP:
        break;
    }
    return add_plain(f, v);
}

/* ---- the whole ---- */

static int add_argument(struct formatter *f, const struct format_clause *clause, const struct format_value *v)
{
    double number = 0;
    bool fits = (clause->kinds & BIT(v->kind)) != 0;

    if (fits && (clause->letter == 'f' || clause->letter == 'e'))
        fits = double_of(v, &number);
    if (!fits)
        return format_misfit(clause, type_name(v), f->err);
    switch (clause->letter) {
    case 'f':
        if (clause->precision > MAX_PRECISION)
            return error_set(f->err, ERR_LIMIT, "a precision of a format is above %d", MAX_PRECISION);
        add_fixed(number, clause->precision < 0 ? DEFAULT_PRECISION : clause->precision, f->out);
        return 0;
    case 'e':
        add_scientific(number, f->out);
        return 0;
    case 's':
        return add_plain(f, v);
    case 'x':
    case 'X':
        if (v->kind == FORMAT_STRING || v->kind == FORMAT_BYTES)
            add_hex_bytes(v->as.s, clause->letter == 'X', f->out);
        else
            add_integer(v, 16, clause->letter == 'X', f->out);
        return 0;
    default:
        add_integer(v, clause->letter == 'b' ? 2 : clause->letter == 'o' ? 8 : 10, false, f->out);
        return 0;
    }
}

int strformat(struct str format, const struct format_value *arguments, size_t n_arguments,
              const struct format_reader *reader, struct buf *out, struct error *err)
{
    struct formatter f = {reader, out, err, 0};
    struct format_clause clause;
    size_t at = 0;
    int more;

    for (size_t i = 0; (more = next_clause(format, &at, i, n_arguments, out, &clause, err)) > 0; i++) {
        if (add_argument(&f, &clause, &arguments[i]) < 0)
            return -1;
        if (out->len > FORMAT_MAX_OUTPUT)
            return error_set(err, ERR_LIMIT, "a formatted text is longer than %d bytes", FORMAT_MAX_OUTPUT);
    }
    return more;
}
