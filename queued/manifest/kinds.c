/* Which kinds can be read, and what to say about the others. */
#include <string.h>

#include "queued/manifest/decode.h"
#include "queued/manifest/fields.h"
#include "queued/manifest/job.h"

#include "allocator/base/banned.h"

static const struct kind kinds[] = {
    {JOB_API_VERSION, "GangJob", KIND_WORKLOAD, gangjob_decode},
    {"batch/v1", "Job", KIND_WORKLOAD, job_decode},
    {"jobset.x-k8s.io/v1alpha2", "JobSet", KIND_WORKLOAD, jobset_decode},
    {"v1", "Pod", KIND_WORKLOAD, pod_decode},
    {"resource.k8s.io/v1", "ResourceClaimTemplate", KIND_TEMPLATE, NULL},
    {"resource.k8s.io/v1beta2", "ResourceClaimTemplate", KIND_TEMPLATE, NULL},
    {"resource.k8s.io/v1beta1", "ResourceClaimTemplate", KIND_TEMPLATE, NULL},
    {"resource.k8s.io/v1", "ResourceClaim", KIND_CLAIM, NULL},
    {"resource.k8s.io/v1beta2", "ResourceClaim", KIND_CLAIM, NULL},
    {"resource.k8s.io/v1beta1", "ResourceClaim", KIND_CLAIM, NULL},
};

#define AS_GANG  "cannot be queued as it is: write its roles as the groups of a GangJob or JobSet"
#define BESIDE   "is no work: create it with kubectl and leave it out here (dra-submit --skip)"
#define ENDLESS  "runs until it is deleted and so cannot wait in a queue of jobs: use a batch/v1 Job, a Pod or a GangJob"
#define OWN_GANG "is not needed: queued makes the gang itself; leave it out"

/* By kind; the group where the same kind exists in several, as the beginning of the version. */
static const struct {
    const char *group, *kind, *advice;
} refused_kinds[] = {
    {"apps/", "Deployment", ENDLESS},
    {"apps/", "StatefulSet", ENDLESS},
    {"apps/", "ReplicaSet", ENDLESS},
    {"apps/", "DaemonSet", ENDLESS},
    {"v1", "ReplicationController", ENDLESS},
    {"batch/", "CronJob", "makes jobs at set times: submit its jobTemplate as a batch/v1 Job when the time has come"},
    {"batch.volcano.sh/", "Job", "(Volcano's) " AS_GANG},
    {"", "MPIJob", AS_GANG},
    {"", "PyTorchJob", AS_GANG},
    {"", "TFJob", AS_GANG},
    {"", "XGBoostJob", AS_GANG},
    {"", "PaddleJob", AS_GANG},
    {"", "JAXJob", AS_GANG},
    {"", "TrainJob", AS_GANG},
    {"", "RayJob", AS_GANG},
    {"", "RayCluster", ENDLESS},
    {"", "RayService", ENDLESS},
    {"", "LeaderWorkerSet", ENDLESS},
    {"", "AppWrapper", "cannot be queued: submit what it wraps"},
    {"", "PodGroup", OWN_GANG},
    {"", "Workload", OWN_GANG},
    {"", "Namespace", BESIDE},
    {"", "ConfigMap", BESIDE},
    {"", "Secret", BESIDE},
    {"", "Service", BESIDE},
    {"", "ServiceAccount", BESIDE},
    {"", "PersistentVolumeClaim", BESIDE},
    {"resource.k8s.io/", "DeviceClass", BESIDE},
    {"resource.k8s.io/", "DeviceTaintRule", BESIDE},
    {"resource.k8s.io/", "ResourceSlice", "is published by drivers: leave it out"},
    {"scheduling.k8s.io/", "PriorityClass",
     BESIDE "; queued's own (" JOB_API_VERSION ") is made with dra-submit apply"},
    {"queue.dra/", "Queue", "is applied, not submitted: dra-submit apply"},
    {"queue.dra/", "Resource", "is applied, not submitted: dra-submit apply"},
    {"queue.dra/", "PriorityClass", "is applied, not submitted: dra-submit apply"},
    {"kueue.x-k8s.io/", "ClusterQueue", "is Kueue's: write it as a " JOB_API_VERSION " Queue for dra-submit apply"},
    {"kueue.x-k8s.io/", "LocalQueue", "is Kueue's: write it as a " JOB_API_VERSION " Queue for dra-submit apply"},
    {"kueue.x-k8s.io/", "Cohort", "is Kueue's: write it as a " JOB_API_VERSION " Queue for dra-submit apply"},
    {"kueue.x-k8s.io/", "ResourceFlavor", "is Kueue's: queued counts devices, write a " JOB_API_VERSION " Resource"},
    {"", "Queue", "is another scheduler's: write it as a " JOB_API_VERSION " Queue for dra-submit apply"},
};

static const char *kind_name_of(const void *ctx, size_t i)
{
    (void)ctx;
    return kinds[i].name;
}

static const struct kind *unknown_kind(const char *version, const char *kind, const char *name, struct error *err)
{
    const char *close;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strcmp(kinds[i].name, kind) == 0 && strcmp(kind, "Job") != 0) {
            error_field(err, "apiVersion", "%s \"%.63s\": %.60s is not read, %s is", kind, name, version,
                        kinds[i].version);
            return NULL;
        }
    for (size_t i = 0; i < ARRAY_SIZE(refused_kinds); i++)
        if (strcmp(refused_kinds[i].kind, kind) == 0 &&
            strncmp(refused_kinds[i].group, version, strlen(refused_kinds[i].group)) == 0) {
            error_field(err, "kind", "%s \"%.63s\" %s", kind, name, refused_kinds[i].advice);
            return NULL;
        }
    if (strcmp(kind, "Job") == 0) {
        error_field(err, "apiVersion", "Job \"%.63s\": %.60s is not read, batch/v1 is", name, version);
        return NULL;
    }
    close = closest_name(kind, kind_name_of, NULL, ARRAY_SIZE(kinds));
    error_field(err, "kind",
                "%.60s \"%.63s\" (%.60s) cannot be queued%s%s%s; kinds that can are Job, JobSet, Pod and GangJob", kind,
                name, version, close ? " (did you mean " : "", close ? close : "", close ? "?)" : "");
    return NULL;
}

const struct kind *kind_of(const json_t *object, struct error *err)
{
    const char *version = json_string_value(json_object_get(object, "apiVersion"));
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const json_t *metadata = json_object_get(object, "metadata");
    const char *name = json_string_value(json_object_get(metadata, "name"));

    if (!name)
        name = json_string_value(json_object_get(metadata, "generateName"));
    if (!json_is_object(object) || !kind || !*kind) {
        error_field(err, json_is_object(object) ? "kind" : "", "%s",
                    json_is_object(object) ? "is missing: every document needs apiVersion and kind"
                                           : "every document must be an object");
        return NULL;
    }
    if (!version || !*version) {
        error_field(err, "apiVersion", "is missing: every document needs apiVersion and kind");
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strcmp(kinds[i].version, version) == 0 && strcmp(kinds[i].name, kind) == 0)
            return &kinds[i];
    return unknown_kind(version, kind, name ? name : "", err);
}
