/* Which placement a job is planned with, and that the node it gets follows from it. */
#include "test/support/cmocka.h"

#include <string.h>

#include "queued/admission/plan.h"
#include "queued/manifest/yaml.h"

#define NOTHING JOB_PLACEMENT_DEFAULT
#define FRAG    JOB_PLACEMENT_FRAGMENTATION
#define PACK    JOB_PLACEMENT_PACK
#define SPREAD  JOB_PLACEMENT_SPREAD

/* Three levels: top, under it middle, under that leaf; beside leaf its sibling. What each says. */
static const struct tree_case {
    const char *name;
    enum job_placement top, middle, leaf, sibling, job;
    const char *want; /* for a job in leaf */
} tree_cases[] = {
    {"nobody says anything", NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, "fragmentation of default"},
    {"its queue says", NOTHING, NOTHING, PACK, NOTHING, NOTHING, "pack of queue leaf"},
    {"the queue above says", NOTHING, SPREAD, NOTHING, NOTHING, NOTHING, "spread of queue middle"},
    {"the queue at the top says", PACK, NOTHING, NOTHING, NOTHING, NOTHING, "pack of queue top"},
    {"the nearest that says anything counts", PACK, SPREAD, NOTHING, NOTHING, NOTHING, "spread of queue middle"},
    {"its own queue before those above", PACK, PACK, SPREAD, NOTHING, NOTHING, "spread of queue leaf"},
    {"a queue goes back to the default by saying it", PACK, FRAG, NOTHING, NOTHING, NOTHING,
     "fragmentation of queue middle"},
    {"a sibling says nothing for others", NOTHING, NOTHING, NOTHING, PACK, NOTHING, "fragmentation of default"},
    {"the job before all queues", PACK, PACK, PACK, PACK, SPREAD, "spread of job"},
    {"the job may ask for the default too", PACK, PACK, PACK, PACK, FRAG, "fragmentation of job"},
};

enum { TOP, SIBLING, LEAF, MIDDLE, N_QUEUES }; /* as a book has them: by no order of the tree */

static void fill_tree(const struct tree_case *c, struct plan_queue queues[N_QUEUES])
{
    queues[TOP] = (struct plan_queue){.name = "top", .parent = PLAN_ROOT, .weight = 1, .placement = c->top};
    queues[MIDDLE] = (struct plan_queue){.name = "middle", .parent = TOP, .weight = 1, .placement = c->middle};
    queues[LEAF] = (struct plan_queue){.name = "leaf", .parent = MIDDLE, .weight = 1, .placement = c->leaf};
    queues[SIBLING] = (struct plan_queue){.name = "sibling", .parent = MIDDLE, .weight = 1, .placement = c->sibling};
}

static void tell(const struct effective_placement *effective, struct buf *out)
{
    buf_addf(out, "%s of %s", job_placement_name(effective->placement), placement_source_name(effective->source));
    if (effective->queue)
        buf_addf(out, " %s", effective->queue);
}

static void test_effective__tree(void **state)
{
    const struct tree_case *c = *state;
    struct plan_queue queues[N_QUEUES];
    struct effective_placement effective;
    BUF got = {0};

    fill_tree(c, queues);
    effective = effective_placement_of(c->job, queues, LEAF);
    tell(&effective, &got);
    assert_string_equal(buf_str(&got), c->want);
}

/* ---- what comes of it ---- */

/* Nodes with two, three and six free devices, while the cluster's jobs usually ask for two: on the second a device is
 * left over that no pair can use, so that taking it costs nothing. Names say nothing. */
#define NODE(n)                                                                                                        \
    "---\n{apiVersion: v1, kind: Node, metadata: {name: " n                                                            \
    "}, status: {allocatable: {cpu: '64', memory: 64Gi, pods: '99'}, conditions: [{type: Ready, status: 'True'}]}}\n"
#define SLICE(n, devices)                                                                                              \
    "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: " n "}, spec: {driver: d.x, "         \
    "nodeName: " n ", pool: {name: " n ", generation: 1, resourceSliceCount: 1}, devices: [" devices "]}}\n"
static const char cluster[] =
    "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {}}\n"
    "---\n{apiVersion: v1, kind: Namespace, metadata: {name: default}}\n" NODE("two")
        SLICE("two", "{name: a}, {name: b}") NODE("three") SLICE("three", "{name: a}, {name: b}, {name: c}") NODE("six")
            SLICE("six", "{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}");

