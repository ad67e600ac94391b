/* Where the cluster comes from: the manifests, and over them what the state folder remembers.
 *
 * An object of the manifests that has changed since (a claim that was allocated, a node that was taken down) has a
 * state file too, which carries the hash of its manifest: as long as the manifest is the same, the state file stands
 * for the object; when somebody has edited the manifest, the manifest wins and the old state is forgotten. */
#include "queued/cluster/embedded/internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <utlist.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "allocator/snapshot.h"
#include "queued/manifest/yaml.h"

#include "allocator/base/banned.h"

#define MAX_FOLDER_DEPTH 16
#define MAX_FILES        10000

struct loading {
    struct embedded *cluster;
    size_t n_files, n_objects;
};

/* ---- one object ---- */

static uint64_t object_hash(const json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
    uint64_t hash = fnv64(0, text, strlen(text));

    free(text);
    return hash ? hash : 1;
}

/* A uid that stays the same from start to start, unless the manifest says one that is free. */
static void complete_uid(struct embedded *cluster, const struct kind *kind, json_t *metadata)
{
    const char *given = field_text(metadata, "uid", NULL), *ns = field_text(metadata, "namespace", NULL);
    BUF key = {0};
    char uid[40];
    uint64_t hash;

    if (given && !entry_by_uid(cluster, given))
        return;
    buf_addf(&key, "%s/%s/%s", kind->name, ns ? ns : "", field_text(metadata, "name", NULL));
    hash = fnv64(0, buf_str(&key), strlen(buf_str(&key)));
    do
        snprintf(uid, sizeof(uid), "10000000-0000-4000-8000-%012llx", (unsigned long long)(hash++ & 0xffffffffffffu));
    while (entry_by_uid(cluster, uid));
    json_object_set_new(metadata, "uid", json_string(uid));
}

/* Dumps that were cleaned up for others to see may have lost the uids of owners; an owner without uid is nobody. */
static void drop_nobodies(json_t *metadata)
{
    json_t *references = json_object_get(metadata, "ownerReferences");

    for (size_t i = json_array_size(references); i-- > 0;)
        if (!json_object_get(json_array_get(references, i), "uid"))
            json_array_remove(references, i);
}

static int add_object(struct embedded *cluster, const json_t *object, struct error *err)
{
    const struct kind *kind;
    json_t *copy = json_deep_copy(object), *metadata = json_object_get(copy, "metadata");

    drop_nobodies(metadata);
    if (object_check(cluster, copy, &kind, err) < 0) {
        json_decref(copy);
        return -1;
    }
    if (kind->has_namespace && !json_object_get(metadata, "namespace"))
        json_object_set_new(metadata, "namespace", json_string("default"));
    json_object_set_new(metadata, "resourceVersion", json_string("1"));
    complete_uid(cluster, kind, metadata);
    if (entry_find(cluster, kind->id, field_text(metadata, "namespace", NULL), field_text(metadata, "name", NULL))) {
        json_decref(copy);
        return error_field(err, "metadata.name", "is in the manifests already");
    }
    if (kind->is_modelled && snapshot_builder_put(cluster->model, copy, err) < 0) {
        json_decref(copy);
        return -1;
    }
    entry_add(cluster, kind, copy, object_hash(object));
    return 0;
}

/* ---- one file ---- */

static void refuse(struct loading *loading, const struct manifest *manifest, size_t document, const json_t *object,
                   struct error *err)
{
    const char *kind = field_text(object, "kind", NULL), *name = field_text(object, "metadata", "name", NULL);

    error_wrap(err, "%s:%zu: %s%s%s%s", manifest_name(manifest), manifest_line(manifest, document, err->field),
               kind ? kind : "object", name ? " \"" : "", name ? name : "", name ? "\"" : "");
    embedded_warn(loading->cluster, err);
}

static void load_document(struct loading *loading, const struct manifest *manifest, size_t document)
{
    const json_t *object = manifest_document(manifest, document), *items = json_object_get(object, "items");
    const char *kind = field_text(object, "kind", NULL);
    bool is_list = kind && json_is_array(items) && strlen(kind) >= 4 && strcmp(kind + strlen(kind) - 4, "List") == 0;
    size_t n = is_list ? json_array_size(items) : 1;

    for (size_t i = 0; i < n; i++) {
        const json_t *item = is_list ? json_array_get(items, i) : object;
        struct error err = {0};

        if (add_object(loading->cluster, item, &err) == 0) {
            loading->n_objects++;
            continue;
        }
        if (is_list)
            error_in(&err, "items[%zu]", i);
        refuse(loading, manifest, document, item, &err);
    }
}

