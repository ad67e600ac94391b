/* The order in which jobs are looked at, as text: "a1 b1 a2". After each one its queue is charged one unit of ten. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "allocator/base/str.h"
#include "queued/admission/order.h"

struct queue_row {
    const char *name, *parent;
    int64_t weight, runs;
};
struct job_row {
    const char *queue;
    int64_t priority, submitted_ms;
};

static const struct order_case {
    const char *name;
    struct queue_row queues[6];
    struct job_row jobs[8]; /* named by queue and place: the n-th of queue a is "an" */
    const char *want;
} cases[] = {
    {"in a queue first come first served", {{"a", NULL, 1, 0}}, {{"a", 0, 30}, {"a", 0, 10}, {"a", 0, 20}}, "a2 a3 a1"},
    {"priority before submission", {{"a", NULL, 1, 0}}, {{"a", 0, 10}, {"a", 5, 30}, {"a", 5, 20}}, "a3 a2 a1"},
    {"at one moment the lower id first", {{"a", NULL, 1, 0}}, {{"a", 0, 10}, {"a", 0, 10}}, "a1 a2"},
    {"equal queues take turns, by name",
     {{"b", NULL, 1, 0}, {"a", NULL, 1, 0}},
     {{"b", 0, 1}, {"b", 0, 2}, {"a", 0, 3}, {"a", 0, 4}},
     "a1 b1 a2 b2"},
    {"priority does not count between queues",
     {{"a", NULL, 1, 0}, {"b", NULL, 1, 0}},
     {{"a", 0, 1}, {"b", 100, 2}},
     "a1 b1"},
    {"who runs less goes first",
     {{"a", NULL, 1, 2}, {"b", NULL, 1, 0}},
     {{"a", 0, 1}, {"b", 0, 2}, {"b", 0, 3}, {"b", 0, 4}},
     "b1 b2 a1 b3"},
    {"twice the weight, twice the turns",
     {{"a", NULL, 1, 0}, {"b", NULL, 2, 0}},
     {{"a", 0, 1}, {"a", 0, 2}, {"b", 0, 1}, {"b", 0, 2}, {"b", 0, 3}},
     "a1 b1 b2 a2 b3"},
    {"the walk goes down level by level",
     {{"p", NULL, 1, 0}, {"a", "p", 1, 0}, {"b", "p", 1, 0}, {"c", NULL, 1, 0}},
     {{"a", 0, 1}, {"b", 0, 1}, {"c", 0, 1}, {"c", 0, 2}},
     "c1 a1 c2 b1"},
    {"jobs left in a queue that got children go before them",
     {{"p", NULL, 1, 0}, {"a", "p", 1, 0}},
     {{"a", 9, 1}, {"p", 0, 2}},
     "p1 a1"},
    {"nobody", {{"a", NULL, 1, 0}}, {{NULL, 0, 0}}, ""},
};

struct built {
    struct plan_queue queues[6];
    struct plan_running running[6];
    struct plan_job jobs[8];
    struct plan_resource resource;
    struct plan_input input;
};

static size_t find(const struct order_case *c, const char *name)
{
    size_t i = 0;

    while (strcmp(c->queues[i].name, name) != 0)
        i++;
    return i;
}

static void build(const struct order_case *c, struct built *b)
{
    *b = (struct built){.resource = {.name = "r", .kind = RESOURCE_PODS, .total = 10}};
    b->input = (struct plan_input){
        .resources = &b->resource, .n_resources = 1, .queues = b->queues, .running = b->running, .pending = b->jobs};
    for (size_t i = 0; i < ARRAY_SIZE(c->queues) && c->queues[i].name; i++) {
        b->queues[i] = (struct plan_queue){.name = c->queues[i].name,
                                           .parent = c->queues[i].parent ? find(c, c->queues[i].parent) : PLAN_ROOT,
                                           .weight = c->queues[i].weight};
        b->running[i] = (struct plan_running){(int64_t)i, i, &c->queues[i].runs};
        b->input.n_queues = b->input.n_running = i + 1;
    }
    for (size_t i = 0; i < ARRAY_SIZE(c->jobs) && c->jobs[i].queue; i++) {
        b->jobs[i] = (struct plan_job){.id = (int64_t)i + 1,
                                       .queue = find(c, c->jobs[i].queue),
                                       .priority = c->jobs[i].priority,
                                       .submitted_ms = c->jobs[i].submitted_ms};
        b->input.n_pending = i + 1;
    }
}

static size_t place_in_queue(const struct order_case *c, size_t job)
{
    size_t n = 1;

    for (size_t i = 0; i < job; i++)
        n += strcmp(c->jobs[i].queue, c->jobs[job].queue) == 0;
    return n;
}

static void test_order__case(void **state)
{
    static const int64_t one = 1;
    const struct order_case *c = *state;
    struct arena arena = {0};
    struct built b;
    struct tree tree;
    struct order order;
    size_t job;
    BUF text = {0};

    build(c, &b);
    tree_init(&tree, &b.input, &arena);
    order_init(&order, &tree, &arena);
    while ((job = order_next(&order)) != PLAN_ROOT) {
        buf_addf(&text, "%s%s%zu", text.len ? " " : "", c->jobs[job].queue, place_in_queue(c, job));
        tree_charge(&tree, b.jobs[job].queue, &one);
    }
    arena_release(&arena);
    assert_string_equal(buf_str(&text), c->want);
}

int main(void)
{
    return RUN_TABLE(test_order__case, cases);
}
