#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "allocator/internal.h"
#include "allocator/nodefit.h"

#include "allocator/base/banned.h"

static json_t *parsed(const char *text)
{
    json_error_t error;
    json_t *value = json_loads(text, JSON_DECODE_ANY, &error);

    if (!value)
        print_message("%s: %s\n", text, error.text);
    assert_non_null(value);
    return value;
}

/* ---- filters ---- */

#define READY "'status':{'conditions':[{'type':'Ready','status':'True'}]}"

static const struct filter_case {
    const char *name;
    const char *pod;  /* the spec */
    const char *node; /* the object without its kind; single quotes for double ones */
    enum node_obstacle want;
    const char *detail;
} filter_cases[] = {
    {"a plain pod goes anywhere", "{}", "{'metadata':{'name':'n1'}," READY "}", NODE_ADMITS, NULL},
    {"another node is named", "{'nodeName':'n2'}", "{'metadata':{'name':'n1'}," READY "}", NODE_OTHER_NAME, "n2"},
    {"this node is named", "{'nodeName':'n1'}", "{'metadata':{'name':'n1'}," READY "}", NODE_ADMITS, NULL},
    {"a label of the node selector is missing", "{'nodeSelector':{'zone':'a'}}", "{'metadata':{'name':'n1'}," READY "}",
     NODE_SELECTOR, "zone"},
    {"a label has another value", "{'nodeSelector':{'zone':'a'}}",
     "{'metadata':{'name':'n1','labels':{'zone':'b'}}," READY "}", NODE_SELECTOR, "zone"},
    {"all labels hold", "{'nodeSelector':{'zone':'a','disk':'ssd'}}",
     "{'metadata':{'name':'n1','labels':{'zone':'a','disk':'ssd'}}," READY "}", NODE_ADMITS, NULL},
    {"required affinity does not match",
     "{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':"
     "[{'matchExpressions':[{'key':'driver','operator':'Gt','values':['500']}]}]}}}}",
     "{'metadata':{'name':'n1','labels':{'driver':'470'}}," READY "}", NODE_AFFINITY, "driver"},
    {"terms of affinity are ored",
     "{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':"
     "[{'matchExpressions':[{'key':'a','operator':'Exists'}]},"
     "{'matchFields':[{'key':'metadata.name','operator':'In','values':['n1']}]}]}}}}",
     "{'metadata':{'name':'n1'}," READY "}", NODE_ADMITS, NULL},
    {"cordoned", "{}", "{'metadata':{'name':'n1'},'spec':{'unschedulable':true}," READY "}", NODE_UNSCHEDULABLE, NULL},
    {"cordoned, tolerated", "{'tolerations':[{'key':'node.kubernetes.io/unschedulable','operator':'Exists'}]}",
     "{'metadata':{'name':'n1'},'spec':{'unschedulable':true}," READY "}", NODE_ADMITS, NULL},
    {"not ready", "{}", "{'metadata':{'name':'n1'},'status':{'conditions':[{'type':'Ready','status':'Unknown'}]}}",
     NODE_NOT_READY, NULL},
    {"a taint is not tolerated", "{}",
     "{'metadata':{'name':'n1'},'spec':{'taints':[{'key':'team','value':'a','effect':'NoSchedule'}]}," READY "}",
     NODE_TAINTED, "team"},
    {"a preference repels nobody", "{}",
     "{'metadata':{'name':'n1'},'spec':{'taints':[{'key':'team','value':'a','effect':'PreferNoSchedule'}]}," READY "}",
     NODE_ADMITS, NULL},
    {"a taint is tolerated by value",
     "{'tolerations':[{'key':'team','operator':'Equal','value':'a','effect':'NoSchedule'}]}",
     "{'metadata':{'name':'n1'},'spec':{'taints':[{'key':'team','value':'a','effect':'NoSchedule'}]}," READY "}",
     NODE_ADMITS, NULL},
    {"a toleration of another value", "{'tolerations':[{'key':'team','value':'b'}]}",
     "{'metadata':{'name':'n1'},'spec':{'taints':[{'key':'team','value':'a','effect':'NoExecute'}]}," READY "}",
     NODE_TAINTED, "team"},
    {"everything is tolerated", "{'tolerations':[{'operator':'Exists'}]}",
     "{'metadata':{'name':'n1'},'spec':{'taints':[{'key':'team','value':'a','effect':'NoExecute'}]}," READY "}",
     NODE_ADMITS, NULL},
};

