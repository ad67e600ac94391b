/* Tokens: from a file that is replaced, from plugins that behave and that do not, from a pod. */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "queued/cluster/kube/access.h"
#include "queued/cluster/kube/access_internal.h"
#include "queued/cluster/kube/plugin.h"
#include "test/cluster/kube/http_world.h"
#include "test/support/cmocka.h"

#include "allocator/base/banned.h"

struct asked {
    int n;
    char token[64]; /* "none" */
    struct error err;
};

static void on_token(void *ctx, const struct error *err, const char *token)
{
    struct asked *asked = ctx;

    asked->n++;
    asked->err = err ? *err : (struct error){0};
    snprintf(asked->token, sizeof(asked->token), "%s", token ? token : "none");
}

static struct asked ask(struct http_world *world)
{
    struct asked asked = {0};

    access_token(world->access, world->base, on_token, &asked);
    http_world_run(world, &asked.n);
    assert_int_equal(asked.n, 1);
    return asked;
}

/* ---- plugins ---- */

#define REPLY(status)                                                                                                  \
    "#!/bin/sh\necho "                                                                                                 \
    "'{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":" status "}'\n"

static const struct plugin_case {
    const char *name;
    const char *script; /* of ./plugin */
    const char *exec;   /* more fields; NULL: none */
    const char *token;  /* wanted, or NULL */
    const char *words;  /* of the error */
} plugin_cases[] = {
    {"a token", REPLY("{\"token\":\"abc\"}"), NULL, "abc", NULL},
    {"arguments arrive as they are", "#!/bin/sh\n[ \"$1\" = 'a b;$HOME' ] && [ $# = 1 ] && exit 5\nexit 3\n",
     "args: ['a b;$HOME']", NULL, "exit code 5"},
    {"variables arrive",
     "#!/bin/sh\necho \"{\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\",\\\"kind\\\":"
     "\\\"ExecCredential\\\",\\\"status\\\":{\\\"token\\\":\\\"$A-$B\\\"}}\"\n",
     "env: [{name: A, value: x}, {name: B, value: y=z}]", "x-y=z", NULL},
    {"nothing to read", "#!/bin/sh\nread a || echo no input >&2\nexit 1\n", NULL, NULL, "exit code 1: no input"},
    {"nothing of our open files", "#!/bin/sh\nls /proc/self/fd | wc -l >&2\nexit 1\n", NULL, NULL, "exit code 1: 4"},
    {"told of itself",
     "#!/bin/sh\ncase \"$KUBERNETES_EXEC_INFO\" in *'\"interactive\":false'*) echo yes >&2;; esac\nexit 1\n", NULL,
     NULL, "exit code 1: yes"},
    {"told of the cluster",
     "#!/bin/sh\ncase \"$KUBERNETES_EXEC_INFO\" in "
     "*'\"cluster\":{\"server\":\"https://127.0.0.1:'*certificate-authority"
     "-data*) echo yes >&2;; esac\nexit 1\n",
     "provideClusterInfo: true", NULL, "exit code 1: yes"},
    {"not told of the cluster", "#!/bin/sh\ncase \"$KUBERNETES_EXEC_INFO\" in *cluster*) exit 2;; esac\nexit 1\n", NULL,
     NULL, "exit code 1"},
    {"it fails", "#!/bin/sh\necho first >&2\necho 'log in first, please' >&2\nexit 7\n", NULL, NULL,
     "exit code 7: log in first, please"},
    {"it fails with a token on its lips",
     "#!/bin/sh\necho bad token eyJhbGciOiJSUzI1NiIsImtpZCI6IkFBQUFBQUFBQUFBQUFBQUEifQ.eyJhdWQiOlsiaHR0cHMiXX0 >&2\n"
     "exit 7\n",
     NULL, NULL, "exit code 7: bad token [...]"},
    {"it is killed", "#!/bin/sh\nkill -9 $$\n", NULL, NULL, "signal 9"},
    {"garbage", "#!/bin/sh\necho token=s3cr3t\n", NULL, NULL, "not JSON"},
    {"nothing at all", "#!/bin/sh\n", NULL, NULL, "not JSON"},
    {"another kind", "#!/bin/sh\necho '{\"kind\":\"Pod\"}'\n", NULL, NULL, "no ExecCredential"},
    {"another version",
     "#!/bin/sh\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}'\n", NULL,
     NULL, "apiVersion is not"},
    {"no status", REPLY("null"), NULL, NULL, "neither a token nor a certificate"},
    {"a token of spaces", REPLY("{\"token\":\"  \"}"), NULL, NULL, "token is empty"},
    {"a token with a line break", REPLY("{\"token\":\"a\\u000ab\"}"), NULL, NULL, "characters"},
    {"a certificate without a key", REPLY("{\"clientCertificateData\":\"x\"}"), NULL, NULL, "go together"},
    {"a certificate that is none", REPLY("{\"clientCertificateData\":\"x\",\"clientKeyData\":\"y\"}"), NULL, NULL,
     "not in PEM form"},
    {"an expiry that is no time", REPLY("{\"token\":\"a\",\"expirationTimestamp\":\"soon\"}"), NULL, NULL, "no time"},
    {"endless output", "#!/bin/sh\nexec cat /dev/zero\n", NULL, NULL, "larger than 1048576"},
    {"endless complaints", "#!/bin/sh\nexec cat /dev/zero >&2\n", NULL, NULL, "no answer in"},
    {"no end", "#!/bin/sh\nsleep 100 &\nsleep 100\n", NULL, NULL, "no answer in"},
    {"output that stays open", REPLY("{\"token\":\"abc\"}") "sleep 1 &\n", NULL, "abc", NULL},
};

