/* The stream and the calls of a Kubernetes behind the port: what is asked, and what each answer means. */
#include "queued/cluster/kube/kube.h"
#include "test/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queued/cluster/kube/convert.h"
#include "queued/cluster/kube/text.h"
#include "queued/log.h"
#include "test/cluster/kube/fake_stream.h"
#include "test/cluster/kube/stub.h"

#include "allocator/base/banned.h"

#define START_MS INT64_C(1767225600000)

enum { REPLIES_MAX = 8 };

/* What the server says, one after the other; the last for ever. */
struct reply {
    int status;
    const char *body;
    int64_t retry_after_ms; /* 0: not said */
    bool is_lost;           /* no answer, and it may have been done */
};

struct world {
    struct clock *clock;
    struct stub_server server;
    struct http http;
    struct cluster *cluster;
    struct cluster_listener listener;
    const struct reply *replies;
    size_t at;
    json_t *bodies; /* what was sent, null where nothing was */
    struct buf told;
    bool may_not_write;

    int n_done;
    enum err_code code;
    char text[512];
    json_t *object;
};

static void serve(void *ctx, const struct stub_request *request, struct stub_reply *out)
{
    struct world *world = ctx;
    const struct reply *reply = &world->replies[world->at];

    json_array_append_new(world->bodies, request->body ? json_loads(request->body, 0, NULL) : json_null());
    if (strcmp(request->method, "PATCH") == 0)
        assert_string_equal(request->content_type, strstr(request->path, "/resourceclaims/")
                                                       ? "application/strategic-merge-patch+json"
                                                       : "application/merge-patch+json");
    stub_reply(out, reply->status, reply->body ? reply->body : "");
    out->retry_after_ms = reply->retry_after_ms ? reply->retry_after_ms : -1;
    out->code = reply->is_lost ? ERR_TIMEOUT : ERR_UNAVAILABLE;
    out->may_be_done = reply->is_lost;
    if (world->replies[world->at + 1].status || world->replies[world->at + 1].is_lost)
        world->at++;
}

static void on_began(void *ctx)
{
    struct world *world = ctx;

    buf_adds(&world->told, "began ");
}

static void on_changed(void *ctx, enum cluster_change change, const json_t *object)
{
    struct world *world = ctx;

    buf_addf(&world->told, "%s:%s ", change == CLUSTER_PUT ? "put" : "gone",
             json_string_value(json_object_get(object, "kind")));
}

static void on_synced(void *ctx)
{
    struct world *world = ctx;

    buf_adds(&world->told, "synced ");
}

static void on_lost(void *ctx, const struct error *err)
{
    struct world *world = ctx;

    buf_addf(&world->told, "lost(%s) ", err->text);
}

static bool may_write(void *ctx)
{
    const struct world *world = ctx;

    return !world->may_not_write;
}

static int world_begin(void **state)
{
    static const struct reply nothing[2] = {{500, "nobody asked", 0, false}};
    struct world *world = test_calloc(1, sizeof(*world));

    (void)state;
    log_setup(LOG_ERROR, LOG_TEXT);
    world->clock = clock_virtual_new(START_MS);
    world->server = (struct stub_server){.serve = serve, .ctx = world};
    world->http = (struct http){.clock = world->clock, .server = &world->server, .latency_ms = 5};
    world->bodies = json_array();
    world->replies = nothing;
    world->listener = (struct cluster_listener){world, on_began, on_changed, on_synced, on_lost};
    fake_streams = (struct fake_streams){.clock = world->clock, .dra = "v1"};
    world->cluster = kube_new(&(struct kube_options){.http = &world->http,
                                                     .clock = world->clock,
                                                     .server = "https://there:6443",
                                                     .may_write = may_write,
                                                     .ctx = world,
                                                     .seed = 1});
    *state = world;
    return 0;
}

static int world_end(void **state)
{
    struct world *world = *state;

    world->cluster->ops->free(world->cluster);
    assert_int_equal(fake_streams_n_alive(), 0);
    assert_null(world->http.calls);
    json_decref(world->bodies);
    json_decref(world->object);
    buf_release(&world->server.log);
    buf_release(&world->told);
    clock_free(world->clock);
    test_free(world);
    return 0;
}

static void run(struct world *world, int64_t ms)
{
    clock_advance(world->clock, clock_now_ms(world->clock) + ms, NULL, NULL);
}

static void start(struct world *world)
{
    world->cluster->ops->start(world->cluster, &world->listener);
    run(world, 10);
}

static void on_done(void *ctx, const struct error *err, const json_t *object)
{
    struct world *world = ctx;

    world->n_done++;
    world->code = err ? err->code : ERR_NONE;
    snprintf(world->text, sizeof(world->text), "%s", err ? err->text : "");
    json_decref(world->object);
    world->object = object ? json_deep_copy(object) : NULL;
}

