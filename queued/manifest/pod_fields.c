/* The members of a pod, as the API of Kubernetes 1.37 lists them. Nothing is changed by their check but the form of
 * numbers; what they mean is the allocator's and the kubelet's business. Here stand those that queued cannot honour,
 * with the reason. */
#include <stdio.h>
#include <string.h>

#include "queued/manifest/fields.h"

#include "allocator/base/banned.h"

/* ---- metadata ---- */

#define SERVER_METADATA                                                                                                \
    {"uid", .dropped = true}, {"resourceVersion", .dropped = true}, {"generation", .dropped = true},                   \
        {"creationTimestamp", .dropped = true}, {"managedFields", .dropped = true}, {"selfLink", .dropped = true},     \
        {"deletionTimestamp", .dropped = true},                                                                        \
    {                                                                                                                  \
        "deletionGracePeriodSeconds", .dropped = true                                                                  \
    }

static const char owned[] =
    "an object that belongs to another cannot be queued by itself: submit its owner, or leave this out";
static const char finalized[] = "a job ends when its members end; finalizers cannot be honoured";

static const struct field job_metadata_rows[] = {
    {.name = "name", FIELD_STRING},
    {.name = "generateName", FIELD_STRING},
    {.name = "namespace", FIELD_STRING},
    {.name = "labels", FIELD_TEXT_MAP},
    {.name = "annotations", FIELD_TEXT_MAP},
    {.name = "ownerReferences", FIELD_LIST, .refused = owned},
    {.name = "finalizers", FIELD_LIST, .refused = finalized},
    SERVER_METADATA,
};
const struct fields job_metadata_fields = FIELDS(job_metadata_rows);

static const struct field object_metadata_rows[] = {
    {.name = "name", FIELD_STRING, .required = true},
    {"generateName", .dropped = true}, /* what exports of claims carry beside the name */
    {.name = "namespace", FIELD_STRING},
    {.name = "labels", FIELD_TEXT_MAP},
    {.name = "annotations", FIELD_TEXT_MAP},
    {.name = "ownerReferences",
     FIELD_LIST,
     .refused = "a claim that belongs to a pod is that pod's: leave this document out"},
    {.name = "finalizers", FIELD_LIST},
    SERVER_METADATA,
};
const struct fields object_metadata_fields = FIELDS(object_metadata_rows);

static const struct field template_metadata_rows[] = {
    {"name", .dropped = true}, /* members get their own names */
    {"generateName", .dropped = true},
    {"namespace", .dropped = true},
    {.name = "labels", FIELD_TEXT_MAP},
    {.name = "annotations", FIELD_TEXT_MAP},
    {.name = "ownerReferences", FIELD_LIST, .refused = owned},
    {.name = "finalizers", FIELD_LIST, .refused = finalized},
    SERVER_METADATA,
};
static const struct fields template_metadata_fields = FIELDS(template_metadata_rows);

/* ---- containers ---- */

static const struct field resource_claim_rows[] = {
    {.name = "name", FIELD_STRING, .required = true},
    {.name = "request", FIELD_STRING},
};
static const struct fields resource_claim_fields = FIELDS(resource_claim_rows);

static const struct field resources_rows[] = {
    {.name = "limits", FIELD_QUANTITY_MAP},
    {.name = "requests", FIELD_QUANTITY_MAP},
    {.name = "claims", FIELD_OBJECTS, .max = 256, .of = &resource_claim_fields},
};
static const struct fields resources_fields = FIELDS(resources_rows);

static const struct field env_rows[] = {
    {.name = "name", FIELD_STRING, .required = true},
    {.name = "value", FIELD_STRING},
    {.name = "valueFrom", FIELD_MAP},
};
static const struct fields env_fields = FIELDS(env_rows);

static const struct field port_rows[] = {
    {.name = "name", FIELD_STRING},
    {.name = "hostPort", FIELD_INT, .min = 1, .max = 65535},
    {.name = "containerPort", FIELD_INT, .min = 1, .max = 65535, .required = true},
    {.name = "protocol", FIELD_STRING},
    {.name = "hostIP", FIELD_STRING},
};
static const struct fields port_fields = FIELDS(port_rows);

