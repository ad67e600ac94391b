/* The bytes choose a cluster and a claim; the fast search must say what the plain one says, for every release, within
 * its steps. */
#include "test/fuzz/allocator/fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/model.h"

#include "allocator/base/banned.h"

#define MAX_STEPS 20000

struct bytes {
    const uint8_t *at, *end;
};

static unsigned take(struct bytes *bytes, unsigned n)
{
    return bytes->at < bytes->end ? *bytes->at++ % n : 0;
}

static void put(struct snapshot_builder *builder, struct buf *text)
{
    json_t *object = json_loads(buf_str(text), 0, NULL);
    struct error err = {0};

    INVARIANT(object != NULL);
    INVARIANT(snapshot_builder_put(builder, object, &err) == 0);
    json_decref(object);
    buf_clear(text);
}

static const char *const device_parts[] = {
    "",
    ",\"allowMultipleAllocations\":true",
    ",\"taints\":[{\"key\":\"t\",\"effect\":\"NoSchedule\"}]",
    ",\"bindsToNode\":true",
    ",\"bindingConditions\":[\"a\"],\"bindingFailureConditions\":[\"b\"]",
    ",\"consumesCounters\":[{\"counterSet\":\"s\",\"counters\":{\"c\":{\"value\":\"2\"}}}]",
    ",\"consumesCounters\":[{\"counterSet\":\"s\",\"counters\":{\"c\":{\"value\":\"-1\"}}}]",
};

static void add_device(struct buf *text, struct bytes *bytes, unsigned i)
{
    buf_addf(text, "%s{\"name\":\"d%u\"", i ? "," : "", take(bytes, 16) ? i : 0);
    if (take(bytes, 8))
        buf_addf(text, ",\"attributes\":{\"k\":{\"int\":%u},\"l\":{\"strings\":[\"%u\",\"%u\"]}}", take(bytes, 3),
                 take(bytes, 3), take(bytes, 3));
    if (take(bytes, 3))
        buf_addf(text, ",\"capacity\":{\"m\":{\"value\":\"%u\"}}", take(bytes, 6));
    buf_adds(text, device_parts[take(bytes, ARRAY_SIZE(device_parts))]);
    buf_adds(text, "}");
}

static void add_slice(struct snapshot_builder *builder, struct bytes *bytes, unsigned number)
{
    static const char *const wheres[] = {
        "\"nodeName\":\"n\"", "\"allNodes\":true",
        "\"nodeSelector\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"z\",\"operator\":\"Exists\"}]}]}",
        "\"nodeName\":\"other\""};
    unsigned n = take(bytes, 9);
    BUF text = {0};

    buf_addf(
        &text,
        "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\",\"metadata\":{\"name\":\"s%u\"},\"spec\":{"
        "\"driver\":\"d\",\"pool\":{\"name\":\"p%u\",\"generation\":%u,\"resourceSliceCount\":%u},%s,",
        number, take(bytes, 2), take(bytes, 2), 1 + take(bytes, 2), wheres[take(bytes, ARRAY_SIZE(wheres))]);
    if (take(bytes, 5) == 0)
        buf_addf(&text, "\"sharedCounters\":[{\"name\":\"s\",\"counters\":{\"c\":{\"value\":\"%u\"}}}]}}",
                 take(bytes, 9));
    else {
        buf_adds(&text, "\"devices\":[");
        for (unsigned i = 0; i < n; i++)
            add_device(&text, bytes, i);
        buf_adds(&text, "]}}");
    }
    put(builder, &text);
}

static void add_holder(struct snapshot_builder *builder, struct bytes *bytes, unsigned number)
{
    BUF text = {0};

    buf_addf(
        &text,
        "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"h%u\"},\"status\":{"
        "\"allocation\":{\"devices\":{\"results\":[{\"driver\":\"d\",\"pool\":\"p%u\",\"device\":\"d%u\"%s}]}}}}",
        number, take(bytes, 2), take(bytes, 8),
        take(bytes, 2) ? ",\"shareID\":\"x\",\"consumedCapacity\":{\"m\":\"1\"}" : "");
    put(builder, &text);
}

static struct snapshot *make_cluster(struct bytes *bytes, const struct features *features)
{
    struct snapshot_builder *builder = snapshot_builder_new(features, false);
    struct snapshot *snapshot;
    unsigned n_slices = 1 + take(bytes, 4), n_held = take(bytes, 3);
    BUF text = {0};