/* ---- the stream ---- */

static void test_kube__is_synced_when_all_streams_are(void **state)
{
    struct world *world = *state;
    json_t *node = json_pack("{s:s}", "kind", "Node");

    start(world);
    assert_string_equal(buf_str(&world->told), "began ");
    assert_int_equal(fake_streams_n_alive(), n_kube_sources - 1); /* all but the one that is not served */
    fake_streams_first()->options.changed(fake_streams_first()->options.ctx, CLUSTER_PUT, node);
    fake_streams_sync();
    assert_string_equal(buf_str(&world->told), "began put:Node synced ");
    json_decref(node);
}

static void test_kube__a_stale_stream_begins_anew(void **state)
{
    struct world *world = *state;
    struct error err = {.code = ERR_UNAVAILABLE, .text = "connection refused"};
    struct reflector *first;
    json_t *node = json_pack("{s:s}", "kind", "Node");

    start(world);
    fake_streams_sync();
    first = fake_streams_first();
    first->options.stale(first->options.ctx, &err);
    assert_non_null(fake_streams_first()); /* not freed from within its own call */
    first->options.changed(first->options.ctx, CLUSTER_PUT, node);
    run(world, 1);
    assert_int_equal(fake_streams_n_alive(), 0);
    assert_string_equal(buf_str(&world->told), "began synced lost(namespaces: connection refused) ");
    run(world, 5000);
    fake_streams_sync();
    assert_string_equal(buf_str(&world->told), "began synced lost(namespaces: connection refused) began synced ");
    json_decref(node);
}

static void test_kube__a_server_that_is_away_is_told_once_and_asked_rarely(void **state)
{
    struct world *world = *state;

    fake_streams.is_away = true;
    start(world);
    run(world, 600000);
    assert_string_equal(buf_str(&world->told), "lost(the API server: connection refused) ");
    assert_in_range(fake_streams.n_discoveries, 15, 50);
    fake_streams.is_away = false;
    run(world, 31000);
    assert_string_equal(buf_str(&world->told), "lost(the API server: connection refused) began ");
}

static void test_kube__without_devices_there_is_nothing_to_do(void **state)
{
    struct world *world = *state;

    fake_streams.has_no_claims = true;
    start(world);
    assert_string_equal(buf_str(&world->told),
                        "lost(the API server (v1.37.2) does not serve deviceclasses of resource.k8s.io) ");
}

static void test_kube__tells_what_it_is(void **state)
{
    struct world *world = *state;
    json_t *described = world->cluster->ops->describe(world->cluster), *wanted;

    assert_null(json_object_get(described, "version"));
    json_decref(described);
    fake_streams.features = "+listAttributes";
    start(world);
    described = world->cluster->ops->describe(world->cluster);
    json_object_del(described, "measured");
    wanted = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "kind", "kubernetes", "server", "https://there:6443",
                       "version", "1.37", "gitVersion", "v1.37.2", "features", "+listAttributes", "podGroup",
                       "scheduling.k8s.io/v1beta1", "provisioning", "autoscaling.x-k8s.io/v1", "makesNamespaces", 0);
    assert_true(json_equal(described, wanted));
    json_decref(described);
    json_decref(wanted);
}

/* ---- calls ---- */

#define POD                                                                                                            \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"main\"},{\"name\":"         \
    "\"side\"}]}}"
#define POD_CHOSEN                                                                                                     \
    "{\"kind\":\"Pod\",\"metadata\":{\"annotations\":{\"kubectl.kubernetes.io/default-container\":\"side\"}},"         \
    "\"spec\":{\"containers\":[{\"name\":\"main\"},{\"name\":\"side\"}]}}"
#define STATUS(code, reason, message)                                                                                  \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":" #code ",\"reason\":\"" reason "\",\"message\":\"" message  \
    "\"}"
#define FREE_CLAIM "{\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"c\",\"resourceVersion\":\"3\"},\"spec\":{}}"
#define HELD_CLAIM                                                                                                     \
    "{\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"c\",\"resourceVersion\":\"4\","                              \
    "\"finalizers\":[\"resource.kubernetes.io/delete-protection\"]},\"spec\":{}}"
#define RESULT(device) "{\"request\":\"r\",\"driver\":\"d\",\"pool\":\"n\",\"device\":\"" device "\"}"
#define ALLOCATION(device)                                                                                             \
    "{\"devices\":{\"results\":[" RESULT(device) "]},\"nodeSelector\":{\"nodeSelectorTerms\":[]}}"
#define CLAIM_WITH(device)                                                                                             \
    "{\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"c\"},\"status\":{\"allocation\":" ALLOCATION(device) "}}"
#define CONSUMERS                                                                                                      \
    "[{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"p-1\"},{\"resource\":\"pods\",\"name\":\"q\",\"uid\":\"q-1\"}]"