static void write_plugin_config(const struct http_world *world, const char *command, const char *more)
{
    BUF user = {0};

    buf_addf(&user,
             "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: IfAvailable, command: %s%s%s}",
             command, more ? ", " : "", more ? more : "");
    http_world_kubeconfig(world, NULL, buf_str(&user));
}

static void test_access__plugin(void **state)
{
    const struct plugin_case *c = *state;
    struct http_world world;
    struct error err = {0};
    struct asked asked;

    http_world_begin(&world, SERVER_GOOD);
    http_world_script(&world, "plugin", c->script);
    write_plugin_config(&world, "./plugin", c->exec);
    assert_int_equal(http_world_open(&world, NULL, &err), 0);
    if (c->words && strcmp(c->words, "no answer in") == 0)
        plugin_set_limit(world.access->plugin, 300);
    asked = ask(&world);
    if (c->words && !strstr(asked.err.text, c->words))
        print_error("%s\n", asked.err.text);
    assert_string_equal(asked.token, c->token ? c->token : "none");
    assert_int_equal(asked.err.code != ERR_NONE, c->words != NULL);
    if (c->words)
        assert_non_null(strstr(asked.err.text, c->words));
    assert_null(strstr(asked.err.text, "s3cr3t"));
    http_world_end(&world);
}

static void test_access__plugin_that_is_not_there(void **state)
{
    struct http_world world;
    struct error err = {0};
    struct asked asked;

    (void)state;
    http_world_begin(&world, SERVER_GOOD);
    write_plugin_config(&world, "no-such-program-anywhere", "installHint: get it somewhere");
    assert_int_equal(http_world_open(&world, NULL, &err), 0);
    asked = ask(&world);
    assert_int_equal(asked.err.code, ERR_DENIED);
    assert_non_null(strstr(asked.err.text, "get it somewhere"));
    http_world_end(&world);
}

/* Counts its runs in a file; a token per run. */
#define COUNTING(more)                                                                                                 \
    "#!/bin/sh\ncd \"${0%/*}\"\necho x >> runs\nn=$(wc -l < runs)\n"                                                   \
    "echo \"{\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\",\\\"kind\\\":\\\"ExecCredential\\\","          \
    "\\\"status\\\":{\\\"token\\\":\\\"t$((n))\\\"" more "}}\"\n"

static void begin_counting(struct http_world *world, const char *script)
{
    struct error err = {0};

    http_world_begin(world, SERVER_GOOD);
    http_world_script(world, "plugin", script);
    write_plugin_config(world, "./plugin", NULL);
    assert_int_equal(http_world_open(world, NULL, &err), 0);
}

static void test_access__plugin_runs_once_for_all(void **state)
{
    struct http_world world;
    struct asked asked[5] = {0};

    (void)state;
    begin_counting(&world, COUNTING(""));
    for (size_t i = 0; i < 5; i++)
        access_token(world.access, world.base, on_token, &asked[i]);
    access_token_cancel(world.access, &asked[2]);
    http_world_run(&world, &asked[4].n);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(asked[i].n, i == 2 ? 0 : 1);
    assert_string_equal(asked[4].token, "t1");
    assert_string_equal(ask(&world).token, "t1"); /* kept: it has no end */
    http_world_end(&world);
}

