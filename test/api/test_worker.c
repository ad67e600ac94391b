#include "test/support/cmocka.h"

#include <pthread.h>

#include <event2/event.h>

#include "queued/worker.h"

#include "allocator/base/banned.h"

enum { N = 200 };

struct trail {
    struct worker *worker;
    pthread_t loop;
    int order[N];
    int n, again;
};

struct errand {
    struct trail *trail;
    int number;
    bool was_off_loop;
};

static void work(void *arg)
{
    struct errand *errand = arg;

    errand->was_off_loop = !pthread_equal(pthread_self(), errand->trail->loop);
}

static void done(void *arg)
{
    struct errand *errand = arg;
    struct trail *trail = errand->trail;

    assert_true(pthread_equal(pthread_self(), trail->loop));
    trail->order[trail->n++] = errand->number;
}

static void done_again(void *arg)
{
    struct errand *errand = arg;
    struct trail *trail = errand->trail;

    trail->n++;
    if (trail->again-- > 0)
        worker_run(trail->worker, work, done_again, errand);
}

static struct trail start(struct event_base **base)
{
    struct trail trail = {.loop = pthread_self()};
    struct error err;

    *base = event_base_new();
    assert_int_equal(worker_new(*base, &trail.worker, &err), 0);
    return trail;
}

static void test_worker__results_come_back_on_the_loop_in_order(void **state)
{
    struct event_base *base;
    struct trail trail = start(&base);
    struct errand errands[N];

    (void)state;
    for (int i = 0; i < N; i++) {
        errands[i] = (struct errand){&trail, i, false};
        worker_run(trail.worker, work, done, &errands[i]);
        assert_int_equal(trail.n, 0); /* never from inside the call */
    }
    assert_false(worker_is_idle(trail.worker));
    while (trail.n < N)
        event_base_loop(base, EVLOOP_ONCE);
    assert_true(worker_is_idle(trail.worker));
    for (int i = 0; i < N; i++) {
        assert_int_equal(trail.order[i], i);
        assert_true(errands[i].was_off_loop);
    }
    worker_free(trail.worker);
    event_base_free(base);
}

static void test_worker__free_finishes_everything(void **state)
{
    struct event_base *base;
    struct trail trail = start(&base);
    struct errand errands[N], last = {&trail, 0, false};

    (void)state;
    for (int i = 0; i < N; i++) {
        errands[i] = (struct errand){&trail, i, false};
        worker_run(trail.worker, work, done, &errands[i]);
    }
    worker_free(trail.worker);
    assert_int_equal(trail.n, N);
    event_base_free(base);

    trail = start(&base);
    trail.again = 3;
    worker_run(trail.worker, work, done_again, &last);
    worker_free(trail.worker);
    assert_int_equal(trail.n, 4);
    event_base_free(base);
}

static void test_worker__free_takes_null(void **state)
{
    (void)state;
    worker_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker__results_come_back_on_the_loop_in_order),
        cmocka_unit_test(test_worker__free_finishes_everything),
        cmocka_unit_test(test_worker__free_takes_null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
