#include "api/handlers.h"
#include "api/internal.h"

#include "allocator/base/banned.h"

void handle_tokens(struct request *request)
{
    struct error err = {0};
    json_t *body = core_tokens(request->api->core, &request->caller, &err);

    request_result(request, body, &err);
}

void handle_token_create(struct request *request)
{
    core_create_token(request->api->core, &request->caller, request->body, request_core_reply, request);
}

void handle_token_delete(struct request *request)
{
    core_delete_token(request->api->core, &request->caller, request->args[0], request_core_reply, request);
}
