/* Bind mode: queued writes allocations itself, binds pods where it is told to, and gives way when somebody else has one
 * of the devices too. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "test/support/stage.h"

static const struct stage_job train = {.name = "train", .members = 2, .gpus = 1, .seconds = 10};

static void open_bound(struct stage *stage)
{
    stage_open_with(stage, &(struct stage_options){.bind_classes = "other, gpu"});
}

static const json_t *object_at(const struct stage *stage, const char *key)
{
    return json_object_get(stage->relay.objects, key);
}

static const json_t *allocation_at(const struct stage *stage, const char *key)
{
    return json_object_get(json_object_get(object_at(stage, key), "status"), "allocation");
}

static const char *device_at(const struct stage *stage, const char *key)
{
    const json_t *result =
        json_array_get(json_object_get(json_object_get(allocation_at(stage, key), "devices"), "results"), 0);
    static char text[80];

    snprintf(text, sizeof(text), "%s/%s", json_string_value(json_object_get(result, "pool")),
             json_string_value(json_object_get(result, "device")));
    return text;
}

static void must_command(struct stage *stage, const char *json)
{
    struct error err = {0};

    if (stage_command(stage, json, &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
}

static bool reason_has(struct stage *stage, const char *job, const char *words)
{
    json_t *view = stage_view(stage, job);
    bool has = strstr(json_string_value(json_object_get(view, "reason")), words) != NULL;

    if (!has)
        print_message("%s\n", json_string_value(json_object_get(view, "reason")));
    json_decref(view);
    return has;
}

static void check_end(struct stage *stage)
{
    json_t *status = core_status(stage->core), *devices = core_devices(stage->core, &stage_admin, NULL), *device;
    size_t i;

    assert_string_equal(stage_state(stage, "train"), "Succeeded");
    assert_int_equal(stage_n_moves(stage, "train", "Running"), 1);
    assert_int_equal(relay_n_ours(&stage->relay), 0);
    assert_int_equal(json_integer_value(json_object_get(status, "drift")), 0);
    json_array_foreach (json_object_get(devices, "items"), i, device)
        if (json_is_integer(json_object_get(device, "job")))
            fail_msg("%s is still held", json_string_value(json_object_get(device, "name")));
    json_decref(status);
    json_decref(devices);
}

/* A gang that cannot be made whole holds no device. */
static void test_core_bind__claims_are_allocated_when_all_pods_are_there(void **state)
{
    struct stage stage;

    (void)state;
    open_bound(&stage);
    must_command(&stage, "{\"fail\": \"create\", \"kind\": \"Pod\", \"error\": \"unavailable\", \"nth\": 2}");
    must_command(&stage, "{\"hold\": \"schedule\"}");
    stage_must_start(&stage, &train);
    stage_settle(&stage);
    assert_string_equal(stage_state(&stage, "train"), "Admitted");
    assert_non_null(object_at(&stage, "Pod/default/train-1-1-w-0"));
    assert_null(allocation_at(&stage, "ResourceClaim/default/train-1-1-w-0-g"));
    stage_run(&stage, 3000);
    assert_string_equal(stage_state(&stage, "train"), "Launching");
    assert_non_null(allocation_at(&stage, "ResourceClaim/default/train-1-1-w-0-g"));
    assert_non_null(allocation_at(&stage, "ResourceClaim/default/train-1-1-w-1-g"));
    must_command(&stage, "{\"release\": \"schedule\"}");
    stage_run(&stage, 60000);
    check_end(&stage);
    stage_close(&stage);
}

static void test_core_bind__without_it_allocations_are_the_schedulers(void **state)
{
    struct stage stage;

    (void)state;
    stage_open_with(&stage, &(struct stage_options){.bind_classes = "other"});
    must_command(&stage, "{\"hold\": \"schedule\"}");
    stage_must_start(&stage, &train);
    stage_run(&stage, 1000);
    assert_string_equal(stage_state(&stage, "train"), "Launching");
    assert_null(allocation_at(&stage, "ResourceClaim/default/train-1-1-w-0-g"));
    must_command(&stage, "{\"release\": \"schedule\"}");
    stage_run(&stage, 60000);
    check_end(&stage);
    stage_close(&stage);
}

