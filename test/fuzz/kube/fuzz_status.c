/* Any bytes as the body of a refusal, with a status from the first two bytes: always an error, in words that are text.
 */
#include "test/fuzz/kube/fuzz.h"

#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "queued/cluster/kube/status.h"

#include "allocator/base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_answer answer = {.retry_after_ms = -1};
    struct error err = {0};
    json_t *object;
    char *body;

    if (size < 2)
        return 0;
    answer.status = 300 + (data[0] * 256 + data[1]) % 300;
    body = mem_strndup((const char *)data + 2, size - 2);
    answer.body = body;
    answer.len = size - 2;
    INVARIANT(status_check(&answer, data[0] & 1, &err) == -1);
    INVARIANT(err.code != ERR_NONE && err.text[0]);
    INVARIANT(strcspn(err.text, "\n\r") == strlen(err.text));
    object = json_loadb(body, answer.len, 0, NULL);
    status_of_event(object, &err);
    json_decref(object);
    free(body);
    return 0;
}
