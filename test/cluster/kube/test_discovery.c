/* Which Kubernetes is it: answers of servers of several releases, good and bad, and what is made of them. */
#include "queued/cluster/kube/discovery.h"
#include "test/cluster/kube/fake_api.h"
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "allocator/features.h"

#include "allocator/base/banned.h"

struct answer {
    const char *path; /* NULL ends the list; what is not in it is a 404 */
    int status;
    const char *body;
};

struct world {
    struct clock *clock;
    struct http http;
    const struct answer *answers;
    bool is_over;
    struct error err;
    struct discovery *found;
};

static void on_request(void *ctx, struct http_call *call)
{
    struct world *w = ctx;
    const struct answer *a = w->answers;

    while (a->path && strcmp(a->path, call->path) != 0)
        a++;
    if (!a->path)
        fake_refuse(call, 404, "404 page not found", -1);
    else if (a->status == 0)
        fake_break(call, ERR_UNAVAILABLE);
    else if (a->status != 200)
        fake_refuse(call, a->status, a->body, -1);
    else if (fake_send(call, a->body, strlen(a->body)))
        fake_end(call);
}

static void on_found(void *ctx, const struct error *err, struct discovery *found)
{
    struct world *w = ctx;

    assert_false(w->is_over);
    w->is_over = true;
    if (err)
        w->err = *err;
    w->found = found;
}

static void run(struct world *w, const struct answer *answers)
{
    w->clock = clock_virtual_new(1000);
    fake_init(&w->http, w->clock, 5);
    w->http.arrived = on_request;
    w->http.ctx = w;
    w->http.logs_paths = true;
    w->answers = answers;
    discover(&w->http, on_found, w);
    assert_int_equal(w->is_over, 0); /* nothing from inside discover() */
    clock_advance(w->clock, 2000, NULL, NULL);
    assert_int_equal(w->is_over, 1);
}

static void end(struct world *w)
{
    discovery_free(w->found);
    fake_release(&w->http);
    clock_free(w->clock);
}

#define VERSION(minor)                                                                                                 \
    {                                                                                                                  \
        "/version", 200, "{\"major\":\"1\",\"minor\":\"" minor "\",\"gitVersion\":\"v1." minor ".2\"}"                 \
    }
#define GROUP(name, versions) "{\"name\":\"" name "\",\"versions\":[" versions "]}"
#define AT(version)           "{\"version\":\"" version "\"}"
#define GROUPS(groups)                                                                                                 \
    {                                                                                                                  \
        "/apis", 200, "{\"kind\":\"APIGroupList\",\"groups\":[" groups "]}"                                            \
    }
#define RES(name) "{\"name\":\"" name "\"}"
#define RESOURCES(path, names)                                                                                         \
    {                                                                                                                  \
        "/apis/" path, 200, "{\"kind\":\"APIResourceList\",\"resources\":[" names "]}"                                 \
    }
#define DRA_NAMES                                                                                                      \
    RES("deviceclasses") "," RES("resourceclaims") "," RES("resourceclaims/status") "," RES("resourceslices")
#define RULES          "," RES("devicetaintrules")
#define GATE(name, on) "kubernetes_feature_enabled{name=\"" name "\",stage=\"BETA\"} " on "\n"
#define NOT_OURS       "# HELP kubernetes_feature_enabled x\nother{name=\"DRADeviceTaints\"} 0\n" GATE("Whatever", "1")
#define PAD20          "xxxxxxxxxxxxxxxxxxxx"
#define PAD200         PAD20 PAD20 PAD20 PAD20 PAD20 PAD20 PAD20 PAD20 PAD20 PAD20
#define LONG_LINE      "kubernetes_feature_enabled{name=\"DRADeviceTaints\"," PAD200 PAD200 PAD200 "} 0\n"