/* ---- what steering cannot hold ---- */

#define MEMBER(group, claim)                                                                                           \
    "{name: " group ", replicas: 1, template: {metadata: {annotations: {embedded.queue.dra/duration: 5s}}, spec: "     \
    "{containers: [{name: c, image: i, resources: {claims: [{name: g}]}}], resourceClaims: [{name: g, "                \
    "resourceClaimTemplateName: " claim "}]}}}"
#define JOB(groups, templates)                                                                                         \
    "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: train}, spec: {queue: a, groups: [" groups             \
    "], claimTemplates: [" templates "]}}"
#define TEMPLATE(name, request)                                                                                        \
    "{name: " name ", spec: {devices: {requests: [{name: r, " request "}], config: [{requests: [r], opaque: {driver: " \
    "gpu.example, parameters: {}}}]}}}"

#define OF_SIZE(size)                                                                                                  \
    "exactly: {deviceClassName: gpu, selectors: [{cel: {expression: 'device.attributes[\"gpu.example\"].size == "      \
    "\"" size "\"'}}]}"

static const char unsteerable[] = JOB(MEMBER("a", "small") ", " MEMBER("b", "large"),
                                      TEMPLATE("small", OF_SIZE("small")) ", " TEMPLATE("large", OF_SIZE("large")));
static const char alternatives[] =
    JOB(MEMBER("a", "any"), TEMPLATE("any", "firstAvailable: [{name: huge, deviceClassName: gpu, count: 9}, {name: "
                                            "one, deviceClassName: gpu}]"));

static void test_core_bind__what_steering_cannot_hold_starts(void **state)
{
    struct stage stage;

    (void)state;
    stage_open_with(&stage, &(struct stage_options){.manifests = "test/core/scenarios/alike.yaml"});
    stage_must_submit(&stage, unsteerable);
    stage_run(&stage, 10000);
    assert_string_equal(stage_state(&stage, "train"), "Pending");
    assert_true(reason_has(&stage, "train", "bind-classes = gpu"));
    stage.options.bind_classes = "gpu";
    stage_restart(&stage);
    stage_run(&stage, 1000);
    assert_string_equal(stage_state(&stage, "train"), "Running");
    assert_string_equal(device_at(&stage, "ResourceClaim/default/train-1-1-a-0-g"), "p/small-1");
    assert_string_equal(device_at(&stage, "ResourceClaim/default/train-1-1-b-0-g"), "p/large-1");
    stage_run(&stage, 60000);
    check_end(&stage);
    stage_close(&stage);
}

/* The claim that is created asks for the chosen alternative under the name of the request, and so does what is written.
 */
static void test_core_bind__an_alternative_is_allocated_under_its_requests_name(void **state)
{
    struct stage stage;
    const json_t *allocation;

    (void)state;
    stage_open_with(&stage,
                    &(struct stage_options){.manifests = "test/core/scenarios/alike.yaml", .bind_classes = "gpu"});
    stage_must_submit(&stage, alternatives);
    stage_run(&stage, 1000);
    assert_string_equal(stage_state(&stage, "train"), "Running");
    allocation = json_object_get(allocation_at(&stage, "ResourceClaim/default/train-1-1-a-0-g"), "devices");
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(json_object_get(allocation, "results"), 0), "request")), "r");
    stage_run(&stage, 60000);
    check_end(&stage);
    stage_close(&stage);
}

/* ---- whom claims are reserved for ---- */