static const struct place_case {
    const char *name;
    enum job_placement queue, job;
    int members, drivers; /* of one device each; of another kind, with two */
    const char *want;     /* the members' nodes, then the drivers' */
} place_cases[] = {
    /* a single device: of the fullest node, of the emptiest, or where no pair loses anything by it */
    {"packed by its queue", PACK, NOTHING, 1, 0, "two"},
    {"spread by its queue", SPREAD, NOTHING, 1, 0, "six"},
    {"by default", NOTHING, NOTHING, 1, 0, "three"},
    {"by fragmentation, as its queue says", FRAG, NOTHING, 1, 0, "three"},
    {"packed by the job itself", SPREAD, PACK, 1, 0, "two"},
    {"spread by the job itself", PACK, SPREAD, 1, 0, "six"},
    {"by fragmentation, as the job itself says", PACK, FRAG, 1, 0, "three"},
    /* a gang: as few nodes as can be, of those the fullest; or one member a node in turn, from the emptiest */
    {"a gang packed by its queue", PACK, NOTHING, 3, 0, "three three three"},
    {"a gang that fits on one node only", PACK, NOTHING, 5, 0, "six six six six six"},
    {"a gang spread by its queue", SPREAD, NOTHING, 3, 0, "six three two"},
    {"a gang with more members than nodes", SPREAD, NOTHING, 4, 0, "six six three two"},
    {"a gang packed by the job itself", SPREAD, PACK, 3, 0, "three three three"},
    {"a gang spread by the job itself", PACK, SPREAD, 2, 0, "six three"},
    /* a gang of two kinds: the same */
    {"two kinds packed on one node", PACK, NOTHING, 1, 1, "three three"},
    {"two kinds packed on the one node that takes them", PACK, NOTHING, 3, 1, "six six six six"},
    {"two kinds packed on few nodes", PACK, NOTHING, 4, 2, "six six three three six six"},
    {"two kinds spread", SPREAD, NOTHING, 2, 1, "three two six"},
    {"more of two kinds than nodes", SPREAD, NOTHING, 3, 2, "six three two six three"},
    {"two kinds that take all there is", SPREAD, NOTHING, 3, 4, "six six three six six three two"},
};

static json_t *documents_of(const char *yaml)
{
    struct error err = {0};
    CLEANUP(manifest) *manifest = NULL;
    json_t *documents = json_array();

    if (manifest_parse("test", yaml, strlen(yaml), &MANIFEST_LIMITS_DEFAULT, &manifest, &err) < 0)
        fail_msg("%s\n%s", err.text, yaml);
    for (size_t i = 0; i < manifest_n_documents(manifest); i++)
        json_array_append(documents, manifest_document(manifest, i));
    return documents;
}

static struct snapshot *snapshot_of_cluster(void)
{
    struct features features = features_default(37);
    CLEANUP(snapshot_builder) *builder = snapshot_builder_new(&features, true);
    json_t *documents = documents_of(cluster), *document;
    size_t i;

    json_array_foreach (documents, i, document)
        assert_int_equal(snapshot_builder_put(builder, document, NULL), 0);
    json_decref(documents);
    return snapshot_builder_build(builder);
}

static void add_group(struct buf *text, const char *name, int members)
{
    buf_addf(text,
             "{name: %s, replicas: %d, template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "
             "'1'}, claims: [{name: g}]}}], resourceClaims: [{name: g, resourceClaimTemplateName: %s}]}}}",
             name, members, name);
}

static void add_template(struct buf *text, const char *name, int count)
{
    buf_addf(text, "{name: %s, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: %d}}]}}}",
             name, count);
}

static json_t *gangjob_of(const char *name, enum job_placement placement, int members, int count, int drivers)
{
    json_t *documents, *gangjobs, *gangjob;
    const struct job_decode_options options = {0};
    BUF text = {0};

    buf_addf(&text, "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: %s}, spec: {", name);
    if (placement != NOTHING)
        buf_addf(&text, "placement: %s, ", job_placement_name(placement));
    buf_adds(&text, "groups: [");
    add_group(&text, "w", members);
    if (drivers) {
        buf_adds(&text, ", ");
        add_group(&text, "d", drivers);
    }
    buf_adds(&text, "], claimTemplates: [");
    add_template(&text, "w", count);
    if (drivers) {
        buf_adds(&text, ", ");
        add_template(&text, "d", 2);
    }
    buf_adds(&text, "]}}");
    documents = documents_of(buf_str(&text));
    assert_int_equal(jobs_decode(documents, &options, &gangjobs, NULL), 0);
    gangjob = json_incref(json_array_get(gangjobs, 0));
    json_decref(gangjobs);
    json_decref(documents);
    return gangjob;
}

