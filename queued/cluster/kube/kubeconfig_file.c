/* Several kubeconfigs are merged as kubectl does: the first file that names a cluster, a user, a context or the current
 * context wins, as a whole entry. */
#include "queued/cluster/kube/kubeconfig_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/manifest/yaml.h"

#include "allocator/base/banned.h"

static const struct manifest_limits limits = {8u << 20, 32, 200000, 1};

static const json_t *file_root(const struct file *file)
{
    return manifest_n_documents(file->manifest) ? manifest_document(file->manifest, 0) : NULL;
}

/* ---- messages ---- */

static int refuse_at(const struct file *file, const char *path, enum err_code code, struct error *err,
                     const char *words)
{
    char text[sizeof(err->text)];

    /* `words` may stand in *err */
    snprintf(text, sizeof(text), "%s", words);
    error_field(err, path, "%s:%zu: %s: %s", manifest_name(file->manifest), manifest_line(file->manifest, 0, path),
                path[0] ? path : "document", text);
    if (err)
        err->code = code;
    return -1;
}

int entry_refuse(const struct entry *entry, const char *field, struct error *err, const char *fmt, ...)
{
    char path[256], text[sizeof(err->text)];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    snprintf(path, sizeof(path), "%s%s%s", entry->path, field[0] && field[0] != '[' ? "." : "", field);
    return refuse_at(entry->file, path, ERR_INVALID, err, text);
}

/* The same with the reason that *err holds. */
int entry_blame(const struct entry *entry, const char *field, struct error *err)
{
    char path[256];

    snprintf(path, sizeof(path), "%s.%s", entry->path, field);
    return refuse_at(entry->file, path, err ? err->code : ERR_INVALID, err, err ? err->text : "");
}

/* ---- files ---- */

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? mem_strndup(path, (size_t)(slash - path) + 1) : mem_strdup("");
}

char *entry_path(const struct entry *entry, const char *path)
{
    BUF out = {0};

    if (path[0] != '/')
        buf_adds(&out, entry->file->folder);
    buf_adds(&out, path);
    return buf_take(&out);
}

void kubeconfig_release(struct kubeconfig *config)
{
    for (size_t i = 0; i < config->n_files; i++) {
        manifest_free(config->files[i].manifest);
        free(config->files[i].folder);
    }
}

static int check_root(const struct file *file, struct error *err)
{
    static const struct {
        const char *field, *want;
    } heads[] = {{"apiVersion", "v1"}, {"kind", "Config"}};

    for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
        const json_t *value = json_object_get(file_root(file), heads[i].field);

        if (value && !json_is_null(value) &&
            (!json_is_string(value) || strcmp(json_string_value(value), heads[i].want) != 0))
            return refuse_at(file, heads[i].field, ERR_INVALID, err, "this is no kubeconfig (v1 Config)");
    }
    return 0;
}

static int kubeconfig_add(struct kubeconfig *config, const char *path, struct error *err)
{
    struct file *file = &config->files[config->n_files];

    if (config->n_files == KUBECONFIG_MAX_FILES)
        return error_set(err, ERR_LIMIT, "more than %d files", KUBECONFIG_MAX_FILES);
    if (manifest_read_file(path, &limits, &file->manifest, err) < 0)
        return -1;
    file->folder = folder_of(path);
    config->n_files++;
    if (file_root(file) && !json_is_object(file_root(file)))
        return refuse_at(file, "", ERR_INVALID, err, "not a kubeconfig");
    return check_root(file, err);
}

/* Files of a list that are not there are passed over, as kubectl does; not all of them may be. */
static int kubeconfig_add_list(struct kubeconfig *config, const char *list, struct error *err)
{
    for (const char *at = list; *at;) {
        size_t len = strcspn(at, ":");
        BUF path = {0};

        buf_add(&path, at, len);
        at += at[len] == ':' ? len + 1 : len;
        if (len && access(buf_str(&path), F_OK) == 0 && kubeconfig_add(config, buf_str(&path), err) < 0)
            return -1;
    }
    if (!config->n_files)
        return error_set(err, ERR_NOT_FOUND, "none of the kubeconfigs is there: %s", list);
    return 0;
}

int kubeconfig_read(struct kubeconfig *config, const char *path, struct error *err)
{
    if (strchr(path, ':') && access(path, F_OK) < 0)
        return kubeconfig_add_list(config, path, err);
    if (access(path, F_OK) < 0)
        return error_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: %s", path, strerror(errno));
    return kubeconfig_add(config, path, err);
}

