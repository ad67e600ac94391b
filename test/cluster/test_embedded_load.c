/* Loading manifests: what is used, what is refused and how that is said. */
#include "test/cluster/world.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/support/cmocka.h"

#define CLASS "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: any}\nspec: {}\n---\n"

#define SLICE(node)                                                                                                    \
    "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: " node                                \
    "-d}, spec: {driver: d.x, nodeName: " node ", pool: {name: " node                                                  \
    ", generation: 1, resourceSliceCount: 1}, devices: [{name: a}]}}\n"

static const struct load_case {
    const char *name, *yaml;
    const char *object, *want; /* one that must be there in this state */
    const char *warning;       /* part of the only warning; NULL: none */
} load_cases[] = {
    {"a class", CLASS, "DeviceClass/any", "there", NULL},
    {"a list of kubectl's",
     "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1, resourceVersion: '7', "
     "uid: u}}\n"
     "- {apiVersion: v1, kind: Node, metadata: {name: n2}}\n",
     "Node/n2", "there", NULL},
    {"a typed list", "apiVersion: v1\nkind: NodeList\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n",
     "Node/n1", "there", NULL},
    {"JSON", "{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"n1\"}}", "Node/n1", "there",
     NULL},
    {"a namespace that an object implies",
     CLASS "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: team}\n", "Namespace/team", "there", NULL},
    {"a claim that is allocated",
     CLASS
     "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c, namespace: default, finalizers: "
     "[resource.kubernetes.io/delete-protection]}\nspec: {devices: {requests: [{name: r, exactly: {deviceClassName: "
     "any}}]}}\nstatus:\n  allocation: {devices: {results: [{request: r, driver: d.x, pool: p, device: gpu-0}]}}\n"
     "  reservedFor: [{resource: pods, name: away, uid: gone}]\n",
     "ResourceClaim/default/c", "p/gpu-0 for away", NULL},
    {"a pod that runs",
     CLASS "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\nspec: {nodeName: n7, "
           "containers: [{name: a, image: x}]}\nstatus: {phase: Running}\n",
     "Pod/default/p", "Running@n7", NULL},
    {"an object whose owner is not in the dump",
     CLASS "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, labels: {queue.dra/job: '1'}, ownerReferences: "
           "[{apiVersion: "
           "v1, kind: Pod, name: p, uid: away}]}\n",
     "ConfigMap/default/m", "there", NULL},

    {"a kind that is not served", CLASS "\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
     "DeviceClass/any", "there",
     "cluster.yaml:8: Deployment \"d\": \"Deployment\" is not served by the embedded cluster [kind]"},
    {"a wrong field in the second document", CLASS "apiVersion: v1\nkind: Node\nmetadata:\n  labels: {}\n  name: N1\n",
     "DeviceClass/any", "there", "cluster.yaml:10: Node \"N1\": \"N1\" is no DNS name"},
    {"a wrong item of a list",
     CLASS
     "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: n1}\n- apiVersion: v1\n  "
     "kind: Node\n  metadata: {}\n",
     "Node/n1", "there", "[items[1].metadata.name]"},
    {"the same object twice", CLASS CLASS, "DeviceClass/any", "there", "is in the manifests already [metadata.name]"},
    {"a slice without driver",
     CLASS "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec:\n  nodeName: n1\n  pool: "
           "{name: p, "
           "generation: 1, resourceSliceCount: 1}\n",
     "DeviceClass/any", "there", "driver"},
    {"slices of nodes that are not there",
     "{apiVersion: v1, kind: Node, metadata: {name: n2}}\n" SLICE("n1") SLICE("n2") SLICE("n3"), "Node/n2", "there",
     "slices name 2 nodes that are not in the manifests: their devices cannot be used (n1, n3) []"},
    {"slices alone", CLASS SLICE("n1") SLICE("n2") SLICE("n3") SLICE("n4"), "DeviceClass/any", "there",
     "the cluster has no Node, so that nothing can start; slices name 4 nodes that are not in the manifests: their "
     "devices cannot be used (n1, n2, n3, ...) []"},
    {"a scalar document", CLASS "just text\n", "DeviceClass/any", "there", "a Kubernetes object is a JSON object"},
};

static void test_load__manifest(void **state)
{
    const struct load_case *c = *state;
    struct world world;

    world_open(&world, c->yaml, false);
    world_run(&world, 3600000);
    assert_string_equal(world_state(&world, c->object), c->want);
    if (c->warning && !strstr(buf_str(&world.warnings), c->warning))
        fail_msg("%s", buf_str(&world.warnings));
    assert_int_equal(world.n_warnings, c->warning ? 1 : 0);
    world_close(&world);
}

