/* allocator/nodefit.h - internal: may this pod run on this node, devices aside.
 *
 * Source: kube-scheduler's filters NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts and
 * NodeResourcesFit. Departure: a node whose condition Ready is not True is refused even before the node controller has
 * put its taints on, because a gang that is started now would meet them. */
#ifndef QUEUED_NODEFIT_H
#define QUEUED_NODEFIT_H

#include "allocator/nodecheck.h" /* scheduler_units() */
#include "allocator/pod.h"

enum node_obstacle {
    NODE_ADMITS,
    NODE_OTHER_NAME,    /* spec.nodeName names another node */
    NODE_UNSCHEDULABLE, /* cordoned */
    NODE_NOT_READY,     /* and the pod does not tolerate node.kubernetes.io/not-ready */
    NODE_TAINTED,       /* `detail` is the taint */
    NODE_SELECTOR,      /* nodeSelector: `detail` is the label */
    NODE_AFFINITY,      /* required node affinity; `detail` is its first key */
    NODE_PORT,          /* `detail` is the host port */
    NODE_RESOURCE,      /* `detail` is the resource */
};

struct node_finding {
    enum node_obstacle obstacle;
    const char *detail;        /* borrowed from the pod or the node; NULL when there is none */
    const struct taint *taint; /* for NODE_TAINTED */
    int64_t port;              /* for NODE_PORT */
    int64_t asked, left;       /* for NODE_RESOURCE, in the scheduler's unit */
};

/* The filters that do not depend on what runs on the node. */
struct node_finding node_admits(const struct pod_rules *pod, const struct node_info *node);

/* How much the node has of a resource, and how much of it its pods use, in the scheduler's unit. */
int64_t node_allocatable(const struct node_info *node, const char *resource);
int64_t node_used(const struct node_use *use, const char *resource);

/* Whether two host ports cannot be on one node. */
bool host_ports_clash(const struct host_port *a, const struct host_port *b);

#endif
