#include "queued/lifecycle/ask_objects.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/cluster/cluster.h"
#include "queued/lifecycle/objects.h"

#include "allocator/base/banned.h"

#define MAX_PARAMETERS      100 /* types.go: MaxProperties */
#define MAX_PARAMETER_BYTES 255

const char *ask_obstacle(const struct job_spec *spec)
{
    const struct job_shape *shape = &spec->shapes[0];

    if (shape->n_groups > ASK_MAX_SETS)
        return "a request has room for 32 groups";
    for (size_t g = 0; g < shape->n_groups; g++)
        for (size_t c = 0; c < shape->groups[g].n_claims; c++) {
            const struct job_claim *claim = &shape->groups[g].claims[c];

            if (claim->source == JOB_CLAIM_SHARED)
                return "a request cannot say that members share a claim";
            if (claim->source == JOB_CLAIM_OWN && !claim->object)
                return "the template of a claim is not known";
        }
    return NULL;
}

char *ask_name(const char *job_name, int64_t job, int64_t number)
{
    size_t len = strnlen(job_name, 24); /* leaves room for the rest, as in attempt_name() */
    BUF text = {0};

    while (len > 0 && strchr("-.", job_name[len - 1]))
        len--;
    buf_addf(&text, "%.*s-%lld-ask-%lld", (int)len, job_name, (long long)job, (long long)number);
    return launch_name(buf_str(&text));
}

/* "<base>-<group>" or "<base>-<group>-<claim>". To free(). */
static char *part_name(const char *base, const char *group, const char *claim)
{
    BUF text = {0};

    buf_addf(&text, "%s-%s", base, group);
    if (claim)
        buf_addf(&text, "-%s", claim);
    return launch_name(buf_str(&text));
}

static json_t *metadata(const struct ask_input *input, const char *name)
{
    return json_pack("{s:s, s:s, s:{s:o, s:o, s:s}}", "name", name, "namespace", input->spec->ns, "labels", LABEL_JOB,
                     json_sprintf("%lld", (long long)input->job), LABEL_ASK,
                     json_sprintf("%lld", (long long)input->number), LABEL_SERVER, input->server);
}

static json_t *anchor(const struct ask_input *input, const char *base)
{
    return json_pack("{s:s, s:s, s:o, s:{s:s}}", "apiVersion", "v1", "kind", "ConfigMap", "metadata",
                     metadata(input, base), "data", "job", input->spec->name);
}

/* The fields of a request that stand flat in v1beta1, where v1 has them below `exactly`. */
static json_t *request_v1(const json_t *request)
{
    json_t *name = json_object_get(request, "name"), *exactly;

    if (json_object_get(request, "exactly") || json_object_get(request, "firstAvailable"))
        return json_deep_copy(request);
    exactly = json_deep_copy(request);
    json_object_del(exactly, "name");
    return json_pack("{s:O*, s:o}", "name", name, "exactly", exactly);
}

/* Users write templates in the version they like; ours are v1, as our claims are. */
static json_t *template_spec_v1(const json_t *spec)
{
    json_t *copy = json_deep_copy(spec), *devices = json_object_get(json_object_get(copy, "spec"), "devices");
    json_t *requests = json_array(), *request;
    size_t i;

    json_array_foreach (json_object_get(devices, "requests"), i, request)
        json_array_append_new(requests, request_v1(request));
    json_object_set_new(devices, "requests", requests);
    return copy;
}

static void add_claim_templates(const struct ask_input *input, const char *base, const struct job_group *group,
                                json_t *objects)
{
    for (size_t c = 0; c < group->n_claims; c++) {
        const struct job_claim *claim = &group->claims[c];
        char *name = part_name(base, group->name, claim->pod_claim);

        if (claim->source == JOB_CLAIM_OWN)
            json_array_append_new(objects, json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "resource.k8s.io/v1", "kind",
                                                     "ResourceClaimTemplate", "metadata", metadata(input, name), "spec",
                                                     template_spec_v1(json_object_get(claim->object, "spec"))));
        free(name);
    }
}

static json_t *claim_entries(const char *base, const struct job_group *group)
{
    json_t *entries = json_array();

    for (size_t c = 0; c < group->n_claims; c++) {
        const struct job_claim *claim = &group->claims[c];
        char *name = part_name(base, group->name, claim->pod_claim);
        bool is_own = claim->source == JOB_CLAIM_OWN;

        json_array_append_new(entries, json_pack("{s:s, s:s}", "name", claim->pod_claim,
                                                 is_own ? "resourceClaimTemplateName" : "resourceClaimName",
                                                 is_own ? name : claim->name));
        free(name);
    }
    return entries;
}

