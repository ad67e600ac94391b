#include "queued/admission/quota.h"

#include "allocator/base/checked.h"

#include "allocator/base/banned.h"

static int64_t sum(int64_t a, int64_t b)
{
    int64_t out;

    if (checked_add(a, b, &out))
        return out;
    return a > 0 ? INT64_MAX : INT64_MIN;
}

static int64_t difference(int64_t a, int64_t b)
{
    int64_t out;

    if (checked_sub(a, b, &out))
        return out;
    return a > b ? INT64_MAX : INT64_MIN;
}

static int64_t at_least_zero(int64_t a)
{
    return a > 0 ? a : 0;
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static size_t cell(const struct tree *tree, size_t node, size_t resource)
{
    return node * tree->n_resources + resource;
}

void quota_init(struct tree *tree)
{
    for (size_t k = 0; k < tree->n_nodes; k++)
        for (size_t r = 0; r < tree->n_resources; r++) {
            size_t node = tree->bottom_up[k], at = cell(tree, node, r);
            const struct plan_quota *quota = tree->quota[at];

            /* its children, which came before it, have added what they lend already */
            tree->subtree[at] = sum(tree->subtree[at], quota ? quota->nominal : 0);
            if (quota && quota->lending != PLAN_UNLIMITED)
                tree->local[at] = at_least_zero(difference(tree->subtree[at], quota->lending));
            if (node != tree->root) {
                size_t above = cell(tree, tree->parent[node], r);

                tree->subtree[above] = sum(tree->subtree[above], difference(tree->subtree[at], tree->local[at]));
            }
        }
}

void quota_charge(struct tree *tree, size_t queue, const int64_t *charges)
{
    for (size_t r = 0; r < tree->n_resources; r++) {
        int64_t amount = charges[r];

        for (size_t node = queue; node != PLAN_ROOT && amount > 0; node = tree->parent[node]) {
            size_t at = cell(tree, node, r);
            int64_t covered = at_least_zero(difference(tree->local[at], tree->usage[at]));

            tree->usage[at] = sum(tree->usage[at], amount);
            amount = at_least_zero(difference(amount, covered));
        }
    }
}

/* The two questions differ only in whether usage counts. */
static int64_t room(const struct tree *tree, size_t node, size_t r, bool is_empty)
{
    size_t at = cell(tree, node, r);
    const struct plan_quota *quota = tree->quota[at];
    int64_t usage = is_empty ? 0 : tree->usage[at], above;

    if (node == tree->root)
        return difference(tree->subtree[at], usage);
    above = room(tree, tree->parent[node], r, is_empty);
    if (quota && quota->borrowing != PLAN_UNLIMITED) {
        int64_t lent = difference(tree->subtree[at], tree->local[at]);
        int64_t used_above = at_least_zero(difference(usage, tree->local[at]));

        above = lesser(above, sum(difference(lent, used_above), quota->borrowing));
    }
    return sum(at_least_zero(difference(tree->local[at], usage)), above);
}

int64_t quota_available(const struct tree *tree, size_t queue, size_t resource)
{
    return tree->is_limited[resource] ? room(tree, queue, resource, false) : PLAN_UNLIMITED;
}

int64_t quota_potential(const struct tree *tree, size_t queue, size_t resource)
{
    return tree->is_limited[resource] ? room(tree, queue, resource, true) : PLAN_UNLIMITED;
}

int64_t quota_borrowed(const struct tree *tree, size_t queue, size_t resource)
{
    size_t at = cell(tree, queue, resource);

    return tree->is_limited[resource] ? at_least_zero(difference(tree->held[at], tree->subtree[at])) : 0;
}
