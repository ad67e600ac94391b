/* Why a gang does not run, in numbers first: per group which nodes admit a member and why the others do not; per
 * request how many devices there are, match, are free, in use and by whom. Then, unless a brief answer was asked for,
 * in consequences: which single rule, lifted, would make it fit (whatif.c). */
#include "allocator/explain.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/bitset.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

static const char *const verdict_names[] = {
    [GANG_FITS] = "fits",           [GANG_WAITS] = "waits",     [GANG_NEVER] = "never",
    [GANG_UNDECIDED] = "undecided", [GANG_REFUSED] = "refused",
};

void explain_join(struct buf *out, size_t i, size_t n)
{
    if (i > 0)
        buf_adds(out, i + 1 == n ? " and " : ", ");
}

struct ledger *explain_empty(struct gang *gang, enum gang_verdict verdict)
{
    struct ledger *empty;

    if (verdict != GANG_NEVER)
        return NULL;
    empty = ledger_new(gang->snapshot);
    ledger_empty(empty);
    gang->ledger = empty;
    gang->is_empty = true;
    return empty;
}

void explain_restore(struct gang *gang, struct ledger *empty)
{
    if (!empty)
        return;
    gang->ledger = NULL;
    gang->is_empty = false;
    ledger_free(empty);
}

bool explain_mark(struct gang *gang, uint64_t **sets, const struct pool *pool, uint32_t index)
{
    if (!sets[pool->slot])
        sets[pool->slot] = arena_array(&gang->work, uint64_t, bitset_words(pool->n_devices));
    if (bitset_has(sets[pool->slot], index))
        return false;
    bitset_put(sets[pool->slot], index);
    return true;
}

/* ---- nodes ---- */

static const char *taint_text(struct gang *gang, const struct taint *taint)
{
    return arena_printf(&gang->work, "taint %s%s%s:%s is not tolerated", taint->key, *taint->value ? "=" : "",
                        taint->value, taint->effect_text);
}

const char *explain_finding(struct gang *gang, const struct node_finding *finding)
{
    switch (finding->obstacle) {
    case NODE_ADMITS:
        return "admits a member";
    case NODE_OTHER_NAME:
        return arena_printf(&gang->work, "the pod names node %s", finding->detail);
    case NODE_UNSCHEDULABLE:
        return "unschedulable (cordoned)";
    case NODE_NOT_READY:
        return "not ready (node.kubernetes.io/not-ready)";
    case NODE_TAINTED:
        return taint_text(gang, finding->taint);
    case NODE_SELECTOR:
        return arena_printf(&gang->work, "label %s does not match the node selector", finding->detail);
    case NODE_AFFINITY:
        return arena_printf(&gang->work, "required node affinity%s%s does not match", finding->detail ? " on " : "",
                            finding->detail ? finding->detail : "");
    case NODE_PORT:
        return arena_printf(&gang->work, "host port %lld is taken", (long long)finding->port);
    case NODE_RESOURCE:
        return arena_printf(&gang->work, "not enough %s", finding->detail);
    }
    return "";
}

/* Nodes that are out for one reason. */
struct reason {
    const char *text, *example;
    const char *resource; /* that is short; NULL: another reason */
    int64_t asked, most_left;
    size_t nodes;
};
struct reasons {
    struct reason *items;
    size_t n, cap;
};

static void add_reason(struct gang *gang, struct reasons *reasons, const struct node_finding *finding,
                       const struct node *node)
{
    const char *text = explain_finding(gang, finding);
    struct reason *one;
    size_t i = 0;

    while (i < reasons->n && strcmp(reasons->items[i].text, text) != 0)
        i++;
    if (i == reasons->n) {
        mem_grow(reasons->items, reasons->n, reasons->cap);
        reasons->items[reasons->n++] =
            (struct reason){.text = text,
                            .example = node->info->name,
                            .asked = finding->asked,
                            .most_left = finding->left,
                            .resource = finding->obstacle == NODE_RESOURCE ? finding->detail : NULL};
    }
    one = &reasons->items[i];
    one->nodes++;
    one->most_left = finding->left > one->most_left ? finding->left : one->most_left;
}

static json_t *reason_json(struct gang *gang, const struct reason *reason)
{
    const char *text = reason->text;

    if (reason->resource)
        text = arena_printf(&gang->work, "%s: a member asks %s, at most %s left on one node", text,
                            explain_resource(reason->resource, reason->asked, &gang->work),
                            explain_resource(reason->resource, reason->most_left, &gang->work));
    return json_pack("{s:s, s:I, s:s}", "reason", text, "nodes", (json_int_t)reason->nodes, "example", reason->example);
}

