/* The sentences of the explanation: small clusters, and word for word what a person reads. WRITE=1 in the environment
 * prints them instead of comparing. */
#include "test/support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/gang.h"
#include "test/allocator/cluster.h"

#include "allocator/base/banned.h"

/* Eight cores, 32Gi, ten pods. */
#define ROOMY(name, more)                                                                                              \
    "---\n{apiVersion: v1, kind: Node, metadata: {name: " name more "}, status: {allocatable: {cpu: '8', memory: "     \
    "32Gi, pods: '10'}}}\n"
#define CLOSED(name, spec)                                                                                             \
    "---\n{apiVersion: v1, kind: Node, metadata: {name: " name "}, spec: {" spec "}, status: {allocatable: {cpu: "     \
    "'8', memory: 32Gi, pods: '10'}}}\n"
#define SILENT(name)                                                                                                   \
    "---\n{apiVersion: v1, kind: Node, metadata: {name: " name "}, spec: {taints: [{key: "                             \
    "node.kubernetes.io/unreachable, effect: NoExecute}]}, status: {allocatable: {cpu: '8', memory: 32Gi, pods: "      \
    "'10'}, conditions: [{type: Ready, status: Unknown}]}}\n"
#define GPU            CLASS("gpu")
#define PLAIN(name)    "{name: " name "}"
#define LINK(name, in) "{name: " name ", attributes: {link: {string: " in "}}}"
#define TAINTED(name)  "{name: " name ", taints: [{key: d.x/bad, value: heat, effect: NoSchedule}]}"
#define OF_JOB(name, job, pool, results)                                                                               \
    "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: " name                                \
    ", namespace: ns, labels: {queue.dra/job: '" job "'}}, spec: {devices: {}}, status: {allocation: {devices: "       \
    "{results: [" results "]}}}}\n"
#define FOREIGN(name, results)                                                                                         \
    "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: " name                                \
    ", namespace: lab}, spec: {devices: {}}, status: {allocation: {devices: {results: [" results "]}}}}\n"
#define POD(node, cores)                                                                                               \
    "---\n{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}, spec: {nodeName: " node                      \
    ", containers: [{name: m, image: i, resources: {requests: {cpu: '" cores "'}}}]}}\n"
#define HAS(pool, device) "{request: r, driver: d.x, pool: " pool ", device: " device "}"
#define ASK(more)         "requests: [{name: r, exactly: {deviceClassName: gpu" more "}}]"
#define TWO_SMALL                                                                                                      \
    ROOMY("n1", "") ROOMY("n2", "") GPU SLICE("n1", PLAIN("a") "," PLAIN("b")) SLICE("n2", PLAIN("a") "," PLAIN("b"))
#define LINKED                                                                                                         \
    ROOMY("n1", "")                                                                                                    \
    ROOMY("n2", "")                                                                                                    \
    GPU SLICE("n1", LINK("a", "x") "," LINK("b", "x") "," LINK("c", "z"))                                              \
        SLICE("n2", LINK("a", "v") "," LINK("b", "w") "," PLAIN("c"))
#define CARVED                                                                                                         \
    ROOMY("n1", "")                                                                                                    \
    GPU SLICE_OF("sets", "n1", "nodeName: n1", "2",                                                                    \
                 "sharedCounters: [{name: card, counters: {memory: {value: 40Gi}}}]")                                  \
        SLICE_OF("parts", "n1", "nodeName: n1", "2",                                                                   \
                 "devices: [{name: half, consumesCounters: [{counterSet: card, counters: {memory: {value: 20Gi}}}]},"  \
                 " {name: whole, attributes: {size: {int: 2}}, consumesCounters: [{counterSet: card, counters: "       \
                 "{memory: {value: 40Gi}}}]}]")
#define BIG ", selectors: [{cel: {expression: 'device.attributes[\"d.x\"].?size.orValue(0) == 2'}}]"

