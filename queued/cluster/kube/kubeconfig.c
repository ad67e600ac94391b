/* A context of a kubeconfig: its cluster, its user, and what they give.
 *
 * What an entry may say is a table per kind of entry. A field that is not in its table, or that is there to be refused,
 * ends the reading with its file, line and path: whoever wrote it relied on it. Paths are relative to their own file.
 */
#include "queued/cluster/kube/access_internal.h"

#include <curl/curl.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/cluster/kube/kubeconfig_file.h"
#include "queued/cluster/kube/plugin.h"
#include "queued/cluster/kube/secret.h"

#include "allocator/base/banned.h"

/* ---- what an entry may say ---- */

struct context_text {
    const char *cluster, *user, *namespace;
};
#define AT(field) offsetof(struct context_text, field)
static const struct rule context_rules[] = {
    {"cluster", TEXT, AT(cluster), NULL}, {"user", TEXT, AT(user), NULL}, {"namespace", TEXT, AT(namespace), NULL},
    {"extensions", IGNORED, 0, NULL},     {NULL, IGNORED, 0, NULL},
};
#undef AT

struct cluster_text {
    const char *server, *server_name, *ca_path, *ca_data, *proxy;
    bool is_unverified, is_uncompressed;
    const json_t *extensions;
};
#define AT(field) offsetof(struct cluster_text, field)
static const struct rule cluster_rules[] = {
    {"server", TEXT, AT(server), NULL},
    {"tls-server-name", TEXT, AT(server_name), NULL},
    {"insecure-skip-tls-verify", FLAG, AT(is_unverified), NULL},
    {"certificate-authority", TEXT, AT(ca_path), NULL},
    {"certificate-authority-data", TEXT, AT(ca_data), NULL},
    {"proxy-url", TEXT, AT(proxy), NULL},
    {"disable-compression", FLAG, AT(is_uncompressed), NULL},
    {"extensions", LIST, AT(extensions), NULL},
    {NULL, IGNORED, 0, NULL},
};
#undef AT

struct user_text {
    const char *certificate_path, *certificate_data, *key_path, *key_data, *token, *token_path, *as, *as_uid;
    const json_t *as_groups, *as_extra, *exec;
};
#define AT(field) offsetof(struct user_text, field)
static const struct rule user_rules[] = {
    {"client-certificate", TEXT, AT(certificate_path), NULL},
    {"client-certificate-data", TEXT, AT(certificate_data), NULL},
    {"client-key", TEXT, AT(key_path), NULL},
    {"client-key-data", TEXT, AT(key_data), NULL},
    {"token", TEXT, AT(token), NULL},
    {"tokenFile", TEXT, AT(token_path), NULL},
    {"as", TEXT, AT(as), NULL},
    {"as-uid", TEXT, AT(as_uid), NULL},
    {"as-groups", LIST, AT(as_groups), NULL},
    {"as-user-extra", OBJECT, AT(as_extra), NULL},
    {"exec", OBJECT, AT(exec), NULL},
    {"username", REFUSED, 0, "Kubernetes has no passwords any more"},
    {"password", REFUSED, 0, "Kubernetes has no passwords any more"},
    {"auth-provider", REFUSED, 0, "is gone from Kubernetes; use an exec plugin"},
    {"extensions", IGNORED, 0, NULL},
    {NULL, IGNORED, 0, NULL},
};
#undef AT

struct exec_text {
    const char *version, *command, *hint, *interactive;
    bool wants_cluster;
    const json_t *args, *env;
};
#define AT(field) offsetof(struct exec_text, field)
static const struct rule exec_rules[] = {
    {"apiVersion", TEXT, AT(version), NULL},
    {"command", TEXT, AT(command), NULL},
    {"installHint", TEXT, AT(hint), NULL},
    {"interactiveMode", TEXT, AT(interactive), NULL},
    {"provideClusterInfo", FLAG, AT(wants_cluster), NULL},
    {"args", LIST, AT(args), NULL},
    {"env", LIST, AT(env), NULL},
    {NULL, IGNORED, 0, NULL},
};
#undef AT

/* ---- PEM, from the text or from a file beside it ---- */

