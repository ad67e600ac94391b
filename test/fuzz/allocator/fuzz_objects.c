/* Any JSON as an object of the cluster, with and without checks: never a crash, and the rest stays usable. The text may
 * hold several objects, one per line. */
#include "test/fuzz/allocator/fuzz.h"

#include <jansson.h>
#include <string.h>

#include "allocator/model.h"

#include "allocator/base/banned.h"

static void look(void *ctx, const struct device_view *device)
{
    *(size_t *)ctx += strlen(device->state);
}

static void use(const struct snapshot *snapshot)
{
    size_t sum = 0;

    snapshot_each_device(snapshot, look, &sum);
    json_decref(snapshot_nodes_json(snapshot));
}

static void put(struct snapshot_builder *builder, const json_t *object, bool validate)
{
    struct features features = features_default(37);
    struct arena arena = {0};
    struct error err = {0};
    struct claim *claim;

    if (snapshot_builder_put(builder, object, &err) < 0)
        err = (struct error){0};
    if (claim_parse(object, &features, validate, &arena, &claim, &err) < 0)
        err = (struct error){0};
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct features features = features_default(34 + (size ? data[0] % 4 : 0));

    for (int validate = 0; validate < 2; validate++) {
        struct snapshot_builder *builder = snapshot_builder_new(&features, validate);
        const char *at = (const char *)data, *end = at + size;

        while (at < end) {
            const char *line = memchr(at, '\n', (size_t)(end - at));
            size_t len = line ? (size_t)(line - at) : (size_t)(end - at);
            json_t *object = json_loadb(at, len, 0, NULL);
            struct snapshot *snapshot;

            at += len + 1;
            if (!object)
                continue;
            put(builder, object, validate);
            snapshot = snapshot_builder_build(builder);
            use(snapshot);
            snapshot_unref(snapshot);
            json_decref(object);
        }
        snapshot_builder_free(builder);
    }
    return 0;
}
