/* Text functions. Positions count code points. */
#include "allocator/cel/lib.h"

#include <string.h>

#include "allocator/base/error.h"
#include "allocator/cel/regex.h"
#include "allocator/cel/strformat.h"
#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

static size_t find_bytes(struct str s, struct str t, size_t from)
{
    const char *at;

    if (from > s.len || t.len > s.len - from)
        return SIZE_MAX;
    if (!t.len)
        return from;
    at = memmem(s.ptr + from, s.len - from, t.ptr, t.len);
    return at ? (size_t)(at - s.ptr) : SIZE_MAX;
}

static bool are_texts(const struct cel_value *args)
{
    return args[0].kind == CEL_V_STRING && args[1].kind == CEL_V_STRING;
}

struct cel_value cel_fn_contains(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return are_texts(args) ? cel_bool(find_bytes(cel_str(args[0]), cel_str(args[1]), 0) != SIZE_MAX)
                           : cel_no_overload();
}

struct cel_value cel_fn_starts_with(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct str s = cel_str(args[0]), t = cel_str(args[1]);

    (void)e, (void)n_args;
    if (!are_texts(args))
        return cel_no_overload();
    return cel_bool(t.len <= s.len && (!t.len || memcmp(s.ptr, t.ptr, t.len) == 0));
}

struct cel_value cel_fn_ends_with(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct str s = cel_str(args[0]), t = cel_str(args[1]);

    (void)e, (void)n_args;
    if (!are_texts(args))
        return cel_no_overload();
    return cel_bool(t.len <= s.len && (!t.len || memcmp(s.ptr + (s.len - t.len), t.ptr, t.len) == 0));
}

/* ---- regular expressions ---- */

bool cel_loose_text(struct cel_value v, struct str *out)
{
    for (int depth = 0; v.kind == CEL_V_OPTIONAL && v.as.content && depth < 1000; depth++)
        v = *v.as.content;
    if (v.kind == CEL_V_TYPE)
        *out = str_of(cel_type_name(v.as.type));
    else if (v.kind == CEL_V_STRING)
        *out = cel_str(v);
    else
        return false;
    return true;
}

static struct cel_value search(struct cel_eval *e, const struct regex *regex, struct str s)
{
    struct error err = {0};
    bool found;

    return regex_search(regex, s, &found, &err) < 0 ? cel_errorf(e, "%s", err.text) : cel_bool(found);
}

static struct cel_value find_first(struct cel_eval *e, const struct regex *regex, struct str s)
{
    struct regex_iterator it = regex_iterate(regex, s);
    struct regex_match m = {0, 0};
    struct error err = {0};
    int found = regex_next(&it, &m, &err);

    if (found < 0)
        return cel_errorf(e, "%s", err.text);
    return cel_text(found ? (struct str){s.ptr + m.start, m.end - m.start} : STR(""));
}

static struct cel_value find_all(struct cel_eval *e, const struct regex *regex, struct str s, int64_t limit)
{
    struct regex_iterator it = regex_iterate(regex, s);
    struct cel_value *items = NULL;
    struct error err = {0};
    struct regex_match m;
    size_t n = 0, cap = 0;
    int found = 0;

    while ((limit < 0 || n < (uint64_t)limit) && !e->fatal && (found = regex_next(&it, &m, &err)) > 0) {
        if (n == cap) {
            struct cel_value *more;

            cap = cap ? cap * 2 : 8;
            more = cel_alloc(e, cap, sizeof(*more));
            if (n)
                memcpy(more, items, n * sizeof(*more));
            items = more;
        }
        items[n++] = cel_text((struct str){s.ptr + m.start, m.end - m.start});
    }
    return found < 0 ? cel_errorf(e, "%s", err.text) : cel_list(items, n);
}

struct cel_value cel_fn_matches(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    CLEANUP(regex) *regex = NULL;
    struct error err = {0};

    (void)n_args;
    if (!are_texts(args))
        return cel_no_overload();
    if (regex_compile(cel_str(args[1]), &regex, &err) < 0)
        return cel_errorf(e, "%s", err.text);
    return search(e, regex, cel_str(args[0]));
}

struct cel_value cel_fn_find(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    CLEANUP(regex) *regex = NULL;
    struct error err = {0};

    (void)n_args;
    if (regex_compile(cel_str(args[1]), &regex, &err) < 0)
        return cel_errorf(e, "Illegal regex: %s", err.text);
    return find_first(e, regex, cel_str(args[0]));
}

