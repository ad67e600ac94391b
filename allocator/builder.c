/* The builder: the mutable side of snapshots. It keeps every object it was given and notes which pools and nodes a
 * change touches; build.c makes only those anew. */
#include "allocator/builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/cache.h"

#include "allocator/base/banned.h"

struct snapshot_builder *snapshot_builder_new(const struct features *features, bool validate)
{
    struct snapshot_builder *b = mem_new(struct snapshot_builder);

    b->features = *features;
    b->behaviour = behaviour_of(features);
    b->validate = validate;
    b->cache = cache_new(features);
    vector_init(&b->v_nodes, node_ref, node_unref);
    vector_init(&b->v_pools, pool_ref, pool_unref);
    vector_init(&b->v_buckets, bucket_ref, bucket_unref);
    b->node_set_changed = b->pool_set_changed = true;
    return b;
}

/* ---- dirt ---- */

static void pool_dirty(struct snapshot_builder *b, struct pool_entry *pool)
{
    if (pool->is_dirty)
        return;
    pool->is_dirty = true;
    mem_grow(b->dirty_pools, b->n_dirty_pools, b->cap_dirty_pools);
    b->dirty_pools[b->n_dirty_pools++] = pool;
}

void node_dirty(struct snapshot_builder *b, struct node_entry *node)
{
    if (node->is_dirty)
        return;
    node->is_dirty = true;
    mem_grow(b->dirty_nodes, b->n_dirty_nodes, b->cap_dirty_nodes);
    b->dirty_nodes[b->n_dirty_nodes++] = node;
}

/* ---- entries, made when first mentioned ---- */

static struct node_entry *node_entry(struct snapshot_builder *b, const char *name)
{
    struct node_entry *node;

    HASH_FIND_STR(b->nodes, name, node);
    if (node)
        return node;
    node = mem_new(struct node_entry);
    node->name = mem_strdup(name);
    node->slot = UINT32_MAX;
    HASH_ADD_KEYPTR(hh, b->nodes, node->name, strlen(node->name), node);
    return node;
}

static struct pool_entry *pool_entry(struct snapshot_builder *b, const char *driver, const char *name)
{
    BUF key = {0};
    struct pool_entry *pool;

    buf_addf(&key, "%s\x1f%s", driver, name);
    HASH_FIND_STR(b->pools, buf_str(&key), pool);
    if (pool)
        return pool;
    pool = mem_new(struct pool_entry);
    pool->key = buf_take(&key);
    pool->slot = UINT32_MAX;
    HASH_ADD_KEYPTR(hh, b->pools, pool->key, strlen(pool->key), pool);
    return pool;
}

void node_entry_settle(struct snapshot_builder *b, struct node_entry *node)
{
    if (node->info || node->pods || node->n_pools || node->is_dirty || node->slot != UINT32_MAX)
        return;
    HASH_DEL(b->nodes, node);
    free(node->pools);
    free(node->name);
    free(node);
}

void pool_entry_settle(struct snapshot_builder *b, struct pool_entry *pool)
{
    if (pool->n_slices || pool->n_holdings || pool->is_dirty || pool->slot != UINT32_MAX)
        return;
    HASH_DEL(b->pools, pool);
    free(pool->slices);
    free(pool->holdings);
    free(pool->key);
    free(pool);
}

/* ---- slices ---- */

static bool pool_serves(const struct pool_entry *pool, const char *node)
{
    for (size_t i = 0; i < pool->n_slices; i++)
        if (pool->slices[i]->node_name && text_is(pool->slices[i]->node_name, node))
            return true;
    return false;
}

static void node_pool_update(struct snapshot_builder *b, struct pool_entry *pool, const char *name)
{
    struct node_entry *node = node_entry(b, name);
    bool serves = pool_serves(pool, name);
    size_t at = 0;

    while (at < node->n_pools && node->pools[at] != pool)
        at++;
    if (serves == (at < node->n_pools)) {
        node_entry_settle(b, node);
        return;
    }
    if (serves) {
        mem_grow(node->pools, node->n_pools, node->cap_pools);
        node->pools[node->n_pools++] = pool;
    } else {
        node->pools[at] = node->pools[--node->n_pools];
    }
    node_dirty(b, node);
}