static bool is_reserved_for(const struct stage *stage, const char *claim, const char *pod)
{
    const json_t *uid = json_object_get(json_object_get(object_at(stage, pod), "metadata"), "uid"), *entry;
    const json_t *reserved = json_object_get(json_object_get(object_at(stage, claim), "status"), "reservedFor");
    size_t i;

    assert_non_null(uid);
    json_array_foreach (reserved, i, entry)
        if (json_equal(json_object_get(entry, "uid"), uid))
            return true;
    return false;
}

static bool has_gates(const struct stage *stage, const char *pod)
{
    return json_array_size(json_object_get(json_object_get(object_at(stage, pod), "spec"), "schedulingGates")) > 0;
}

static void test_core_bind__claims_are_reserved_before_the_gates_come_off(void **state)
{
    struct stage stage;

    (void)state;
    open_bound(&stage);
    must_command(&stage, "{\"hold\": \"schedule\"}");
    must_command(&stage, "{\"fail\": \"allocate\", \"error\": \"unavailable\", \"nth\": 2}");
    stage_must_start(&stage, &train);
    stage_settle(&stage);
    assert_string_equal(stage_state(&stage, "train"), "Launching");
    assert_true(is_reserved_for(&stage, "ResourceClaim/default/train-1-1-w-0-g", "Pod/default/train-1-1-w-0"));
    assert_false(is_reserved_for(&stage, "ResourceClaim/default/train-1-1-w-1-g", "Pod/default/train-1-1-w-1"));
    assert_true(has_gates(&stage, "Pod/default/train-1-1-w-0"));
    assert_true(has_gates(&stage, "Pod/default/train-1-1-w-1"));
    stage_run(&stage, 3000);
    assert_true(is_reserved_for(&stage, "ResourceClaim/default/train-1-1-w-1-g", "Pod/default/train-1-1-w-1"));
    assert_false(has_gates(&stage, "Pod/default/train-1-1-w-0"));
    assert_false(has_gates(&stage, "Pod/default/train-1-1-w-1"));
    must_command(&stage, "{\"release\": \"schedule\"}");
    stage_run(&stage, 60000);
    check_end(&stage);
    stage_close(&stage);
}

static const char sharing[] =
    "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: train}, spec: {queue: a, groups: [{name: w, replicas: "
    "2, template: {metadata: {annotations: {embedded.queue.dra/duration: 5s}}, spec: {containers: [{name: c, image: i, "
    "resources: {claims: [{name: g}]}}], resourceClaims: [{name: g, resourceClaimName: both}]}}}], sharedClaims: "
    "[{name: both, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}]}}";

static void test_core_bind__a_shared_claim_is_reserved_for_all_that_use_it(void **state)
{
    struct stage stage;

    (void)state;
    open_bound(&stage);
    must_command(&stage, "{\"hold\": \"schedule\"}");
    stage_must_submit(&stage, sharing);
    stage_run(&stage, 1000);
    assert_true(is_reserved_for(&stage, "ResourceClaim/default/train-1-1-shared-both", "Pod/default/train-1-1-w-0"));
    assert_true(is_reserved_for(&stage, "ResourceClaim/default/train-1-1-shared-both", "Pod/default/train-1-1-w-1"));
    must_command(&stage, "{\"release\": \"schedule\"}");
    stage_run(&stage, 60000);
    check_end(&stage);
    stage_close(&stage);
}

/* ---- pods that we bind ---- */

static const json_t *spec_at(const struct stage *stage, const char *pod)
{
    return json_object_get(object_at(stage, pod), "spec");
}

static void open_binding(struct stage *stage)
{
    stage_open_with(stage, &(struct stage_options){.bind_classes = "gpu", .binds_pods = true});
}