/* What never fits is told by what keeps nodes away even when nothing runs on them. */
static const uint64_t *explain_nodes(struct gang *gang, enum gang_verdict verdict, const struct gang_kind *kind,
                                     json_t *out)
{
    struct ledger *empty = explain_empty(gang, verdict);
    uint64_t *eligible = arena_array(&gang->work, uint64_t, bitset_words(snapshot_node_slots(gang->snapshot)));
    json_t *list = json_array();
    struct reasons reasons = {0};
    const uint32_t *slots;
    size_t n_slots, n_eligible = 0;

    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t i = 0; i < n_slots; i++) {
        const struct node *node = snapshot_node(gang->snapshot, slots[i]);
        struct node_finding finding = gang_node_finding(gang, kind, node);

        if (finding.obstacle != NODE_ADMITS) {
            add_reason(gang, &reasons, &finding, node);
            continue;
        }
        n_eligible++;
        bitset_put(eligible, slots[i]);
    }
    for (size_t i = 0; i < reasons.n; i++)
        json_array_append_new(list, reason_json(gang, &reasons.items[i]));
    free(reasons.items);
    json_object_set_new(out, "nodes",
                        json_pack("{s:I, s:I}", "total", (json_int_t)n_slots, "eligible", (json_int_t)n_eligible));
    json_object_set_new(out, "nodeReasons", list);
    explain_restore(gang, empty);
    return eligible;
}

/* ---- groups ---- */

static size_t fit_alone(struct gang *gang, enum gang_verdict verdict, const struct gang_kind *kind)
{
    struct gang_choice free_choice = {0};
    struct gang_survey *survey;
    struct ledger *empty;
    size_t fit;

    if (gang->n_kinds == 1 && kind->n_members == 1 && gang->spec->n_constraints == 0)
        return 0; /* or it would not be explained */
    empty = explain_empty(gang, verdict);
    survey = gang_survey(gang, &free_choice);
    gang->steps = gang->budget;
    fit = gang_most_alone(gang, survey, (size_t)(kind - gang->kinds));
    explain_restore(gang, empty);
    return fit;
}

static json_t *explain_group(struct gang *gang, enum gang_verdict verdict, size_t g)
{
    const struct gang_group *group = &gang->spec->groups[g];
    const struct gang_kind *kind = &gang->kinds[gang->kind_of[g]];
    struct arena_mark mark = arena_mark(&gang->work);
    json_t *out = json_pack("{s:s, s:I}", "name", group->name, "members", (json_int_t)group->n_members);
    json_t *pools = json_array();
    const uint64_t *nodes;

    if (!gang->refusal)
        json_object_set_new(out, "fit", json_integer((json_int_t)fit_alone(gang, verdict, kind)));
    nodes = explain_nodes(gang, verdict, kind, out);
    json_object_set_new(out, "requests",
                        gang->refusal ? json_array() : explain_requests(gang, kind, group, verdict, nodes, pools));
    if (json_array_size(pools) > 0)
        json_object_set(out, "unusablePools", pools);
    json_decref(pools);
    arena_rewind(&gang->work, mark);
    return out;
}

static json_t *explain_groups(struct gang *gang, enum gang_verdict verdict)
{
    json_t *out = json_array();

    for (size_t g = 0; g < gang->spec->n_groups; g++)
        json_array_append_new(out, explain_group(gang, verdict, g));
    return out;
}

/* ---- the whole ---- */

json_t *gang_explain(struct gang *gang, enum gang_verdict verdict)
{
    json_t *groups = verdict == GANG_FITS || gang->spec->is_brief ? json_array() : explain_groups(gang, verdict);
    json_t *blocking = json_array(), *hints = json_array(), *more_nodes = json_array(), *out;
    const char *phrase = NULL;

    if (verdict == GANG_REFUSED)
        json_array_append_new(
            blocking, json_pack("{s:s, s:s, s:s}", "kind", "class", "name", "refused", "detail", gang->refusal));
    if ((verdict == GANG_WAITS || verdict == GANG_NEVER) && !gang->spec->is_brief)
        phrase = gang_what_if(gang, verdict, groups, blocking, hints, more_nodes);
    out = json_pack("{s:s, s:o, s:o, s:o, s:o}", "verdict", verdict_names[verdict], "summary",
                     explain_summary(gang, verdict, groups, blocking, phrase), "groups", groups, "blocking", blocking,
                     "hints", hints);
    if (json_array_size(more_nodes) > 0)
        json_object_set(out, "wouldFitWithNodes", more_nodes);
    json_decref(more_nodes);
    return out;
}