static void slice_detach(struct snapshot_builder *b, struct slice *slice)
{
    struct pool_entry *pool = pool_entry(b, slice->driver, slice->pool);
    size_t at = 0;

    while (pool->slices[at] != slice)
        at++;
    memmove(&pool->slices[at], &pool->slices[at + 1], (pool->n_slices - at - 1) * sizeof(*pool->slices));
    pool->n_slices--;
    pool_dirty(b, pool);
    if (slice->node_name)
        node_pool_update(b, pool, slice->node_name);
    slice_unref(slice);
}

static void slice_attach(struct snapshot_builder *b, struct slice *slice)
{
    struct pool_entry *pool = pool_entry(b, slice->driver, slice->pool);
    size_t at = pool->n_slices;

    mem_grow(pool->slices, pool->n_slices, pool->cap_slices);
    for (; at && pool->slices[at - 1]->order > slice->order; at--)
        pool->slices[at] = pool->slices[at - 1];
    pool->slices[at] = slice;
    pool->n_slices++;
    pool_dirty(b, pool);
    if (slice->node_name)
        node_pool_update(b, pool, slice->node_name);
}

struct load load_of(struct snapshot_builder *b, struct arena *arena)
{
    return (struct load){
        .arena = arena, .symbols = cache_symbols(b->cache), .features = &b->features, .validate = b->validate};
}

static int put_slice(struct snapshot_builder *b, const json_t *object, struct error *err)
{
    struct load load = load_of(b, NULL);
    struct slice_entry *entry;
    struct slice *slice;

    if (slice_parse(object, &load, &slice, err) < 0)
        return -1;
    HASH_FIND_STR(b->slices, slice->name, entry);
    if (!entry) {
        entry = mem_new(struct slice_entry);
        entry->name = mem_strdup(slice->name);
        entry->order = b->next_order++;
        HASH_ADD_KEYPTR(hh, b->slices, entry->name, strlen(entry->name), entry);
    } else {
        slice_detach(b, entry->slice);
    }
    slice->order = entry->order;
    entry->slice = slice;
    slice_attach(b, slice);
    return 0;
}

static void remove_slice(struct snapshot_builder *b, const char *ns, const char *name)
{
    struct slice_entry *entry;

    (void)ns;
    HASH_FIND_STR(b->slices, name, entry);
    if (!entry)
        return;
    slice_detach(b, entry->slice);
    HASH_DEL(b->slices, entry);
    free(entry->name);
    free(entry);
}

/* ---- nodes ---- */

static int put_node(struct snapshot_builder *b, const json_t *object, struct error *err)
{
    struct node_info *info = mem_new(struct node_info);
    struct load load = load_of(b, &info->arena);
    struct node_entry *node;

    atomic_init(&info->refs, 1);
    arena_reserve(&info->arena, 512);
    if (node_info_parse(object, &load, info, err) < 0) {
        node_info_unref(info);
        return -1;
    }
    node = node_entry(b, info->name);
    node_info_unref(node->info);
    node->info = info;
    node_dirty(b, node);
    return 0;
}

static void remove_node(struct snapshot_builder *b, const char *ns, const char *name)
{
    struct node_entry *node;

    (void)ns;
    HASH_FIND_STR(b->nodes, name, node);
    if (!node || !node->info)
        return;
    node_info_unref(node->info);
    node->info = NULL;
    node_dirty(b, node);
}

/* ---- pods ---- */

static void pod_free(struct snapshot_builder *b, struct pod_entry *pod)
{
    struct node_entry *node = pod->node;

    if (pod->prev)
        pod->prev->next = pod->next;
    else
        node->pods = pod->next;
    if (pod->next)
        pod->next->prev = pod->prev;
    HASH_DEL(b->pods, pod);
    arena_release(&pod->arena);
    free(pod->key);
    free(pod);
    node_dirty(b, node);
}

static struct pod_entry *pod_find(struct snapshot_builder *b, const char *ns, const char *name)
{
    BUF key = {0};
    struct pod_entry *pod;

    buf_addf(&key, "%s/%s", ns, name);
    HASH_FIND_STR(b->pods, buf_str(&key), pod);
    return pod;
}

