#include "api/handlers.h"
#include "api/internal.h"

#include "allocator/base/banned.h"

void handle_healthz(struct request *request)
{
    json_t *body = json_pack("{s:s}", "status", "ok");

    request_result(request, body, NULL);
}

void handle_readyz(struct request *request)
{
    json_t *status = core_status(request->api->core);
    const char *reason = json_string_value(json_object_get(status, "reason"));

    if (request->api->is_stopping)
        request_problem(request, 503, ERR_UNAVAILABLE, NULL, "the server is stopping", NULL);
    else if (!json_is_true(json_object_get(status, "ready")))
        request_problem(request, 503, ERR_UNAVAILABLE, NULL, reason ? reason : "the server is starting", NULL);
    else
        request_result(request, json_pack("{s:s}", "status", "ready"), NULL);
    json_decref(status);
}

void handle_version(struct request *request)
{
    json_t *status = core_status(request->api->core);
    json_t *cluster = json_object_get(status, "cluster");

    json_object_del(cluster, "server"); /* anybody may ask for versions */
    request_result(request, json_pack("{s:s, s:O?}", "version", QUEUED_VERSION, "cluster", cluster), NULL);
    json_decref(status);
}
