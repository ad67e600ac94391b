#include "queued/manifest/fields.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/arena.h"
#include "allocator/base/quantity.h"
#include "queued/manifest/duration.h"
#include "queued/manifest/yaml.h"

#include "allocator/base/banned.h"

/* ---- words ---- */

const char *json_kind(const json_t *value)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_STRING] = "text", [JSON_INTEGER] = "a number",
        [JSON_REAL] = "a number",    [JSON_TRUE] = "true",    [JSON_FALSE] = "false", [JSON_NULL] = "null",
    };

    return value ? kinds[json_typeof(value)] : "nothing";
}

int error_key(struct error *err, const char *key, const char *fmt, ...)
{
    char words[400], field[128];
    va_list args;

    va_start(args, fmt);
    vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    snprintf(field, sizeof(field), "[%s]", key);
    return error_field(err, field, "%s", words);
}

#define WORD_MAX 64

/* Edit distance without regard to case, where swapping neighbours is one edit (optimal string alignment). */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1], n = strlen(a), m = strlen(b);

    if (n > WORD_MAX || m > WORD_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = rows[i % 3], *up = rows[(i + 2) % 3], *above = rows[(i + 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = up[j - 1] + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));

            best = up[j] + 1 < best ? up[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 2]) &&
                tolower((unsigned char)a[i - 2]) == tolower((unsigned char)b[j - 1]) && above[j - 2] + 1 < best)
                best = above[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *closest_name(const char *word, const char *(*name_of)(const void *ctx, size_t i), const void *ctx, size_t n)
{
    size_t limit = strlen(word) / 4 + 1, best = limit + 1;
    const char *found = NULL;

    for (size_t i = 0; i < n; i++) {
        const char *name = name_of(ctx, i);
        bool begun =
            strlen(word) >= 4 && strncasecmp(word, name, strlen(word)) == 0; /* deviceClass of deviceClassName */
        size_t distance = begun ? limit : edit_distance(word, name);

        if (distance < best) {
            best = distance;
            found = name;
        }
    }
    return found;
}

static const char *field_name_of(const void *ctx, size_t i)
{
    const struct fields *fields = ctx;

    return fields->rows[i].name;
}

static int unknown_field(const char *name, const struct fields *fields, struct error *err)
{
    const char *close = closest_name(name, field_name_of, fields, fields->n);

    if (close)
        return error_field(err, name, "unknown field (did you mean %s?)", close);
    return error_field(err, name, "unknown field");
}

/* ---- names ---- */

int field_name_check(const char *name, size_t max, bool dots, struct error *err)
{
    size_t len = strlen(name);
    char last = '.';

    if (len == 0)
        return error_set(err, ERR_INVALID, "must not be empty");
    if (len > max)
        return error_set(err, ERR_INVALID, "longer than %zu characters", max);
    for (size_t i = 0; i < len; i++) {
        bool edge = i == 0 || i == len - 1 || last == '.' || name[i + 1] == '.';
        bool letter = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9');

        if (!letter && (edge || (name[i] != '-' && !(dots && name[i] == '.'))))
            return error_set(err, ERR_INVALID,
                             "\"%.70s\" must consist of lower case letters, digits%s and '-', and begin "
                             "and end with a letter or digit",
                             name, dots ? ", '.'" : "");
        last = name[i];
    }
    return 0;
}

/* ---- types ---- */

static int wrong_type(const json_t *value, const char *want, struct error *err)
{
    if (strcmp(want, "text") == 0 && (json_is_number(value) || json_is_boolean(value)))
        return error_set(err, ERR_INVALID, "must be text, not %s: write it in quotes", json_kind(value));
    return error_set(err, ERR_INVALID, "must be %s, not %s", want, json_kind(value));
}

static int check_string(const json_t *value, const struct field *field, struct error *err)
{
    BUF list = {0};

    if (!json_is_string(value))
        return wrong_type(value, "text", err);
    if (!field->one_of)
        return 0;
    for (const char *const *one = field->one_of; *one; one++) {
        if (strcmp(*one, json_string_value(value)) == 0)
            return 0;
        buf_addf(&list, "%s%s", list.len ? ", " : "", *one);
    }
    if (field->refused)
        return error_set(err, ERR_INVALID, "%s: %s", json_string_value(value), field->refused);
    return error_set(err, ERR_INVALID, "\"%.60s\" is none of %s", json_string_value(value), buf_str(&list));
}

static int check_int(json_t **value, const struct field *field, struct error *err)
{
    if (json_is_real(*value) && fabs(json_real_value(*value)) < 9e15 &&
        trunc(json_real_value(*value)) == json_real_value(*value))
        *value = json_integer((json_int_t)json_real_value(*value));
    else
        json_incref(*value);
    if (!json_is_integer(*value))
        return wrong_type(*value, "a whole number", err);
    if (field->max > field->min && (json_integer_value(*value) < field->min || json_integer_value(*value) > field->max))
        return error_set(err, ERR_INVALID, "%lld is not in %lld to %lld", (long long)json_integer_value(*value),
                         (long long)field->min, (long long)field->max);
    return 0;
}

static int check_duration(const json_t *value, struct error *err)
{
    int64_t ms;

    if (!json_is_string(value))
        return error_set(err, ERR_INVALID, "must be a duration such as 90m or 1h30m, not %s", json_kind(value));
    if (!duration_parse(json_string_value(value), &ms) || ms <= 0)
        return error_set(err, ERR_INVALID, "\"%.60s\" is no duration such as 90s, 45m or 1h30m",
                         json_string_value(value));
    return 0;
}

static int check_strings(const json_t *list, struct error *err)
{
    const json_t *entry;
    size_t i;

    if (!json_is_array(list))
        return wrong_type(list, "a list of texts", err);
    json_array_foreach (list, i, entry) {
        if (!json_is_string(entry)) {
            wrong_type(entry, "text", err);
            return error_in(err, "[%zu]", i);
        }
    }
    return 0;
}

static int check_text_map(json_t *map, struct error *err)
{
    const char *key;
    json_t *value;
    void *next;

    if (!json_is_object(map))
        return wrong_type(map, "an object of texts", err);
    json_object_foreach_safe (map, next, key, value) {
        if (json_is_null(value)) {
            json_object_set_new(map, key, json_string(""));
        } else if (!json_is_string(value)) {
            wrong_type(value, "text", err);
            return error_in(err, "[%s]", key);
        }
    }
    return 0;
}

/* A quantity's text; numbers become the text that a person would have written. */
static int check_quantity(json_t *value, json_t **out, struct error *err)
{
    struct arena arena = {0};
    struct quantity quantity;
    char real[MANIFEST_REAL_SIZE];
    int rc;

    if (json_is_integer(value)) {
        snprintf(real, sizeof(real), "%lld", (long long)json_integer_value(value));
        *out = json_string(real);
    } else if (json_is_real(value)) {
        manifest_format_real(json_real_value(value), real);
        *out = json_string(real);
    } else if (json_is_string(value)) {
        *out = json_incref(value);
    } else {
        *out = json_incref(value);
        return wrong_type(value, "a quantity such as 4, 500m or 16Gi", err);
    }
    rc = quantity_parse(str_of(json_string_value(*out)), &arena, &quantity, err);
    if (rc == 0 && quantity_sign(&quantity) < 0)
        rc = error_set(err, ERR_INVALID, "must not be negative");
    arena_release(&arena);
    return rc;
}

static int check_quantity_map(json_t *map, struct error *err)
{
    const char *key;
    json_t *value;
    void *next;

    if (!json_is_object(map))
        return wrong_type(map, "an object of quantities", err);
    json_object_foreach_safe (map, next, key, value) {
        json_t *text = NULL;
        int rc = check_quantity(value, &text, err);

        if (rc < 0) {
            json_decref(text);
            return error_in(err, "[%s]", key);
        }
        json_object_set_new(map, key, text);
    }
    return 0;
}

static int check_objects(json_t *list, const struct fields *of, struct error *err)
{
    json_t *entry;
    size_t i;

    if (!json_is_array(list))
        return wrong_type(list, "a list", err);
    json_array_foreach (list, i, entry)
        if (fields_check(entry, of, err) < 0)
            return error_in(err, "[%zu]", i);
    return 0;
}

/* *value may be exchanged for a new reference in another form; else it gets one more. */
static int check_type(json_t **value, const struct field *field, struct error *err)
{
    if (field->type == FIELD_INT)
        return check_int(value, field, err);
    if (field->type == FIELD_QUANTITY)
        return check_quantity(*value, value, err);
    json_incref(*value);
    switch (field->type) {
    case FIELD_ANY:
    case FIELD_INT:
    case FIELD_QUANTITY:
        return 0;
    case FIELD_STRING:
        return check_string(*value, field, err);
    case FIELD_BOOL:
        return json_is_boolean(*value) ? 0 : wrong_type(*value, "true or false", err);
    case FIELD_DURATION:
        return check_duration(*value, err);
    case FIELD_STRINGS:
        return check_strings(*value, err);
    case FIELD_TEXT_MAP:
        return check_text_map(*value, err);
    case FIELD_QUANTITY_MAP:
        return check_quantity_map(*value, err);
    case FIELD_OBJECT:
        return fields_check(*value, field->of, err);
    case FIELD_OBJECTS:
        return check_objects(*value, field->of, err);
    case FIELD_LIST:
        return json_is_array(*value) ? 0 : wrong_type(*value, "a list", err);
    case FIELD_MAP:
        return json_is_object(*value) ? 0 : wrong_type(*value, "an object", err);
    }
    return 0;
}

/* ---- objects ---- */

static const struct field *field_find(const struct fields *fields, const char *name)
{
    for (size_t i = 0; i < fields->n; i++)
        if (strcmp(fields->rows[i].name, name) == 0)
            return &fields->rows[i];
    return NULL;
}

static int check_member(json_t *object, const char *name, json_t *value, const struct field *field, struct error *err)
{
    json_t *form = value;
    int rc;

    if (field->refused && !field->one_of)
        return error_field(err, name, "%s", field->refused);
    if (json_is_array(value) && field->max > 0 && json_array_size(value) > (size_t)field->max) {
        error_set(err, ERR_LIMIT, "%zu entries are more than %lld", json_array_size(value), (long long)field->max);
        return error_in(err, "%s", name);
    }
    rc = check_type(&form, field, err);
    if (rc == 0 && field->check)
        rc = field->check(form, err);
    if (rc < 0)
        error_in(err, "%s", name);
    else if (form != value)
        json_object_set(object, name, form);
    json_decref(form);
    return rc;
}

int fields_check(json_t *object, const struct fields *fields, struct error *err)
{
    const char *name;
    json_t *value;
    void *next;

    if (!json_is_object(object))
        return wrong_type(object, "an object", err);
    json_object_foreach_safe (object, next, name, value) {
        const struct field *field = field_find(fields, name);

        if (!field)
            return unknown_field(name, fields, err);
        if (json_is_null(value) || field->dropped)
            json_object_del(object, name);
        else if (check_member(object, name, value, field, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < fields->n; i++)
        if (fields->rows[i].required && !json_object_get(object, fields->rows[i].name))
            return error_field(err, fields->rows[i].name, "is missing");
    return fields->check ? fields->check(object, err) : 0;
}