static void pod_add(struct snapshot_builder *b, struct pod_entry *pod, const char *node_name)
{
    struct node_entry *node = node_entry(b, node_name);

    pod->node = node;
    pod->next = node->pods;
    if (node->pods)
        node->pods->prev = pod;
    node->pods = pod;
    HASH_ADD_KEYPTR(hh, b->pods, pod->key, strlen(pod->key), pod);
    node_dirty(b, node);
}

/* A pod counts while it is bound to a node and has not ended. */
static bool pod_counts(const json_t *object)
{
    const char *phase = json_string_value(member(member(object, "status"), "phase"));
    const char *node = json_string_value(member(member(object, "spec"), "nodeName"));

    return node && *node && !(phase && (text_is(phase, "Succeeded") || text_is(phase, "Failed")));
}

static int put_pod(struct snapshot_builder *b, const json_t *object, struct error *err)
{
    const json_t *meta = member(object, "metadata"), *spec = member(object, "spec");
    const char *name = json_string_value(member(meta, "name"));
    const char *ns = json_string_value(member(meta, "namespace"));
    struct pod_entry *pod, *old;

    if (!name || !*name)
        return error_field(err, "metadata.name", "is required");
    ns = ns ? ns : "";
    old = pod_find(b, ns, name);
    if (!pod_counts(object)) {
        if (old)
            pod_free(b, old);
        return 0;
    }
    pod = mem_new(struct pod_entry);
    arena_reserve(&pod->arena, 512);
    if (pod_demand_parse(spec, cache_symbols(b->cache), &pod->arena, &pod->demand, err) < 0) {
        arena_release(&pod->arena);
        free(pod);
        return error_in(err, "spec");
    }
    if (old)
        pod_free(b, old);
    pod->key = mem_zalloc(strlen(ns) + strlen(name) + 2, 1);
    snprintf(pod->key, strlen(ns) + strlen(name) + 2, "%s/%s", ns, name);
    pod_add(b, pod, json_string_value(member(spec, "nodeName")));
    return 0;
}

static void remove_pod(struct snapshot_builder *b, const char *ns, const char *name)
{
    struct pod_entry *pod = pod_find(b, ns ? ns : "", name);

    if (pod)
        pod_free(b, pod);
}

/* ---- claims ---- */

static void hold(struct snapshot_builder *b, const struct cluster_claim *claim)
{
    for (size_t i = 0; i < claim->n_held; i++) {
        const struct held_device *held = &claim->held[i];
        struct pool_entry *pool = pool_entry(b, held->driver, held->pool);

        mem_grow(pool->holdings, pool->n_holdings, pool->cap_holdings);
        pool->holdings[pool->n_holdings++] = (struct holding){claim, held};
        pool_dirty(b, pool);
    }
}

static void release(struct snapshot_builder *b, const struct cluster_claim *claim)
{
    for (size_t i = 0; i < claim->n_held; i++) {
        struct pool_entry *pool = pool_entry(b, claim->held[i].driver, claim->held[i].pool);
        size_t kept = 0;

        for (size_t k = 0; k < pool->n_holdings; k++)
            if (pool->holdings[k].claim != claim)
                pool->holdings[kept++] = pool->holdings[k];
        pool->n_holdings = kept;
        pool_dirty(b, pool);
    }
}

size_t claim_bucket_of(const char *ns, const char *name)
{
    struct digest digest = {0};

    digest_text(&digest, ns, strlen(ns));
    digest_text(&digest, name, strlen(name));
    return digest.lo % CLAIM_BUCKETS;
}

static int claim_order(const struct cluster_claim *a, const struct cluster_claim *b)
{
    int order = strcmp(a->ns, b->ns);

    return order ? order : strcmp(a->name, b->name);
}

