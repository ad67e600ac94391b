/* How many more nodes would make the gang fit: for every shape of node that the cluster has, the smallest number of
 * empty copies with which the whole gang is planned. A node more never hurts, so halving finds it. */
#include "allocator/whatif.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/grow.h"

#include "allocator/base/banned.h"

#define SHAPES_TRIED 8
#define NODE_TRIALS  64               /* in all */
#define MAX_COPIES   512              /* of one node */
#define TRIAL_BUDGET UINT64_C(200000) /* search steps each */
#define MAX_DEVICES  4                /* kinds of devices that are named */

/* ---- shapes of nodes ---- */

static const struct attribute *find_attribute(const struct device *device, const char *key, size_t guess)
{
    if (guess < device->n_attributes && device->attributes[guess].key == key)
        return &device->attributes[guess];
    for (size_t i = 0; i < device->n_attributes; i++)
        if (device->attributes[i].key == key)
            return &device->attributes[i];
    return NULL;
}

/* Attributes that tell devices apart are no part of a shape: those that differ on one node, and of a device that is
 * alone there those with such a name. `at`: where it stands in the first device. */
static bool tells_apart(const struct pool *pool, const struct attribute *attribute, size_t at)
{
    static const char *const names[] = {"uuid", "serial", "pciBusID", "pcieRoot", "index", "minor"};
    const char *slash = strchr(attribute->key, '/'), *name = slash ? slash + 1 : attribute->key;

    for (size_t i = 0; pool->n_devices == 1 && i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    for (size_t d = 0; d < pool->n_devices; d++) {
        const struct attribute *other = find_attribute(pool->devices[d].device, attribute->key, at);

        if (other && other->hash != attribute->hash)
            return true;
    }
    return false;
}

static void digest_pool(struct digest *digest, const struct pool *pool)
{
    const struct device *first = pool->n_devices ? pool->devices[0].device : NULL;

    digest_text(digest, pool->driver, strlen(pool->driver));
    digest_add(digest, pool->n_devices);
    for (size_t d = 0; d < pool->n_devices; d++) {
        digest_add(digest, pool->devices[d].device->n_consumes);
        for (size_t i = 0; i < pool->devices[d].device->n_capacities; i++)
            digest_add(digest, pool->devices[d].device->capacities[i].hash);
    }
    for (size_t i = 0; first && i < first->n_attributes; i++)
        if (!tells_apart(pool, &first->attributes[i], i)) {
            digest_text(digest, first->attributes[i].key, strlen(first->attributes[i].key));
            digest_add(digest, first->attributes[i].hash);
        }
}

static bool is_own(const struct node *node, const struct pool *pool)
{
    return pool->only_node && strcmp(pool->only_node, node->info->name) == 0;
}

static void digest_label(struct digest *digest, const char *value)
{
    digest_add(digest, value != NULL);
    if (value)
        digest_text(digest, value, strlen(value));
}

/* Equal for equal amounts in one form. */
static void digest_amount(struct digest *digest, const struct quantity *amount)
{
    int64_t value = amount->value;
    int32_t scale = amount->scale;
    BUF text = {0};

    if (amount->big) {
        quantity_format_to(amount, &text);
        digest_text(digest, buf_str(&text), text.len);
        return;
    }
    for (; value != 0 && value % 10 == 0; value /= 10)
        scale++;
    digest_add(digest, (uint64_t)value);
    digest_add(digest, (uint64_t)(uint32_t)scale << 8 | (uint64_t)amount->format);
}

/* What matters of an empty copy of the node to this gang. */
static struct digest shape_of(const struct gang *gang, const struct node *node)
{
    const struct node_info *info = node->info;
    struct digest digest = {0};

    for (size_t k = 0; k < gang->n_kinds; k++)
        digest_add(&digest, node_admits(&gang->kinds[k].rules, info).obstacle);
    for (size_t i = 0; i < gang->spec->n_constraints; i++)
        if (gang->spec->constraints[i].kind == GANG_MATCH_NODE_LABEL)
            digest_label(&digest, node_label(info, gang->spec->constraints[i].key));
    for (size_t i = 0; i < info->n_allocatable; i++) {
        digest_text(&digest, info->allocatable[i].name, strlen(info->allocatable[i].name));
        digest_amount(&digest, &info->allocatable[i].amount);
    }
    for (size_t i = 0; i < node->n_pools; i++) {
        const struct pool *pool = snapshot_pool(gang->snapshot, node->pools[i]);

        if (is_own(node, pool))
            digest_pool(&digest, pool);
    }
    return digest;
}

static bool is_of_use(const struct gang *gang, const struct node *node)
{
    if (!node->info->ready || node->info->unschedulable)
        return false;
    for (size_t k = 0; k < gang->n_kinds; k++)
        if (node_admits(&gang->kinds[k].rules, node->info).obstacle == NODE_ADMITS)
            return true;
    return false;
}

/* The first node, by name, of each of the first shapes. */
static size_t list_shapes(const struct gang *gang, const struct node **out)
{
    struct digest seen[SHAPES_TRIED];
    size_t n = 0, n_slots;
    const uint32_t *slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);

    for (size_t i = 0; i < n_slots && n < SHAPES_TRIED; i++) {
        const struct node *node = snapshot_node(gang->snapshot, slots[i]);
        bool is_known = !is_of_use(gang, node);

        seen[n] = is_known ? (struct digest){0} : shape_of(gang, node);
        for (size_t k = 0; k < n && !is_known; k++)
            is_known = digest_eq(seen[k], seen[n]);
        if (!is_known)
            out[n++] = node;
    }
    return n;
}

