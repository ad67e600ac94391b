#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "allocator/base/str.h"
#include "queued/manifest/yaml.h"

/* All documents of a text as one compact JSON array, or the error's text. To free(). */
static char *read_as(const char *text, size_t len, const struct manifest_limits *limits)
{
    CLEANUP(manifest) *manifest = NULL;
    struct error err = {0};
    json_t *all = json_array();
    char *dump;

    if (manifest_parse("in", text, len, limits, &manifest, &err) < 0) {
        json_decref(all);
        return mem_strdup(err.text);
    }
    for (size_t i = 0; i < manifest_n_documents(manifest); i++)
        json_array_append(all, manifest_document(manifest, i));
    dump = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    return dump;
}

static const struct read_case {
    const char *name;
    const char *text;
    const char *want;
} read_cases[] = {
    {"an empty text has no documents", "", "[]"},
    {"comments alone have no documents", "# nothing\n---\n# more\n", "[]"},
    {"empty documents are left out", "---\n---\na: 1\n---\n\n---\nnull\n...\n", "[{\"a\":1}]"},
    {"a byte order mark is skipped",
     "\xef\xbb\xbf"
     "a: 1\n",
     "[{\"a\":1}]"},
    {"windows line ends", "a: 1\r\nb: |\r\n  x\r\n", "[{\"a\":1,\"b\":\"x\\n\"}]"},
    {"flow style with trailing commas", "{a: [1, 2,], b: {c: d,},}", "[{\"a\":[1,2],\"b\":{\"c\":\"d\"}}]"},
    {"json is yaml", "{\"a\":{\"b\":[true,null,-1.5e3]}}", "[{\"a\":{\"b\":[true,null,-1500.0]}}]"},
    {"json values one after the other", "{\"a\":1}\n{\"a\":2}", "[{\"a\":1},{\"a\":2}]"},
    {"json surrogate pairs", "{\"a\":\"\\ud83d\\ude00\"}", "[{\"a\":\"\xf0\x9f\x98\x80\"}]"},
    {"json with tabs and a key on its own line", "{\n\t\"a\"\n\t:\n\t1\n}", "[{\"a\":1}]"},
    {"almost json is yaml", "{a: 1}", "[{\"a\":1}]"},
    {"numbers in json keep their type", "[1, 1.0, 9223372036854775807, 9223372036854775808]",
     "[[1,1.0,9223372036854775807,9.2233720368547758e18]]"},
    {"words of yaml 1.1 as kubectl reads them", "[y, No, ON, off, true, FALSE]",
     "[[true,false,true,false,true,false]]"},
    {"other words stay text", "[yEs, nope, onn, tRue]", "[[\"yEs\",\"nope\",\"onn\",\"tRue\"]]"},
    {"quoted is text", "['yes', \"1\", '~', '']", "[[\"yes\",\"1\",\"~\",\"\"]]"},
    {"nulls", "{a: , b: ~, c: null, d: NULL}", "[{\"a\":null,\"b\":null,\"c\":null,\"d\":null}]"},
    {"octal, hexadecimal, binary, underscores", "[0644, 0o644, 0x1F, 0b101, 1_000, -0x10, +7]",
     "[[420,420,31,5,1000,-16,7]]"},
    {"not octal", "[08, 0x, 0xg, 0o9, 1__]", "[[8,\"0x\",\"0xg\",\"0o9\",1]]"},
    {"reals", "[0.5, .5, 1., 1e3, 1E-2, -2.5e+1, 1e, 1.e, e1]",
     "[[0.5,0.5,1.0,1000.0,0.01,-25.0,\"1e\",\"1.e\",\"e1\"]]"},
    {"the ends of int64", "[9223372036854775807, -9223372036854775808, -9223372036854775809]",
     "[[9223372036854775807,-9223372036854775808,-9.2233720368547758e18]]"},
    {"no dates, no base 60, no versions", "[2001-01-01, 12:30:45, 1.2.3, 1Gi, 100m]",
     "[[\"2001-01-01\",\"12:30:45\",\"1.2.3\",\"1Gi\",\"100m\"]]"},
    {"too large to be a number is text", "[1e999]", "[[\"1e999\"]]"},
    {"keys are their text", "{1: a, yes: b, 0x10: c, 1.50: d}",
     "[{\"1\":\"a\",\"yes\":\"b\",\"0x10\":\"c\",\"1.50\":\"d\"}]"},
    {"tags of the core schema", "[!!str 5, !!int \"5\", !!float 5, !!bool \"yes\", !!null \"\", ! 7]",
     "[[\"5\",5,5.0,true,null,\"7\"]]"},
    {"folded and literal blocks", "a: >-\n  one\n  two\n\n  three\nb: |+\n  x\n\nc: |2-\n    y\n",
     "[{\"a\":\"one two\\nthree\",\"b\":\"x\\n\\n\",\"c\":\"  y\"}]"},
    {"plain text over several lines", "a: one\n  two # no more\nb: 3", "[{\"a\":\"one two\",\"b\":3}]"},
    {"comments in odd places", "a:\n# here\n  - 1 # one\n    # two\n  - 2\n#end\nb: c#d",
     "[{\"a\":[1,2],\"b\":\"c#d\"}]"},
    {"aliases are copies", "a: &x {k: [1]}\nb: *x\n", "[{\"a\":{\"k\":[1]},\"b\":{\"k\":[1]}}]"},
    {"an anchor's later value counts", "[&x 1, &x 2, *x]", "[[1,2,2]]"},
    {"merge keys go below the mapping's own", "a: &x {k: 1, l: 2}\nb: {l: 3, <<: *x, m: 4}\n",
     "[{\"a\":{\"k\":1,\"l\":2},\"b\":{\"l\":3,\"m\":4,\"k\":1}}]"},
    {"of merged mappings the first wins", "[&x {k: 1}, &y {k: 2, l: 3}, {<<: [*x, *y]}]",
     "[[{\"k\":1},{\"k\":2,\"l\":3},{\"k\":1,\"l\":3}]]"},
    {"a quoted << is a key", "{\"<<\": 1}", "[{\"<<\":1}]"},
    {"long keys in json",
     "{\""
     "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
     "\":1}",
     "[{\""
     "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
     "\":1}]"},
    /* refused */
    {"a duplicate key names both lines", "a: 1\nb: 2\na: 3\n", "in:3:1: key \"a\" is set twice, first in line 1"},
    {"a duplicate key in json too", "{\n \"a\": 1,\n \"a\": 2}", "in:3:2: key \"a\" is set twice, first in line 2"},
    {"tabs as indentation", "a:\n\tb: 1\n",
     "in:2:1: found character that cannot start any token while scanning for the next token (from line 2)"},
    {"a missing bracket", "a: [1,\nb: 2", NULL},
    {"an unknown anchor", "a: *x", "in:1:4: no anchor named &x"},
    {"an alias inside of its own value", "a: &x [*x]", "in:1:8: an alias inside of its own anchor &x"},
    {"an unknown tag", "a: !foo b", "in:1:4: unknown tag !foo"},
    {"a type that is not its tag's", "a: !!int x",
     "in:1:4: the value does not have the type of its tag tag:yaml.org,2002:int"},
    {"no number for it in json", "a: .inf", "in:1:4: JSON has no such number: .inf"},
    {"a list as a key", "? [a]\n: 1", "in:1:3: a key must be plain text"},
    {"merging what is no mapping", "a: {<<: [1]}", "in:1:10: only mappings can be merged"},
    {"merging a scalar", "a: {<<: 1}", "in:1:9: only mappings can be merged"},
    {"a NUL in text", "a: \"\\0\"", "in:1:4: text with NUL or invalid UTF-8"},
    {"a NUL in json falls to yaml", "{\"a\":\"\\u0000\"}", "in:1:6: text with NUL or invalid UTF-8"},
    {"invalid utf-8", "a: 1\nb: \xff\n", "in:2:1: invalid leading UTF-8 octet (byte 8 of the text)"},
    {"utf-16",
     "\xff\xfe"
     "a",
     "in: is UTF-16; save it as UTF-8"},
};

