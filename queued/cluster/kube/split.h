/* queued/cluster/kube/split.h - cuts what an API server streams into single objects while it arrives.
 *
 * A watch is one JSON object after another; a list is one large object whose `items` are what we want. Neither is ever
 * held as a whole: the splitter keeps the bytes of one item and hands each to jansson when it is complete. Limits on
 * the size of one item and on depth. Pure. */
#ifndef QUEUED_KUBE_SPLIT_H
#define QUEUED_KUBE_SPLIT_H

#include <stddef.h>

#include <jansson.h>

#include "allocator/base/error.h"

struct split;

enum split_form { SPLIT_WATCH, SPLIT_LIST };

struct split_options {
    enum split_form form;
    size_t max_item_bytes; /* 0: 4 MiB */
    size_t max_depth;      /* 0: 64 */
    /* An item of the list, or an event of the watch, without managedFields (skim.h); borrowed. Returning -1 with err
     * ends the splitting. */
    int (*item)(void *ctx, json_t *item, struct error *err);
    /* An item that is too large, or no JSON: it is passed over. What is only too deep, or JSON that jansson refuses, is
     * mended (mend.h) and goes to item(). NULL: any of these ends the splitting. */
    void (*refused)(void *ctx, const struct error *why);
    void *ctx;
};
struct split *split_new(const struct split_options *options);
void split_free(struct split *split);

/* The next bytes. Returns 0, or -1: ERR_INVALID, ERR_LIMIT, or what item() said; then nothing more is to be fed. */
MUST_CHECK int split_feed(struct split *split, const char *bytes, size_t len, struct error *err);
/* The end of the stream: -1 with ERR_REMOTE when it ends within an object (or, of a list, before its end). */
MUST_CHECK int split_end(struct split *split, struct error *err);
/* Of a list: its "metadata" as it came, or NULL; borrowed. */
const json_t *split_metadata(const struct split *split);

#endif