/* ---- a shape in words ---- */

struct device_count {
    const char *name;
    size_t n;
};

static const char *name_of(const struct pool *pool, const struct device *device, struct arena *arena)
{
    static const char *const names[] = {"productName", "model", "product", "type"};

    for (size_t k = 0; k < ARRAY_SIZE(names); k++)
        for (size_t i = 0; i < device->n_attributes; i++) {
            const struct attribute *attribute = &device->attributes[i];
            const char *slash = strchr(attribute->key, '/');

            if (attribute->kind == CEL_ATTR_STRING && !attribute->is_list && attribute->s.len > 0 &&
                strcmp(slash ? slash + 1 : attribute->key, names[k]) == 0)
                return arena_strndup(arena, attribute->s.ptr, attribute->s.len);
        }
    return pool->driver;
}

static size_t count_device(struct device_count *counts, size_t n, const char *name, size_t more)
{
    size_t i = 0;

    while (i < n && strcmp(counts[i].name, name) != 0)
        i++;
    if (i == n && n == MAX_DEVICES)
        return n;
    if (i == n)
        counts[n++] = (struct device_count){name, 0};
    counts[i].n += more;
    return n;
}

/* Partitions of a device share its counters: a set of counters is one device, whatever it may be cut into. */
static size_t count_pool(struct device_count *counts, size_t n, const struct pool *pool, struct arena *arena)
{
    const struct device *cut = NULL;

    for (size_t i = 0; pool->view && i < pool->view->n_devices; i++) {
        const struct device *device = pool->devices[pool->view->devices[i]].device;

        if (device->n_consumes > 0 && pool->view->n_sets > 0)
            cut = cut ? cut : device;
        else
            n = count_device(counts, n, name_of(pool, device, arena), 1);
    }
    return cut ? count_device(counts, n, name_of(pool, cut, arena), pool->view->n_sets) : n;
}

static const char *allocatable(const struct node_info *info, const char *resource, struct arena *arena)
{
    for (size_t i = 0; i < info->n_allocatable; i++)
        if (strcmp(info->allocatable[i].name, resource) == 0)
            return explain_quantity(&info->allocatable[i].amount, arena);
    return NULL;
}

