/* Which contexts are read, and that each thing that cannot be honoured is refused at its place. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "queued/cluster/kube/access.h"
#include "queued/cluster/kube/access_internal.h"
#include "test/cluster/kube/http_world.h"
#include "test/support/cmocka.h"

#include "allocator/base/banned.h"

/* ---- refused, with the field and the line ---- */

#define HEAD    "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
#define CONTEXT "contexts:\n- name: c\n  context: {cluster: k, user: u}\n"
#define CLUSTER "clusters:\n- name: k\n  cluster: {server: 'https://h:1', certificate-authority: ca.crt}\n"
#define USER    "users:\n- name: u\n  user: {token: t}\n"
/* the field at fault is on line 6 */
#define WITH_CLUSTER(text) HEAD "clusters:\n- name: k\n  cluster: {" text "}\n" USER CONTEXT
#define WITH_USER(text)    HEAD "users:\n- name: u\n  user: {" text "}\n" CLUSTER CONTEXT
#define WITH_CONTEXT(text) HEAD "contexts:\n- name: c\n  context: {" text "}\n" CLUSTER USER
#define EXEC_V1            "apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, "

static const struct refusal_case {
    const char *name;
    const char *text;
    const char *field;
    size_t line; /* 0: none is told */
    enum err_code code;
    const char *words;
} refusals[] = {
    {"another kind", "apiVersion: v1\nkind: Pod\n", "kind", 2, ERR_INVALID, "no kubeconfig"},
    {"another version", "apiVersion: v2\nkind: Config\n", "apiVersion", 1, ERR_INVALID, "no kubeconfig"},
    {"a list", "- a\n", "", 1, ERR_INVALID, "not a kubeconfig"},
    {"nothing", "", "current-context", 0, ERR_INVALID, "no current context"},
    {"no current context", "apiVersion: v1\n" CLUSTER, "current-context", 0, ERR_INVALID, "no current context"},
    {"a current context that is a number", "current-context: 7\n", "current-context", 1, ERR_INVALID, "a text"},
    {"a context that is not there", "current-context: d\n" CONTEXT, "", 0, ERR_NOT_FOUND, "no context \"d\""},
    {"two documents", HEAD CLUSTER USER CONTEXT "---\na: b\n", "", 0, ERR_LIMIT, ""},
    {"no YAML", "a: [\n", "", 0, ERR_INVALID, ""},
    {"contexts that are no list", "current-context: c\ncontexts: {}\n", "contexts", 2, ERR_INVALID, "a list"},
    {"an entry without a name", "current-context: c\ncontexts:\n- context: {}\n", "contexts[0].name", 3, ERR_INVALID,
     "needs a name"},
    {"an entry without its object", "current-context: c\ncontexts:\n- name: c\n", "contexts[0].context", 3, ERR_INVALID,
     "an object"},
    {"the same name twice", HEAD CONTEXT "- name: c\n  context: {}\n", "contexts[1].name", 7, ERR_INVALID, "twice"},

    {"no cluster", WITH_CONTEXT("user: u"), "contexts[0].context.cluster", 6, ERR_INVALID, "missing"},
    {"a cluster that is not there", WITH_CONTEXT("cluster: x, user: u"), "contexts[0].context.cluster", 6, ERR_INVALID,
     "no cluster \"x\""},
    {"a user that is not there", WITH_CONTEXT("cluster: k, user: x"), "contexts[0].context.user", 6, ERR_INVALID,
     "no user \"x\""},
    {"a namespace that is none", WITH_CONTEXT("cluster: k, user: u, namespace: a/b"), "contexts[0].context.namespace",
     6, ERR_INVALID, "no name"},
    {"an unknown field of a context", WITH_CONTEXT("cluster: k, user: u, x: y"), "contexts[0].context.x", 6,
     ERR_INVALID, "not known"},

    {"no server", WITH_CLUSTER(""), "clusters[0].cluster.server", 6, ERR_INVALID, "missing"},
    {"a server without a scheme", WITH_CLUSTER("server: 'h:1'"), "clusters[0].cluster.server", 6, ERR_INVALID,
     "https://"},
    {"a server of another scheme", WITH_CLUSTER("server: 'ftp://h'"), "clusters[0].cluster.server", 6, ERR_INVALID,
     "https://"},
    {"a server with a password", WITH_CLUSTER("server: 'https://a:b@h'"), "clusters[0].cluster.server", 6, ERR_INVALID,
     "https://"},
    {"a server with a query", WITH_CLUSTER("server: 'https://h?a'"), "clusters[0].cluster.server", 6, ERR_INVALID,
     "https://"},
    {"a server that is a number", WITH_CLUSTER("server: 7"), "clusters[0].cluster.server", 6, ERR_INVALID, "a text"},
    {"a token without TLS", WITH_CLUSTER("server: 'http://h:1'"), "clusters[0].cluster.server", 6, ERR_INVALID,
     "without TLS"},
    {"a token without TLS to what begins like this machine", WITH_CLUSTER("server: 'http://localhost.evil.test:1'"),
     "clusters[0].cluster.server", 6, ERR_INVALID, "without TLS"},
    {"an authority that is not base64", WITH_CLUSTER("server: 'https://h', certificate-authority-data: '%%%%'"),
     "clusters[0].cluster.certificate-authority-data", 6, ERR_INVALID, "base64"},
    {"an authority that is no certificate", WITH_CLUSTER("server: 'https://h', certificate-authority-data: aGVsbG8="),
     "clusters[0].cluster.certificate-authority-data", 6, ERR_INVALID, "no certificate"},
    {"an authority with a NUL", WITH_CLUSTER("server: 'https://h', certificate-authority-data: aABs"),
     "clusters[0].cluster.certificate-authority-data", 6, ERR_INVALID, "no text"},
    {"an authority whose file is not there", WITH_CLUSTER("server: 'https://h', certificate-authority: nope"),
     "clusters[0].cluster.certificate-authority", 6, ERR_NOT_FOUND, "nope"},
    {"an authority that is a folder", WITH_CLUSTER("server: 'https://h', certificate-authority: /"),
     "clusters[0].cluster.certificate-authority", 6, ERR_INVALID, "regular file"},
    {"an authority, and unverified",
     WITH_CLUSTER("server: 'https://h', certificate-authority: ca.crt, insecure-skip-tls-verify: true"),
     "clusters[0].cluster.insecure-skip-tls-verify", 6, ERR_INVALID, "as well"},
    {"unverified as a text", WITH_CLUSTER("server: 'https://h', insecure-skip-tls-verify: 'true'"),
     "clusters[0].cluster.insecure-skip-tls-verify", 6, ERR_INVALID, "true or false"},
    {"a server name that is none", WITH_CLUSTER("server: 'https://h', tls-server-name: 'a b'"),
     "clusters[0].cluster.tls-server-name", 6, ERR_INVALID, "no name"},
    {"a proxy of another scheme", WITH_CLUSTER("server: 'https://h', proxy-url: 'ftp://p'"),
     "clusters[0].cluster.proxy-url", 6, ERR_INVALID, "URL"},
    {"an unknown field of a cluster", WITH_CLUSTER("server: 'https://h', api-version: v1"),
     "clusters[0].cluster.api-version", 6, ERR_INVALID, "not known"},

    {"a password", WITH_USER("username: a, password: b"), "users[0].user.username", 6, ERR_INVALID, "no passwords"},
    {"an auth provider", WITH_USER("auth-provider: {name: gcp}"), "users[0].user.auth-provider", 6, ERR_INVALID,
     "exec plugin"},
    {"a certificate without a key", WITH_USER("client-certificate: client.crt"), "users[0].user.client-certificate", 6,
     ERR_INVALID, "without a client-key"},
    {"a key without a certificate", WITH_USER("client-key: client.key"), "users[0].user.client-key", 6, ERR_INVALID,
     "without a client-certificate"},
    {"a key that is a certificate", WITH_USER("client-certificate: client.crt, client-key: client.crt"),
     "users[0].user.client-key", 6, ERR_INVALID, "not in PEM form, or encrypted"},
    {"a key of another certificate", WITH_USER("client-certificate: ca.crt, client-key: client.key"),
     "users[0].user.client-key", 6, ERR_INVALID, "not that of the certificate"},
    {"an encrypted key", WITH_USER("client-certificate: client.crt, client-key: locked.key"),
     "users[0].user.client-key", 6, ERR_INVALID, "encrypted"},
    {"a token with a line break", WITH_USER("token: \"a\\nb\""), "users[0].user.token", 6, ERR_INVALID, "characters"},
    {"a token file that is not there", WITH_USER("tokenFile: nope"), "users[0].user.tokenFile", 6, ERR_NOT_FOUND,
     "nope"},
    {"a token file that is empty", WITH_USER("tokenFile: empty"), "users[0].user.tokenFile", 6, ERR_INVALID, "empty"},
    {"impersonation without a user", WITH_USER("token: t, as-groups: [a]"), "users[0].user.as", 6, ERR_INVALID,
     "missing"},
    {"impersonation with a line break", WITH_USER("token: t, as: \"a\\nX: y\""), "users[0].user.as", 6, ERR_INVALID,
     "characters"},
    {"groups that are no texts", WITH_USER("token: t, as: a, as-groups: [1]"), "users[0].user.as-groups[0]", 6,
     ERR_INVALID, "a text"},
    {"extras that are no lists", WITH_USER("token: t, as: a, as-user-extra: {k: v}"), "users[0].user.as-user-extra", 6,
     ERR_INVALID, "a list"},
    {"an unknown field of a user", WITH_USER("token: t, tokenfile: x"), "users[0].user.tokenfile", 6, ERR_INVALID,
     "not known"},

    {"a plugin of an old version", WITH_USER("exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}"),
     "users[0].user.exec.apiVersion", 6, ERR_INVALID, "v1beta1"},
    {"a plugin without a version", WITH_USER("exec: {command: x}"), "users[0].user.exec.apiVersion", 6, ERR_INVALID,
     "v1beta1"},
    {"a plugin without a command", WITH_USER("exec: {" EXEC_V1 "args: []}"), "users[0].user.exec.command", 6,
     ERR_INVALID, "missing"},
    {"a plugin that must ask",
     WITH_USER("exec: {apiVersion: client.authentication.k8s.io/v1, command: x, "
               "interactiveMode: Always}"),
     "users[0].user.exec.interactiveMode", 6, ERR_INVALID, "nobody is there"},
    {"a plugin that does not say whether it asks",
     WITH_USER("exec: {apiVersion: client.authentication.k8s.io/v1, command: x}"), "users[0].user.exec.interactiveMode",
     6, ERR_INVALID, "missing"},
    {"a plugin with an argument that is a number", WITH_USER("exec: {" EXEC_V1 "command: x, args: [a, 1]}"),
     "users[0].user.exec.args[1]", 6, ERR_INVALID, "a text"},
    {"a plugin with half a variable", WITH_USER("exec: {" EXEC_V1 "command: x, env: [{name: a}]}"),
     "users[0].user.exec.env[0]", 6, ERR_INVALID, "a name and a value"},
    {"a plugin with an unknown field", WITH_USER("exec: {" EXEC_V1 "command: x, shell: true}"),
     "users[0].user.exec.shell", 6, ERR_INVALID, "not known"},
    {"a plugin beside a token", WITH_USER("token: t, exec: {" EXEC_V1 "command: x}"), "users[0].user.exec", 6,
     ERR_INVALID, "other credentials"},
};