struct cel_value cel_fn_find_all(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    CLEANUP(regex) *regex = NULL;
    struct error err = {0};

    if (regex_compile(cel_str(args[1]), &regex, &err) < 0)
        return cel_errorf(e, "Illegal regex: %s", err.text);
    return find_all(e, regex, cel_str(args[0]), n_args == 3 ? args[2].as.i : -1);
}

struct cel_value cel_call_regex(struct cel_eval *e, const struct cel_node *node, const struct cel_value *args)
{
    const struct regex *regex = node->as.call.regex;
    struct str s;

    if (!cel_loose_text(args[0], &s))
        return cel_no_overload();
    if (node->as.call.function->id == FN_MATCHES)
        return search(e, regex, s);
    if (strcmp(node->as.call.function->name, "find") == 0)
        return find_first(e, regex, s);
    if (node->n == 3 && args[2].kind != CEL_V_INT)
        return cel_no_overload();
    return find_all(e, regex, s, node->n == 3 ? args[2].as.i : -1);
}

/* ---- positions ---- */

static struct cel_value out_of_range(struct cel_eval *e, int64_t i)
{
    return cel_errorf(e, "index out of range: %lld", (long long)i);
}

/* The byte of code point i, or SIZE_MAX when i is negative or beyond the end. */
static size_t offset_of(struct str s, int64_t i)
{
    return i < 0 || (uint64_t)i > s.len ? SIZE_MAX : utf8_offset(s, (size_t)i);
}

static struct cel_value slice_bytes(struct cel_value v, size_t from, size_t to)
{
    return cel_text((struct str){v.as.s + from, to - from});
}

struct cel_value cel_fn_char_at(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct str s = cel_str(args[0]);
    size_t from = offset_of(s, args[1].as.i), to = from;

    (void)n_args;
    if (from == SIZE_MAX)
        return out_of_range(e, args[1].as.i);
    if (from == s.len)
        return cel_text(STR(""));
    utf8_next(s, &to);
    return slice_bytes(args[0], from, to);
}

static int64_t points_before(struct str s, size_t byte)
{
    return (int64_t)utf8_count((struct str){s.ptr, byte});
}

struct cel_value cel_fn_index_of(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct str s = cel_str(args[0]), t = cel_str(args[1]);
    int64_t from = n_args == 3 ? args[2].as.i : 0, size = (int64_t)utf8_count(s);
    size_t at;

    if (from < 0)
        return out_of_range(e, from);
    if (!t.len)
        return cel_int(from > size ? size : from);
    if (from >= size)
        return cel_int(-1);
    at = find_bytes(s, t, utf8_offset(s, (size_t)from));
    return cel_int(at == SIZE_MAX ? -1 : points_before(s, at));
}

struct cel_value cel_fn_last_index_of(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct str s = cel_str(args[0]), t = cel_str(args[1]);
    int64_t size = (int64_t)utf8_count(s), from = n_args == 3 ? args[2].as.i : size - 1;
    size_t at;

    if (n_args == 2 && !t.len)
        return cel_int(size);
    if (n_args == 2 && s.len < t.len)
        return cel_int(-1);
    if (from < 0)
        return out_of_range(e, from);
    if (!t.len)
        return cel_int(from > size ? size : from);
    if (from >= size || t.len > s.len)
        return cel_int(-1);
    at = utf8_offset(s, (size_t)from);
    if (at > s.len - t.len)
        at = s.len - t.len;
    for (at++; at-- > 0;)
        if (memcmp(s.ptr + at, t.ptr, t.len) == 0)
            return cel_int(points_before(s, at));
    return cel_int(-1);
}

struct cel_value cel_fn_substring(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct str s = cel_str(args[0]);
    size_t from = offset_of(s, args[1].as.i), to = s.len;

    if (n_args == 3 && args[1].as.i > args[2].as.i)
        return cel_errorf(e, "invalid substring range. start: %lld, end: %lld", (long long)args[1].as.i,
                          (long long)args[2].as.i);
    if (from == SIZE_MAX)
        return out_of_range(e, args[1].as.i);
    if (n_args == 3) {
        to = offset_of(s, args[2].as.i);
        if (to == SIZE_MAX)
            return out_of_range(e, args[2].as.i);
    }
    return slice_bytes(args[0], from, to);
}

/* ---- changes ---- */

struct cel_value cel_fn_lower_ascii(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return cel_text(utf8_lower_ascii(cel_str(args[0]), e->arena));
}

struct cel_value cel_fn_upper_ascii(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return cel_text(utf8_upper_ascii(cel_str(args[0]), e->arena));
}