/* None before all claims are allocated; and kube-scheduler has no part in it. */
static void test_core_bind__pods_are_bound_when_all_claims_are_allocated(void **state)
{
    struct stage stage;

    (void)state;
    open_binding(&stage);
    must_command(&stage, "{\"hold\": \"schedule\"}");
    must_command(&stage, "{\"fail\": \"allocate\", \"error\": \"unavailable\", \"nth\": 2}");
    stage_must_start(&stage, &train);
    stage_settle(&stage);
    assert_string_equal(stage_state(&stage, "train"), "Launching");
    assert_non_null(allocation_at(&stage, "ResourceClaim/default/train-1-1-w-0-g"));
    assert_null(json_object_get(spec_at(&stage, "Pod/default/train-1-1-w-0"), "nodeName"));
    assert_string_equal(
        json_string_value(json_object_get(spec_at(&stage, "Pod/default/train-1-1-w-0"), "schedulerName")), "queued");
    assert_false(has_gates(&stage, "Pod/default/train-1-1-w-0"));
    stage_run(&stage, 3000);
    assert_string_equal(stage_state(&stage, "train"), "Running");
    assert_true(is_reserved_for(&stage, "ResourceClaim/default/train-1-1-w-1-g", "Pod/default/train-1-1-w-1"));
    stage_run(&stage, 60000);
    check_end(&stage);
    stage_close(&stage);
}

static const char with_volume[] =
    "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: train}, spec: {queue: a, groups: [{name: w, replicas: "
    "1, template: {metadata: {annotations: {embedded.queue.dra/duration: 5s}}, spec: {volumes: [{name: v, "
    "persistentVolumeClaim: {claimName: data}}], containers: [{name: c, image: i, resources: {claims: [{name: g}]}}], "
    "resourceClaims: [{name: g, resourceClaimTemplateName: one}]}}}], claimTemplates: [{name: one, spec: {devices: "
    "{requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}]}}";
static const char with_helper[] =
    "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: train}, spec: {queue: a, groups: [{name: w, replicas: "
    "1, template: {metadata: {annotations: {embedded.queue.dra/duration: 5s}}, spec: {containers: [{name: c, image: i, "
    "resources: {claims: [{name: g}]}}], resourceClaims: [{name: g, resourceClaimTemplateName: one}]}}}, {name: h, "
    "replicas: 1, template: {metadata: {annotations: {embedded.queue.dra/duration: 5s}}, spec: {containers: [{name: c, "
    "image: i}]}}}], claimTemplates: [{name: one, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: "
    "gpu}}]}}}]}}";
static const char no_devices[] = "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: train}, spec: {queue: a, "
                                 "groups: [{name: w, replicas: 1, template: {metadata: {annotations: "
                                 "{embedded.queue.dra/duration: 5s}}, spec: {containers: [{name: c, image: i}]}}}]}}";

static const struct whose_case {
    const char *name, *job, *bind_classes;
    bool has_pod_groups, is_ours;
} whose_cases[] = {
    {"all devices of our classes", sharing, "gpu", false, true},
    {"a member without devices beside them", with_helper, "gpu", false, true},
    {"where the cluster has PodGroups", sharing, "gpu", true, true},
    {"a volume that has to be chosen", with_volume, "gpu", false, false},
    {"no devices at all", no_devices, "gpu", false, false},
    {"devices of other classes", sharing, "other", false, false},
};

static void test_core_bind__which_gangs_are_bound_by_us(void **state)
{
    const struct whose_case *c = *state;
    struct stage stage;
    const char *scheduler;

    stage_open_with(&stage, &(struct stage_options){.bind_classes = c->bind_classes,
                                                    .binds_pods = true,
                                                    .has_pod_groups = c->has_pod_groups});
    stage_must_submit(&stage, c->job);
    stage_run(&stage, 1000);
    assert_string_equal(stage_state(&stage, "train"), "Running");
    scheduler = json_string_value(json_object_get(spec_at(&stage, "Pod/default/train-1-1-w-0"), "schedulerName"));
    assert_int_equal(scheduler != NULL, c->is_ours);
    assert_int_equal(object_at(&stage, "PodGroup/default/train-1-1") != NULL, c->has_pod_groups && !c->is_ours);
    stage_run(&stage, 60000);
    check_end(&stage);
    stage_close(&stage);
}