static const struct discovery_case {
    const char *name;
    struct answer answers[8];
    int minor; /* 0: it fails */
    const char *features;
    const char *claims, *rules, *groups; /* versions of ResourceClaim, DeviceTaintRule, PodGroup; NULL: none */
} cases[] = {
    {"1.37 as it is installed",
     {{"/version", 200,
       "{\"major\":\"1\",\"minor\":\"37\",\"emulationMajor\":\"1\",\"emulationMinor\":\"37\","
       "\"minCompatibilityMinor\":\"36\",\"gitVersion\":\"v1.37.2\"}"},
      GROUPS(GROUP("apps", AT("v1")) "," GROUP("resource.k8s.io", AT("v1"))),
      RESOURCES("resource.k8s.io/v1", DRA_NAMES RULES),
      {"/metrics", 200, NOT_OURS GATE("DRADeviceTaints", "1") GATE("DRAFractionalCapacityRange", "0")}},
     37,
     "-DRAFractionalCapacityRange",
     "v1",
     "v1",
     NULL},
    {"1.37 whose metrics we may not read",
     {{"/version", 200,
       "{\"major\":\"1\",\"minor\":\"37\",\"minCompatibilityMinor\":\"36\",\"gitVersion\":\"v1.37.2\"}"},
      GROUPS(GROUP("resource.k8s.io", AT("v1"))),
      RESOURCES("resource.k8s.io/v1", DRA_NAMES RULES),
      {"/metrics", 403, "{}"}},
     37,
     "-DRAFractionalCapacityRange",
     "v1",
     "v1",
     NULL},
    {"gates that differ from what the release has",
     {VERSION("37"),
      GROUPS(GROUP("resource.k8s.io", AT("v1"))),
      RESOURCES("resource.k8s.io/v1", DRA_NAMES RULES),
      {"/metrics", 200,
       GATE("DRAListTypeAttributes", "1") GATE("DRAPartitionableDevices", "0") GATE("DRADeviceTaints", "1") LONG_LINE}},
     37,
     "-DRAPartitionableDevices,+DRAListTypeAttributes",
     "v1",
     "v1",
     NULL},
    {"no rules without their API, whatever the gate",
     {VERSION("37"),
      GROUPS(GROUP("resource.k8s.io", AT("v1"))),
      RESOURCES("resource.k8s.io/v1", DRA_NAMES),
      {"/metrics", 200, GATE("DRADeviceTaintRules", "1")}},
     37,
     "-DRADeviceTaintRules",
     "v1",
     NULL,
     NULL},
    {"the best version of each kind",
     {VERSION("36"), GROUPS(GROUP("resource.k8s.io", AT("v1beta1") "," AT("v1") "," AT("v1beta2") "," AT("v9"))),
      RESOURCES("resource.k8s.io/v1", DRA_NAMES), RESOURCES("resource.k8s.io/v1beta2", DRA_NAMES RULES),
      RESOURCES("resource.k8s.io/v1beta1", DRA_NAMES)},
     36,
     "+DRADeviceTaintRules",
     "v1",
     "v1beta2",
     NULL},
    {"1.34 with an old API, of a provider",
     {{"/version", 200, "{\"major\":\"1\",\"minor\":\"34+\",\"gitVersion\":\"v1.34.1-gke.7\"}"},
      GROUPS(GROUP("resource.k8s.io", AT("v1beta1"))),
      RESOURCES("resource.k8s.io/v1beta1", DRA_NAMES)},
     34,
     "",
     "v1beta1",
     NULL,
     NULL},
    {"PodGroup where it is served",
     {VERSION("36"), GROUPS(GROUP("scheduling.k8s.io", AT("v1") "," AT("v1beta1"))),
      RESOURCES("scheduling.k8s.io/v1", RES("priorityclasses")),
      RESOURCES("scheduling.k8s.io/v1beta1", RES("podgroups") "," RES("podgroups/status"))},
     36,
     "",
     NULL,
     NULL,
     "v1beta1"},
    {"a group version that went away meanwhile",
     {VERSION("36"), GROUPS(GROUP("resource.k8s.io", AT("v1") "," AT("v1beta1"))),
      RESOURCES("resource.k8s.io/v1beta1", DRA_NAMES)},
     36,
     "",
     "v1beta1",
     NULL,
     NULL},
    {"a server that behaves as an older one",
     {{"/version", 200, "{\"major\":\"1\",\"minor\":\"37\",\"emulationMinor\":\"35\",\"gitVersion\":\"v1.37.2\"}"},
      GROUPS("")},
     35,
     "",
     NULL,
     NULL,
     NULL},
    {"a version that only git knows",
     {{"/version", 200, "{\"minor\":\"\",\"gitVersion\":\"v1.36.0\"}"}, GROUPS("")},
     36,
     "",
     NULL,
     NULL,
     NULL},
    {"metrics that break off", {VERSION("36"), GROUPS(""), {"/metrics", 0, ""}}, 36, "", NULL, NULL, NULL},
    {"another Kubernetes", {{"/version", 200, "{\"major\":\"2\",\"minor\":\"1\"}"}}, 0, NULL, NULL, NULL, NULL},
    {"a version that is none", {{"/version", 200, "{\"minor\":\"99999999999999999999\"}"}}, 0, NULL, NULL, NULL, NULL},
    {"a version that is no JSON", {{"/version", 200, "<html>"}}, 0, NULL, NULL, NULL, NULL},
    {"a version that is an array", {{"/version", 200, "[]"}}, 0, NULL, NULL, NULL, NULL},
    {"not reached", {{"/version", 0, ""}}, 0, NULL, NULL, NULL, NULL},
    {"groups that are none", {VERSION("36"), {"/apis", 200, "{\"groups\":7}"}}, 0, NULL, NULL, NULL, NULL},
    {"groups of garbage",
     {VERSION("36"), GROUPS("7,{\"name\":\"resource.k8s.io\",\"versions\":[7,{}]},{\"versions\":{}}")},
     36,
     "",
     NULL,
     NULL,
     NULL},
    {"resources that fail",
     {VERSION("36"), GROUPS(GROUP("resource.k8s.io", AT("v1"))), {"/apis/resource.k8s.io/v1", 503, ""}},
     0,
     NULL,
     NULL,
     NULL,
     NULL},
    {"resources of garbage",
     {VERSION("36"),
      GROUPS(GROUP("resource.k8s.io", AT("v1"))),
      {"/apis/resource.k8s.io/v1", 200, "{\"resources\":[{\"name\":7},8,{\"name\":\"resourceclaims\"}]}"}},
     36,
     "",
     "v1",
     NULL,
     NULL},
};

