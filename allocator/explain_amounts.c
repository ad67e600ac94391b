/* Amounts for people. */
#include "allocator/explain.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/banned.h"

#define SHORT_TEXT  7
#define PLAIN_MILLI 1000000000 /* below a million */

const char *explain_quantity(const struct quantity *quantity, struct arena *arena)
{
    static const char *const units[] = {"Ei", "Pi", "Ti", "Gi", "Mi", "Ki"};
    int64_t whole;
    BUF text = {0};

    if (quantity->format == QUANTITY_DECIMAL_SI && quantity_is_milli_exact(quantity) &&
        quantity_to_milli(quantity, &whole) && whole % 1000 == 0 && llabs(whole) < PLAIN_MILLI)
        return arena_printf(arena, "%lld", (long long)(whole / 1000)); /* 5000 cores, not 5k */
    quantity_format_to(quantity, &text);
    if (text.len <= SHORT_TEXT || quantity->format != QUANTITY_BINARY_SI || !quantity_to_int(quantity, &whole) ||
        whole < 1024)
        return arena_strdup(arena, buf_str(&text));
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        int64_t unit = (int64_t)1 << (60 - 10 * (int)i);

        if (whole >= unit)
            return arena_printf(arena, "%lld.%lld%s", (long long)(whole / unit),
                                (long long)((whole % unit) / (unit / 10)) % 10, units[i]);
    }
    return "";
}

struct quantity explain_quantity_of(gs_amount amount, enum quantity_format format)
{
    const gs_amount billion = 1000000000;
    struct quantity out = {.scale = -9, .format = format};

    if (amount % billion == 0) {
        amount /= billion;
        out.scale = 0;
    }
    out.value = amount > INT64_MAX ? INT64_MAX : amount < -INT64_MAX ? -INT64_MAX : (int64_t)amount;
    return out;
}

static bool is_memory(const char *resource)
{
    return strcmp(resource, "memory") == 0 || strcmp(resource, "ephemeral-storage") == 0 ||
           strncmp(resource, "hugepages-", 10) == 0;
}

const char *explain_resource(const char *resource, int64_t amount, struct arena *arena)
{
    struct quantity quantity = quantity_of_int(amount);

    if (strcmp(resource, "cpu") == 0)
        quantity = quantity_of_milli(amount, QUANTITY_DECIMAL_SI);
    else if (is_memory(resource))
        quantity.format = QUANTITY_BINARY_SI;
    return explain_quantity(&quantity, arena);
}

/* ---- shortages ---- */

struct room {
    int64_t asked, most, places;
    const char *node; /* that has the most */
    size_t n_nodes;
};

static size_t resource_index(const struct gang *gang, const char *resource)
{
    size_t i = 0;

    while (i < gang->n_resources && strcmp(gang->resources[i], resource) != 0)
        i++;
    return i;
}

static struct room room_for(struct gang *gang, const struct gang_kind *kind, size_t resource)
{
    const char *name = gang->resources[resource];
    struct room room = {.most = INT64_MIN};
    const uint32_t *slots;
    size_t n_slots;

    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t i = 0; i < n_slots; i++) {
        const struct node *node = snapshot_node(gang->snapshot, slots[i]);
        const struct node_use *use = gang->ledger ? ledger_node_use(gang->ledger, node) : &node->use;
        const int64_t *demand = kind->demand[gang_form_of(gang, node->info)];
        int64_t left;

        if (!demand || demand[resource] <= 0 || node_admits(&kind->rules, node->info).obstacle != NODE_ADMITS)
            continue;
        left = node_allocatable(node->info, name) - node_used(use, name);
        room.n_nodes++;
        room.asked = demand[resource] > room.asked ? demand[resource] : room.asked;
        room.places += left > 0 ? left / demand[resource] : 0;
        if (left > room.most) {
            room.most = left;
            room.node = node->info->name;
        }
    }
    return room;
}

static const char *shortage(struct gang *gang, const char *resource)
{
    size_t index = resource_index(gang, resource);

    for (size_t k = 0; k < gang->n_kinds && index < gang->n_resources; k++) {
        const struct gang_kind *kind = &gang->kinds[k];
        struct room room = room_for(gang, kind, index);

        if (room.n_nodes == 0 || room.places >= kind->n_members)
            continue;
        return arena_printf(
            gang->arena, "a member asks %s of %s, the most %s on one node is %s (%s), room for %lld of %u %s",
            explain_resource(resource, room.asked, gang->arena), resource, gang->is_empty ? "there is" : "left",
            explain_resource(resource, room.most, gang->arena), room.node, (long long)room.places, kind->n_members,
            kind->n_members == 1 ? "member" : "members");
    }
    return NULL;
}

const char *explain_shortage(struct gang *gang, enum gang_verdict verdict, const char *resource)
{
    struct ledger *empty = explain_empty(gang, verdict);
    const char *words = shortage(gang, resource);

    explain_restore(gang, empty);
    return words;
}
