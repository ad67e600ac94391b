/* Failures on command. A command is an object with one of the keys of the table; one more is one more row. */
#include "queued/cluster/embedded/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/clock.h"

#include "allocator/base/banned.h"

#define TAINT_UNREACHABLE "node.kubernetes.io/unreachable"
#define DEFAULT_TAINT_KEY "embedded.queue.dra/unhealthy"

/* ---- requests that fail ---- */

static const struct {
    const char *name;
    enum err_code code;
} fault_errors[] = {
    {"conflict", ERR_CONFLICT}, {"invalid", ERR_INVALID},         {"not-found", ERR_NOT_FOUND},
    {"timeout", ERR_TIMEOUT},   {"unavailable", ERR_UNAVAILABLE}, {"denied", ERR_DENIED},
};
static const char *const fault_ops[] = {"create", "remove", "ungate", "allocate", "bind", "get", "logs"};

static int fault_read(const json_t *command, struct fault *fault, struct error *err)
{
    const char *op = field_text(command, "fail", NULL), *kind = field_text(command, "kind", NULL);
    const char *error = field_text(command, "error", NULL), *words = field_text(command, "words", NULL);
    const json_t *nth = json_object_get(command, "nth"), *applied = json_object_get(command, "applied");

    for (size_t i = 0; op && i < ARRAY_SIZE(fault_ops); i++)
        if (strcmp(op, fault_ops[i]) == 0)
            snprintf(fault->op, sizeof(fault->op), "%s", op);
    if (!*fault->op)
        return error_field(err, "fail", "must be create, remove, ungate, allocate, bind, get or logs");
    if (kind && !served_kind_find(kind))
        return error_field(err, "kind", "\"%.63s\" is not served by the embedded cluster", kind);
    snprintf(fault->kind, sizeof(fault->kind), "%s", kind ? kind : "");
    for (size_t i = 0; error && i < ARRAY_SIZE(fault_errors); i++)
        if (strcmp(error, fault_errors[i].name) == 0)
            fault->code = fault_errors[i].code;
    if (fault->code == ERR_NONE)
        return error_field(err, "error", "must be conflict, denied, invalid, not-found, timeout or unavailable");
    if (nth && (!json_is_integer(nth) || json_integer_value(nth) < 1))
        return error_field(err, "nth", "must be a number from 1");
    if (applied && !json_is_boolean(applied))
        return error_field(err, "applied", "must be true or false");
    snprintf(fault->words, sizeof(fault->words), "%s", words ? words : "");
    fault->nth = nth ? (uint64_t)json_integer_value(nth) : 1;
    fault->is_applied = applied ? json_is_true(applied) : fault->code == ERR_TIMEOUT;
    return 0;
}

static int command_fail(struct embedded *cluster, const json_t *command, struct error *err)
{
    struct fault fault = {0};

    if (fault_read(command, &fault, err) < 0)
        return -1;
    mem_grow(cluster->faults, cluster->n_faults, cluster->cap_faults);
    cluster->faults[cluster->n_faults++] = fault;
    return 0;
}

struct fault fault_take(struct embedded *cluster, const char *op, const char *kind)
{
    struct fault taken = {.code = ERR_NONE};
    size_t left = 0;

    for (size_t i = 0; i < cluster->n_faults; i++) {
        struct fault fault = cluster->faults[i];

        if (strcmp(fault.op, op) == 0 && (!*fault.kind || strcmp(fault.kind, kind) == 0) && --fault.nth == 0) {
            if (taken.code == ERR_NONE)
                taken = fault;
            continue;
        }
        cluster->faults[left++] = fault;
    }
    cluster->n_faults = left;
    return taken;
}

/* ---- nodes ---- */

static int find_named(struct embedded *cluster, enum kind_id kind, const json_t *command, const char *key,
                      struct entry **out, struct error *err)
{
    const char *name = field_text(command, key, NULL);

