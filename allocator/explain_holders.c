/* Who holds devices: people know jobs, so the claims of a job are one holder. */
#include "allocator/explain.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

struct collected {
    const struct cluster_claim **claims;
    size_t n, cap;
};

static void collect(void *ctx, const struct cluster_claim *claim)
{
    struct collected *all = ctx;

    if (claim->n_held == 0)
        return;
    mem_grow(all->claims, all->n, all->cap);
    all->claims[all->n++] = claim;
}

/* Ids are numbers: by length, then by digits. */
static int compare_jobs(const char *a, const char *b)
{
    size_t n_a = strlen(a), n_b = strlen(b);

    return n_a != n_b ? (n_a > n_b) - (n_a < n_b) : strcmp(a, b);
}

static int compare_claims(const void *a, const void *b)
{
    const struct cluster_claim *x = *(const struct cluster_claim *const *)a;
    const struct cluster_claim *y = *(const struct cluster_claim *const *)b;
    int order = (x->job == NULL) - (y->job == NULL);

    if (order == 0 && x->job && y->job)
        order = compare_jobs(x->job, y->job);
    if (order == 0)
        order = strcmp(x->ns ? x->ns : "", y->ns ? y->ns : "");
    return order ? order : strcmp(x->name, y->name);
}

/* Objects of a job are named NAME-ID-ATTEMPT-...; NULL when this one is not. */
static const char *job_name(const struct cluster_claim *claim, struct arena *arena)
{
    size_t n = strlen(claim->job);

    for (const char *at = strchr(claim->name, '-'); at; at = strchr(at + 1, '-')) {
        const char *attempt = at + 1 + n;
        size_t digits;

        if (at == claim->name || strncmp(at + 1, claim->job, n) != 0 || *attempt != '-')
            continue;
        digits = strspn(attempt + 1, "0123456789");
        if (digits > 0 && attempt[1 + digits] == '-')
            return arena_printf(arena, "%.*s", (int)(at - claim->name), claim->name);
    }
    return NULL;
}

static void name_holder(struct holder *holder, struct arena *arena)
{
    const struct cluster_claim *first = holder->claims[0];

    holder->job = first->job;
    if (!first->job) {
        holder->name = arena_printf(arena, "%s/%s", first->ns ? first->ns : "", first->name);
        holder->text = arena_printf(arena, "claim %s", holder->name);
        return;
    }
    holder->name = job_name(first, arena);
    holder->text = holder->name ? arena_printf(arena, "job %s (%s)", first->job, holder->name)
                                : arena_printf(arena, "job %s", first->job);
}

struct holder_list explain_holders(const struct snapshot *snapshot, struct arena *arena)
{
    struct collected all = {0};
    struct holder_list out = {0};
    const struct cluster_claim **kept;

    snapshot_each_claim(snapshot, collect, &all);
    if (all.n == 0)
        return out;
    qsort(all.claims, all.n, sizeof(const struct cluster_claim *), compare_claims);
    kept = arena_array(arena, const struct cluster_claim *, all.n);
    out.items = arena_array(arena, struct holder, all.n);
    for (size_t i = 0; i < all.n; i++) {
        struct holder *last = out.n ? &out.items[out.n - 1] : NULL;

        kept[i] = all.claims[i];
        if (!last || !kept[i]->job || !last->claims[0]->job || strcmp(kept[i]->job, last->claims[0]->job) != 0) {
            last = &out.items[out.n++];
            last->claims = &kept[i];
        }
        last->n_claims++;
    }
    for (size_t i = 0; i < out.n; i++)
        name_holder(&out.items[i], arena);
    free(all.claims);
    return out;
}
