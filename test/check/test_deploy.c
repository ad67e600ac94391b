/* deploy/ against the code: what the roles grant is what the server asks for, and the settings are keys that it knows.
 */
#include "test/support/cmocka.h"

#include <ctype.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "queued/cluster/kube/kinds.h"
#include "queued/config.h"
#include "queued/manifest/yaml.h"

#include "allocator/base/banned.h"

#define BASE       "deploy/kubernetes/*.yaml"
#define COMPONENTS "deploy/kubernetes/components/*/*.yaml"
#define SITE       "deploy/site/*.yaml"

/* What the server asks for beside lists and watches (queued/cluster/kube/calls.c, lease.c). "Kind" or "Kind/part". */
static const struct {
    const char *what, *verbs;
} acts[] = {
    {"ConfigMap", "create delete get"},
    {"Service", "create delete get"},
    {"Pod", "create delete get patch"},
    {"Pod/log", "get"},
    {"Pod/status", "patch"},
    {"ResourceClaim", "create delete get patch"},
    {"Pod/binding", "create"},
    {"ResourceClaim/status", "update"},
    {"ResourceClaim/binding", "update"}, /* no subresource that exists: the right to change an allocation */
    {"PodGroup", "create delete get"},
    {"ProvisioningRequest", "create delete"},
    {"PodTemplate", "create"}, /* ends with its anchor */
    {"ResourceClaimTemplate", "create"},
    {"Lease", "create get update"},
    {"ConfigMap/finalizers", "update"}, /* of the anchor, which blocks its own deletion: blockOwnerDeletion */
};

/* What discovery.c reads beside objects. */
static const char *const paths[] = {"/version", "/apis", "/apis/*", "/metrics"};

/* ---- reading ---- */

typedef void visit_fn(void *ctx, const char *path, json_t *document);

static void each_document(const char *pattern, visit_fn *visit, void *ctx)
{
    glob_t files;

    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct error err = {0};
        struct manifest *manifest = NULL;

        if (manifest_read_file(files.gl_pathv[i], &MANIFEST_LIMITS_DEFAULT, &manifest, &err) < 0)
            fail_msg("%s", err.text);
        for (size_t k = 0; k < manifest_n_documents(manifest); k++)
            visit(ctx, files.gl_pathv[i], manifest_document(manifest, k));
        manifest_free(manifest);
    }
    globfree(&files);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* Sets of "group/resource verb". */
static void add_verb(json_t *set, const char *group, const char *resource, const char *verb)
{
    BUF key = {0};

    buf_addf(&key, "%s/%s %s", group, resource, verb);
    json_object_set_new(set, buf_str(&key), json_true());
}

static void add_rule(json_t *set, const json_t *rule)
{
    json_t *group, *resource, *verb, *path;
    size_t i, j, k;

    json_array_foreach (json_object_get(rule, "nonResourceURLs"), i, path)
        json_array_foreach (json_object_get(rule, "verbs"), k, verb)
            add_verb(set, "path", json_string_value(path), json_string_value(verb));
    json_array_foreach (json_object_get(rule, "apiGroups"), i, group)
        json_array_foreach (json_object_get(rule, "resources"), j, resource)
            json_array_foreach (json_object_get(rule, "verbs"), k, verb)
                add_verb(set, json_string_value(group), json_string_value(resource), json_string_value(verb));
}

static void add_role(void *ctx, const char *path, json_t *document)
{
    json_t *rule;
    size_t i;

    (void)path;
    if (strcmp(text_of(document, "kind"), "ClusterRole") == 0 || strcmp(text_of(document, "kind"), "Role") == 0)
        json_array_foreach (json_object_get(document, "rules"), i, rule)
            add_rule(ctx, rule);
}

static json_t *granted(bool with_components)
{
    json_t *set = json_object();

    each_document(BASE, add_role, set);
    if (with_components)
        each_document(COMPONENTS, add_role, set);
    return set;
}

static void add_watched(json_t *set, bool with_optional)
{
    for (size_t i = 0; i < n_kube_sources; i++) {
        const struct kind *kind = kube_sources[i].kind;

        if (kind->is_optional && !with_optional)
            continue;
        add_verb(set, kind->group, kind->plural, "list");
        add_verb(set, kind->group, kind->plural, "watch");
    }
}

static void add_act(json_t *set, const char *what, const char *verbs)
{
    const char *slash = strchr(what, '/');
    BUF name = {0};
    BUF resource = {0};
    const struct kind *kind;

    buf_add(&name, what, slash ? (size_t)(slash - what) : strlen(what));
    kind = kind_find(buf_str(&name));
    assert_non_null(kind);
    buf_addf(&resource, "%s%s", kind->plural, slash ? slash : "");
    for (size_t len; *verbs; verbs += len + (verbs[len] == ' ')) {
        BUF verb = {0};

        len = strcspn(verbs, " ");
        buf_add(&verb, verbs, len);
        add_verb(set, kind->group, buf_str(&resource), buf_str(&verb));
    }
}

static json_t *needed(void)
{
    json_t *set = json_object();

    add_watched(set, true);
    for (size_t i = 0; i < ARRAY_SIZE(acts); i++)
        add_act(set, acts[i].what, acts[i].verbs);
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        add_verb(set, "path", paths[i], "get");
    return set;
}

/* Fails with all that is in `these` and not in `those`. */
static void assert_all_in(json_t *these, json_t *those, const char *words)
{
    BUF missing = {0};
    const char *key;
    json_t *value;

    json_object_foreach (these, key, value)
        if (!json_object_get(those, key))
            buf_addf(&missing, "\n  %s", key);
    if (missing.len)
        fail_msg("%s:%s", words, buf_str(&missing));
}

/* ---- roles ---- */