static void test_yaml__case(void **state)
{
    const struct read_case *c = *state;
    char *got = read_as(c->text, strlen(c->text), &MANIFEST_LIMITS_DEFAULT);

    if (c->want)
        assert_string_equal(got, c->want);
    else
        assert_int_equal(strncmp(got, "in:", 3), 0);
    free(got);
}

static const struct limit_case {
    const char *name;
    const char *text;
    struct manifest_limits limits;
    const char *want;
} limit_cases[] = {
    {"bytes", "a: 12345", {.max_bytes = 7}, "in: larger than 7 bytes"},
    {"depth in json", "[[[1]]]", {100, 2, 100, 9}, "in:1:3: nested deeper than 2"},
    {"depth in yaml", "- - - 1", {100, 2, 100, 9}, "in:1:5: nested too deep"},
    {"depth that is allowed", "[[{a: 1}]]", {100, 3, 100, 9}, "[[[{\"a\":1}]]]"},
    {"depth by aliases",
     "[&a [1], &b [*a], &c [*b], *c]",
     {100, 3, 100, 9},
     "in:1:23: nested too deep through alias *b"},
    {"nodes", "[1, 2, 3]", {100, 9, 3, 9}, "in:1:8: more than 3 values"},
    {"nodes by aliases", "[&a [1, 2], *a, *a]", {100, 9, 9, 9}, "in:1:17: more than 9 values"},
    {"nodes of all documents", "--- 1\n--- 2\n--- 3\n", {100, 9, 2, 9}, "in:3:5: more than 2 values"},
    {"documents", "--- 1\n--- 2\n--- 3\n", {100, 9, 9, 2}, "in:3:5: more than 2 documents"},
};

