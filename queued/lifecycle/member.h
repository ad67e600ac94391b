/* queued/lifecycle/member.h - the pod of one member: the user's template, placed, held and told who it is. Pure. */
#ifndef QUEUED_LIFECYCLE_MEMBER_H
#define QUEUED_LIFECYCLE_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "queued/manifest/job.h"

struct member_input {
    const struct job_spec *spec;
    const struct job_group *group;
    const struct job_group *first_group; /* whose member 0 is the master */
    json_t *labels;                      /* of the attempt */
    const char *name, *node;
    const char *service;   /* in whose domain members find each other, or NULL */
    const char *pod_group; /* that it joins, or NULL */
    bool is_bound_by_us;   /* not by kube-scheduler */
    const char *consumes;  /* the ProvisioningRequest whose room it takes, or NULL */
    const char *consumes_class;
    char **claim_names; /* per entry of the group's claims: the claim in the cluster */
    int64_t job, attempt;
    size_t turn;                                /* see placed_member; 0: none */
    size_t index, group_size, rank, world_size; /* group_size: members of the group in this attempt */
};

/* A new v1 Pod. */
json_t *member_pod(const struct member_input *member);

#endif
