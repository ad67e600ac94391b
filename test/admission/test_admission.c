/* Whole rounds on a real snapshot: who starts, on what, charged to what, and the sentence for whoever waits. */
#include "test/support/cmocka.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queued/admission/charge.h"
#include "queued/admission/plan.h"
#include "queued/manifest/yaml.h"

/* Node h: four devices of model "h"; node l: four of model "l"; 8 CPUs each. */
static const char cluster[] =
    "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {}}\n"
    "---\n{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: other}, spec: {}}\n"
#define DEVICE(i, m) "{name: gpu-" i ", attributes: {model: {string: " m "}, index: {int: " i "}}}"
#define NODE(n)                                                                                                        \
    "---\n{apiVersion: v1, kind: Node, metadata: {name: " n                                                            \
    "}, spec: {}, status: {allocatable: {cpu: '8', memory: 8Gi, "                                                      \
    "pods: '10'}, conditions: [{type: Ready, status: 'True'}]}}\n"                                                     \
    "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: " n "}, spec: {driver: gpu.example, " \
    "nodeName: " n ", pool: {name: " n ", generation: 1, resourceSliceCount: 1}, devices: [" DEVICE(                   \
        "0", n) ", " DEVICE("1", n) ", " DEVICE("2", n) ", " DEVICE("3", n) "]}}\n"
    NODE("h") NODE("l");

/* A job of `members`, each with `count` devices by a list of models in the order of preference ("h", "hl", "*": any; a
 * capital asks for the same devices by class "other"). */
struct job_row {
    const char *queue;
    int members, count;
    const char *models;
    int priority;
    const char *cpu;    /* of each member; NULL: 1 */
    const char *second; /* models of a second whole-gang shape, or NULL */
    const char *waits_for;
    int64_t not_before_ms;
    int least; /* minReplicas; 0: all */
};
struct queue_row {
    const char *name;
    int64_t weight, h, l, cpu_milli; /* nominal quotas; -1: none; borrowing limit 0 */
    int64_t runs_h;                  /* charged already */
    enum queue_state state;
};

/* A ResourceQuota of one limit. */
#define LIMIT_OF(name, ns, spec, resource, hard, used)                                                                 \
    "---\n{apiVersion: v1, kind: ResourceQuota, metadata: {name: " name ", namespace: " ns "}, spec: {" spec           \
    "}, status: {hard: {" resource ": '" hard "'}, used: {" resource ": '" used "'}}}\n"
#define LIMIT(resource, hard, used) LIMIT_OF("q", "default", "", resource, hard, used)
#define DEVICES                     "gpu.deviceclass.resource.k8s.io/devices"

