/* queued/lifecycle/objects.h - what an attempt creates in the cluster: the exact objects, made from a placement.
 *
 * In the order of creation: the anchor (a ConfigMap that will own everything), a headless Service for stable host
 * names (unless the job wants none), where the cluster has them a PodGroup (kube-scheduler then holds the gang together as a second guard, behind
 * the gates), the ResourceClaims, steered to the planned devices, and the pods, gated and bound to their nodes by
 * required affinity. A gang that we bind ourselves has no PodGroup, and instead of the gates a scheduler's name that
 * nobody answers to. Names derive from job and attempt alone, so that creating again finds what is there. Pure.
 *
 * At the end stand claims that nobody creates: what the plan takes through claims that exist already, or that
 * kube-scheduler makes itself for extended resources. They only count in the simulation, until the scheduler has
 * decided (assume.c).
 *
 * Members find each other by environment: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun and its kin expect
 * them, JOB_COMPLETION_INDEX as an Indexed Job sets it (within its own job for the jobs of a JobSet; QUEUED_JOB_INDEX
 * is that job's), and QUEUED_JOB, QUEUED_JOB_ID, QUEUED_ATTEMPT, QUEUED_GROUP, QUEUED_INDEX, QUEUED_GROUP_SIZE. What
 * the user's container sets already stays. Labels and annotations of the Job and JobSet controllers that carry indexes
 * and names are there too. Host names are <group>-<index>, for a Job <job>-<index>, for a JobSet
 * <jobset>-<role>-<job>-<index> (memberName), in the domain of the attempt's Service (not in one called like the
 * JobSet: two attempts, or two jobs of a name, would share it). */
#ifndef QUEUED_LIFECYCLE_OBJECTS_H
#define QUEUED_LIFECYCLE_OBJECTS_H

#include <stdint.h>

#include <jansson.h>

#include "allocator/gang.h"
#include "queued/admission/bind.h"
#include "queued/manifest/job.h"

#define LAUNCH_GATE        "queue.dra/gang"
#define LABEL_ASSUMED      "queue.dra/assumed" /* on claims that only count in the simulation */
#define ANNOTATION_UNTIL   "queue.dra/until" /* on those: the pod that brings the real claim with it when it is bound */
#define ANNOTATION_BIND    "queue.dra/allocated-by" /* on claims whose allocation we write: "queued" */
#define ANNOTATION_LOOSE   "queue.dra/devices"      /* on claims that admit others than the planned devices: "alike" */
#define ANNOTATION_TURN    "queue.dra/turn" /* on pods that keep their gate until those of lower turns are bound */
#define LAUNCH_MASTER_PORT "29500"
#define LAUNCH_NAME_MAX    63 /* of a DNS label: names of pods become host names */

struct objects_input {
    int64_t job, attempt;
    const char *server; /* whose database the job is in */
    const struct job_spec *spec;
    size_t shape;
    const struct placement *placement;
    const char *pod_group;           /* apiVersion of PodGroup; NULL: the cluster has none, or none is wanted */
    const char *consumes;            /* the ProvisioningRequest whose room the members take; NULL: none */
    const char *consumes_class;      /* its class */
    struct bind_classes bind;        /* claims of these classes are allocated by us: they get ANNOTATION_BIND */
    bool binds_pods;                 /* a gang that has all its devices through those is bound by us */
    const struct snapshot *snapshot; /* that the placement was made on */
};

/* A new array [{"body": object, "planned": value, "member": i}]: planned is the allocation (status.allocation) of a
 * claim, the node's name for a pod, absent for others; member counts all members from 0, absent for what no single
 * member uses. */
json_t *attempt_objects(const struct objects_input *input);

/* The placement as the API shows it: members with pod, node, claims and devices. New reference. */
json_t *attempt_placement_view(const struct objects_input *input);
/* The alternatives of firstAvailable that were taken: [{"claim", "request", "alternative"}], each once. New reference.
 */
json_t *attempt_chosen(const struct objects_input *input);

/* A name of at most LAUNCH_NAME_MAX bytes that is a DNS label if its parts are: the text, or its beginning and a hash
 * of the whole where it is too long. Dots become dashes. To free(). */
char *launch_name(const char *text);
/* "<job>-<id>-<attempt>": the anchor, the Service, and the beginning of all other names. To free(). */
char *attempt_name(const char *job_name, int64_t job, int64_t attempt);

#endif
