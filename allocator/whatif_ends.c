/* Whose end would make the gang fit. People know jobs, so a job ends with all its claims; each is thought away alone,
 * and when none is enough, as few together as can be found in a few trials. */
#include "allocator/whatif.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/banned.h"

#define HOLD_TRIALS 40
#define MAX_ALONE   16 /* holders that are tried one by one */
#define SET_NAMED   6

/* ---- holders ---- */

/* A row of a request's "holders". */
struct listed {
    const char *job, *claim; /* "": it is the other */
    size_t devices;
};

static size_t count_listed(const struct trial *t)
{
    const json_t *group, *request;
    size_t n = 0, g, r;

    json_array_foreach (t->groups, g, group)
        json_array_foreach (json_object_get(group, "requests"), r, request)
            n += json_array_size(json_object_get(request, "holders"));
    return n;
}

/* Read once: there may be thousands of holders to look up. */
static struct listed *read_listed(const struct trial *t, size_t *out_n)
{
    struct listed *rows = arena_array(&t->gang->work, struct listed, count_listed(t));
    const json_t *group, *request, *one;
    size_t n = 0, g, r, i;

    json_array_foreach (t->groups, g, group)
        json_array_foreach (json_object_get(group, "requests"), r, request)
            json_array_foreach (json_object_get(request, "holders"), i, one)
                rows[n++] = (struct listed){explain_text(one, "job"), explain_text(one, "claim"),
                                            (size_t)explain_number(one, "devices")};
    *out_n = n;
    return rows;
}

/* Whoever has the most of what the gang could use comes first: those are named when several would do. */
static size_t devices_listed(const struct listed *rows, size_t n, const struct holder *holder)
{
    size_t most = 0;

    for (size_t i = 0; i < n; i++)
        if (strcmp(holder->job ? rows[i].job : rows[i].claim, holder->job ? holder->job : holder->name) == 0 &&
            rows[i].devices > most)
            most = rows[i].devices;
    return most;
}

struct ranked {
    const struct holder *holder;
    size_t devices, order;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->devices != y->devices)
        return x->devices < y->devices ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

static struct ranked *rank_holders(struct trial *t, size_t *out_n)
{
    struct holder_list list = explain_holders(t->gang->snapshot, &t->gang->work);
    struct ranked *ranked = arena_array(&t->gang->work, struct ranked, list.n + 1);
    size_t n_rows;
    const struct listed *rows = read_listed(t, &n_rows);

    for (size_t i = 0; i < list.n; i++)
        ranked[i] = (struct ranked){&list.items[i], devices_listed(rows, n_rows, &list.items[i]), i};
    qsort(ranked, list.n, sizeof(*ranked), compare_ranked);
    *out_n = list.n;
    return ranked;
}

/* The nodes that would be used if these had ended, or NULL. */
static json_t *fits_without(struct trial *t, const struct ranked *ended, size_t n, const struct ranked *more,
                            size_t n_more)
{
    struct ledger *ledger = ledger_new(t->gang->snapshot);
    json_t *nodes;

    for (size_t i = 0; i < n + n_more; i++) {
        const struct holder *holder = i < n ? ended[i].holder : more[i - n].holder;

        for (size_t c = 0; c < holder->n_claims; c++)
            ledger_give_back(ledger, holder->claims[c]);
    }
    nodes = whatif_fits(t, NULL, ledger);
    ledger_free(ledger);
    return nodes;
}

static size_t n_held(const struct ranked *set, size_t n)
{
    size_t devices = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < set[i].holder->n_claims; c++)
            devices += set[i].holder->claims[c]->n_held;
    return devices;
}