#define CLAIM_PATH "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/c"

enum op {
    OP_CREATE,
    OP_GET,
    OP_REMOVE,
    OP_REMOVE_UID,
    OP_RELEASE,
    OP_UNGATE,
    OP_UNGATE_TO,
    OP_CREATE_CLAIM,
    OP_LOGS,
    OP_ALLOCATE,
    OP_BIND,
    OP_GET_UNKNOWN
};

static void call(struct world *world, enum op op)
{
    const struct cluster_ops *ops = world->cluster->ops;
    json_t *object, *consumers;

    switch (op) {
    case OP_CREATE:
        object = json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "v1", "kind", "ConfigMap", "metadata", "namespace",
                           "a", "name", "c");
        ops->create(world->cluster, object, on_done, world);
        json_decref(object);
        return;
    case OP_GET:
        ops->get(world->cluster, "Pod", "a", "p", on_done, world);
        return;
    case OP_GET_UNKNOWN:
        ops->get(world->cluster, "Deployment", "a", "p", on_done, world);
        return;
    case OP_REMOVE:
        ops->remove(world->cluster, "ConfigMap", "a", "c", NULL, on_done, world);
        return;
    case OP_REMOVE_UID:
        ops->remove(world->cluster, "ConfigMap", "a", "c", "u-1", on_done, world);
        return;
    case OP_CREATE_CLAIM:
        object = json_pack("{s:s, s:s, s:{s:s, s:s}, s:{}}", "apiVersion", "resource.k8s.io/v1", "kind",
                           "ResourceClaim", "metadata", "namespace", "a", "name", "c", "spec");
        ops->create(world->cluster, object, on_done, world);
        assert_null(
            json_object_get(json_object_get(object, "metadata"), "finalizers")); /* the caller's stays as it is */
        json_decref(object);
        return;
    case OP_RELEASE:
        ops->release(world->cluster, "a", "c", "u-1", on_done, world);
        return;
    case OP_UNGATE_TO:
        ops->ungate(world->cluster, "a", "p", "n1", on_done, world);
        return;
    case OP_UNGATE:
        ops->ungate(world->cluster, "a", "p", NULL, on_done, world);
        return;
    case OP_LOGS:
        ops->logs(world->cluster, "a", "p", 50, on_done, world);
        return;
    case OP_ALLOCATE:
        object = json_loads(ALLOCATION("gpu-1"), 0, NULL);
        consumers = json_loads(CONSUMERS, 0, NULL);
        ops->allocate(world->cluster, "a", "c", "u-1", object, consumers, on_done, world);
        json_decref(object);
        json_decref(consumers);
        return;
    case OP_BIND:
        ops->bind(world->cluster, "a", "p", "u-1", "n1", on_done, world);
        return;
    }
}

#define CREATE "POST /api/v1/namespaces/a/configmaps\n"
#define GET    "GET /api/v1/namespaces/a/pods/p\n"
#define DELETE "DELETE /api/v1/namespaces/a/configmaps/c\n"
#define PATCH  "PATCH /api/v1/namespaces/a/pods/p\n"
#define LOG    "GET /api/v1/namespaces/a/pods/p/log?tailLines=50&limitBytes=4194304&container="
#define LOOK   "GET " CLAIM_PATH "\n"
#define WRITE  "PUT " CLAIM_PATH "/status\n"
#define BIND   "POST /api/v1/namespaces/a/pods/p/binding\n"
#define HINT   "PATCH /api/v1/namespaces/a/pods/p/status\n"
#define LET_GO "PATCH " CLAIM_PATH "\n"
#define ERASE  "DELETE " CLAIM_PATH "\n"

