/* Objects as Kubernetes 1.37 tells them, and the layer that is to be looked at. */
#include "test/support/cmocka.h"

#include <string.h>

#include "queued/lifecycle/diagnose.h"

#define COND(type, status, reason, message)                                                                            \
    "{'type': '" type "', 'status': '" status "', 'reason': '" reason "', 'message': '" message "'}"
#define SPEC            "'spec': {'nodeName': 'n1', 'resourceClaims': [{'name': 'g', 'resourceClaimName': 'c'}]}"
#define BOUND(status)   "{'metadata': {'uid': 'u'}, " SPEC ", 'status': {'startTime': 't', " status "}}"
#define UNBOUND(status) "{'metadata': {'uid': 'u'}, 'spec': {}, 'status': {'phase': 'Pending', " status "}}"
#define WAITING(reason, message)                                                                                       \
    BOUND("'phase': 'Pending', 'conditions': [" COND(                                                                  \
        "PodReadyToStartContainers", "True", "",                                                                       \
        "") "], "                                                                                                      \
            "'containerStatuses': [{'name': 'main', 'state': {'waiting': {'reason': '" reason                          \
            "', 'message': '" message "'}}}]")
#define CREATING(ready)                                                                                                \
    BOUND("'phase': 'Pending', 'conditions': [" COND("PodReadyToStartContainers", ready, "", "") ", " COND(            \
        "Initialized", "True", "", "") "], 'containerStatuses': [{'name': 'main', 'state': {'waiting': "               \
                                       "{'reason': 'ContainerCreating'}}}]")

#define RESULT "'request': 'r', 'driver': 'gpu.example.com', 'pool': 'n1', 'device': 'gpu-0'"
#define CLAIM(more, reserved, devices)                                                                                 \
    "{'status': {'allocation': {'devices': {'results': [{" RESULT more "}]}}, 'reservedFor': [" reserved "], "         \
    "'devices': [" devices "]}}"
#define FOR_IT    "{'resource': 'pods', 'name': 'p', 'uid': 'u'}"
#define GOOD      CLAIM("", FOR_IT, "")
#define BINDING   ", 'bindingConditions': ['attached'], 'bindingFailureConditions': ['broken']"
#define DEVICE(c) "{'driver': 'gpu.example.com', 'pool': 'n1', 'device': 'gpu-0', 'conditions': [" c "]}"