static const struct field mount_rows[] = {
    {.name = "name", FIELD_STRING, .required = true},
    {.name = "readOnly", FIELD_BOOL},
    {.name = "recursiveReadOnly", FIELD_STRING},
    {.name = "mountPath", FIELD_STRING, .required = true},
    {.name = "subPath", FIELD_STRING},
    {.name = "mountPropagation", FIELD_STRING},
    {.name = "subPathExpr", FIELD_STRING},
    {.name = "bindMountOptions", FIELD_STRINGS},
};
static const struct fields mount_fields = FIELDS(mount_rows);

static const char no_resize[] = "members do not change their size while they run";

static const struct field container_rows[] = {
    {.name = "name", FIELD_STRING, .required = true},
    {.name = "image", FIELD_STRING},
    {.name = "command", FIELD_STRINGS},
    {.name = "args", FIELD_STRINGS},
    {.name = "workingDir", FIELD_STRING},
    {.name = "ports", FIELD_OBJECTS, .of = &port_fields},
    {.name = "envFrom", FIELD_LIST},
    {.name = "env", FIELD_OBJECTS, .of = &env_fields},
    {.name = "resources", FIELD_OBJECT, .of = &resources_fields},
    {.name = "resizePolicy", FIELD_LIST, .refused = no_resize},
    {.name = "restartPolicy", FIELD_STRING},
    {.name = "restartPolicyRules", FIELD_LIST},
    {.name = "volumeMounts", FIELD_OBJECTS, .of = &mount_fields},
    {.name = "volumeDevices", FIELD_LIST},
    {.name = "livenessProbe", FIELD_MAP},
    {.name = "readinessProbe", FIELD_MAP},
    {.name = "startupProbe", FIELD_MAP},
    {.name = "lifecycle", FIELD_MAP},
    {.name = "terminationMessagePath", FIELD_STRING},
    {.name = "terminationMessagePolicy", FIELD_STRING},
    {.name = "imagePullPolicy", FIELD_STRING},
    {.name = "securityContext", FIELD_MAP},
    {.name = "stdin", FIELD_BOOL},
    {.name = "stdinOnce", FIELD_BOOL},
    {.name = "tty", FIELD_BOOL},
};
static const struct fields container_fields = FIELDS(container_rows);

/* ---- where the pod may run ---- */

static const struct field toleration_rows[] = {
    {.name = "key", FIELD_STRING},    {.name = "operator", FIELD_STRING},       {.name = "value", FIELD_STRING},
    {.name = "effect", FIELD_STRING}, {.name = "tolerationSeconds", FIELD_INT},
};
static const struct fields toleration_fields = FIELDS(toleration_rows);

static const struct field expression_rows[] = {
    {.name = "key", FIELD_STRING, .required = true},
    {.name = "operator", FIELD_STRING, .required = true},
    {.name = "values", FIELD_STRINGS},
};
static const struct fields expression_fields = FIELDS(expression_rows);

static const struct field term_rows[] = {
    {.name = "matchExpressions", FIELD_OBJECTS, .of = &expression_fields},
    {.name = "matchFields", FIELD_OBJECTS, .of = &expression_fields},
};
static const struct fields term_fields = FIELDS(term_rows);

static const struct field terms_rows[] = {
    {.name = "nodeSelectorTerms", FIELD_OBJECTS, .of = &term_fields, .required = true}};
static const struct fields terms_fields = FIELDS(terms_rows);

static const struct field preferred_term_rows[] = {
    {.name = "weight", FIELD_INT, .min = 1, .max = 100, .required = true},
    {.name = "preference", FIELD_OBJECT, .of = &term_fields, .required = true},
};
static const struct fields preferred_term_fields = FIELDS(preferred_term_rows);

static const struct field node_affinity_rows[] = {
    {.name = "requiredDuringSchedulingIgnoredDuringExecution", FIELD_OBJECT, .of = &terms_fields},
    {.name = "preferredDuringSchedulingIgnoredDuringExecution", FIELD_OBJECTS, .of = &preferred_term_fields},
};
static const struct fields node_affinity_fields = FIELDS(node_affinity_rows);

static const struct field pod_affinity_rows[] = {
    {.name = "requiredDuringSchedulingIgnoredDuringExecution", FIELD_LIST},
    {.name = "preferredDuringSchedulingIgnoredDuringExecution", FIELD_LIST},
};
static const struct fields pod_affinity_fields = FIELDS(pod_affinity_rows);

