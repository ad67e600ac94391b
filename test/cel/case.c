#include "test/cel/case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/error.h"
#include "allocator/cel/eval.h"
#include "allocator/cel/timefmt.h"

#include "allocator/base/banned.h"

/* ---- what is not run ---- */

const char *case_skip_reason(const char *file, const char *section, const char *name)
{
    static const struct {
        const char *file, *section, *name, *reason;
    } rows[] = {
        {"block_ext", "", "", "cel.block is a test-only macro, off in DRA"},
        {"math_ext", "", "", "the math library is off in DRA"},
        {"encoders_ext", "", "", "the base64 library is off in DRA"},
        {"string_ext", "reverse", "", "strings library version 2 has no reverse"},
        {"string_ext", "format", "", "describes a newer formatter than DRA has"},
        {"string_ext", "format_errors", "", "describes a newer formatter than DRA has"},
        {"string_ext", "value_errors", "indexof_out_of_range", "cel-go returns -1"},
        {"string_ext", "value_errors", "lastindexof_out_of_range", "cel-go returns -1"},
        {"fields", "qualified_identifier_resolution", "map_key_float", "cel-go takes such keys"},
        {"fields", "qualified_identifier_resolution", "map_value_repeat_key", "cel-go takes repeated keys"},
        {"fields", "qualified_identifier_resolution", "map_value_repeat_key_heterogeneous",
         "cel-go takes repeated keys"},
        {"timestamps", "duration_converters", "get_milliseconds", "cel-go gives the whole duration"},
        {"optionals", "optionals", "map_optional_select_has", "skipped by cel-go too"},
        {"optionals", "optionals", "map_null_entry_no_such_key", "needs strict presence tests, which DRA does not set"},
        {"optionals", "optionals", "map_present_key_invalid_field",
         "needs strict presence tests, which DRA does not set"},
        {"type_deduction", "legacy_nullable_types", "null_assignable_to_abstract_parameter_candidate",
         "skipped by cel-go too"},
        {"network_ext", "ipv4", "ipv4_equals_ipv6", "Kubernetes refuses IPv4-mapped addresses"},
        {"network_ext", "ipv4", "ipv4_not_equals_ipv6", "Kubernetes refuses IPv4-mapped addresses"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (strcmp(file, rows[i].file) == 0 && (!*rows[i].section || strcmp(section, rows[i].section) == 0) &&
            (!*rows[i].name || strcmp(name, rows[i].name) == 0))
            return rows[i].reason;
    return NULL;
}

/* ---- values ---- */

static struct str text_of(const json_t *json)
{
    return (struct str){json_string_value(json), json_string_length(json)};
}

static const char *string_at(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));

    return s ? s : "";
}

static struct str base64(struct arena *arena, const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = arena_alloc(arena, strlen(text) + 1, 1);
    unsigned bits = 0, n_bits = 0;
    size_t n = 0;

    for (; *text && *text != '='; text++) {
        bits = bits << 6 | (unsigned)(strchr(digits, *text) - digits);
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[n++] = (char)(bits >> n_bits);
        }
    }
    return (struct str){out, n};
}

/* {"int": "1"}: the only key and its value. */
static const char *only_key(const json_t *json, const json_t **out)
{
    void *it = json_object_iter((json_t *)(uintptr_t)json);

    *out = it ? json_object_iter_value(it) : NULL;
    return it ? json_object_iter_key(it) : "";
}

static struct cel_value decode(const json_t *json, struct arena *arena);

static struct cel_value decode_list(const json_t *list, struct arena *arena)
{
    size_t n = json_array_size(list);
    struct cel_value *items = arena_array(arena, struct cel_value, n);

    for (size_t i = 0; i < n; i++)
        items[i] = decode(json_array_get(list, i), arena);
    return cel_list(items, n);
}

static struct cel_value decode_map(const json_t *list, struct arena *arena)
{
    struct cel_map *map = cel_map_new(arena, json_array_size(list));

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *pair = json_array_get(list, i);

