/* What is refused, with the line and field that are at fault, and small facts about what is accepted. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "test/manifest/decode_text.h"

#define POD "containers: [{name: c, image: i}]"
#define JOB(fields)                                                                                                    \
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n" fields "  template: {spec: {" POD "}}\n"
#define JOBSET(fields, job)                                                                                            \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s}\nspec:\n" fields                          \
    "  replicatedJobs:\n  - name: r\n    replicas: 2\n    template: {spec: {" job "template: {spec: {" POD "}}}}\n"
#define GANG(fields)                                                                                                   \
    "apiVersion: queue.dra/v1\nkind: GangJob\nmetadata: {name: g}\nspec:\n" fields                                     \
    "  groups: [{name: w, replicas: 2, template: {spec: {" POD "}}}]\n"
#define TEMPLATE(name)                                                                                                 \
    "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: " name "}\n"                   \
    "spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: c}}]}}}\n"
#define CLAIM(name)                                                                                                    \
    "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: " name "}\n"                           \
    "spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: c}}]}}\n"
#define POD_WITH(name, claim)                                                                                          \
    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " name "}\n"                                                     \
    "spec: {" POD ", resourceClaims: [" claim "]}\n"

static const struct refusal {
    const char *name;
    const char *text;
    const char *want;
} refusals[] = {
    {"nothing", "", "1 : there is nothing to run: no Job, JobSet, Pod or GangJob"},
    {"no kind", "apiVersion: v1\n", "1 kind: is missing: every document needs apiVersion and kind"},
    {"no object", "- 1\n", "1 : every document must be an object"},
    {"an unknown kind", "apiVersion: v1\nkind: Pood\nmetadata: {name: p}\n",
     "2 kind: Pood \"p\" (v1) cannot be queued (did you mean Pod?); kinds that can are Job, JobSet, Pod and GangJob"},
    {"a kind that is no job", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
     "2 kind: Deployment \"web\" runs until it is deleted and so cannot wait in a queue of jobs: use a batch/v1 Job, a "
     "Pod or a "
     "GangJob"},
    {"another scheduler's Job", "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: v}\n",
     "2 kind: Job \"v\" (Volcano's) cannot be queued as it is: write its roles as the groups of a GangJob or JobSet"},
    {"an old version", "apiVersion: batch/v1beta1\nkind: Job\nmetadata: {name: v}\n",
     "1 apiVersion: Job \"v\": batch/v1beta1 is not read, batch/v1 is"},
    {"no name", "apiVersion: v1\nkind: Pod\nmetadata: {}\nspec: {" POD "}\n", "3 metadata.name: is missing"},
    {"a bad name", "apiVersion: v1\nkind: Pod\nmetadata: {name: A_b}\nspec: {" POD "}\n",
     "3 metadata.name: \"A_b\" must consist of lower case letters, digits, '.' and '-', and begin and end with a "
     "letter or digit"},
    {"a misspelt field", JOB("  paralellism: 2\n"), "5 spec.paralellism: unknown field (did you mean parallelism?)"},
    {"a field of another kind", JOB("  replicas: 2\n"), "5 spec.replicas: unknown field"},
    {"a misspelt field of a container",
     "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    imagePulPolicy: Always\n",
     "7 spec.containers[0].imagePulPolicy: unknown field (did you mean imagePullPolicy?)"},
    {"a misspelt affinity",
     "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  " POD "\n  affinity:\n    nodeAffinity:\n"
     "      requiredDuringSchedulingIgnoreDuringExecution: {}\n",
     "8 spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoreDuringExecution: unknown field (did you mean "
     "requiredDuringSchedulingIgnoredDuringExecution?)"},
    {"a wrong type", JOB("  parallelism: two\n"), "5 spec.parallelism: must be a whole number, not text"},
    {"text without quotes",
     "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c, env: [{name: A, value: 1}]}]\n",
     "5 spec.containers[0].env[0].value: must be text, not a number: write it in quotes"},
    {"a label without quotes",
     "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels: {a: true}\nspec: {" POD "}\n",
     "5 metadata.labels[a]: must be text, not true: write it in quotes"},
    {"a number out of range", JOB("  parallelism: 0\n"), "5 spec.parallelism: 0 is not in 1 to 10000"},
    {"no quantity",
     "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n"
     "    resources: {limits: {cpu: -1}}\n",
     "7 spec.containers[0].resources.limits[cpu]: must not be negative"},
    /* Jobs */
    {"pods one after the other", JOB("  parallelism: 2\n  completions: 10\n"),
     "6 spec.completions: 10 is more than parallelism (2): a gang runs all its members at once; set parallelism to 10, "
     "or submit a "
     "job for each"},
    {"retries per index", JOB("  backoffLimitPerIndex: 1\n"),
     "5 spec.backoffLimitPerIndex: members are not retried one by one: backoffLimit restarts the whole gang"},
    {"another controller", JOB("  managedBy: x.example.com/y\n"),
     "5 spec.managedBy: x.example.com/y: another controller would run it"},
    {"an odd mode", JOB("  completionMode: Sorted\n"),
     "5 spec.completionMode: \"Sorted\" is none of NonIndexed, Indexed"},
    {"members that never end",
     "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {restartPolicy: Always, " POD
     "}}}\n",
     "4 spec.template.spec.restartPolicy: Always: the members of a job must come to an end; use Never or OnFailure"},
    {"a node of its own choice", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeName: n, " POD "}\n",
     "4 spec.nodeName: the queue and kube-scheduler choose the node: use nodeSelector or a node affinity"},
    {"another scheduler", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {schedulerName: volcano, " POD "}\n",
     "4 spec.schedulerName: volcano: placements are planned for kube-scheduler, which must then bind the pods: leave "
     "it out"},
    {"less members than the least",
     "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: j\n  annotations:\n"
     "    kueue.x-k8s.io/job-min-parallelism: \"3\"\nspec:\n  parallelism: 2\n"
     "  template: {spec: {" POD "}}\n",
     "8 spec.parallelism: 2 is less than the least number of members, 3"},
    /* JobSets */
    {"stages", JOBSET("", "") "    dependsOn: []\n",
     "9 spec.replicatedJobs[0].dependsOn: a gang starts whole, not in stages: submit the stages as GangJobs that name "
     "each other in "
     "dependsOn"},
    {"success of some", JOBSET("  successPolicy: {operator: Any}\n", ""),
     "5 spec.successPolicy.operator: Any: a gang succeeds when all its members do"},
    {"addresses of ready members only", JOBSET("  network: {publishNotReadyAddresses: false}\n", ""),
     "5 spec.network.publishNotReadyAddresses: false is not supported: members find each other before they are ready"},
    {"rules for failures", JOBSET("  failurePolicy: {maxRestarts: 1, rules: []}\n", ""),
     "5 spec.failurePolicy.rules: a failure restarts the whole gang; rules for single jobs are not supported"},
    {"deadlines of single jobs",
     JOBSET("", "activeDeadlineSeconds: 5, ") "  - {name: q, template: {spec: {template: {spec: {" POD "}}}}}\n",
     "9 spec.replicatedJobs[1].template.spec.activeDeadlineSeconds: must be the same for all replicated jobs: a gang "
     "has one deadline"},
    /* Kueue */
    {"a misspelt key of Kueue's",
     "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels: {kueue.x-k8s.io/queue-nam: q}\nspec: {" POD "}\n",
     "5 metadata.labels[kueue.x-k8s.io/queue-nam]: unknown key of Kueue (did you mean kueue.x-k8s.io/queue-name?)"},
    {"an annotation in the wrong place",
     "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: j\n  annotations:\n"
     "    kueue.x-k8s.io/podset-required-topology: rack\nspec: {template: {spec: {" POD "}}}\n",
     "6 metadata.annotations[kueue.x-k8s.io/podset-required-topology]: belongs to the annotations of the pod template"},
    {"a group that is not all there",
     "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels: {kueue.x-k8s.io/pod-group-name: g}\n"
     "  annotations: {kueue.x-k8s.io/pod-group-total-count: \"3\"}\nspec: {" POD "}\n",
     "6 metadata.annotations[kueue.x-k8s.io/pod-group-total-count]: the group has 3 pods, but 1 are in the submission"},
    /* claims */
    {"a claim that the pod does not declare",
     "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    resources: {claims: "
     "[{name: gup}]}\n"
     "  resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]\n",
     "7 spec.containers[0].resources.claims[0].name: the pod has no entry \"gup\" in resourceClaims (did you mean "
     "gpu?)"},
    {"neither claim nor template", POD_WITH("p", "{name: g}"),
     "5 spec.resourceClaims[0].resourceClaimTemplateName: either this or resourceClaimName must be set"},
    {"a template that nobody uses", POD_WITH("p", "{name: g, resourceClaimTemplateName: singel}") TEMPLATE("single"),
     "9 metadata.name: no workload of the submission uses ResourceClaimTemplate \"single\" (namespace default); one "
     "names \"singel\", "
     "which is not there"},
    {"a claim that two jobs share",
     POD_WITH("p", "{name: g, resourceClaimName: s}") POD_WITH("q", "{name: g, resourceClaimName: s}") CLAIM("s"),
     "7 : claim \"s\" is shared with another job of the submission: submit them as one job (oneJob, --one-job), or "
     "create the claim "
     "first and leave it out"},
    {"a claim that is allocated",
     POD_WITH("p", "{name: g, resourceClaimName: s}") CLAIM("s") "status: {allocation: {}}\n",
     "11 status.allocation: this claim has its devices already: leave the document out and the members use the claim "
     "that exists"},
    {"two of one name",
     POD_WITH("p", "{name: g, resourceClaimName: s}") POD_WITH("p", "{name: g, resourceClaimName: s}"),
     "9 metadata.name: Pod \"p\" is there twice, first in document 1"},
    {"a misspelt field of a template",
     "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t}\nspec:\n  spec:\n    devices:\n"
     "      requests:\n      - name: gpu\n        exactly: {deviceClass: c}\n",
     "9 spec.spec.devices.requests[0].exactly.deviceClass: unknown field (did you mean deviceClassName?)"},
    {"the flat shape in v1",
     "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: t}\nspec: {devices: {requests: [{name: g, "
     "deviceClassName: "
     "c}]}}\n",
     "4 spec.devices.requests[0].deviceClassName: unknown field"},
    /* GangJobs */
    {"no groups", "apiVersion: queue.dra/v1\nkind: GangJob\nmetadata: {name: g}\nspec: {groups: []}\n",
     "4 spec.groups: a job needs a group"},
    {"no duration", GANG("  maxRuntime: 2 hours\n"),
     "5 spec.maxRuntime: \"2 hours\" is no duration such as 90s, 45m or 1h30m"},
    {"a number as duration", GANG("  maxRuntime: 60\n"),
     "5 spec.maxRuntime: must be a duration such as 90m or 1h30m, not a number"},
    {"two priorities", GANG("  priority: 1\n  priorityClassName: high\n"),
     "6 spec.priorityClassName: must not stand beside priority"},
    {"a job that waits for itself", GANG("  dependsOn: [g]\n"), "5 spec.dependsOn[0]: a job cannot wait for itself"},
    {"a constraint on no group", GANG("  constraints:\n  - {matchNodeLabel: z, groups: [v]}\n"),
     "6 spec.constraints[0].groups[0]: there is no group \"v\" (did you mean w?)"},
    {"a constraint on no request", GANG("  constraints:\n  - {matchAttribute: a/b, requests: [gpu]}\n"),
     "6 spec.constraints[0].requests[0]: no claim of the job has a request \"gpu\""},
    {"an attribute without its domain", GANG("  constraints:\n  - {matchAttribute: b}\n"),
     "6 spec.constraints[0].matchAttribute: \"b\" must be an attribute's full name: domain/name"},
    {"a preferred attribute", GANG("  constraints:\n  - {matchAttribute: a/b, preferred: true}\n"),
     "6 spec.constraints[0].preferred: only node labels can be preferred; attributes are required"},
    {"a template inline that nobody uses",
     GANG(
         "  claimTemplates:\n  - {name: t, spec: {devices: {requests: [{name: g, exactly: {deviceClassName: c}}]}}}\n"),
     "6 spec.claimTemplates[0]: no group uses \"t\""},
    {"a mistake in a template inline",
     GANG("  claimTemplates:\n  - name: t\n    spec:\n      devices: {request: []}\n"),
     "8 spec.claimTemplates[0].spec.devices.request: unknown field (did you mean requests?)"},
    {"more at least than at all",
     "apiVersion: queue.dra/v1\nkind: GangJob\nmetadata: {name: g}\nspec:\n  groups:\n  - name: w\n    replicas: 2\n   "
     " minReplicas: 3\n"
     "    template: {spec: {" POD "}}\n",
     "8 spec.groups[0].minReplicas: 3 is more than replicas (2)"},
    {"one name for several members",
     "apiVersion: queue.dra/v1\nkind: GangJob\nmetadata: {name: g}\nspec:\n  groups:\n  - name: w\n    replicas: 4\n"
     "    memberName: w\n    template: {spec: {" POD "}}\n",
     "8 spec.groups[0].memberName: must hold {index}: each member needs a name of its own"},
    {"one name for the members of several jobs",
     "apiVersion: queue.dra/v1\nkind: GangJob\nmetadata: {name: g}\nspec:\n  groups:\n  - name: w\n    replicas: 4\n"
     "    jobSize: 2\n    memberName: w-{index}\n    template: {spec: {" POD "}}\n",
     "9 spec.groups[0].memberName: must hold {job}: there are several jobs of jobSize members"},
    {"a name that no host can have",
     "apiVersion: queue.dra/v1\nkind: GangJob\nmetadata: {name: g}\nspec:\n  groups:\n  - name: w\n    replicas: 4\n"
     "    memberName: 'w_{index}'\n    template: {spec: {" POD "}}\n",
     "8 spec.groups[0].memberName: must be a host's name: lower-case letters, digits, - and ., with {index} and {job} "
     "in it"},
    {"too many members",
     "apiVersion: queue.dra/v1\nkind: GangJob\nmetadata: {name: g}\nspec:\n  groups:\n"
     "  - {name: a, replicas: 6000, template: {spec: {" POD "}}}\n  - {name: b, replicas: 6000, template: {spec: {" POD
     "}}}\n",
     "5 spec.groups: 12000 members are more than 10000"},
    {"two groups of one name",
     "apiVersion: queue.dra/v1\nkind: GangJob\nmetadata: {name: g}\nspec:\n  groups:\n"
     "  - {name: a, template: {spec: {" POD "}}}\n  - {name: a, template: {spec: {" POD "}}}\n",
     "7 spec.groups[1].name: \"a\" is there twice"},
    {"a mistake in a List",
     "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: p}\n  spec:\n    "
     "container: []\n",
     "8 items[0].spec.container: unknown field (did you mean containers?)"},
};

