/* A row of questions, each when the answer before it is there: /version, the list of groups, the resources of every
 * group version that kinds.h knows and the server has, and the metrics. The last may fail: then only what the served
 * APIs betray is known of the gates. */
#include "queued/cluster/kube/discovery.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/features.h"
#include "queued/cluster/kube/status.h"

#include "allocator/base/banned.h"

#define TIMEOUT_MS        15000
#define MAX_ANSWER_BYTES  ((size_t)4 << 20)
#define MAX_METRICS_BYTES ((size_t)64 << 20)
#define MAX_LINE_BYTES    512
#define MAX_MINOR         999

enum step_no { STEP_VERSION, STEP_GROUPS, STEP_RESOURCES, STEP_METRICS, STEP_COUNT };

/* One group version of the table of kinds, and whether the server has it. */
struct group_version {
    const char *group, *version;
};

struct discovery {
    int minor, min_compatibility; /* the second is -1 where the server does not say */
    char *git, *features;
    const char **served; /* per kind of the table: the best version, or NULL */
};

struct discovery_call {
    struct http *http;
    struct http_call *call;
    discovery_done *done;
    void *ctx;
    struct discovery *found;
    enum step_no at;
    struct group_version *wanted; /* to ask for; served by the server */
    size_t n_wanted, cap_wanted, i_wanted;
    struct buf line; /* of the metrics, as far as it came */
    size_t n_bytes;
    bool is_line_long;
    signed char gates[FEATURE_COUNT]; /* of the metrics: 1 on, 0 off, -1 not said */
};

/* ---- what was found ---- */

void discovery_free(struct discovery *found)
{
    if (!found)
        return;
    free(found->git);
    free(found->features);
    free(found->served);
    free(found);
}

int discovery_minor(const struct discovery *found)
{
    return found->minor;
}

const char *discovery_git(const struct discovery *found)
{
    return found->git;
}

const char *discovery_version_of(const struct discovery *found, const struct kind *kind)
{
    for (size_t i = 0; i < kind_count(); i++)
        if (kind_at(i) == kind)
            return found->served[i];
    return NULL;
}

const char *discovery_features(const struct discovery *found)
{
    return found->features;
}

/* ---- the call ---- */

static void ask(struct discovery_call *call);

static void call_free(struct discovery_call *call)
{
    discovery_free(call->found);
    buf_release(&call->line);
    free(call->wanted);
    free(call);
}

void discovery_cancel(struct discovery_call *call)
{
    if (!call)
        return;
    if (call->call)
        http_cancel(call->call);
    call_free(call);
}

static void give_up(struct discovery_call *call, const struct error *err)
{
    discovery_done *done = call->done;
    void *ctx = call->ctx;

    call_free(call);
    done(ctx, err, NULL);
}

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* ---- /version ---- */

/* "37", and "37+" of those who build their own. */
static int minor_of(const char *digits)
{
    char *end;
    long minor;

    if (!digits || *digits < '0' || *digits > '9')
        return -1;
    minor = strtol(digits, &end, 10);
    return minor <= MAX_MINOR && (!*end || *end == '+') ? (int)minor : -1;
}

/* Of "v1.37.2-gke.100". */
static int minor_of_git(const char *git)
{
    char *end;
    long minor;

    if (!git || strncmp(git, "v1.", 3) != 0 || git[3] < '0' || git[3] > '9')
        return -1;
    minor = strtol(git + 3, &end, 10);
    return minor <= MAX_MINOR && *end == '.' ? (int)minor : -1;
}

/* A server may behave as an older release (emulated version): then its gates are those of that one. */
static int read_version(struct discovery_call *call, const json_t *answer, struct error *err)
{
    const char *major = text(answer, "major"), *git = text(answer, "gitVersion");
    int emulated = minor_of(text(answer, "emulationMinor")), minor = minor_of(text(answer, "minor"));

    if (major && *major && strcmp(major, "1") != 0)
        return error_set(err, ERR_REMOTE, "Kubernetes %.20s is not known here", major);
    if (emulated > 0)
        minor = emulated;
    if (minor < 0)
        minor = minor_of_git(git);
    if (minor < 0)
        return error_set(err, ERR_REMOTE, "the server does not say which Kubernetes it is");
    call->found->minor = minor;
    call->found->min_compatibility = minor_of(text(answer, "minCompatibilityMinor"));
    call->found->git = mem_strndup(git ? git : "", git ? strnlen(git, 100) : 0);
    return 0;
}

/* ---- groups and resources ---- */

static bool lists_version(const json_t *group, const char *version)
{
    const json_t *item;
    size_t i;

    json_array_foreach (json_object_get(group, "versions"), i, item) {
        const char *name = text(item, "version");

        if (name && strcmp(name, version) == 0)
            return true;
    }
    return false;
}

