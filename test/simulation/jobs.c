/* Random jobs over what the clusters of cluster.c have. */
#include "test/simulation/story.h"

#include <stdio.h>
#include <string.h>

/* What a claim may ask for, as the devices part of a ResourceClaimSpec. */
enum ask { ASK_GPU, ASK_MODEL, ASK_LINKED, ASK_EITHER, ASK_MIG, ASK_NIC, ASK_LINK, ASK_ALL, ASK_ERROR, ASK_COUNT };

#define MODEL(m) "selectors: [{cel: {expression: 'device.attributes[\"gpu.sim\"].model == \"" m "\"'}}]"
#define MIG_OF_AT_LEAST(gi)                                                                                            \
    "selectors: [{cel: {expression: 'device.capacity[\"gpu.sim\"].memory.compareTo(quantity(\"" gi "Gi\")) >= 0'}}]"

static void add_ask(struct buf *text, enum ask ask, struct rng *rng)
{
    buf_adds(text, "{devices: {requests: [{name: r, ");
    switch (ask) {
    case ASK_GPU:
        buf_addf(text, "exactly: {deviceClassName: gpu, count: %zu}}]", (size_t)1 + one_in(rng, 3));
        break;
    case ASK_MODEL:
        buf_addf(text, "exactly: {deviceClassName: gpu, count: %zu, %s}}]", 1 + pick(rng, 2),
                 one_in(rng, 2) ? MODEL("A") : MODEL("B"));
        break;
    case ASK_LINKED:
        buf_addf(text,
                 "exactly: {deviceClassName: gpu, count: %zu}}], constraints: [{requests: [r], matchAttribute: "
                 "gpu.sim/domain}]",
                 2 + pick(rng, 2));
        break;
    case ASK_EITHER:
        buf_addf(text,
                 "firstAvailable: [{name: one, deviceClassName: gpu, " MODEL("A") "}, {name: two, deviceClassName: %s, "
                                                                                  "count: %zu}]}]",
                 one_in(rng, 3) ? "mig" : "gpu", 1 + pick(rng, 2));
        break;
    case ASK_MIG:
        buf_addf(text, "exactly: {deviceClassName: mig%s}}]", one_in(rng, 2) ? ", " MIG_OF_AT_LEAST("40") : "");
        break;
    case ASK_NIC:
        buf_addf(text, "exactly: {deviceClassName: nic, capacity: {requests: {bandwidth: '%zu'}}}}]",
                 10 * (1 + pick(rng, 8)));
        break;
    case ASK_LINK:
        buf_adds(text, "exactly: {deviceClassName: link}}]");
        break;
    case ASK_ALL:
        buf_adds(text, "exactly: {deviceClassName: gpu, allocationMode: All}}]");
        break;
    case ASK_ERROR: /* an expression that fails on every device */
        buf_adds(text, "exactly: {deviceClassName: gpu, selectors: [{cel: {expression: "
                       "'device.attributes[\"gpu.sim\"].colour == \"red\"'}}]}}]");
        break;
    case ASK_COUNT:
        break;
    }
    buf_adds(text, "}}");
}

static enum ask pick_ask(const struct story_cluster *cluster, struct rng *rng)
{
    static const enum ask usual[] = {ASK_GPU, ASK_GPU, ASK_GPU, ASK_MODEL, ASK_LINKED, ASK_EITHER, ASK_EITHER};

    if (cluster->has_migs && one_in(rng, 4))
        return ASK_MIG;
    if (cluster->has_nics && one_in(rng, 4))
        return ASK_NIC;
    if (cluster->n_links && one_in(rng, 5))
        return ASK_LINK;
    if (one_in(rng, 40))
        return ASK_ALL;
    if (one_in(rng, 40))
        return ASK_ERROR;
    return usual[pick(rng, 7)];
}

struct maker {
    const struct story *story;
    struct rng *rng;
    struct job_traits *traits;
    size_t n_templates;
    bool has_shared, wants_gpu_only; /* constraints over an attribute cover only what has it */
    struct buf templates;
};