static void test_access__plugin_runs_again_before_the_end(void **state)
{
    struct http_world world;

    (void)state;
    /* good for four seconds: three quarters of it are used */
    begin_counting(&world, COUNTING(",\\\"expirationTimestamp\\\":\\\"$(date -u -d '+4 seconds' +%FT%TZ)\\\""));
    assert_string_equal(ask(&world).token, "t1");
    assert_string_equal(ask(&world).token, "t1");
    http_world_pass(&world, 3200);
    assert_string_equal(ask(&world).token, "t2");
    http_world_end(&world);
}

static void test_access__refused_token_of_a_plugin(void **state)
{
    static const struct https_reply replies[] = {{.status = 401, .times = 3}, {.chunks = {"fine"}}};
    struct http_world world;
    struct kept kept[3] = {{0}, {0}, {0}};

    (void)state;
    begin_counting(&world, COUNTING(""));
    https_stub_script(world.stub, replies, 2);
    struct http_request request = {.method = "POST", .path = "/", .body = "{}", .len = 2, .done = kept_done};
    for (size_t i = 0; i < 3; i++) {
        request.ctx = &kept[i];
        http_send(world.http, &request);
    }
    for (size_t i = 0; i < 3; i++) {
        http_world_run(&world, &kept[i].n);
        assert_int_equal(kept[i].status, 200);
        kept_release(&kept[i]);
    }
    assert_string_equal(ask(&world).token, "t2"); /* three refusals, one more run */
    http_world_end(&world);
}

/* A plugin that brings a client certificate: new connections bear it. */
static void test_access__certificate_of_a_plugin(void **state)
{
    static const struct https_reply replies[] = {{.chunks = {"fine"}}};
    struct http_world world;
    struct error err = {0};
    struct kept kept = {0};

    (void)state;
    http_world_begin(&world, SERVER_GOOD);
    http_world_script(&world, "plugin",
                      "#!/bin/sh\ncd \"${0%/*}\"\nline() { sed 's/$/\\\\n/' $1 | tr -d '\\n'; }\n"
                      "printf '%s' '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
                      "\"status\":{\"clientCertificateData\":\"'\nline client.crt\n"
                      "printf '%s' '\",\"clientKeyData\":\"'\nline client.key\nprintf '%s' '\"}}'\n");
    write_plugin_config(&world, "./plugin", NULL);
    assert_int_equal(http_world_open(&world, NULL, &err), 0);
    https_stub_script(world.stub, replies, 1);
    struct http_request request = {.method = "GET", .path = "/", .done = kept_done, .ctx = &kept};
    http_send(world.http, &request);
    http_world_run(&world, &kept.n);
    if (kept.status != 200)
        print_error("%s\n", kept.err.text);
    assert_int_equal(kept.status, 200);
    assert_string_equal(https_stub_request(world.stub, 0)->client, "jane");
    assert_null(strstr(https_stub_request(world.stub, 0)->head, "Authorization"));
    kept_release(&kept);
    http_world_end(&world);
}

static void test_access__freed_while_a_plugin_runs(void **state)
{
    struct http_world world;
    struct asked asked = {0};
    struct error err = {0};

    (void)state;
    http_world_begin(&world, SERVER_GOOD);
    http_world_script(&world, "plugin", "#!/bin/sh\nsleep 100\n");
    write_plugin_config(&world, "./plugin", NULL);
    assert_int_equal(http_world_open(&world, NULL, &err), 0);
    access_token(world.access, world.base, on_token, &asked);
    http_world_pass(&world, 60);
    http_world_end(&world);
    assert_int_equal(asked.n, 0);
}

/* ---- files ---- */

static void test_access__file_is_read_again_after_a_minute(void **state)
{
    struct http_world world;
    struct error err = {0};

    (void)state;
    http_world_begin(&world, SERVER_GOOD);
    http_world_write(&world, "token", " one\n");
    http_world_kubeconfig(&world, NULL, "tokenFile: token");
    assert_int_equal(http_world_open(&world, NULL, &err), 0);
    assert_string_equal(ask(&world).token, "one");
    http_world_write(&world, "token", "two");
    assert_string_equal(ask(&world).token, "one");
    world.access->read_mono_ms -= 61000;
    assert_string_equal(ask(&world).token, "two");
    http_world_write(&world, "token", ""); /* half replaced: what we have may still be good */
    world.access->read_mono_ms -= 61000;
    assert_string_equal(ask(&world).token, "two");
    http_world_write(&world, "token", "three");
    assert_string_equal(ask(&world).token, "three");
    http_world_end(&world);
}