static const struct call_case {
    const char *name;
    enum op op;
    struct reply replies[REPLIES_MAX];
    const char *log;
    enum err_code code;
    const char *text; /* a part of the words, or NULL */
} call_cases[] = {
    {"create: made", OP_CREATE, {{201, "{}", 0, 0}}, CREATE, ERR_NONE, NULL},
    {"create: exists",
     OP_CREATE,
     {{409, STATUS(409, "AlreadyExists", "it exists"), 0, 0}},
     CREATE,
     ERR_CONFLICT,
     "it exists"},
    {"create: invalid", OP_CREATE, {{422, STATUS(422, "Invalid", "bad"), 0, 0}}, CREATE, ERR_INVALID, "bad"},
    {"create: quota",
     OP_CREATE,
     {{403, STATUS(403, "Forbidden", "exceeded quota: q"), 0, 0}},
     CREATE,
     ERR_DENIED,
     "exceeded quota: q"},
    {"create: no namespace",
     OP_CREATE,
     {{404, STATUS(404, "NotFound", "no namespace"), 0, 0}},
     CREATE,
     ERR_NOT_FOUND,
     "no namespace"},
    {"create: away, and back", OP_CREATE, {{0, "", 0, 0}, {201, "{}", 0, 0}}, CREATE, ERR_NONE, NULL},
    {"create: too busy, and back",
     OP_CREATE,
     {{429, STATUS(429, "TooManyRequests", "busy"), 1000, 0},
      {503, STATUS(503, "ServiceUnavailable", "no"), 0, 0},
      {201, "{}", 0, 0}},
     CREATE CREATE CREATE,
     ERR_NONE,
     NULL},
    {"create: away for long",
     OP_CREATE,
     {{503, STATUS(503, "ServiceUnavailable", "no"), 0, 0}},
     CREATE CREATE CREATE CREATE,
     ERR_UNAVAILABLE,
     "no"},
    {"create: asked to come back much later",
     OP_CREATE,
     {{429, STATUS(429, "TooManyRequests", "busy"), 60000, 0}},
     CREATE,
     ERR_UNAVAILABLE,
     "busy"},
    {"create: the answer is lost", OP_CREATE, {{0, "", 0, true}}, CREATE, ERR_TIMEOUT, "no answer"},
    {"create: nonsense", OP_CREATE, {{200, "<html>", 0, 0}}, CREATE, ERR_REMOTE, "no JSON"},
    {"get: there", OP_GET, {{200, POD, 0, 0}}, GET, ERR_NONE, NULL},
    {"get: not there",
     OP_GET,
     {{404, STATUS(404, "NotFound", "pods p not found"), 0, 0}},
     GET,
     ERR_NOT_FOUND,
     "pods p not found"},
    {"get: a kind that nobody knows", OP_GET_UNKNOWN, {{200, POD, 0, 0}}, "", ERR_INVALID, "Deployment"},
    {"remove: begun", OP_REMOVE, {{200, "{}", 0, 0}}, DELETE, ERR_NONE, NULL},
    {"remove: gone already", OP_REMOVE, {{404, STATUS(404, "NotFound", "no"), 0, 0}}, DELETE, ERR_NONE, NULL},
    {"remove: the name is another's now",
     OP_REMOVE_UID,
     {{409, STATUS(409, "Conflict", "Precondition failed: UID in precondition: u-1, UID in object meta: u-2"), 0, 0}},
     DELETE,
     ERR_NONE,
     NULL},
    {"remove: the name is another's now, in other words",
     OP_REMOVE_UID,
     {{409, STATUS(409, "Conflict", "the UID in the precondition (u-1) does not match the UID in record (u-2)"), 0, 0}},
     DELETE,
     ERR_NONE,
     NULL},
    {"remove: changed meanwhile",
     OP_REMOVE_UID,
     {{409, STATUS(409, "Conflict", "please apply again"), 0, 0}},
     DELETE,
     ERR_CONFLICT,
     NULL},
    {"remove: not allowed",
     OP_REMOVE,
     {{403, STATUS(403, "Forbidden", "cannot delete"), 0, 0}},
     DELETE,
     ERR_DENIED,
     "cannot delete"},
    {"ungate: open", OP_UNGATE, {{200, POD, 0, 0}}, PATCH, ERR_NONE, NULL},
    {"ungate: to a node", OP_UNGATE_TO, {{200, POD, 0, 0}, {200, POD, 0, 0}}, HINT PATCH, ERR_NONE, NULL},
    {"ungate: to a node, without the right to say so",
     OP_UNGATE_TO,
     {{403, STATUS(403, "Forbidden", "pods/status"), 0, 0}, {200, POD, 0, 0}},
     HINT PATCH,
     ERR_NONE,
     NULL},
    {"ungate: to a node, too busy at first",
     OP_UNGATE_TO,
     {{429, STATUS(429, "TooManyRequests", "busy"), 0, 0}, {200, POD, 0, 0}, {200, POD, 0, 0}},
     HINT HINT PATCH,
     ERR_NONE,
     NULL},
    {"ungate: to a node, gone",
     OP_UNGATE_TO,
     {{404, STATUS(404, "NotFound", "no"), 0, 0}, {404, STATUS(404, "NotFound", "no"), 0, 0}},
     HINT PATCH,
     ERR_NOT_FOUND,
     NULL},
    {"release: let go, then deleted",
     OP_RELEASE,
     {{200, FREE_CLAIM, 0, 0}, {200, "{}", 0, 0}},
     LET_GO ERASE,
     ERR_NONE,
     NULL},
    {"release: without the right to let go",
     OP_RELEASE,
     {{403, STATUS(403, "Forbidden", "patch"), 0, 0}, {200, "{}", 0, 0}},
     LET_GO ERASE,
     ERR_NONE,
     NULL},
    {"release: gone already", OP_RELEASE, {{404, STATUS(404, "NotFound", "no"), 0, 0}}, LET_GO, ERR_NONE, NULL},
    {"release: the name is another's now",
     OP_RELEASE,
     {{409, STATUS(409, "Conflict", "Precondition failed: UID in precondition: u-1, UID in object meta: u-2"), 0, 0}},
     LET_GO,
     ERR_NONE,
     NULL},
    {"release: not allowed at all",
     OP_RELEASE,
     {{403, STATUS(403, "Forbidden", "patch"), 0, 0}, {403, STATUS(403, "Forbidden", "cannot delete"), 0, 0}},
     LET_GO ERASE,
     ERR_DENIED,
     "cannot delete"},
    {"ungate: gone", OP_UNGATE, {{404, STATUS(404, "NotFound", "no"), 0, 0}}, PATCH, ERR_NOT_FOUND, NULL},
    {"logs: the first container",
     OP_LOGS,
     {{200, POD, 0, 0}, {200, "hello\n", 0, 0}},
     GET LOG "main\n",
     ERR_NONE,
     NULL},
    {"logs: the chosen container",
     OP_LOGS,
     {{200, POD_CHOSEN, 0, 0}, {200, "hello\n", 0, 0}},
     GET LOG "side\n",
     ERR_NONE,
     NULL},
    {"logs: not started",
     OP_LOGS,
     {{200, POD, 0, 0}, {400, STATUS(400, "BadRequest", "waiting to start"), 0, 0}},
     GET LOG "main\n",
     ERR_UNAVAILABLE,
     "waiting to start"},
    {"logs: no pod", OP_LOGS, {{404, STATUS(404, "NotFound", "no"), 0, 0}}, GET, ERR_NOT_FOUND, NULL},
    {"allocate: written", OP_ALLOCATE, {{200, CLAIM_WITH("gpu-1"), 0, 0}}, WRITE, ERR_NONE, NULL},
    {"allocate: busy, then written",
     OP_ALLOCATE,
     {{429, STATUS(429, "TooManyRequests", "later"), 0, 0}, {200, CLAIM_WITH("gpu-1"), 0, 0}},
     WRITE WRITE,
     ERR_NONE,
     NULL},
    {"allocate: the answer is lost", OP_ALLOCATE, {{0, NULL, 0, true}}, WRITE, ERR_TIMEOUT, NULL},
    {"allocate: so already",
     OP_ALLOCATE,
     {{422, STATUS(422, "Invalid", "field is immutable"), 0, 0}, {200, CLAIM_WITH("gpu-1"), 0, 0}},
     WRITE LOOK,
     ERR_NONE,
     NULL},
    {"allocate: otherwise already",
     OP_ALLOCATE,
     {{422, STATUS(422, "Invalid", "field is immutable"), 0, 0}, {200, CLAIM_WITH("gpu-2"), 0, 0}},
     WRITE LOOK,
     ERR_CONFLICT,
     "otherwise"},
    {"allocate: being deleted",
     OP_ALLOCATE,
     {{422, STATUS(422, "Invalid", "is being deleted"), 0, 0},
      {200, "{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}", 0, 0}},
     WRITE LOOK,
     ERR_CONFLICT,
     "deleted"},
    {"allocate: refused for what it is",
     OP_ALLOCATE,
     {{422, STATUS(422, "Invalid", "no such request"), 0, 0}, {200, FREE_CLAIM, 0, 0}},
     WRITE LOOK,
     ERR_INVALID,
     "no such request"},
    {"allocate: gone before it is looked at",
     OP_ALLOCATE,
     {{422, STATUS(422, "Invalid", "field is immutable"), 0, 0}, {404, STATUS(404, "NotFound", "no"), 0, 0}},
     WRITE LOOK,
     ERR_NOT_FOUND,
     NULL},
    {"allocate: others change it meanwhile",
     OP_ALLOCATE,
     {{409, STATUS(409, "Conflict", "modified"), 0, 0}, {200, CLAIM_WITH("gpu-1"), 0, 0}},
     WRITE WRITE,
     ERR_NONE,
     NULL},
    {"allocate: the name is another's now",
     OP_ALLOCATE,
     {{409, STATUS(409, "Conflict", "Precondition failed: UID in precondition: u-1, UID in object meta: u-2"), 0, 0}},
     WRITE,
     ERR_CONFLICT,
     "u-2"},
    {"allocate: not allowed",
     OP_ALLOCATE,
     {{403, STATUS(403, "Forbidden", "cannot update resourceclaims/status"), 0, 0}},
     WRITE,
     ERR_DENIED,
     "cannot update"},
    {"allocate: not allowed, by validation",
     OP_ALLOCATE,
     {{422, STATUS(422, "Invalid", "requires resource resourceclaims/binding"), 0, 0}},
     WRITE,
     ERR_DENIED,
     "resourceclaims/binding"},
    {"allocate: gone", OP_ALLOCATE, {{404, STATUS(404, "NotFound", "no"), 0, 0}}, WRITE, ERR_NOT_FOUND, NULL},
    {"bind: bound", OP_BIND, {{201, STATUS(201, "", ""), 0, 0}}, BIND, ERR_NONE, NULL},
    {"bind: bound already",
     OP_BIND,
     {{409, STATUS(409, "Conflict", "pod p is already assigned to node \\\"n1\\\""), 0, 0}},
     BIND,
     ERR_CONFLICT,
     "already assigned"},
    {"bind: the answer is lost", OP_BIND, {{0, NULL, 0, true}}, BIND, ERR_TIMEOUT, NULL},
    {"bind: not allowed",
     OP_BIND,
     {{403, STATUS(403, "Forbidden", "cannot create pods/binding"), 0, 0}},
     BIND,
     ERR_DENIED,
     "pods/binding"},
};