/* The bucket of `claim` without the claim of that name, and with it when `with`. */
static void bucket_update(struct snapshot_builder *b, struct cluster_claim *claim, bool with)
{
    size_t slot = claim_bucket_of(claim->ns, claim->name);
    const struct claim_bucket *old = vector_get(&b->v_buckets, slot);
    struct claim_bucket *bucket = mem_new(struct claim_bucket);
    size_t n_old = old ? old->n : 0, i = 0;

    atomic_init(&bucket->refs, 1);
    bucket->claims = mem_array(struct cluster_claim *, n_old + 1);
    for (; i < n_old && claim_order(old->claims[i], claim) < 0; i++)
        bucket->claims[bucket->n++] = old->claims[i];
    if (with)
        bucket->claims[bucket->n++] = claim;
    if (i < n_old && claim_order(old->claims[i], claim) == 0)
        i++;
    for (; i < n_old; i++)
        bucket->claims[bucket->n++] = old->claims[i];
    for (size_t k = 0; k < bucket->n; k++)
        atomic_fetch_add_explicit(&bucket->claims[k]->refs, 1, memory_order_relaxed);
    vector_set(&b->v_buckets, slot, bucket);
}

static struct claim_entry *claim_find(struct snapshot_builder *b, const char *ns, const char *name)
{
    BUF key = {0};
    struct claim_entry *entry;

    buf_addf(&key, "%s/%s", ns, name);
    HASH_FIND_STR(b->claims, buf_str(&key), entry);
    return entry;
}

static int put_claim(struct snapshot_builder *b, const json_t *object, struct error *err)
{
    struct cluster_claim *claim = mem_new(struct cluster_claim);
    struct load load = load_of(b, &claim->arena);
    struct claim_entry *entry;
    BUF key = {0};

    atomic_init(&claim->refs, 1);
    arena_reserve(&claim->arena, 768);
    if (cluster_claim_parse(object, &load, claim, err) < 0) {
        cluster_claim_unref(claim);
        return -1;
    }
    entry = claim_find(b, claim->ns, claim->name);
    if (!entry) {
        entry = mem_new(struct claim_entry);
        buf_addf(&key, "%s/%s", claim->ns, claim->name);
        entry->key = buf_take(&key);
        HASH_ADD_KEYPTR(hh, b->claims, entry->key, strlen(entry->key), entry);
    } else {
        release(b, entry->claim);
        cluster_claim_unref(entry->claim);
    }
    entry->claim = claim;
    hold(b, claim);
    bucket_update(b, claim, true);
    return 0;
}

static void remove_claim(struct snapshot_builder *b, const char *ns, const char *name)
{
    struct claim_entry *entry = claim_find(b, ns ? ns : "", name);

    if (!entry)
        return;
    release(b, entry->claim);
    bucket_update(b, entry->claim, false);
    cluster_claim_unref(entry->claim);
    HASH_DEL(b->claims, entry);
    free(entry->key);
    free(entry);
}

/* ---- classes, rules, namespaces ---- */

static void doc_remove(struct doc_entry **table, const char *name)
{
    struct doc_entry *entry;

    HASH_FIND_STR(*table, name, entry);
    if (!entry)
        return;
    HASH_DEL(*table, entry);
    json_decref(entry->object);
    free(entry->name);
    free(entry);
}

static void doc_put(struct doc_entry **table, const char *name, const json_t *object)
{
    struct doc_entry *entry = mem_new(struct doc_entry);

    doc_remove(table, name);
    entry->name = mem_strdup(name);
    entry->object = json_deep_copy(object);
    HASH_ADD_KEYPTR(hh, *table, entry->name, strlen(entry->name), entry);
}

/* The metadata.name of an object; "" when it has none. */
static const char *object_name(const json_t *object)
{
    const char *name = json_string_value(member(member(object, "metadata"), "name"));

    return name ? name : "";
}

static int put_class(struct snapshot_builder *b, const json_t *object, struct error *err)
{
    struct arena arena = {0};
    struct load load = load_of(b, &arena);
    struct device_class parsed;
    int result;

    memset(&parsed, 0, sizeof(parsed));
    result = class_parse(object, &load, &parsed, err);
    arena_release(&arena);
    if (result < 0)
        return -1;
    doc_put(&b->classes, object_name(object), object);
    class_table_unref(b->class_table);
    b->class_table = NULL;
    return 0;
}

static void remove_class(struct snapshot_builder *b, const char *ns, const char *name)
{
    (void)ns;
    doc_remove(&b->classes, name);
    class_table_unref(b->class_table);
    b->class_table = NULL;
}

