#include "allocator/internal.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/banned.h"

const char *load_symbol(const struct load *load, const char *text)
{
    if (!text)
        return NULL;
    return load->symbols ? symbol(load->symbols, text) : arena_strdup(load->arena, text);
}

const json_t *member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_null(value) ? NULL : value;
}

int read_text(const json_t *object, const char *key, struct arena *arena, const char *fallback, const char **out,
              struct error *err)
{
    const json_t *value = member(object, key);

    *out = fallback;
    if (!value)
        return 0;
    if (!json_is_string(value))
        return error_field(err, key, "must be a string");
    if (strlen(json_string_value(value)) != json_string_length(value))
        return error_field(err, key, "must not contain NUL");
    *out = arena_strndup(arena, json_string_value(value), json_string_length(value));
    return 0;
}

int read_bool(const json_t *object, const char *key, bool *out, struct error *err)
{
    const json_t *value = member(object, key);

    *out = json_is_true(value);
    return !value || json_is_boolean(value) ? 0 : error_field(err, key, "must be true or false");
}

int read_int(const json_t *object, const char *key, int64_t *out, struct error *err)
{
    const json_t *value = member(object, key);

    if (!value)
        return 0;
    if (!json_is_integer(value))
        return error_field(err, key, "must be a whole number");
    *out = json_integer_value(value);
    return 0;
}

int read_array(const json_t *object, const char *key, const json_t **out, struct error *err)
{
    *out = member(object, key);
    return !*out || json_is_array(*out) ? 0 : error_field(err, key, "must be a list");
}

int read_object(const json_t *object, const char *key, const json_t **out, struct error *err)
{
    *out = member(object, key);
    return !*out || json_is_object(*out) ? 0 : error_field(err, key, "must be an object");
}

int read_texts(const json_t *object, const char *key, struct arena *arena, struct string_list *out, struct error *err)
{
    const json_t *array, *item;
    const char **items;
    size_t i;

    *out = (struct string_list){0};
    if (read_array(object, key, &array, err) < 0)
        return -1;
    if (!array)
        return 0;
    items = arena_array(arena, const char *, json_array_size(array) + 1);
    json_array_foreach(array, i, item)
    {
        if (!json_is_string(item) || strlen(json_string_value(item)) != json_string_length(item)) {
            error_set(err, ERR_INVALID, "must be a string");
            return error_in(err, "%s[%zu]", key, i);
        }
        items[i] = arena_strdup(arena, json_string_value(item));
    }
    *out = (struct string_list){items, json_array_size(array)};
    return 0;
}

int read_quantity(const json_t *value, struct arena *arena, struct quantity *out, struct error *err)
{
    int result;
    char *text;

    if (json_is_string(value))
        return quantity_parse((struct str){json_string_value(value), json_string_length(value)}, arena, out, err);
    if (!json_is_number(value))
        return error_set(err, ERR_INVALID, "must be a quantity");
    text = json_dumps(value, JSON_ENCODE_ANY);
    result = quantity_parse(str_of(text), arena, out, err);
    free(text);
    return result;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

int read_labels(const json_t *object, const char *key, struct arena *arena, const struct label **out, size_t *out_n,
                struct error *err)
{
    const json_t *map, *value;
    struct label *labels;
    const char *name;
    size_t n = 0;

    if (read_object(object, key, &map, err) < 0)
        return -1;
    labels = arena_array(arena, struct label, json_object_size(map) + 1);
    json_object_foreach((json_t *)map, name, value)
    {
        if (!json_is_string(value)) {
            error_set(err, ERR_INVALID, "must be a string");
            return error_in(err, "%s[%s]", key, name);
        }
        labels[n++] = (struct label){arena_strdup(arena, name), arena_strdup(arena, json_string_value(value))};
    }
    qsort(labels, n, sizeof(*labels), by_key);
    *out = labels;
    *out_n = n;
    return 0;
}

const char *json_text(const json_t *value, struct arena *arena)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    const char *copy = arena_strdup(arena, text ? text : "null");

    free(text);
    return copy;
}

static int read_selector(const json_t *selector, const struct load *load, const char **out, struct error *err)
{
    const json_t *cel;

    *out = NULL;
    if (!json_is_object(selector))
        return error_set(err, ERR_INVALID, "must be an object");
    if (read_object(selector, "cel", &cel, err) < 0)
        return -1;
    if (!cel && load->validate)
        return error_field(err, "cel", "is required");
    if (!cel)
        return 0;
    if (read_text(cel, "expression", load->arena, "", out, err) < 0 ||
        (load->validate && expression_check(*out, load, err) < 0))
        return error_in(err, "cel");
    return 0;
}

int read_selectors(const json_t *object, const char *key, const struct load *load, const char *const **out,
                   size_t *out_n, struct error *err)
{
    const json_t *array, *item;
    const char **texts;
    size_t i;

    if (read_array(object, key, &array, err) < 0)
        return -1;
    if (load->validate && json_array_size(array) > 32)
        return error_field(err, key, "at most 32 selectors are allowed");
    texts = arena_array(load->arena, const char *, json_array_size(array) + 1);
    json_array_foreach(array, i, item)
    {
        if (read_selector(item, load, &texts[i], err) < 0)
            return error_in(err, "%s[%zu]", key, i);
    }
    *out = texts;
    *out_n = json_array_size(array);
    return 0;
}

/* ---- taints and tolerations ---- */