static void test_decode__refusal(void **state)
{
    const struct refusal *c = *state;
    struct job_decode_options options = {.name_seed = 1};
    CLEANUP(manifest) *manifest = NULL;
    struct job_problem problem = {0};
    json_t *documents, *gangjobs = NULL;
    BUF got = {0};

    assert_int_equal(
        manifest_parse("in", c->text, strlen(c->text), &MANIFEST_LIMITS_DEFAULT, &manifest, &problem.error), 0);
    documents = documents_of(manifest);
    if (jobs_decode(documents, &options, &gangjobs, &problem) == 0)
        buf_adds(&got, "accepted");
    else
        problem_text(manifest, &problem, &got);
    json_decref(documents);
    json_decref(gangjobs);
    assert_string_equal(buf_str(&got), c->want);
}

/* ---- how native manifests say their placement ---- */

#define ANNOTATED(kind, name, map, key, value, spec)                                                                   \
    kind "metadata:\n  name: " name "\n  " map ": {" key ": " value "}\nspec: {" spec "}\n"
#define A_POD              "apiVersion: v1\nkind: Pod\n"
#define A_JOB              "apiVersion: batch/v1\nkind: Job\n"
#define A_JOBSET           "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
#define A_GANG             "apiVersion: queue.dra/v1\nkind: GangJob\n"
#define PLACED(kind, spec) ANNOTATED(kind, "p", "annotations", "queue.dra/placement", "pack", spec)
#define MEMBERS(meta)      "template: {" meta "spec: {" POD "}}"
#define JOINED(name, key, value)                                                                                       \
    "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: " name                                                         \
    "\n  labels: {kueue.x-k8s.io/pod-group-name: g}\n  annotations: {" key ": " value "}\nspec: {" POD "}\n"