int doc_order(struct doc_entry *a, struct doc_entry *b)
{
    return strcmp(a->name, b->name);
}

static void rules_changed(struct snapshot_builder *b)
{
    struct load load;
    struct doc_entry *entry;
    struct pool_entry *pool;

    arena_release(&b->rule_arena);
    load = load_of(b, &b->rule_arena);
    b->parsed_rules = arena_array(&b->rule_arena, struct taint_rule, HASH_COUNT(b->rules) + 1);
    b->n_rules = 0;
    HASH_SORT(b->rules, doc_order);
    for (entry = b->rules; entry; entry = entry->hh.next)
        if (rule_parse(entry->object, &load, &b->parsed_rules[b->n_rules], NULL) == 0)
            b->n_rules++;
    if (!feature_on(&b->features, FEATURE_DEVICE_TAINT_RULES))
        b->n_rules = 0;
    for (pool = b->pools; pool; pool = pool->hh.next)
        if (pool->n_slices)
            pool_dirty(b, pool);
}

static int put_rule(struct snapshot_builder *b, const json_t *object, struct error *err)
{
    struct arena arena = {0};
    struct load load = load_of(b, &arena);
    struct taint_rule parsed;
    int result;

    memset(&parsed, 0, sizeof(parsed));
    result = rule_parse(object, &load, &parsed, err);
    arena_release(&arena);
    if (result < 0)
        return -1;
    doc_put(&b->rules, object_name(object), object);
    rules_changed(b);
    return 0;
}

static void remove_rule(struct snapshot_builder *b, const char *ns, const char *name)
{
    (void)ns;
    doc_remove(&b->rules, name);
    rules_changed(b);
}

static int put_namespace(struct snapshot_builder *b, const json_t *object, struct error *err)
{
    struct arena arena = {0};
    const struct label *labels;
    const char *name;
    size_t n;
    int result = read_name(object, &arena, &name, err);

    if (result == 0 && read_labels(member(object, "metadata"), "labels", &arena, &labels, &n, err) < 0)
        result = error_in(err, "metadata");
    arena_release(&arena);
    if (result < 0)
        return -1;
    doc_put(&b->namespaces, object_name(object), object);
    namespaces_unref(b->namespace_table);
    b->namespace_table = NULL;
    return 0;
}

static void remove_namespace(struct snapshot_builder *b, const char *ns, const char *name)
{
    (void)ns;
    doc_remove(&b->namespaces, name);
    namespaces_unref(b->namespace_table);
    b->namespace_table = NULL;
}

/* ---- put and remove ---- */

static const struct kind {
    const char *kind, *group; /* group "": core */
    const char *versions;     /* served ones, each between spaces */
    int (*put)(struct snapshot_builder *b, const json_t *object, struct error *err);
    void (*remove)(struct snapshot_builder *b, const char *ns, const char *name);
} kinds[] = {
    {"Node", "", " v1 ", put_node, remove_node},
    {"Pod", "", " v1 ", put_pod, remove_pod},
    {"Namespace", "", " v1 ", put_namespace, remove_namespace},
    {"ResourceSlice", "resource.k8s.io", " v1 v1beta2 v1beta1 ", put_slice, remove_slice},
    {"ResourceClaim", "resource.k8s.io", " v1 v1beta2 v1beta1 ", put_claim, remove_claim},
    {"DeviceClass", "resource.k8s.io", " v1 v1beta2 v1beta1 ", put_class, remove_class},
    {"DeviceTaintRule", "resource.k8s.io", " v1 v1beta2 v1alpha3 ", put_rule, remove_rule},
};

static const struct kind *kind_find(const char *kind)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (kind && text_is(kinds[i].kind, kind))
            return &kinds[i];
    return NULL;
}

static int check_version(const struct kind *kind, const char *version, struct error *err)
{
    const char *slash = strchr(version, '/');
    const char *number = slash ? slash + 1 : version;
    size_t group = slash ? (size_t)(slash - version) : 0;
    char padded[64];

    snprintf(padded, sizeof(padded), " %s ", number);
    if (strlen(kind->group) != group || memcmp(version, kind->group, group) != 0 || !strstr(kind->versions, padded))
        return error_field(err, "apiVersion", "\"%.60s\" is not read for %s", version, kind->kind);
    return 0;
}

