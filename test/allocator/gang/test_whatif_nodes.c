/* How many nodes more would make a gang fit: small clusters with one right answer, and random ones in which the nodes
 * are really added. */
#include "test/support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/rng.h"
#include "allocator/gang.h"
#include "test/allocator/cluster.h"

#include "allocator/base/banned.h"

#define SHAPED(name, labels, spec, cpu)                                                                                \
    "---\n{apiVersion: v1, kind: Node, metadata: {name: " name ", labels: {kubernetes.io/hostname: " name labels       \
    "}}, spec: {" spec "}, status: {allocatable: {cpu: '" cpu "', memory: 32Gi, pods: '10'}}}\n"
#define ROOMY(name)        SHAPED(name, "", "", "8")
#define GPU                CLASS("gpu")
#define MODEL(name, model) "{name: " name ", attributes: {model: {string: " model "}, uuid: {string: u-" name "}}}"
#define TWO(node, model)   SLICE(node, MODEL("a", model) "," MODEL("b", model))
#define HAS(pool, device)  "{request: r, driver: d.x, pool: " pool ", device: " device "}"
#define ALL_HELD(node)                                                                                                 \
    "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: on-" node                             \
    ", namespace: lab}, spec: {devices: {}}, status: {allocation: {devices: {results: [" HAS(node, "a") "," HAS(       \
        node, "b") "]}}}}\n"
#define ASK(more) "requests: [{name: r, exactly: {deviceClassName: gpu" more "}}]"
#define IS(m)     ", selectors: [{cel: {expression: 'device.attributes[\"d.x\"].model == \"" m "\"'}}]"

/* ---- a question ---- */

struct question {
    struct arena arena;
    json_t *pod, *template;
    struct gang_claim claim;
    struct gang_group group;
    struct gang_constraint constraint;
    struct gang_spec spec;
};

static json_t *one_document(const char *yaml)
{
    json_t *array = yaml_documents(yaml), *one = json_incref(json_array_get(array, 0));

    json_decref(array);
    return one;
}

static void question_init(struct question *q, size_t members, const char *devices, const char *pod)
{
    BUF text = {0};

    *q = (struct question){.spec = {.ns = "ns", .n_groups = 1}};
    buf_addf(&text, "{spec: {%s}}", pod ? pod : "containers: [{name: m, image: i, resources: {requests: {cpu: '1'}}}]");
    q->pod = one_document(buf_str(&text));
    q->group = (struct gang_group){.name = "w", .n_members = members, .pod = q->pod};
    q->spec.groups = &q->group;
    if (!devices)
        return;
    buf_clear(&text);
    buf_addf(&text,
             "{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: t, namespace: ns}, spec: "
             "{spec: {devices: {%s}}}}",
             devices);
    q->template = one_document(buf_str(&text));
    json_object_set_new(json_object_get(q->pod, "spec"), "resourceClaims",
                        json_pack("[{s:s, s:s}]", "name", "g", "resourceClaimTemplateName", "t"));
    q->claim = (struct gang_claim){.pod_claim = "g", .source = GANG_CLAIM_OWN, .object = q->template, .name = "t"};
    q->group.claims = &q->claim;
    q->group.n_claims = 1;
}

static void question_release(struct question *q)
{
    json_decref(q->pod);
    json_decref(q->template);
    arena_release(&q->arena);
}