static void test_access__refusals_of_an_old_token_do_not_count(void **state)
{
    struct http_world world;
    struct error err = {0};
    uint64_t first;

    (void)state;
    http_world_begin(&world, SERVER_GOOD);
    http_world_write(&world, "token", "one");
    http_world_kubeconfig(&world, NULL, "tokenFile: token");
    assert_int_equal(http_world_open(&world, NULL, &err), 0);
    assert_string_equal(ask(&world).token, "one");
    first = access_round(world.access);
    assert_true(access_token_refused(world.access, first));
    http_world_write(&world, "token", "two");
    assert_string_equal(ask(&world).token, "two");
    assert_true(access_token_refused(world.access, first));
    assert_false(world.access->is_stale);
    assert_false(access_token_refused(world.access, access_round(world.access))); /* so soon again */
    http_world_end(&world);
}

/* ---- in a pod ---- */

static const struct pod_case {
    const char *name;
    const char *host, *port, *server; /* server: wanted, or NULL */
    const char *without;              /* a file that is not there */
    enum err_code code;
    const char *namespace;
} pod_cases[] = {
    {"a pod", "10.0.0.1", "443", "https://10.0.0.1:443", NULL, ERR_NONE, "team-a"},
    {"a pod with IPv6", "fd00::1", "6443", "https://[fd00::1]:6443", NULL, ERR_NONE, "team-a"},
    {"no namespace", "10.0.0.1", "443", "https://10.0.0.1:443", "namespace", ERR_NONE, "default"},
    {"no pod", NULL, NULL, NULL, NULL, ERR_NOT_FOUND, NULL},
    {"no port", "10.0.0.1", NULL, NULL, NULL, ERR_NOT_FOUND, NULL},
    {"a port that is none", "10.0.0.1", "44x", NULL, NULL, ERR_INVALID, NULL},
    {"a host that is none", "a/b", "443", NULL, NULL, ERR_INVALID, NULL},
    {"no token", "10.0.0.1", "443", NULL, "token", ERR_NOT_FOUND, NULL},
    {"no authority", "10.0.0.1", "443", NULL, "ca.crt", ERR_NOT_FOUND, NULL},
};

