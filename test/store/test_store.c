#include "test/support/cmocka.h"

#include <string.h>
#include <sys/stat.h>

#include "allocator/base/str.h"
#include "store/rows.h"
#include "store/store.h"
#include "test/store/scratch.h"

struct fixture {
    struct scratch scratch;
    struct store *store;
};

static int setup(void **state)
{
    struct fixture *f = mem_new(struct fixture);

    scratch_init(&f->scratch);
    assert_int_equal(store_open(f->scratch.path, &f->store, NULL), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    store_close(f->store);
    scratch_release(&f->scratch);
    free(f);
    return 0;
}

static void reopen(struct fixture *f)
{
    store_close(f->store);
    f->store = NULL;
    assert_int_equal(store_open(f->scratch.path, &f->store, NULL), 0);
}

static struct job_row a_job(const char *name)
{
    return (struct job_row){.name = name,
                            .ns = "default",
                            .queue = "vision",
                            .user = "ada",
                            .spec = "{}",
                            .submitted_ms = 1000,
                            .status = {.state = "Pending", .reason = "", .retries_left = 2, .exit_code = -1}};
}

struct seen {
    size_t n;
    int64_t id;
    char state[16], ending[16], reason[32];
    int64_t exit_code;
};

static void see_job(void *ctx, const struct job_row *row)
{
    struct seen *seen = ctx;

    seen->n++;
    seen->id = row->id;
    seen->exit_code = row->status.exit_code;
    snprintf(seen->state, sizeof(seen->state), "%s", row->status.state);
    snprintf(seen->ending, sizeof(seen->ending), "%s", row->status.ending ? row->status.ending : "-");
    snprintf(seen->reason, sizeof(seen->reason), "%s", row->status.reason);
}

static struct seen jobs_of(struct store *store)
{
    struct seen seen = {0};

    assert_int_equal(store_jobs_each(store, see_job, &seen, NULL), 0);
    return seen;
}

static void test_store__a_committed_job_survives(void **state)
{
    struct fixture *f = *state;
    struct job_row row = a_job("train");
    int64_t id = store_job_insert(f->store, &row);
    struct seen seen;

    row.status.state = "Held";
    row.status.ending = "Cancelled";
    row.status.reason = "because";
    row.status.exit_code = 3;
    store_job_save(f->store, id, "Pending", &row.status);
    assert_true(store_is_dirty(f->store));
    assert_int_equal(store_commit(f->store, NULL), 0);
    assert_false(store_is_dirty(f->store));
    reopen(f);
    seen = jobs_of(f->store);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.id, id);
    assert_string_equal(seen.state, "Held");
    assert_string_equal(seen.ending, "Cancelled");
    assert_string_equal(seen.reason, "because");
    assert_int_equal(seen.exit_code, 3);
}

static void test_store__what_is_not_committed_is_gone(void **state)
{
    struct fixture *f = *state;
    struct job_row row = a_job("train");

    store_job_insert(f->store, &row);
    store_rollback(f->store);
    assert_int_equal(jobs_of(f->store).n, 0);
    store_job_insert(f->store, &row);
    reopen(f);
    assert_int_equal(jobs_of(f->store).n, 0);
}

