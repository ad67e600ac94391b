#include "queued/clock.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "allocator/base/rng.h"
#include "allocator/base/str.h"

#include "test/support/cmocka.h"

struct note {
    struct clock *clock;
    struct clock_timer *timer;
    struct buf *out;
    char name;
    int again; /* how often it sets itself again */
    int64_t again_ms;
};

static void note_fired(void *ctx)
{
    struct note *note = ctx;

    buf_addf(note->out, "%c@%lld ", note->name, (long long)clock_now_ms(note->clock));
    if (note->again-- > 0)
        clock_timer_set(note->timer, clock_now_ms(note->clock) + note->again_ms);
}

static void note_init(struct note *note, struct clock *clock, struct buf *out, char name)
{
    *note = (struct note){.clock = clock, .out = out, .name = name};
    note->timer = clock_timer_new(clock, note_fired, note);
}

static void settle_noted(void *ctx)
{
    buf_adds(ctx, "| ");
}

static void test_clock__timers_fire_by_time_then_by_order_of_setting(void **state)
{
    struct clock *clock = clock_virtual_new(1000);
    BUF out = {0};
    struct note notes[5];

    (void)state;
    for (int i = 0; i < 5; i++)
        note_init(&notes[i], clock, &out, (char)('a' + i));
    clock_timer_set(notes[0].timer, 1300);
    clock_timer_set(notes[1].timer, 1100);
    clock_timer_set(notes[2].timer, 1100);
    clock_timer_set(notes[3].timer, 1050);
    clock_timer_set(notes[4].timer, 500);  /* past: now */
    clock_timer_set(notes[3].timer, 1300); /* moved behind a */
    assert_int_equal(clock_next_ms(clock), 1000);
    clock_advance(clock, 1200, NULL, NULL);
    assert_string_equal(buf_str(&out), "e@1000 b@1100 c@1100 ");
    assert_int_equal(clock_now_ms(clock), 1200);
    clock_timer_cancel(notes[0].timer);
    clock_advance(clock, 2000, NULL, NULL);
    assert_string_equal(buf_str(&out), "e@1000 b@1100 c@1100 d@1300 ");
    assert_int_equal(clock_next_ms(clock), INT64_MAX);
    for (int i = 0; i < 5; i++)
        clock_timer_free(notes[i].timer);
    clock_free(clock);
}

static void test_clock__settle_runs_after_each_instant(void **state)
{
    struct clock *clock = clock_virtual_new(0);
    BUF out = {0};
    struct note a, b;

    (void)state;
    note_init(&a, clock, &out, 'a');
    note_init(&b, clock, &out, 'b');
    a.again = 1; /* at the same instant once more: behind b */
    clock_timer_set(a.timer, 10);
    clock_timer_set(b.timer, 10);
    clock_advance(clock, 20, settle_noted, &out);
    assert_string_equal(buf_str(&out), "| a@10 b@10 a@10 | | ");
    clock_timer_free(a.timer);
    clock_timer_free(b.timer);
    clock_free(clock);
}

struct many {
    struct clock *clock;
    struct clock_timer *timers[64];
    int64_t due[64]; /* -1: not set */
    size_t fired;
    int64_t last_ms;
};
struct one {
    struct many *many;
    size_t i;
};

static void one_fired(void *ctx)
{
    struct one *one = ctx;
    struct many *many = one->many;

    assert_int_equal(many->due[one->i], clock_now_ms(many->clock));
    assert_true(many->last_ms <= clock_now_ms(many->clock));
    many->last_ms = clock_now_ms(many->clock);
    many->due[one->i] = -1;
    many->fired++;
}

static void test_clock__random_settings_fire_once_and_in_time(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng rng = {seed};
        struct many many = {.clock = clock_virtual_new(0)};
        struct one ones[64];

        for (size_t i = 0; i < 64; i++) {
            ones[i] = (struct one){&many, i};
            many.timers[i] = clock_timer_new(many.clock, one_fired, &ones[i]);
            many.due[i] = -1;
        }
        for (int step = 0; step < 300; step++) {
            size_t i = rng_below(&rng, 64);
            int64_t at_ms = clock_now_ms(many.clock) + (int64_t)rng_below(&rng, 50);

            if (rng_below(&rng, 4) == 0) {
                clock_timer_cancel(many.timers[i]);
                many.due[i] = -1;
            } else {
                clock_timer_set(many.timers[i], at_ms);
                many.due[i] = at_ms;
            }
            if (rng_below(&rng, 8) == 0)
                clock_advance(many.clock, clock_now_ms(many.clock) + (int64_t)rng_below(&rng, 20), NULL, NULL);
        }
        clock_advance(many.clock, clock_now_ms(many.clock) + 100, NULL, NULL);
        for (size_t i = 0; i < 64; i++) {
            assert_int_equal(many.due[i], -1);
            clock_timer_free(many.timers[i]);
        }
        clock_free(many.clock);
    }
}

static void test_clock__real_timers_keep_the_same_order(void **state)
{
    struct event_base *base = event_base_new();
    struct clock *clock = clock_real_new(base);
    BUF out = {0};
    struct note notes[4];
    int64_t start_ms = clock_now_ms(clock);

    (void)state;
    assert_false(clock_is_virtual(clock));
    assert_true(start_ms / 1000 >= time(NULL) - 1);
    for (int i = 0; i < 4; i++)
        note_init(&notes[i], clock, &out, (char)('a' + i));
    clock_timer_set(notes[0].timer, start_ms + 20);
    clock_timer_set(notes[1].timer, start_ms + 5);
    clock_timer_set(notes[2].timer, start_ms + 5);
    clock_timer_set(notes[3].timer, start_ms - 5);
    assert_int_equal(event_base_dispatch(base), 1); /* ends when no timer is left */
    assert_int_equal(buf_str(&out)[0], 'd');
    assert_non_null(strstr(strstr(strstr(buf_str(&out), "b@"), "c@"), "a@"));
    assert_true(clock_now_ms(clock) >= start_ms + 20);
    assert_true(clock_now_ms(clock) < start_ms + 10000);
    for (int i = 0; i < 4; i++)
        clock_timer_free(notes[i].timer);
    clock_free(clock);
    event_base_free(base);
}

static void test_clock__a_real_timer_set_for_now_lets_the_loop_turn(void **state)
{
    struct event_base *base = event_base_new();
    struct clock *clock = clock_real_new(base);
    BUF out = {0};
    struct note note;

    (void)state;
    note_init(&note, clock, &out, 'x');
    note.again = 1000000; /* a chain of "now" must not hold the loop */
    clock_timer_set(note.timer, clock_now_ms(clock));
    for (int i = 0; i < 3; i++)
        event_base_loop(base, EVLOOP_ONCE);
    assert_int_equal(1000000 - note.again, 3);
    clock_timer_free(note.timer);
    clock_free(clock);
    event_base_free(base);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock__timers_fire_by_time_then_by_order_of_setting),
        cmocka_unit_test(test_clock__settle_runs_after_each_instant),
        cmocka_unit_test(test_clock__random_settings_fire_once_and_in_time),
        cmocka_unit_test(test_clock__real_timers_keep_the_same_order),
        cmocka_unit_test(test_clock__a_real_timer_set_for_now_lets_the_loop_turn),
    };

    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
