#include "test/cluster/world.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/support/cmocka.h"

#define GPU(name, type) "{name: " name ", attributes: {type: {string: " type "}}, capacity: {memory: {value: 80Gi}}}"
#define NODE(name)                                                                                                     \
    "apiVersion: v1\n"                                                                                                 \
    "kind: Node\n"                                                                                                     \
    "metadata: {name: " name ", labels: {kubernetes.io/hostname: " name "}}\n"                                         \
    "status: {allocatable: {cpu: '16', memory: 64Gi, pods: '20'}}\n"                                                   \
    "---\n"                                                                                                            \
    "apiVersion: resource.k8s.io/v1\n"                                                                                 \
    "kind: ResourceSlice\n"                                                                                            \
    "metadata: {name: " name "-gpus}\n"                                                                                \
    "spec:\n"                                                                                                          \
    "  driver: gpu.example.com\n"                                                                                      \
    "  nodeName: " name "\n"                                                                                           \
    "  pool: {name: " name ", generation: 1, resourceSliceCount: 1}\n"                                                 \
    "  devices: [" GPU("gpu-0", "a") ", " GPU("gpu-1", "a") ", " GPU("gpu-2", "b") ", " GPU("gpu-3", "b") "]\n"        \
                                                                                                          "---\n"
#define CLASS(name, expression)                                                                                        \
    "apiVersion: resource.k8s.io/v1\n"                                                                                 \
    "kind: DeviceClass\n"                                                                                              \
    "metadata: {name: " name "}\n"                                                                                     \
    "spec: {selectors: [{cel: {expression: '" expression "'}}]}\n"                                                     \
    "---\n"

const char world_two_nodes[] = NODE("n1") NODE("n2") CLASS("any", "device.driver == \"gpu.example.com\"")
    CLASS("a", "device.attributes[\"gpu.example.com\"].type == \"a\"")
        CLASS("b", "device.attributes[\"gpu.example.com\"].type == \"b\"");

/* ---- what is told ---- */

static const char *text_at(const json_t *object, const char *a, const char *b)
{
    return json_string_value(json_object_get(json_object_get(object, a), b));
}

static char *key_of(const json_t *object)
{
    const char *ns = text_at(object, "metadata", "namespace");
    struct buf key = {0};

    buf_addf(&key, "%s/%s%s%s", json_string_value(json_object_get(object, "kind")), ns ? ns : "", ns ? "/" : "",
             text_at(object, "metadata", "name"));
    return buf_take(&key);
}

static void add_pod_state(struct buf *out, const json_t *pod)
{
    const char *node = text_at(pod, "spec", "nodeName"), *reason = text_at(pod, "status", "reason");
    const json_t *first = json_array_get(json_object_get(json_object_get(pod, "status"), "containerStatuses"), 0);
    const json_t *ended = json_object_get(json_object_get(first, "state"), "terminated");

    buf_addf(out, "%s", text_at(pod, "status", "phase"));
    if (node)
        buf_addf(out, "@%s", node);
    if (json_array_size(json_object_get(json_object_get(pod, "spec"), "schedulingGates")) > 0)
        buf_adds(out, " gated");
    if (ended)
        buf_addf(out, " exit %d", (int)json_integer_value(json_object_get(ended, "exitCode")));
    if (reason)
        buf_addf(out, " %s", reason);
}

static void add_claim_state(struct buf *out, const json_t *claim)
{
    const json_t *status = json_object_get(claim, "status"), *allocation = json_object_get(status, "allocation");
    size_t i;
    json_t *item;

    if (!allocation)
        buf_adds(out, "free");
    json_array_foreach (json_object_get(json_object_get(allocation, "devices"), "results"), i, item)
        buf_addf(out, "%s%s/%s", i ? " " : "", json_string_value(json_object_get(item, "pool")),
                 json_string_value(json_object_get(item, "device")));
    json_array_foreach (json_object_get(status, "reservedFor"), i, item)
        buf_addf(out, "%s%s", i ? "," : " for ", json_string_value(json_object_get(item, "name")));
}

static void add_state(struct buf *out, const json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));

    if (strcmp(kind, "Pod") == 0)
        add_pod_state(out, object);
    else if (strcmp(kind, "ResourceClaim") == 0)
        add_claim_state(out, object);
    else
        buf_adds(out, "there");
    if (text_at(object, "metadata", "deletionTimestamp"))
        buf_adds(out, " going");
}

static void on_changed(void *ctx, enum cluster_change change, const json_t *object)
{
    struct world *world = ctx;
    char *key = key_of(object);

    buf_addf(&world->stream, "%s %s", change == CLUSTER_PUT ? "PUT" : "GONE", key);
    if (change == CLUSTER_PUT) {
        buf_addc(&world->stream, ' ');
        add_state(&world->stream, object);
        json_object_set(world->objects, key, (json_t *)(uintptr_t)object);
    } else {
        assert_int_equal(json_object_del(world->objects, key), 0); /* it was told before */
    }
    buf_addc(&world->stream, '\n');
    free(key);
    if (world->each)
        world->each(world);
}