static void set_env(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void test_access__pod(void **state)
{
    const struct pod_case *c = *state;
    struct http_world world;
    struct error err = {0};
    char path[128];

    http_world_begin(&world, SERVER_GOOD);
    http_world_write(&world, "token", "pod-token");
    http_world_write(&world, "namespace", "team-a\n");
    if (c->without) {
        snprintf(path, sizeof(path), "%s/%s", world.folder, c->without);
        unlink(path);
    }
    set_env("KUBERNETES_SERVICE_HOST", c->host);
    set_env("KUBERNETES_SERVICE_PORT", c->port);
    assert_int_equal(access_from_pod(world.folder, &world.access, &err), c->server ? 0 : -1);
    assert_int_equal(err.code, c->code);
    if (c->server) {
        assert_string_equal(access_server(world.access), c->server);
        assert_string_equal(access_namespace(world.access), c->namespace);
        assert_string_equal(ask(&world).token, "pod-token");
        assert_string_equal(access_tls(world.access)->ca, pki_ca(world.pki));
    }
    http_world_end(&world);
}

/* ---- files of certificates ---- */

#define JANE "{client-certificate: client.crt, client-key: client.key}"

/* Who the server takes us for. */
static void answered(struct http_world *world, const char *client)
{
    struct kept kept = {0};
    struct http_request request = {.method = "POST", .path = "/", .body = "{}", .len = 2, .done = kept_done};

    request.ctx = &kept;
    http_send(world->http, &request);
    http_world_run(world, &kept.n);
    if (kept.status != 200)
        print_error("%s\n", kept.err.text);
    assert_int_equal(kept.status, 200);
    assert_string_equal(https_stub_request(world->stub, https_stub_n_requests(world->stub) - 1)->client, client);
    kept_release(&kept);
}

static void a_minute_passes(const struct http_world *world)
{
    world->access->files_mono_ms -= 60001;
}

/* What a new certificate looks like while it is being written. Nothing of it is used until all is there. */
static const struct rotation {
    const char *name;
    size_t certificate_bytes, key_bytes; /* written so far; SIZE_MAX: all of it */
    bool is_gone;                        /* neither file is there */
    const char *want;
} rotations[] = {
    {"whole", SIZE_MAX, SIZE_MAX, false, "joan"},
    {"the certificate alone", SIZE_MAX, 0, false, "jane"},
    {"half a key", SIZE_MAX, 100, false, "jane"},
    {"half a certificate", 300, SIZE_MAX, false, "jane"},
    {"a chain of which the end is missing", SIZE_MAX - 1, SIZE_MAX, false, "jane"},
    {"empty files", 0, 0, false, "jane"},
    {"no files", 0, 0, true, "jane"},
};

static void write_part(const struct http_world *world, const char *name, const char *text, size_t n)
{
    BUF part = {0};

    buf_add(&part, text, n < strlen(text) ? n : strlen(text));
    if (n == SIZE_MAX - 1)
        buf_add(&part, text, 300);
    http_world_write(world, name, buf_str(&part));
}

static void remove_both(const struct http_world *world)
{
    BUF certificate = {0}, key = {0};

    buf_addf(&certificate, "%s/client.crt", world->folder);
    buf_addf(&key, "%s/client.key", world->folder);
    assert_int_equal(unlink(buf_str(&certificate)) + unlink(buf_str(&key)), 0);
}

static void test_access__rotation(void **state)
{
    static const struct https_reply replies[] = {{.chunks = {"fine"}}};
    const struct rotation *c = *state;
    struct http_world world;
    struct error err = {0};
    char *certificate, *key;

    http_world_begin(&world, SERVER_GOOD);
    http_world_kubeconfig(&world, NULL, JANE);
    assert_int_equal(http_world_open(&world, NULL, &err), 0);
    https_stub_script(world.stub, replies, 1);
    answered(&world, "jane");
    pki_issue(world.pki, "joan", NULL, -60, 3600, &certificate, &key);
    if (c->is_gone)
        remove_both(&world);
    else {
        write_part(&world, "client.crt", certificate, c->certificate_bytes);
        write_part(&world, "client.key", key, c->key_bytes);
    }
    answered(&world, "jane"); /* not looked at yet */
    a_minute_passes(&world);
    answered(&world, c->want);
    http_world_write(&world, "client.crt", certificate);
    http_world_write(&world, "client.key", key);
    a_minute_passes(&world);
    answered(&world, "joan");
    free(certificate);
    free(key);
    http_world_end(&world);
}

/* Refused for its certificate, a request is not sent: it is begun again when the files say something else by then. */
static void test_access__a_new_authority_counts_at_once(void **state)
{
    static const struct https_reply replies[] = {{.chunks = {"fine"}}};
    struct http_world world;
    struct error err = {0};

    (void)state;
    http_world_begin(&world, SERVER_OTHER_CA);
    http_world_kubeconfig(&world, NULL, JANE);
    assert_int_equal(http_world_open(&world, NULL, &err), 0);
    https_stub_script(world.stub, replies, 1);
    http_world_write(&world, "ca.crt", pki_ca(world.other));
    world.access->files_mono_ms -= 1001;
    answered(&world, "jane");
    assert_int_equal(https_stub_n_requests(world.stub), 1);
    http_world_end(&world);
}

/* The server says 401 when our certificate has expired: a new one is in the files. */
static void test_access__a_certificate_that_is_refused_is_read_again(void **state)
{
    static const struct https_reply replies[] = {{.status = 401, .times = 1}, {.chunks = {"fine"}}};
    struct http_world world;
    struct error err = {0};
    char *certificate, *key;

    (void)state;
    http_world_begin(&world, SERVER_GOOD);
    http_world_kubeconfig(&world, NULL, JANE);
    assert_int_equal(http_world_open(&world, NULL, &err), 0);
    https_stub_script(world.stub, replies, 2);
    pki_issue(world.pki, "joan", NULL, -60, 3600, &certificate, &key);
    http_world_write(&world, "client.crt", certificate);
    http_world_write(&world, "client.key", key);
    world.access->files_mono_ms -= 1001;
    answered(&world, "joan");
    assert_int_equal(https_stub_n_requests(world.stub), 2);
    free(certificate);
    free(key);
    http_world_end(&world);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_access__plugin_that_is_not_there),
        cmocka_unit_test(test_access__plugin_runs_once_for_all),
        cmocka_unit_test(test_access__plugin_runs_again_before_the_end),
        cmocka_unit_test(test_access__refused_token_of_a_plugin),
        cmocka_unit_test(test_access__certificate_of_a_plugin),
        cmocka_unit_test(test_access__freed_while_a_plugin_runs),
        cmocka_unit_test(test_access__file_is_read_again_after_a_minute),
        cmocka_unit_test(test_access__refusals_of_an_old_token_do_not_count),
        cmocka_unit_test(test_access__a_new_authority_counts_at_once),
        cmocka_unit_test(test_access__a_certificate_that_is_refused_is_read_again),
    };

    return RUN_TABLE(test_access__plugin, plugin_cases) + RUN_TABLE(test_access__pod, pod_cases) +
           RUN_TABLE(test_access__rotation, rotations) + cmocka_run_group_tests(tests, NULL, NULL);
}