static void test_kube__call(void **state)
{
    const struct call_case *c = *state;
    void *made;
    struct world *world;

    world_begin(&made);
    world = made;
    world->replies = c->replies;
    start(world);
    call(world, c->op);
    assert_int_equal(world->n_done, 0); /* never from inside */
    run(world, 60000);
    assert_int_equal(world->n_done, 1);
    if (strcmp(c->name, "create: away, and back") != 0)
        assert_string_equal(buf_str(&world->server.log), c->log);
    assert_int_equal(world->code, c->code);
    if (c->text && !strstr(world->text, c->text))
        fail_msg("\"%s\" is not in \"%s\"", c->text, world->text);
    world_end(&made);
}

static json_t *sent(struct world *world, size_t i)
{
    return json_array_get(world->bodies, i);
}

static bool has_finalizer(const json_t *claim)
{
    const json_t *finalizers = json_object_get(json_object_get(claim, "metadata"), "finalizers");
    const char *first = json_string_value(json_array_get(finalizers, 0));

    return json_array_size(finalizers) == 1 && strcmp(first, "resource.kubernetes.io/delete-protection") == 0;
}

static void test_kube__a_claim_is_born_with_the_schedulers_finalizer(void **state)
{
    static const struct reply replies[2] = {{201, "{}", 0, false}};
    struct world *world = *state;

    world->replies = replies;
    start(world);
    call(world, OP_CREATE_CLAIM);
    run(world, 100);
    assert_true(has_finalizer(sent(world, 0)));
}