static const struct round_case {
    const char *name;
    struct queue_row queues[4];
    struct job_row jobs[6];
    const char *want;   /* per job in the order of the round */
    const char *limits; /* of the jobs' namespace: LIMIT()s, or NULL */
} cases[] = {
    {"a gang takes what it asks for and is charged for it",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 2, .count = 2, .models = "h"}},
     "1 starts: h=4 cpu=2000 pods=2\n",
     NULL},
    {"the next job sees what the first has taken",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 1, .count = 3, .models = "h"}, {.queue = "a", .members = 1, .count = 2, .models = "h"}},
     "1 starts: h=3 cpu=1000 pods=1\n2 waits: devices\n",
     NULL},
    {"a smaller job behind a blocked one starts",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 1, .count = 3, .models = "h"},
      {.queue = "a", .members = 1, .count = 2, .models = "h"},
      {.queue = "a", .members = 1, .count = 1, .models = "h"}},
     "1 starts: h=3 cpu=1000 pods=1\n2 waits: devices\n3 starts: h=1 cpu=1000 pods=1\n",
     NULL},
    {"a fallback is charged as what it is",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 1, .count = 4, .models = "h"},
      {.queue = "a", .members = 1, .count = 2, .models = "hl"}},
     "1 starts: h=4 cpu=1000 pods=1\n2 starts: l=2 cpu=1000 pods=1\n",
     NULL},
    {"when the quota of the first choice is spent the second is taken",
     {{"a", 1, 1, 4, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 1, .count = 2, .models = "hl"}},
     "1 starts: l=2 cpu=1000 pods=1\n",
     NULL},
    {"quota says no when there is no other choice",
     {{"a", 1, 2, 4, -1, 1, QUEUE_OPEN}},
     {{.queue = "a", .members = 1, .count = 2, .models = "h"}},
     "1 waits: quota: quota of h: needs 2, queue a may use 1 more (nominal 2, in use 1)\n",
     NULL},
    {"what is more than any quota can never start",
     {{"a", 1, 2, 4, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 1, .count = 3, .models = "h"}},
     "1 never: quota: quota of h: needs 3, queue a may use 2 more (nominal 2, in use 0); it may never use that many\n",
     NULL},
    {"cpu is a resource too and cannot be fallen back from",
     {{"a", 1, -1, -1, 1500, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 2, .count = 1, .models = "h", .cpu = "'1'"},
      {.queue = "a", .members = 2, .count = 1, .models = "h", .cpu = "500m"}},
     "1 never: quota: quota of cpu: needs 2, queue a may use 1500m more (nominal 1500m, in use 0)\n"
     "2 starts: h=2 cpu=1000 pods=2\n",
     NULL},
    {"a second whole-gang shape is tried when the first does not fit",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 1, .count = 4, .models = "h"},
      {.queue = "a", .members = 2, .count = 2, .models = "h", .second = "l"}},
     "1 starts: h=4 cpu=1000 pods=1\n2 starts in shape 2: l=4 cpu=2000 pods=2\n",
     NULL},
    {"a second shape is tried when quota forbids the first",
     {{"a", 1, 1, 8, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 2, .count = 2, .models = "h", .second = "l"}},
     "1 starts in shape 2: l=4 cpu=2000 pods=2\n",
     NULL},
    {"the queue with the lower share goes first",
     {{"a", 1, -1, -1, -1, 2, QUEUE_OPEN}, {"b", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 1, .count = 4, .models = "h"}, {.queue = "b", .members = 1, .count = 4, .models = "h"}},
     "2 starts: h=4 cpu=1000 pods=1\n1 waits: devices\n",
     NULL},
    {"a held queue starts nothing",
     {{"a", 1, -1, -1, -1, 0, QUEUE_HELD}},
     {{.queue = "a", .members = 1, .count = 1, .models = "h"}},
     "1 waits: queue: queue a is held: it starts nothing\n",
     NULL},
    {"dependencies and delays are waited for",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 1, .count = 1, .models = "h", .waits_for = "job x (9), which is Running"},
      {.queue = "a", .members = 1, .count = 1, .models = "h", .not_before_ms = 61000}},
     "1 waits: order: waits for job x (9), which is Running\n"
     "2 waits: launch: the last launch failed; the next one is tried in 60 s\n",
     NULL},
    {"an elastic gang starts as large as it fits",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 9, .count = 1, .models = "h", .least = 2, .cpu = "100m"},
      {.queue = "a", .members = 1, .count = 1, .models = "h"}},
     "1 starts: h=4 cpu=400 pods=4\n2 waits: devices\n",
     NULL},
    {"an elastic gang that fits whole starts whole",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 3, .count = 1, .models = "h", .least = 1}},
     "1 starts: h=3 cpu=3000 pods=3\n",
     NULL},
    {"an elastic gang starts as large as quota allows",
     {{"a", 1, 3, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 4, .count = 1, .models = "h", .least = 1}},
     "1 starts: h=3 cpu=3000 pods=3\n",
     NULL},
    {"what an elastic gang needs at least must be there",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 9, .count = 1, .models = "h", .least = 5}},
     "1 never: devices\n",
     NULL},
    {"the least is charged like the whole",
     {{"a", 1, 1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 4, .count = 1, .models = "h", .least = 2}},
     "1 never: quota: not even with 2 members: quota of h: needs 2, queue a may use 1 more (nominal 1, in use 0); it "
     "may never use that many\n",
     NULL},
    {"more than the cluster has can never start",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 1, .count = 5, .models = "*"}},
     "1 never: devices\n",
     NULL},
    {"the namespace's quota is kept before anything is created",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 2, .count = 2, .models = "h"}},
     "1 waits: quota: ResourceQuota q of namespace default: needs 4 of " DEVICES ", 3 of 6 are in use\n",
     LIMIT(DEVICES, "6", "3")},
    {"what is left in the namespace is enough",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 2, .count = 2, .models = "h"}},
     "1 starts: h=4 cpu=2000 pods=2\n",
     LIMIT(DEVICES, "6", "2")},
    {"jobs of one round add up in their namespace",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 2, .count = 1, .models = "h"},
      {.queue = "a", .members = 2, .count = 1, .models = "h"},
      {.queue = "a", .members = 1, .count = 1, .models = "h"}},
     "1 starts: h=2 cpu=2000 pods=2\n"
     "2 waits: quota: ResourceQuota q of namespace default: needs 2 of pods, 3 of 4 are in use\n"
     "3 starts: h=1 cpu=1000 pods=1\n",
     LIMIT("pods", "4", "1")},
    {"more than the namespace ever allows",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 3, .count = 1, .models = "h"}},
     "1 never: quota: ResourceQuota q of namespace default: needs 3 of requests.cpu, 0 of 2500m are in use; it may "
     "never use that many\n",
     LIMIT("requests.cpu", "2500m", "0")},
    {"a quota of another namespace says nothing",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 1, .count = 1, .models = "h"}},
     "1 starts: h=1 cpu=1000 pods=1\n",
     LIMIT_OF("q", "another", "", "pods", "0", "0") LIMIT_OF("q", "zoo", "", "pods", "0", "0")},
    {"every quota of the namespace must allow it",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 1, .count = 1, .models = "h"}},
     "1 never: quota: ResourceQuota z of namespace default: needs 1 of count/services, 0 of 0 are in use; it may never "
     "use that many\n",
     LIMIT("pods", "9", "0") LIMIT_OF("z", "default", "", "count/services", "0", "0")},
    {"an elastic gang starts as large as the namespace allows",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 4, .count = 1, .models = "h", .least = 1}},
     "1 starts: h=3 cpu=3000 pods=3\n",
     LIMIT("count/pods", "4", "1")},
    {"a fallback of another class is found when the namespace has none of the first",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 2, .count = 1, .models = "hL"}},
     "1 starts: l=2 cpu=2000 pods=2\n",
     LIMIT(DEVICES, "1", "0")},
    {"the last alternative is not left out",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 2, .count = 1, .models = "hl"}},
     "1 never: quota: ResourceQuota q of namespace default: needs 2 of " DEVICES
     ", 0 of 1 are in use; it may never use "
     "that many\n",
     LIMIT(DEVICES, "1", "0")},
    {"a quota for pods of a priority class is not about pods without",
     {{"a", 1, -1, -1, -1, 0, QUEUE_OPEN}},
     {{.queue = "a", .members = 1, .count = 1, .models = "h"}},
     "1 starts: h=1 cpu=1000 pods=1\n",
     LIMIT_OF("q", "default", "scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}",
              "pods", "0", "0")},
};