static const struct {
    const char *text;
    enum taint_effect effect;
} effects[] = {
    {"None", EFFECT_NONE},
    {"NoSchedule", EFFECT_NO_SCHEDULE},
    {"NoExecute", EFFECT_NO_EXECUTE},
    {"PreferNoSchedule", EFFECT_PREFER_NO_SCHEDULE},
};

static enum taint_effect effect_of(const char *text)
{
    for (size_t i = 0; i < ARRAY_SIZE(effects); i++)
        if (text_is(text, effects[i].text))
            return effects[i].effect;
    return EFFECT_OTHER;
}

int read_taint(const json_t *json, const struct load *load, struct taint *out, struct error *err)
{
    *out = (struct taint){0};
    if (!json_is_object(json))
        return error_set(err, ERR_INVALID, "must be an object");
    if (read_text(json, "key", load->arena, "", &out->key, err) < 0 ||
        read_text(json, "value", load->arena, "", &out->value, err) < 0 ||
        read_text(json, "effect", load->arena, "", &out->effect_text, err) < 0)
        return -1;
    out->effect = effect_of(out->effect_text);
    if (!load->validate)
        return 0;
    if (name_check("key", out->key, name_problem_label_key(out->key), err) < 0 ||
        name_check("value", out->value, name_problem_label_value(out->value), err) < 0)
        return -1;
    return *out->effect_text ? 0 : error_field(err, "effect", "is required");
}

int read_taints(const json_t *object, const char *key, const struct load *load, const struct taint **out, size_t *out_n,
                struct error *err)
{
    const json_t *array, *item;
    struct taint *taints;
    size_t i;

    if (read_array(object, key, &array, err) < 0)
        return -1;
    taints = arena_array(load->arena, struct taint, json_array_size(array) + 1);
    json_array_foreach(array, i, item)
    {
        if (read_taint(item, load, &taints[i], err) < 0)
            return error_in(err, "%s[%zu]", key, i);
    }
    *out = taints;
    *out_n = json_array_size(array);
    return 0;
}

static const struct {
    const char *text;
    enum toleration_operator op;
} toleration_operators[] = {
    {"", TOLERATE_EQUAL}, {"Equal", TOLERATE_EQUAL}, {"Exists", TOLERATE_EXISTS},
    {"Lt", TOLERATE_LT},  {"Gt", TOLERATE_GT},
};

static enum toleration_operator operator_of(const char *text)
{
    for (size_t i = 0; i < ARRAY_SIZE(toleration_operators); i++)
        if (text_is(text, toleration_operators[i].text))
            return toleration_operators[i].op;
    return TOLERATE_OTHER;
}

static int check_toleration(const struct toleration *t, struct error *err)
{
    if (*t->key && name_check("key", t->key, name_problem_label_key(t->key), err) < 0)
        return -1;
    if (t->op != TOLERATE_EQUAL && t->op != TOLERATE_EXISTS)
        return error_field(err, "operator", "must be Equal or Exists");
    if (t->op == TOLERATE_EXISTS && *t->value)
        return error_field(err, "value", "must be empty when the operator is Exists");
    if (t->op == TOLERATE_EQUAL && name_check("value", t->value, name_problem_label_value(t->value), err) < 0)
        return -1;
    return 0;
}

static int read_toleration(const json_t *json, const struct load *load, struct toleration *out, struct error *err)
{
    if (!json_is_object(json))
        return error_set(err, ERR_INVALID, "must be an object");
    if (read_text(json, "key", load->arena, "", &out->key, err) < 0 ||
        read_text(json, "operator", load->arena, "", &out->op_text, err) < 0 ||
        read_text(json, "value", load->arena, "", &out->value, err) < 0 ||
        read_text(json, "effect", load->arena, "", &out->effect_text, err) < 0 ||
        read_int(json, "tolerationSeconds", &out->seconds, err) < 0)
        return -1;
    out->has_seconds = member(json, "tolerationSeconds") != NULL;
    out->op = operator_of(out->op_text);
    return load->validate ? check_toleration(out, err) : 0;
}

int read_tolerations(const json_t *object, const char *key, const struct load *load, const struct toleration **out,
                     size_t *out_n, struct error *err)
{
    const json_t *array, *item;
    struct toleration *tolerations;
    size_t i;

    if (read_array(object, key, &array, err) < 0)
        return -1;
    tolerations = arena_array(load->arena, struct toleration, json_array_size(array) + 1);
    json_array_foreach(array, i, item)
    {
        if (read_toleration(item, load, &tolerations[i], err) < 0)
            return error_in(err, "%s[%zu]", key, i);
    }
    *out = tolerations;
    *out_n = json_array_size(array);
    return 0;
}

bool toleration_covers(const struct toleration *toleration, const struct taint *taint)
{
    if (*toleration->effect_text && !text_is(toleration->effect_text, taint->effect_text))
        return false;
    if (*toleration->key && !text_is(toleration->key, taint->key))
        return false;
    if (toleration->op == TOLERATE_EXISTS)
        return true;
    return toleration->op == TOLERATE_EQUAL && text_is(toleration->value, taint->value);
}

int read_name(const json_t *object, struct arena *arena, const char **out, struct error *err)
{
    const json_t *meta;

    if (read_object(object, "metadata", &meta, err) < 0)
        return -1;
    if (read_text(meta, "name", arena, "", out, err) < 0)
        return error_in(err, "metadata");
    return **out ? 0 : error_field(err, "metadata.name", "is required");
}