static void test_deploy__what_the_server_asks_for_is_granted(void **state)
{
    json_t *wanted = needed(), *given = granted(true);

    (void)state;
    assert_all_in(wanted, given, "no role grants");
    json_decref(wanted);
    json_decref(given);
}

static void test_deploy__nothing_is_granted_that_the_server_does_not_ask_for(void **state)
{
    json_t *wanted = needed(), *given = granted(true);

    (void)state;
    assert_all_in(given, wanted, "nobody asks for");
    json_decref(wanted);
    json_decref(given);
}

static void test_deploy__the_base_alone_grants_every_watch_that_is_not_optional(void **state)
{
    json_t *wanted = json_object(), *given = granted(false);

    (void)state;
    add_watched(wanted, false);
    assert_all_in(wanted, given, "the base does not grant");
    json_decref(wanted);
    json_decref(given);
}

/* ---- documents ---- */

static void check_document(void *ctx, const char *path, json_t *document)
{
    int *n = ctx;

    if (!text_of(document, "apiVersion")[0] || !text_of(document, "kind")[0])
        fail_msg("%s has a document without apiVersion or kind", path);
    ++*n;
}

static void test_deploy__every_file_is_made_of_kubernetes_objects(void **state)
{
    int n = 0;

    (void)state;
    each_document(BASE, check_document, &n);
    each_document(COMPONENTS, check_document, &n);
    each_document(SITE, check_document, &n);
    assert_true(n > 20);
}

/* A role that nobody is bound to grants nothing: the two come in one file. */
static void check_binding(void *ctx, const char *path, json_t *document)
{
    json_t *names = ctx;

    (void)path;
    if (fnmatch("*Role", text_of(document, "kind"), 0) == 0)
        json_object_set_new(names, text_of(json_object_get(document, "metadata"), "name"), json_false());
    else if (fnmatch("*RoleBinding", text_of(document, "kind"), 0) == 0)
        json_object_set_new(names, text_of(json_object_get(document, "roleRef"), "name"), json_true());
}

static void test_deploy__every_role_is_bound(void **state)
{
    json_t *names = json_object(), *is_bound;
    const char *name;

    (void)state;
    each_document(BASE, check_binding, names);
    each_document(COMPONENTS, check_binding, names);
    json_object_foreach (names, name, is_bound)
        if (!json_is_true(is_bound))
            fail_msg("nobody is bound to %s", name);
    json_decref(names);
}

/* ---- settings ---- */

static void check_setting(const char *path, const char *literal)
{
    const char *equals = strchr(literal, '=');
    struct config config;
    struct error err = {0};
    BUF key = {0};

    if (strncmp(literal, "QUEUED_", 7) != 0 || !equals)
        fail_msg("%s: %s is no setting", path, literal);
    for (const char *c = literal + 7; c < equals; c++)
        buf_addc(&key, *c == '_' ? '-' : (char)tolower((unsigned char)*c));
    config_init(&config);
    if (config_set(&config, buf_str(&key), equals + 1, &err) < 0)
        fail_msg("%s: %s: %s", path, literal, err.text);
    config_release(&config);
}

static void check_settings(void *ctx, const char *path, json_t *document)
{
    json_t *generator, *literal;
    size_t i, k;

    json_array_foreach (json_object_get(document, "configMapGenerator"), i, generator)
        json_array_foreach (json_object_get(generator, "literals"), k, literal) {
            check_setting(path, json_string_value(literal));
            ++*(int *)ctx;
        }
}

static void test_deploy__every_setting_is_a_key_with_a_good_value(void **state)
{
    int n = 0;

    (void)state;
    each_document(BASE, check_settings, &n);
    each_document(COMPONENTS, check_settings, &n);
    each_document(SITE, check_settings, &n);
    assert_true(n > 5);
}

/* ---- alerts ---- */

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "re");
    BUF text = {0};
    char bytes[4096];

    assert_non_null(file);
    for (size_t n; (n = fread(bytes, 1, sizeof(bytes), file)) > 0;)
        buf_add(&text, bytes, n);
    fclose(file);
    return buf_take(&text);
}

/* Every metric that an expression names is one that /metrics has. */
static void check_expression(const char *metrics, const char *expression)
{
    for (const char *at = expression; (at = strstr(at, "queued_"));) {
        size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz_");
        BUF quoted = {0};

        buf_addc(&quoted, '"');
        buf_add(&quoted, at, len);
        buf_addc(&quoted, '"');
        if (!strstr(metrics, buf_str(&quoted)))
            fail_msg("there is no metric %s", buf_str(&quoted));
        at += len;
    }
}

static void check_alerts(void *ctx, const char *path, json_t *document)
{
    json_t *group, *rule;
    size_t i, k;

    (void)path;
    json_array_foreach (json_object_get(json_object_get(document, "spec"), "groups"), i, group)
        json_array_foreach (json_object_get(group, "rules"), k, rule)
            check_expression(ctx, text_of(rule, "expr"));
}

static void test_deploy__alerts_name_metrics_that_exist(void **state)
{
    char *metrics = read_text("api/metrics.c");

    (void)state;
    each_document("deploy/kubernetes/components/monitoring/rules.yaml", check_alerts, metrics);
    free(metrics);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deploy__what_the_server_asks_for_is_granted),
        cmocka_unit_test(test_deploy__nothing_is_granted_that_the_server_does_not_ask_for),
        cmocka_unit_test(test_deploy__the_base_alone_grants_every_watch_that_is_not_optional),
        cmocka_unit_test(test_deploy__every_file_is_made_of_kubernetes_objects),
        cmocka_unit_test(test_deploy__every_role_is_bound),
        cmocka_unit_test(test_deploy__every_setting_is_a_key_with_a_good_value),
        cmocka_unit_test(test_deploy__alerts_name_metrics_that_exist),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