static const struct summary_case {
    const char *name, *cluster;
    size_t members;
    const char *devices;    /* of the claim template; NULL: no claim */
    const char *pod;        /* more of the pod's spec */
    const char *constraint; /* of the gang: "match KEY", "distinct KEY", "label KEY", or NULL */
    const char *want;
} summaries[] = {
    {"never: no device of the class", ROOMY("n1", "") GPU, 1, ASK(""), NULL, NULL,
     "The gang will never fit on this cluster: request r of class gpu finds no device of its class."},
    {"never: no device meets the selector", TWO_SMALL, 1, ASK(BIG), NULL, NULL,
     "The gang will never fit on this cluster: request r of class gpu finds no match: of the 4 devices of its class "
     "none meets the selector device.attributes[\"d.x\"].?size.orValue(0) == 2; it could fit without the selector "
     "device.attributes[\"d.x\"].?size.orValue(0) == 2."},
    {"never: more than the cluster has", TWO_SMALL, 3, ASK(", count: 2"), NULL, NULL,
     "The gang will never fit on this cluster: 2 of 3 members of group w find a place; request r of class gpu needs 6 "
     "devices (2 for each of 3 members), more than the 4 that match in the whole cluster."},
    {"never: more than any node has", TWO_SMALL, 1, ASK(", count: 3"), NULL, NULL,
     "The gang will never fit on this cluster: request r of class gpu needs 3 devices on one node, and no node that "
     "admits a member has more than 2 that match (n1)."},
    {"never: no nodes", GPU, 1, ASK(""), NULL, NULL,
     "The gang will never fit on this cluster: the cluster has no nodes."},
    {"never: more cores than any node has", TWO_SMALL, 1, NULL, "overhead: {cpu: '8'}", NULL,
     "The gang will never fit on this cluster: no node admits a member; 2 nodes (such as n1): not enough cpu: a member "
     "asks 9, at most 8 left on one node; it could fit with more cpu on node n1."},
    {"never: the selector of nodes", TWO_SMALL, 1, ASK(""), "nodeSelector: {zone: a}", NULL,
     "The gang will never fit on this cluster: no node admits a member; 2 nodes (such as n1): label zone does not "
     "match the node selector; it could fit without the node selector (zone) on node n1."},
    {"waits: for a cordoned node, and not for a tainted one",
     CLOSED("n1", "unschedulable: true") CLOSED("n2", "taints: [{key: team, value: a, effect: NoSchedule}]")
         GPU SLICE("n1", PLAIN("a")),
     1, ASK(""), NULL, NULL,
     "The gang must wait for node n1 to be uncordoned: no node admits a member; node n1: unschedulable (cordoned); "
     "node "
     "n2: taint team=a:NoSchedule is not tolerated; it would fit if its pods tolerated the state (unschedulable or "
     "not-ready) on node n1."},
    {"waits: for nodes that are not ready, with what they hold",
     SILENT("n1") SILENT("n2") SILENT("n3") SILENT("n4") SILENT("n5") GPU SLICE("n1", PLAIN("a"))
         SLICE("n2", PLAIN("a")),
     2, ASK(""), NULL, NULL,
     "The gang must wait for nodes n1, n2, n3 and 2 more to become ready: 0 of 2 members of group w find a place; no "
     "node admits a member; 5 nodes (such as n1): not ready (node.kubernetes.io/not-ready); it would fit if its pods "
     "tolerated the state (unschedulable or not-ready) on node n1."},
    {"waits: for one node to be ready, and another to be uncordoned",
     ROOMY("n0", "") SILENT("n1") CLOSED("n2", "unschedulable: true") GPU SLICE("n1", PLAIN("a"))
         SLICE("n2", PLAIN("a")),
     2, ASK(""), NULL, NULL,
     "The gang must wait for node n1 to become ready, and node n2 to be uncordoned: 0 of 2 members of group w find a "
     "place; request r of class gpu needs 1 device on one node, and no node that admits a member has more than 0 free, "
     "though 2 of 2 that match are free in all; node n1: not ready (node.kubernetes.io/not-ready); it would fit if its "
     "pods tolerated the state (unschedulable or not-ready) on node n1."},
    {"never: nor when its node is ready again", SILENT("n1") GPU SLICE("n1", PLAIN("a")), 1, ASK(", count: 2"), NULL,
     NULL,
     "The gang will never fit on this cluster: no node admits a member; node n1: not ready "
     "(node.kubernetes.io/not-ready); request r of class gpu needs 2 devices, more than the 1 that match in the whole "
     "cluster."},
    {"never: devices are tainted", ROOMY("n1", "") GPU SLICE("n1", TAINTED("a") "," TAINTED("b")), 1, ASK(""), NULL,
     NULL,
     "The gang will never fit on this cluster: request r of class gpu needs 1 device, and 0 of 2 that match can be "
     "used: 2 with taint d.x/bad=heat:NoSchedule; it could fit if its requests tolerated the device taint "
     "d.x/bad=heat:NoSchedule."},
    {"never: one link for three", LINKED, 1, ASK(", count: 3") ", constraints: [{matchAttribute: d.x/link}]", NULL,
     NULL,

     "The gang will never fit on this cluster: request r of class gpu finds 6 devices that match; 3 devices with one "
     "value of d.x/link are needed, at most 2 exist with one (n1: 2 + 1, n2: 1 + 1), and 1 device has no such "
     "attribute; it could fit without the constraint on d.x/link."},
    {"never: one pair for two members", LINKED, 2, ASK(", count: 2") ", constraints: [{matchAttribute: d.x/link}]",
     NULL, NULL,
     "The gang will never fit on this cluster: 1 of 2 members of group w finds a place; request r of class gpu finds 6 "
     "devices that match; 2 devices with one value of d.x/link are needed by each of 2 members, those that exist serve "
     "1 (n1: 2 + 1, n2: 1 + 1); it could fit without the constraint on d.x/link."},
    {"never: three different links", LINKED, 1, ASK(", count: 3") ", constraints: [{distinctAttribute: d.x/link}]",
     NULL, NULL,
     "The gang will never fit on this cluster: request r of class gpu finds 6 devices that match; 3 devices with "
     "different values of d.x/link are needed, at most 2 values exist on one node (n1: 2, n2: 2), and 1 device has no "
     "such attribute; it could fit without the constraint on d.x/link."},
    {"never: the gang on one link", LINKED, 3, ASK(""), NULL, "match d.x/link",
     "The gang will never fit on this cluster: every member could find a place, but not all of them together; request "
     "r of class gpu finds 6 devices that match; 3 devices with one value of d.x/link are needed for the whole gang, "
     "at most 2 exist with one (x: 2, z: 1, v: 1, w: 1), and 1 device has no such attribute; it could fit without the "
     "gang constraint on d.x/link."},
    {"never: the gang on different links", LINKED, 5, ASK(""), NULL, "distinct d.x/link",
     "The gang will never fit on this cluster: 4 of 5 members of group w find a place; request r of class gpu finds 6 "
     "devices that match; 5 devices with different values of d.x/link are needed for the whole gang, only 4 values "
     "exist (x: 2, z: 1, v: 1, w: 1), and 1 device has no such attribute; it could fit without the gang constraint on "
     "d.x/link."},
    {"never: the gang in one zone",
     ROOMY("n1", ", labels: {zone: a}") ROOMY("n2", ", labels: {zone: b}") GPU SLICE("n1", PLAIN("a") "," PLAIN("b"))
         SLICE("n2", PLAIN("a")),
     3, ASK(""), NULL, "label zone",
     "The gang will never fit on this cluster: every member could find a place, but not all of them together; request "
     "r of class gpu finds 3 devices that match; 3 members need nodes with one value of zone, at most 2 find a place "
     "with one (a: 2, b: 1); it could fit without the gang constraint on zone."},
    {"never: one port per node", TWO_SMALL, 3, NULL,
     "hostNetwork: true, initContainers: [{name: p, image: i, restartPolicy: Always, ports: [{containerPort: 80, "
     "hostPort: 80}]}]",
     NULL,
     "The gang will never fit on this cluster: 2 of 3 members of group w find a place; only one pod per node can have "
     "a host port, so 3 members need as many nodes with the port free; it could fit without host port 80."},
    {"waits: a job has the devices", TWO_SMALL OF_JOB("t-4-1-w-0-g", "4", "n1", HAS("n1", "a") "," HAS("n1", "b")), 2,
     ASK(", count: 2"), NULL, NULL,
     "The gang must wait: 1 of 2 members of group w finds a place; request r of class gpu needs 4 devices (2 for each "
     "of 2 members), and 2 of 4 that match are free: 2 in use; it would fit when job 4 (t) ends, or with one more node "
     "like n1."},
    {"waits: free ones are apart",
     TWO_SMALL OF_JOB("t-4-1-w-0-g", "4", "n1", HAS("n1", "a")) FOREIGN("mine", HAS("n2", "a")), 1, ASK(", count: 2"),
     NULL, NULL,
     "The gang must wait: request r of class gpu needs 2 devices on one node, and no node that admits a member has "
     "more than 1 free (n1), though 2 of 4 that match are free in all; it would fit when job 4 (t) ends, or when claim "
     "lab/mine ends, or with one more node like n1."},
    {"waits: free ones share no link", LINKED OF_JOB("t-4-1-w-0-g", "4", "n1", HAS("n1", "a")), 1,
     ASK(", count: 2") ", constraints: [{matchAttribute: d.x/link}]", NULL, NULL,
     "The gang must wait: request r of class gpu finds 5 free of 6 devices that match; 2 devices with one value of "
     "d.x/link are needed, at most 1 is free with one (n1: 1 + 1, n2: 1 + 1), and 1 free device has no such attribute; "
     "it would fit when job 4 (t) ends, or without the constraint on d.x/link, or with one more node like n1."},
    {"waits: some are tainted",
     ROOMY("n1", "") GPU SLICE("n1", TAINTED("a") "," PLAIN("b")) OF_JOB("t-4-1-w-0-g", "4", "n1", HAS("n1", "b")), 1,
     ASK(""), NULL, NULL,
     "The gang must wait: request r of class gpu needs 1 device, and 0 of 2 that match are free: 1 in use, 1 with "
     "taint d.x/bad=heat:NoSchedule; it would fit when job 4 (t) ends, or if its requests tolerated the device taint "
     "d.x/bad=heat:NoSchedule, or with one more node like n1."},
    {"waits: the counters are used up", CARVED OF_JOB("t-4-1-w-0-g", "4", "n1", HAS("n1", "half")), 1, ASK(BIG), NULL,
     NULL,
     "The gang must wait: request r of class gpu needs 1 device, and 0 of 1 that match is free: 1 short of shared "
     "counters (memory: asked 40Gi, at most 20Gi left, on n1/whole of counter set card); it would fit when job 4 (t) "
     "ends, or with more left of the shared counters (memory), or with one more node like n1."},
    {"waits: little is left of a shared device",
     ROOMY("n1", "") GPU SLICE("n1", "{name: a, allowMultipleAllocations: true, capacity: {memory: {value: 24Gi}}}")
         OF_JOB("t-4-1-w-0-g", "4", "n1",
                "{request: r, driver: d.x, pool: n1, device: a, shareID: "
                "6d3f1c8e-5a64-4f2b-9d39-0f2c6a0f7d11, consumedCapacity: {memory: 19Gi}}"),
     1, ASK(", capacity: {requests: {memory: 20Gi}}"), NULL, NULL,
     "The gang must wait: request r of class gpu needs 1 device, and 0 of 1 that match is free: 1 with too little left "
     "(memory: asked 20Gi, at most 5Gi left, on n1/a); it would fit when job 4 (t) ends, or with more memory left on "
     "the devices, or with one more node like n1."},
    {"never: told of the empty cluster", LINKED OF_JOB("t-4-1-w-0-g", "4", "n1", HAS("n1", "a")), 3, ASK(""), NULL,
     "match d.x/link",
     "The gang will never fit on this cluster: every member could find a place, but not all of them together; request "
     "r of class gpu finds 6 devices that match; 3 devices with one value of d.x/link are needed for the whole gang, "
     "at most 2 exist with one (x: 2, z: 1, v: 1, w: 1), and 1 device has no such attribute; it could fit without the "
     "gang constraint on d.x/link."},
    {"waits: the gang on one link", LINKED OF_JOB("t-4-1-w-0-g", "4", "n1", HAS("n1", "a")), 2, ASK(""), NULL,
     "match d.x/link",
     "The gang must wait: every member could find a place, but not all of them together; request r of class gpu finds "
     "5 free of 6 devices that match; 2 devices with one value of d.x/link are needed for the whole gang, at most 1 is "
     "free with one (x: 1, z: 1, v: 1, w: 1), and 1 free device has no such attribute; it would fit when job 4 (t) "
     "ends, or without the gang constraint on d.x/link, or with one more node like n1."},
    {"waits: cores are taken", ROOMY("n1", "") POD("n1", "6"), 2, NULL, "overhead: {cpu: '1'}", NULL,
     "The gang must wait: 1 of 2 members of group w finds a place; a member asks 2 of cpu, the most left on one node "
     "is 2 (n1), room for 1 of 2 members; it would fit with more cpu on node n1, or with one "
     "more node like n1."},
    {"waits: no alternative is free",
     ROOMY("n1", "") GPU SLICE("n1", PLAIN("a") "," PLAIN("b"))
         OF_JOB("t-4-1-w-0-g", "4", "n1", HAS("n1", "a") "," HAS("n1", "b")),
     1,
     "requests: [{name: r, firstAvailable: [{name: two, deviceClassName: gpu, count: 2}, {name: one, deviceClassName: "
     "gpu}]}]",
     NULL, NULL,
     "The gang must wait: request r/two of class gpu needs 2 devices, and 0 of 2 that match are free: 2 in use; it "
     "would fit when job 4 (t) ends, or with one more node like n1."},
    {"waits: those that meet the selector are held",
     ROOMY("n1", "") GPU SLICE("n1", PLAIN("a") ", {name: b, attributes: {size: {int: 2}}}")
         OF_JOB("t-4-1-w-0-g", "4", "n1", HAS("n1", "b")),
     1, ASK(BIG), NULL, NULL,
     "The gang must wait: request r of class gpu needs 1 device, and 0 of 1 that match is free: 1 in use; it would fit "
     "when job 4 (t) ends, or without the selector device.attributes[\"d.x\"].?size.orValue(0) == 2, or with one more "
     "node like n1."},
    {"waits: all devices of a node",
     ROOMY("n1", "") GPU SLICE("n1", PLAIN("a") "," PLAIN("b")) OF_JOB("t-4-1-w-0-g", "4", "n1", HAS("n1", "b")), 1,
     ASK(", allocationMode: All"), NULL, NULL,
     "The gang must wait: request r of class gpu needs all matching devices of a node, and 1 of 2 are free: 1 in use; "
     "it would fit when job 4 (t) ends, or with one more node like n1."},
    {"a pool of another driver is not named",
     TWO_SMALL
     "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: o}, spec: {driver: other.x, "
     "pool: {name: o, generation: 1, resourceSliceCount: 2}, nodeName: n1, devices: [{name: z}]}}\n",
     1, ASK(", count: 3"), NULL, NULL,
     "The gang will never fit on this cluster: request r of class gpu needs 3 devices on one node, and no node that "
     "admits a member has more than 2 that match (n1)."},
    {"waits: for a pool of the driver", TWO_SMALL POOL("late", "n1", "2", "devices: [{name: z}]"), 1, ASK(", count: 3"),
     NULL, NULL,
     "The gang must wait for pool d.x/late to become complete: request r of class gpu needs 3 devices on one node, and "
     "no node that admits a member has more than 2 free (n1), though 4 of 4 that match are free in all; pool d.x/late "
     "is incomplete: not all of its slices are "
     "published."},
};