static void load_file(struct loading *loading, const char *path)
{
    CLEANUP(manifest) *manifest = NULL;
    struct error err = {0};

    loading->n_files++;
    if (manifest_read_file(path, &MANIFEST_LIMITS_DEFAULT, &manifest, &err) < 0) {
        embedded_warn(loading->cluster, &err);
        return;
    }
    for (size_t i = 0; i < manifest_n_documents(manifest); i++)
        load_document(loading, manifest, i);
}

/* ---- folders ---- */

static bool is_manifest_name(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && (strcasecmp(dot, ".yaml") == 0 || strcasecmp(dot, ".yml") == 0 || strcasecmp(dot, ".json") == 0);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int load_path(struct loading *loading, const char *path, size_t depth, struct error *err);

static int load_folder(struct loading *loading, const char *path, size_t depth, struct error *err)
{
    struct dirent **names;
    int n = scandir(path, &names, is_visible, alphasort), rc = 0;

    if (n < 0)
        return error_set(err, ERR_IO, "read the folder %s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        BUF child = {0};

        buf_addf(&child, "%s/%s", path, names[i]->d_name);
        if (rc == 0)
            rc = load_path(loading, buf_str(&child), depth + 1, err);
        free(names[i]);
    }
    free(names);
    return rc;
}

static int load_path(struct loading *loading, const char *path, size_t depth, struct error *err)
{
    struct stat st;

    if (depth > MAX_FOLDER_DEPTH || loading->n_files >= MAX_FILES)
        return error_set(err, ERR_LIMIT, "%s: more than %d files or %d levels of folders", path, MAX_FILES,
                         MAX_FOLDER_DEPTH);
    if (stat(path, &st) < 0) {
        if (depth > 0)
            return 0; /* a dangling link */
        return error_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (S_ISDIR(st.st_mode))
        return load_folder(loading, path, depth, err);
    if (S_ISREG(st.st_mode) && (depth == 0 || is_manifest_name(path)))
        load_file(loading, path);
    return 0;
}

/* Namespaces that the manifests use but do not list exist all the same. */
static void add_implied_namespaces(struct embedded *cluster)
{
    struct error err = {0};

    cluster->any_namespace = !cluster->lists[KIND_NAMESPACE];
    for (size_t k = 0; k <= KIND_COUNT; k++) {
        struct entry *entry = k < KIND_COUNT ? cluster->lists[k] : NULL;
        bool is_default = k == KIND_COUNT;

        for (; entry || is_default; entry = entry ? entry->next : NULL, is_default = false) {
            const char *name = entry ? entry->ns : "default";
            json_t *ns;

            if (!*name || entry_find(cluster, KIND_NAMESPACE, NULL, name))
                continue;
            ns = json_pack("{s:s,s:s,s:{s:s}}", "apiVersion", "v1", "kind", "Namespace", "metadata", "name", name);
            if (add_object(cluster, ns, &err) < 0)
                embedded_warn(cluster, &err);
            json_decref(ns);
        }
    }
}

int manifests_load(struct embedded *cluster, const char *path, struct error *err)
{
    struct loading loading = {.cluster = cluster};

    if (load_path(&loading, path, 0, err) < 0)
        return -1;
    if (loading.n_objects == 0)
        return error_set(err, ERR_NOT_FOUND, "%s: no object that can be used (%zu files read)", path, loading.n_files);
    add_implied_namespaces(cluster);
    return 0;
}

/* ---- nodes that are not there ---- */

#define MAX_EXAMPLES 3

/* Names without a Node, each once, in the order of the slices. */
static json_t *absent_nodes(struct embedded *cluster)
{
    json_t *absent = json_object(), *device;
    const struct entry *slice;
    size_t i;

    DL_FOREACH (cluster->lists[KIND_SLICE], slice) {
        const char *name = field_text(slice->json, "spec", "nodeName", NULL);

        if (name && *name && !entry_find(cluster, KIND_NODE, NULL, name))
            json_object_set_new(absent, name, json_true());
        json_array_foreach (field_get(slice->json, "spec", "devices", NULL), i, device) {
            name = field_text(device, "nodeName", NULL);
            if (name && *name && !entry_find(cluster, KIND_NODE, NULL, name))
                json_object_set_new(absent, name, json_true());
        }
    }
    return absent;
}

void warn_of_absent_nodes(struct embedded *cluster)
{
    json_t *absent = absent_nodes(cluster), *value;
    size_t n = json_object_size(absent), n_told = 0;
    struct error err = {0};
    BUF text = {0};
    const char *name;

    buf_adds(&text, cluster->lists[KIND_NODE] ? "" : "the cluster has no Node, so that nothing can start; ");
    buf_addf(&text, "slices name %zu node%s that %s not in the manifests: their devices cannot be used (", n,
             n == 1 ? "" : "s", n == 1 ? "is" : "are");
    json_object_foreach (absent, name, value) {
        if (n_told == MAX_EXAMPLES)
            break;
        buf_addf(&text, "%s%s", n_told++ ? ", " : "", name);
    }
    buf_adds(&text, n > MAX_EXAMPLES ? ", ...)" : ")");
    if (n > 0) {
        error_set(&err, ERR_NOT_FOUND, "%s", buf_str(&text));
        embedded_warn(cluster, &err);
    }
    json_decref(absent);
}

/* ---- the state folder ---- */

struct restoring {
    struct embedded *cluster;
    struct disk *disk;
    uint64_t version;
};

static uint64_t number_of(const char *text, int base)
{
    return text ? strtoull(text, NULL, base) : 0;
}

static void see_versions(struct restoring *restoring, const json_t *object)
{
    const char *uid = field_text(object, "metadata", "uid", NULL);
    uint64_t version = number_of(field_text(object, "metadata", "resourceVersion", NULL), 10), number = 0;

    if (strncmp(uid, "00000000-0000-4000-8000-", 24) == 0)
        number = number_of(uid + 24, 16);
    if (number > version)
        version = number;
    if (version > restoring->version)
        restoring->version = version;
}

static void set_aside(struct restoring *restoring, const char *key, struct error *err)
{
    error_wrap(err, "state of %s set aside", key);
    embedded_warn(restoring->cluster, err);
    disk_set_aside(restoring->disk, key);
}

/* A state file that stands over a manifest. */
static void restore_over(struct restoring *restoring, const struct kind *kind, const char *key, json_t *object,
                         const char *hash)
{
    const json_t *metadata = json_object_get(object, "metadata");
    struct entry *entry = entry_find(restoring->cluster, kind->id, field_text(metadata, "namespace", NULL),
                                     field_text(metadata, "name", NULL));
    struct error err = {0};

    if (!entry || entry->manifest != number_of(hash, 16)) {
        error_set(&err, ERR_CONFLICT, "the manifest of %s has changed: its former state is forgotten", key);
        embedded_warn(restoring->cluster, &err);
        disk_note(restoring->disk, key, NULL);
    } else if (field_text(metadata, "annotations", ANNOTATION_REMOVED, NULL)) {
        entry_drop(entry);
    } else if (kind->is_modelled && snapshot_builder_put(restoring->cluster->model, object, &err) < 0) {
        set_aside(restoring, key, &err);
    } else {
        entry_restore(entry, json_incref(object));
    }
}

static void restore(void *ctx, json_t *object)
{
    struct restoring *restoring = ctx;
    struct embedded *cluster = restoring->cluster;
    const char *kind_name = field_text(object, "kind", NULL), *ns = field_text(object, "metadata", "namespace", NULL);
    const char *hash = field_text(object, "metadata", "annotations", ANNOTATION_MANIFEST, NULL);
    const struct kind *kind = served_kind_find(kind_name);
    struct error err = {0};
    BUF key = {0};

    buf_addf(&key, "%s/%s/%s", kind_name, ns ? ns : "", field_text(object, "metadata", "name", NULL));
    see_versions(restoring, object);
    if (kind && hash) {
        restore_over(restoring, kind, buf_str(&key), object, hash);
        return;
    }
    if (object_check(cluster, object, &kind, &err) < 0 ||
        (entry_by_uid(cluster, field_text(object, "metadata", "uid", NULL)) &&
         error_field(&err, "metadata.uid", "is taken by another object") < 0) ||
        (entry_find(cluster, kind->id, ns, field_text(object, "metadata", "name", NULL)) &&
         error_field(&err, "metadata.name", "the manifests have an object of this name now") < 0) ||
        (kind->is_modelled && snapshot_builder_put(cluster->model, object, &err) < 0))
        set_aside(restoring, buf_str(&key), &err);
    else
        entry_add(cluster, kind, json_incref(object), 0);
}

static void restore_warn(void *ctx, const struct error *err)
{
    embedded_warn(ctx, err);
}

int state_load(struct embedded *cluster, struct disk *disk, struct error *err)
{
    struct restoring restoring = {.cluster = cluster, .disk = disk};
    uint64_t version;

    restoring.version = 1; /* that of the manifests */
    if (disk_read(disk, restore, &restoring, restore_warn, cluster, &version, err) < 0)
        return -1;
    cluster->version = version > restoring.version ? version : restoring.version;
    return 0;
}