static char *with_quotes(const char *text)
{
    char *copy = mem_strdup(text);

    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return copy;
}

static json_t *quoted(const char *text)
{
    char *copy = with_quotes(text);
    json_t *value = parsed(copy);

    free(copy);
    return value;
}

static void test_node_admits__case(void **state)
{
    const struct filter_case *c = *state;
    json_t *pod = json_pack("{s:o}", "spec", quoted(c->pod)), *object = quoted(c->node);
    struct features features = features_default(37);
    struct arena arena;
    struct load load = {.arena = &arena, .features = &features};
    struct node_info node = {0};
    struct pod_rules rules;
    struct error err = {0};
    struct node_finding finding;

    arena_init(&arena);
    assert_int_equal(pod_rules_parse(pod, NULL, &arena, &rules, &err), 0);
    assert_int_equal(node_info_parse(object, &load, &node, &err), 0);
    finding = node_admits(&rules, &node);
    assert_int_equal(finding.obstacle, c->want);
    if (c->detail)
        assert_string_equal(finding.detail, c->detail);
    json_decref(pod);
    json_decref(object);
    arena_release(&node.arena);
    arena_release(&arena);
}

/* ---- what is refused ---- */

static const struct refusal_case {
    const char *name;
    const char *spec;
    const char *field; /* NULL: accepted */
} refusal_cases[] = {
    {"required affinity between pods",
     "{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'zone'}]}}}",
     "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"},
    {"required anti-affinity",
     "{'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'zone'}]}}}",
     "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"},
    {"preferred affinity is only a wish",
     "{'affinity':{'podAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1}]}}}", NULL},
    {"a spread that must hold", "{'topologySpreadConstraints':[{'whenUnsatisfiable':'DoNotSchedule'}]}",
     "spec.topologySpreadConstraints[0]"},
    {"a spread without a word must hold", "{'topologySpreadConstraints':[{'maxSkew':1}]}",
     "spec.topologySpreadConstraints[0]"},
    {"a spread that is a wish", "{'topologySpreadConstraints':[{'whenUnsatisfiable':'ScheduleAnyway'}]}", NULL},
    {"a node selector that is no text", "{'nodeSelector':{'a':1}}", "spec.nodeSelector"},
    {"a broken affinity",
     "{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':"
     "[{'matchExpressions':[{'key':'a','operator':'Like'}]}]}}}}",
     "spec.affinity.nodeAffinity"},
};

static void test_pod_rules__refusal(void **state)
{
    const struct refusal_case *c = *state;
    json_t *pod = json_pack("{s:o}", "spec", quoted(c->spec));
    struct arena arena;
    struct pod_rules rules;
    struct error err = {0};
    int rc;

    arena_init(&arena);
    rc = pod_rules_parse(pod, NULL, &arena, &rules, &err);
    assert_int_equal(rc, c->field ? -1 : 0);
    if (c->field)
        assert_string_equal(err.field, c->field);
    json_decref(pod);
    arena_release(&arena);
}

/* ---- ports ---- */

static const struct port_case {
    const char *name;
    struct host_port a, b;
    bool clash;
} port_cases[] = {
    {"the same port", {"", "TCP", 80}, {"0.0.0.0", "TCP", 80}, true},
    {"another port", {"", "TCP", 80}, {"", "TCP", 81}, false},
    {"another protocol", {"", "TCP", 80}, {"", "UDP", 80}, false},
    {"no protocol is TCP", {"", "", 80}, {"", "TCP", 80}, true},
    {"two addresses", {"10.0.0.1", "TCP", 80}, {"10.0.0.2", "TCP", 80}, false},
    {"an address and all", {"10.0.0.1", "TCP", 80}, {"0.0.0.0", "TCP", 80}, true},
};

static void test_host_ports_clash__case(void **state)
{
    const struct port_case *c = *state;

    assert_int_equal(host_ports_clash(&c->a, &c->b), c->clash);
    assert_int_equal(host_ports_clash(&c->b, &c->a), c->clash);
}

int main(void)
{
    return RUN_TABLE(test_node_admits__case, filter_cases) + RUN_TABLE(test_pod_rules__refusal, refusal_cases) +
           RUN_TABLE(test_host_ports_clash__case, port_cases);
}
