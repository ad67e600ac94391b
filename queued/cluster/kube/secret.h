/* queued/cluster/kube/secret.h - text that is wiped before its memory is given back: tokens, keys. */
#ifndef QUEUED_KUBE_SECRET_H
#define QUEUED_KUBE_SECRET_H

#include <stddef.h>

struct buf;

/* Wipe and free a NUL-terminated text; NULL is fine. */
void secret_free(char *text);
/* The same for a text being built; it is empty afterwards. */
void secret_release(struct buf *buf);
/* Put `value` (taken, may be NULL) in place of what `*slot` holds, which is wiped. */
void secret_put(char **slot, char *value);

/* A text being built that is wiped at the end of its scope. Grow it in one step where that is possible: what a growing
 * buffer leaves behind is not wiped. */
#define SECRET_BUF __attribute__((cleanup(secret_release))) struct buf

static inline void secret_freep(char **text)
{
    secret_free(*text);
}
#define SECRET_TEXT __attribute__((cleanup(secret_freep))) char

#endif