/* The explanation; new reference. */
static json_t *ask(const char *cluster, struct question *q)
{
    struct snapshot *snapshot = cluster_of(cluster, 37);
    struct gang_result result;
    struct error err = {0};
    json_t *out;

    if (gang_fit(snapshot, &q->spec, &q->arena, &result, &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
    out = json_incref(result.explanation);
    gang_result_release(&result);
    snapshot_unref(snapshot);
    return out;
}

/* ---- rows ---- */

#define FULL  ROOMY("n1") ROOMY("n2") GPU TWO("n1", "H") TWO("n2", "H") ALL_HELD("n1") ALL_HELD("n2")
#define CARDS "sharedCounters: [{name: c0, counters: {m: {value: '2'}}}, {name: c1, counters: {m: {value: '2'}}}]"
#define PART(n, c)                                                                                                     \
    "{name: " n ", attributes: {productName: {string: Cut}}, consumesCounters: [{counterSet: " c                       \
    ", counters: {m: {value: '1'}}}]}"

static const struct nodes_case {
    const char *name, *cluster;
    size_t members;
    const char *devices, *pod;
    const char *label; /* that the gang must agree on, or NULL */
    const char *want;  /* "2 x n1 (2 H, 8 cpu, 32Gi); ..." */
} nodes_cases[] = {
    {"one node takes two members", FULL, 2, ASK(""), NULL, NULL, "1 x n1 (2 H, 8 cpu, 32Gi)"},
    {"three members need two", FULL, 3, ASK(""), NULL, NULL, "2 x n1 (2 H, 8 cpu, 32Gi)"},
    {"what is free counts", ROOMY("n1") GPU TWO("n1", "H"), 5, ASK(""), NULL, NULL, "2 x n1 (2 H, 8 cpu, 32Gi)"},
    {"seven of them", FULL, 14, ASK(""), NULL, NULL, "7 x n1 (2 H, 8 cpu, 32Gi)"},
    {"a claim that no node can hold", FULL, 1, ASK(", count: 3"), NULL, NULL, ""},
    {"a gang that fits needs none", ROOMY("n1") GPU TWO("n1", "H"), 2, ASK(""), NULL, NULL, ""},
    {"shapes that can serve, the fewest first",
     SHAPED("m1", "", "", "1") ROOMY("n1") GPU TWO("m1", "H") TWO("n1", "H") ALL_HELD("m1") ALL_HELD("n1"), 2, ASK(""),
     NULL, NULL, "1 x n1 (2 H, 8 cpu, 32Gi); 2 x m1 (2 H, 1 cpu, 32Gi)"},
    {"only the shape with the model",
     ROOMY("m1") ROOMY("n1") GPU TWO("m1", "A") TWO("n1", "H") ALL_HELD("m1") ALL_HELD("n1"), 2, ASK(IS("H")), NULL,
     NULL, "1 x n1 (2 H, 8 cpu, 32Gi)"},
    {"never on this cluster, but on a larger one", ROOMY("n1") GPU TWO("n1", "H") ALL_HELD("n1"), 4, ASK(""), NULL,
     NULL, "2 x n1 (2 H, 8 cpu, 32Gi)"},
    {"no devices at all", ROOMY("n1"), 12, NULL, NULL, NULL, "1 x n1 (8 cpu, 32Gi)"},
    {"a node that is closed is no model", SHAPED("m1", "", "unschedulable: true", "64") ROOMY("n1"), 12, NULL, NULL,
     NULL, "1 x n1 (8 cpu, 32Gi)"},
    {"the node selector chooses the model", SHAPED("m1", "", "", "64") SHAPED("n1", ", kind: good", "", "8"), 12, NULL,
     "nodeSelector: {kind: good}, containers: [{name: m, image: i, resources: {requests: {cpu: '1'}}}]", NULL,
     "1 x n1 (8 cpu, 32Gi)"},
    {"who must be on one machine by name finds no other", ROOMY("n1"), 12, NULL,
     "nodeSelector: {kubernetes.io/hostname: n1}, containers: [{name: m, image: i, resources: {requests: {cpu: '1'}}}]",
     NULL, ""},
    {"host ports want a node each", ROOMY("n1"), 3, NULL,
     "containers: [{name: m, image: i, ports: [{containerPort: 1, hostPort: 1}]}]", NULL, "2 x n1 (8 cpu, 32Gi)"},
    {"a gang of one rack: each is a model of its own",
     SHAPED("n1", ", rack: a", "", "8") SHAPED("n2", ", rack: b", "", "8"), 12, NULL, NULL, "rack",
     "1 x n1 (8 cpu, 32Gi); 1 x n2 (8 cpu, 32Gi)"},
    {"partitions are counted as the devices that they are cut from",
     ROOMY("n1") GPU SLICE_OF("sets", "n1", "nodeName: n1", "2", CARDS)
         SLICE_OF("parts", "n1", "nodeName: n1", "2",
                  "devices: [" PART("p0", "c0") "," PART("p1", "c0") "," PART("p2", "c1") "," PART("p3", "c1") "]"),
     6, ASK(""), NULL, NULL, "1 x n1 (2 Cut, 8 cpu, 32Gi)"},
};

static void tell(const json_t *nodes, struct buf *out)
{
    const json_t *one, *device;
    size_t i, k;

    json_array_foreach (nodes, i, one) {
        const char *first = "";

        buf_addf(out, "%s%d x %s (", i ? "; " : "", (int)json_integer_value(json_object_get(one, "count")),
                 json_string_value(json_object_get(one, "like")));
        json_array_foreach (json_object_get(one, "devices"), k, device) {
            buf_addf(out, "%s%d %s", first, (int)json_integer_value(json_object_get(device, "count")),
                     json_string_value(json_object_get(device, "name")));
            first = ", ";
        }
        buf_addf(out, "%s%s cpu, %s)", first, json_string_value(json_object_get(one, "cpu")),
                 json_string_value(json_object_get(one, "memory")));
    }
}

static void test_whatif_nodes__case(void **state)
{
    const struct nodes_case *c = *state;
    struct question q;
    json_t *explanation;
    BUF text = {0};

    question_init(&q, c->members, c->devices, c->pod);
    if (c->label) {
        q.constraint = (struct gang_constraint){.kind = GANG_MATCH_NODE_LABEL, .key = c->label};
        q.spec.constraints = &q.constraint;
        q.spec.n_constraints = 1;
    }
    explanation = ask(c->cluster, &q);
    tell(json_object_get(explanation, "wouldFitWithNodes"), &text);
    assert_string_equal(buf_str(&text), c->want);
    json_decref(explanation);
    question_release(&q);
}

static void test_whatif_nodes__a_brief_answer_has_none(void **state)
{
    struct question q;
    json_t *explanation;

    (void)state;
    question_init(&q, 3, ASK(""), NULL);
    q.spec.is_brief = true;
    explanation = ask(FULL, &q);
    assert_null(json_object_get(explanation, "wouldFitWithNodes"));
    json_decref(explanation);
    question_release(&q);
}

/* ---- random clusters: the nodes are really added ---- */

#define N_SEEDS 120

/* Node `name` of shape 0 (two devices, eight cores) or 1 (four devices, three cores), with `held` devices taken. */
static void add_node(struct buf *out, const char *name, int shape, unsigned held)
{
    static const char *const cores[] = {"8", "3"};
    int n = shape ? 4 : 2;

    buf_addf(out,
             "---\n{apiVersion: v1, kind: Node, metadata: {name: %s}, status: {allocatable: {cpu: '%s', pods: '9'}}}\n",
             name, cores[shape]);
    buf_addf(
        out,
        "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: %s}, spec: {driver: d.x, pool: "
        "{name: %s, generation: 1, resourceSliceCount: 1}, nodeName: %s, devices: [",
        name, name, name);
    for (int i = 0; i < n; i++)
        buf_addf(out, "%s{name: d%d, attributes: {uuid: {string: %s-%d}, numa: {int: %d}}}", i ? ", " : "", i, name, i,
                 i / 2);
    buf_adds(out, "]}}\n");
    for (unsigned i = 0; i < held; i++)
        buf_addf(
            out,
            "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: %s-%u, namespace: lab}, spec: "
            "{devices: {}}, status: {allocation: {devices: {results: [{request: r, driver: d.x, pool: %s, device: "
            "d%u}]}}}}\n",
            name, i, name, i);
}

static int shape_of(const char *name)
{
    return name[0] == 'b';
}

static bool fits(const char *cluster, const char *like, size_t more, struct question *q)
{
    json_t *explanation;
    bool yes;
    BUF text = {0};

    buf_adds(&text, cluster);
    for (size_t i = 0; i < more; i++) {
        BUF name = {0};

        buf_addf(&name, "%s-new-%zu", like, i);
        add_node(&text, buf_str(&name), shape_of(like), 0);
    }
    explanation = ask(buf_str(&text), q);
    yes = strcmp(json_string_value(json_object_get(explanation, "verdict")), "fits") == 0;
    json_decref(explanation);
    return yes;
}

static void check_seed(uint64_t seed)
{
    struct rng rng = {seed};
    struct question q;
    json_t *explanation, *one;
    size_t i;
    BUF cluster = {0};
    BUF devices = {0};
    BUF pod = {0};

    buf_adds(&cluster, CLASS("gpu"));
    for (int n = 0, end = 1 + (int)rng_below(&rng, 3); n < end; n++) {
        int shape = (int)rng_below(&rng, 2);
        BUF name = {0};

        buf_addf(&name, "%c%d", shape ? 'b' : 'a', n);
        add_node(&cluster, buf_str(&name), shape, (unsigned)rng_below(&rng, shape ? 5 : 3));
    }
    buf_addf(&devices, "requests: [{name: r, exactly: {deviceClassName: gpu, count: %d}}]",
             1 + (int)rng_below(&rng, 4));
    if (rng_below(&rng, 2))
        buf_adds(&devices, ", constraints: [{matchAttribute: d.x/numa}]");
    buf_addf(&pod, "containers: [{name: m, image: i, resources: {requests: {cpu: '%d'}}}]",
             1 + (int)rng_below(&rng, 4));
    question_init(&q, 1 + rng_below(&rng, 7), buf_str(&devices), buf_str(&pod));
    explanation = ask(buf_str(&cluster), &q);
    json_array_foreach (json_object_get(explanation, "wouldFitWithNodes"), i, one) {
        const char *like = json_string_value(json_object_get(one, "like"));
        size_t count = (size_t)json_integer_value(json_object_get(one, "count"));

        if (!fits(buf_str(&cluster), like, count, &q) || fits(buf_str(&cluster), like, count - 1, &q))
            fail_msg("seed %llu: %zu nodes like %s\n%s%s\n%s", (unsigned long long)seed, count, like, buf_str(&cluster),
                     buf_str(&devices), buf_str(&pod));
    }
    for (const char *like = "a"; like; like = *like == 'a' ? "b" : NULL) { /* what it does not name would not do */
        bool is_there = strstr(buf_str(&cluster), *like == 'a' ? "metadata: {name: a" : "metadata: {name: b");
        bool is_named = false, waits = strcmp(json_string_value(json_object_get(explanation, "verdict")), "fits") != 0;

        json_array_foreach (json_object_get(explanation, "wouldFitWithNodes"), i, one)
            is_named |= json_string_value(json_object_get(one, "like"))[0] == *like;
        if (waits && is_there && !is_named && fits(buf_str(&cluster), like, q.group.n_members, &q))
            fail_msg("seed %llu: nodes like %s are not named", (unsigned long long)seed, like);
    }
    json_decref(explanation);
    question_release(&q);
}

static void test_whatif_nodes__the_number_is_right_when_they_are_added(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++)
        check_seed(seed);
}

int main(void)
{
    struct CMUnitTest tests[ARRAY_SIZE(nodes_cases)];
    const struct CMUnitTest facts[] = {
        cmocka_unit_test(test_whatif_nodes__a_brief_answer_has_none),
        cmocka_unit_test(test_whatif_nodes__the_number_is_right_when_they_are_added),
    };

    for (size_t i = 0; i < ARRAY_SIZE(nodes_cases); i++)
        tests[i] = (struct CMUnitTest){nodes_cases[i].name, test_whatif_nodes__case, NULL, NULL,
                                       (void *)(uintptr_t)&nodes_cases[i]};
    return cmocka_run_group_tests(tests, NULL, NULL) + cmocka_run_group_tests(facts, NULL, NULL);
}