/* ---- named entries ---- */

/* In one file; *out->value stays NULL when it is not there. */
static int find_in(const struct file *file, const char *list, const char *inner, const char *name, struct entry *out,
                   struct error *err)
{
    const json_t *entries = json_object_get(file_root(file), list), *entry;
    char path[64];
    size_t i;

    if (entries && !json_is_array(entries) && !json_is_null(entries))
        return refuse_at(file, list, ERR_INVALID, err, "must be a list");
    json_array_foreach (entries, i, entry) {
        const char *its_name = json_string_value(json_object_get(entry, "name"));

        snprintf(path, sizeof(path), "%s[%zu].name", list, i);
        if (!its_name)
            return refuse_at(file, path, ERR_INVALID, err, "each entry needs a name");
        if (strcmp(its_name, name) != 0)
            continue;
        if (out->value)
            return refuse_at(file, path, ERR_INVALID, err, "this name is there twice");
        out->file = file;
        out->value = json_object_get(entry, inner);
        snprintf(out->path, sizeof(out->path), "%s[%zu].%s", list, i, inner);
        if (!json_is_object(out->value))
            return refuse_at(file, out->path, ERR_INVALID, err, "must be an object");
    }
    return 0;
}

int kubeconfig_find(const struct kubeconfig *config, const char *list, const char *inner, const char *name,
                    struct entry *out, struct error *err)
{
    *out = (struct entry){0};
    for (size_t i = 0; i < config->n_files && !out->value; i++)
        if (find_in(&config->files[i], list, inner, name, out, err) < 0)
            return -1;
    return 0;
}

/* ---- fields ---- */

static const char *take_field(const struct rule *rule, const json_t *value, char *out)
{
    switch (rule->shape) {
    case TEXT:
        if (!json_is_string(value))
            return "must be a text";
        *(const char **)(void *)out = json_string_value(value);
        return NULL;
    case FLAG:
        if (!json_is_boolean(value))
            return "must be true or false";
        *(bool *)(void *)out = json_is_true(value);
        return NULL;
    case LIST:
        *(const json_t **)(void *)out = value;
        return json_is_array(value) ? NULL : "must be a list";
    case OBJECT:
        *(const json_t **)(void *)out = value;
        return json_is_object(value) ? NULL : "must be an object";
    case IGNORED:
        return NULL;
    case REFUSED:
        return rule->why;
    }
    return NULL;
}

/* Fields that say nothing (null, "") are as good as absent. */
int entry_read(const struct entry *entry, const struct rule *rules, void *out, struct error *err)
{
    const char *field, *why;
    const json_t *value;

    json_object_foreach ((json_t *)entry->value, field, value) {
        const struct rule *rule = rules;

        if (json_is_null(value) || (json_is_string(value) && !json_string_length(value)))
            continue;
        while (rule->field && strcmp(rule->field, field) != 0)
            rule++;
        if (!rule->field)
            return entry_refuse(entry, field, err, "this field is not known");
        why = take_field(rule, value, (char *)out + rule->offset);
        if (why)
            return entry_refuse(entry, field, err, "%s", why);
    }
    return 0;
}

int entry_check_texts(const struct entry *entry, const char *field, const json_t *list, struct error *err)
{
    const json_t *value;
    char at[64];
    size_t i;

    json_array_foreach (list, i, value) {
        snprintf(at, sizeof(at), "%s[%zu]", field, i);
        if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
            return entry_refuse(entry, at, err, "must be a text");
    }
    return 0;
}

const char *kubeconfig_name(const struct kubeconfig *config)
{
    return manifest_name(config->files[0].manifest);
}

int kubeconfig_current(const struct kubeconfig *config, const char **out, struct error *err)
{
    for (size_t i = 0; i < config->n_files; i++) {
        const json_t *value = json_object_get(file_root(&config->files[i]), "current-context");

        if (value && !json_is_null(value) && !json_is_string(value))
            return refuse_at(&config->files[i], "current-context", ERR_INVALID, err, "must be a text");
        if (json_string_length(value)) {
            *out = json_string_value(value);
            return 0;
        }
    }
    return error_field(err, "current-context", "%s: no current context, and none is asked for",
                       kubeconfig_name(config));
}
