/* queued/cluster/embedded/embedded.h - a cluster made of manifest files: API server, scheduler and kubelet in little.
 *
 * Nodes, slices, classes, taint rules and whatever else exists come from the manifests of a folder (read-only).
 * Everything created through the port is kept as one JSON file per object in the state folder, written atomically, so
 * that it survives a killed server as a real cluster would. Creation is validated; a pod without gates is scheduled by
 * the same allocator that predicts; it then runs for a stated duration and ends with a stated exit code. */
#ifndef QUEUED_EMBEDDED_H
#define QUEUED_EMBEDDED_H

#include "queued/clock.h"
#include "queued/cluster/cluster.h"

/* Annotations on a pod (or its template) that say how it behaves. */
#define EMBEDDED_DURATION  "embedded.queue.dra/duration"  /* Go duration until it ends; default 10s */
#define EMBEDDED_EXIT_CODE "embedded.queue.dra/exit-code" /* default 0 */

struct embedded_options {
    const char *manifests;     /* folder (recursively *.yaml, *.yml, *.json) or file */
    const char *state;         /* folder for created objects, or NULL: in memory only */
    int release;               /* Kubernetes 1.x to behave like; 0: default */
    const char *features;      /* changes to what that release has, as features_change() reads them; NULL: none */
    bool has_pod_groups;       /* tell that PodGroups are served, as with the gate GenericWorkload */
    bool has_no_provisioning;  /* tell that ProvisioningRequests are not served */
    int64_t schedule_delay_ms; /* from ungated to bound; default 50 */
    int64_t start_delay_ms;    /* from bound to running; default 100 */
};

/* Load the folder. Objects that cannot be used are refused one by one through `warn` (may be NULL) with file, line and
 * field; -1 only when the folder cannot be read or nothing usable is in it. */
MUST_CHECK int embedded_new(const struct embedded_options *options, struct clock *clock,
                            void (*warn)(void *ctx, const struct error *err), void *ctx, struct cluster **out,
                            struct error *err);

/* Failures on command, for demonstrations and tests. `command` is a JSON object:
 *   {"fail": "create" | "remove" | "ungate" | "allocate" | "bind" | "get" | "logs", "kind": "Pod", "nth": 2,
 *    "error": "conflict" | "denied" | "invalid" | "not-found" | "timeout" | "unavailable", "words": what is answered}
 *   {"nodeDown": "n1", "silent": true} {"nodeUp": "n1"}    silent: its kubelet does nothing more, also ends no pod
 *   {"deviceTaint": {"driver","pool","device","effect","key"}} {"deviceUntaint": {...}}
 *   {"killPod": "ns/name", "exitCode": 137} {"deleteObject": {"kind","namespace","name"}} {"putObject": {...}}
 *   {"hold": "schedule"} {"release": "schedule"}           stop and resume scheduling
 *   {"lose": "stream"}                                     tell `lost`, then everything anew
 * "fail" also takes "applied": true when the request is to be carried out and only its answer lost; that is what a
 * timeout does unless it says false.
 * Returns 0, or -1 with the field at fault. */
MUST_CHECK int embedded_command(struct cluster *cluster, const json_t *command, struct error *err);

#endif