/* One round over one snapshot; whoever is asked twice is asked the same. */
struct placing {
    struct arena arena;
    struct snapshot *snapshot;
    json_t *usual;
    struct gang_workload *workload;
};

static void placing_init(struct placing *p)
{
    struct features features = features_default(37);
    struct job_spec spec;
    struct gang_typical typical;

    *p = (struct placing){.snapshot = snapshot_of_cluster(), .usual = gangjob_of("usual", NOTHING, 1, 2, 0)};
    assert_int_equal(job_spec_parse(p->usual, &p->arena, &spec, NULL), 0);
    typical = (struct gang_typical){1, spec.shapes[0].groups[0].pod, spec.shapes[0].groups[0].claims[0].object};
    p->workload = gang_workload_new(&typical, 1, &features, NULL);
    assert_non_null(p->workload);
}

static void placing_release(struct placing *p)
{
    gang_workload_free(p->workload);
    json_decref(p->usual);
    snapshot_unref(p->snapshot);
    arena_release(&p->arena);
}

static void place(struct placing *p, enum job_placement queue_says, const json_t *gangjob, struct buf *nodes)
{
    struct plan_queue queues[] = {
        {.name = "above", .parent = PLAN_ROOT, .weight = 1, .placement = queue_says},
        {.name = "q", .parent = 0, .weight = 1},
    };
    struct job_spec spec;
    struct plan_job job = {.id = 1, .queue = 1, .spec = &spec, .twin = 7};
    struct plan_input input = {.snapshot = p->snapshot,
                               .workload = p->workload,
                               .queues = queues,
                               .n_queues = 2,
                               .pending = &job,
                               .n_pending = 1};
    struct plan plan;

    assert_int_equal(job_spec_parse(gangjob, &p->arena, &spec, NULL), 0);
    admission_plan(&input, &plan);
    if (!plan.outcomes[0].is_admitted)
        fail_msg("%s", plan.outcomes[0].reason);
    for (size_t m = 0; m < plan.outcomes[0].placement->n_members; m++)
        buf_addf(nodes, "%s%s", m ? " " : "", plan.outcomes[0].placement->members[m].node);
    assert_int_equal(plan.outcomes[0].effective.placement, effective_placement_of(spec.placement, queues, 1).placement);
    plan_release(&plan);
}

static void test_effective__place(void **state)
{
    const struct place_case *c = *state;
    json_t *gangjob = gangjob_of("job", c->job, c->members, 1, c->drivers);
    struct placing p;
    BUF nodes = {0};

    placing_init(&p);
    place(&p, c->queue, gangjob, &nodes);
    placing_release(&p);
    json_decref(gangjob);
    assert_string_equal(buf_str(&nodes), c->want);
}

/* Snapshots remember answers. Asked again after the queue has said something else, none of them is the old one. */
static const struct again_case {
    const char *name;
    int members;
    enum job_placement says[6];
    const char *want;
} again_cases[] = {
    {"a single device", 1, {NOTHING, PACK, FRAG, SPREAD, PACK, NOTHING}, "three two three six two three "},
    {"a gang", 2, {PACK, SPREAD, PACK, SPREAD, SPREAD, PACK}, "two two six three two two six three six three two two "},
};

static void test_effective__again(void **state)
{
    const struct again_case *c = *state;
    json_t *gangjob = gangjob_of("job", NOTHING, c->members, 1, 0);
    struct placing p;
    BUF nodes = {0};

    placing_init(&p);
    for (size_t i = 0; i < ARRAY_SIZE(c->says); i++) {
        place(&p, c->says[i], gangjob, &nodes);
        buf_addc(&nodes, ' ');
    }
    placing_release(&p);
    json_decref(gangjob);
    assert_string_equal(buf_str(&nodes), c->want);
}

int main(void)
{
    return RUN_TABLE(test_effective__tree, tree_cases) + RUN_TABLE(test_effective__place, place_cases) +
           RUN_TABLE(test_effective__again, again_cases);
}