/* ---- from rows to input ---- */

static const char *const resource_names[] = {"cpu", "h", "l", "memory", "pods"};
enum { R_CPU, R_H, R_L, R_MEMORY, R_PODS, N_RESOURCES };

struct built {
    struct arena arena;
    struct snapshot *snapshot;
    struct plan_resource resources[N_RESOURCES];
    struct plan_queue queues[4];
    struct plan_quota quotas[4][N_RESOURCES];
    int64_t charges[4][N_RESOURCES];
    struct plan_running running[4];
    struct plan_job jobs[6];
    struct job_spec specs[6];
    json_t *gangjobs[6];
    struct namespace_quota limits[4];
    struct plan_input input;
};

static json_t *documents_of(const char *yaml)
{
    const struct manifest_limits limits = MANIFEST_LIMITS_DEFAULT;
    struct error err = {0};
    CLEANUP(manifest) *manifest = NULL;
    json_t *documents = json_array();

    if (manifest_parse("test", yaml, strlen(yaml), &limits, &manifest, &err) < 0)
        fail_msg("%s\n%s", err.text, yaml);
    for (size_t i = 0; i < manifest_n_documents(manifest); i++)
        json_array_append(documents, manifest_document(manifest, i));
    return documents;
}

static struct snapshot *snapshot_of(const char *yaml)
{
    struct features features = features_default(37);
    CLEANUP(snapshot_builder) *builder = snapshot_builder_new(&features, true);
    json_t *documents = documents_of(yaml), *document;
    struct error err = {0};
    size_t i;