#define ROLES "replicatedJobs: [{name: r, template: {spec: {" MEMBERS("") "}}}]"

static const struct annotation {
    const char *name;
    const char *text;
    const char *want;
} annotations[] = {
    {"a Pod", PLACED(A_POD, POD), "pack"},
    {"a Job", PLACED(A_JOB, MEMBERS("")), "pack"},
    {"a JobSet", PLACED(A_JOBSET, ROLES), "pack"},
    {"a GangJob", PLACED(A_GANG, "groups: [{name: w, " MEMBERS("") "}]"), "pack"},
    {"a label", ANNOTATED(A_JOB, "p", "labels", "queue.dra/placement", "spread", MEMBERS("")), "spread"},
    {"nothing said", A_POD "metadata: {name: p}\nspec: {" POD "}\n", "nothing"},
    {"a GangJob that says the same twice", PLACED(A_GANG, "placement: pack, groups: [{name: w, " MEMBERS("") "}]"),
     "pack"},
    {"a GangJob that contradicts itself", PLACED(A_GANG, "placement: spread, groups: [{name: w, " MEMBERS("") "}]"),
     "5 metadata.annotations[queue.dra/placement]: says pack although spread is said too"},
    {"one pod of a group may say it for all", JOINED("p", "queue.dra/placement", "pack") JOINED("q", "a", "b"), "pack"},
    {"pods of a group that contradict each other",
     JOINED("p", "queue.dra/placement", "pack") JOINED("q", "queue.dra/placement", "spread"),
     "10 : asks for another placement than p, which is part of the same job"},
    {"an odd placement", ANNOTATED(A_POD, "p", "annotations", "queue.dra/placement", "heap", POD),
     "5 metadata.annotations[queue.dra/placement]: \"heap\" is none of fragmentation, pack, spread"},
    {"a misspelt key", ANNOTATED(A_POD, "p", "annotations", "queue.dra/placment", "pack", POD),
     "5 metadata.annotations[queue.dra/placment]: unknown key (did you mean queue.dra/placement?)"},
    {"on the template of a Job it would be overlooked",
     A_JOB "metadata: {name: p}\nspec:\n  template:\n    metadata:\n      annotations: {queue.dra/placement: pack}\n"
           "    spec: {" POD "}\n",
     "7 spec.template.metadata.annotations[queue.dra/placement]: belongs to the annotations of the workload"},
    {"labels that objects of ours carry", ANNOTATED(A_POD, "p", "labels", "queue.dra/attempt", "\"1\"", POD),
     "nothing"},
};