struct cel_value cel_fn_trim(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_text(utf8_trim(cel_str(args[0])));
}

/* The next place where `old` is replaced: an empty text is found before each code point and at the end. */
static size_t next_place(struct str s, struct str old, size_t at, bool is_first)
{
    if (old.len)
        return find_bytes(s, old, at);
    if (is_first)
        return 0;
    if (at >= s.len)
        return SIZE_MAX;
    utf8_next(s, &at);
    return at;
}

static size_t replaced_size(struct str s, struct str old, struct str with, int64_t limit, int64_t *out_n)
{
    size_t at = 0, n = 0;

    while (limit < 0 || n < (uint64_t)limit) {
        at = next_place(s, old, at, n == 0);
        if (at == SIZE_MAX)
            break;
        at += old.len;
        n++;
    }
    *out_n = (int64_t)n;
    if (with.len && n > CEL_MAX_STRING / with.len)
        return SIZE_MAX / 2;
    return s.len - n * old.len + n * with.len;
}

struct cel_value cel_fn_replace(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct str s = cel_str(args[0]), old = cel_str(args[1]), with = cel_str(args[2]);
    size_t size, at = 0, done = 0, n = 0;
    int64_t count;
    char *room;

    size = replaced_size(s, old, with, n_args == 4 ? args[3].as.i : -1, &count);
    if (!count)
        return args[0];
    room = cel_text_room(e, size);
    if (!room)
        return cel_error(e->fatal_words);
    for (int64_t i = 0; i < count; i++) {
        at = next_place(s, old, at, i == 0);
        memcpy(room + n, s.ptr + done, at - done);
        n += at - done;
        if (with.len)
            memcpy(room + n, with.ptr, with.len);
        n += with.len;
        at += old.len;
        done = at;
    }
    if (s.len > done)
        memcpy(room + n, s.ptr + done, s.len - done);
    return cel_text((struct str){room, size});
}

struct cel_value cel_fn_split(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct str s = cel_str(args[0]), sep = cel_str(args[1]);
    int64_t limit = n_args == 3 ? args[2].as.i : -1, count = 0;
    struct cel_value *items;
    size_t from = 0, n = 0;

    if (limit == 0 || (!sep.len && !s.len))
        return cel_list(NULL, 0);
    if (sep.len)
        replaced_size(s, sep, STR(""), -1, &count);
    else
        count = (int64_t)utf8_count(s) - 1;
    if (limit > 0 && count > limit - 1)
        count = limit - 1;
    items = cel_alloc(e, (size_t)count + 1, sizeof(*items));
    for (int64_t i = 0; i < count; i++) {
        size_t at = from;

        if (sep.len)
            at = find_bytes(s, sep, from);
        else
            utf8_next(s, &at);
        items[n++] = slice_bytes(args[0], from, at);
        from = at + sep.len;
    }
    items[n++] = slice_bytes(args[0], from, s.len);
    return cel_list(items, n);
}

struct cel_value cel_fn_join(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct str sep = n_args == 2 ? cel_str(args[1]) : STR("");
    int64_t n_items = cel_list_len(args[0]);
    size_t size = 0, n = 0;
    char *room;

    for (int64_t i = 0; i < n_items && size <= CEL_MAX_STRING && cel_work(e, 1); i++) {
        struct cel_value v = cel_list_at(args[0], i);

        if (v.kind != CEL_V_STRING)
            return cel_error("join: invalid input: an element is not a string");
        size += v.n + (i ? sep.len : 0);
    }
    room = cel_text_room(e, size);
    if (!room || e->fatal)
        return cel_error(e->fatal_words);
    for (int64_t i = 0; i < n_items; i++) {
        struct cel_value v = cel_list_at(args[0], i);

        if (i && sep.len) {
            memcpy(room + n, sep.ptr, sep.len);
            n += sep.len;
        }
        if (v.n)
            memcpy(room + n, v.as.s, v.n);
        n += v.n;
    }
    return cel_text((struct str){room, size});
}

struct cel_value cel_fn_quote(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    static const char from[] = "\a\b\f\n\r\t\v\\\"", to[] = "abfnrtv\\\"";
    struct str s = cel_str(args[0]);
    size_t n = 0, at = 0;
    char *room = cel_text_room(e, s.len * 3 + 2);

    (void)n_args;
    if (!room)
        return cel_error(e->fatal_words);
    room[n++] = '"';
    while (at < s.len) {
        size_t next = at;
        uint32_t code = utf8_next(s, &next);
        const char *escape = code && code < 128 ? strchr(from, (int)code) : NULL;

        if (escape) {
            room[n++] = '\\';
            room[n++] = to[escape - from];
        } else {
            n += utf8_encode(code, room + n);
        }
        at = next;
    }
    room[n++] = '"';
    return cel_text((struct str){room, n});
}