        cel_map_put(map, arena, decode(json_array_get(pair, 0), arena), decode(json_array_get(pair, 1), arena));
    }
    return cel_map(map);
}

static struct cel_value decode(const json_t *json, struct arena *arena)
{
    const json_t *v;
    const char *kind = only_key(json, &v);
    struct timestamp t;
    int64_t nanos;

    if (strcmp(kind, "int") == 0)
        return cel_int(strtoll(json_string_value(v), NULL, 10));
    if (strcmp(kind, "uint") == 0)
        return cel_uint(strtoull(json_string_value(v), NULL, 10));
    if (strcmp(kind, "double") == 0)
        return cel_double(strtod(json_string_value(v), NULL));
    if (strcmp(kind, "string") == 0)
        return cel_text(text_of(v));
    if (strcmp(kind, "bytes") == 0)
        return cel_octets(base64(arena, json_string_value(v)));
    if (strcmp(kind, "bool") == 0)
        return cel_bool(json_is_true(v));
    if (strcmp(kind, "list") == 0)
        return decode_list(v, arena);
    if (strcmp(kind, "map") == 0)
        return decode_map(v, arena);
    if (strcmp(kind, "type") == 0) {
        struct cel_type *type = arena_new(arena, struct cel_type);

        type->name = json_string_value(v);
        type->kind = CEL_T_STRUCT;
        return cel_type_value(type);
    }
    if (strcmp(kind, "timestamp") == 0 && timestamp_parse(text_of(v), &t, NULL) == 0)
        return cel_timestamp(t.seconds, (uint32_t)t.nanos, 0);
    if (strcmp(kind, "duration") == 0 && cel_duration_parse(text_of(v), &nanos, NULL) == 0)
        return cel_duration(nanos);
    return CEL_NULL;
}

/* Exactly equal: 1, 1u and 1.0 are three values; any NaN is any NaN. */
static bool same(struct cel_value a, struct cel_value b)
{
    if (a.kind != b.kind)
        return false;
    switch ((enum cel_kind)a.kind) {
    case CEL_V_NULL:
        return true;
    case CEL_V_BOOL:
        return a.as.b == b.as.b;
    case CEL_V_INT:
    case CEL_V_UINT:
    case CEL_V_DURATION:
        return a.as.u == b.as.u;
    case CEL_V_DOUBLE:
        return isnan(a.as.d) ? isnan(b.as.d) : a.as.d == b.as.d && signbit(a.as.d) == signbit(b.as.d);
    case CEL_V_STRING:
    case CEL_V_BYTES:
        return str_eq(cel_str(a), cel_str(b));
    case CEL_V_TIMESTAMP:
        return a.as.i == b.as.i && a.n == b.n;
    case CEL_V_TYPE:
        return strcmp(cel_type_name(a.as.type), cel_type_name(b.as.type)) == 0;
    case CEL_V_LIST:
        if (cel_list_len(a) != cel_list_len(b))
            return false;
        for (int64_t i = 0; i < cel_list_len(a); i++)
            if (!same(cel_list_at(a, i), cel_list_at(b, i)))
                return false;
        return true;
    case CEL_V_MAP:
        if (a.as.map->n != b.as.map->n)
            return false;
        for (size_t i = 0; i < a.as.map->n; i++) {
            size_t at = cel_map_slot(b.as.map, a.as.map->entries[i].key);

            if (at == SIZE_MAX || !same(a.as.map->entries[i].value, b.as.map->entries[at].value))
                return false;
        }
        return true;
    default:
        return false;
    }
}

/* ---- the language alone ---- */

struct type_reader {
    struct arena *arena;
    const char *at;
    char names[26][16]; /* type parameters by number */
    size_t n_names;
};