static void test_store__a_job_that_moved_meanwhile_fails_the_whole_turn(void **state)
{
    struct fixture *f = *state;
    struct job_row row = a_job("train");
    struct error err = {0};
    int64_t id = store_job_insert(f->store, &row);

    assert_int_equal(store_commit(f->store, NULL), 0);
    store_job_insert(f->store, &row);
    store_job_save(f->store, id, "Running", &row.status);
    store_job_insert(f->store, &row);
    assert_int_equal(store_commit(f->store, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(jobs_of(f->store).n, 1);
    assert_int_equal(store_commit(f->store, &err), 0);
}

static void test_store__ids_are_never_used_twice(void **state)
{
    struct fixture *f = *state;
    struct job_row row = a_job("train");
    int64_t first = store_job_insert(f->store, &row);

    store_job_delete(f->store, first);
    assert_int_equal(store_commit(f->store, NULL), 0);
    reopen(f);
    assert_true(store_job_insert(f->store, &row) > first);
    store_rollback(f->store);
}

static void test_store__an_unknown_state_is_refused(void **state)
{
    struct fixture *f = *state;
    struct job_row row = a_job("train");
    struct error err = {0};

    row.status.state = "Dancing";
    assert_int_equal(store_job_insert(f->store, &row), 0);
    assert_int_equal(store_commit(f->store, &err), -1);
    assert_int_equal(err.code, ERR_IO);
}

struct attempt_seen {
    size_t attempts, objects;
    char last[64];
};

static void see_attempt(void *ctx, const struct attempt_row *row)
{
    struct attempt_seen *seen = ctx;

    seen->attempts++;
    assert_string_equal(row->charges, "{\"h100\":8}");
    assert_string_equal(row->effective, "{\"placement\":\"pack\"}");
}

static void see_object(void *ctx, const struct object_row *row)
{
    struct attempt_seen *seen = ctx;

    assert_int_equal(row->position, seen->objects++);
    snprintf(seen->last, sizeof(seen->last), "%s/%s planned %s", row->kind, row->name,
             row->planned ? row->planned : "nothing");
}

static void test_store__an_attempt_keeps_its_objects_in_order(void **state)
{
    struct fixture *f = *state;
    struct job_row row = a_job("train");
    struct attempt_seen seen = {0};
    int64_t id = store_job_insert(f->store, &row);

    store_attempt_insert(f->store,
                         &(struct attempt_row){id, 1, 0, 5, "{}", "[]", "{\"h100\":8}", "{\"placement\":\"pack\"}"});
    store_object_insert(f->store, id, 1, &(struct object_row){1, "Pod", "default", "p", "{}", "\"n1\""});
    store_object_insert(f->store, id, 1, &(struct object_row){0, "ConfigMap", "default", "a", "{}", NULL});
    assert_int_equal(store_commit(f->store, NULL), 0);
    assert_int_equal(store_attempt_load(f->store, id, 1, see_attempt, see_object, &seen, NULL), 0);
    assert_int_equal(seen.attempts, 1);
    assert_int_equal(seen.objects, 2);
    assert_string_equal(seen.last, "Pod/p planned \"n1\"");
    store_objects_delete(f->store, id, 1);
    assert_int_equal(store_commit(f->store, NULL), 0);
    seen = (struct attempt_seen){0};
    assert_int_equal(store_attempt_load(f->store, id, 1, see_attempt, see_object, &seen, NULL), 0);
    assert_int_equal(seen.attempts, 1);
    assert_int_equal(seen.objects, 0);
}

static void see_event(void *ctx, const struct event_row *row)
{
    struct buf *buf = ctx;

    buf_addf(buf, "%s:%s>%s ", row->type, row->from, row->to);
}

static void test_store__events_come_in_pages_and_go_with_the_job(void **state)
{
    struct fixture *f = *state;
    struct job_row row = a_job("train");
    int64_t id = store_job_insert(f->store, &row);
    BUF text = {0};

    for (int i = 0; i < 3; i++)
        store_event_insert(f->store, &(struct event_row){0, id, i, i == 1 ? "Drift" : "Moved", "", "Pending", ""});
    assert_int_equal(store_commit(f->store, NULL), 0);
    assert_int_equal(store_events_each(f->store, id, 1, 1, see_event, &text, NULL), 0);
    assert_string_equal(buf_str(&text), "Drift:>Pending ");
    store_job_delete(f->store, id);
    assert_int_equal(store_commit(f->store, NULL), 0);
    buf_clear(&text);
    assert_int_equal(store_events_each(f->store, 0, 0, 10, see_event, &text, NULL), 0);
    assert_string_equal(buf_str(&text), "");
}

static void see_queue(void *ctx, const struct queue_row *row)
{
    buf_addf(ctx, "%s<%s*%d,%s ", row->name, row->parent ? row->parent : "root", (int)row->weight,
             row->placement ? row->placement : "above");
}
static void see_quota(void *ctx, const struct quota_row *row)
{
    buf_addf(ctx, "%s/%s=%d,%s ", row->queue, row->resource, (int)row->nominal,
             row->borrowing == STORE_UNLIMITED ? "any" : "some");
}
static void see_resource(void *ctx, const struct resource_row *row)
{
    buf_addf(ctx, "%s:%s ", row->name, row->device_class ? row->device_class : "any");
}
static void see_priority(void *ctx, const struct priority_row *row)
{
    buf_addf(ctx, "%s=%d ", row->name, (int)row->value);
}

static void test_store__queues_and_quotas_are_put_and_replaced(void **state)
{
    struct fixture *f = *state;
    BUF text = {0};
    struct queue_visitor visitor = {&text, see_queue, see_quota, see_resource, see_priority};

    store_queue_put(f->store, &(struct queue_row){"research", NULL, 1, "open", NULL});
    store_queue_put(f->store, &(struct queue_row){"vision", "research", 1, "open", "pack"});
    store_queue_put(f->store, &(struct queue_row){"vision", "research", 3, "held", "spread"});
    store_quota_put(f->store, &(struct quota_row){"vision", "h100", 4, STORE_UNLIMITED, 2});
    store_quota_put(f->store, &(struct quota_row){"vision", "h100", 8, STORE_UNLIMITED, 2});
    store_quota_put(f->store, &(struct quota_row){"vision", "cpu", 8, 0, 0});
    store_resource_put(f->store, &(struct resource_row){"h100", NULL, "true", NULL});
    store_priority_put(f->store, &(struct priority_row){"high", 100});
    assert_int_equal(store_commit(f->store, NULL), 0);
    assert_int_equal(store_queues_each(f->store, &visitor, NULL), 0);
    assert_string_equal(
        buf_str(&text),
        "h100:any high=100 research<root*1,above vision<research*3,spread vision/cpu=8,some vision/h100=8,any ");
}

static void test_store__a_queue_that_says_no_placement_any_more_has_none(void **state)
{
    struct fixture *f = *state;
    BUF text = {0};
    struct queue_visitor visitor = {&text, see_queue, see_quota, see_resource, see_priority};

    store_queue_put(f->store, &(struct queue_row){"vision", NULL, 1, "open", "pack"});
    store_queue_put(f->store, &(struct queue_row){"vision", NULL, 1, "open", NULL});
    assert_int_equal(store_commit(f->store, NULL), 0);
    assert_int_equal(store_queues_each(f->store, &visitor, NULL), 0);
    assert_string_equal(buf_str(&text), "vision<root*1,above ");
}

static void test_store__no_other_placement_is_stored(void **state)
{
    struct fixture *f = *state;

    store_queue_put(f->store, &(struct queue_row){"vision", NULL, 1, "open", "heap"});
    assert_int_equal(store_commit(f->store, NULL), -1);
}

static void test_store__a_queue_with_children_cannot_go(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};

    store_queue_put(f->store, &(struct queue_row){"research", NULL, 1, "open", NULL});
    store_queue_put(f->store, &(struct queue_row){"vision", "research", 1, "open", NULL});
    assert_int_equal(store_commit(f->store, NULL), 0);
    store_queue_delete(f->store, "research");
    assert_int_equal(store_commit(f->store, &err), -1);
}

static void see_usage(void *ctx, const struct usage_row *row)
{
    buf_addf(ctx, "%d.%s=%d@%d-%d ", (int)row->job, row->resource, (int)row->amount, (int)row->from_ms,
             (int)row->to_ms);
}

static void test_store__usage_outlives_its_job(void **state)
{
    struct fixture *f = *state;
    struct job_row row = a_job("train");
    int64_t id = store_job_insert(f->store, &row);
    BUF text = {0};

    store_usage_put(f->store, &(struct usage_row){id, 1, "h100", "vision", "ada", 8, 100, 0});
    store_usage_put(f->store, &(struct usage_row){id, 2, "h100", "vision", "ada", 8, 500, 0});
    store_usage_close(f->store, id, 1, 300);
    store_job_delete(f->store, id);
    assert_int_equal(store_commit(f->store, NULL), 0);
    assert_int_equal(store_usage_each(f->store, 0, 1000, see_usage, &text, NULL), 0);
    assert_string_equal(buf_str(&text), "1.h100=8@100-300 1.h100=8@500-0 ");
    buf_clear(&text);
    assert_int_equal(store_usage_each(f->store, 300, 500, see_usage, &text, NULL), 0);
    assert_string_equal(buf_str(&text), "");
}

static void see_token(void *ctx, const struct token_row *row)
{
    unsigned char want[STORE_HASH_BYTES];

    store_hash("abc", 3, want);
    assert_memory_equal(row->hash, want, sizeof(want));
    assert_int_equal(row->hash[0], 0xba); /* the published test value of SHA-256("abc") begins ba7816bf */
    ++*(int *)ctx;
}

static void test_store__of_a_token_only_the_hash_is_kept(void **state)
{
    struct fixture *f = *state;
    struct token_row row = {.name = "ci", .role = "submitter", .created_ms = 1};
    int n = 0;
    int64_t id;

    store_hash("abc", 3, row.hash);
    id = store_token_insert(f->store, &row);
    assert_int_equal(store_commit(f->store, NULL), 0);
    assert_int_equal(store_tokens_each(f->store, see_token, &n, NULL), 0);
    assert_int_equal(n, 1);
    store_token_delete(f->store, id);
    assert_int_equal(store_commit(f->store, NULL), 0);
    assert_int_equal(store_tokens_each(f->store, see_token, &n, NULL), 0);
    assert_int_equal(n, 1);
}

static void see_key(void *ctx, const struct key_row *row)
{
    assert_string_equal(row->jobs, "[7]");
    ++*(int *)ctx;
}

static void test_store__a_key_is_found_by_its_user_until_it_expires(void **state)
{
    struct fixture *f = *state;
    int n = 0;

    store_key_insert(f->store, &(struct key_row){.user = "ada", .key = "k", .jobs = "[7]", .created_ms = 100});
    assert_int_equal(store_commit(f->store, NULL), 0);
    assert_int_equal(store_key_find(f->store, "ada", "k", see_key, &n, NULL), 0);
    assert_int_equal(store_key_find(f->store, "bob", "k", see_key, &n, NULL), 0);
    assert_int_equal(n, 1);
    store_keys_expire(f->store, 101);
    assert_int_equal(store_key_find(f->store, "ada", "k", see_key, &n, NULL), 0);
    assert_int_equal(n, 1);
}

static void test_store__files_are_private(void **state)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
    struct fixture *f = *state;
    struct job_row row = a_job("train");

    store_job_insert(f->store, &row);
    assert_int_equal(store_commit(f->store, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        char name[128];
        struct stat st;

        snprintf(name, sizeof(name), "%s%s", f->scratch.path, suffixes[i]);
        assert_int_equal(stat(name, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
}

static void test_store__a_second_server_is_held_off(void **state)
{
    struct fixture *f = *state;
    struct store *second = NULL;
    struct error err = {0};

    assert_int_equal(store_open(f->scratch.path, &second, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_non_null(strstr(err.text, "another server"));
}

static void test_store__the_holder_hears_of_a_wish_while_it_lasts(void **state)
{
    struct fixture *f = *state;
    int wish, other;

    assert_false(store_is_wanted(f->store));
    wish = store_want(f->scratch.path);
    assert_true(wish >= 0);
    assert_true(store_is_wanted(f->store));
    other = store_want(f->scratch.path); /* of a third server */
    assert_true(other >= 0);
    close(wish);
    assert_true(store_is_wanted(f->store));
    close(other);
    assert_false(store_is_wanted(f->store));
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_store__##name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_committed_job_survives),
        TEST(what_is_not_committed_is_gone),
        TEST(a_job_that_moved_meanwhile_fails_the_whole_turn),
        TEST(ids_are_never_used_twice),
        TEST(an_unknown_state_is_refused),
        TEST(an_attempt_keeps_its_objects_in_order),
        TEST(events_come_in_pages_and_go_with_the_job),
        TEST(queues_and_quotas_are_put_and_replaced),
        TEST(a_queue_that_says_no_placement_any_more_has_none),
        TEST(no_other_placement_is_stored),
        TEST(a_queue_with_children_cannot_go),
        TEST(usage_outlives_its_job),
        TEST(of_a_token_only_the_hash_is_kept),
        TEST(a_key_is_found_by_its_user_until_it_expires),
        TEST(files_are_private),
        TEST(a_second_server_is_held_off),
        TEST(the_holder_hears_of_a_wish_while_it_lasts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