/* ---- the question ---- */

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

static void read_constraint(struct question *q, const char *text)
{
    static const struct {
        const char *word;
        enum gang_constraint_kind kind;
    } kinds[] = {
        {"match ", GANG_MATCH_ATTRIBUTE}, {"distinct ", GANG_DISTINCT_ATTRIBUTE}, {"label ", GANG_MATCH_NODE_LABEL}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strncmp(text, kinds[i].word, strlen(kinds[i].word)) == 0)
            q->constraint = (struct gang_constraint){.kind = kinds[i].kind, .key = text + strlen(kinds[i].word)};
    q->spec.constraints = &q->constraint;
    q->spec.n_constraints = 1;
}

static void question_init(struct question *q, const struct summary_case *c)
{
    BUF pod = {0};
    BUF template = {0};

    *q = (struct question){.spec = {.ns = "ns", .n_groups = 1}};
    arena_init(&q->arena);
    buf_addf(&pod, "{spec: {containers: [{name: main, image: i, resources: {requests: {cpu: '1'}}}]%s%s}}",
             c->pod ? ", " : "", c->pod ? c->pod : "");
    q->pod = one_document(buf_str(&pod));
    q->group = (struct gang_group){.name = "w", .n_members = c->members, .pod = q->pod};
    if (c->devices) {
        buf_addf(&template,
                 "{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: t, "
                 "namespace: ns}, spec: {spec: {devices: {%s}}}}",
                 c->devices);
        q->template = one_document(buf_str(&template));
        json_object_set_new(json_object_get(q->pod, "spec"), "resourceClaims",
                            json_pack("[{s:s, s:s}]", "name", "g", "resourceClaimTemplateName", "t"));
        q->claim = (struct gang_claim){.pod_claim = "g", .source = GANG_CLAIM_OWN, .object = q->template, .name = "t"};
        q->group.claims = &q->claim;
        q->group.n_claims = 1;
    }
    q->spec.groups = &q->group;
    if (c->constraint)
        read_constraint(q, c->constraint);
}

