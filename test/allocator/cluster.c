#include "test/allocator/cluster.h"

#include <string.h>

#include "allocator/model.h"
#include "queued/manifest/yaml.h"
#include "test/support/cmocka.h"

#include "allocator/base/banned.h"

json_t *yaml_documents(const char *yaml)
{
    struct error err = {0};
    struct manifest *manifest;
    json_t *array = json_array();

    if (manifest_parse("test", yaml, strlen(yaml), &MANIFEST_LIMITS_DEFAULT, &manifest, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < manifest_n_documents(manifest); i++)
        json_array_append(array, manifest_document(manifest, i));
    manifest_free(manifest);
    return array;
}

void put_yaml(struct snapshot_builder *builder, const char *yaml)
{
    json_t *documents = yaml_documents(yaml), *object;
    size_t i;

    json_array_foreach(documents, i, object)
    {
        struct error err = {0};

        if (snapshot_builder_put(builder, object, &err) < 0)
            fail_msg("%s: %s", err.field, err.text);
    }
    json_decref(documents);
}

struct snapshot *cluster_of(const char *yaml, int release)
{
    struct features features = features_default(release);
    struct snapshot_builder *builder = snapshot_builder_new(&features, true);
    struct snapshot *snapshot;

    put_yaml(builder, yaml);
    snapshot = snapshot_builder_build(builder);
    snapshot_builder_free(builder);
    return snapshot;
}

static void add_results(struct buf *text, const struct prediction *prediction)
{
    for (size_t i = 0; i < prediction->n_allocations; i++)
        for (size_t k = 0; k < prediction->allocations[i].n_results; k++) {
            const struct device_result *r = &prediction->allocations[i].results[k];

            buf_addf(text, "%s%s=%s/%s", text->len ? " " : "", r->request, r->pool, r->device);
        }
}

char *predicted(const struct snapshot *snapshot, const char *node, const char *claim_yaml)
{
    static const char *const verdicts[] = {[PREDICT_NO_FIT] = "[no fit]",
                                           [PREDICT_NODE_ERROR] = "[node error]",
                                           [PREDICT_FATAL] = "[fatal]",
                                           [PREDICT_TIMEOUT] = "[timeout]"};
    json_t *documents = yaml_documents(claim_yaml);
    const struct claim *claims[8];
    struct prediction prediction;
    struct arena arena = {0};
    struct buf text = {0};
    size_t n = json_array_size(documents);

    for (size_t i = 0; i < n; i++) {
        struct error err = {0};
        struct claim *claim;

        if (claim_parse(json_array_get(documents, i), snapshot_features(snapshot), true, &arena, &claim, &err) < 0)
            fail_msg("%s: %s", err.field, err.text);
        claims[i] = claim;
    }
    predict(snapshot, node, claims, n, 0, &arena, &prediction);
    if (prediction.verdict == PREDICT_ALLOCATED)
        add_results(&text, &prediction);
    else
        buf_adds(&text, verdicts[prediction.verdict]);
    arena_release(&arena);
    json_decref(documents);
    return buf_take(&text);
}