static bool take(struct type_reader *r, char c)
{
    while (*r->at == ' ')
        r->at++;
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

/* T = NAME [ "(" T { "," T } ")" ] | "<" NAME ">" */
static const struct cel_type *read_type(struct type_reader *r)
{
    const struct cel_type *known, **params;
    struct cel_type *type;
    size_t n = 0, len;
    bool is_param = take(r, '<');
    char name[64];

    len = strcspn(r->at, "(),<> ");
    snprintf(name, sizeof(name), "%.*s", (int)len, r->at);
    r->at += len;
    if (is_param) {
        take(r, '>');
        for (n = 0; n < r->n_names && strcmp(r->names[n], name) != 0;)
            n++;
        if (n == r->n_names && n < 26)
            snprintf(r->names[r->n_names++], sizeof(r->names[0]), "%.15s", name);
        return cel_type_param(r->arena, (uint32_t)n);
    }
    known = cel_type_named(str_of(name));
    if (!take(r, '('))
        return known ? known : &cel_t_dyn;
    params = arena_array(r->arena, const struct cel_type *, 8);
    do {
        params[n++] = read_type(r);
    } while (n < 8 && take(r, ','));
    take(r, ')');
    type = arena_new(r->arena, struct cel_type);
    type->kind = known ? known->kind : CEL_T_OPAQUE;
    type->name = arena_strdup(r->arena, name);
    return cel_type_with(r->arena, type, params, n);
}

static void read_function(const json_t *declaration, struct cel_function *out, struct arena *arena)
{
    const json_t *rows = json_object_get(declaration, "function");
    struct cel_overload *overloads = arena_array(arena, struct cel_overload, json_array_size(rows));

    out->name = string_at(declaration, "name");
    out->overloads = overloads;
    out->n_overloads = json_array_size(rows);
    for (size_t i = 0; i < out->n_overloads; i++) {
        const json_t *row = json_array_get(rows, i), *params = json_object_get(row, "params");
        struct type_reader r = {.arena = arena};

        overloads[i].is_member = json_is_true(json_object_get(row, "member"));
        overloads[i].n_params = (uint8_t)json_array_size(params);
        for (size_t j = 0; j < json_array_size(params) && j < CEL_MAX_PARAMS; j++) {
            r.at = json_string_value(json_array_get(params, j));
            overloads[i].params[j] = read_type(&r);
        }
        r.at = string_at(row, "result");
        overloads[i].result = read_type(&r);
    }
}

/* Declarations first, then bindings without one. */
static void read_environment(const json_t *line, struct cel_env *env, struct cel_value **out_globals,
                             struct arena *arena)
{
    const json_t *declared = json_object_get(line, "type_env"), *bindings = json_object_get(line, "bindings");
    size_t max = json_array_size(declared) + json_object_size(bindings), n = 0, n_functions = 0;
    struct cel_variable *variables = arena_array(arena, struct cel_variable, max);
    struct cel_function *functions = arena_array(arena, struct cel_function, max);
    struct cel_value *globals = arena_array(arena, struct cel_value, max);
    const char *name;
    json_t *value;

    for (size_t i = 0; i < json_array_size(declared); i++) {
        const json_t *row = json_array_get(declared, i);
        struct type_reader r = {.arena = arena, .at = string_at(row, "type")};

        if (json_object_get(row, "function")) {
            read_function(row, &functions[n_functions++], arena);
            continue;
        }
        globals[n] = cel_error("no such attribute(s): the variable is not bound");
        variables[n++] = (struct cel_variable){str_of(string_at(row, "name")), read_type(&r)};
    }
    json_object_foreach((json_t *)(uintptr_t)bindings, name, value)
    {
        size_t at = 0;

        while (at < n && !str_is(variables[at].name, name))
            at++;
        if (at == n)
            variables[n++] = (struct cel_variable){str_of(name), &cel_t_dyn};
        globals[at] = decode(value, arena);
    }
    env->variables = variables;
    env->n_variables = n;
    env->functions = functions;
    env->n_functions = n_functions;
    *out_globals = globals;
}

static void write_type(const struct cel_type *type, struct buf *out)
{
    buf_adds(out, cel_type_name(type));
    for (size_t i = 0; i < type->n_params; i++) {
        buf_adds(out, i ? ", " : "(");
        write_type(type->params[i], out);
    }
    if (type->n_params)
        buf_addc(out, ')');
}

static enum case_verdict fail(struct buf *why, const char *fmt, const char *detail)
{
    buf_addf(why, fmt, detail);
    return CASE_FAILED;
}

static enum case_verdict judge_value(const json_t *expect, struct cel_value v, struct arena *arena, struct buf *why)
{
    const json_t *want = json_object_get(expect, "value");
    BUF text = {0};

    if (json_object_get(expect, "error"))
        return cel_is_error(v) ? CASE_PASSED : fail(why, "an error was expected%s", "");
    if (want ? same(decode(want, arena), v) : cel_is_true(v))
        return CASE_PASSED;
    cel_value_show(v, &text, 300);
    buf_addf(why, "got %s ", cel_kind_name(v));
    return fail(why, "%s", buf_str(&text));
}

static enum case_verdict run_language(const json_t *line, struct arena *arena, struct buf *why)
{
    const json_t *expect = json_object_get(line, "expect"), *want_type = json_object_get(expect, "type");
    struct cel_spec spec = {.env = {.is_unchecked = json_is_true(json_object_get(line, "disable_check")),
                                    .container = str_of(string_at(line, "container"))}};
    struct cel_problem problem = {0};
    struct cel_value *globals;
    BUF type = {0};

    read_environment(line, &spec.env, &globals, arena);
    if (cel_spec_check(&spec, text_of(json_object_get(line, "expr")), arena, &problem) < 0)
        return json_object_get(expect, "error") ? CASE_PASSED : fail(why, "%s", problem.excerpt);
    if (want_type) {
        write_type(spec.root->type, &type);
        if (strcmp(buf_str(&type), json_string_value(want_type)) != 0)
            return fail(why, "the type is %s", buf_str(&type));
    }
    if (json_is_true(json_object_get(line, "check_only")))
        return CASE_PASSED;
    return judge_value(expect, cel_spec_evaluate(&spec, globals, arena), arena, why);
}

/* ---- selectors ---- */

static const struct {
    const char *key;
    enum cel_attribute_kind kind;
    bool is_list;
} attribute_keys[] = {
    {"ints", CEL_ATTR_INT, true},         {"bools", CEL_ATTR_BOOL, true},       {"strings", CEL_ATTR_STRING, true},
    {"versions", CEL_ATTR_VERSION, true}, {"int", CEL_ATTR_INT, false},         {"bool", CEL_ATTR_BOOL, false},
    {"string", CEL_ATTR_STRING, false},   {"version", CEL_ATTR_VERSION, false},
};

static union cel_attribute_value attribute_item(enum cel_attribute_kind kind, const json_t *json)
{
    union cel_attribute_value v = {0};

    if (kind == CEL_ATTR_INT)
        v.i = strtoll(json_string_value(json), NULL, 10);
    else if (kind == CEL_ATTR_BOOL)
        v.b = json_is_true(json);
    else
        v.s = text_of(json);
    return v;
}

static struct cel_attribute attribute_of(const char *name, const json_t *json, struct arena *arena)
{
    struct cel_attribute out = {.name = str_of(name)};

    for (size_t i = 0; i < ARRAY_SIZE(attribute_keys); i++) {
        const json_t *v = json_object_get(json, attribute_keys[i].key);
        union cel_attribute_value *values;

        if (!v)
            continue;
        out.kind = attribute_keys[i].kind;
        out.is_list = attribute_keys[i].is_list;
        out.n_values = out.is_list ? json_array_size(v) : 1;
        values = arena_array(arena, union cel_attribute_value, out.n_values);
        for (size_t j = 0; j < out.n_values; j++)
            values[j] = attribute_item(out.kind, out.is_list ? json_array_get(v, j) : v);
        out.values = values;
        return out;
    }
    return out;
}

struct cel_device_spec case_device(const json_t *device, struct arena *arena)
{
    const json_t *attributes = json_object_get(device, "attributes"), *capacity = json_object_get(device, "capacity");
    struct cel_attribute *a = arena_array(arena, struct cel_attribute, json_object_size(attributes));
    struct cel_capacity *c = arena_array(arena, struct cel_capacity, json_object_size(capacity));
    struct cel_device_spec spec = {.driver = text_of(json_object_get(device, "driver")),
                                   .attributes = a,
                                   .capacities = c,
                                   .allow_multiple_allocations =
                                       json_is_true(json_object_get(device, "allowMultipleAllocations"))};
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)attributes, name, value)
    {
        a[spec.n_attributes++] = attribute_of(name, value, arena);
    }
    json_object_foreach((json_t *)(uintptr_t)capacity, name, value)
    {
        c[spec.n_capacities].name = str_of(name);
        if (quantity_parse(text_of(value), arena, &c[spec.n_capacities].value, NULL) == 0)
            spec.n_capacities++;
    }
    return spec;
}