static void want(struct discovery_call *call, const char *group, const char *version)
{
    for (size_t i = 0; i < call->n_wanted; i++)
        if (strcmp(call->wanted[i].group, group) == 0 && strcmp(call->wanted[i].version, version) == 0)
            return;
    mem_grow(call->wanted, call->n_wanted, call->cap_wanted);
    call->wanted[call->n_wanted++] = (struct group_version){group, version};
}

static void want_versions(struct discovery_call *call, const json_t *group)
{
    const char *name = text(group, "name");

    for (size_t k = 0; name && k < kind_count(); k++) {
        const struct kind *kind = kind_at(k);

        if (strcmp(kind->group, name) != 0)
            continue;
        for (size_t v = 0; v < ARRAY_SIZE(kind->versions) && kind->versions[v]; v++)
            if (lists_version(group, kind->versions[v]))
                want(call, kind->group, kind->versions[v]);
    }
}

/* The core group is in every server; all others only where they are listed. */
static int read_groups(struct discovery_call *call, const json_t *answer, struct error *err)
{
    const json_t *groups = json_object_get(answer, "groups"), *group;
    size_t i;

    if (!json_is_array(groups))
        return error_set(err, ERR_REMOTE, "the list of API groups has no groups");
    for (size_t k = 0; k < kind_count(); k++)
        if (!*kind_at(k)->group)
            call->found->served[k] = kind_at(k)->versions[0];
    json_array_foreach (groups, i, group)
        want_versions(call, group);
    return 0;
}

static size_t rank(const struct kind *kind, const char *version)
{
    size_t v = 0;

    while (v < ARRAY_SIZE(kind->versions) && kind->versions[v] && strcmp(kind->versions[v], version) != 0)
        v++;
    return v;
}

static void note_resource(struct discovery_call *call, const struct group_version *of, const char *plural)
{
    for (size_t k = 0; k < kind_count(); k++) {
        const struct kind *kind = kind_at(k);
        const char **served = &call->found->served[k];
        size_t at = rank(kind, of->version);

        if (strcmp(kind->group, of->group) != 0 || strcmp(kind->plural, plural) != 0)
            continue;
        if (at < ARRAY_SIZE(kind->versions) && kind->versions[at] && (!*served || at < rank(kind, *served)))
            *served = kind->versions[at];
    }
}

static int read_resources(struct discovery_call *call, const json_t *answer, struct error *err)
{
    const json_t *resources = json_object_get(answer, "resources"), *resource;
    size_t i;

    (void)err; /* a group version that lists nothing has nothing */
    json_array_foreach (resources, i, resource)
        if (text(resource, "name"))
            note_resource(call, &call->wanted[call->i_wanted], text(resource, "name"));
    call->i_wanted++;
    return 0;
}

/* ---- metrics ---- */

/* kubernetes_feature_enabled{name="DRAAdminAccess",stage="BETA"} 1 */
static void read_line(struct discovery_call *call, const char *line)
{
    static const char metric[] = "kubernetes_feature_enabled{", label[] = "name=\"";
    const char *name, *end;

    if (strncmp(line, metric, strlen(metric)) != 0)
        return;
    name = strstr(line, label);
    end = name ? strchr(name + strlen(label), '"') : NULL;
    line = strchr(line, '}');
    if (!end || !line || (strcmp(line, "} 0") != 0 && strcmp(line, "} 1") != 0))
        return;
    name += strlen(label);
    for (unsigned i = 0; i < FEATURE_COUNT; i++)
        if (str_is((struct str){name, (size_t)(end - name)}, feature_gate(i)))
            call->gates[i] = line[2] == '1';
}

static void end_line(struct discovery_call *call)
{
    if (!call->is_line_long)
        read_line(call, buf_str(&call->line));
    call->is_line_long = false;
    buf_clear(&call->line);
}

/* Megabytes of which twenty lines are ours: read line by line, never kept. */
static int on_metrics(void *ctx, const char *bytes, size_t len, struct error *err)
{
    struct discovery_call *call = ctx;

    call->n_bytes += len;
    if (call->n_bytes > MAX_METRICS_BYTES)
        return error_set(err, ERR_LIMIT, "more metrics than %zu bytes", MAX_METRICS_BYTES);
    while (len) {
        const char *end = memchr(bytes, '\n', len);
        size_t n = end ? (size_t)(end - bytes) : len;

        if (n > MAX_LINE_BYTES - call->line.len)
            call->is_line_long = true;
        else
            buf_add(&call->line, bytes, n);
        if (end)
            end_line(call);
        bytes += n + (end != NULL);
        len -= n + (end != NULL);
    }
    return 0;
}

/* ---- features ---- */

/* What the metrics do not tell, the rest may: fractional ranges wait until no older API server can be beside this one,
 * and there are no rules without their API. */
