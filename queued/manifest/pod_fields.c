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
    {"name", FIELD_STRING},
    {"generateName", FIELD_STRING},
    {"namespace", FIELD_STRING},
    {"labels", FIELD_TEXT_MAP},
    {"annotations", FIELD_TEXT_MAP},
    {"ownerReferences", FIELD_LIST, .refused = owned},
    {"finalizers", FIELD_LIST, .refused = finalized},
    SERVER_METADATA,
};
const struct fields job_metadata_fields = FIELDS(job_metadata_rows);

static const struct field object_metadata_rows[] = {
    {"name", FIELD_STRING, .required = true},
    {"generateName", .dropped = true}, /* what exports of claims carry beside the name */
    {"namespace", FIELD_STRING},
    {"labels", FIELD_TEXT_MAP},
    {"annotations", FIELD_TEXT_MAP},
    {"ownerReferences", FIELD_LIST, .refused = "a claim that belongs to a pod is that pod's: leave this document out"},
    {"finalizers", FIELD_LIST},
    SERVER_METADATA,
};
const struct fields object_metadata_fields = FIELDS(object_metadata_rows);

static const struct field template_metadata_rows[] = {
    {"name", .dropped = true}, /* members get their own names */
    {"generateName", .dropped = true},
    {"namespace", .dropped = true},
    {"labels", FIELD_TEXT_MAP},
    {"annotations", FIELD_TEXT_MAP},
    {"ownerReferences", FIELD_LIST, .refused = owned},
    {"finalizers", FIELD_LIST, .refused = finalized},
    SERVER_METADATA,
};
static const struct fields template_metadata_fields = FIELDS(template_metadata_rows);

/* ---- containers ---- */

static const struct field resource_claim_rows[] = {
    {"name", FIELD_STRING, .required = true},
    {"request", FIELD_STRING},
};
static const struct fields resource_claim_fields = FIELDS(resource_claim_rows);

static const struct field resources_rows[] = {
    {"limits", FIELD_QUANTITY_MAP},
    {"requests", FIELD_QUANTITY_MAP},
    {"claims", FIELD_OBJECTS, .of = &resource_claim_fields},
};
static const struct fields resources_fields = FIELDS(resources_rows);

static const struct field env_rows[] = {
    {"name", FIELD_STRING, .required = true},
    {"value", FIELD_STRING},
    {"valueFrom", FIELD_MAP},
};
static const struct fields env_fields = FIELDS(env_rows);

static const struct field port_rows[] = {
    {"name", FIELD_STRING},
    {"hostPort", FIELD_INT, .min = 1, .max = 65535},
    {"containerPort", FIELD_INT, .min = 1, .max = 65535, .required = true},
    {"protocol", FIELD_STRING},
    {"hostIP", FIELD_STRING},
};
static const struct fields port_fields = FIELDS(port_rows);

static const struct field mount_rows[] = {
    {"name", FIELD_STRING, .required = true},
    {"readOnly", FIELD_BOOL},
    {"recursiveReadOnly", FIELD_STRING},
    {"mountPath", FIELD_STRING, .required = true},
    {"subPath", FIELD_STRING},
    {"mountPropagation", FIELD_STRING},
    {"subPathExpr", FIELD_STRING},
    {"bindMountOptions", FIELD_STRINGS},
};
static const struct fields mount_fields = FIELDS(mount_rows);

static const char no_resize[] = "members do not change their size while they run";

