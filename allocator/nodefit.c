#include "allocator/nodefit.h"

#include <string.h>

#include "allocator/base/banned.h"

static bool tolerated(const struct pod_rules *pod, const struct taint *taint)
{
    for (size_t i = 0; i < pod->n_tolerations; i++)
        if (toleration_covers(&pod->tolerations[i], taint))
            return true;
    return false;
}

static bool tolerates_key(const struct pod_rules *pod, const char *key)
{
    const struct taint taint = {.key = key, .value = "", .effect = EFFECT_NO_SCHEDULE, .effect_text = "NoSchedule"};

    return tolerated(pod, &taint);
}

static const struct taint *first_taint(const struct pod_rules *pod, const struct node_info *node)
{
    for (size_t i = 0; i < node->n_taints; i++) {
        const struct taint *taint = &node->taints[i];

        if ((taint->effect == EFFECT_NO_SCHEDULE || taint->effect == EFFECT_NO_EXECUTE) && !tolerated(pod, taint))
            return taint;
    }
    return NULL;
}

static const char *first_missing_label(const struct pod_rules *pod, const struct node_info *node)
{
    for (size_t i = 0; i < pod->n_selector; i++) {
        const char *value = node_label(node, pod->selector[i].key);

        if (!value || strcmp(value, pod->selector[i].value) != 0)
            return pod->selector[i].key;
    }
    return NULL;
}

static const char *first_affinity_key(const struct node_selector *affinity)
{
    for (size_t t = 0; t < affinity->n_terms; t++) {
        if (affinity->terms[t].n_expressions)
            return affinity->terms[t].expressions[0].key;
        if (affinity->terms[t].n_fields)
            return affinity->terms[t].fields[0].key;
    }
    return NULL;
}

/* Cordoned nodes and nodes that are not ready carry taints too, as soon as the controller has seen them; what the taint
 * means is said rather than its key. */
struct node_finding node_admits(const struct pod_rules *pod, const struct node_info *node)
{
    const char *label = first_missing_label(pod, node);
    const struct taint *taint;

    if (pod->node_name && strcmp(pod->node_name, node->name) != 0)
        return (struct node_finding){.obstacle = NODE_OTHER_NAME, .detail = pod->node_name};
    if (label)
        return (struct node_finding){.obstacle = NODE_SELECTOR, .detail = label};
    if (pod->affinity && !node_selector_matches(pod->affinity, node))
        return (struct node_finding){.obstacle = NODE_AFFINITY, .detail = first_affinity_key(pod->affinity)};
    if (node->unschedulable && !tolerates_key(pod, "node.kubernetes.io/unschedulable"))
        return (struct node_finding){.obstacle = NODE_UNSCHEDULABLE};
    if (!node->ready && !tolerates_key(pod, "node.kubernetes.io/not-ready"))
        return (struct node_finding){.obstacle = NODE_NOT_READY};
    taint = first_taint(pod, node);
    if (taint)
        return (struct node_finding){.obstacle = NODE_TAINTED, .detail = taint->key, .taint = taint};
    return (struct node_finding){.obstacle = NODE_ADMITS};
}

int64_t scheduler_units(const char *resource, const struct quantity *amount)
{
    int64_t out;
    bool exact = strcmp(resource, "cpu") == 0 ? quantity_to_milli(amount, &out) : quantity_to_int(amount, &out);

    if (exact)
        return out;
    return quantity_sign(amount) < 0 ? INT64_MIN / 2 : INT64_MAX / 2;
}

static int64_t amount_of(const struct resource_amount *amounts, size_t n, const char *resource)
{
    for (size_t i = 0; i < n; i++)
        if (amounts[i].name == resource || strcmp(amounts[i].name, resource) == 0)
            return scheduler_units(resource, &amounts[i].amount);
    return 0;
}

int64_t node_allocatable(const struct node_info *node, const char *resource)
{
    return amount_of(node->allocatable, node->n_allocatable, resource);
}

int64_t node_used(const struct node_use *use, const char *resource)
{
    return amount_of(use->resources, use->n_resources, resource);
}

static bool is_every_address(const char *ip)
{
    return !ip || !*ip || strcmp(ip, "0.0.0.0") == 0;
}

static const char *protocol_of(const struct host_port *port)
{
    return port->protocol && *port->protocol ? port->protocol : "TCP";
}

bool host_ports_clash(const struct host_port *a, const struct host_port *b)
{
    if (a->port != b->port || strcmp(protocol_of(a), protocol_of(b)) != 0)
        return false;
    return is_every_address(a->ip) || is_every_address(b->ip) || strcmp(a->ip, b->ip) == 0;
}
