#include "api/handlers.h"
#include "api/internal.h"

#include "allocator/base/banned.h"

void handle_devices(struct request *request)
{
    struct error err = {0};
    json_t *body = core_devices(request->api->core, &request->caller, &err);

    request_result(request, body, &err);
}

void handle_strays(struct request *request)
{
    struct error err = {0};
    json_t *body = core_strays(request->api->core, &request->caller, &err);

    request_result(request, body, &err);
}

void handle_nodes(struct request *request)
{
    struct error err = {0};
    json_t *body = core_nodes(request->api->core, &request->caller, &err);

    request_result(request, body, &err);
}