static void add_template(struct maker *maker)
{
    enum ask ask = maker->wants_gpu_only ? (enum ask[]){ASK_GPU, ASK_MODEL, ASK_EITHER}[pick(maker->rng, 3)]
                                         : pick_ask(&maker->story->cluster, maker->rng);

    buf_addf(&maker->templates, "    - {name: t%zu, spec: ", maker->n_templates++);
    add_ask(&maker->templates, ask, maker->rng);
    buf_adds(&maker->templates, "}\n");
}

static size_t pick_duration_ms(struct rng *rng)
{
    static const size_t up_to_ms[] = {500, 5000, 20000, 60000};

    return 50 + pick(rng, one_in(rng, 20) ? STORY_NEVER_ENDS * 60000 : up_to_ms[pick(rng, 4)]);
}

/* A group, in flow style on a few lines. */
static void add_group(struct maker *maker, struct buf *text, const char *indent, size_t g, size_t replicas)
{
    struct rng *rng = maker->rng;
    size_t exit_code = one_in(rng, 8) ? 1 + pick(rng, 3) : 0, n_claims = one_in(rng, 8) ? 0 : 1 + (one_in(rng, 6));
    bool is_sharing = maker->has_shared && !one_in(rng, 3);

    maker->traits->fails |= exit_code != 0;
    buf_addf(text,
             "%s- name: g%zu\n%s  replicas: %zu\n%s  template:\n%s    metadata: {annotations: "
             "{embedded.queue.dra/duration: %zums, embedded.queue.dra/exit-code: '%zu'}}\n%s    spec:\n",
             indent, g, indent, replicas, indent, indent, pick_duration_ms(rng), exit_code, indent);
    if (one_in(rng, 10))
        buf_addf(text, "%s      nodeSelector: {zone: z%zu}\n", indent, pick(rng, 2));
    if (one_in(rng, 3))
        buf_addf(text, "%s      tolerations: [{key: dedicated, operator: Exists}]\n", indent);
    buf_addf(text, "%s      containers: [{name: c, image: i, resources: {requests: {cpu: '%zu'}, claims: [", indent,
             1 + pick(rng, 3));
    for (size_t c = 0; c < n_claims; c++)
        buf_addf(text, "%s{name: c%zu}", c ? ", " : "", c);
    if (is_sharing)
        buf_addf(text, "%s{name: s}", n_claims ? ", " : "");
    buf_addf(text, "]}}]\n%s      resourceClaims: [", indent);
    for (size_t c = 0; c < n_claims; c++) {
        buf_addf(text, "%s{name: c%zu, resourceClaimTemplateName: t%zu}", c ? ", " : "", c, maker->n_templates);
        add_template(maker);
    }
    if (is_sharing)
        buf_addf(text, "%s{name: s, resourceClaimName: shared}", n_claims ? ", " : "");
    buf_adds(text, "]\n");
}

static void add_constraints(struct maker *maker, struct buf *text)
{
    struct job_traits *traits = maker->traits;

    if (traits->match[0])
        buf_addf(text, "  constraints: [{matchAttribute: gpu.sim/%s, requests: [r]}]\n", traits->match);
    else if (traits->distinct[0])
        buf_addf(text, "  constraints: [{distinctAttribute: gpu.sim/%s, requests: [r]}]\n", traits->distinct);
    else if (one_in(maker->rng, 6))
        buf_addf(text, "  constraints: [{matchNodeLabel: zone%s}]\n", one_in(maker->rng, 2) ? ", preferred: true" : "");
}

