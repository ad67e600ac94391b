#include "test/support/cmocka.h"

#include <string.h>

#include "queued/manifest/job.h"
#include "queued/manifest/yaml.h"

#define QUEUE(spec)    "apiVersion: queue.dra/v1\nkind: Queue\nmetadata: {name: q}\nspec: {" spec "}\n"
#define RESOURCE(spec) "apiVersion: queue.dra/v1\nkind: Resource\nmetadata: {name: r}\nspec: {" spec "}\n"

static const struct admin_case {
    const char *name;
    const char *text;
    const char *want;
} admin_cases[] = {
    {"a queue",
     QUEUE("parent: p, weight: 2, state: held, quotas: [{resource: h100, nominal: 16, borrowingLimit: 8, lendingLimit: "
           "4}]"),
     ""},
    {"quotas in quantities", QUEUE("quotas: [{resource: memory, nominal: 512Gi}, {resource: cpu, nominal: 1.5}]"), ""},
    {"a queue needs no spec", "apiVersion: queue.dra/v1\nkind: Queue\nmetadata: {name: q}\n", ""},
    {"a resource", RESOURCE("deviceClassName: c, selector: \"true\", capacity: memory"), ""},
    {"a priority class", "apiVersion: queue.dra/v1\nkind: PriorityClass\nmetadata: {name: p}\nspec: {value: -5}\n", ""},
    {"a misspelt field", QUEUE("quota: []"), "spec.quota: unknown field (did you mean quotas?)"},
    {"a quota twice", QUEUE("quotas: [{resource: a, nominal: 1}, {resource: a, nominal: 2}]"),
     "spec.quotas[1].resource: \"a\" is there twice"},
    {"no weight", QUEUE("weight: 0"), "spec.weight: 0 is not in 1 to 1000000"},
    {"fragmentation is a placement", QUEUE("placement: fragmentation"), ""},
    {"pack is a placement", QUEUE("placement: pack"), ""},
    {"spread is a placement", QUEUE("placement: spread"), ""},
    {"a placement of null is none", QUEUE("placement: null"), ""},
    {"an odd placement", QUEUE("placement: heap"), "spec.placement: \"heap\" is none of fragmentation, pack, spread"},
    {"an empty placement", QUEUE("placement: \"\""), "spec.placement: \"\" is none of fragmentation, pack, spread"},
    {"a placement that is no text", QUEUE("placement: {}"), "spec.placement: must be text, not an object"},
    {"a misspelt placement", QUEUE("placment: pack"), "spec.placment: unknown field (did you mean placement?)"},
    {"an odd state", QUEUE("state: closed"), "spec.state: \"closed\" is none of open, held, drained"},
    {"nothing to count", RESOURCE("capacity: memory"),
     "spec.deviceClassName: either this or selector must say which devices are counted"},
    {"a job", "apiVersion: queue.dra/v1\nkind: GangJob\nmetadata: {name: p}\n",
     "kind: a GangJob is submitted, not applied: dra-submit FILE"},
    {"another's object", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n",
     "apiVersion: Pod of v1 cannot be applied: only Queue, Resource and PriorityClass of queue.dra/v1 can"},
    {"a bad name", "apiVersion: queue.dra/v1\nkind: Queue\nmetadata: {name: Q}\n",
     "metadata.name: \"Q\" must consist of lower case letters, digits, '.' and '-', and begin and end with a letter or "
     "digit"},
    {"no object", "[]", ": every document must be an object"},
};

static void test_admin__document(void **state)
{
    const struct admin_case *c = *state;
    CLEANUP(manifest) *manifest = NULL;
    struct error err = {0};
    BUF got = {0};

    assert_int_equal(manifest_parse("in", c->text, strlen(c->text), &MANIFEST_LIMITS_DEFAULT, &manifest, &err), 0);
    if (admin_document_check(manifest_document(manifest, 0), &err) < 0)
        buf_addf(&got, "%s: %s", err.field, err.text);
    assert_string_equal(buf_str(&got), c->want);
}

int main(void)
{
    return RUN_TABLE(test_admin__document, admin_cases);
}
