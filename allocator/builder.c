/* The builder: the mutable side of snapshots. It keeps every object it was given, notes which pools and nodes a change
 * touches, and on build makes only those anew. */
#include "allocator/inventory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "allocator/base/mem.h"
#include "allocator/cache.h"

#include "allocator/base/banned.h"

/* ---- what it keeps ---- */

struct pool_entry {
    UT_hash_handle hh;
    char *key; /* driver, 0x1f, pool */
    struct slice **slices;
    size_t n_slices, cap_slices;
    struct holding *holdings;
    size_t n_holdings, cap_holdings;
    uint32_t slot; /* UINT32_MAX: not in the snapshot */
    bool is_dirty;
};

struct pod_entry {
    UT_hash_handle hh;
    char *key; /* namespace/name */
    struct arena arena;
    struct pod_demand demand;
    struct node_entry *node;
    struct pod_entry *next, *prev; /* on the node */
};

struct node_entry { /* of a Node object, or of a name that slices or pods mention */
    UT_hash_handle hh;
    char *name;
    struct node_info *info; /* NULL: no such object */
    struct pod_entry *pods;
    struct pool_entry **pools; /* with slices for this node */
    size_t n_pools, cap_pools;
    uint32_t slot;
    bool is_dirty;
};

struct slice_entry {
    UT_hash_handle hh;
    char *name;
    uint64_t order;
    struct slice *slice;
};

struct claim_entry {
    UT_hash_handle hh;
    char *key; /* namespace/name */
    struct cluster_claim *claim;
};

struct doc_entry { /* classes, taint rules and namespaces: few, kept as JSON, parsed again when one changes */
    UT_hash_handle hh;
    char *name;
    json_t *object;
};

struct slots { /* numbers given out and taken back */
    uint32_t *free;
    size_t n_free, cap_free;
    uint32_t next;
};

struct snapshot_builder {
    struct features features;
    struct behaviour behaviour;
    bool validate;
    struct cache *cache;
    struct slice_entry *slices;
    struct pool_entry *pools;
    struct node_entry *nodes;
    struct pod_entry *pods;
    struct claim_entry *claims;
    struct doc_entry *classes, *rules, *namespaces;
    uint64_t next_order;
    struct pool_entry **dirty_pools;
    size_t n_dirty_pools, cap_dirty_pools;
    struct node_entry **dirty_nodes;
    size_t n_dirty_nodes, cap_dirty_nodes;
    struct slots node_slots, pool_slots;
    /* what the next snapshot shares */
    struct vector v_nodes, v_pools, v_buckets;
    struct order *sorted_nodes, *sorted_pools, *globals;
    bool node_set_changed, pool_set_changed;
    uint64_t globals_stamp;
    struct class_table *class_table;
    struct namespaces *namespace_table;
    struct arena rule_arena;
    struct taint_rule *parsed_rules;
    size_t n_rules;
};

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

static uint32_t slot_take(struct slots *slots)
{
    return slots->n_free ? slots->free[--slots->n_free] : slots->next++;
}