static void on_synced(void *ctx)
{
    struct world *world = ctx;

    world->n_synced++;
}

static void on_lost(void *ctx, const struct error *err)
{
    struct world *world = ctx;

    assert_non_null(err);
    world->n_lost++;
    json_object_clear(world->objects);
}

static void on_warn(void *ctx, const struct error *err)
{
    struct world *world = ctx;

    world->n_warnings++;
    buf_addf(&world->warnings, "%s [%s]\n", err->text, err->field);
}

/* ---- opening and closing ---- */

static void write_manifests(struct world *world, const char *yaml)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/manifests", world->folder);
    assert_true(mkdir(path, 0700) == 0);
    snprintf(path, sizeof(path), "%s/manifests/cluster.yaml", world->folder);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(yaml, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

void world_resume(struct world *world)
{
    char manifests[128], state[128];
    struct error err = {0};

    snprintf(manifests, sizeof(manifests), "%s/manifests", world->folder);
    snprintf(state, sizeof(state), "%s/state", world->folder);
    world->options.manifests = manifests;
    world->options.state = world->keeps_state ? state : NULL;
    world->objects = json_object();
    world->n_synced = 0;
    world->listener =
        (struct cluster_listener){.ctx = world, .changed = on_changed, .synced = on_synced, .lost = on_lost};
    if (embedded_new(&world->options, world->clock, on_warn, world, &world->cluster, &err) < 0)
        fail_msg("embedded_new: %s", err.text);
    world->cluster->ops->start(world->cluster, &world->listener);
    assert_int_equal(world->n_synced, 0); /* nothing is told from inside a call */
    world_run(world, 0);
    assert_int_equal(world->n_synced, 1);
}

void world_open(struct world *world, const char *yaml, bool keeps_state)
{
    *world = (struct world){.keeps_state = keeps_state};
    /* Thousands of small synced files: in memory where that is possible. */
    snprintf(world->folder, sizeof(world->folder), "%s/test-cluster-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(world->folder));
    write_manifests(world, yaml);
    world->clock = clock_virtual_new(WORLD_START_MS);
    world_resume(world);
    buf_clear(&world->stream);
}

void world_stop(struct world *world)
{
    world->cluster->ops->free(world->cluster);
    world->cluster = NULL;
    json_decref(world->objects);
    world->objects = NULL;
}

void world_restart(struct world *world)
{
    world_stop(world);
    world_resume(world);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void world_close(struct world *world)
{
    world_stop(world);
    clock_free(world->clock);
    assert_int_equal(nftw(world->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    buf_release(&world->stream);
    buf_release(&world->warnings);
}

void world_run(struct world *world, int64_t ms)
{
    clock_advance(world->clock, clock_now_ms(world->clock) + ms, NULL, NULL);
}

int64_t world_ms(const struct world *world)
{
    return clock_now_ms(world->clock) - WORLD_START_MS;
}

/* ---- requests ---- */

struct reply {
    bool is_there;
    struct error err;
    json_t *object;
};

static void on_reply(void *ctx, const struct error *err, const json_t *object)
{
    struct reply *reply = ctx;

    assert_false(reply->is_there); /* one answer */
    reply->is_there = true;
    if (err)
        reply->err = *err;
    if (object)
        reply->object = json_incref((json_t *)(uintptr_t)object);
}

static enum err_code finish(struct world *world, struct reply *reply, struct error *err, json_t **out)
{
    assert_false(reply->is_there); /* not from inside the call */
    world_run(world, 0);
    assert_true(reply->is_there);
    if (err)
        *err = reply->err;
    if (out)
        *out = reply->object;
    else
        json_decref(reply->object);
    return reply->err.code;
}

static json_t *parse(const char *fmt, va_list args)
{
    json_error_t problem;
    char *text;
    json_t *json;

    assert_true(vasprintf(&text, fmt, args) >= 0);
    for (char *c = text; *c; c++)
        if (*c == '\'')
            *c = '"';
    json = json_loads(text, JSON_DECODE_ANY, &problem);
    if (!json)
        fail_msg("%s in %s", problem.text, text);
    free(text);
    return json;
}

json_t *world_json(const char *fmt, ...)
{
    va_list args;
    json_t *json;

    va_start(args, fmt);
    json = parse(fmt, args);
    va_end(args);
    return json;
}

enum err_code world_create_json(struct world *world, const json_t *object, struct error *err)
{
    struct reply reply = {0};

    world->cluster->ops->create(world->cluster, object, on_reply, &reply);
    return finish(world, &reply, err, NULL);
}

enum err_code world_create(struct world *world, struct error *err, const char *fmt, ...)
{
    enum err_code code;
    va_list args;
    json_t *json;

    va_start(args, fmt);
    json = parse(fmt, args);
    va_end(args);
    code = world_create_json(world, json, err);
    json_decref(json);
    return code;
}

enum err_code world_delete(struct world *world, const char *kind, const char *ns, const char *name, const char *uid)
{
    struct reply reply = {0};

    world->cluster->ops->remove(world->cluster, kind, ns, name, uid, on_reply, &reply);
    return finish(world, &reply, NULL, NULL);
}

enum err_code world_ungate(struct world *world, const char *ns, const char *pod)
{
    struct reply reply = {0};

    world->cluster->ops->ungate(world->cluster, ns, pod, NULL, on_reply, &reply);
    return finish(world, &reply, NULL, NULL);
}

enum err_code world_allocate(struct world *world, struct error *err, const char *ns, const char *claim, const char *fmt,
                             ...)
{
    struct reply reply = {0};
    va_list args;
    json_t *allocation;

    va_start(args, fmt);
    allocation = parse(fmt, args);
    va_end(args);
    world->cluster->ops->allocate(world->cluster, ns, claim, NULL, allocation, NULL, on_reply, &reply);
    json_decref(allocation);
    return finish(world, &reply, err, NULL);
}

enum err_code world_allocate_for(struct world *world, struct error *err, const char *claim, const char *uid,
                                 const char *fmt, ...)
{
    struct reply reply = {0};
    va_list args;
    json_t *both;

    va_start(args, fmt);
    both = parse(fmt, args);
    va_end(args);
    world->cluster->ops->allocate(world->cluster, "default", claim, uid, json_array_get(both, 0),
                                  json_array_get(both, 1), on_reply, &reply);
    json_decref(both);
    return finish(world, &reply, err, NULL);
}

enum err_code world_bind(struct world *world, const char *pod, const char *uid, const char *node)
{
    struct reply reply = {0};

    world->cluster->ops->bind(world->cluster, "default", pod, uid, node, on_reply, &reply);
    return finish(world, &reply, NULL, NULL);
}

enum err_code world_get(struct world *world, const char *kind, const char *ns, const char *name, json_t **out)
{
    struct reply reply = {0};

    world->cluster->ops->get(world->cluster, kind, ns, name, on_reply, &reply);
    return finish(world, &reply, NULL, out);
}

enum err_code world_command(struct world *world, struct error *err, const char *fmt, ...)
{
    struct error problem = {0};
    va_list args;
    json_t *json;
    int rc;

    va_start(args, fmt);
    json = parse(fmt, args);
    va_end(args);
    rc = embedded_command(world->cluster, json, &problem);
    json_decref(json);
    assert_true((rc == 0) == (problem.code == ERR_NONE));
    if (err)
        *err = problem;
    world_run(world, 0);
    return problem.code;
}

/* ---- looking ---- */

const json_t *world_object(struct world *world, const char *key)
{
    return json_object_get(world->objects, key);
}

const char *world_state(struct world *world, const char *key)
{
    static char text[512];
    const json_t *object = world_object(world, key);
    BUF out = {0};

    if (!object)
        return "none";
    add_state(&out, object);
    snprintf(text, sizeof(text), "%s", buf_str(&out));
    return text;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *world_summary(struct world *world)
{
    static const char *const left_out[] = {"Namespace/", "Node/", "DeviceClass/", "ResourceSlice/"};
    char **lines = mem_array(char *, json_object_size(world->objects) + 1);
    struct buf all = {0};
    size_t n = 0;
    const char *key;
    json_t *object;

    json_object_foreach (world->objects, key, object) {
        struct buf line = {0};
        bool is_left_out = false;

        for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
            is_left_out |= strncmp(key, left_out[i], strlen(left_out[i])) == 0;
        if (is_left_out)
            continue;
        buf_addf(&line, "%s ", key);
        add_state(&line, object);
        lines[n++] = buf_take(&line);
    }
    qsort(lines, n, sizeof(*lines), by_text);
    for (size_t i = 0; i < n; i++) {
        buf_addf(&all, "%s\n", lines[i]);
        free(lines[i]);
    }
    free(lines);
    buf_adds(&all, "");
    return buf_take(&all);
}

/* ---- common objects ---- */

enum err_code world_pod(struct world *world, const char *name, const char *claim, bool gated, const char *duration)
{
    json_t *pod =
        world_json("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': '%s', 'annotations': {'%s': '%s'}}, "
                   "'spec': {'containers': [{'name': 'main', 'image': 'x'}]}}",
                   name, EMBEDDED_DURATION, duration ? duration : "10s");
    json_t *spec = json_object_get(pod, "spec");
    enum err_code code;

    if (claim)
        json_object_set_new(spec, "resourceClaims", world_json("[{'name': 'c', 'resourceClaimName': '%s'}]", claim));
    if (gated)
        json_object_set_new(spec, "schedulingGates", world_json("[{'name': 'queue.dra/gate'}]"));
    code = world_create_json(world, pod, NULL);
    json_decref(pod);
    return code;
}

enum err_code world_claim(struct world *world, const char *name, const char *class, int count)
{
    return world_create(
        world, NULL,
        "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'name': '%s'}, "
        "'spec': {'devices': {'requests': [{'name': 'gpu', 'exactly': {'deviceClassName': '%s', 'count': "
        "%d}}]}}}",
        name, class, count);
}