static int minor_of(const json_t *line, const char *key, int otherwise)
{
    const char *text = json_string_value(json_object_get(line, key));

    return text && text[0] == '1' && text[1] == '.' ? (int)strtol(text + 2, NULL, 10) : otherwise;
}

static bool has_feature(const json_t *line, const char *name)
{
    const json_t *features = json_object_get(line, "features");

    for (size_t i = 0; i < json_array_size(features); i++)
        if (strcmp(json_string_value(json_array_get(features, i)), name) == 0)
            return true;
    return false;
}

static enum case_verdict judge_cost(const json_t *line, const char *key, uint64_t got, struct buf *why)
{
    const char *want = json_string_value(json_object_get(line, key));

    if (!want || strtoull(want, NULL, 10) == got)
        return CASE_PASSED;
    buf_addf(why, "%s is %llu, not %s", key, (unsigned long long)got, want);
    return CASE_FAILED;
}

static enum case_verdict judge_outcome(const json_t *line, const char *got, const char *message, struct buf *why)
{
    const char *want = string_at(line, "outcome");
    const char *words = json_string_value(json_object_get(json_object_get(line, "expect"), "message"));

    if (strcmp(want, got) != 0) {
        buf_addf(why, "%s, not %s: %s", got, want, message ? message : "");
        return CASE_FAILED;
    }
    if (words && message && !strstr(message, words)) {
        buf_addf(why, "the message \"%s\" does not contain \"%s\"", message, words);
        return CASE_FAILED;
    }
    return CASE_PASSED;
}