static char *decode_base64(const char *text, struct error *err)
{
    size_t len = strlen(text), n = 0, padding = 0;
    SECRET_TEXT *packed = mem_zalloc(len + 1, 1);
    SECRET_TEXT *out = mem_zalloc(len + 4, 1);
    int r = -1;

    for (size_t i = 0; i < len; i++)
        if (!strchr(" \t\r\n", text[i]))
            packed[n++] = text[i];
    while (padding < n && padding < 2 && packed[n - 1 - padding] == '=')
        padding++;
    if (n && n <= INT_MAX)
        r = EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)packed, (int)n);
    if (r < (int)padding) {
        error_set(err, ERR_INVALID, "is not base64");
        return NULL;
    }
    out[r - (int)padding] = '\0';
    if (strlen(out) != (size_t)r - padding) {
        error_set(err, ERR_INVALID, "holds bytes that are no text");
        return NULL;
    }
    return TAKE(out);
}

/* `data_field` wins over `path_field`, as with kubectl. *out stays NULL when there is neither, *out_path when it is of
 * no file. */
static int read_pem(const struct entry *entry, const char *data_field, const char *data, const char *path_field,
                    const char *path, char **out, char **out_path, struct error *err)
{
    if (data) {
        *out = decode_base64(data, err);
        return *out ? 0 : entry_blame(entry, data_field, err);
    }
    if (path) {
        *out_path = entry_path(entry, path);
        *out = access_read_file(*out_path, ACCESS_MAX_FILE, err);
        return *out ? 0 : entry_blame(entry, path_field, err);
    }
    return 0;
}

/* ---- the cluster ---- */

static bool url_has(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    bool has = curl_url_get(url, part, &text, 0) == CURLUE_OK;

    curl_free(text);
    return has;
}

static bool url_is(const char *text, const char *const *schemes, bool with_password)
{
    CURLU *url = curl_url();
    char *scheme = NULL;
    bool is_good = url && curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
                   curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK && url_has(url, CURLUPART_HOST) &&
                   !url_has(url, CURLUPART_QUERY) && !url_has(url, CURLUPART_FRAGMENT);

    if (is_good && !with_password)
        is_good = !url_has(url, CURLUPART_USER) && !url_has(url, CURLUPART_PASSWORD);
    if (is_good) {
        is_good = false;
        for (; *schemes; schemes++)
            is_good = is_good || strcmp(scheme, *schemes) == 0;
    }
    curl_free(scheme);
    curl_url_cleanup(url);
    return is_good;
}

static int set_server(struct access *access, const struct entry *entry, const char *server, struct error *err)
{
    static const char *const schemes[] = {"https", "http", NULL};
    size_t len;

    if (!server)
        return entry_refuse(entry, "server", err, "is missing");
    if (!url_is(server, schemes, false))
        return entry_refuse(entry, "server", err, "must be https://host:port");
    len = strlen(server);
    while (len && server[len - 1] == '/')
        len--;
    access->server = mem_strndup(server, len);
    return 0;
}

/* A name is resolved by the proxy, not here, as with kubectl. */
static int set_proxy(struct access *access, const struct entry *entry, const char *proxy, struct error *err)
{
    static const char *const schemes[] = {"http", "https", "socks5", NULL};
    BUF url = {0};

    if (!proxy)
        return 0;
    if (!url_is(proxy, schemes, true))
        return entry_refuse(entry, "proxy-url", err, "must be an http, https or socks5 URL");
    if (strncmp(proxy, "socks5:", 7) == 0)
        buf_addf(&url, "socks5h:%s", proxy + 7);
    else
        buf_adds(&url, proxy);
    access->proxy = buf_take(&url);
    return 0;
}

static int set_server_name(struct access *access, const struct entry *entry, const char *name, struct error *err)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:";

    if (name && (strlen(name) > 253 || strspn(name, good) != strlen(name)))
        return entry_refuse(entry, "tls-server-name", err, "is no name of a host");
    access->server_name = mem_strdup(name);
    return 0;
}

