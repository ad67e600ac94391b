/* Where members go, given what jobs usually ask for. Most rows are chosen so that packing (the node that takes them
 * all, the first by name, the first device) would break up what others need whole. */
#include "test/support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/str.h"
#include "allocator/gang.h"
#include "test/allocator/cluster.h"

#include "allocator/base/banned.h"

#define NODE_OF(name, cpu)                                                                                             \
    "---\n{apiVersion: v1, kind: Node, metadata: {name: " name ", labels: {rack: rack-of-" name "}}, "                 \
    "status: {allocatable: {cpu: '" cpu "', memory: 64Gi, pods: '99'}}}\n"
#define GPU(name, model)  "{name: " name ", attributes: {uuid: {string: " name "}, model: {string: " model "}}}"
#define FOUR_OF(model)    GPU("a", model) ", " GPU("b", model) ", " GPU("c", model) ", " GPU("d", model)
#define HOST(name, model) NODE_OF(name, "64") SLICE(name, FOUR_OF(model))
#define ONE_LEFT(name)    HELD(name "-1", name, "b") HELD(name "-2", name, "c") HELD(name "-3", name, "d")
#define TWO_LEFT(name)    HELD(name "-1", name, "c") HELD(name "-2", name, "d")
#define WHOLE_AND_BROKEN  CLASS("c") HOST("a-whole", "h") HOST("broken", "h") TWO_LEFT("broken")

/* A card that is shared: 1000 milli. */
#define CARD(name)                                                                                                     \
    "{name: " name ", attributes: {uuid: {string: " name "}}, allowMultipleAllocations: true, "                        \
    "capacity: {milli: {value: '1000'}}}"
#define SHARED(name, pool, device, milli)                                                                              \
    "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: " name                                \
    ", namespace: ns}, spec: {devices: {}}, status: {allocation: {devices: {results: [{request: r, driver: d.x, "      \
    "pool: " pool ", device: " device ", shareID: 11111111-2222-3333-4444-555555555555, "                              \
    "consumedCapacity: {milli: '" milli "'}}]}}}}\n"
#define SHARE(milli) ", capacity: {requests: {milli: '" milli "'}}"

/* A card in partitions: the whole of it, or three slices. */
#define SETS "sharedCounters: [{name: v, counters: {s: {value: '3'}}}, {name: w, counters: {s: {value: '3'}}}]"
#define PART(name, kind, set, n)                                                                                       \
    "{name: " name ", attributes: {uuid: {string: " name "}, kind: {string: " kind                                     \
    "}}, consumesCounters: [{counterSet: " set ", counters: {s: {value: '" n "'}}}]}"
#define PARTS(card)                                                                                                    \
    PART(card "-0", "whole", card, "3")                                                                                \
    ", " PART(card "-1", "slice", card, "1") ", " PART(card "-2", "slice", card, "1") ", " PART(card "-3", "slice",    \
                                                                                                card, "1")
#define MIG_HOST(name)                                                                                                 \
    NODE_OF(name, "64")                                                                                                \
    SLICE_OF(name "-counters", name, "nodeName: " name, "2", SETS)                                                     \
    SLICE_OF(name, name, "nodeName: " name, "2", "devices: [" PARTS("v") ", " PARTS("w") "]")

#define ONLY(attribute, value)                                                                                         \
    ", selectors: [{cel: {expression: 'device.attributes[\"d.x\"]." attribute " == \"" value "\"'}}]"
#define REQUESTS(...) CLAIM("requests: [" __VA_ARGS__ "]")
#define OF(more)      REQUESTS(REQUEST("r", more))
#define POD(cpu)      "{spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '" cpu "'}}}]}}"

#define MAX_CLAIMS 2