/* ---- format ---- */

struct format_context {
    struct cel_eval *e;
    const struct cel_value *boxes; /* lists and maps by pointer */
};

static struct format_value format_value_of(struct cel_eval *e, struct cel_value v)
{
    static const enum format_kind kinds[CEL_V_KINDS] = {
        [CEL_V_ERROR] = FORMAT_OTHER,       [CEL_V_NULL] = FORMAT_NULL,      [CEL_V_BOOL] = FORMAT_BOOL,
        [CEL_V_INT] = FORMAT_INT,           [CEL_V_UINT] = FORMAT_UINT,      [CEL_V_DOUBLE] = FORMAT_DOUBLE,
        [CEL_V_STRING] = FORMAT_STRING,     [CEL_V_BYTES] = FORMAT_BYTES,    [CEL_V_TIMESTAMP] = FORMAT_TIMESTAMP,
        [CEL_V_DURATION] = FORMAT_DURATION, [CEL_V_TYPE] = FORMAT_TYPE,      [CEL_V_LIST] = FORMAT_LIST,
        [CEL_V_MAP] = FORMAT_MAP,           [CEL_V_OPTIONAL] = FORMAT_OTHER, [CEL_V_QUANTITY] = FORMAT_OTHER,
        [CEL_V_SEMVER] = FORMAT_OTHER,      [CEL_V_IP] = FORMAT_OTHER,       [CEL_V_CIDR] = FORMAT_OTHER,
        [CEL_V_URL] = FORMAT_OTHER,         [CEL_V_FORMAT] = FORMAT_OTHER,
    };
    struct format_value out = {.kind = kinds[v.kind]};
    struct cel_value *box;

    cel_work(e, 1);
    switch (out.kind) {
    case FORMAT_BOOL:
        out.as.b = v.as.b;
        break;
    case FORMAT_INT:
    case FORMAT_DURATION:
        out.as.i = v.as.i;
        break;
    case FORMAT_UINT:
        out.as.u = v.as.u;
        break;
    case FORMAT_DOUBLE:
        out.as.d = v.as.d;
        break;
    case FORMAT_STRING:
    case FORMAT_BYTES:
        out.as.s = cel_str(v);
        break;
    case FORMAT_TYPE:
        out.as.s = str_of(cel_type_name(v.as.type));
        break;
    case FORMAT_TIMESTAMP:
        out.as.t = (struct timestamp){v.as.i, (int32_t)v.n, v.zone * 60};
        break;
    case FORMAT_LIST:
    case FORMAT_MAP:
        box = cel_alloc(e, 1, sizeof(*box));
        *box = v;
        out.as.c.container = box;
        out.as.c.n = v.kind == CEL_V_MAP ? v.as.map->n : (size_t)cel_list_len(v);
        if (out.as.c.n > CEL_MAX_WORK)
            cel_work(e, CEL_MAX_WORK + 1);
        if (e->fatal)
            out.as.c.n = 0;
        break;
    case FORMAT_NULL:
        break;
    case FORMAT_OTHER:
        out.as.s = str_of(cel_kind_name(v));
        break;
    }
    return out;
}

static void format_element(void *context, const void *list, size_t i, struct format_value *out)
{
    *out = format_value_of(context, cel_list_at(*(const struct cel_value *)list, (int64_t)i));
}

static void format_entry(void *context, const void *map, size_t i, struct format_value *out_key,
                         struct format_value *out_value)
{
    const struct cel_entry *entry = &((const struct cel_value *)map)->as.map->entries[i];

    *out_key = format_value_of(context, entry->key);
    *out_value = format_value_of(context, entry->value);
}

struct cel_value cel_fn_format(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct format_reader reader = {e, format_element, format_entry};
    struct cel_value list = cel_list_flat(e, args[1]);
    struct format_value *values = cel_alloc(e, list.n, sizeof(*values));
    struct error err = {0};
    BUF text = {0};

    (void)n_args;
    for (size_t i = 0; i < list.n && !e->fatal; i++)
        values[i] = format_value_of(e, list.as.items[i]);
    if (e->fatal)
        return cel_error(e->fatal_words);
    if (strformat(cel_str(args[0]), values, list.n, &reader, &text, &err) < 0)
        return cel_errorf(e, "%s", err.text);
    return cel_text_copy(e, (struct str){text.data, text.len});
}