static int set_cluster(struct access *access, const struct entry *entry, struct cluster_text *text, struct error *err)
{
    if (entry_read(entry, cluster_rules, text, err) < 0 || set_server(access, entry, text->server, err) < 0 ||
        set_proxy(access, entry, text->proxy, err) < 0 || set_server_name(access, entry, text->server_name, err) < 0)
        return -1;
    if (text->is_unverified && (text->ca_data || text->ca_path))
        return entry_refuse(entry, "insecure-skip-tls-verify", err, "a certificate authority is given as well");
    if (read_pem(entry, "certificate-authority-data", text->ca_data, "certificate-authority", text->ca_path,
                 &access->ca, &access->ca_path, err) < 0)
        return -1;
    if (access->ca && access_check_certificates(access->ca, err) < 0)
        return entry_blame(entry, text->ca_data ? "certificate-authority-data" : "certificate-authority", err);
    access->is_unverified = text->is_unverified;
    access->is_uncompressed = text->is_uncompressed;
    return 0;
}

/* ---- the exec plugin ---- */

static int check_env(const struct entry *entry, const json_t *list, struct error *err)
{
    const json_t *row;
    char at[64];
    size_t i;

    json_array_foreach (list, i, row) {
        const char *name = json_string_value(json_object_get(row, "name"));

        snprintf(at, sizeof(at), "env[%zu]", i);
        if (!name || !name[0] || strchr(name, '=') || !json_is_string(json_object_get(row, "value")))
            return entry_refuse(entry, at, err, "must have a name and a value");
    }
    return 0;
}

static int check_exec(const struct entry *entry, const struct exec_text *text, struct error *err)
{
    static const char *const versions[] = {"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"};
    bool is_v1 = text->version && strcmp(text->version, versions[0]) == 0;

    if (!text->version || (!is_v1 && strcmp(text->version, versions[1]) != 0))
        return entry_refuse(entry, "apiVersion", err, "must be %s or v1beta1", versions[0]);
    if (!text->command)
        return entry_refuse(entry, "command", err, "is missing");
    if (is_v1 && !text->interactive)
        return entry_refuse(entry, "interactiveMode", err, "is missing");
    if (text->interactive && strcmp(text->interactive, "Always") == 0)
        return entry_refuse(entry, "interactiveMode", err,
                            "nobody is there to answer: a server cannot use such a plugin");
    if (text->interactive && strcmp(text->interactive, "Never") != 0 && strcmp(text->interactive, "IfAvailable") != 0)
        return entry_refuse(entry, "interactiveMode", err, "must be Never, IfAvailable or Always");
    if (entry_check_texts(entry, "args", text->args, err) < 0)
        return -1;
    return check_env(entry, text->env, err);
}

static void put_text(json_t *object, const char *field, const char *value)
{
    if (value)
        json_object_set_new(object, field, json_string(value));
}

static char *encode_base64(const char *text)
{
    size_t len = strlen(text);
    char *out = mem_zalloc(len / 3 * 4 + 8, 1);

    EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)text, (int)len);
    return out;
}

/* What the plugin is told of the cluster; `config` is the extension that bears the plugin's API group as name. */
static json_t *cluster_info(const struct access *access, const struct cluster_text *text)
{
    json_t *info = json_object();
    const json_t *extension;
    size_t i;

    put_text(info, "server", access->server);
    put_text(info, "tls-server-name", access->server_name);
    put_text(info, "proxy-url", text->proxy);
    if (text->is_unverified)
        json_object_set_new(info, "insecure-skip-tls-verify", json_true());
    if (text->is_uncompressed)
        json_object_set_new(info, "disable-compression", json_true());
    if (access->ca) {
        char *data = encode_base64(access->ca);

        put_text(info, "certificate-authority-data", data);
        free(data);
    }
    json_array_foreach (text->extensions, i, extension) {
        const char *name = json_string_value(json_object_get(extension, "name"));

        if (name && strcmp(name, "client.authentication.k8s.io/exec") == 0)
            json_object_set(info, "config", json_object_get(extension, "extension"));
    }
    return info;
}