    json_array_foreach (documents, i, document)
        if (snapshot_builder_put(builder, document, &err) < 0)
            fail_msg("%s: %s", err.field, err.text);
    json_decref(documents);
    return snapshot_builder_build(builder);
}

static void add_choices(struct buf *text, const char *models, int count)
{
    if (strcmp(models, "*") == 0) {
        buf_addf(text, "exactly: {deviceClassName: gpu, count: %d}", count);
        return;
    }
    buf_adds(text, "firstAvailable: [");
    for (const char *m = models; *m; m++) {
        char model = (char)tolower((unsigned char)*m);

        buf_addf(text,
                 "%s{name: on-%c, deviceClassName: %s, count: %d, selectors: [{cel: {expression: "
                 "'device.attributes[\"gpu.example\"].model == \"%c\"'}}]}",
                 m == models ? "" : ", ", model, model == *m ? "gpu" : "other", count, model);
    }
    buf_adds(text, "]");
}

static void add_group(struct buf *text, const struct job_row *row, const char *claim_template)
{
    buf_addf(text,
             "[{name: w, replicas: %d, minReplicas: %d, template: {spec: {containers: [{name: c, image: i, resources: "
             "{requests: {cpu: %s},"
             " claims: [{name: g}]}}], resourceClaims: [{name: g, resourceClaimTemplateName: %s}]}}}]",
             row->members, row->least ? row->least : row->members, row->cpu ? row->cpu : "'1'", claim_template);
}

static json_t *gangjob_of_text(const char *text)
{
    json_t *documents = documents_of(text), *gangjobs, *gangjob;
    struct job_problem problem = {0};
    const struct job_decode_options options = {0};

    if (jobs_decode(documents, &options, &gangjobs, &problem) < 0)
        fail_msg("%s: %s\n%s", problem.error.field, problem.error.text, text);
    gangjob = json_incref(json_array_get(gangjobs, 0));
    json_decref(gangjobs);
    json_decref(documents);
    return gangjob;
}

static json_t *gangjob_of(const struct job_row *row, size_t i)
{
    BUF text = {0};

    buf_addf(&text, "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: j%zu}, spec: {groups: ", i + 1);
    add_group(&text, row, "one");
    if (row->second) {
        buf_adds(&text, ", alternatives: [{name: other, groups: ");
        add_group(&text, row, "two");
        buf_adds(&text, "}]");
    }
    buf_adds(&text, ", claimTemplates: [{name: one, spec: {devices: {requests: [{name: r, ");
    add_choices(&text, row->models, row->count);
    buf_adds(&text, "}]}}}");
    if (row->second) {
        buf_adds(&text, ", {name: two, spec: {devices: {requests: [{name: r, ");
        add_choices(&text, row->second, row->count);
        buf_adds(&text, "}]}}}");
    }
    buf_adds(&text, "]}}");
    return gangjob_of_text(buf_str(&text));
}