/* ---- crashes and refusals ---- */

static void submit_until_answered(struct stage *stage)
{
    char *yaml = stage_job_yaml(&train);
    const struct submit_options options = {.idempotency_key = "once"};
    bool is_told = false;

    while (!is_told) {
        struct stage_answer answer = stage_submit(stage, &stage_admin, yaml, &options);

        is_told = answer.is_told;
        assert_int_equal(answer.err.code, ERR_NONE);
        stage_answer_release(&answer);
    }
    free(yaml);
}

static bool run_with_crash(int crash_at, bool binds_pods)
{
    struct stage stage;
    bool reached;

    stage_open_with(&stage, &(struct stage_options){.bind_classes = "gpu", .binds_pods = binds_pods});
    stage.crash_at = crash_at;
    stage_restart(&stage);
    submit_until_answered(&stage);
    stage_run(&stage, 60000);
    reached = stage.n_crashes > 0;
    check_end(&stage);
    assert_int_equal(stage_n_moves(&stage, "train", "Admitted"), 1);
    stage_close(&stage);
    return reached;
}

static void test_core_bind__a_crash_before_every_effect_changes_nothing(void **state)
{
    (void)state;
    for (int binds_pods = 0; binds_pods <= 1; binds_pods++) {
        int n = 1;

        while (run_with_crash(n, binds_pods))
            n++;
        assert_true(n > 12);
    }
}

static const struct refusal_case {
    const char *name, *command;
    int n_attempts;
    const char *words; /* in the event that ends an attempt, or NULL */
} refusal_cases[] = {
    {"unavailable for a while", "{\"fail\": \"allocate\", \"error\": \"unavailable\"}", 1, NULL},
    {"carried out, and the answer is lost", "{\"fail\": \"allocate\", \"error\": \"timeout\"}", 1, NULL},
    {"not carried out, and nobody knows", "{\"fail\": \"allocate\", \"error\": \"timeout\", \"applied\": false}", 1,
     NULL},
    {"changed meanwhile", "{\"fail\": \"allocate\", \"error\": \"conflict\"}", 1, NULL},
    {"not allowed",
     "{\"fail\": \"allocate\", \"error\": \"denied\", \"words\": \"may not update resourceclaims/binding\"}", 2,
     "allocate ResourceClaim train-1-1-w-0-g: may not update resourceclaims/binding"},
    {"binding unavailable for a while", "{\"fail\": \"bind\", \"error\": \"unavailable\"}", 1, NULL},
    {"bound, and the answer is lost", "{\"fail\": \"bind\", \"error\": \"timeout\"}", 1, NULL},
    {"not bound, and nobody knows", "{\"fail\": \"bind\", \"error\": \"timeout\", \"applied\": false}", 1, NULL},
    {"binding conflicts once", "{\"fail\": \"bind\", \"error\": \"conflict\"}", 1, NULL},
    {"binding not allowed", "{\"fail\": \"bind\", \"error\": \"denied\", \"words\": \"may not create pods/binding\"}",
     2, "start Pod train-1-1-w-0: may not create pods/binding"},
    {"refused for good", "{\"fail\": \"allocate\", \"error\": \"invalid\", \"words\": \"no such request\"}", 2,
     "no such request"},
};

static bool was_told(struct stage *stage, const char *words)
{
    json_t *events = core_events(stage->core, &stage_admin, "train", 0, 1000, NULL), *event;
    bool found = false;
    size_t i;

    json_array_foreach (json_object_get(events, "items"), i, event)
        found |= strstr(json_string_value(json_object_get(event, "detail")), words) != NULL;
    json_decref(events);
    return found;
}

