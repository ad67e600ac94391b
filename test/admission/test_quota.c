/* Quota trees as rows: queues, what runs, and what a queue may then use more, and could use at most. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "queued/admission/quota.h"

#define ANY  PLAN_UNLIMITED
#define NONE (-1)

struct queue_row {
    const char *name, *parent;
    int64_t nominal, borrowing, lending; /* nominal NONE: no quota */
    int64_t runs;                        /* charged to this queue */
};

/* name "nominal borrowing/lending" of one resource */
static const struct quota_case {
    const char *name;
    struct queue_row queues[6];
    struct {
        const char *queue;
        int64_t available, potential, borrowed;
    } want[4];
} cases[] = {
    {"a queue alone has its nominal quota", {{"a", NULL, 8, ANY, ANY, 3}}, {{"a", 5, 8, 0}}},
    {"unused quota is lent to a sibling",
     {{"a", NULL, 8, ANY, ANY, 0}, {"b", NULL, 4, ANY, ANY, 6}},
     {{"a", 6, 12, 0}, {"b", 6, 12, 2}}},
    {"a borrowing limit bounds what is taken beyond the own",
     {{"a", NULL, 8, ANY, ANY, 0}, {"b", NULL, 4, 2, ANY, 5}},
     {{"b", 1, 6, 1}, {"a", 7, 12, 0}}},
    {"borrowing limit zero: the own and no more",
     {{"a", NULL, 8, 0, ANY, 0}, {"b", NULL, 4, ANY, ANY, 0}},
     {{"a", 8, 8, 0}, {"b", 12, 12, 0}}},
    {"a lending limit keeps the rest at home",
     {{"a", NULL, 8, ANY, 3, 0}, {"b", NULL, 4, ANY, ANY, 0}},
     {{"a", 12, 12, 0}, {"b", 7, 7, 0}}},
    {"what is kept at home is used before what is lent",
     {{"a", NULL, 8, ANY, 3, 5}, {"b", NULL, 4, ANY, ANY, 0}},
     {{"a", 7, 12, 0}, {"b", 7, 7, 0}}},
    {"lent quota that the owner uses is missed by the borrower",
     {{"a", NULL, 8, ANY, 3, 7}, {"b", NULL, 4, ANY, ANY, 0}},
     {{"b", 5, 7, 0}}},
    {"over quota after it was lowered: negative, not wrapped", {{"a", NULL, 2, 0, ANY, 6}}, {{"a", -4, 2, 4}}},
    {"a queue without quota borrows without limit",
     {{"a", NULL, 8, ANY, ANY, 3}, {"b", NULL, NONE, ANY, ANY, 0}},
     {{"b", 5, 8, 0}}},
    {"a resource that no queue has a quota for is unlimited",
     {{"a", NULL, NONE, ANY, ANY, 300}},
     {{"a", PLAN_UNLIMITED, PLAN_UNLIMITED, 0}}},
    {"a parent's own quota is a pool for its children",
     {{"p", NULL, 4, ANY, ANY, 0}, {"a", "p", 2, ANY, ANY, 3}, {"b", "p", 2, ANY, ANY, 0}},
     {{"a", 5, 8, 1}, {"b", 5, 8, 0}}},
    {"a parent's borrowing limit holds for its whole subtree",
     {{"p", NULL, 0, 1, ANY, 0}, {"a", "p", 2, ANY, ANY, 2}, {"b", "p", 2, ANY, ANY, 2}, {"c", NULL, 9, ANY, ANY, 0}},
     {{"a", 1, 5, 0}, {"b", 1, 5, 0}, {"c", 9, 13, 0}}},
    {"a parent's lending limit holds for its whole subtree",
     {{"p", NULL, 0, ANY, 1, 0}, {"a", "p", 4, ANY, ANY, 0}, {"b", NULL, 1, ANY, ANY, 0}},
     {{"b", 2, 2, 0}, {"a", 5, 5, 0}}},
    {"amounts saturate",
     {{"a", NULL, INT64_MAX - 1, ANY, ANY, 5}, {"b", NULL, INT64_MAX - 1, ANY, ANY, 0}},
     {{"b", INT64_MAX - 5, INT64_MAX, 0}}},
};

/* The rows as a plan's input with one resource. */
struct built {
    struct plan_queue queues[6];
    struct plan_quota quotas[6];
    struct plan_running running[6];
    struct plan_resource resource;
    struct plan_input input;
};

static size_t find(const struct quota_case *c, const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(c->queues) && c->queues[i].name; i++)
        if (strcmp(c->queues[i].name, name) == 0)
            return i;
    fail_msg("no queue %s", name);
    return 0;
}

static void build(const struct quota_case *c, struct built *b)
{
    *b = (struct built){.resource = {.name = "r", .kind = RESOURCE_PODS}};
    b->input =
        (struct plan_input){.resources = &b->resource, .n_resources = 1, .queues = b->queues, .running = b->running};
    for (size_t i = 0; i < ARRAY_SIZE(c->queues) && c->queues[i].name; i++) {
        const struct queue_row *row = &c->queues[i];

        b->quotas[i] = (struct plan_quota){0, row->nominal, row->borrowing, row->lending};
        b->queues[i] = (struct plan_queue){.name = row->name,
                                           .parent = row->parent ? find(c, row->parent) : PLAN_ROOT,
                                           .weight = 1,
                                           .quotas = &b->quotas[i],
                                           .n_quotas = row->nominal != NONE};
        b->running[i] = (struct plan_running){(int64_t)i, i, &row->runs};
        b->input.n_queues = b->input.n_running = i + 1;
    }
}

static void test_quota__case(void **state)
{
    const struct quota_case *c = *state;
    struct arena arena = {0};
    struct built b;
    struct tree tree;

    build(c, &b);
    tree_init(&tree, &b.input, &arena);
    for (size_t i = 0; i < ARRAY_SIZE(c->want) && c->want[i].queue; i++) {
        size_t queue = find(c, c->want[i].queue);

        assert_int_equal(quota_available(&tree, queue, 0), c->want[i].available);
        assert_int_equal(quota_potential(&tree, queue, 0), c->want[i].potential);
        assert_int_equal(quota_borrowed(&tree, queue, 0), c->want[i].borrowed);
    }
    arena_release(&arena);
}

int main(void)
{
    return RUN_TABLE(test_quota__case, cases);
}