static void build_resources(struct built *b)
{
    static const enum resource_kind kinds[] = {RESOURCE_CPU, RESOURCE_DEVICES, RESOURCE_DEVICES, RESOURCE_MEMORY,
                                               RESOURCE_PODS};
    json_t *nodes = snapshot_nodes_json(b->snapshot);

    for (size_t r = 0; r < N_RESOURCES; r++) {
        b->resources[r] = (struct plan_resource){.name = resource_names[r], .kind = kinds[r]};
        if (kinds[r] == RESOURCE_DEVICES) {
            char selector[80];
            struct device_matcher *matcher;

            snprintf(selector, sizeof(selector), "device.attributes[\"gpu.example\"].model == \"%s\"",
                     resource_names[r]);
            assert_int_equal(device_matcher_new("gpu", selector, &matcher, NULL), 0);
            b->resources[r].matcher = matcher;
        }
        b->resources[r].total = resource_total(&b->resources[r], b->snapshot, nodes);
    }
    json_decref(nodes);
}

static void add_quota(struct built *b, size_t queue, size_t resource, int64_t nominal)
{
    if (nominal >= 0)
        b->quotas[queue][b->queues[queue].n_quotas++] = (struct plan_quota){resource, nominal, 0, PLAN_UNLIMITED};
}

static size_t find_queue(const struct round_case *c, const char *name)
{
    size_t i = 0;

    while (strcmp(c->queues[i].name, name) != 0)
        i++;
    return i;
}

static void build_limits(const char *yaml, struct built *b)
{
    json_t *documents = documents_of(yaml), *document;
    struct error err = {0};
    size_t i;

    json_array_foreach (documents, i, document)
        if (namespace_quota_parse(document, &b->arena, &b->limits[i], &err) < 0)
            fail_msg("%s: %s", err.field, err.text);
    b->input.namespace_quotas = b->limits;
    b->input.n_namespace_quotas = json_array_size(documents);
    qsort(b->limits, b->input.n_namespace_quotas, sizeof(*b->limits), namespace_quota_cmp);
    json_decref(documents);
}

static void build(const struct round_case *c, struct built *b)
{
    memset(b, 0, sizeof(*b));
    b->snapshot = snapshot_of(cluster);
    build_resources(b);
    b->input = (struct plan_input){.snapshot = b->snapshot,
                                   .resources = b->resources,
                                   .n_resources = N_RESOURCES,
                                   .queues = b->queues,
                                   .running = b->running,
                                   .pending = b->jobs,
                                   .now_ms = 1000};
    if (c->limits)
        build_limits(c->limits, b);
    for (size_t i = 0; i < ARRAY_SIZE(c->queues) && c->queues[i].name; i++) {
        const struct queue_row *row = &c->queues[i];

        b->queues[i] = (struct plan_queue){
            .name = row->name, .parent = PLAN_ROOT, .weight = row->weight, .state = row->state, .quotas = b->quotas[i]};
        add_quota(b, i, R_CPU, row->cpu_milli);
        add_quota(b, i, R_H, row->h);
        add_quota(b, i, R_L, row->l);
        b->charges[i][R_H] = row->runs_h;
        b->running[i] = (struct plan_running){100 + (int64_t)i, i, b->charges[i]};
        b->input.n_queues = b->input.n_running = i + 1;
    }
    for (size_t i = 0; i < ARRAY_SIZE(c->jobs) && c->jobs[i].queue; i++) {
        struct error err = {0};

        b->gangjobs[i] = gangjob_of(&c->jobs[i], i);
        if (job_spec_parse(b->gangjobs[i], &b->arena, &b->specs[i], &err) < 0)
            fail_msg("%s: %s", err.field, err.text);
        b->jobs[i] = (struct plan_job){.id = (int64_t)i + 1,
                                       .queue = find_queue(c, c->jobs[i].queue),
                                       .priority = c->jobs[i].priority,
                                       .submitted_ms = (int64_t)i,
                                       .waits_for = c->jobs[i].waits_for,
                                       .not_before_ms = c->jobs[i].not_before_ms,
                                       .spec = &b->specs[i]};
        b->input.n_pending = i + 1;
    }
}