static const char locked_key[] = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAoGCCqGSIb3DQEFDQ==\n"
                                 "-----END ENCRYPTED PRIVATE KEY-----\n";

static void test_kubeconfig__refused(void **state)
{
    const struct refusal_case *c = *state;
    struct http_world world;
    struct error err = {0};
    char path[128], line[160];

    http_world_begin(&world, SERVER_PLAIN);
    http_world_write(&world, "config", c->text);
    http_world_write(&world, "empty", " \n");
    http_world_write(&world, "locked.key", locked_key);
    snprintf(path, sizeof(path), "%s/config", world.folder);
    assert_int_equal(access_from_kubeconfig(path, NULL, &world.access, &err), -1);
    assert_null(world.access);
    assert_string_equal(err.field, c->field);
    assert_int_equal(err.code, c->code);
    if (!strstr(err.text, c->words))
        print_error("%s\n", err.text);
    assert_non_null(strstr(err.text, c->words));
    snprintf(line, sizeof(line), "%s:%zu:", path, c->line);
    if (c->line)
        assert_non_null(strstr(err.text, line));
    http_world_end(&world);
}

/* ---- accepted ---- */

static struct access *open_list(const struct http_world *world, const char *list, const char *context)
{
    struct access *access = NULL;
    struct error err = {0};

