#include "api/handlers.h"
#include "api/internal.h"

#include "allocator/base/banned.h"

void handle_queues(struct request *request)
{
    struct error err = {0};
    json_t *body = core_queues(request->api->core, &request->caller, &err);

    request_result(request, body, &err);
}

void handle_queue(struct request *request)
{
    struct error err = {0};
    json_t *body = core_queue(request->api->core, &request->caller, request->args[0], &err);

    request_result(request, body, &err);
}

void handle_queue_delete(struct request *request)
{
    core_delete_queue(request->api->core, &request->caller, request->args[0], request_core_reply, request);
}

void handle_apply(struct request *request)
{
    core_apply(request->api->core, &request->caller, request->body, request_core_reply, request);
}

void handle_resources(struct request *request)
{
    struct error err = {0};
    json_t *body = core_resources(request->api->core, &err);

    request_result(request, body, &err);
}