static void release(struct built *b)
{
    for (size_t i = 0; i < b->input.n_pending; i++)
        json_decref(b->gangjobs[i]);
    for (size_t r = 0; r < N_RESOURCES; r++)
        device_matcher_free((struct device_matcher *)(uintptr_t)b->resources[r].matcher);
    snapshot_unref(b->snapshot);
    arena_release(&b->arena);
}

/* ---- the plan as text ---- */

static void tell_charges(struct buf *text, const int64_t *charges)
{
    static const size_t shown[] = {R_H, R_L, R_CPU, R_PODS};

    for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
        if (charges[shown[i]])
            buf_addf(text, " %s=%lld", resource_names[shown[i]], (long long)charges[shown[i]]);
}

static void tell(struct buf *text, const struct built *b, const struct plan_outcome *outcome)
{
    buf_addf(text, "%lld ", (long long)b->jobs[outcome->job].id);
    if (outcome->is_admitted) {
        buf_adds(text, "starts");
        if (outcome->shape)
            buf_addf(text, " in shape %zu", outcome->shape + 1);
        buf_addc(text, ':');
        tell_charges(text, outcome->charges);
    } else {
        buf_addf(text, "%s: %s", outcome->is_never ? "never" : "waits", plan_layer_name(outcome->layer));
        if (outcome->layer != LAYER_DEVICES) /* the words of devices are the allocator's business */
            buf_addf(text, ": %s", outcome->reason);
    }
    buf_addc(text, '\n');
}

/* Each wanted line must begin the told one: what follows in a reason may be the allocator's words. */
static void compare(const char *told, const char *want)
{
    const char *t = told, *w = want;

    while (*w) {
        size_t n = strcspn(w, "\n");

        if (strncmp(t, w, n) != 0)
            fail_msg("told:\n%swanted:\n%s", told, want);
        w += n + 1;
        t += strcspn(t, "\n") + (strchr(t, '\n') != NULL);
    }
    if (*t)
        fail_msg("told:\n%swanted:\n%s", told, want);
}

static void test_admission__round(void **state)
{
    const struct round_case *c = *state;
    struct built b;
    struct plan plan;
    BUF text = {0};

    build(c, &b);
    admission_plan(&b.input, &plan);
    for (size_t i = 0; i < plan.n_outcomes; i++)
        tell(&text, &b, &plan.outcomes[i]);
    plan_release(&plan);
    release(&b);
    compare(buf_str(&text), c->want);
}

/* ---- determinism ---- */

static char *plan_text(const struct built *b)
{
    struct plan plan;
    json_t *json;
    char *text;

    admission_plan(&b->input, &plan);
    json = plan_to_json(&b->input, &plan);
    text = json_dumps(json, JSON_INDENT(1));
    json_decref(json);
    plan_release(&plan);
    return text;
}

static void test_admission__equal_inputs_give_byte_equal_plans(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct built one, two;
        char *a, *b;

        build(&cases[i], &one);
        build(&cases[i], &two);
        for (size_t k = 0; k < two.input.n_pending / 2;
             k++) { /* the order in which jobs are handed in does not matter */
            struct plan_job job = two.jobs[k];

            two.jobs[k] = two.jobs[two.input.n_pending - 1 - k];
            two.jobs[two.input.n_pending - 1 - k] = job;
        }
        a = plan_text(&one);
        b = plan_text(&two);
        assert_string_equal(a, b);
        free(a);
        free(b);
        release(&one);
        release(&two);
    }
}

static void test_admission__a_round_tries_no_more_than_it_may(void **state)
{
    struct built b;
    struct plan plan;

    (void)state;
    build(&cases[2], &b);
    b.input.max_tries = 1;
    admission_plan(&b.input, &plan);
    assert_int_equal(plan.n_admitted, 1);
    assert_int_equal(plan.outcomes[1].layer, LAYER_ORDER);
    assert_int_equal(plan.outcomes[1].position, 1);
    assert_int_equal(plan.outcomes[2].position, 2);
    plan_release(&plan);
    release(&b);
}