static void test_kube__a_release_takes_off_that_finalizer_alone(void **state)
{
    static const struct reply replies[3] = {{200, FREE_CLAIM, 0, false}, {200, "{}", 0, false}};
    struct world *world = *state;
    json_t *wanted = json_pack("{s:{s:[s], s:s}}", "metadata", "$deleteFromPrimitiveList/finalizers",
                               "resource.kubernetes.io/delete-protection", "uid", "u-1");

    world->replies = replies;
    start(world);
    call(world, OP_RELEASE);
    run(world, 100);
    assert_true(json_equal(sent(world, 0), wanted));
    assert_string_equal(json_string_value(json_object_get(json_object_get(sent(world, 1), "preconditions"), "uid")),
                        "u-1");
    json_decref(wanted);
}

static void test_kube__a_hint_that_was_refused_is_not_given_again(void **state)
{
    static const struct reply replies[4] = {
        {403, STATUS(403, "Forbidden", "pods/status"), 0, false}, {200, POD, 0, false}, {200, POD, 0, false}};
    struct world *world = *state;

    world->replies = replies;
    start(world);
    call(world, OP_UNGATE_TO);
    run(world, 100);
    call(world, OP_UNGATE_TO);
    run(world, 100);
    assert_string_equal(buf_str(&world->server.log), HINT PATCH PATCH);
}

#define NO_RIGHT                                                                                                       \
    "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":\"podgroups is forbidden: User a "         \
    "cannot\",\"details\":{\"group\":\"scheduling.k8s.io\",\"kind\":\"podgroups\"}}"

static void create_pod_group(struct world *world)
{
    json_t *group = json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "scheduling.k8s.io/v1beta1", "kind", "PodGroup",
                              "metadata", "namespace", "a", "name", "g");

    world->cluster->ops->create(world->cluster, group, on_done, world);
    json_decref(group);
    run(world, 100);
    assert_int_equal(world->code, ERR_DENIED);
}

static bool is_denied(struct world *world)
{
    json_t *described = world->cluster->ops->describe(world->cluster);
    bool is = json_is_true(json_object_get(described, "podGroupDenied"));

    json_decref(described);
    return is;
}