static const struct diagnose_case {
    const char *name;
    const char *pod, *claim; /* NULL: not there; claim "": the pod has none that is known */
    const char *layer;       /* NULL: nothing to say */
    const char *words;
} diagnose_cases[] = {
    {"runs", BOUND("'phase': 'Running', 'conditions': [" COND("Ready", "True", "", "") "]"), GOOD, NULL, NULL},
    {"has succeeded", BOUND("'phase': 'Succeeded'"), NULL, NULL, NULL},
    {"is not there", NULL, "", "api", "it is not there"},

    {"a taint of its device",
     BOUND("'phase': 'Running', 'conditions': [" COND("DisruptionTarget", "True", "DeletionByDeviceTaintManager",
                                                      "device gpu-0 is broken") "]"),
     GOOD, "device", "evicted because of a taint of its device: device gpu-0 is broken"},
    {"a taint of its node",
     BOUND("'phase': 'Running', 'conditions': [" COND("DisruptionTarget", "True", "DeletionByTaintManager", "") "]"),
     GOOD, "node", "evicted because of a taint of its node"},
    {"preempted",
     BOUND("'phase': 'Running', 'conditions': [" COND("DisruptionTarget", "True", "PreemptionByScheduler",
                                                      "for pod x") "]"),
     GOOD, "scheduler", "preempted by kube-scheduler: for pod x"},
    {"a disruption that is new to us",
     BOUND("'phase': 'Running', 'conditions': [" COND("DisruptionTarget", "True", "Moonlight", "") "]"), GOOD, "api",
     "disrupted (Moonlight)"},
    {"no disruption any more",
     BOUND("'phase': 'Running', 'conditions': [" COND("DisruptionTarget", "False", "x", "") "]"), GOOD, NULL, NULL},
    {"a node that is lost", BOUND("'phase': 'Running', 'reason': 'NodeLost', 'message': 'Node n1 is unresponsive'"),
     GOOD, "node", "node n1 does not answer: Node n1 is unresponsive"},
    {"going, and held", "{'metadata': {'deletionTimestamp': 't', 'finalizers': ['a/b']}, 'spec': {}}", "", "api",
     "it is being deleted; it is held by the finalizer a/b"},

    {"an exit code",
     BOUND("'phase': 'Failed', 'containerStatuses': [{'name': 'main', 'state': {'terminated': {'exitCode': 137, "
           "'reason': 'OOMKilled'}}}]"),
     GOOD, "runtime", "container main ended with exit code 137 (OOMKilled)"},
    {"turned away by the kubelet",
     BOUND("'phase': 'Failed', 'reason': 'UnexpectedAdmissionError', 'message': 'Allocate failed'"), GOOD, "node",
     "failed (UnexpectedAdmissionError): Allocate failed"},

    {"a sick device",
     BOUND("'phase': 'Running', 'containerStatuses': [{'name': 'main', 'state': {'waiting': {'reason': "
           "'CrashLoopBackOff'}}, 'allocatedResourcesStatus': [{'name': 'claim:g/r', 'resources': [{'resourceID': "
           "'gpu.example.com/n1/gpu-0', 'health': 'Unhealthy', 'message': 'ECC'}]}]}]"),
     GOOD, "device", "device gpu.example.com/n1/gpu-0 (claim:g/r) of container main is unhealthy: ECC"},
    {"a healthy device",
     BOUND(
         "'phase': 'Running', 'containerStatuses': [{'name': 'main', 'allocatedResourcesStatus': [{'name': 'claim:g', "
         "'resources': [{'resourceID': 'x', 'health': 'Healthy'}, {'resourceID': 'y', 'health': 'Unknown'}]}]}]"),
     GOOD, NULL, NULL},

    {"gated",
     "{'metadata': {}, 'spec': {'schedulingGates': [{'name': 'queue.dra/gang'}]}, 'status': {'phase': "
     "'Pending'}}",
     GOOD, "api", "its scheduling gate queue.dra/gang is closed"},
    {"no place",
     UNBOUND("'conditions': [" COND("PodScheduled", "False", "Unschedulable",
                                    "0/3 nodes are available: 3 cannot allocate all claims.") "]"),
     "{'status': {}}", "scheduler", "0/3 nodes are available: 3 cannot allocate all claims."},
    {"a scheduler that fails",
     UNBOUND(
         "'conditions': [" COND("PodScheduled", "False", "SchedulerError", "field cannot be modified once set") "]"),
     GOOD, "scheduler", "field cannot be modified once set"},
    {"a scheduler that is silent", UNBOUND("'conditions': []"), "{'status': {}}", "scheduler",
     "kube-scheduler has not said anything of it yet"},
    {"a scheduler that has not seen that the gates are gone",
     UNBOUND("'conditions': [" COND("PodScheduled", "False", "SchedulingGated", "Scheduling is blocked") "]"),
     "{'status': {}}", "scheduler", "kube-scheduler has not said anything of it yet"},
    {"a claim that is not there", UNBOUND("'conditions': []"), NULL, "api", "its claim c is not there"},
    {"a claim that goes", UNBOUND("'conditions': []"), "{'metadata': {'deletionTimestamp': 't'}}", "api",
     "its claim c is being deleted"},
    {"a device that has to be attached", UNBOUND("'conditions': []"),
     CLAIM(BINDING, "", DEVICE(COND("attached", "False", "Moving", "in transit"))), "driver",
     "device n1/gpu-0 is not ready to be bound: attached is not true yet: in transit"},
    {"a device of which nothing is told", UNBOUND("'conditions': []"), CLAIM(BINDING, "", ""), "driver",
     "device n1/gpu-0 is not ready to be bound: attached is not true yet"},
    {"a device that could not be attached", UNBOUND("'conditions': []"),
     CLAIM(BINDING, "", DEVICE(COND("broken", "True", "x", "no slot"))), "driver",
     "device n1/gpu-0 cannot be bound: broken is true: no slot"},
    {"a device that is not ready", CREATING("False"),
     CLAIM("", FOR_IT, DEVICE(COND("Ready", "False", "x", "no address"))), "driver",
     "device n1/gpu-0 is not ready: no address"},

    {"an image that is not there", WAITING("ErrImagePull", "not found"), GOOD, "image",
     "container main: ErrImagePull: not found"},
    {"an image that is still not there", WAITING("ImagePullBackOff", "Back-off pulling image"), GOOD, "image",
     "container main: ImagePullBackOff: Back-off pulling image"},
    {"a secret that is missing", WAITING("CreateContainerConfigError", "secret s not found"), GOOD, "runtime",
     "container main: CreateContainerConfigError: secret s not found"},
    {"a device that the runtime cannot inject", WAITING("RunContainerError", "unresolvable CDI devices"), GOOD,
     "runtime", "container main: RunContainerError: unresolvable CDI devices"},
    {"crashing",
     BOUND("'phase': 'Running', 'containerStatuses': [{'name': 'main', 'state': {'waiting': {'reason': "
           "'CrashLoopBackOff'}}, 'lastState': {'terminated': {'exitCode': 3}}}]"),
     GOOD, "runtime", "container main: CrashLoopBackOff, after exit code 3"},
    {"an init container without image",
     BOUND("'phase': 'Pending', 'initContainerStatuses': [{'name': 'first', 'state': {'waiting': {'reason': "
           "'InvalidImageName'}}}]"),
     GOOD, "image", "container first: InvalidImageName"},

    {"a claim that is not allocated on a bound pod", CREATING("False"), "{'status': {}}", "scheduler",
     "its claim c is not allocated"},
    {"a claim that is not reserved", CREATING("False"), CLAIM("", "", ""), "scheduler",
     "its claim c is not reserved for it"},
    {"a claim that is reserved for its group", CREATING("True"),
     CLAIM("", "{'resource': 'podgroups', 'name': 'g', 'uid': 'v'}", ""), "image",
     "node n1 pulls its images, or creates its containers"},
    {"a kubelet that is silent", "{'metadata': {'uid': 'u'}, " SPEC ", 'status': {'phase': 'Pending'}}", GOOD, "node",
     "the kubelet of node n1 has not taken it up yet"},
    {"preparing", CREATING("False"), GOOD, "driver",
     "node n1 prepares its devices (driver gpu.example.com), its volumes or its network"},
    {"preparing without devices", CREATING("False"), "", "runtime", "node n1 prepares its volumes or its network"},
    {"pulling", CREATING("True"), GOOD, "image", "node n1 pulls its images, or creates its containers"},
    {"init containers",
     BOUND("'phase': 'Pending', 'conditions': [" COND("PodReadyToStartContainers", "True", "", "") ", " COND(
         "Initialized", "False", "", "") "], 'containerStatuses': []"),
     GOOD, "runtime", "its init containers run on node n1"},
    {"not ready",
     BOUND("'phase': 'Running', 'conditions': [" COND("Ready", "False", "ContainersNotReady",
                                                      "containers with unready status: [main]") "]"),
     GOOD, "runtime", "it runs and is not ready: containers with unready status: [main]"},
    {"nonsense", "{'spec': 7, 'status': {'conditions': {'a': 1}, 'containerStatuses': [3, null]}}", "[]", "scheduler",
     "kube-scheduler has not said anything of it yet"},
};