/* Two small devices look alike, and two large ones: only the second of each leave room for one of the other, which no
 * attribute tells, so that whoever comes first is given what leaves none. */
#define SIZED(name, size, more) "{name: " name ", attributes: {size: {string: " size "}}" more "}"
#define TAKES(amount)           ", consumesCounters: [{counterSet: card, counters: {memory: {value: " amount "}}}]"
#define PART(name, devices)                                                                                            \
    "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: " name "}, spec: {driver: "           \
    "gpu.example, nodeName: p, pool: {name: p, generation: 1, resourceSliceCount: 2}, " devices "}}\n"
static const char unsteerable[] =
    "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {}}\n"
    "---\n{apiVersion: v1, kind: Node, metadata: {name: p}, spec: {}, status: {allocatable: {cpu: '8', memory: 8Gi, "
    "pods: '10'}, conditions: [{type: Ready, status: 'True'}]}}\n" PART(
        "counters", "sharedCounters: [{name: card, counters: {memory: {value: 80Gi}}}]")
        PART("p", "devices: [" SIZED("small-0", "small", TAKES("60Gi")) ", " SIZED(
                      "small-1", "small", TAKES("30Gi")) ", " SIZED("large-0", "large",
                                                                    TAKES("70Gi")) ", " SIZED("large-1", "large",
                                                                                              TAKES("50Gi")) "]");

#define MEMBER(group, claim)                                                                                           \
    "{name: " group ", replicas: 1, template: {spec: {containers: [{name: c, image: i, resources: {claims: [{name: g}" \
    "]}}], resourceClaims: [{name: g, resourceClaimTemplateName: " claim "}]}}}"
#define OF_SIZE(size)                                                                                                  \
    "{name: " size ", spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, selectors: [{cel: "        \
    "{expression: 'device.attributes[\"gpu.example\"].size == \"" size "\"'}}]}}]}}}"
static const char unsteerable_gang[] =
    "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: j}, spec: {groups: [" MEMBER("a", "small") ", " MEMBER(
        "b", "large") "], claimTemplates: [" OF_SIZE("small") ", " OF_SIZE("large") "]}}";

static const struct round_case *find_case(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    fail_msg("no case: %s", name);
    return NULL;
}

/* Four jobs that cannot start and two tries a round: each is come to within a few rounds, and the first always. */
static void test_admission__rounds_come_to_everybody_in_the_end(void **state)
{
    struct built b;
    struct plan plan;

    (void)state;
    build(find_case("more than the cluster has can never start"), &b);
    b.input.n_pending = 4;
    for (size_t i = 1; i < 4; i++) {
        b.jobs[i] = b.jobs[0];
        b.jobs[i].id = (int64_t)i + 1;
    }
    b.input.max_tries = 2;
    for (uint64_t round = 1; round <= 4; round++) {
        admission_plan(&b.input, &plan);
        assert_int_equal(plan.n_tries, 2);
        assert_false(plan.outcomes[0].is_untried);
        for (size_t i = 0; i < 4; i++)
            if (!plan.outcomes[i].is_untried)
                b.jobs[plan.outcomes[i].job].last_look = round;
        plan_release(&plan);
    }
    for (size_t i = 0; i < 4; i++)
        assert_true(b.jobs[i].last_look > 0);
    b.input.n_pending = 1;
    release(&b);
}

static void test_admission__what_steering_cannot_hold_waits(void **state)
{
    struct built b;
    struct plan plan;
    struct error err = {0};

    (void)state;
    build(&cases[0], &b);
    snapshot_unref(b.snapshot);
    json_decref(b.gangjobs[0]);
    b.input.snapshot = b.snapshot = snapshot_of(unsteerable);
    b.gangjobs[0] = gangjob_of_text(unsteerable_gang);
    assert_int_equal(job_spec_parse(b.gangjobs[0], &b.arena, &b.specs[0], &err), 0);
    admission_plan(&b.input, &plan);
    assert_false(plan.outcomes[0].is_admitted);
    assert_int_equal(plan.outcomes[0].layer, LAYER_DEVICES);
    assert_false(plan.outcomes[0].is_never);
    assert_non_null(strstr(plan.outcomes[0].reason, "bind mode"));
    assert_non_null(strstr(plan.outcomes[0].reason, "told apart"));
    assert_string_equal(json_string_value(json_object_get(plan.outcomes[0].explanation, "summary")),
                        plan.outcomes[0].reason);
    plan_release(&plan);
    release(&b);
}