static void placement_text(const json_t *gangjob, struct buf *out)
{
    const json_t *metadata = json_object_get(gangjob, "metadata");
    const char *placement = json_string_value(json_object_get(json_object_get(gangjob, "spec"), "placement"));

    buf_adds(out, placement ? placement : "nothing");
    if (json_object_get(json_object_get(metadata, "annotations"), "queue.dra/placement"))
        buf_adds(out, ", and the annotation is still there");
}

static void test_decode__placement(void **state)
{
    const struct annotation *c = *state;
    struct job_decode_options options = {.name_seed = 1};
    CLEANUP(manifest) *manifest = NULL;
    struct job_problem problem = {0};
    json_t *documents, *gangjobs = NULL;
    BUF got = {0};

    assert_int_equal(
        manifest_parse("in", c->text, strlen(c->text), &MANIFEST_LIMITS_DEFAULT, &manifest, &problem.error), 0);
    documents = documents_of(manifest);
    if (jobs_decode(documents, &options, &gangjobs, &problem) == 0)
        placement_text(json_array_get(gangjobs, 0), &got);
    else
        problem_text(manifest, &problem, &got);
    json_decref(documents);
    json_decref(gangjobs);
    assert_string_equal(buf_str(&got), c->want);
}

/* ---- names that are generated ---- */