/* ---- folders ---- */

static size_t count_warnings(const struct world *world)
{
    return world->n_warnings;
}

static void warn_into(void *ctx, const struct error *err)
{
    struct world *world = ctx;

    world->n_warnings++;
    buf_addf(&world->warnings, "%s [%s]\n", err->text, err->field);
}

/* The number of warnings, or -1 when nothing could be loaded. */
static int load(const char *path, struct world *world, struct error *err)
{
    struct clock *clock = clock_virtual_new(WORLD_START_MS);
    struct embedded_options options = {.manifests = path};
    struct cluster *cluster;
    int rc;

    *world = (struct world){0};
    rc = embedded_new(&options, clock, warn_into, world, &cluster, err);
    if (rc == 0) {
        clock_advance(clock, WORLD_START_MS + 60000, NULL, NULL);
        cluster->ops->free(cluster);
    }
    clock_free(clock);
    return rc < 0 ? -1 : (int)count_warnings(world);
}

static void put_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void test_load__folders_are_read_to_the_bottom_and_bad_files_do_not_spoil_good_ones(void **state)
{
    char folder[] = "/tmp/test-load-XXXXXX", path[256];
    struct world world;
    struct error err = {0};

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(load(folder, &world, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    put_file(folder, "notes.txt", "nothing: [");
    put_file(folder, ".hidden.yaml", "nothing: [");
    put_file(folder, "broken.yaml", "nothing: [");
    assert_int_equal(load(folder, &world, &err), -1);
    assert_non_null(strstr(buf_str(&world.warnings), "broken.yaml:"));
    buf_release(&world.warnings);
    snprintf(path, sizeof(path), "%s/below", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    put_file(path, "class.yml", CLASS);
    assert_int_equal(load(folder, &world, &err), 1);
    buf_release(&world.warnings);
    snprintf(path, sizeof(path), "%s/below/class.yml", folder);
    assert_int_equal(load(path, &world, &err), 0); /* one file alone */
    snprintf(path, sizeof(path), "%s/below/loop", folder);
    assert_int_equal(symlink("..", path), 0);
    assert_int_equal(load(folder, &world, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    buf_release(&world.warnings);
    assert_int_equal(load("/nowhere/at/all", &world, &err), -1);
    assert_int_equal(err.code, ERR_IO);
    assert_int_equal(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- what drivers really publish, where it lies beside the checkout ---- */

#define INVENTORY "../shared/inventory"

static size_t n_refused; /* files of slices and classes with an object that did not load */

static int load_inventory_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    bool is_cluster = strstr(path, "/slices/") || strstr(path, "/classes/");
    const char *dot = strrchr(path, '.');
    struct world world;
    struct error err = {0};
    int n;

    (void)st, (void)ftw;
    if (type != FTW_F || !dot || strcmp(dot, ".yaml") != 0)
        return 0;
    n = load(path, &world, &err);
    if (strncmp(buf_str(&world.warnings), "the cluster has no Node", 23) == 0)
        n--; /* the last and so the only warning: a file of slices alone */
    if (is_cluster && n != 0) {
        print_message("%s: %s\n%s", path, err.text, buf_str(&world.warnings));
        n_refused++;
    }
    buf_release(&world.warnings);
    if (n < 0 && err.code != ERR_NOT_FOUND)
        fail_msg("%s: %s", path, err.text);
    return 0;
}

static void test_load__every_file_of_the_inventory_loads_or_says_why(void **state)
{
    (void)state;
    if (access(INVENTORY, R_OK) != 0)
        skip();
    assert_int_equal(nftw(INVENTORY, load_inventory_file, 8, FTW_PHYS), 0);
    assert_int_equal(n_refused, 0);
}

static void test_load__the_example_cluster_loads_whole(void **state)
{
    struct world world;
    struct error err = {0};

    (void)state;
    if (load("examples/cluster", &world, &err) != 0)
        fail_msg("%s\n%s", err.text, buf_str(&world.warnings));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load__folders_are_read_to_the_bottom_and_bad_files_do_not_spoil_good_ones),
        cmocka_unit_test(test_load__the_example_cluster_loads_whole),
        cmocka_unit_test(test_load__every_file_of_the_inventory_loads_or_says_why),
    };
    int failed = RUN_TABLE(test_load__manifest, load_cases);

    return failed + cmocka_run_group_tests_name("embedded_load", tests, NULL, NULL);
}