static void slot_give(struct slots *slots, uint32_t slot)
{
    mem_grow(slots->free, slots->n_free, slots->cap_free);
    slots->free[slots->n_free++] = slot;
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

static void node_dirty(struct snapshot_builder *b, struct node_entry *node)
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

/* Entries that nothing mentions any more go away, so that a long-lived builder does not collect names. */
static void node_entry_settle(struct snapshot_builder *b, struct node_entry *node)
{
    if (node->info || node->pods || node->n_pools || node->is_dirty || node->slot != UINT32_MAX)
        return;
    HASH_DEL(b->nodes, node);
    free(node->pools);
    free(node->name);
    free(node);
}

static void pool_entry_settle(struct snapshot_builder *b, struct pool_entry *pool)
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

static struct load load_of(struct snapshot_builder *b, struct arena *arena)
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

/* Rules come in the order of their names; their taints' order means nothing. */
static int doc_order(struct doc_entry *a, struct doc_entry *b)
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

/* ---- build ---- */

/* Nodes whose stamp or whose sharing follows from this pool. */
static void touch_nodes(struct snapshot_builder *b, const struct pool *pool, bool was_shared)
{
    struct node_entry *node;

    if (!pool->only_node && was_shared)
        return;
    for (size_t i = 0; i < pool->n_slices; i++) {
        if (!pool->slices[i]->node_name)
            continue;
        HASH_FIND_STR(b->nodes, pool->slices[i]->node_name, node);
        if (node)
            node_dirty(b, node);
    }
}

static void rebuild_pool(struct snapshot_builder *b, struct pool_entry *entry)
{
    const struct pool *old = entry->slot == UINT32_MAX ? NULL : vector_get(&b->v_pools, entry->slot);
    bool was_global = old && old->is_global, was_shared = old && !old->only_node;
    struct pool *pool;

    if (!entry->n_slices) {
        if (old) {
            vector_set(&b->v_pools, entry->slot, NULL);
            slot_give(&b->pool_slots, entry->slot);
            entry->slot = UINT32_MAX;
            b->pool_set_changed = true;
        }
        b->globals_stamp = was_global ? cache_stamp(b->cache) : b->globals_stamp;
        return;
    }
    if (entry->slot == UINT32_MAX) {
        entry->slot = slot_take(&b->pool_slots);
        b->pool_set_changed = true;
    }
    pool = pool_make(entry->slices, entry->n_slices, entry->holdings, entry->n_holdings, b->parsed_rules, b->n_rules,
                     &b->features, &b->behaviour, cache_stamp(b->cache), entry->slot);
    if (pool->is_global || was_global)
        b->globals_stamp = cache_stamp(b->cache);
    if (pool->is_global != was_global)
        b->pool_set_changed = true;
    touch_nodes(b, pool, was_shared);
    vector_set(&b->v_pools, entry->slot, pool);
}

struct named_slot {
    const char *a, *b;
    uint32_t slot;
};

static int by_names(const void *x, const void *y)
{
    const struct named_slot *a = x, *b = y;
    int order = strcmp(a->a, b->a);

    return order ? order : strcmp(a->b, b->b);
}

static struct order *sorted(struct named_slot *named, size_t n)
{
    uint32_t *slots = mem_array(uint32_t, n + 1);
    struct order *order;

    if (n)
        qsort(named, n, sizeof(*named), by_names);
    for (size_t i = 0; i < n; i++)
        slots[i] = named[i].slot;
    order = order_new(slots, n);
    free(slots);
    return order;
}

static void sort_pools(struct snapshot_builder *b)
{
    struct named_slot *named = mem_array(struct named_slot, vector_size(&b->v_pools) + 1);
    size_t n = 0;

    order_unref(b->sorted_pools);
    order_unref(b->globals);
    for (size_t i = 0; i < vector_size(&b->v_pools); i++) {
        const struct pool *pool = vector_get(&b->v_pools, i);

        if (pool)
            named[n++] = (struct named_slot){pool->driver, pool->name, pool->slot};
    }
    b->sorted_pools = sorted(named, n);
    n = 0;
    for (size_t i = 0; i < b->sorted_pools->n; i++) {
        const struct pool *pool = vector_get(&b->v_pools, b->sorted_pools->slots[i]);

        if (pool->is_global)
            named[n++] = (struct named_slot){pool->driver, pool->name, pool->slot};
    }
    b->globals = sorted(named, n);
    free(named);
}

static void sort_nodes(struct snapshot_builder *b)
{
    struct named_slot *named = mem_array(struct named_slot, vector_size(&b->v_nodes) + 1);
    size_t n = 0;

    order_unref(b->sorted_nodes);
    for (size_t i = 0; i < vector_size(&b->v_nodes); i++) {
        const struct node *node = vector_get(&b->v_nodes, i);

        if (node)
            named[n++] = (struct named_slot){node->info->name, "", node->slot};
    }
    b->sorted_nodes = sorted(named, n);
    free(named);
}

/* Slots of the node's pools in the order of driver and pool name. */
static size_t node_pools(struct snapshot_builder *b, const struct node_entry *node, uint32_t **out, bool *out_shares)
{
    struct named_slot *named = mem_array(struct named_slot, node->n_pools + 1);
    size_t n = 0;

    for (size_t i = 0; i < node->n_pools; i++) {
        const struct pool *pool = vector_get(&b->v_pools, node->pools[i]->slot);

        named[n++] = (struct named_slot){pool->driver, pool->name, pool->slot};
        *out_shares = *out_shares || !pool->only_node;
    }
    qsort(named, n, sizeof(*named), by_names);
    *out = mem_array(uint32_t, n + 1);
    for (size_t i = 0; i < n; i++)
        (*out)[i] = named[i].slot;
    free(named);
    return n;
}

static void rebuild_node(struct snapshot_builder *b, struct node_entry *entry)
{
    struct arena arena = {0};
    struct node_use use = {0};
    uint32_t *pools;
    bool shares = false;
    size_t n_pools;

    if (!entry->info) {
        if (entry->slot != UINT32_MAX) {
            vector_set(&b->v_nodes, entry->slot, NULL);
            slot_give(&b->node_slots, entry->slot);
            entry->slot = UINT32_MAX;
            b->node_set_changed = true;
        }
        return;
    }
    if (entry->slot == UINT32_MAX) {
        entry->slot = slot_take(&b->node_slots);
        b->node_set_changed = true;
    }
    for (const struct pod_entry *pod = entry->pods; pod; pod = pod->next)
        node_use_add(&use, &pod->demand, &arena);
    n_pools = node_pools(b, entry, &pools, &shares);
    vector_set(&b->v_nodes, entry->slot,
               node_make(entry->info, pools, n_pools, shares, &use, cache_stamp(b->cache), entry->slot));
    free(pools);
    arena_release(&arena);
}

static void rebuild_dirty(struct snapshot_builder *b)
{
    for (size_t i = 0; i < b->n_dirty_pools; i++) {
        rebuild_pool(b, b->dirty_pools[i]);
        b->dirty_pools[i]->is_dirty = false;
        pool_entry_settle(b, b->dirty_pools[i]);
    }
    for (size_t i = 0; i < b->n_dirty_nodes; i++) {
        rebuild_node(b, b->dirty_nodes[i]);
        b->dirty_nodes[i]->is_dirty = false;
        node_entry_settle(b, b->dirty_nodes[i]);
    }
    b->n_dirty_pools = b->n_dirty_nodes = 0;
    if (b->pool_set_changed)
        sort_pools(b);
    if (b->node_set_changed)
        sort_nodes(b);
    b->pool_set_changed = b->node_set_changed = false;
}

static struct class_table *class_table_make(struct snapshot_builder *b)
{
    struct class_table *table = mem_new(struct class_table);
    struct load load = load_of(b, &table->arena);
    struct device_class *classes = arena_array(&table->arena, struct device_class, HASH_COUNT(b->classes) + 1);
    struct doc_entry *entry;

    load.validate = false; /* they were checked when they came */
    atomic_init(&table->refs, 1);
    HASH_SORT(b->classes, doc_order);
    for (entry = b->classes; entry; entry = entry->hh.next)
        if (class_parse(entry->object, &load, &classes[table->n_classes], NULL) == 0)
            table->n_classes++;
    table->classes = classes;
    table->stamp = cache_stamp(b->cache);
    return table;
}

static struct namespaces *namespaces_make(struct snapshot_builder *b)
{
    struct namespaces *table = mem_new(struct namespaces);
    struct namespace_info *items = arena_array(&table->arena, struct namespace_info, HASH_COUNT(b->namespaces) + 1);
    struct doc_entry *entry;

    atomic_init(&table->refs, 1);
    HASH_SORT(b->namespaces, doc_order);
    for (entry = b->namespaces; entry; entry = entry->hh.next) {
        struct namespace_info *item = &items[table->n];

        item->name = arena_strdup(&table->arena, entry->name);
        if (read_labels(member(entry->object, "metadata"), "labels", &table->arena, &item->labels, &item->n_labels,
                        NULL) == 0)
            table->n++;
    }
    table->items = items;
    return table;
}

struct snapshot *snapshot_builder_build(struct snapshot_builder *b)
{
    struct snapshot *s = mem_new(struct snapshot);

    rebuild_dirty(b);
    if (!b->class_table)
        b->class_table = class_table_make(b);
    if (!b->namespace_table)
        b->namespace_table = namespaces_make(b);
    atomic_init(&s->refs, 1);
    s->features = b->features;
    s->behaviour = b->behaviour;
    s->cache = cache_ref(b->cache);
    s->symbols = cache_symbols(b->cache);
    s->nodes = vector_share(&b->v_nodes);
    s->pools = vector_share(&b->v_pools);
    s->buckets = vector_share(&b->v_buckets);
    s->sorted_nodes = order_ref(b->sorted_nodes);
    s->sorted_pools = order_ref(b->sorted_pools);
    s->globals = order_ref(b->globals);
    s->globals_stamp = b->globals_stamp;
    s->classes = class_table_ref(b->class_table);
    s->namespaces = namespaces_ref(b->namespace_table);
    return s;
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