    *out = name ? entry_find(cluster, kind, NULL, name) : NULL;
    if (*out)
        return 0;
    error_field(err, key, "%s is no %s", name ? name : "this", kinds[kind].name);
    if (err)
        err->code = name ? ERR_NOT_FOUND : ERR_INVALID;
    return -1;
}

static void drop_unreachable(json_t *taints)
{
    for (size_t i = json_array_size(taints); i-- > 0;) {
        const char *key = field_text(json_array_get(taints, i), "key", NULL);

        if (key && strcmp(key, TAINT_UNREACHABLE) == 0)
            json_array_remove(taints, i);
    }
}

/* The node controller's view: condition Ready and the taints that go with it. */
static void node_set(struct entry *node, bool is_up, bool is_silent)
{
    static const char *const effects[] = {"NoSchedule", "NoExecute"};
    int64_t now_ms = clock_now_ms(node->cluster->clock);
    json_t *draft = entry_draft(node), *spec = field_object(draft, "spec"), *taints = field_array(spec, "taints");

    json_object_del(json_object_get(json_object_get(draft, "metadata"), "annotations"), ANNOTATION_SILENT);
    if (is_silent)
        json_object_set_new(field_object(field_object(draft, "metadata"), "annotations"), ANNOTATION_SILENT,
                            json_string("true"));
    pod_condition(draft, "Ready", is_up, is_up ? "KubeletReady" : "NodeStatusUnknown", NULL, now_ms);
    drop_unreachable(taints);
    for (size_t i = 0; !is_up && i < ARRAY_SIZE(effects); i++)
        json_array_append_new(taints, json_pack("{s:s,s:s,s:o}", "key", TAINT_UNREACHABLE, "effect", effects[i],
                                                "timeAdded", when_json(now_ms)));
    if (json_array_size(taints) == 0)
        json_object_del(spec, "taints");
    entry_change(node, draft);
}

static int command_node_down(struct embedded *cluster, const json_t *command, struct error *err)
{
    const json_t *silent = json_object_get(command, "silent");
    struct entry *node, *pod;
    char message[300];

    if (find_named(cluster, KIND_NODE, command, "nodeDown", &node, err) < 0)
        return -1;
    if (silent && !json_is_boolean(silent))
        return error_field(err, "silent", "must be true or false");
    snprintf(message, sizeof(message), "Node %s which was running the pod is unresponsive", node->name);
    node_set(node, false, json_is_true(silent));
    DL_FOREACH (cluster->lists[KIND_POD], pod)
        if (!json_is_true(silent) && pod_is_bound(pod) && !pod_is_finished(pod) &&
            strcmp(field_text(pod->json, "spec", "nodeName", NULL), node->name) == 0)
            pod_end(pod, 137, "NodeLost", message, clock_now_ms(cluster->clock));
    return 0;
}

static int command_node_up(struct embedded *cluster, const json_t *command, struct error *err)
{
    struct entry *node;

    if (find_named(cluster, KIND_NODE, command, "nodeUp", &node, err) < 0)
        return -1;
    node_set(node, true, false);
    push_pods_of(node);
    return 0;
}

/* ---- devices ---- */

struct taint_command {
    const char *driver, *pool, *device, *key, *effect;
    char rule[40];
};