static json_t *decode(const char *text, struct job_decode_options options)
{
    CLEANUP(manifest) *manifest = NULL;
    struct job_problem problem = {0};
    json_t *documents, *gangjobs = NULL;

    assert_int_equal(manifest_parse("in", text, strlen(text), &MANIFEST_LIMITS_DEFAULT, &manifest, &problem.error), 0);
    documents = documents_of(manifest);
    if (jobs_decode(documents, &options, &gangjobs, &problem) < 0)
        fail_msg("%s: %s", problem.error.field, problem.error.text);
    json_decref(documents);
    return gangjobs;
}

static void test_decode__generated_names_follow_the_seed(void **state)
{
    static const char text[] =
        "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: run-}\nspec: {template: {spec: {" POD "}}}\n";
    const struct job_decode_options seeds[] = {{.name_seed = 1}, {.name_seed = 1}, {.name_seed = 2}, {0}, {0}};
    char names[5][64];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
        json_t *gangjobs = decode(text, seeds[i]), *metadata = json_object_get(json_array_get(gangjobs, 0), "metadata");

        snprintf(names[i], sizeof(names[i]), "%s", json_string_value(json_object_get(metadata, "name")));
        assert_int_equal(strncmp(names[i], "run-", 4), 0);
        assert_int_equal(strlen(names[i]), 9);
        json_decref(gangjobs);
    }
    assert_string_equal(names[0], names[1]);
    assert_string_not_equal(names[0], names[2]);
    assert_string_not_equal(names[3], names[4]);
}