static void add_head(struct maker *maker, struct buf *text)
{
    struct job_traits *traits = maker->traits;
    struct rng *rng = maker->rng;
    char queue[8];

    queue_name_of(queues_pick_leaf(&maker->story->queues, rng), queue);
    traits->ttl_ms = -1;
    buf_addf(text, "apiVersion: queue.dra/v1\nkind: GangJob\nmetadata: {name: %s}\nspec:\n  queue: %s\n", traits->name,
             queue);
    if (one_in(rng, 4))
        buf_addf(text, "  priority: %zu\n", pick(rng, 3));
    else if (one_in(rng, 6))
        buf_adds(text, "  priorityClassName: high\n");
    if (one_in(rng, 3))
        buf_addf(text, "  retries: %zu\n", pick(rng, 4));
    if (one_in(rng, 5)) {
        traits->max_runtime_ms = 1000 * (int64_t)(1 + pick(rng, 30));
        buf_addf(text, "  maxRuntime: %lldms\n", (long long)traits->max_runtime_ms);
    }
    if (one_in(rng, 6)) {
        traits->ttl_ms = 1 + 1000 * (int64_t)pick(rng, 60); /* not 0: then nobody would ever see its end */
        buf_addf(text, "  ttlAfterFinished: %lldms\n", (long long)traits->ttl_ms);
    }
    traits->is_held = one_in(rng, 10);
    if (traits->is_held)
        buf_adds(text, "  hold: true\n");
    if (traits->depends_on[0])
        buf_addf(text, "  dependsOn: [%s]\n", traits->depends_on);
    if (one_in(rng, 6))
        buf_adds(text, "  sameAlternative: true\n");
    if (one_in(rng, 4))
        buf_addf(text, "  placement: %s\n", (const char *[]){"pack", "spread", "fragmentation"}[pick(rng, 3)]);
}

/* The name of a job before, in about one of eight stories' jobs. */
static void pick_dependency(const struct story *story, struct rng *rng, char out[16])
{
    const struct step *before = NULL;
    size_t n = 0;

    if (!one_in(rng, 8))
        return;
    for (size_t i = 0; i < story->n_steps; i++)
        if (story->steps[i].job.name[0] && one_in(rng, ++n))
            before = &story->steps[i];
    if (before)
        snprintf(out, 16, "%s", before->job.name);
}

static void pick_constraint(struct maker *maker)
{
    static const char *const attributes[] = {"model", "domain"};
    size_t which = pick(maker->rng, 10);

    if (which < 2)
        snprintf(maker->traits->match, sizeof(maker->traits->match), "%s", attributes[which]);
    else if (which == 2)
        snprintf(maker->traits->distinct, sizeof(maker->traits->distinct), "domain");
    maker->wants_gpu_only = which <= 2;
}

char *job_make(const struct story *story, struct rng *rng, struct job_traits *traits)
{
    struct maker maker = {.story = story, .rng = rng, .traits = traits};
    size_t n_groups = 1 + pick(rng, one_in(rng, 3) ? 3 : 1);
    bool has_alternative = one_in(rng, 5);
    BUF text = {0};

    pick_dependency(story, rng, traits->depends_on);
    pick_constraint(&maker);
    maker.has_shared = !maker.wants_gpu_only && one_in(rng, 5);
    add_head(&maker, &text);
    add_constraints(&maker, &text);
    buf_adds(&text, "  groups:\n");
    for (size_t g = 0; g < n_groups; g++)
        add_group(&maker, &text, "    ", g, 1 + pick(rng, one_in(rng, 4) ? 4 : 2));
    if (has_alternative) {
        buf_adds(&text, "  alternatives:\n    - name: other\n      groups:\n");
        add_group(&maker, &text, "        ", 0, 1 + pick(rng, 2));
    }
    if (maker.n_templates)
        buf_addf(&text, "  claimTemplates:\n%s", buf_str(&maker.templates));
    if (strstr(buf_str(&text), "resourceClaimName: shared")) {
        buf_adds(&text, "  sharedClaims:\n    - {name: shared, spec: ");
        add_ask(&text, pick_ask(&story->cluster, rng), rng);
        buf_adds(&text, "}\n");
    }
    buf_release(&maker.templates);
    return buf_take(&text);
}
