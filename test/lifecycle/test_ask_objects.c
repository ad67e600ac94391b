/* What asks an autoscaler for nodes: the exact objects of a job. */
#include "queued/lifecycle/ask_objects.h"
#include "test/support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "queued/lifecycle/blueprint.h"

#include "allocator/base/banned.h"

#define POD(more)                                                                                                      \
    "\"template\":{\"spec\":{" more                                                                                    \
    "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]}}"
#define CLAIMS "\"resourceClaims\":[{\"name\":\"g\",\"resourceClaimTemplateName\":\"t\"}],"
#define TEMPLATE(version, request)                                                                                     \
    "\"claimTemplates\":[{\"apiVersion\":\"resource.k8s.io/" version                                                   \
    "\",\"kind\":\"ResourceClaimTemplate\",\"metadata\":{\"name\":\"t\"},\"spec\":{\"spec\":{\"devices\":{"            \
    "\"requests\":[" request "]}}}}],"
#define META(name)                                                                                                     \
    "\"metadata\":{\"name\":\"" name                                                                                   \
    "\",\"namespace\":\"n\",\"labels\":{\"queue.dra/ask\":\"3\",\"queue.dra/job\":\"7\",\"queue.dra/server\":\"s\"}}"
#define ANCHOR "{\"apiVersion\":\"v1\",\"data\":{\"job\":\"j\"},\"kind\":\"ConfigMap\"," META("j-7-ask-3") "}"
#define POD_TEMPLATE(group, more)                                                                                      \
    "{\"apiVersion\":\"v1\",\"kind\":\"PodTemplate\"," META(                                                           \
        "j-7-ask-3-" group) ",\"template\":{\"spec\":{"                                                                \
                            "\"containers\":[{\"image\":\"i\",\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":"    \
                            "\"2\"}}}]," more "\"restartPolicy\":\"Never\"}}}"
#define REQUEST(sets, more)                                                                                            \
    "{\"apiVersion\":\"autoscaling.x-k8s.io/v1\",\"kind\":\"ProvisioningRequest\"," META(                              \
        "j-7-ask-3") ",\"spec\":{" more "\"podSets\":[" sets "],\"provisioningClassName\":\"c.x\"}}"
#define SET(n, group) "{\"count\":" n ",\"podTemplateRef\":{\"name\":\"j-7-ask-3-" group "\"}}"

static const struct objects_case {
    const char *name, *spec, *parameters, *want;
} objects_cases[] = {
    {"a group without claims", "\"groups\":[{\"name\":\"w\",\"replicas\":2," POD("") "}]", "",
     "[" ANCHOR "," POD_TEMPLATE("w", "") "," REQUEST(SET("2", "w"), "") "]"},
    {"of an elastic group the least that may start",
     "\"groups\":[{\"name\":\"w\",\"replicas\":8,\"minReplicas\":3," POD("") "}]", "",
     "[" ANCHOR "," POD_TEMPLATE("w", "") "," REQUEST(SET("3", "w"), "") "]"},
    {"several groups",
     "\"groups\":[{\"name\":\"a\",\"replicas\":1," POD("") "},{\"name\":\"b\",\"replicas\":4," POD("") "}]", "",
     "[" ANCHOR
     "," POD_TEMPLATE("a", "") "," POD_TEMPLATE("b", "") "," REQUEST(SET("1", "a") "," SET("4", "b"), "") "]"},
    {"a claim of each member",
     TEMPLATE("v1", "{\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"k\"}}") "\"groups\":[{\"name\":\"w\","
                                                                                "\"replicas\":2," POD(CLAIMS) "}]",
     "",
     "[" ANCHOR ",{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceClaimTemplate\"," META(
         "j-7-ask-3-w-g") ",\"spec\":{\"spec\":{\"devices\":{\"requests\":[{\"exactly\":{\"deviceClassName\":\"k\"},"
                          "\"name\":\"r\"}]}}}}," POD_TEMPLATE("w", "\"resourceClaims\":[{\"name\":\"g\","
                                                                    "\"resourceClaimTemplateName\":\"j-7-ask-3-w-"
                                                                    "g\"}],") "," REQUEST(SET("2", "w"), "") "]"},
    {"a claim in the form of v1beta1 is asked for as v1",
     TEMPLATE("v1beta1", "{\"name\":\"r\",\"deviceClassName\":\"k\"}") "\"groups\":[{\"name\":\"w\","
                                                                       "\"replicas\":2," POD(CLAIMS) "}]",
     "",
     "[" ANCHOR ",{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceClaimTemplate\"," META(
         "j-7-ask-3-w-g") ",\"spec\":{\"spec\":{\"devices\":{\"requests\":[{\"exactly\":{\"deviceClassName\":\"k\"},"
                          "\"name\":\"r\"}]}}}}," POD_TEMPLATE("w", "\"resourceClaims\":[{\"name\":\"g\","
                                                                    "\"resourceClaimTemplateName\":\"j-7-ask-3-w-"
                                                                    "g\"}],") "," REQUEST(SET("2", "w"), "") "]"},
    {"parameters of the class", "\"groups\":[{\"name\":\"w\",\"replicas\":1," POD("") "}]", "b=2, a=x=y",
     "[" ANCHOR
     "," POD_TEMPLATE("w", "") "," REQUEST(SET("1", "w"), "\"parameters\":{\"a\":\"x=y\",\"b\":\"2\"},") "]"},
};

