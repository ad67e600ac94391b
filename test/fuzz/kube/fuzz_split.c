/* Any bytes as a watch or a list: whole and in pieces they come to the same, and what comes out passes through
 * kind_trim and the table of what is known. The first byte chooses form and limits, the second how the rest is cut. */
#include "test/fuzz/kube/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/rng.h"
#include "allocator/base/str.h"
#include "queued/cluster/kube/kinds.h"
#include "queued/cluster/kube/known.h"
#include "queued/cluster/kube/split.h"

#include "allocator/base/banned.h"

struct seen {
    const struct source *source;
    struct known *known;
    struct buf text;
};

static void use(struct seen *seen, json_t *object)
{
    json_t *trimmed = kind_trim(seen->source, "v1", object), *gone = NULL;
    char *text = json_dumps(trimmed, JSON_COMPACT | JSON_SORT_KEYS);

    buf_addf(&seen->text, "%s %d\n", text ? text : "?", (int)known_put(seen->known, object, 1, &gone));
    free(text);
    json_decref(trimmed);
    json_decref(gone);
    if (known_count(seen->known) > 3)
        json_decref(known_remove(seen->known, object));
}

static int take(void *ctx, json_t *item, struct error *err)
{
    json_t *object = json_object_get(item, "object");

    (void)err;
    use(ctx, json_is_object(object) ? object : item);
    return 0;
}

static void pass_over(void *ctx, const struct error *why)
{
    struct seen *seen = ctx;

    buf_addf(&seen->text, "refused %s\n", why->text);
}

static enum err_code run(uint8_t choice, const char *bytes, size_t len, uint64_t seed, struct seen *seen)
{
    struct split_options options = {.form = choice & 1 ? SPLIT_LIST : SPLIT_WATCH,
                                    .max_item_bytes = choice & 2 ? 100 : 0,
                                    .max_depth = choice & 4 ? 3 : 0,
                                    .item = take,
                                    .refused = choice & 8 ? pass_over : NULL,
                                    .ctx = seen};
    struct split *split = split_new(&options);
    struct rng rng = {seed};
    struct error err = {0};
    int result = 0;

    seen->source = &kube_sources[(choice >> 4) % n_kube_sources];
    seen->known = known_new();
    while (len && result == 0) {
        size_t n = seed ? 1 + rng_below(&rng, 20) : len;

        n = n < len ? n : len;
        result = split_feed(split, bytes, n, &err);
        bytes += n;
        len -= n;
    }
    if (result == 0)
        result = split_end(split, &err);
    for (json_t *gone; (gone = known_sweep(seen->known, 2));)
        json_decref(gone);
    INVARIANT(known_count(seen->known) == 0);
    known_free(seen->known);
    split_free(split);
    INVARIANT((result < 0) == (err.code != ERR_NONE));
    return err.code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = {0}, cut = {0};
    enum err_code a, b;

    if (size < 2)
        return 0;
    a = run(data[0], (const char *)data + 2, size - 2, 0, &whole);
    b = run(data[0], (const char *)data + 2, size - 2, 1 + (uint64_t)data[1], &cut);
    INVARIANT(a == b);
    INVARIANT(strcmp(buf_str(&whole.text), buf_str(&cut.text)) == 0);
    buf_release(&whole.text);
    buf_release(&cut.text);
    return 0;
}