    if (access_from_kubeconfig(list, context, &access, &err) < 0)
        print_error("%s\n", err.text);
    (void)world;
    return access;
}

static void test_kubeconfig__texts_of_a_context(void **state)
{
    struct http_world world;
    char path[128];

    (void)state;
    http_world_begin(&world, SERVER_PLAIN);
    http_world_write(&world, "config",
                     HEAD "preferences: {}\n"
                          "clusters:\n- name: k\n  cluster:\n    server: https://[::1]:6443/base/\n"
                          "    certificate-authority: ca.crt\n    tls-server-name: api\n    proxy-url: socks5://p:1\n"
                          "    extensions: [{name: x, extension: {}}]\n    disable-compression: true\n"
                          "users:\n- name: u\n  user: {client-certificate: client.crt, client-key: client.key, "
                          "password: '', token: null}\n"
                          "contexts:\n- name: other\n  context: {}\n- name: c\n  context: {cluster: k, user: u, "
                          "namespace: team-a, extensions: []}\n");
    snprintf(path, sizeof(path), "%s/config", world.folder);
    world.access = open_list(&world, path, "");
    assert_non_null(world.access);
    assert_string_equal(access_server(world.access), "https://[::1]:6443/base");
    assert_string_equal(access_namespace(world.access), "team-a");
    assert_string_equal(access_tls(world.access)->ca, pki_ca(world.pki));
    assert_non_null(strstr(access_tls(world.access)->key, "PRIVATE KEY"));
    assert_string_equal(access_tls(world.access)->server_name, "api");
    assert_string_equal(access_tls(world.access)->proxy, "socks5h://p:1");
    assert_false(access_tls(world.access)->is_unverified);
    assert_true(access_is_uncompressed(world.access));
    http_world_end(&world);
}

