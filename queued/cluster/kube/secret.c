#include "queued/cluster/kube/secret.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/str.h"

#include "allocator/base/banned.h"

void secret_free(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void secret_release(struct buf *buf)
{
    if (buf->data)
        explicit_bzero(buf->data, buf->cap);
    buf_release(buf);
}

void secret_put(char **slot, char *value)
{
    secret_free(*slot);
    *slot = value;
}