static void same(const char *got, const char *want)
{
    assert_string_equal(got ? got : "-", want ? want : "-");
}

static void test_discovery__case(void **state)
{
    const struct discovery_case *c = *state;
    struct world w = {0};

    run(&w, c->answers);
    assert_int_equal(w.found != NULL, c->minor != 0);
    assert_int_equal(w.err.code == ERR_NONE, c->minor != 0);
    if (w.found) {
        struct features features = features_default(c->minor);

        assert_int_equal(discovery_minor(w.found), c->minor);
        assert_string_equal(discovery_features(w.found), c->features);
        assert_int_equal(features_change(&features, discovery_features(w.found), NULL), 0);
        same(discovery_version_of(w.found, kind_find("ResourceClaim")), c->claims);
        same(discovery_version_of(w.found, kind_find("DeviceTaintRule")), c->rules);
        same(discovery_version_of(w.found, kind_find("PodGroup")), c->groups);
        same(discovery_version_of(w.found, kind_find("Pod")), "v1");
    }
    end(&w);
}

static void test_discovery__says_what_failed(void **state)
{
    struct world w = {0};

    (void)state;
    run(&w, (const struct answer[]){
                VERSION("36"), {"/apis", 403, "{\"kind\":\"Status\",\"message\":\"forbidden: no\"}"}, {NULL, 0, NULL}});
    assert_int_equal(w.err.code, ERR_DENIED);
    assert_string_equal(w.err.text, "/apis: 403 forbidden: no");
    end(&w);
}

static void test_discovery__cancelled(void **state)
{
    struct world w = {0};
    struct discovery_call *call;

    (void)state;
    w.clock = clock_virtual_new(1000);
    fake_init(&w.http, w.clock, 5);
    call = discover(&w.http, on_found, &w);
    discovery_cancel(call);
    assert_null(w.http.calls);
    clock_advance(w.clock, 2000, NULL, NULL);
    assert_int_equal(w.is_over, 0);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_discovery__says_what_failed),
        cmocka_unit_test(test_discovery__cancelled),
    };
    int failed = RUN_TABLE(test_discovery__case, cases);

    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