struct group_case {
    size_t members;
    const char *claims[MAX_CLAIMS];
};
static const struct score_case {
    const char *name;
    const char *cluster;
    const char *typical;     /* a claim that other jobs bring */
    const char *typical_cpu; /* or NULL: their pod is like a member */
    struct group_case groups[2];
    const char *rack; /* all members on nodes of this label */
    const char *placed;
} score_cases[] = {
    {"one device comes from the broken node when others want four", WHOLE_AND_BROKEN, OF(", count: 4"), NULL,
     .groups = {{1, {OF("")}}}, .placed = "broken/a"},
    {"four devices come from the whole node", WHOLE_AND_BROKEN, OF(""), NULL, .groups = {{1, {OF(", count: 4")}}},
     .placed = "a-whole/a+b+c+d"},
    {"others that take all there is do not confuse it", WHOLE_AND_BROKEN, OF(", allocationMode: All"), NULL,
     .groups = {{1, {OF("")}}}, .placed = "broken/a"},
    {"nor do others that ask for more than a claim can hold", WHOLE_AND_BROKEN, OF(", count: 4294967296"), NULL,
     .groups = {{1, {OF("")}}}, .placed = "broken/a"},
    {"nor do others with a claim of nothing", WHOLE_AND_BROKEN, CLAIM("requests: []"), NULL, .groups = {{1, {OF("")}}},
     .placed = "broken/a"},

    {"members leave the node whole that would take them all",
     CLASS("c") HOST("a-whole", "h") HOST("b", "h") TWO_LEFT("b") HOST("c", "h") TWO_LEFT("c"), OF(", count: 4"), NULL,
     .groups = {{4, {OF("")}}}, .placed = "b/a b/b c/a c/b"},
    {"members that together fill a node do not break it up for one by one",
     CLASS("c") HOST("a-whole", "h") HOST("b", "h") ONE_LEFT("b") HOST("c", "h") HOST("d", "h"), OF(", count: 4"), NULL,
     .groups = {{5, {OF("")}}}, .placed = "b/a a-whole/a a-whole/b a-whole/c a-whole/d"},
    {"members of whole nodes leave the model that others depend on",
     CLASS("c") HOST("a", "h") HOST("b", "h") HOST("c", "other") HOST("d", "other"), OF(ONLY("model", "h")), NULL,
     .groups = {{2, {OF(", count: 4")}}}, .placed = "c/a+b+c+d d/a+b+c+d"},
    {"members of whole nodes leave the CPUs that others need with their devices",
     CLASS("c") HOST("a", "h") NODE_OF("b", "8") SLICE("b", FOUR_OF("h")), OF(", count: 4"), "32",
     .groups = {{1, {OF(", count: 4")}}}, .placed = "b/a+b+c+d"},
    {"shares of devices complete the broken one",
     CLASS("c") NODE_OF("m", "64") SLICE("m", CARD("a") ", " CARD("b") ", " CARD("c")) SHARED("h", "m", "b", "400"),
     OF(SHARE("1000")), NULL, .groups = {{3, {OF(SHARE("300"))}}}, .placed = "m/b m/b m/a"},
    {"each group where it adds the least", WHOLE_AND_BROKEN, OF(", count: 4"), NULL,
     .groups = {{2, {OF("")}}, {1, {OF(", count: 4")}}}, .placed = "broken/a broken/b a-whole/a+b+c+d"},
    {"several claims of a member, of devices that no other job asks for too",
     CLASS("c") NODE_OF("a-whole", "64") SLICE("a-whole", FOUR_OF("h") ", " GPU("nic", "nic")) NODE_OF("broken", "64")
         SLICE("broken", FOUR_OF("h") ", " GPU("nic", "nic")) TWO_LEFT("broken"),
     OF(", count: 4" ONLY("model", "h")), NULL, .groups = {{1, {OF(ONLY("model", "h")), OF(ONLY("model", "nic"))}}},
     .placed = "broken/a,nic"},
    {"a tainted device elsewhere changes nothing",
     WHOLE_AND_BROKEN NODE_OF("c", "64")
         SLICE("c", "{name: a, taints: [{key: k, effect: NoSchedule}]}, {name: b, attributes: {uuid: {string: b}}}, "
                    "{name: c, attributes: {uuid: {string: c}}}"),
     OF(", count: 4"), NULL, .groups = {{3, {OF("")}}}, .placed = "broken/a broken/b c/b"},
    {"a required label counts", WHOLE_AND_BROKEN, OF(", count: 4"), NULL, .groups = {{3, {OF("")}}}, .rack = "rack",
     .placed = "a-whole/a a-whole/b a-whole/c"},
    {"whom the score cannot place is searched for",
     CLASS("c") NODE_OF("m", "64") SLICE("m", CARD("a") ", " CARD("b") ", " CARD("c")) SHARED("h", "m", "b", "500")
         SHARED("i", "m", "c", "500"),
     OF(SHARE("1000")), NULL, .groups = {{2, {OF(", count: 2" SHARE("500"))}}}, .placed = "m/b+a m/c+a"},

    {"a slice comes from the broken card", CLASS("c") MIG_HOST("m") HELD("h", "m", "w-1"), OF(ONLY("kind", "whole")),
     NULL, .groups = {{1, {OF(ONLY("kind", "slice"))}}}, .placed = "m/w-2"},
    {"and from the broken card of another node", CLASS("c") MIG_HOST("a") MIG_HOST("m") HELD("h", "m", "w-1"),
     OF(ONLY("kind", "whole")), NULL, .groups = {{2, {OF(ONLY("kind", "slice"))}}}, .placed = "m/w-2 m/w-3"},
    {"of broken cards on several nodes, before a whole one is broken up",
     CLASS("c") MIG_HOST("a") MIG_HOST("m") HELD("h", "m", "w-1") HELD("i", "m", "w-2") MIG_HOST("o")
         HELD("j", "o", "v-1"),
     OF(ONLY("kind", "whole")), NULL, .groups = {{3, {OF(ONLY("kind", "slice"))}}}, .placed = "o/v-2 o/v-3 m/w-3"},
};