static struct blueprint *blueprint_of(const char *spec)
{
    struct blueprint *blueprint;
    struct error err = {0};
    BUF text = {0};
    json_t *gangjob;

    buf_addf(&text,
             "{\"apiVersion\":\"queue.dra/v1\",\"kind\":\"GangJob\",\"metadata\":{\"name\":\"j\",\"namespace\":\"n\"},"
             "\"spec\":{%s}}",
             spec);
    gangjob = json_loads(buf_str(&text), 0, NULL);
    assert_non_null(gangjob);
    if (blueprint_new(gangjob, &blueprint, &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
    json_decref(gangjob);
    return blueprint;
}

static void test_ask_objects__of_a_job(void **state)
{
    const struct objects_case *c = *state;
    struct blueprint *blueprint = blueprint_of(c->spec);
    json_t *parameters = NULL, *objects, *want;
    struct ask_input input = {.job = 7,
                              .number = 3,
                              .server = "s",
                              .spec = &blueprint->spec,
                              .version = "autoscaling.x-k8s.io/v1",
                              .class_name = "c.x"};
    char *have;

    assert_int_equal(ask_parameters_parse(c->parameters, &parameters, NULL), 0);
    input.parameters = parameters;
    assert_null(ask_obstacle(&blueprint->spec));
    objects = ask_objects(&input);
    want = json_loads(c->want, 0, NULL);
    assert_non_null(want);
    if (!json_equal(objects, want)) {
        have = json_dumps(objects, JSON_COMPACT | JSON_SORT_KEYS);
        fail_msg("%s", have);
    }
    json_decref(want);
    json_decref(objects);
    json_decref(parameters);
    blueprint_unref(blueprint);
}

static const struct obstacle_case {
    const char *name, *spec, *want;
} obstacle_cases[] = {
    {"members that share a claim",
     "\"sharedClaims\":[{\"apiVersion\":\"resource.k8s.io/"
     "v1\",\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"s\"},"
     "\"spec\":{\"devices\":{\"requests\":[{\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"k\"}}]}}}],"
     "\"groups\":[{\"name\":\"w\",\"replicas\":2," POD("\"resourceClaims\":[{\"name\":\"g\",\"resourceClaimName\":"
                                                       "\"s\"}],") "}]",
     "share a claim"},
    {"a claim that exists is none",
     "\"groups\":[{\"name\":\"w\",\"replicas\":2," POD(
         "\"resourceClaims\":[{\"name\":\"g\",\"resourceClaimName\":\"s\"}],") "}]",
     NULL},
};

static void test_ask_objects__obstacle(void **state)
{
    const struct obstacle_case *c = *state;
    struct blueprint *blueprint = blueprint_of(c->spec);
    const char *have = ask_obstacle(&blueprint->spec);

    assert_int_equal(have != NULL, c->want != NULL);
    if (c->want)
        assert_non_null(strstr(have, c->want));
    blueprint_unref(blueprint);
}

static const struct parameters_case {
    const char *name, *text, *want; /* NULL: refused; "": none */
} parameters_cases[] = {
    {"none", "", ""},
    {"only separators", " , ", ""},
    {"one", "maxRunDurationSeconds=600", "{\"maxRunDurationSeconds\":\"600\"}"},
    {"an empty value", "a=", "{\"a\":\"\"}"},
    {"the last of a name", "a=1,a=2", "{\"a\":\"2\"}"},
    {"no value", "a", NULL},
    {"no name", "=1", NULL},
    {"after a good one", "a=1,b", NULL},
    {"not UTF-8", "a=\xff", NULL},
};

static void test_ask_objects__parameters(void **state)
{
    const struct parameters_case *c = *state;
    json_t *parameters = NULL;
    struct error err = {0};
    int result = ask_parameters_parse(c->text, &parameters, &err);
    char *have;

    assert_int_equal(result, c->want ? 0 : -1);
    if (!c->want) {
        assert_int_equal(err.code, ERR_INVALID);
        assert_null(parameters);
        return;
    }
    have = parameters ? json_dumps(parameters, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    assert_string_equal(have ? have : "", c->want);
    free(have);
    json_decref(parameters);
}

/* As for attempts: long names are cut, and stay names. */
static void test_ask_objects__long_names(void **state)
{
    char *name = ask_name("a-very-long-name-of-a-job-with.dots-and-more", 123456789012345, 9);

    (void)state;
    assert_string_equal(name, "a-very-long-name-of-a-jo-123456789012345-ask-9");
    free(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ask_objects__long_names)};

    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_TABLE(test_ask_objects__of_a_job, objects_cases) +
           RUN_TABLE(test_ask_objects__obstacle, obstacle_cases) +
           RUN_TABLE(test_ask_objects__parameters, parameters_cases);
}