static json_t *shape_json(struct gang *gang, const struct node *node, size_t count)
{
    struct device_count counts[MAX_DEVICES];
    const char *cpu = allocatable(node->info, "cpu", gang->arena);
    const char *memory = allocatable(node->info, "memory", gang->arena);
    json_t *devices = json_array(), *out;
    size_t n = 0;

    for (size_t i = 0; i < node->n_pools; i++) {
        const struct pool *pool = snapshot_pool(gang->snapshot, node->pools[i]);

        if (is_own(node, pool))
            n = count_pool(counts, n, pool, gang->arena);
    }
    for (size_t i = 0; i < n; i++)
        json_array_append_new(devices,
                              json_pack("{s:s, s:I}", "name", counts[i].name, "count", (json_int_t)counts[i].n));
    out = json_pack("{s:s, s:I, s:o}", "like", node->info->name, "count", (json_int_t)count, "devices", devices);
    if (cpu)
        json_object_set_new(out, "cpu", json_string(cpu));
    if (memory)
        json_object_set_new(out, "memory", json_string(memory));
    return out;
}

/* ---- trials ---- */

static bool fits_with(struct trial *t, struct growth *growth, size_t n)
{
    struct gang_spec spec = *t->gang->spec;
    struct snapshot *grown;
    struct arena arena = {0};
    struct gang gang;
    struct error err;
    bool fits = false;

    t->n_trials++;
    grown = growth_snapshot(growth, n);
    spec.budget = TRIAL_BUDGET;
    if (gang_read(&gang, grown, &spec, NULL, &arena, &err) == 0 && !gang.refusal)
        fits = gang_plan(&gang, false, NULL) == GS_FOUND;
    gang_release(&gang);
    arena_release(&arena);
    snapshot_unref(grown);
    return fits;
}

static size_t n_members(const struct gang *gang)
{
    size_t n = 0;

    for (size_t g = 0; g < gang->spec->n_groups; g++)
        n += gang->spec->groups[g].n_members;
    return n < MAX_COPIES ? n : MAX_COPIES;
}

/* Trials that copies_needed() may take. */
static size_t most_trials(const struct gang *gang)
{
    size_t n = 1;

    for (size_t copies = 1; copies < n_members(gang); copies *= 2)
        n += 2; /* once doubling, once halving */
    return n;
}

/* How many copies of the node are enough; 0: as many as there are members are not, and so no number is. */
static size_t copies_needed(struct trial *t, const struct node *like)
{
    struct growth *growth = growth_new(t->gang->snapshot, like);
    size_t low = 0, high = n_members(t->gang); /* `low` are not enough, `high` are */

    if (!fits_with(t, growth, high))
        low = high = 0;
    for (size_t n = 1; n < high; n *= 2) { /* few are enough most of the time */
        if (fits_with(t, growth, n))
            high = n;
        else
            low = n;
    }
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (fits_with(t, growth, middle))
            high = middle;
        else
            low = middle;
    }
    growth_free(growth);
    return high;
}

struct answer {
    const struct node *node;
    size_t n, order;
};

static int compare_answers(const void *a, const void *b)
{
    const struct answer *x = a, *y = b;

    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

void whatif_more_nodes(struct trial *t, json_t *more)
{
    const struct node *shapes[SHAPES_TRIED];
    struct answer answers[SHAPES_TRIED];
    size_t n_shapes = list_shapes(t->gang, shapes), n = 0;

    t->n_trials = 0;
    for (size_t i = 0; i < n_shapes && t->n_trials + most_trials(t->gang) <= NODE_TRIALS; i++) {
        size_t needed = copies_needed(t, shapes[i]);

        if (needed > 0)
            answers[n++] = (struct answer){shapes[i], needed, i};
    }
    if (n == 0)
        return;
    qsort(answers, n, sizeof(*answers), compare_answers);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(more, shape_json(t->gang, answers[i].node, answers[i].n));
    json_array_append_new(t->hints,
                          json_string(answers[0].n == 1 ? arena_printf(t->gang->arena, "with one more node like %s",
                                                                       answers[0].node->info->name)
                                                        : arena_printf(t->gang->arena, "with %zu more nodes like %s",
                                                                       answers[0].n, answers[0].node->info->name)));
}