static const struct field affinity_rows[] = {
    {.name = "nodeAffinity", FIELD_OBJECT, .of = &node_affinity_fields},
    {.name = "podAffinity", FIELD_OBJECT, .of = &pod_affinity_fields},
    {.name = "podAntiAffinity", FIELD_OBJECT, .of = &pod_affinity_fields},
};
static const struct fields affinity_fields = FIELDS(affinity_rows);

static const struct field spread_rows[] = {
    {.name = "maxSkew", FIELD_INT},
    {.name = "topologyKey", FIELD_STRING},
    {.name = "whenUnsatisfiable", FIELD_STRING},
    {.name = "labelSelector", FIELD_MAP},
    {.name = "minDomains", FIELD_INT},
    {.name = "nodeAffinityPolicy", FIELD_STRING},
    {.name = "nodeTaintsPolicy", FIELD_STRING},
    {.name = "matchLabelKeys", FIELD_STRINGS},
};
static const struct fields spread_fields = FIELDS(spread_rows);

/* ---- the pod ---- */

static int pod_claim_check(json_t *claim, struct error *err)
{
    bool named = json_object_get(claim, "resourceClaimName"),
         template = json_object_get(claim, "resourceClaimTemplateName");

    if (named == template)
        return error_field(
            err, "resourceClaimTemplateName", "%s",
            named ? "names a template although resourceClaimName names a claim: only one of them may be set"
                  : "either this or resourceClaimName must be set");
    return 0;
}

static const struct field pod_claim_rows[] = {
    {.name = "name", FIELD_STRING, .required = true},
    {.name = "resourceClaimName", FIELD_STRING},
    {.name = "resourceClaimTemplateName", FIELD_STRING},
};
static const struct fields pod_claim_fields = FIELDS_AND(pod_claim_rows, pod_claim_check);

static const char *const own_scheduler[] = {"default-scheduler", NULL};

static const struct field pod_spec_rows[] = {
    {.name = "volumes", FIELD_LIST},
    {.name = "initContainers", FIELD_OBJECTS, .max = 256, .of = &container_fields},
    {.name = "containers", FIELD_OBJECTS, .max = 256, .of = &container_fields, .required = true},
    {.name = "ephemeralContainers", FIELD_LIST, .refused = "they are added to running pods only"},
    {.name = "restartPolicy", FIELD_STRING},
    {.name = "terminationGracePeriodSeconds", FIELD_INT, .min = 0, .max = INT32_MAX},
    {.name = "activeDeadlineSeconds", FIELD_INT, .min = 1, .max = INT32_MAX},
    {.name = "dnsPolicy", FIELD_STRING},
    {.name = "nodeSelector", FIELD_TEXT_MAP},
    {.name = "serviceAccountName", FIELD_STRING},
    {.name = "serviceAccount", FIELD_STRING},
    {.name = "automountServiceAccountToken", FIELD_BOOL},
    {.name = "nodeName",
     FIELD_STRING,
     .refused = "the queue and kube-scheduler choose the node: use nodeSelector or a node affinity"},
    {.name = "hostNetwork", FIELD_BOOL},
    {.name = "hostPID", FIELD_BOOL},
    {.name = "hostIPC", FIELD_BOOL},
    {.name = "shareProcessNamespace", FIELD_BOOL},
    {.name = "securityContext", FIELD_MAP},
    {.name = "imagePullSecrets", FIELD_LIST},
    {.name = "hostname", FIELD_STRING},
    {.name = "subdomain", FIELD_STRING},
    {.name = "affinity", FIELD_OBJECT, .of = &affinity_fields},
    {.name = "schedulerName",
     FIELD_STRING,
     .one_of = own_scheduler,
     .refused = "placements are planned for kube-scheduler, which must then bind the pods: leave it out"},
    {.name = "tolerations", FIELD_OBJECTS, .of = &toleration_fields},
    {.name = "hostAliases", FIELD_LIST},
    {.name = "priorityClassName", FIELD_STRING},
    {.name = "priority", FIELD_INT},
    {.name = "dnsConfig", FIELD_MAP},
    {.name = "readinessGates", FIELD_LIST},
    {.name = "runtimeClassName", FIELD_STRING},
    {.name = "enableServiceLinks", FIELD_BOOL},
    {.name = "preemptionPolicy", FIELD_STRING},
    {.name = "overhead", FIELD_QUANTITY_MAP},
    {.name = "topologySpreadConstraints", FIELD_OBJECTS, .of = &spread_fields},
    {.name = "setHostnameAsFQDN", FIELD_BOOL},
    {.name = "os", FIELD_MAP},
    {.name = "hostUsers", FIELD_BOOL},
    {.name = "schedulingGates",
     FIELD_LIST,
     .refused = "a gate that somebody else must lift would leave the gang half started: leave it out, or use hold"},
    {.name = "resourceClaims", FIELD_OBJECTS, .max = 256, .of = &pod_claim_fields},
    {.name = "resources", FIELD_OBJECT, .of = &resources_fields},
    {.name = "hostnameOverride", FIELD_STRING},
    {.name = "schedulingGroup",
     FIELD_MAP,
     .refused = "the gang's PodGroup is made by queued where the cluster has them: leave it out"},
    {.name = "workloadRef",
     FIELD_MAP,
     .refused = "the gang's PodGroup is made by queued where the cluster has them: leave it out"},
    {.name = "evictionResponders", FIELD_LIST},
};