static const struct field container_rows[] = {
    {"name", FIELD_STRING, .required = true},
    {"image", FIELD_STRING},
    {"command", FIELD_STRINGS},
    {"args", FIELD_STRINGS},
    {"workingDir", FIELD_STRING},
    {"ports", FIELD_OBJECTS, .of = &port_fields},
    {"envFrom", FIELD_LIST},
    {"env", FIELD_OBJECTS, .of = &env_fields},
    {"resources", FIELD_OBJECT, .of = &resources_fields},
    {"resizePolicy", FIELD_LIST, .refused = no_resize},
    {"restartPolicy", FIELD_STRING},
    {"restartPolicyRules", FIELD_LIST},
    {"volumeMounts", FIELD_OBJECTS, .of = &mount_fields},
    {"volumeDevices", FIELD_LIST},
    {"livenessProbe", FIELD_MAP},
    {"readinessProbe", FIELD_MAP},
    {"startupProbe", FIELD_MAP},
    {"lifecycle", FIELD_MAP},
    {"terminationMessagePath", FIELD_STRING},
    {"terminationMessagePolicy", FIELD_STRING},
    {"imagePullPolicy", FIELD_STRING},
    {"securityContext", FIELD_MAP},
    {"stdin", FIELD_BOOL},
    {"stdinOnce", FIELD_BOOL},
    {"tty", FIELD_BOOL},
};
static const struct fields container_fields = FIELDS(container_rows);

/* ---- where the pod may run ---- */

static const struct field toleration_rows[] = {
    {"key", FIELD_STRING},    {"operator", FIELD_STRING},       {"value", FIELD_STRING},
    {"effect", FIELD_STRING}, {"tolerationSeconds", FIELD_INT},
};
static const struct fields toleration_fields = FIELDS(toleration_rows);

static const struct field expression_rows[] = {
    {"key", FIELD_STRING, .required = true},
    {"operator", FIELD_STRING, .required = true},
    {"values", FIELD_STRINGS},
};
static const struct fields expression_fields = FIELDS(expression_rows);

static const struct field term_rows[] = {
    {"matchExpressions", FIELD_OBJECTS, .of = &expression_fields},
    {"matchFields", FIELD_OBJECTS, .of = &expression_fields},
};
static const struct fields term_fields = FIELDS(term_rows);

static const struct field terms_rows[] = {{"nodeSelectorTerms", FIELD_OBJECTS, .of = &term_fields, .required = true}};
static const struct fields terms_fields = FIELDS(terms_rows);

static const struct field preferred_term_rows[] = {
    {"weight", FIELD_INT, .min = 1, .max = 100, .required = true},
    {"preference", FIELD_OBJECT, .of = &term_fields, .required = true},
};
static const struct fields preferred_term_fields = FIELDS(preferred_term_rows);

static const struct field node_affinity_rows[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution", FIELD_OBJECT, .of = &terms_fields},
    {"preferredDuringSchedulingIgnoredDuringExecution", FIELD_OBJECTS, .of = &preferred_term_fields},
};
static const struct fields node_affinity_fields = FIELDS(node_affinity_rows);

static const struct field pod_affinity_rows[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution", FIELD_LIST},
    {"preferredDuringSchedulingIgnoredDuringExecution", FIELD_LIST},
};
static const struct fields pod_affinity_fields = FIELDS(pod_affinity_rows);

static const struct field affinity_rows[] = {
    {"nodeAffinity", FIELD_OBJECT, .of = &node_affinity_fields},
    {"podAffinity", FIELD_OBJECT, .of = &pod_affinity_fields},
    {"podAntiAffinity", FIELD_OBJECT, .of = &pod_affinity_fields},
};
static const struct fields affinity_fields = FIELDS(affinity_rows);

static const struct field spread_rows[] = {
    {"maxSkew", FIELD_INT},
    {"topologyKey", FIELD_STRING},
    {"whenUnsatisfiable", FIELD_STRING},
    {"labelSelector", FIELD_MAP},
    {"minDomains", FIELD_INT},
    {"nodeAffinityPolicy", FIELD_STRING},
    {"nodeTaintsPolicy", FIELD_STRING},
    {"matchLabelKeys", FIELD_STRINGS},
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
    {"name", FIELD_STRING, .required = true},
    {"resourceClaimName", FIELD_STRING},
    {"resourceClaimTemplateName", FIELD_STRING},
};
static const struct fields pod_claim_fields = FIELDS_AND(pod_claim_rows, pod_claim_check);

static const char *const own_scheduler[] = {"default-scheduler", NULL};