static int gate_without_metrics(const struct discovery_call *call, unsigned feature)
{
    const struct discovery *found = call->found;

    if (feature == FEATURE_FRACTIONAL_CAPACITY_RANGE && found->min_compatibility >= 0 && found->min_compatibility < 37)
        return 0;
    if (feature == FEATURE_DEVICE_TAINT_RULES && found->minor >= 35)
        return discovery_version_of(found, kind_find("DeviceTaintRule")) != NULL;
    return -1;
}

static int gate_of(const struct discovery_call *call, unsigned feature)
{
    if (feature == FEATURE_DEVICE_TAINT_RULES && !discovery_version_of(call->found, kind_find("DeviceTaintRule")))
        return 0;
    return call->gates[feature] >= 0 ? call->gates[feature] : gate_without_metrics(call, feature);
}

static char *changes(const struct discovery_call *call)
{
    struct features usual = features_default(call->found->minor);
    BUF out = {0};

    for (unsigned i = 0; i < FEATURE_COUNT; i++) {
        int gate = gate_of(call, i);

        if (gate >= 0 && gate != feature_on(&usual, i))
            buf_addf(&out, "%s%c%s", out.len ? "," : "", gate ? '+' : '-', feature_gate(i));
    }
    return out.data ? buf_take(&out) : mem_strdup("");
}

static void finish(struct discovery_call *call)
{
    struct discovery *found = call->found;
    discovery_done *done = call->done;
    void *ctx = call->ctx;

    found->features = changes(call);
    call->found = NULL;
    call_free(call);
    done(ctx, NULL, found);
}

/* ---- the row of questions ---- */

static void path_version(const struct discovery_call *call, struct buf *out)
{
    (void)call;
    buf_adds(out, "/version");
}

static void path_groups(const struct discovery_call *call, struct buf *out)
{
    (void)call;
    buf_adds(out, "/apis");
}

static void path_resources(const struct discovery_call *call, struct buf *out)
{
    buf_addf(out, "/apis/%s/%s", call->wanted[call->i_wanted].group, call->wanted[call->i_wanted].version);
}

static void path_metrics(const struct discovery_call *call, struct buf *out)
{
    (void)call;
    buf_adds(out, "/metrics");
}

static const struct {
    void (*path)(const struct discovery_call *call, struct buf *out);
    int (*read)(struct discovery_call *call, const json_t *answer, struct error *err); /* NULL: by on_metrics */
} steps[STEP_COUNT] = {
    [STEP_VERSION] = {path_version, read_version},
    [STEP_GROUPS] = {path_groups, read_groups},
    [STEP_RESOURCES] = {path_resources, read_resources},
    [STEP_METRICS] = {path_metrics, NULL},
};

static int read_answer(struct discovery_call *call, const struct http_answer *answer, struct error *err)
{
    json_t *json;
    int result;

    if (call->at == STEP_RESOURCES && answer->status == 404) { /* gone since the groups were listed */
        call->i_wanted++;
        return 0;
    }
    if (status_check(answer, false, err) < 0)
        return -1;
    json = json_loadb(answer->body, answer->len, 0, NULL);
    if (!json)
        return error_set(err, ERR_REMOTE, "the answer is not JSON");
    result = steps[call->at].read(call, json, err);
    json_decref(json);
    return result;
}

static void on_answer(void *ctx, const struct http_answer *answer)
{
    struct discovery_call *call = ctx;
    struct error err = {0};
    BUF path = {0};

    call->call = NULL;
    if (!steps[call->at].read) {
        finish(call);
        return;
    }
    steps[call->at].path(call, &path);
    if (read_answer(call, answer, &err) < 0) {
        error_wrap(&err, "%s", buf_str(&path));
        give_up(call, &err);
        return;
    }
    if (call->at != STEP_RESOURCES)
        call->at++;
    if (call->at == STEP_RESOURCES && call->i_wanted == call->n_wanted)
        call->at++;
    ask(call);
}

static void ask(struct discovery_call *call)
{
    struct http_request request = {.method = "GET",
                                   .timeout_ms = TIMEOUT_MS,
                                   .max_bytes = MAX_ANSWER_BYTES,
                                   .data = steps[call->at].read ? NULL : on_metrics,
                                   .done = on_answer,
                                   .ctx = call};
    BUF path = {0};

    steps[call->at].path(call, &path);
    request.path = buf_str(&path);
    call->call = http_send(call->http, &request);
}

struct discovery_call *discover(struct http *http, discovery_done *done, void *ctx)
{
    struct discovery_call *call = mem_new(struct discovery_call);

    call->http = http;
    call->done = done;
    call->ctx = ctx;
    call->found = mem_new(struct discovery);
    call->found->served = mem_array(const char *, kind_count());
    memset(call->gates, -1, sizeof(call->gates));
    ask(call);
    return call;
}