const struct fields pod_spec_fields = FIELDS_AND(pod_spec_rows, pod_spec_check);

static const struct field pod_template_rows[] = {
    {.name = "metadata", FIELD_OBJECT, .of = &template_metadata_fields},
    {.name = "spec", FIELD_OBJECT, .of = &pod_spec_fields, .required = true},
};
const struct fields pod_template_fields = FIELDS(pod_template_rows);

/* ---- rules over the whole pod spec ---- */

static const json_t *entry_named(const json_t *list, const char *name)
{
    const json_t *entry;
    size_t i;

    json_array_foreach (list, i, entry)
        if (strcmp(json_string_value(json_object_get(entry, "name")), name) == 0)
            return entry;
    return NULL;
}

static int unique_names(const json_t *list, struct error *err)
{
    const json_t *entry;
    size_t i;

    json_array_foreach (list, i, entry) {
        const char *name = json_string_value(json_object_get(entry, "name"));

        if (entry_named(list, name) != entry)
            return error_field(err, "name", "\"%.63s\" is there twice", name), error_in(err, "[%zu]", i);
    }
    return 0;
}

static const char *claim_name_of(const void *ctx, size_t i)
{
    return json_string_value(json_object_get(json_array_get(ctx, i), "name"));
}

/* Each claim that a container uses is declared by the pod. */
static int container_claims_check(const json_t *container, const json_t *declared, struct error *err)
{
    const json_t *claims = json_object_get(json_object_get(container, "resources"), "claims"), *claim;
    size_t i;

    json_array_foreach (claims, i, claim) {
        const char *name = json_string_value(json_object_get(claim, "name")), *close;

        if (entry_named(declared, name))
            continue;
        close = closest_name(name, claim_name_of, declared, json_array_size(declared));
        error_field(err, "name", "the pod has no entry \"%.63s\" in resourceClaims%s%s%s", name,
                    close ? " (did you mean " : "", close ? close : "", close ? "?)" : "");
        return error_in(err, "resources.claims[%zu]", i);
    }
    return 0;
}

int pod_spec_check(json_t *spec, struct error *err)
{
    static const char *const lists[] = {"initContainers", "containers"};
    const json_t *declared = json_object_get(spec, "resourceClaims"), *container;
    size_t i;

    if (json_array_size(json_object_get(spec, "containers")) == 0)
        return error_field(err, "containers", "a pod needs a container");
    if (unique_names(declared, err) < 0)
        return error_in(err, "resourceClaims");
    for (size_t k = 0; k < ARRAY_SIZE(lists); k++) {
        const json_t *list = json_object_get(spec, lists[k]);

        if (unique_names(list, err) < 0)
            return error_in(err, "%s", lists[k]);
        json_array_foreach (list, i, container)
            if (container_claims_check(container, declared, err) < 0)
                return error_in(err, "%s[%zu]", lists[k], i);
    }
    return 0;
}