    buf_adds(&text, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"labels\":{\"z\":\"1\"}}}");
    put(builder, &text);
    buf_adds(&text, "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"DeviceClass\",\"metadata\":{\"name\":\"c\"}}");
    put(builder, &text);
    for (unsigned i = 0; i < n_slices; i++)
        add_slice(builder, bytes, i);
    for (unsigned i = 0; i < n_held; i++)
        add_holder(builder, bytes, i);
    snapshot = snapshot_builder_build(builder);
    snapshot_builder_free(builder);
    return snapshot;
}

static void add_ask(struct buf *text, struct bytes *bytes)
{
    static const char *const extras[] = {
        "",
        ",\"selectors\":[{\"cel\":{\"expression\":\"device.attributes['d'].k == 1\"}}]",
        ",\"capacity\":{\"requests\":{\"m\":\"2\"}}",
        ",\"tolerations\":[{\"operator\":\"Exists\"}]",
        ",\"adminAccess\":true",
    };

    buf_addf(text, "\"deviceClassName\":\"c\",\"allocationMode\":\"%s\"", take(bytes, 4) ? "ExactCount" : "All");
    buf_addf(text, ",\"count\":%u%s", take(bytes, 6), extras[take(bytes, ARRAY_SIZE(extras))]);
}

static json_t *make_claim(struct bytes *bytes)
{
    static const char *const constraints[] = {"", "{\"matchAttribute\":\"d/k\"}", "{\"distinctAttribute\":\"d/k\"}",
                                              "{\"matchAttribute\":\"d/l\"}"};
    unsigned n = 1 + take(bytes, 3);
    BUF text = {0};

    buf_adds(&text, "{\"metadata\":{\"name\":\"c\"},\"spec\":{\"devices\":{\"requests\":[");
    for (unsigned i = 0; i < n; i++) {
        bool list = take(bytes, 3) == 0;

        buf_addf(&text, "%s{\"name\":\"r%u\",%s", i ? "," : "", i,
                 list ? "\"firstAvailable\":[{\"name\":\"a\"," : "\"exactly\":{");
        add_ask(&text, bytes);
        if (list) {
            buf_adds(&text, "},{\"name\":\"b\",");
            add_ask(&text, bytes);
        }
        buf_adds(&text, list ? "}]}" : "}}");
    }
    buf_addf(&text, "],\"constraints\":[%s]}}}", constraints[take(bytes, ARRAY_SIZE(constraints))]);
    return json_loads(buf_str(&text), 0, NULL);
}

static void compare(const struct snapshot *snapshot, struct claim *claim)
{
    const struct claim *const claims[] = {claim};
    const struct node *node = snapshot_find_node(snapshot, "n");
    struct shape *shape = shape_new(snapshot, claims, 1);
    struct search_options options = {.max_steps = MAX_STEPS, .plain = true};
    struct prediction fast, plain;
    struct arena arena = {0};

    predict_shape(shape, NULL, node, &options, &arena, &plain);
    options.plain = false;
    predict_shape(shape, NULL, node, &options, &arena, &fast);
    if (plain.verdict != PREDICT_TIMEOUT && fast.verdict != PREDICT_TIMEOUT)
        INVARIANT(fast.verdict == plain.verdict);
    if (fast.verdict == PREDICT_ALLOCATED && plain.verdict == PREDICT_ALLOCATED) {
        json_t *a = allocation_to_json(&fast.allocations[0], NULL, NULL);
        json_t *b = allocation_to_json(&plain.allocations[0], NULL, NULL);

        INVARIANT(json_equal(a, b));
        json_decref(a);
        json_decref(b);
    }
    arena_release(&arena);
    shape_free(shape);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes bytes = {data, data + size};
    struct features features = features_default(34 + (int)take(&bytes, 4));
    struct snapshot *snapshot;
    struct arena arena = {0};
    struct claim *claim;
    json_t *object;

    features.on ^= take(&bytes, 4) ? 0 : BIT(take(&bytes, FEATURE_COUNT));
    snapshot = make_cluster(&bytes, &features);
    object = make_claim(&bytes);
    INVARIANT(object != NULL);
    if (claim_parse(object, &features, false, &arena, &claim, NULL) == 0)
        compare(snapshot, claim);
    arena_release(&arena);
    json_decref(object);
    snapshot_unref(snapshot);
    return 0;
}