/* The pod as it would be launched, without what is only known then. */
static json_t *pod_template(const struct ask_input *input, const char *base, const struct job_group *group)
{
    json_t *spec = json_deep_copy(json_object_get(group->pod, "spec"));
    json_t *theirs = json_deep_copy(json_object_get(group->pod, "metadata"));
    char *name = part_name(base, group->name, NULL);
    json_t *object;

    json_object_del(theirs, "name");
    json_object_del(theirs, "namespace");
    json_object_del(spec, "schedulingGates");
    json_object_del(spec, "hostname");
    if (group->n_claims > 0)
        json_object_set_new(spec, "resourceClaims", claim_entries(base, group));
    if (!json_object_get(spec, "restartPolicy"))
        json_object_set_new(spec, "restartPolicy", json_string("Never"));
    object = json_pack("{s:s, s:s, s:o, s:{s:o*, s:o}}", "apiVersion", "v1", "kind", "PodTemplate", "metadata",
                       metadata(input, name), "template", "metadata", theirs, "spec", spec);
    free(name);
    return object;
}

static json_t *request(const struct ask_input *input, const char *base)
{
    const struct job_shape *shape = &input->spec->shapes[0];
    json_t *sets = json_array(), *spec;

    for (size_t g = 0; g < shape->n_groups; g++) {
        char *name = part_name(base, shape->groups[g].name, NULL);

        if (shape->groups[g].min_replicas > 0)
            json_array_append_new(sets, json_pack("{s:{s:s}, s:I}", "podTemplateRef", "name", name, "count",
                                                  (json_int_t)shape->groups[g].min_replicas));
        free(name);
    }
    spec = json_pack("{s:s, s:o}", "provisioningClassName", input->class_name, "podSets", sets);
    if (input->parameters)
        json_object_set_new(spec, "parameters", json_deep_copy(input->parameters));
    return json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", input->version, "kind", "ProvisioningRequest", "metadata",
                     metadata(input, base), "spec", spec);
}

json_t *ask_objects(const struct ask_input *input)
{
    const struct job_shape *shape = &input->spec->shapes[0];
    char *base = ask_name(input->spec->name, input->job, input->number);
    json_t *objects = json_array();

    json_array_append_new(objects, anchor(input, base));
    for (size_t g = 0; g < shape->n_groups; g++)
        add_claim_templates(input, base, &shape->groups[g], objects);
    for (size_t g = 0; g < shape->n_groups; g++)
        json_array_append_new(objects, pod_template(input, base, &shape->groups[g]));
    json_array_append_new(objects, request(input, base));
    free(base);
    return objects;
}

/* ---- parameters ---- */

static int add_parameter(json_t *parameters, char *pair, struct error *err)
{
    char *equals = strchr(pair, '=');

    if (!equals || equals == pair)
        return error_set(err, ERR_INVALID, "\"%.60s\" is not of the form KEY=VALUE", pair);
    *equals = '\0';
    if (strlen(equals + 1) > MAX_PARAMETER_BYTES)
        return error_set(err, ERR_INVALID, "the value of \"%.60s\" is longer than 255 bytes", pair);
    if (json_object_set_new(parameters, pair, json_string(equals + 1)) < 0)
        return error_set(err, ERR_INVALID, "\"%.60s\" or its value is not UTF-8", pair);
    if (json_object_size(parameters) > MAX_PARAMETERS)
        return error_set(err, ERR_INVALID, "more than %d are too many", MAX_PARAMETERS);
    return 0;
}

int ask_parameters_parse(const char *text, json_t **out, struct error *err)
{
    char *copy = mem_strdup(text), *rest = NULL;
    json_t *parameters = json_object();
    int result = 0;

    for (char *pair = strtok_r(copy, ", ", &rest); pair && result == 0; pair = strtok_r(NULL, ", ", &rest))
        result = add_parameter(parameters, pair, err);
    free(copy);
    if (result < 0 || json_object_size(parameters) == 0) {
        json_decref(parameters);
        parameters = NULL;
    }
    if (result == 0)
        *out = parameters;
    return result;
}