static void test_core_bind__refused(void **state)
{
    const struct refusal_case *c = *state;
    struct stage stage;

    stage_open_with(&stage, &(struct stage_options){.bind_classes = "gpu", .binds_pods = strstr(c->command, "bind")});
    must_command(&stage, c->command);
    stage_must_start(&stage, &train);
    stage_run(&stage, 60000);
    check_end(&stage);
    assert_int_equal(stage_n_moves(&stage, "train", "Admitted"), c->n_attempts);
    assert_true(!c->words || was_told(&stage, c->words));
    stage_close(&stage);
}

/* ---- somebody else's claim with a device of ours ---- */

#define RIVAL                                                                                                          \
    "{\"putObject\": {\"apiVersion\": \"resource.k8s.io/v1\", \"kind\": \"ResourceClaim\", \"metadata\": {\"name\": "  \
    "\"rival\", \"namespace\": \"default\"}, \"spec\": {\"devices\": {\"requests\": [{\"name\": \"r\", \"exactly\": "  \
    "{\"deviceClassName\": \"gpu\"}}]}}, \"status\": {\"allocation\": {\"devices\": {\"results\": [{\"request\": "     \
    "\"r\", \"driver\": \"gpu.example.com\", \"pool\": \"n1\", \"device\": \"gpu-0\"%s}]}, \"nodeSelector\": "         \
    "{\"nodeSelectorTerms\": [{\"matchFields\": [{\"key\": \"metadata.name\", \"operator\": \"In\", \"values\": "      \
    "[\"n1\"]}]}]}}}}}"

static void put_rival(struct stage *stage, const char *more)
{
    char command[1000];

    snprintf(command, sizeof(command), RIVAL, more);
    must_command(stage, command);
}

static bool holds_the_device(const struct stage *stage)
{
    const char *key;
    json_t *object;
    bool holds = false;

    json_object_foreach (stage->relay.objects, key, object)
        if (json_object_get(json_object_get(json_object_get(object, "metadata"), "labels"), LABEL_JOB) &&
            allocation_at(stage, key) && strcmp(device_at(stage, key), "n1/gpu-0") == 0)
            holds = true;
    return holds;
}

static const struct rival_case {
    const char *name, *before, *between;
    bool is_restarted;
} rival_cases[] = {
    {"before it is allocated", "{\"fail\": \"allocate\", \"error\": \"unavailable\"}", NULL, false},
    {"before there are pods", "{\"fail\": \"create\", \"kind\": \"Pod\", \"error\": \"unavailable\"}", NULL, false},
    {"while the scheduler is slow", "{\"hold\": \"schedule\"}", "{\"release\": \"schedule\"}", false},
    {"while the server is away", "{\"hold\": \"schedule\"}", "{\"release\": \"schedule\"}", true},
};

/* The attempt ends with the reason; the next one goes around the device. Never does the gang run beside the rival. */
static void test_core_bind__a_rival_ends_the_attempt(void **state)
{
    const struct rival_case *c = *state;
    struct stage stage;

    open_bound(&stage);
    must_command(&stage, c->before);
    stage_must_start(&stage, &train);
    stage_settle(&stage);
    put_rival(&stage, "");
    if (c->is_restarted)
        stage_restart(&stage);
    stage_settle(&stage);
    if (c->between)
        must_command(&stage, c->between);
    assert_true(was_told(&stage, "device n1/gpu-0 of claim train-1-1-w-0-g was given to claim default/rival too"));
    for (int i = 0; i < 60; i++) {
        stage_run(&stage, 1000);
        if (strcmp(stage_state(&stage, "train"), "Running") == 0)
            assert_false(holds_the_device(&stage));
    }
    check_end(&stage);
    assert_int_equal(stage_n_moves(&stage, "train", "Admitted"), 2);
    assert_non_null(allocation_at(&stage, "ResourceClaim/default/rival"));
    stage_close(&stage);
}

/* A share of a device, or an administrator's look at it, is no rival; nor is anything once the gang runs. */
static const struct harmless_case {
    const char *name, *more;
    int64_t after_ms;
} harmless_cases[] = {
    {"an administrator's", ", \"adminAccess\": true", 0},
    {"after the gang runs", "", 1000},
};