static const struct field pod_spec_rows[] = {
    {"volumes", FIELD_LIST},
    {"initContainers", FIELD_OBJECTS, .of = &container_fields},
    {"containers", FIELD_OBJECTS, .of = &container_fields, .required = true},
    {"ephemeralContainers", FIELD_LIST, .refused = "they are added to running pods only"},
    {"restartPolicy", FIELD_STRING},
    {"terminationGracePeriodSeconds", FIELD_INT, .min = 0, .max = INT32_MAX},
    {"activeDeadlineSeconds", FIELD_INT, .min = 1, .max = INT32_MAX},
    {"dnsPolicy", FIELD_STRING},
    {"nodeSelector", FIELD_TEXT_MAP},
    {"serviceAccountName", FIELD_STRING},
    {"serviceAccount", FIELD_STRING},
    {"automountServiceAccountToken", FIELD_BOOL},
    {"nodeName", FIELD_STRING,
     .refused = "the queue and kube-scheduler choose the node: use nodeSelector or a node affinity"},
    {"hostNetwork", FIELD_BOOL},
    {"hostPID", FIELD_BOOL},
    {"hostIPC", FIELD_BOOL},
    {"shareProcessNamespace", FIELD_BOOL},
    {"securityContext", FIELD_MAP},
    {"imagePullSecrets", FIELD_LIST},
    {"hostname", FIELD_STRING},
    {"subdomain", FIELD_STRING},
    {"affinity", FIELD_OBJECT, .of = &affinity_fields},
    {"schedulerName", FIELD_STRING, .one_of = own_scheduler,
     .refused = "placements are planned for kube-scheduler, which must then bind the pods: leave it out"},
    {"tolerations", FIELD_OBJECTS, .of = &toleration_fields},
    {"hostAliases", FIELD_LIST},
    {"priorityClassName", FIELD_STRING},
    {"priority", FIELD_INT},
    {"dnsConfig", FIELD_MAP},
    {"readinessGates", FIELD_LIST},
    {"runtimeClassName", FIELD_STRING},
    {"enableServiceLinks", FIELD_BOOL},
    {"preemptionPolicy", FIELD_STRING},
    {"overhead", FIELD_QUANTITY_MAP},
    {"topologySpreadConstraints", FIELD_OBJECTS, .of = &spread_fields},
    {"setHostnameAsFQDN", FIELD_BOOL},
    {"os", FIELD_MAP},
    {"hostUsers", FIELD_BOOL},
    {"schedulingGates", FIELD_LIST,
     .refused = "a gate that somebody else must lift would leave the gang half started: leave it out, or use hold"},
    {"resourceClaims", FIELD_OBJECTS, .of = &pod_claim_fields},
    {"resources", FIELD_OBJECT, .of = &resources_fields},
    {"hostnameOverride", FIELD_STRING},
    {"schedulingGroup", FIELD_MAP,
     .refused = "the gang's PodGroup is made by queued where the cluster has them: leave it out"},
    {"workloadRef", FIELD_MAP,
     .refused = "the gang's PodGroup is made by queued where the cluster has them: leave it out"},
    {"evictionResponders", FIELD_LIST},
};

const struct fields pod_spec_fields = FIELDS_AND(pod_spec_rows, pod_spec_check);

static const struct field pod_template_rows[] = {
    {"metadata", FIELD_OBJECT, .of = &template_metadata_fields},
    {"spec", FIELD_OBJECT, .of = &pod_spec_fields, .required = true},
};
const struct fields pod_template_fields = FIELDS(pod_template_rows);

/* ---- rules over the whole pod spec ---- */

static const json_t *entry_named(const json_t *list, const char *name)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(list, i,
                       entry) if (strcmp(json_string_value(json_object_get(entry, "name")), name) == 0) return entry;
    return NULL;
}

static int unique_names(const json_t *list, struct error *err)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(list, i, entry)
    {
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

    json_array_foreach(claims, i, claim)
    {
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
        json_array_foreach(list, i, container) if (container_claims_check(container, declared, err) <
                                                   0) return error_in(err, "%s[%zu]", lists[k], i);
    }
    return 0;
}
