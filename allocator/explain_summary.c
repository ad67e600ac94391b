/* The sentence: the answer, how far the gang gets, the one fact that is in the way with its number, what would help. */
#include "allocator/explain.h"

#include <string.h>

#include "allocator/base/banned.h"

#define REASONS_NAMED 3

static const char *verdict_phrase(enum gang_verdict verdict)
{
    switch (verdict) {
    case GANG_FITS:
        return "The gang fits";
    case GANG_WAITS:
        return "The gang must wait";
    case GANG_NEVER:
        return "The gang will never fit on this cluster";
    case GANG_UNDECIDED:
        return "No placement was found within the search budget";
    case GANG_REFUSED:
        return "The gang cannot start";
    }
    return "";
}

/* Every part is set off from the one before. */
static void begin_part(struct buf *text, size_t *n)
{
    buf_adds(text, (*n)++ ? "; " : ": ");
}

/* ---- which group, which request ---- */

/* The group with the largest part that finds no place. */
static const json_t *worst_group(const json_t *groups)
{
    const json_t *worst = NULL;
    long long most = 0;
    json_t *one;
    size_t i;

    json_array_foreach (groups, i, one) {
        long long missing = explain_number(one, "members") - explain_number(one, "fit");

        if (!worst || missing > most) {
            worst = one;
            most = missing;
        }
    }
    return worst;
}

static bool same_request(const json_t *a, const json_t *b)
{
    const char *x = explain_text(a, "request"), *y = explain_text(b, "request");
    size_t n = strcspn(x, "/");

    return strcmp(explain_text(a, "claim"), explain_text(b, "claim")) == 0 && strcspn(y, "/") == n &&
           strncmp(x, y, n) == 0;
}

/* Whether every alternative of the request is in trouble. */
static bool is_hopeless(const json_t *requests, const json_t *request)
{
    json_t *one;
    size_t i;

    json_array_foreach (requests, i, one)
        if (same_request(request, one) && !json_object_get(one, "problem"))
            return false;
    return true;
}

static const json_t *blocked_request(const json_t *group)
{
    const json_t *requests = json_object_get(group, "requests");
    json_t *one;
    size_t i;

    json_array_foreach (requests, i, one)
        if (is_hopeless(requests, one))
            return one;
    return NULL;
}

/* The request with the fewest free devices. */
static const json_t *scarcest_request(const json_t *group)
{
    const json_t *worst = NULL;
    json_t *one;
    size_t i;

    json_array_foreach (json_object_get(group, "requests"), i, one)
        if (!worst || explain_number(one, "free") < explain_number(worst, "free"))
            worst = one;
    return worst;
}

/* ---- parts ---- */

static void add_fit(struct buf *text, size_t *n, const json_t *group, size_t n_groups)
{
    long long members = explain_number(group, "members"), fit = explain_number(group, "fit");

    if (fit >= members) {
        begin_part(text, n);
        buf_adds(text, n_groups > 1 ? "every group fits by itself, but not all of them together"
                                    : "every member could find a place, but not all of them together");
    } else if (members > 1) {
        begin_part(text, n);
        buf_addf(text, "%lld of %lld members of group %s %s a place", fit, members, explain_text(group, "name"),
                 fit == 1 ? "finds" : "find");
    }
}

static bool add_blocked_request(struct buf *text, size_t *n, const json_t *group)
{
    const json_t *request = blocked_request(group);

    if (!request)
        return false;
    begin_part(text, n);
    buf_addf(text, "request %s of class %s %s", explain_text(request, "request"), explain_text(request, "class"),
             explain_text(request, "problem"));
    return true;
}

/* Rules and scarcities whose detail says more than the counts of a request. */
static bool add_block(struct buf *text, size_t *n, const json_t *blocking)
{
    json_t *one;
    size_t i;

    json_array_foreach (blocking, i, one) {
        const char *kind = explain_text(one, "kind");

        if (strcmp(kind, "devices") == 0 || strcmp(kind, "selector") == 0)
            continue;
        begin_part(text, n);
        buf_adds(text, explain_text(one, "detail"));
        return true;
    }
    return false;
}

static void add_counts(struct buf *text, size_t *n, enum gang_verdict verdict, const json_t *group)
{
    const json_t *request = scarcest_request(group);

    if (!request)
        return;
    begin_part(text, n);
    buf_addf(text, "request %s of class %s finds ", explain_text(request, "request"), explain_text(request, "class"));
    if (verdict != GANG_NEVER)
        buf_addf(text, "%lld free of ", explain_number(request, "free"));
    buf_addf(text, "%lld %s", explain_number(request, "match"),
             explain_number(request, "match") == 1 ? "device that matches" : "devices that match");
}

/* The first `most` reasons why nodes are out. */
static void add_nodes(struct buf *text, size_t *n, const json_t *group, size_t most)
{
    const json_t *reason;
    size_t i;

    json_array_foreach (json_object_get(group, "nodeReasons"), i, reason) {
        long long nodes = explain_number(reason, "nodes");

        if (i == most)
            break;
        begin_part(text, n);
        if (nodes == 1)
            buf_addf(text, "node %s: %s", explain_text(reason, "example"), explain_text(reason, "reason"));
        else
            buf_addf(text, "%lld nodes (such as %s): %s", nodes, explain_text(reason, "example"),
                     explain_text(reason, "reason"));
    }
}

static void add_pools(struct buf *text, size_t *n, const json_t *group)
{
    const json_t *pool = json_array_get(json_object_get(group, "unusablePools"), 0);

    if (!pool)
        return;
    begin_part(text, n);
    buf_addf(text, "pool %s/%s is %s", explain_text(pool, "driver"), explain_text(pool, "pool"),
             explain_text(pool, "problem"));
}

static void add_group(struct buf *text, size_t *n, enum gang_verdict verdict, const json_t *groups,
                      const json_t *blocking)
{
    const json_t *group = worst_group(groups);
    bool some_node = explain_number(json_object_get(group, "nodes"), "eligible") > 0;

    add_fit(text, n, group, json_array_size(groups));
    if (!some_node) {
        begin_part(text, n);
        buf_adds(text, "no node admits a member");
        add_nodes(text, n, group, REASONS_NAMED);
    }
    if (!add_blocked_request(text, n, group) && some_node) {
        add_counts(text, n, verdict, group);
        add_block(text, n, blocking);
    }
    add_pools(text, n, group);
    if (some_node)
        add_nodes(text, n, group, 1);
}

json_t *explain_summary(const struct gang *gang, enum gang_verdict verdict, const json_t *groups,
                        const json_t *blocking, const char *phrase)
{
    size_t n = 0;
    json_t *out;
    BUF text = {0};

    buf_adds(&text, verdict_phrase(verdict));
    if (verdict == GANG_WAITS && gang->waits_for)
        buf_addf(&text, " for %s", gang->waits_for);
    if (verdict == GANG_REFUSED) {
        begin_part(&text, &n);
        buf_adds(&text, gang->refusal);
    } else if (verdict != GANG_FITS && snapshot_n_nodes(gang->snapshot) == 0) {
        begin_part(&text, &n);
        buf_adds(&text, "the cluster has no nodes");
    } else if (verdict != GANG_FITS && worst_group(groups)) {
        add_group(&text, &n, verdict, groups, blocking);
    }
    if (phrase) {
        begin_part(&text, &n);
        buf_adds(&text, phrase);
    }
    buf_addc(&text, '.');
    out = json_string(buf_str(&text));
    return out ? out : json_string("The explanation holds text that is not valid UTF-8.");
}
