/* Cutting lists and watches: what comes out, whatever the pieces; what is refused. QUEUED_SPLIT_RUNS=N for more seeds.
 */
#include "queued/cluster/kube/split.h"
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "allocator/base/rng.h"
#include "allocator/base/str.h"

#include "allocator/base/banned.h"

struct seen {
    struct buf items; /* each in one line */
    size_t n_refused;
    int stop_at; /* the number of the item that ends the splitting, from 1; 0: none */
    int n;
};

static int take(void *ctx, json_t *item, struct error *err)
{
    struct seen *seen = ctx;
    char *text = json_dumps(item, JSON_COMPACT | JSON_ENCODE_ANY);

    buf_addf(&seen->items, "%s\n", text);
    free(text);
    return ++seen->n == seen->stop_at ? error_set(err, ERR_CONFLICT, "enough") : 0;
}

static void pass_over(void *ctx, const struct error *why)
{
    struct seen *seen = ctx;

    assert_true(why->code == ERR_LIMIT || why->code == ERR_INVALID);
    buf_adds(&seen->items, "-\n");
    seen->n_refused++;
}

/* Feeds the text in pieces of at most `most` bytes, each in memory of its exact size. Returns the code of the end. */
static enum err_code feed(struct split *split, const char *text, size_t len, size_t most, struct rng *rng)
{
    struct error err = {0};
    int result = 0;

    while (len && result == 0) {
        size_t n = rng ? 1 + rng_below(rng, most) : most;
        char *piece = malloc(n < len ? n : len);

        n = n < len ? n : len;
        memcpy(piece, text, n);
        result = split_feed(split, piece, n, &err);
        free(piece);
        text += n;
        len -= n;
    }
    if (result == 0)
        result = split_end(split, &err);
    assert_int_equal(result < 0, err.code != ERR_NONE);
    return err.code;
}

#define SMALL_BYTES 64
#define SMALL_DEPTH 4

static const struct split_case {
    const char *name;
    enum split_form form;
    const char *text;
    const char *items;
    enum err_code end;
} cases[] = {
    {"an empty watch", SPLIT_WATCH, "", "", ERR_NONE},
    {"a watch of two", SPLIT_WATCH, "{\"a\":1}\n {\"b\":\"}\"}", "{\"a\":1}\n{\"b\":\"}\"}\n", ERR_NONE},
    {"two without a space", SPLIT_WATCH, "{}{}", "{}\n{}\n", ERR_NONE},
    {"brackets and quotes in strings", SPLIT_WATCH, "{\"\\\"{[\":\"]\\\\\"}", "{\"\\\"{[\":\"]\\\\\"}\n", ERR_NONE},
    {"a watch that is cut off", SPLIT_WATCH, "{}{\"a\":", "{}\n", ERR_REMOTE},
    {"a watch that is an array", SPLIT_WATCH, "[]", "", ERR_INVALID},
    {"a watch that is HTML", SPLIT_WATCH, "<html>", "", ERR_INVALID},
    {"a bracket of the other kind", SPLIT_WATCH, "{\"a\":[}", "", ERR_INVALID},
    {"NUL between objects", SPLIT_WATCH, "{}\1", "{}\n", ERR_INVALID},
    {"an item that is no JSON", SPLIT_WATCH, "{\"a\":tru}{}", "-\n{}\n", ERR_NONE},
    {"a number that nobody can hold", SPLIT_WATCH, "{\"a\":1e999}{}", "{\"a\":0}\n{}\n", ERR_NONE},
    {"half of a pair", SPLIT_WATCH, "{\"a\":\"\\ud800\"}", "{\"a\":\"\xef\xbf\xbd\"}\n", ERR_NONE},
    {"an item nested too deep", SPLIT_WATCH, "{\"a\":[[[[[{\"}\":1}]]]]]}{}", "{\"a\":[[[null]]]}\n{}\n", ERR_NONE},
    {"an item nested as deep as may be", SPLIT_WATCH, "{\"a\":[[[]]]}", "{\"a\":[[[]]]}\n", ERR_NONE},
    {"an item that is too large", SPLIT_WATCH,
     "{\"a\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}{}", "-\n{}\n", ERR_NONE},
    {"an empty list", SPLIT_LIST, "{\"items\":[]}", "", ERR_NONE},
    {"no items at all", SPLIT_LIST, "{\"kind\":\"List\"}", "", ERR_NONE},
    {"items that are null", SPLIT_LIST, "{\"items\":null,\"metadata\":null}", "", ERR_NONE},
    {"metadata before", SPLIT_LIST, "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"a\":1},{\"b\":2}]}",
     "{\"a\":1}\n{\"b\":2}\nmetadata {\"resourceVersion\":\"7\"}\n", ERR_NONE},
    {"metadata behind", SPLIT_LIST, " { \"items\" : [ {\"a\":1} , {\"b\":2} ] , \"metadata\" : {\"x\":\"7\"} } ",
     "{\"a\":1}\n{\"b\":2}\nmetadata {\"x\":\"7\"}\n", ERR_NONE},
    {"a key with an escape", SPLIT_LIST, "{\"it\\u0065ms\":[{}]}", "{}\n", ERR_NONE},
    {"items deeper inside are not ours", SPLIT_LIST, "{\"x\":{\"items\":[{\"a\":1}]},\"y\":[\"items\"],\"items\":[{}]}",
     "{}\n", ERR_NONE},
    {"scalars pass by", SPLIT_LIST, "{\"a\":1,\"b\":true,\"c\":null ,\"d\":-1.5e3,\"e\":\"[\",\"items\":[{}]}", "{}\n",
     ERR_NONE},
    {"items twice", SPLIT_LIST, "{\"items\":[{}],\"items\":[]}", "{}\n", ERR_INVALID},
    {"items that are an object", SPLIT_LIST, "{\"items\":{}}", "", ERR_INVALID},
    {"metadata that is text", SPLIT_LIST, "{\"metadata\":\"x\"}", "", ERR_INVALID},
    {"an item that is a number", SPLIT_LIST, "{\"items\":[1]}", "", ERR_INVALID},
    {"a comma before the end", SPLIT_LIST, "{\"items\":[{},]}", "{}\n", ERR_INVALID},
    {"no comma", SPLIT_LIST, "{\"items\":[{}{}]}", "{}\n", ERR_INVALID},
    {"a second object behind", SPLIT_LIST, "{\"items\":[]}{}", "", ERR_INVALID},
    {"a list that is cut off", SPLIT_LIST, "{\"items\":[{}]", "{}\n", ERR_REMOTE},
    {"a list that is cut off in an item", SPLIT_LIST, "{\"items\":[{", "", ERR_REMOTE},
    {"a list of no bytes", SPLIT_LIST, "", "", ERR_REMOTE},
    {"what is not ours is nested too deep", SPLIT_LIST, "{\"x\":[[[[[]]]]]}", "", ERR_LIMIT},
    {"a large item between others", SPLIT_LIST,
     "{\"items\":[{\"a\":1},{\"a\":\"012345678901234567890123456789012345678901234567890123456789\"},{\"b\":2}]}",
     "{\"a\":1}\n-\n{\"b\":2}\n", ERR_NONE},
};