/* Who reads the description hears that it is another one now; a new stream looks anew. */
static void test_kube__without_the_right_to_pod_groups_it_says_so_once(void **state)
{
    static const struct reply replies[] = {{403, NO_RIGHT, 0, 0}, {0, NULL, 0, 0}};
    struct error gone = {.code = ERR_UNAVAILABLE, .text = "gone"};
    struct world *world = *state;
    struct reflector *first;

    world->replies = replies;
    start(world);
    create_pod_group(world);
    assert_true(is_denied(world));
    create_pod_group(world);
    assert_string_equal(buf_str(&world->told), "began began ");
    first = fake_streams_first();
    first->options.stale(first->options.ctx, &gone);
    run(world, 5000);
    assert_false(is_denied(world));
}

static void test_kube__a_quota_of_pod_groups_is_no_missing_right(void **state)
{
    static const struct reply replies[] = {{403, STATUS(403, "Forbidden", "exceeded quota: q"), 0, 0}, {0, NULL, 0, 0}};
    struct world *world = *state;

    world->replies = replies;
    start(world);
    create_pod_group(world);
    assert_false(is_denied(world));
    assert_string_equal(buf_str(&world->told), "began ");
}

static void test_kube__deletion_is_whole_and_of_that_object(void **state)
{
    static const struct reply replies[2] = {{200, "{}", 0, false}};
    struct world *world = *state;
    json_t *wanted =
        json_pack("{s:s, s:s, s:s, s:i, s:{s:s}}", "kind", "DeleteOptions", "apiVersion", "v1", "propagationPolicy",
                  "Background", "gracePeriodSeconds", 0, "preconditions", "uid", "u-2");

    world->replies = replies;
    start(world);
    call(world, OP_REMOVE_UID);
    run(world, 100);
    assert_string_equal(json_string_value(json_object_get(sent(world, 0), "propagationPolicy")), "Foreground");
    assert_string_equal(json_string_value(json_object_get(json_object_get(sent(world, 0), "preconditions"), "uid")),
                        "u-1");
    call(world, OP_REMOVE);
    run(world, 100);
    assert_null(json_object_get(sent(world, 1), "preconditions"));
    world->cluster->ops->remove(world->cluster, "Pod", "a", "p", NULL, on_done, world); /* owns nothing */
    run(world, 100);
    assert_string_equal(json_string_value(json_object_get(sent(world, 2), "propagationPolicy")), "Background");
    assert_null(json_object_get(sent(world, 2), "gracePeriodSeconds"));
    world->cluster->ops->erase(world->cluster, "a", "p", "u-2", on_done, world);
    run(world, 100);
    assert_true(json_equal(sent(world, 3), wanted));
    json_decref(wanted);
}

static void test_kube__ungating_removes_all_gates(void **state)
{
    static const struct reply replies[2] = {{200, POD, 0, false}};
    struct world *world = *state;
    json_t *wanted = json_pack("{s:{s:n}}", "spec", "schedulingGates");

    world->replies = replies;
    start(world);
    call(world, OP_UNGATE);
    run(world, 100);
    assert_true(json_equal(sent(world, 0), wanted));
    json_decref(wanted);
}

static void test_kube__an_allocation_has_what_kube_scheduler_demands_and_nothing_else(void **state)
{
    static const struct reply replies[2] = {{200, CLAIM_WITH("gpu-1"), 0, false}};
    struct world *world = *state;
    json_t *allocation = json_loads(ALLOCATION("gpu-1"), 0, NULL), *wanted;

    json_object_set_new(allocation, "allocationTimestamp", json_string("2026-01-01T00:00:00Z"));
    assert_non_null(json_object_get(allocation, "nodeSelector"));
    wanted = json_pack("{s:s, s:s, s:{s:s, s:s, s:s}, s:{s:o, s:o}}", "apiVersion", "resource.k8s.io/v1", "kind",
                       "ResourceClaim", "metadata", "namespace", "a", "name", "c", "uid", "u-1", "status", "allocation",
                       allocation, "reservedFor", json_loads(CONSUMERS, 0, NULL));
    world->replies = replies;
    start(world);
    call(world, OP_ALLOCATE);
    run(world, 100);
    assert_true(json_equal(sent(world, 0), wanted));
    json_decref(wanted);
}

static void test_kube__a_binding_is_of_that_pod_to_that_node(void **state)
{
    static const struct reply replies[2] = {{201, STATUS(201, "", ""), 0, false}};
    struct world *world = *state;
    json_t *wanted =
        json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s}}", "apiVersion", "v1", "kind", "Binding", "metadata",
                  "name", "p", "uid", "u-1", "target", "apiVersion", "v1", "kind", "Node", "name", "n1");

    world->replies = replies;
    start(world);
    call(world, OP_BIND);
    run(world, 100);
    assert_true(json_equal(sent(world, 0), wanted));
    json_decref(wanted);
}

static void test_kube__logs_are_text_whatever_the_bytes(void **state)
{
    static const struct reply replies[3] = {{200, POD, 0, false}, {200, "a\xff\xc3\xa4\n", 0, false}};
    struct world *world = *state;

    world->replies = replies;
    start(world);
    call(world, OP_LOGS);
    run(world, 100);
    assert_string_equal(json_string_value(world->object), "a\xef\xbf\xbd\xc3\xa4\n");
}