static json_t *document(const char *yaml)
{
    json_t *all = yaml_documents(yaml), *first = json_incref(json_array_get(all, 0));

    json_decref(all);
    return first;
}

struct question {
    struct gang_spec spec;
    struct gang_group groups[2];
    struct gang_claim claims[2][MAX_CLAIMS];
    struct gang_constraint constraint;
    json_t *objects; /* keeps what the spec borrows */
};

static json_t *keep(struct question *q, const char *yaml)
{
    json_t *object = document(yaml);

    json_array_append_new(q->objects, object);
    return object;
}

static void question_init(struct question *q, const struct score_case *c)
{
    *q = (struct question){.objects = json_array(), .constraint = {.kind = GANG_MATCH_NODE_LABEL, .key = c->rack}};
    for (size_t g = 0; g < 2 && c->groups[g].members; g++) {
        struct gang_group *group = &q->groups[q->spec.n_groups++];

        *group = (struct gang_group){
            .name = g ? "h" : "g", .n_members = c->groups[g].members, .pod = keep(q, POD("1")), .claims = q->claims[g]};
        for (; group->n_claims < MAX_CLAIMS && c->groups[g].claims[group->n_claims]; group->n_claims++)
            q->claims[g][group->n_claims] = (struct gang_claim){.pod_claim = group->n_claims ? "s" : "r",
                                                                .source = GANG_CLAIM_OWN,
                                                                .object = keep(q, c->groups[g].claims[group->n_claims]),
                                                                .name = "t"};
    }
    q->spec.ns = "ns";
    q->spec.groups = q->groups;
    q->spec.constraints = &q->constraint;
    q->spec.n_constraints = c->rack != NULL;
}

static struct gang_workload *workload_of(struct question *q, const struct score_case *c)
{
    struct features features = features_default(37);
    struct gang_typical typical = {1, keep(q, c->typical_cpu ? POD("32") : POD("1")), keep(q, c->typical)};
    struct error err = {0};
    struct gang_workload *workload = gang_workload_new(&typical, 1, &features, &err);

    assert_non_null(workload);
    return workload;
}

/* "node/device+device,device-of-the-second-claim" per member. */
static void add_member(struct buf *text, const struct placed_member *member)
{
    buf_addf(text, "%s%s", text->len ? " " : "", member->node);
    for (size_t c = 0; c < member->n_claims; c++)
        for (size_t r = 0; r < member->claims[c].allocation.n_results; r++)
            buf_addf(text, "%s%s", r ? "+" : c ? "," : "/", member->claims[c].allocation.results[r].device);
}

static void test_score__case(void **state)
{
    const struct score_case *c = *state;
    struct snapshot *snapshot = cluster_of(c->cluster, 37);
    struct question q;
    struct gang_workload *workload;
    struct gang_result result;
    struct error err = {0};
    struct arena arena = {0};
    BUF text = {0};

    question_init(&q, c);
    q.spec.workload = workload = workload_of(&q, c);
    if (gang_fit(snapshot, &q.spec, &arena, &result, &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
    assert_int_equal(result.verdict, GANG_FITS);
    for (size_t i = 0; i < result.placement->n_members; i++)
        add_member(&text, &result.placement->members[i]);
    assert_string_equal(buf_str(&text), c->placed);
    gang_result_release(&result);
    gang_workload_free(workload);
    arena_release(&arena);
    snapshot_unref(snapshot);
    json_decref(q.objects);
}

int main(void)
{
    return RUN_TABLE(test_score__case, score_cases);
}
