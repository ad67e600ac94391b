/* /openapi.json, made from the route table; the schemas are api/schemas.json, built into the program. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "api/handlers.h"
#include "api/internal.h"
#include "api/schemas.h"

#include "allocator/base/banned.h"

static json_t *ref(const char *schema)
{
    BUF text = {0};

    buf_addf(&text, "#/components/schemas/%s", schema);
    return json_pack("{s:s}", "$ref", buf_str(&text));
}

static json_t *content(const char *type, const char *schema)
{
    json_t *value = schema ? json_pack("{s:o}", "schema", ref(schema)) : json_object();

    return json_pack("{s:o}", type, value);
}

static json_t *query_parameter(const struct param *param)
{
    static const char *const types[] = {[PARAM_TEXT] = "string", [PARAM_FLAG] = "boolean", [PARAM_INT] = "integer"};
    json_t *schema = json_pack("{s:s}", "type", types[param->kind]);

    if (param->kind == PARAM_INT) {
        json_object_set_new(schema, "minimum", json_integer(param->min));
        json_object_set_new(schema, "maximum", json_integer(param->max));
    }
    return json_pack("{s:s, s:s, s:s, s:o}", "name", param->name, "in", "query", "description", param->help, "schema",
                     schema);
}

static json_t *path_parameter(const char *name, size_t len)
{
    return json_pack("{s:s%, s:s, s:b, s:{s:s}}", "name", name, len, "in", "path", "required", 1, "schema", "type",
                     "string");
}

static json_t *parameters(const struct route *route)
{
    json_t *list = json_array();

    for (const char *at = strchr(route->path, '{'); at; at = strchr(at + 1, '{'))
        json_array_append_new(list, path_parameter(at + 1, strcspn(at + 1, "}")));
    for (const struct param *param = route->params; param->name; param++)
        json_array_append_new(list, query_parameter(param));
    return list;
}

static json_t *responses(const struct route *route)
{
    json_t *good = json_pack("{s:s}", "description", http_status_title(route->status));
    BUF status = {0};

    buf_addf(&status, "%d", route->status);
    if (route->schema)
        json_object_set_new(good, "content", content("application/json", route->schema));
    return json_pack("{s:o, s:{s:s, s:o}}", buf_str(&status), good, "default", "description", "Problem", "content",
                     content("application/problem+json", "Problem"));
}

static json_t *request_body(const struct route *route)
{
    json_t *types = content("application/json", route->body == BODY_DOCUMENTS ? "Documents" : NULL);

    if (route->body == BODY_DOCUMENTS)
        json_object_set_new(types, "application/yaml", json_object());
    return json_pack("{s:b, s:o}", "required", 1, "content", types);
}

static json_t *operation(const struct route *route)
{
    json_t *value = json_pack("{s:s, s:o, s:o}", "summary", route->help, "parameters", parameters(route), "responses",
                              responses(route));

    json_object_set_new(value, "x-role", json_string(role_name(route->role)));
    if (route->role == ROLE_NONE)
        json_object_set_new(value, "security", json_array());
    if (route->body != BODY_NONE)
        json_object_set_new(value, "requestBody", request_body(route));
    return value;
}

static json_t *paths(void)
{
    json_t *all = json_object();

    for (const struct route *route = routes_all(); route->method; route++) {
        json_t *path = json_object_get(all, route->path);
        char method[8] = {0};

        for (size_t i = 0; i + 1 < sizeof(method) && route->method[i]; i++)
            method[i] = (char)tolower((unsigned char)route->method[i]);
        if (!path) {
            path = json_object();
            json_object_set_new(all, route->path, path);
        }
        json_object_set_new(path, method, operation(route));
    }
    return all;
}

void handle_openapi(struct request *request)
{
    json_t *schemas = json_loads(api_schemas, 0, NULL);
    json_t *security;

    INVARIANT(schemas);
    security = json_pack("{s:{s:s, s:s}}", "token", "type", "http", "scheme", "bearer");
    request_result(request,
                   json_pack("{s:s, s:{s:s, s:s}, s:[{s:[]}], s:o, s:{s:o, s:o}}", "openapi", "3.1.0", "info", "title",
                             "queued", "version", QUEUED_VERSION, "security", "token", "paths", paths(), "components",
                             "securitySchemes", security, "schemas", schemas),
                   NULL);
}