static const char two_elastic_groups[] =
    "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: j}, spec: {groups: ["
#define ELASTIC(name, rest)                                                                                            \
    "{name: " name ", " rest                                                                                           \
    ", template: {spec: {containers: [{name: c, image: i, resources: {claims: [{name: g}]}}],"                         \
    " resourceClaims: [{name: g, resourceClaimTemplateName: t}]}}}"
    ELASTIC("a", "replicas: 3, minReplicas: 1") ", " ELASTIC(
        "b", "replicas: 6, minReplicas: 2, jobSize: 2") "], claimTemplates: [{name: t, spec: {devices: {requests: "
                                                        "[{name: r, exactly: {deviceClassName: gpu, selectors: "
                                                        "[{cel: {expression: 'device.attributes[\"gpu.example\"].model "
                                                        "== \"h\"'}}]}}]}}}]}}";

/* 4 devices for 3 + 6 members: the first group shrinks to its least, then the second, by whole jobs of two. */
static void test_admission__groups_shrink_in_the_order_of_the_manifest(void **state)
{
    struct built b;
    struct plan plan;
    struct error err = {0};

    (void)state;
    build(&cases[0], &b);
    json_decref(b.gangjobs[0]);
    b.gangjobs[0] = gangjob_of_text(two_elastic_groups);
    assert_int_equal(job_spec_parse(b.gangjobs[0], &b.arena, &b.specs[0], &err), 0);
    admission_plan(&b.input, &plan);
    assert_true(plan.outcomes[0].is_admitted);
    assert_int_equal(plan.outcomes[0].question->groups[0].n_members, 1);
    assert_int_equal(plan.outcomes[0].question->groups[1].n_members, 2);
    assert_int_equal(plan.outcomes[0].placement->n_members, 3);
    assert_int_equal(plan.outcomes[0].charges[R_PODS], 3);
    plan_release(&plan);
    release(&b);
}

static void test_admission__twins_of_a_failure_are_not_searched_for_again(void **state)
{
    struct built b;
    struct plan plan;

    (void)state;
    build(&cases[1], &b);
    b.jobs[1].spec = b.jobs[0].spec; /* three h each: the second finds nothing, and the third is the same */
    b.jobs[2] = b.jobs[1];
    b.jobs[2].id = 3;
    b.input.n_pending = 3;
    for (size_t i = 0; i < 3; i++)
        b.jobs[i].twin = 7;
    admission_plan(&b.input, &plan);
    assert_int_equal(plan.n_admitted, 1);
    assert_int_equal(plan.n_tries, 2);
    assert_string_equal(plan.outcomes[2].reason, plan.outcomes[1].reason);
    assert_int_equal(plan.outcomes[2].position, 2);
    plan_release(&plan);
    b.input.n_pending = 2;
    release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_admission__equal_inputs_give_byte_equal_plans),
        cmocka_unit_test(test_admission__a_round_tries_no_more_than_it_may),
        cmocka_unit_test(test_admission__rounds_come_to_everybody_in_the_end),
        cmocka_unit_test(test_admission__what_steering_cannot_hold_waits),
        cmocka_unit_test(test_admission__groups_shrink_in_the_order_of_the_manifest),
        cmocka_unit_test(test_admission__twins_of_a_failure_are_not_searched_for_again),
    };

    return RUN_TABLE(test_admission__round, cases) + cmocka_run_group_tests(tests, NULL, NULL);
}