static void question_release(struct question *q)
{
    json_decref(q->pod);
    json_decref(q->template);
    arena_release(&q->arena);
}

static json_t *explained(const struct summary_case *c)
{
    struct snapshot *snapshot = cluster_of(c->cluster, 37);
    struct question question;
    struct gang_result result;
    struct error err = {0};
    json_t *out;

    question_init(&question, c);
    if (gang_fit(snapshot, &question.spec, &question.arena, &result, &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
    out = json_incref(result.explanation);
    gang_result_release(&result);
    question_release(&question);
    snapshot_unref(snapshot);
    return out;
}

/* ---- tests ---- */

static void test_explain__summary(void **state)
{
    const struct summary_case *c = *state;
    json_t *explanation = explained(c);
    const char *have = json_string_value(json_object_get(explanation, "summary"));

    if (getenv("WRITE"))
        print_message("%s\n  %s\n", c->name, have);
    else
        assert_string_equal(have, c->want);
    json_decref(explanation);
}

static json_t *first_request(json_t *explanation)
{
    return json_array_get(json_object_get(json_array_get(json_object_get(explanation, "groups"), 0), "requests"), 0);
}

static void expect_json(const json_t *value, const char *want)
{
    char *have = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

    assert_string_equal(have, want);
    free(have);
}

#define FOUR PLAIN("a") "," PLAIN("b") "," PLAIN("c") "," PLAIN("d")

static void test_explain__holders_are_jobs_and_foreign_claims(void **state)
{
    static const struct summary_case held = {
        .cluster = ROOMY("n1", "") GPU SLICE("n1", FOUR) FOREIGN("mine", HAS("n1", "a"))
            OF_JOB("train-7-1-w-0-g", "7", "n1", HAS("n1", "b")) OF_JOB("train-7-1-w-1-g", "7", "n1", HAS("n1", "c"))
                OF_JOB("odd", "11", "n1", HAS("n1", "d")),
        .members = 1,
        .devices = ASK(", count: 2"),
    };
    json_t *explanation = explained(&held);

    (void)state;
    expect_json(json_object_get(first_request(explanation), "holders"),
                "[{\"claims\":2,\"devices\":2,\"job\":\"7\",\"jobName\":\"train\"},"
                "{\"claims\":1,\"devices\":1,\"job\":\"11\"},{\"claim\":\"lab/mine\",\"devices\":1}]");
    expect_json(json_object_get(explanation, "hints"),
                "[\"when job 7 (train) ends\",\"with one more node like n1\","
                "\"with at least 2 more free devices for request r of class gpu\"]");
    json_decref(explanation);
}

/* 20 devices, each held by another claim. */
static void test_explain__many_holders_are_cut(void **state)
{
    struct summary_case held = {.members = 1, .devices = ASK("")};
    json_t *explanation;
    BUF cluster = {0};

    (void)state;
    buf_adds(&cluster, ROOMY("n1", "") GPU "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: "
                                           "{name: n1}, spec: {driver: d.x, pool: {name: n1, generation: 1, "
                                           "resourceSliceCount: 1}, nodeName: n1, devices: [");
    for (int i = 0; i < 20; i++)
        buf_addf(&cluster, "%s{name: d%d}", i ? "," : "", i);
    buf_adds(&cluster, "]}}\n");
    for (int i = 0; i < 20; i++)
        buf_addf(&cluster,
                 "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c%02d, namespace: lab}, "
                 "spec: {devices: {}}, status: {allocation: {devices: {results: [{request: r, driver: d.x, pool: n1, "
                 "device: d%d}]}}}}\n",
                 i, i);
    held.cluster = buf_str(&cluster);
    explanation = explained(&held);
    assert_int_equal(json_array_size(json_object_get(first_request(explanation), "holders")), 16);
    expect_json(json_object_get(first_request(explanation), "moreHolders"), "{\"devices\":4,\"holders\":4}");
    json_decref(explanation);
}

static void test_explain__several_jobs_have_to_end_together(void **state)
{
    static const struct summary_case held = {
        .cluster = ROOMY("n1", "") GPU SLICE("n1", FOUR) OF_JOB("a-1-1-w-0-g", "1", "n1", HAS("n1", "a"))
            OF_JOB("b-2-1-w-0-g", "2", "n1", HAS("n1", "b")) OF_JOB("c-3-1-w-0-g", "3", "n1", HAS("n1", "c")),
        .members = 1,
        .devices = ASK(", count: 3"),
    };
    json_t *explanation = explained(&held);

    (void)state;
    expect_json(
        json_object_get(explanation, "blocking"),
        "[{\"detail\":\"hold 2 devices\",\"jobs\":[\"2\",\"1\"],\"kind\":\"devices\",\"name\":\"jobs 2 (b) and 1 "
        "(a)\",\"nodes\":[\"n1\"]}]");
    json_decref(explanation);
}

/* The second group was not read any more when the first was refused. */
static void test_explain__a_refusal_of_the_first_of_two_groups(void **state)
{
    static const struct summary_case missing = {.cluster = ROOMY("n1", ""), .members = 1, .devices = ASK("")};
    struct snapshot *snapshot = cluster_of(missing.cluster, 37);
    json_t *other = one_document("{spec: {containers: [{name: main, image: i}], resourceClaims: [{name: g, "
                                 "resourceClaimTemplateName: t}]}}");
    struct question question;
    struct gang_group groups[2];
    struct gang_result result;
    struct error err = {0};

    (void)state;
    question_init(&question, &missing);
    groups[0] = groups[1] = question.group;
    groups[1].name = "v";
    groups[1].pod = other;
    question.spec.groups = groups;
    question.spec.n_groups = 2;
    assert_int_equal(gang_fit(snapshot, &question.spec, &question.arena, &result, &err), 0);
    assert_int_equal(result.verdict, GANG_REFUSED);
    assert_non_null(strstr(json_string_value(json_object_get(result.explanation, "summary")), "gpu"));
    assert_int_equal(json_array_size(json_object_get(result.explanation, "groups")), 2);
    gang_result_release(&result);
    question_release(&question);
    json_decref(other);
    snapshot_unref(snapshot);
}

int main(void)
{
    enum { N = sizeof(summaries) / sizeof(summaries[0]) };
    struct CMUnitTest tests[N + 4] = {
        cmocka_unit_test(test_explain__holders_are_jobs_and_foreign_claims),
        cmocka_unit_test(test_explain__many_holders_are_cut),
        cmocka_unit_test(test_explain__several_jobs_have_to_end_together),
        cmocka_unit_test(test_explain__a_refusal_of_the_first_of_two_groups),
    };

    for (size_t i = 0; i < N; i++)
        tests[i + 4] = (struct CMUnitTest){.name = summaries[i].name,
                                           .test_func = test_explain__summary,
                                           .initial_state = (void *)(uintptr_t)&summaries[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