static int put_list(struct snapshot_builder *b, const json_t *list, struct error *err)
{
    const json_t *items, *item;
    struct error first = {0};
    size_t i;

    if (read_array(list, "items", &items, err) < 0)
        return -1;
    json_array_foreach (items, i, item) {
        struct error one = {0};
        const char *kind = json_string_value(member(item, "kind"));

        if (kind && text_is(kind, "List"))
            error_set(&one, ERR_INVALID, "a list in a list is not read");
        else if (snapshot_builder_put(b, item, &one) == 0)
            continue;
        error_in(&one, "items[%zu]", i);
        if (first.code == ERR_NONE)
            first = one;
    }
    if (first.code == ERR_NONE)
        return 0;
    if (err)
        *err = first;
    return -1;
}

int snapshot_builder_put(struct snapshot_builder *b, const json_t *object, struct error *err)
{
    const char *name = json_string_value(member(object, "kind"));
    const char *version = json_string_value(member(object, "apiVersion"));
    const struct kind *kind = kind_find(name);
    size_t len = name ? strlen(name) : 0;

    if (!json_is_object(object))
        return error_set(err, ERR_INVALID, "must be an object");
    if (len >= 4 && text_is(name + len - 4, "List"))
        return put_list(b, object, err);
    if (!kind)
        return error_field(err, "kind", "\"%.60s\" is no kind that is read here", name ? name : "");
    if (check_version(kind, version ? version : "", err) < 0)
        return -1;
    if (kind->put(b, object, err) < 0)
        return error_wrap(err, "%s %.100s", kind->kind, object_name(object));
    return 0;
}

void snapshot_builder_remove(struct snapshot_builder *b, const char *kind, const char *ns, const char *name)
{
    const struct kind *known = kind_find(kind);

    if (known)
        known->remove(b, ns, name);
}

/* ---- the end ---- */

static void free_docs(struct doc_entry **table)
{
    while (*table) {
        struct doc_entry *entry = *table;

        HASH_DEL(*table, entry);
        json_decref(entry->object);
        free(entry->name);
        free(entry);
    }
}

static void free_objects(struct snapshot_builder *b)
{
    while (b->slices) {
        struct slice_entry *entry = b->slices;

        HASH_DEL(b->slices, entry);
        slice_unref(entry->slice);
        free(entry->name);
        free(entry);
    }
    while (b->claims) {
        struct claim_entry *entry = b->claims;

        HASH_DEL(b->claims, entry);
        cluster_claim_unref(entry->claim);
        free(entry->key);
        free(entry);
    }
    while (b->pods) {
        struct pod_entry *pod = b->pods;

        HASH_DEL(b->pods, pod);
        arena_release(&pod->arena);
        free(pod->key);
        free(pod);
    }
}

static void free_entries(struct snapshot_builder *b)
{
    while (b->pools) {
        struct pool_entry *pool = b->pools;

        HASH_DEL(b->pools, pool);
        free(pool->slices);
        free(pool->holdings);
        free(pool->key);
        free(pool);
    }
    while (b->nodes) {
        struct node_entry *node = b->nodes;

        HASH_DEL(b->nodes, node);
        node_info_unref(node->info);
        free(node->pools);
        free(node->name);
        free(node);
    }
}

void snapshot_builder_free(struct snapshot_builder *b)
{
    if (!b)
        return;
    free_objects(b);
    free_entries(b);
    free_docs(&b->classes);
    free_docs(&b->rules);
    free_docs(&b->namespaces);
    free(b->dirty_pools);
    free(b->dirty_nodes);
    free(b->node_slots.free);
    free(b->pool_slots.free);
    vector_release(&b->v_nodes);
    vector_release(&b->v_pools);
    vector_release(&b->v_buckets);
    order_unref(b->sorted_nodes);
    order_unref(b->sorted_pools);
    order_unref(b->globals);
    class_table_unref(b->class_table);
    namespaces_unref(b->namespace_table);
    arena_release(&b->rule_arena);
    cache_unref(b->cache);
    free(b);
}