static void test_kube__claims_go_in_the_servers_version(void **state)
{
    static const struct reply replies[2] = {{201, "{}", 0, false}};
    struct world *world = *state;
    json_t *claim = json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:{s:[{s:s, s:{s:s}}]}}}", "apiVersion",
                              "resource.k8s.io/v1", "kind", "ResourceClaim", "metadata", "namespace", "a", "name", "c",
                              "spec", "devices", "requests", "name", "r", "exactly", "deviceClassName", "gpu");
    json_t *flat = json_pack("{s:s, s:s}", "name", "r", "deviceClassName", "gpu");
    json_t *requests;

    fake_streams.dra = "v1beta1";
    world->replies = replies;
    start(world);
    world->cluster->ops->create(world->cluster, claim, on_done, world);
    run(world, 100);
    assert_string_equal(buf_str(&world->server.log),
                        "POST /apis/resource.k8s.io/v1beta1/namespaces/a/resourceclaims\n");
    assert_string_equal(json_string_value(json_object_get(sent(world, 0), "apiVersion")), "resource.k8s.io/v1beta1");
    requests = json_object_get(json_object_get(json_object_get(sent(world, 0), "spec"), "devices"), "requests");
    assert_true(json_equal(json_array_get(requests, 0), flat));
    json_decref(flat);
    json_decref(claim);
}

static void test_kube__who_does_not_lead_writes_nothing(void **state)
{
    static const struct reply replies[2] = {{200, POD, 0, false}};
    struct world *world = *state;

    world->replies = replies;
    world->may_not_write = true;
    start(world);
    call(world, OP_CREATE);
    run(world, 60000);
    assert_int_equal(world->n_done, 1);
    assert_int_equal(world->code, ERR_UNAVAILABLE);
    assert_string_equal(buf_str(&world->server.log), "");
    call(world, OP_GET);
    run(world, 100);
    assert_int_equal(world->code, ERR_NONE);
    json_decref(world->object);
    world->object = NULL;
}

static void test_kube__a_retry_stops_when_the_lead_is_lost(void **state)
{
    static const struct reply replies[2] = {{503, STATUS(503, "ServiceUnavailable", "no"), 0, false}};
    struct world *world = *state;

    world->replies = replies;
    start(world);
    call(world, OP_CREATE);
    run(world, 10);
    world->may_not_write = true;
    run(world, 60000);
    assert_int_equal(world->n_done, 1);
    assert_string_equal(buf_str(&world->server.log), CREATE);
}

static void test_kube__before_it_is_known_nothing_is_carried_out(void **state)
{
    struct world *world = *state;

    fake_streams.is_away = true;
    start(world);
    call(world, OP_CREATE);
    assert_int_equal(world->n_done, 0);
    run(world, 10);
    assert_int_equal(world->n_done, 1);
    assert_int_equal(world->code, ERR_UNAVAILABLE);
}

static void test_kube__freed_it_calls_nobody_back(void **state)
{
    static const struct reply replies[2] = {{503, STATUS(503, "ServiceUnavailable", "no"), 0, false}};
    struct world *world = *state;

    world->replies = replies;
    start(world);
    call(world, OP_CREATE); /* waits for its next try when the world ends */
    run(world, 20);
    call(world, OP_GET); /* waits for its answer */
    assert_int_equal(world->n_done, 0);
}

#define FACT(name) cmocka_unit_test_setup_teardown(test_kube__##name, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FACT(is_synced_when_all_streams_are),
        FACT(a_stale_stream_begins_anew),
        FACT(a_server_that_is_away_is_told_once_and_asked_rarely),
        FACT(without_devices_there_is_nothing_to_do),
        FACT(tells_what_it_is),
        FACT(a_claim_is_born_with_the_schedulers_finalizer),
        FACT(a_release_takes_off_that_finalizer_alone),
        FACT(a_hint_that_was_refused_is_not_given_again),
        FACT(without_the_right_to_pod_groups_it_says_so_once),
        FACT(a_quota_of_pod_groups_is_no_missing_right),
        FACT(deletion_is_whole_and_of_that_object),
        FACT(ungating_removes_all_gates),
        FACT(an_allocation_has_what_kube_scheduler_demands_and_nothing_else),
        FACT(a_binding_is_of_that_pod_to_that_node),
        FACT(logs_are_text_whatever_the_bytes),
        FACT(claims_go_in_the_servers_version),
        FACT(who_does_not_lead_writes_nothing),
        FACT(a_retry_stops_when_the_lead_is_lost),
        FACT(before_it_is_known_nothing_is_carried_out),
        FACT(freed_it_calls_nobody_back),
    };
    int failed = RUN_TABLE(test_kube__call, call_cases);

    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
