/* Why a request cannot be served, in one phrase with the number that is short: what the cluster has, what one node has,
 * what the nodes have together. Of a gang that never fits, what somebody uses now is no reason. */
#include "allocator/explain_tally.h"

#include <string.h>

#include "allocator/base/banned.h"

#define SELECTOR_SHOWN 160 /* bytes of it in a phrase */

static const char *devices(size_t n)
{
    return n == 1 ? "device" : "devices";
}

/* "16 devices (2 for each of 8 members)" */
static void add_need(struct buf *text, const struct tally *tally)
{
    size_t count = count_of(tally), need = count * tally->n_members;

    buf_addf(text, "needs %zu %s", need, devices(need));
    if (tally->n_members > 1)
        buf_addf(text, " (%zu for each of %zu members)", count, tally->n_members);
}

/* Not cut within a character. */
static size_t shown_bytes(const char *selector)
{
    size_t n = strlen(selector);

    if (n <= SELECTOR_SHOWN)
        return n;
    for (n = SELECTOR_SHOWN; n > 0 && ((unsigned char)selector[n] & 0xc0) == 0x80;)
        n--;
    return n;
}

static void add_selectors(struct buf *text, const struct tally *tally)
{
    const char *selector = n_selectors(tally) ? tally->ask->ask->selectors[0] : NULL;

    if (n_selectors(tally) != 1 || !selector)
        buf_adds(text, "all selectors of the request");
    else
        buf_addf(text, "the selector %.*s%s", (int)shown_bytes(selector), selector,
                 strlen(selector) > SELECTOR_SHOWN ? "..." : "");
}

static void add_scarce(struct gang *gang, struct buf *text, size_t n, const struct scarce *scarce, const char *what)
{
    if (!scarce->key) {
        buf_addf(text, "%zu %s", n, what);
        return;
    }
    buf_addf(text, "%zu %s (%s: asked %s, at most %s left, on %s/%s%s%s)", n, what, scarce->key,
             explain_quantity(&scarce->asked, &gang->work), explain_quantity(&scarce->left, &gang->work), scarce->pool,
             scarce->device, scarce->set ? " of counter set " : "", scarce->set ? scarce->set : "");
}

/* Where the devices are that match and are not free: ": 4 in use, 1 with taint a=b:NoSchedule". with_used: also those
 * that somebody has, or has the counters of. */
static void add_lost(struct gang *gang, struct buf *text, const struct tally *tally, bool with_used)
{
    const char *sep = ": ";

    if (tally->in_use && with_used) {
        buf_adds(text, sep);
        add_scarce(gang, text, tally->in_use, &tally->amount, tally->amount.key ? "with too little left" : "in use");
        sep = ", ";
    }
    for (size_t i = 0; i < tally->n_taints; i++, sep = ", ")
        buf_addf(text, "%s%zu with taint %s", sep, tally->taints[i].n, tally->taints[i].text);
    if (tally->counters && with_used) {
        buf_adds(text, sep);
        add_scarce(gang, text, tally->counters, &tally->counter, "short of shared counters");
        sep = ", ";
    }
    if (tally->capacity) {
        buf_adds(text, sep);
        add_scarce(gang, text, tally->capacity, &tally->amount, "too small");
        sep = ", ";
    }
    if (tally->excluded)
        buf_addf(text, "%s%zu excluded by quota", sep, tally->excluded);
}

static void add_on_one_node(struct buf *text, const struct tally *tally, const struct local *local, const char *state)
{
    buf_addf(text, "needs %zu %s on one node, and no node that admits a member has more than %zu %s", count_of(tally),
             devices(count_of(tally)), local->most, state);
    if (local->most > 0)
        buf_addf(text, " (%s)", local->node);
}

/* The request can never be served: the first reason that holds. */
static bool add_never(struct gang *gang, struct buf *text, const struct tally *tally)
{
    size_t count = count_of(tally), barred = tally->tainted + tally->capacity + tally->excluded;

    if (tally->exist == 0) {
        buf_adds(text, "finds no device of its class");
    } else if (tally->match == 0) {
        buf_addf(text, "finds no match: of the %zu %s of its class none meets ", tally->exist, devices(tally->exist));
        add_selectors(text, tally);
    } else if (tally->ask->all || tally->ask->admin) {
        return false;
    } else if (tally->is_shareable) {
        if (barred < tally->match)
            return false;
        add_need(text, tally);
        buf_addf(text, ", and none of %zu that match can be used", tally->match);
        add_lost(gang, text, tally, false);
    } else if (count * tally->n_members > tally->match) {
        add_need(text, tally);
        buf_addf(text, ", more than the %zu that match in the whole cluster", tally->match);
    } else if (count * tally->n_members > tally->match - barred) {
        add_need(text, tally);
        buf_addf(text, ", and %zu of %zu that match can be used", tally->match - barred, tally->match);
        add_lost(gang, text, tally, false);
    } else if (tally->match_here.node && count > tally->match_here.most) {
        add_on_one_node(text, tally, &tally->match_here, "that match");
    } else if (tally->match_here.places < tally->n_members && tally->match_here.node) {
        add_need(text, tally);
        buf_addf(text, ", and the nodes that admit them have enough for %zu", tally->match_here.places);
    } else {
        return false;
    }
    return true;
}

/* Not enough is free. */
static bool add_waits(struct gang *gang, struct buf *text, const struct tally *tally)
{
    size_t count = count_of(tally);

    if (tally->ask->all) {
        if (tally->free == tally->match)
            return false;
        buf_addf(text, "needs all matching devices of a node, and %zu of %zu are free", tally->free, tally->match);
        add_lost(gang, text, tally, true);
    } else if (tally->is_shareable ? tally->free == 0 : count * tally->n_members > tally->free) {
        add_need(text, tally);
        buf_addf(text, ", and %zu of %zu that match %s free", tally->free, tally->match,
                 tally->match == 1 ? "is" : "are");
        add_lost(gang, text, tally, true);
    } else if (tally->is_shareable) {
        return false;
    } else if (tally->free_here.node && count > tally->free_here.most) {
        add_on_one_node(text, tally, &tally->free_here, "free");
        buf_addf(text, ", though %zu of %zu that match are free in all", tally->free, tally->match);
    } else if (tally->free_here.node && tally->free_here.places < tally->n_members) {
        add_need(text, tally);
        buf_addf(text,
                 ", and the nodes that admit them have enough free ones for %zu, though %zu of %zu that match are free",
                 tally->free_here.places, tally->free, tally->match);
    } else {
        return false;
    }
    return true;
}

const char *explain_problem(struct gang *gang, enum gang_verdict verdict, const struct tally *tally)
{
    bool known;
    BUF text = {0};

    if (verdict == GANG_NEVER || tally->match == 0)
        known = add_never(gang, &text, tally);
    else
        known = !tally->ask->admin && add_waits(gang, &text, tally);
    return known ? arena_strdup(&gang->work, buf_str(&text)) : NULL;
}
