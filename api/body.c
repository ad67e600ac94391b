#include "api/body.h"

#include <stdbool.h>
#include <string.h>

#include "api/http.h"
#include "queued/manifest/yaml.h"

#include "allocator/base/banned.h"

static const struct {
    const char *name;
    enum body_type type;
} types[] = {
    {"application/json", BODY_TYPE_JSON}, {"application/yaml", BODY_TYPE_YAML}, {"application/x-yaml", BODY_TYPE_YAML},
    {"text/yaml", BODY_TYPE_YAML},        {"text/x-yaml", BODY_TYPE_YAML},
};

enum body_type body_type_of(struct str content_type)
{
    if (!content_type.ptr)
        return BODY_TYPE_NONE;
    if (memchr(content_type.ptr, ',', content_type.len))
        return BODY_TYPE_OTHER;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (http_list_has(content_type, types[i].name))
            return types[i].type;
    return BODY_TYPE_OTHER;
}

/* Where a string ends, from behind its opening quote. */
static size_t skip_string(struct str text, size_t at)
{
    while (at < text.len && text.ptr[at] != '"')
        at += text.ptr[at] == '\\' ? 2 : 1;
    return at;
}

/* Depth and number of values from the punctuation alone. Text that is no JSON may be counted wrongly; it is refused by
 * the parser, which gets no deeper and no further than what was counted here: it nests at brackets and repeats at
 * commas, and both are counted wherever it could see them. */
static int check_size(struct str text, struct error *err)
{
    size_t depth = 0, n = 1;

    for (size_t i = 0; i < text.len; i++) {
        switch (text.ptr[i]) {
        case '"':
            i = skip_string(text, i + 1);
            break;
        case '[':
        case '{':
            n++;
            if (++depth > BODY_DEPTH_MAX)
                return error_set(err, ERR_LIMIT, "the body is nested deeper than %d levels", BODY_DEPTH_MAX);
            break;
        case ']':
        case '}':
            depth -= depth > 0;
            break;
        case ',':
            n++;
            break;
        default:
            break;
        }
        if (n > BODY_NODES_MAX)
            return error_set(err, ERR_LIMIT, "the body has more than %d values", BODY_NODES_MAX);
    }
    return 0;
}

int body_parse_json(struct str text, json_t **out, struct error *err)
{
    json_error_t why;
    json_t *value;

    if (check_size(text, err) < 0)
        return -1;
    value = json_loadb(text.ptr ? text.ptr : "", text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!value)
        return error_set(err, ERR_INVALID, "the body is no JSON: line %d, column %d: %s", why.line, why.column,
                         why.text);
    *out = value;
    return 0;
}

static int check_documents(const json_t *documents, struct error *err)
{
    if (json_array_size(documents) == 0)
        return error_field(err, "documents", "there is no document");
    for (size_t i = 0; i < json_array_size(documents); i++)
        if (!json_is_object(json_array_get(documents, i)))
            return error_field(err, "documents", "document %zu is no object", i);
    return 0;
}

/* {"documents": [...]} and nothing else */
static int take_documents(json_t *body, json_t **out, struct error *err)
{
    json_t *documents = json_object_get(body, "documents");
    const char *key;
    json_t *value;

    if (!json_is_object(body))
        return error_set(err, ERR_INVALID, "the body must be {\"documents\": [...]}");
    json_object_foreach(body, key, value) if (strcmp(key, "documents") != 0) return error_field(
        err, key, "the body has no field '%.60s'; it must be {\"documents\": [...]}", key);
    if (!json_is_array(documents))
        return error_field(err, "documents", "documents must be an array");
    *out = json_incref(documents);
    return 0;
}

static int parse_yaml(struct str text, json_t **out, struct manifest **out_manifest, struct error *err)
{
    const struct manifest_limits limits = {text.len + 1, BODY_DEPTH_MAX, BODY_NODES_MAX, BODY_DOCUMENTS_MAX};

    if (manifest_parse("body", text.ptr ? text.ptr : "", text.len, &limits, out_manifest, err) < 0)
        return -1;
    *out = json_array();
    for (size_t i = 0; i < manifest_n_documents(*out_manifest); i++)
        json_array_append(*out, manifest_document(*out_manifest, i));
    return 0;
}

int body_parse_documents(struct str text, enum body_type type, json_t **out, struct manifest **out_manifest,
                         struct error *err)
{
    json_t *documents = NULL, *body = NULL;
    int result;

    *out_manifest = NULL;
    if (type == BODY_TYPE_YAML) {
        result = parse_yaml(text, &documents, out_manifest, err);
    } else {
        result = body_parse_json(text, &body, err);
        if (result == 0)
            result = take_documents(body, &documents, err);
        json_decref(body);
    }
    if (result == 0)
        result = check_documents(documents, err);
    if (result == 0) {
        *out = documents;
        return 0;
    }
    json_decref(documents);
    manifest_free(*out_manifest);
    *out_manifest = NULL;
    return -1;
}