static enum case_verdict run_selector(const json_t *line, int release, struct arena *arena, struct buf *why)
{
    struct cel_options options = {.list_attributes = has_feature(line, "DRAListTypeAttributes"), .release = release};
    struct cel_device_spec spec = case_device(json_object_get(line, "device"), arena);
    CLEANUP(cel_expr) *expr = NULL;
    struct cel_problem problem = {0};
    struct cel_result result;
    enum case_verdict verdict;

    if (cel_compile(text_of(json_object_get(line, "expr")), &options, &expr, &problem) < 0)
        return judge_outcome(line, "compile_error", problem.excerpt, why);
    result = cel_evaluate(expr, cel_device_prepare(&spec, &options, arena), arena);
    verdict = judge_outcome(line,
                            result.outcome == CEL_TRUE    ? "true"
                            : result.outcome == CEL_FALSE ? "false"
                                                          : "runtime_error",
                            result.message, why);
    if (verdict == CASE_PASSED)
        verdict = judge_cost(line, "actualCost", result.cost, why);
    if (verdict == CASE_PASSED)
        verdict = judge_cost(line, "estimatedCost", cel_estimated_cost(expr), why);
    return verdict;
}

enum case_verdict case_run(const json_t *line, int release, struct buf *why)
{
    int min = minor_of(line, "k8s_min", 34), max = minor_of(line, "k8s_max", 37);
    enum case_verdict verdict;
    struct arena arena;

    if (release && (release < min || release > max))
        return CASE_SKIPPED;
    arena_init(&arena);
    if (json_object_get(line, "device"))
        verdict = run_selector(line, release ? release : max, &arena, why);
    else
        verdict = run_language(line, &arena, why);
    arena_release(&arena);
    return verdict;
}