/* The first file that has a name wins, absent files are passed over, paths are relative to their own file. */
static void test_kubeconfig__files_are_merged(void **state)
{
    struct http_world world;
    char list[400];

    (void)state;
    http_world_begin(&world, SERVER_PLAIN);
    http_world_write(&world, "one", "current-context: ''\nclusters:\n- name: k\n  cluster: {server: 'https://one'}\n");
    http_world_write(&world, "two", HEAD CLUSTER USER CONTEXT);
    snprintf(list, sizeof(list), "%s/absent::%s/one:%s/two", world.folder, world.folder, world.folder);
    world.access = open_list(&world, list, NULL);
    assert_non_null(world.access);
    assert_string_equal(access_server(world.access), "https://one");
    assert_null(access_tls(world.access)->ca); /* the whole entry is the first one's */
    http_world_end(&world);
}

static void test_kubeconfig__another_context(void **state)
{
    struct http_world world;
    char path[128];

    (void)state;
    http_world_begin(&world, SERVER_PLAIN);
    http_world_write(&world, "config",
                     HEAD CLUSTER USER CONTEXT "- name: d\n  context: {cluster: k, namespace: other}\n");
    snprintf(path, sizeof(path), "%s/config", world.folder);
    world.access = open_list(&world, path, "d");
    assert_non_null(world.access);
    assert_string_equal(access_namespace(world.access), "other");
    assert_int_equal(world.access->kind, TOKEN_NONE);
    http_world_end(&world);
}

static void test_kubeconfig__absent_files(void **state)
{
    struct access *access = NULL;
    struct error err = {0};

    (void)state;
    assert_int_equal(access_from_kubeconfig("/nonexistent/config", NULL, &access, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(access_from_kubeconfig("/nonexistent/a:/nonexistent/b", NULL, &access, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

/* No message holds what is secret, whatever is wrong with it. */
static void test_kubeconfig__messages_hold_no_secrets(void **state)
{
    static const char *const users[] = {
        "token: \"s3cr3t x\"",
        "client-key-data: czNjcjN0",
        "client-certificate: client.crt, client-key-data: czNjcjN0",
        "password: s3cr3t",
        "token: s3cr3t, as: \"a\\n\"",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
        struct http_world world;
        struct error err = {0};
        char path[128];
        BUF text = {0};

        http_world_begin(&world, SERVER_PLAIN);
        buf_addf(&text, HEAD "users:\n- name: u\n  user: {%s}\n" CLUSTER CONTEXT, users[i]);
        http_world_write(&world, "config", buf_str(&text));
        snprintf(path, sizeof(path), "%s/config", world.folder);
        assert_int_equal(access_from_kubeconfig(path, NULL, &world.access, &err), -1);
        assert_null(strstr(err.text, "s3cr3t"));
        assert_null(strstr(err.text, "czNjcjN0"));
        http_world_end(&world);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kubeconfig__texts_of_a_context),
        cmocka_unit_test(test_kubeconfig__files_are_merged),
        cmocka_unit_test(test_kubeconfig__another_context),
        cmocka_unit_test(test_kubeconfig__absent_files),
        cmocka_unit_test(test_kubeconfig__messages_hold_no_secrets),
    };

    return RUN_TABLE(test_kubeconfig__refused, refusals) + cmocka_run_group_tests(tests, NULL, NULL);
}