static void test_yaml__limit(void **state)
{
    const struct limit_case *c = *state;
    char *got = read_as(c->text, strlen(c->text), &c->limits);

    assert_string_equal(got, c->want);
    free(got);
}

/* Each level names the one before it ten times: 10^9 values from a kilobyte. */
static void test_yaml__a_billion_laughs_are_cut_short(void **state)
{
    struct manifest_limits limits = MANIFEST_LIMITS_DEFAULT;
    BUF text = {0};
    char *got;

    (void)state;
    buf_adds(&text, "- &a0 [lol]\n");
    for (int level = 1; level < 10; level++) {
        buf_addf(&text, "- &a%d [", level);
        for (int i = 0; i < 10; i++)
            buf_addf(&text, "*a%d,", level - 1);
        buf_adds(&text, "]\n");
    }
    got = read_as(buf_str(&text), text.len, &limits);
    assert_non_null(strstr(got, "more than 2000000 values"));
    free(got);
}

static void test_yaml__many_tag_directives_are_refused(void **state)
{
    BUF text = {0};
    char *got;

    (void)state;
    for (int i = 0; i < 100; i++)
        buf_addf(&text, "%%TAG !a%d! tag:x\r", i);
    buf_adds(&text, "---\na: 1\n");
    got = read_as(buf_str(&text), text.len, &MANIFEST_LIMITS_DEFAULT);
    assert_string_equal(got, "in: more than 16 %TAG directives");
    free(got);
}

static const char positions_yaml[] = "# head\n"
                                     "metadata:\n"
                                     "  name: x\n"
                                     "  labels: {kueue.x-k8s.io/queue-name: q,\n"
                                     "    a: b}\n"
                                     "spec:\n"
                                     "  groups:\n"
                                     "  - name: one\n"
                                     "    replicas: 2\n"
                                     "  -\n"
                                     "    name: two\n"
                                     "---\n"
                                     "base: &b\n"
                                     "  k: 1\n"
                                     "use: *b\n"
                                     "merged:\n"
                                     "  <<: *b\n";

static const struct position_case {
    const char *name;
    size_t document;
    const char *path;
    size_t line, column;
} position_cases[] = {
    {"the document", 0, "", 2, 1},
    {"a key", 0, "metadata.name", 3, 3},
    {"a key with dots", 0, "metadata.labels.kueue.x-k8s.io/queue-name", 4, 12},
    {"a key with dots in brackets", 0, "metadata.labels[kueue.x-k8s.io/queue-name]", 4, 12},
    {"a key in quotes and brackets", 0, "metadata.labels[\"a\"]", 5, 5},
    {"an entry", 0, "spec.groups[0]", 8, 5},
    {"a field of an entry", 0, "spec.groups[0].replicas", 9, 5},
    {"an entry on the next line", 0, "spec.groups[1]", 11, 5},
    {"the closest enclosing field", 0, "spec.groups[1].replicas", 11, 5},
    {"an index beyond the end", 0, "spec.groups[7].name", 7, 3},
    {"nothing of the path", 0, "nothing.here", 2, 1},
    {"a broken path", 0, "spec.groups[", 7, 3},
    {"the second document", 1, "base.k", 14, 3},
    {"behind an alias stands its anchor", 1, "use.k", 14, 3},
    {"behind a merge too", 1, "merged.k", 14, 3},
};