static int taint_read(const json_t *command, const char *which, struct taint_command *out, struct error *err)
{
    const json_t *body = json_object_get(command, which);
    const struct {
        const char *name, **value, *otherwise;
    } rows[] = {
        {"driver", &out->driver, NULL},         {"pool", &out->pool, NULL},
        {"device", &out->device, NULL},         {"key", &out->key, DEFAULT_TAINT_KEY},
        {"effect", &out->effect, "NoSchedule"},
    };
    static const char *const effects[] = {"NoSchedule", "NoExecute", "None"};
    bool is_effect = false;
    uint64_t hash = 0;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        *rows[i].value = field_text(body, rows[i].name, NULL);
        if (!*rows[i].value && json_object_get(body, rows[i].name)) {
            error_field(err, rows[i].name, "must be a string");
            return error_in(err, "%s", which);
        }
        if (!*rows[i].value)
            *rows[i].value = rows[i].otherwise;
        if (!*rows[i].value) {
            error_field(err, rows[i].name, "is required");
            return error_in(err, "%s", which);
        }
        if (i < 4)
            hash = fnv64(hash, *rows[i].value, strlen(*rows[i].value) + 1);
    }
    for (size_t i = 0; i < ARRAY_SIZE(effects); i++)
        is_effect |= strcmp(out->effect, effects[i]) == 0;
    if (!is_effect) {
        error_field(err, "effect", "must be NoSchedule, NoExecute or None");
        return error_in(err, "%s", which);
    }
    snprintf(out->rule, sizeof(out->rule), "embedded-%016llx", (unsigned long long)hash);
    return 0;
}

static int command_device_taint(struct embedded *cluster, const json_t *command, struct error *err)
{
    struct taint_command taint;
    struct entry *rule;
    json_t *object;
    int rc;

    if (taint_read(command, "deviceTaint", &taint, err) < 0)
        return -1;
    if (!feature_on(&cluster->features, FEATURE_DEVICE_TAINT_RULES))
        return error_field(err, "deviceTaint", "the release of this cluster does not know DeviceTaintRules");
    object =
        json_pack("{s:s,s:s,s:{s:s},s:{s:{s:s,s:s,s:s},s:{s:s,s:s}}}", "apiVersion", "resource.k8s.io/v1", "kind",
                  "DeviceTaintRule", "metadata", "name", taint.rule, "spec", "deviceSelector", "driver", taint.driver,
                  "pool", taint.pool, "device", taint.device, "taint", "key", taint.key, "effect", taint.effect);
    rc = object ? api_put(cluster, object, &rule, err) : error_field(err, "deviceTaint", "is no text");
    json_decref(object);
    return rc;
}

static int command_device_untaint(struct embedded *cluster, const json_t *command, struct error *err)
{
    struct taint_command taint;
    struct entry *rule;

    if (taint_read(command, "deviceUntaint", &taint, err) < 0)
        return -1;
    rule = entry_find(cluster, KIND_TAINT_RULE, NULL, taint.rule);
    if (!rule)
        return error_set(err, ERR_NOT_FOUND, "device %s of pool %s has no such taint from a command", taint.device,
                         taint.pool);
    entry_delete(rule);
    return 0;
}

/* ---- pods and objects ---- */

static int command_kill_pod(struct embedded *cluster, const json_t *command, struct error *err)
{
    const char *which = field_text(command, "killPod", NULL), *slash = which ? strchr(which, '/') : NULL;
    const json_t *code = json_object_get(command, "exitCode");
    struct entry *pod;
    char *ns;

    if (!slash)
        return error_field(err, "killPod", "must be namespace/name");
    if (code && (!json_is_integer(code) || json_integer_value(code) < 0 || json_integer_value(code) > 255))
        return error_field(err, "exitCode", "must be a number from 0 to 255");
    ns = mem_strndup(which, (size_t)(slash - which));
    pod = entry_find(cluster, KIND_POD, ns, slash + 1);
    free(ns);
    if (!pod)
        return error_set(err, ERR_NOT_FOUND, "pods \"%s\" not found", which);
    if (!pod_is_bound(pod) || pod_is_finished(pod))
        return error_set(err, ERR_CONFLICT, "the pod %s is not running", which);
    pod_end(pod, code ? (int)json_integer_value(code) : 137, NULL, NULL, clock_now_ms(cluster->clock));
    return 0;
}