static void test_core_bind__harmless(void **state)
{
    const struct harmless_case *c = *state;
    struct stage stage;

    open_bound(&stage);
    stage_must_start(&stage, &train);
    stage_run(&stage, c->after_ms);
    put_rival(&stage, c->more);
    stage_run(&stage, 60000);
    check_end(&stage);
    assert_int_equal(stage_n_moves(&stage, "train", "Admitted"), 1);
    stage_close(&stage);
}

static bool run_with_rival_and_crash(int crash_at)
{
    struct stage stage;
    bool reached;

    open_bound(&stage);
    must_command(&stage, "{\"fail\": \"create\", \"kind\": \"Pod\", \"error\": \"unavailable\"}");
    stage.crash_at = crash_at;
    stage_restart(&stage);
    submit_until_answered(&stage);
    put_rival(&stage, "");
    for (int i = 0; i < 60; i++) {
        stage_run(&stage, 1000);
        if (strcmp(stage_state(&stage, "train"), "Running") == 0)
            assert_false(holds_the_device(&stage));
    }
    reached = stage.n_crashes > 0;
    check_end(&stage);
    stage_close(&stage);
    return reached;
}

static void test_core_bind__a_rival_and_a_crash_before_every_effect(void **state)
{
    int n = 1;

    (void)state;
    while (run_with_rival_and_crash(n))
        n++;
    assert_true(n > 20);
}

/* Somebody allocates our claim itself, to another device. */
static void test_core_bind__allocated_by_somebody_else(void **state)
{
    struct stage stage;
    json_t *claim, *put;
    char *words;

    (void)state;
    open_bound(&stage);
    must_command(&stage, "{\"fail\": \"allocate\", \"error\": \"unavailable\"}");
    stage_must_start(&stage, &train);
    stage_settle(&stage);
    claim = json_deep_copy(object_at(&stage, "ResourceClaim/default/train-1-1-w-0-g"));
    json_object_set_new(claim, "status",
                        json_pack("{s:{s:{s:[{s:s, s:s, s:s, s:s}]}}}", "allocation", "devices", "results", "request",
                                  "r", "driver", "gpu.example.com", "pool", "n2", "device", "gpu-1"));
    put = json_pack("{s:o}", "putObject", claim);
    words = json_dumps(put, JSON_COMPACT);
    must_command(&stage, words);
    free(words);
    json_decref(put);
    stage_run(&stage, 60000);
    assert_true(was_told(&stage, "ResourceClaim train-1-1-w-0-g was allocated by somebody else"));
    check_end(&stage);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_bind__claims_are_allocated_when_all_pods_are_there),
        cmocka_unit_test(test_core_bind__without_it_allocations_are_the_schedulers),
        cmocka_unit_test(test_core_bind__what_steering_cannot_hold_starts),
        cmocka_unit_test(test_core_bind__an_alternative_is_allocated_under_its_requests_name),
        cmocka_unit_test(test_core_bind__claims_are_reserved_before_the_gates_come_off),
        cmocka_unit_test(test_core_bind__a_shared_claim_is_reserved_for_all_that_use_it),
        cmocka_unit_test(test_core_bind__pods_are_bound_when_all_claims_are_allocated),
        cmocka_unit_test(test_core_bind__a_crash_before_every_effect_changes_nothing),
        cmocka_unit_test(test_core_bind__a_rival_and_a_crash_before_every_effect),
        cmocka_unit_test(test_core_bind__allocated_by_somebody_else),
    };
    int failed = RUN_TABLE(test_core_bind__refused, refusal_cases);

    failed += RUN_TABLE(test_core_bind__a_rival_ends_the_attempt, rival_cases);
    failed += RUN_TABLE(test_core_bind__harmless, harmless_cases);
    failed += RUN_TABLE(test_core_bind__which_gangs_are_bound_by_us, whose_cases);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