static void test_yaml__position(void **state)
{
    const struct position_case *c = *state;
    CLEANUP(manifest) *manifest = NULL;
    struct manifest_position at;

    assert_int_equal(
        manifest_parse("in", positions_yaml, sizeof(positions_yaml) - 1, &MANIFEST_LIMITS_DEFAULT, &manifest, NULL), 0);
    at = manifest_position(manifest, c->document, c->path);
    assert_int_equal(at.line, c->line);
    assert_int_equal(at.column, c->column);
    assert_int_equal(manifest_line(manifest, c->document, c->path), c->line);
}

static void test_yaml__json_has_positions(void **state)
{
    static const char text[] = "{\n  \"spec\": {\"groups\": [\n    {\"name\": \"a\"},\n    {\"name\": \"b\"}]}}";
    CLEANUP(manifest) *manifest = NULL;
    struct manifest_position at;

    (void)state;
    assert_int_equal(manifest_parse("in", text, sizeof(text) - 1, &MANIFEST_LIMITS_DEFAULT, &manifest, NULL), 0);
    at = manifest_position(manifest, 0, "spec.groups[1].name");
    assert_int_equal(at.line, 4);
    assert_int_equal(at.column, 6);
}

static void test_yaml__documents_do_not_share_values(void **state)
{
    static const char text[] = "a: &x {k: 1}\nb: *x\n";
    CLEANUP(manifest) *manifest = NULL;
    json_t *document;

    (void)state;
    assert_int_equal(manifest_parse("in", text, sizeof(text) - 1, &MANIFEST_LIMITS_DEFAULT, &manifest, NULL), 0);
    document = manifest_document(manifest, 0);
    json_object_set_new(json_object_get(document, "b"), "k", json_integer(2));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(document, "a"), "k")), 1);
}

static void test_yaml__a_file_keeps_its_lines(void **state)
{
    char path[] = "/tmp/queued-test-yaml-XXXXXX";
    CLEANUP(manifest) *manifest = NULL;
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");

    (void)state;
    fputs("a: 1\r\nb:   2\nc: 3", file);
    fclose(file);
    assert_int_equal(manifest_read_file(path, &MANIFEST_LIMITS_DEFAULT, &manifest, NULL), 0);
    assert_true(str_is(manifest_source_line(manifest, 1), "a: 1"));
    assert_true(str_is(manifest_source_line(manifest, 2), "b:   2"));
    assert_true(str_is(manifest_source_line(manifest, 3), "c: 3"));
    assert_int_equal(manifest_source_line(manifest, 4).len, 0);
    assert_int_equal(manifest_source_line(manifest, 0).len, 0);
    assert_string_equal(manifest_name(manifest), path);
    remove(path);
}

static void test_yaml__a_missing_file_is_not_found(void **state)
{
    CLEANUP(manifest) *manifest = NULL;
    struct error err = {0};

    (void)state;
    assert_int_equal(manifest_read_file("test/manifest/no-such-file", &MANIFEST_LIMITS_DEFAULT, &manifest, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_string_equal(err.text, "test/manifest/no-such-file: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml__a_billion_laughs_are_cut_short),
        cmocka_unit_test(test_yaml__many_tag_directives_are_refused),
        cmocka_unit_test(test_yaml__json_has_positions),
        cmocka_unit_test(test_yaml__documents_do_not_share_values),
        cmocka_unit_test(test_yaml__a_file_keeps_its_lines),
        cmocka_unit_test(test_yaml__a_missing_file_is_not_found),
    };

    return RUN_TABLE(test_yaml__case, read_cases) + RUN_TABLE(test_yaml__limit, limit_cases) +
           RUN_TABLE(test_yaml__position, position_cases) + cmocka_run_group_tests(tests, NULL, NULL);
}