static enum err_code run(enum split_form form, const char *text, size_t len, size_t most, struct rng *rng,
                         struct seen *seen)
{
    struct split_options options = {form, SMALL_BYTES, SMALL_DEPTH, take, pass_over, seen};
    struct split *split = split_new(&options);
    enum err_code code = feed(split, text, len, most, rng);

    if (split_metadata(split) && code == ERR_NONE) {
        char *metadata = json_dumps(split_metadata(split), JSON_COMPACT);

        buf_addf(&seen->items, "metadata %s\n", metadata);
        free(metadata);
    }
    split_free(split);
    return code;
}

static void test_split__case(void **state)
{
    const struct split_case *c = *state;

    for (size_t most = 1; most <= strlen(c->text) + 1; most++) {
        struct seen seen = {0};
        enum err_code code = run(c->form, c->text, strlen(c->text), most, NULL, &seen);

        assert_int_equal(code, c->end);
        assert_string_equal(buf_str(&seen.items), c->items);
        buf_release(&seen.items);
    }
}

static void test_split__ends_when_the_taker_says_so(void **state)
{
    struct seen seen = {.stop_at = 2};
    struct split *split = split_new(&(struct split_options){.form = SPLIT_WATCH, .item = take, .ctx = &seen});
    struct error err = {0};

    (void)state;
    assert_int_equal(split_feed(split, "{}{}{}", 6, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(seen.n, 2);
    assert_int_equal(split_feed(split, "{}", 2, &err), -1);
    assert_int_equal(seen.n, 2);
    split_free(split);
    buf_release(&seen.items);
}

static void test_split__without_refused_a_bad_item_ends_it(void **state)
{
    static const char *const bad[] = {"{\"a\":1e999}", "{\"a\":[[[[[]]]]]}"};
    static const enum err_code want[] = {ERR_INVALID, ERR_LIMIT};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct seen seen = {0};
        struct split *split =
            split_new(&(struct split_options){.form = SPLIT_WATCH, .item = take, .max_depth = 4, .ctx = &seen});
        struct error err = {0};

        assert_int_equal(split_feed(split, bad[i], strlen(bad[i]), &err), -1);
        assert_int_equal(err.code, want[i]);
        split_free(split);
    }
}

/* ---- any text, in any pieces ---- */

static void put_value(struct buf *out, struct rng *rng, int depth)
{
    static const char *const scalars[] = {"1",    "-2.5e1",          "true",         "null",
                                          "\"\"", "\"a\\\"}]\\\\\"", "\"\\u00e4{\"", "\"items\""};
    size_t n = rng_below(rng, 4);
    bool is_object = rng_below(rng, 2);

    if (depth == 0 || rng_below(rng, 3) == 0) {
        buf_adds(out, scalars[rng_below(rng, ARRAY_SIZE(scalars))]);
        return;
    }
    buf_addc(out, is_object ? '{' : '[');
    for (size_t i = 0; i < n; i++) {
        buf_addf(out, "%s", i ? "," : rng_below(rng, 2) ? " " : "");
        if (is_object)
            buf_addf(out, "\"k%zu\":", i);
        put_value(out, rng, depth - 1);
    }
    buf_addc(out, is_object ? '}' : ']');
}

static void put_object(struct buf *out, struct rng *rng)
{
    buf_adds(out, "{\"v\":");
    put_value(out, rng, 4); /* at times too deep or too large for the limits of this test */
    buf_addc(out, '}');
}

static void put_list(struct buf *out, struct rng *rng)
{
    size_t n = rng_below(rng, 5), at = rng_below(rng, 2);

    buf_adds(out, "{\"apiVersion\":\"v1\",");
    if (at)
        buf_adds(out, "\"metadata\":{\"resourceVersion\":\"1\"},");
    buf_adds(out, "\"items\":[");
    for (size_t i = 0; i < n; i++) {
        buf_adds(out, i ? ", " : "");
        put_object(out, rng);
    }
    buf_adds(out, at ? "]}" : "],\"metadata\":{\"resourceVersion\":\"1\"}}");
}

static void damage(struct buf *text, struct rng *rng)
{
    static const char bytes[] = "{}[]\",:\\ x1\n";

    if (text->len && rng_below(rng, 3) == 0)
        text->data[rng_below(rng, text->len)] = bytes[rng_below(rng, sizeof(bytes))];
    if (text->len && rng_below(rng, 5) == 0)
        text->len = rng_below(rng, text->len);
}

static void check_pieces(uint64_t seed)
{
    struct rng rng = {seed};
    enum split_form form = rng_below(&rng, 2) ? SPLIT_LIST : SPLIT_WATCH;
    struct seen whole = {0}, cut = {0};
    BUF text = {0};
    enum err_code a, b;

    if (form == SPLIT_LIST)
        put_list(&text, &rng);
    else
        for (uint64_t n = rng_below(&rng, 5); n; n--)
            put_object(&text, &rng);
    damage(&text, &rng);
    a = run(form, buf_str(&text), text.len, text.len ? text.len : 1, NULL, &whole);
    b = run(form, buf_str(&text), text.len, 1 + rng_below(&rng, 40), &rng, &cut);
    if (a != b || strcmp(buf_str(&whole.items), buf_str(&cut.items)) != 0)
        print_error("seed %llu: %.*s\n", (unsigned long long)seed, (int)text.len, buf_str(&text));
    assert_int_equal(a, b);
    assert_string_equal(buf_str(&whole.items), buf_str(&cut.items));
    buf_release(&whole.items);
    buf_release(&cut.items);
}

static void test_split__pieces_do_not_matter(void **state)
{
    const char *wish = getenv("QUEUED_SPLIT_RUNS");
    uint64_t n = wish ? strtoull(wish, NULL, 10) : 3000;

    (void)state;
    for (uint64_t seed = 1; seed <= n; seed++)
        check_pieces(seed);
}

/* What jansson makes of a whole list is what the splitter tells of it. */
static void test_split__agrees_with_jansson(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct rng rng = {seed};
        struct seen seen = {0};
        struct split_options options = {SPLIT_LIST, 0, 0, take, NULL, &seen};
        struct split *split = split_new(&options);
        BUF text = {0}, want = {0};
        json_t *list, *item;
        size_t i;

        put_list(&text, &rng);
        list = json_loadb(buf_str(&text), text.len, 0, NULL);
        assert_non_null(list);
        json_array_foreach (json_object_get(list, "items"), i, item) {
            char *line = json_dumps(item, JSON_COMPACT);

            buf_addf(&want, "%s\n", line);
            free(line);
        }
        assert_int_equal(feed(split, buf_str(&text), text.len, 30, &rng), ERR_NONE);
        if (strcmp(buf_str(&seen.items), buf_str(&want)) != 0)
            print_error("seed %llu\n", (unsigned long long)seed);
        assert_string_equal(buf_str(&seen.items), buf_str(&want));
        assert_true(json_equal(split_metadata(split), json_object_get(list, "metadata")));
        json_decref(list);
        split_free(split);
        buf_release(&seen.items);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split__ends_when_the_taker_says_so),
        cmocka_unit_test(test_split__without_refused_a_bad_item_ends_it),
        cmocka_unit_test(test_split__pieces_do_not_matter),
        cmocka_unit_test(test_split__agrees_with_jansson),
    };
    int failed = RUN_TABLE(test_split__case, cases);

    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
