#include "queued/cluster/kube/known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "allocator/base/mem.h"
#include "queued/cluster/cluster.h"

#include "allocator/base/banned.h"

struct entry {
    UT_hash_handle hh;
    uint64_t version; /* 0: not a number, never equal */
    uint64_t round;
    json_t *labels; /* of what is ours, or NULL */
    size_t key_len, size;
    char text[]; /* "ns\0name\0", then "uid\0"; the key is the first two */
};

struct known {
    struct entry *entries;
    struct entry *unswept; /* where the sweep of `sweeping` stands */
    uint64_t sweeping;
    size_t bytes;
};

struct known *known_new(void)
{
    return mem_new(struct known);
}

static void drop(struct known *known, struct entry *entry)
{
    if (known->unswept == entry)
        known->unswept = entry->hh.next;
    known->bytes -= entry->size;
    HASH_DELETE(hh, known->entries, entry);
    json_decref(entry->labels);
    free(entry);
}

void known_free(struct known *known)
{
    if (!known)
        return;
    while (known->entries)
        drop(known, known->entries);
    free(known);
}

size_t known_count(const struct known *known)
{
    return HASH_COUNT(known->entries);
}

size_t known_bytes(const struct known *known)
{
    return known->bytes + HASH_OVERHEAD(hh, known->entries) - known_count(known) * sizeof(UT_hash_handle);
}

/* ---- reading objects ---- */

static const char *text(const json_t *metadata, const char *key)
{
    const char *value = json_string_value(json_object_get(metadata, key));

    return value ? value : "";
}

static uint64_t version_of(const json_t *metadata)
{
    const char *digits = text(metadata, "resourceVersion");
    unsigned long long version;
    char *end;

    errno = 0;
    version = strtoull(digits, &end, 10);
    return *digits >= '0' && *digits <= '9' && !*end && !errno ? version : 0;
}

static json_t *labels_of_ours(const json_t *metadata)
{
    json_t *labels = json_object_get(metadata, "labels");

    return json_object_get(labels, LABEL_JOB) ? labels : NULL;
}

/* Appends with its NUL. */
static char *put_text(char *at, const char *value)
{
    size_t n = strlen(value) + 1;

    memcpy(at, value, n);
    return at + n;
}

static struct entry *find(const struct known *known, const json_t *metadata)
{
    const char *ns = text(metadata, "namespace"), *name = text(metadata, "name");
    size_t len = strlen(ns) + strlen(name) + 2;
    char fixed[512], *key = len <= sizeof(fixed) ? fixed : mem_zalloc(len, 1);
    struct entry *entry;

    put_text(put_text(key, ns), name);
    HASH_FIND(hh, known->entries, key, len, entry);
    if (key != fixed)
        free(key);
    return entry;
}

static const char *uid_of(const struct entry *entry)
{
    return entry->text + entry->key_len;
}

static json_t *as_gone(const struct entry *entry)
{
    const char *ns = entry->text, *name = ns + strlen(ns) + 1;
    json_t *metadata = json_pack("{s:s, s:s}", "name", name, "uid", uid_of(entry));

    if (*ns)
        json_object_set_new(metadata, "namespace", json_string(ns));
    if (entry->labels)
        json_object_set(metadata, "labels", entry->labels);
    return json_pack("{s:o}", "metadata", metadata);
}

/* ---- the table ---- */

static struct entry *add(struct known *known, const json_t *metadata)
{
    const char *ns = text(metadata, "namespace"), *name = text(metadata, "name"), *uid = text(metadata, "uid");
    size_t key_len = strlen(ns) + strlen(name) + 2, size = sizeof(struct entry) + key_len + strlen(uid) + 1;
    struct entry *entry = mem_zalloc(1, size);

    entry->key_len = key_len;
    entry->size = size;
    put_text(put_text(put_text(entry->text, ns), name), uid);
    HASH_ADD_KEYPTR(hh, known->entries, entry->text, key_len, entry);
    known->bytes += size;
    return entry;
}

static void update(struct entry *entry, const json_t *metadata, uint64_t round)
{
    json_t *labels = labels_of_ours(metadata);

    json_incref(labels);
    json_decref(entry->labels);
    entry->labels = labels;
    entry->version = version_of(metadata);
    entry->round = round;
}

enum known_change known_put(struct known *known, const json_t *object, uint64_t round, json_t **out_gone)
{
    const json_t *metadata = json_object_get(object, "metadata");
    struct entry *entry = find(known, metadata);
    enum known_change change = entry ? KNOWN_CHANGED : KNOWN_NEW;

    *out_gone = NULL;
    if (entry && strcmp(uid_of(entry), text(metadata, "uid")) != 0) {
        *out_gone = as_gone(entry);
        drop(known, entry);
        entry = NULL;
        change = KNOWN_REPLACED;
    }
    if (entry && entry->version && entry->version == version_of(metadata))
        change = KNOWN_SAME;
    if (!entry)
        entry = add(known, metadata);
    update(entry, metadata, round);
    return change;
}

json_t *known_remove(struct known *known, const json_t *object)
{
    struct entry *entry = find(known, json_object_get(object, "metadata"));
    json_t *gone = entry ? as_gone(entry) : NULL;

    if (entry)
        drop(known, entry);
    return gone;
}

json_t *known_sweep(struct known *known, uint64_t round)
{
    struct entry *entry;
    json_t *gone;

    if (known->sweeping != round) {
        known->sweeping = round;
        known->unswept = known->entries;
    }
    while (known->unswept && known->unswept->round == round)
        known->unswept = known->unswept->hh.next;
    entry = known->unswept;
    if (!entry)
        return NULL;
    gone = as_gone(entry);
    drop(known, entry);
    return gone;
}