static json_t *parse(const char *text)
{
    char *copy = mem_strdup(text);
    json_error_t problem;
    json_t *json;

    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    json = json_loads(copy, 0, &problem);
    if (!json)
        fail_msg("%s: %s", problem.text, copy);
    free(copy);
    return json;
}

static void test_diagnose__case(void **state)
{
    const struct diagnose_case *c = *state;
    json_t *pod = c->pod ? parse(c->pod) : NULL, *claim = c->claim && c->claim[0] ? parse(c->claim) : NULL;
    const struct diagnosed_claim claims[] = {{"c", claim}};
    const struct diagnose_input input = {.pod = pod, .claims = claims, .n_claims = c->claim && !c->claim[0] ? 0 : 1};
    struct diagnosis found;

    assert_int_equal(diagnose(&input, &found), c->layer != NULL);
    if (c->layer) {
        assert_string_equal(found.sentence, c->words);
        assert_string_equal(diagnosis_layer_name(found.layer), c->layer);
    }
    json_decref(pod);
    json_decref(claim);
}

static void test_diagnose__the_gang_that_is_not_placed(void **state)
{
    json_t *pod = parse(UNBOUND("'conditions': []"));
    json_t *group = parse("{'status': {'conditions': [" COND("PodGroupInitiallyScheduled", "False", "Unschedulable",
                                                             "minCount (5) cannot be satisfied") "]}}");
    const struct diagnose_input input = {.pod = pod, .pod_group = group};
    struct diagnosis found;

    (void)state;
    assert_true(diagnose(&input, &found));
    assert_int_equal(found.layer, DIAGNOSIS_SCHEDULER);
    assert_string_equal(found.sentence, "the gang is not placed: minCount (5) cannot be satisfied");
    json_decref(pod);
    json_decref(group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_diagnose__the_gang_that_is_not_placed)};

    return RUN_TABLE(test_diagnose__case, diagnose_cases) + cmocka_run_group_tests(tests, NULL, NULL);
}