/* "job 1 (train)", "jobs 1 (train) and 4 (ring)", "job 1 (train) and claim a/b" */
static void add_set(struct buf *out, const struct ranked *set, size_t n)
{
    size_t shown = n > SET_NAMED ? SET_NAMED : n;
    bool all_jobs = true;

    for (size_t i = 0; i < n; i++)
        all_jobs = all_jobs && set[i].holder->job;
    buf_adds(out, all_jobs && n > 1 ? "jobs " : "");
    for (size_t i = 0; i < shown; i++) {
        explain_join(out, i, n);
        buf_adds(out, set[i].holder->text + (all_jobs && n > 1 ? strlen("job ") : 0));
    }
    if (n > shown)
        buf_addf(out, " and %zu more", n - shown);
}

static void report_set(struct trial *t, const struct ranked *set, size_t n, json_t *nodes)
{
    size_t devices = n_held(set, n);
    json_t *block, *jobs = json_array();
    BUF name = {0};

    add_set(&name, set, n);
    block = whatif_report(t, "devices", buf_str(&name),
                          arena_printf(t->gang->arena, "%s %zu %s", n == 1 ? "holds" : "hold", devices,
                                       devices == 1 ? "device" : "devices"),
                          nodes, arena_printf(t->gang->arena, "when %s %s", buf_str(&name), n == 1 ? "ends" : "end"));
    for (size_t i = 0; i < n; i++)
        if (set[i].holder->job)
            json_array_append_new(jobs, json_string(set[i].holder->job));
    json_object_set_new(block, "jobs", jobs);
}

/* How many of the list are enough: seldom many, and the more end, the more nodes have to be looked at. NULL: not all.
 */
static json_t *find_enough(struct trial *t, const struct ranked *ranked, size_t n, size_t *out_n, size_t *out_not)
{
    *out_not = 0;
    for (*out_n = MAX_ALONE; *out_n < n; *out_n *= 2) {
        json_t *nodes = fits_without(t, NULL, 0, ranked, *out_n);

        if (nodes)
            return nodes;
        *out_not = *out_n;
    }
    *out_n = n;
    return fits_without(t, NULL, 0, ranked, n);
}

/* A smallest-by-inclusion set of holders: the shortest beginning of the list that is enough has an indispensable last
 * one; keep it and go on with what is before it. Bisecting finds each in a few trials. Source: the idea of QuickXplain
 * (Junker, AAAI 2004). */
static void try_sets(struct trial *t, const struct ranked *ranked, size_t n)
{
    struct ranked *set = arena_array(&t->gang->work, struct ranked, n + 1);
    size_t n_set = 0, end, not_enough;
    json_t *nodes = find_enough(t, ranked, n, &end, &not_enough);

    while (nodes && t->n_trials < t->max_trials) {
        size_t low = n_set ? 0 : not_enough, high = end; /* `high` more are enough, `low` are not, or it is not known */
        json_t *fewer = n_set ? fits_without(t, set, n_set, NULL, 0) : NULL;

        if (fewer) {
            json_decref(nodes);
            report_set(t, set, n_set, fewer);
            return;
        }
        while (high - low > 1) {
            size_t middle = low + (high - low) / 2;

            fewer = fits_without(t, set, n_set, ranked, middle);
            low = fewer ? low : middle;
            high = fewer ? middle : high;
            if (fewer) {
                json_decref(nodes);
                nodes = fewer;
            }
        }
        if (high == 0)
            break;
        set[n_set++] = ranked[high - 1];
        end = high - 1;
    }
    json_decref(nodes);
}

void whatif_holders(struct trial *t)
{
    size_t n, n_alone = 0;
    struct ranked *ranked = rank_holders(t, &n);

    t->n_trials = 0;
    t->max_trials = HOLD_TRIALS;
    for (size_t i = 0; i < n && i < MAX_ALONE; i++) {
        json_t *nodes = fits_without(t, &ranked[i], 1, NULL, 0);

        if (!nodes)
            continue;
        n_alone++;
        report_set(t, &ranked[i], 1, nodes);
    }
    if (n_alone == 0 && n > 1)
        try_sets(t, ranked, n);
}