static int command_delete(struct embedded *cluster, const json_t *command, struct error *err)
{
    const json_t *body = json_object_get(command, "deleteObject");
    const char *kind = field_text(body, "kind", NULL), *name = field_text(body, "name", NULL);
    const char *ns = field_text(body, "namespace", NULL);

    if (!kind || !served_kind_find(kind))
        return error_field(err, "deleteObject.kind", "must be a kind that the embedded cluster serves");
    if (!name)
        return error_field(err, "deleteObject.name", "is required");
    if (!entry_find(cluster, served_kind_find(kind)->id, ns, name))
        return error_set(err, ERR_NOT_FOUND, "%s \"%s\" not found", served_kind_find(kind)->plural, name);
    return api_remove(cluster, kind, ns, name, NULL, err);
}

static int command_put(struct embedded *cluster, const json_t *command, struct error *err)
{
    struct entry *entry;

    if (api_put(cluster, json_object_get(command, "putObject"), &entry, err) < 0)
        return error_in(err, "putObject");
    return 0;
}

/* ---- holding ---- */

static int set_hold(struct embedded *cluster, const json_t *command, const char *key, bool is_held, struct error *err)
{
    const char *what = field_text(command, key, NULL);

    if (!what || strcmp(what, "schedule") != 0)
        return error_field(err, key, "must be \"schedule\"");
    cluster->is_held = is_held;
    cluster->is_scheduling_due = true;
    return 0;
}

static int command_hold(struct embedded *cluster, const json_t *command, struct error *err)
{
    return set_hold(cluster, command, "hold", true, err);
}

static int command_release(struct embedded *cluster, const json_t *command, struct error *err)
{
    return set_hold(cluster, command, "release", false, err);
}

static int command_lose(struct embedded *cluster, const json_t *command, struct error *err)
{
    const char *what = field_text(command, "lose", NULL);

    if (!what || strcmp(what, "stream") != 0)
        return error_field(err, "lose", "must be \"stream\"");
    if (!cluster->listener)
        return error_set(err, ERR_CONFLICT, "the stream has not begun");
    embedded_lose_stream(cluster);
    return 0;
}

/* ---- the table ---- */

static const struct command {
    const char *key;
    const char *others; /* further keys, each between spaces */
    int (*run)(struct embedded *cluster, const json_t *command, struct error *err);
} commands[] = {
    {"fail", " kind nth error words applied ", command_fail},
    {"nodeDown", " silent ", command_node_down},
    {"nodeUp", " ", command_node_up},
    {"deviceTaint", " ", command_device_taint},
    {"deviceUntaint", " ", command_device_untaint},
    {"killPod", " exitCode ", command_kill_pod},
    {"deleteObject", " ", command_delete},
    {"putObject", " ", command_put},
    {"hold", " ", command_hold},
    {"release", " ", command_release},
    {"lose", " ", command_lose},
};

static bool is_among(const char *list, const char *key)
{
    const char *found = strstr(list, key);

    return *key && !strchr(key, ' ') && found && found[-1] == ' ' && found[strlen(key)] == ' ';
}

int command_run(struct embedded *cluster, const json_t *command, struct error *err)
{
    const struct command *row = NULL;
    const char *key;
    json_t *value;
    int rc;

    if (!json_is_object(command))
        return error_set(err, ERR_INVALID, "a command is a JSON object");
    for (size_t i = 0; i < ARRAY_SIZE(commands) && !row; i++)
        if (json_object_get(command, commands[i].key))
            row = &commands[i];
    if (!row)
        return error_set(
            err, ERR_INVALID,
            "a command has one of fail, nodeDown, nodeUp, deviceTaint, deviceUntaint, killPod, deleteObject, "
            "putObject, hold, release, lose");
    json_object_foreach ((json_t *)(uintptr_t)command, key, value)
        if (strcmp(key, row->key) != 0 && !is_among(row->others, key))
            return error_field(err, key, "is not known to the command %s", row->key);
    rc = row->run(cluster, command, err);
    embedded_wake(cluster);
    return rc;
}