static int set_exec(struct access *access, const struct entry *user, const json_t *exec,
                    const struct cluster_text *cluster, struct error *err)
{
    struct entry entry = {.file = user->file, .value = exec};
    struct exec_text text = {0};
    json_t *info;
    char *command;

    snprintf(entry.path, sizeof(entry.path), "%.100s.exec", user->path);
    if (entry_read(&entry, exec_rules, &text, err) < 0 || check_exec(&entry, &text, err) < 0)
        return -1;
    info = text.wants_cluster ? cluster_info(access, cluster) : NULL;
    /* a bare name is looked for in PATH, everything else is a path */
    command = strchr(text.command, '/') ? entry_path(user, text.command) : mem_strdup(text.command);
    struct plugin_options options = {
        .version = text.version,
        .command = command,
        .args = text.args,
        .env = text.env,
        .cluster = info,
        .install_hint = text.hint,
    };
    access->plugin = plugin_new(&options);
    access->kind = TOKEN_PLUGIN;
    free(command);
    json_decref(info);
    return 0;
}

/* ---- the user ---- */

static int set_pair(struct access *access, const struct entry *entry, const struct user_text *text, struct error *err)
{
    bool has_certificate = text->certificate_data || text->certificate_path;
    bool has_key = text->key_data || text->key_path;

    if (has_certificate && !has_key)
        return entry_refuse(entry, "client-certificate", err, "without a client-key");
    if (has_key && !has_certificate)
        return entry_refuse(entry, "client-key", err, "without a client-certificate");
    if (!has_key)
        return 0;
    if (read_pem(entry, "client-certificate-data", text->certificate_data, "client-certificate", text->certificate_path,
                 &access->certificate, &access->certificate_path, err) < 0 ||
        read_pem(entry, "client-key-data", text->key_data, "client-key", text->key_path, &access->key,
                 &access->key_path, err) < 0)
        return -1;
    if (access_check_pair(access->certificate, access->key, err) < 0)
        return entry_blame(entry, text->key_data ? "client-key-data" : "client-key", err);
    return 0;
}

static int set_token(struct access *access, const struct entry *entry, const struct user_text *text, struct error *err)
{
    if (text->token_path) {
        access->kind = TOKEN_FILE;
        access->token_path = entry_path(entry, text->token_path);
        return access_read_token(access, err) < 0 ? entry_blame(entry, "tokenFile", err) : 0;
    }
    if (text->token) {
        access->kind = TOKEN_FIXED;
        return access_put_token(access, mem_strdup(text->token), err) < 0 ? entry_blame(entry, "token", err) : 0;
    }
    return 0;
}

static int add_extra(struct access *access, const struct entry *entry, const char *key, const json_t *values,
                     struct error *err)
{
    BUF name = {0};
    const json_t *value;
    size_t i;

    /* keys are case-insensitive in a header: the server reads them in lower case, with the rest percent-encoded */
    buf_adds(&name, "Impersonate-Extra-");
    for (const char *c = key; *c; c++) {
        if ((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || strchr("-._~", *c))
            buf_addc(&name, *c);
        else if (*c >= 'A' && *c <= 'Z')
            return entry_refuse(entry, "as-user-extra", err, "keys are in lower case");
        else
            buf_addf(&name, "%%%02X", (unsigned)(unsigned char)*c);
    }
    if (!key[0] || !json_is_array(values))
        return entry_refuse(entry, "as-user-extra", err, "each key needs a list of texts");
    json_array_foreach (values, i, value) {
        if (!json_is_string(value) || access_add_header(access, buf_str(&name), json_string_value(value), err) < 0)
            return entry_refuse(entry, "as-user-extra", err, "values must be texts that a header may have");
    }
    return 0;
}

static int set_impersonation(struct access *access, const struct entry *entry, const struct user_text *text,
                             struct error *err)
{
    const json_t *value;
    const char *key;
    size_t i;