static void test_decode__the_default_namespace_is_the_callers(void **state)
{
    json_t *gangjobs = decode(JOB(""), (struct job_decode_options){.default_namespace = "team-a"});
    const json_t *metadata = json_object_get(json_array_get(gangjobs, 0), "metadata");

    (void)state;
    assert_string_equal(json_string_value(json_object_get(metadata, "namespace")), "team-a");
    json_decref(gangjobs);
}

static void test_decode__the_documents_stay_as_they_are(void **state)
{
    json_t *documents = json_loads(
        "[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"uid\":\"u\"},"
        "\"spec\":{\"hostname\":null,\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"cpu\":1}}}]}}]",
        0, NULL);
    json_t *before = json_deep_copy(documents), *gangjobs = NULL;
    struct job_decode_options options = {0};

    (void)state;
    assert_int_equal(jobs_decode(documents, &options, &gangjobs, NULL), 0);
    assert_true(json_equal(documents, before));
    json_decref(gangjobs);
    json_decref(before);
    json_decref(documents);
}

static void test_decode__lists_have_an_end(void **state)
{
    struct job_decode_options options = {0};
    struct job_problem problem = {0};
    json_t *groups = json_array(), *gangjobs = NULL, *documents;

    (void)state;
    for (int i = 0; i < 1001; i++)
        json_array_append_new(
            groups, json_pack("{s:s, s:{s:{s:[{s:s}]}}}", "name", "g", "template", "spec", "containers", "name", "c"));
    documents = json_pack("[{s:s, s:s, s:{s:s}, s:{s:o}}]", "apiVersion", "queue.dra/v1", "kind", "GangJob", "metadata",
                          "name", "j", "spec", "groups", groups);
    assert_int_equal(jobs_decode(documents, &options, &gangjobs, &problem), -1);
    assert_int_equal(problem.error.code, ERR_LIMIT);
    assert_string_equal(problem.error.field, "spec.groups");
    assert_string_equal(problem.error.text, "1001 entries are more than 1000");
    json_decref(documents);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode__generated_names_follow_the_seed),
        cmocka_unit_test(test_decode__the_default_namespace_is_the_callers),
        cmocka_unit_test(test_decode__the_documents_stay_as_they_are),
        cmocka_unit_test(test_decode__lists_have_an_end),
    };

    return RUN_TABLE(test_decode__refusal, refusals) + RUN_TABLE(test_decode__placement, annotations) +
           cmocka_run_group_tests(tests, NULL, NULL);
}
