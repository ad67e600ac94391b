#include "queued/nodes.h"

#include <string.h>

#include "allocator/base/checked.h"
#include "queued/admission/charge.h"
#include "queued/admission/quota.h"

#include "allocator/base/banned.h"

/* An autoscaler may know kinds of nodes of which there is none now, so nodes are what a gang lacks also when it would
 * never fit on what there is. A brief round does not say what would help: then the autoscaler does. */
static bool lacks_nodes(const struct plan_input *input, const struct plan_outcome *outcome)
{
    const char *verdict = json_string_value(json_object_get(outcome->explanation, "verdict"));

    if (outcome->layer != LAYER_DEVICES || (verdict && strcmp(verdict, "refused") == 0))
        return false;
    return outcome->is_never || input->is_brief || !outcome->explanation ||
           json_array_size(json_object_get(outcome->explanation, "wouldFitWithNodes")) > 0;
}

/* ---- quota ----
 * A gang that fits nowhere was not compared with the quota: what it is charged for depends on the devices that it
 * takes. What is sure of that without a placement must be within the quota before somebody pays for nodes. */

/* Devices of a class that a claim takes at least; alternatives are not looked into. */
static int64_t devices_of(const json_t *claim, const char *device_class)
{
    const json_t *spec = json_object_get(claim, "spec"), *inner = json_object_get(spec, "spec"), *request;
    int64_t sum = 0;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(inner ? inner : spec, "devices"), "requests"), i, request) {
        const json_t *exactly = json_object_get(request, "exactly") ? json_object_get(request, "exactly") : request;
        const char *name = json_string_value(json_object_get(exactly, "deviceClassName"));
        const json_t *count = json_object_get(exactly, "count");

        if (name && strcmp(name, device_class) == 0 &&
            !checked_add(sum, json_is_integer(count) ? json_integer_value(count) : 1, &sum))
            return INT64_MAX;
    }
    return sum;
}

static int64_t least_devices(const struct job_shape *shape, const char *device_class)
{
    int64_t sum = 0, product;

    for (size_t g = 0; g < shape->n_groups; g++)
        for (size_t c = 0; c < shape->groups[g].n_claims; c++) {
            const struct job_claim *claim = &shape->groups[g].claims[c];
            int64_t n = claim->source == JOB_CLAIM_OWN ? devices_of(claim->object, device_class) : 0;

            if (!checked_mul(n, (int64_t)shape->groups[g].min_replicas, &product) || !checked_add(sum, product, &sum))
                return INT64_MAX;
        }
    return sum;
}

static bool is_within_quota(const struct plan_input *input, const struct book *book, const struct plan_job *job)
{
    const struct job_shape *shape = &job->spec->shapes[0];
    struct arena arena = {0};
    struct tree tree = {0};
    const int64_t *least = charge_least(input, shape, &arena);
    bool is_within = true;

    tree_init(&tree, input, &arena);
    for (size_t r = 0; r < input->n_resources && is_within; r++) {
        const char *device_class = book->defined[r].device_class;
        int64_t need = least[r];

        if (input->resources[r].kind == RESOURCE_DEVICES && device_class && !input->resources[r].capacity)
            need = least_devices(shape, device_class);
        is_within = need == 0 || need <= quota_available(&tree, job->queue, r);
    }
    arena_release(&arena);
    return is_within;
}

enum ask_wish nodes_wish(const struct plan_input *input, const struct book *book, const struct plan_outcome *outcome,
                         bool *has_asked)
{
    const struct plan_job *job = &input->pending[outcome->job];

    if (outcome->is_admitted || outcome->is_untried || outcome->layer == LAYER_LAUNCH)
        return ASK_KEEP;
    if (has_asked[job->queue] || !lacks_nodes(input, outcome) || !is_within_quota(input, book, job))
        return ASK_NO;
    has_asked[job->queue] = true;
    return ASK_NODES;
}