    if (!text->as && (text->as_uid || text->as_groups || text->as_extra))
        return entry_refuse(entry, "as", err, "is missing, and other fields of impersonation are there");
    if (!text->as)
        return 0;
    if (access_add_header(access, "Impersonate-User", text->as, err) < 0)
        return entry_blame(entry, "as", err);
    if (text->as_uid && access_add_header(access, "Impersonate-Uid", text->as_uid, err) < 0)
        return entry_blame(entry, "as-uid", err);
    if (entry_check_texts(entry, "as-groups", text->as_groups, err) < 0)
        return -1;
    json_array_foreach (text->as_groups, i, value) {
        if (access_add_header(access, "Impersonate-Group", json_string_value(value), err) < 0)
            return entry_blame(entry, "as-groups", err);
    }
    json_object_foreach ((json_t *)text->as_extra, key, value) {
        if (add_extra(access, entry, key, value, err) < 0)
            return -1;
    }
    return 0;
}

static int set_user(struct access *access, const struct entry *entry, const struct cluster_text *cluster,
                    struct error *err)
{
    struct user_text text = {0};

    if (entry_read(entry, user_rules, &text, err) < 0 || set_pair(access, entry, &text, err) < 0 ||
        set_impersonation(access, entry, &text, err) < 0)
        return -1;
    if (text.exec && (text.token || text.token_path || access->certificate))
        return entry_refuse(entry, "exec", err, "there are other credentials as well");
    if (text.exec)
        return set_exec(access, entry, text.exec, cluster, err);
    return set_token(access, entry, &text, err);
}

/* ---- the context ---- */

static bool is_this_machine(const char *url)
{
    static const char *const hosts[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};

    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
        size_t len = strlen(hosts[i]);

        if (strncmp(url, hosts[i], len) == 0 && (!url[len] || url[len] == ':' || url[len] == '/'))
            return true;
    }
    return false;
}

/* Whoever can read a connection without TLS has the credentials too: only on this machine. */
static int check_cleartext(const struct access *access, const struct entry *cluster, struct error *err)
{
    if (strncasecmp(access->server, "https:", 6) == 0 || (access->kind == TOKEN_NONE && !access->certificate))
        return 0;
    if (access->certificate)
        return entry_refuse(cluster, "server", err, "a client certificate needs https");
    if (is_this_machine(access->server))
        return 0;
    return entry_refuse(cluster, "server", err, "credentials are not sent without TLS");
}

static int set_namespace(struct access *access, const struct entry *context, const char *name, struct error *err)
{
    if (name && (strlen(name) > 63 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(name)))
        return entry_refuse(context, "namespace", err, "is no name of a namespace");
    access->namespace = mem_strdup(name);
    return 0;
}

static int set_context(struct access *access, const struct kubeconfig *config, const char *name, struct error *err)
{
    struct entry context, cluster, user = {0};
    struct context_text text = {0};
    struct cluster_text cluster_text = {0};

    if (kubeconfig_find(config, "contexts", "context", name, &context, err) < 0)
        return -1;
    if (!context.value)
        return error_set(err, ERR_NOT_FOUND, "%s: there is no context \"%s\"", kubeconfig_name(config), name);
    if (entry_read(&context, context_rules, &text, err) < 0 || set_namespace(access, &context, text.namespace, err) < 0)
        return -1;
    if (!text.cluster)
        return entry_refuse(&context, "cluster", err, "is missing");
    if (kubeconfig_find(config, "clusters", "cluster", text.cluster, &cluster, err) < 0 ||
        (text.user && kubeconfig_find(config, "users", "user", text.user, &user, err) < 0))
        return -1;
    if (!cluster.value)
        return entry_refuse(&context, "cluster", err, "there is no cluster \"%s\"", text.cluster);
    if (text.user && !user.value)
        return entry_refuse(&context, "user", err, "there is no user \"%s\"", text.user);
    if (set_cluster(access, &cluster, &cluster_text, err) < 0 ||
        (text.user && set_user(access, &user, &cluster_text, err) < 0))
        return -1;
    return check_cleartext(access, &cluster, err);
}

int access_from_kubeconfig(const char *path, const char *context, struct access **out, struct error *err)
{
    struct kubeconfig config __attribute__((cleanup(kubeconfig_release))) = {0};
    CLEANUP(access) *access_made = access_new();

    if (kubeconfig_read(&config, path, err) < 0)
        return -1;
    if ((!context || !context[0]) && kubeconfig_current(&config, &context, err) < 0)
        return -1;
    if (set_context(access_made, &config, context, err) < 0)
        return -1;
    access_tls_changed(access_made);
    *out = TAKE(access_made);
    return 0;
}
