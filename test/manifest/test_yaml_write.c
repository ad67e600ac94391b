#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "allocator/base/rng.h"
#include "queued/manifest/yaml.h"

static const struct write_case {
    const char *name;
    const char *json;
    const char *want;
} write_cases[] = {
    {"lists stand at the level of their key", "{\"a\":[{\"b\":1,\"c\":[2]},3]}", "a:\n- b: 1\n  c:\n  - 2\n- 3\n"},
    {"lists in lists", "[[1,2],[]]", "- - 1\n  - 2\n- []\n"},
    {"empty containers", "{\"a\":{},\"b\":[]}", "a: {}\nb: []\n"},
    {"what would be another type is quoted", "[\"yes\",\"1\",\"\",\"null\",\"0x1F\",\"12:30\",\"1e3\",\"~\"]",
     "- \"yes\"\n- \"1\"\n- \"\"\n- \"null\"\n- \"0x1F\"\n- \"12:30\"\n- \"1e3\"\n- \"~\"\n"},
    {"keys too", "{\"yes\":1,\"a b\":2,\"\":3}", "\"yes\": 1\na b: 2\n\"\": 3\n"},
    {"plain where it is safe", "[\"gpu.nvidia.com/x\",\"a: b\",\"a #b\",\"a#b\",\"- a\",\"[x]\",\"a, b\"]",
     "- gpu.nvidia.com/x\n- \"a: b\"\n- \"a #b\"\n- a#b\n- \"- a\"\n- \"[x]\"\n- \"a, b\"\n"},
    {"text of several lines", "{\"a\":\"x\\n  y\\n\",\"b\":\"x\\ny\",\"c\":\"x\\n\\n\",\"d\":1}",
     "a: |\n  x\n    y\nb: |-\n  x\n  y\nc: |+\n  x\n\nd: 1\n"},
    {"lines that a block would change", "[\" x\\ny\",\"x \\ny\",\"\\n\"]", "- \" x\\ny\"\n- \"x \\ny\"\n- \"\\n\"\n"},
    {"short reals", "[0.1,5.0,1e300]", "- 0.1\n- 5.0\n- 1e+300\n"},
    {"a text alone", "\"a\\n---\\nb\\n\"", "|\n  a\n  ---\n  b\n"},
};

static void test_yaml_write__case(void **state)
{
    const struct write_case *c = *state;
    json_t *value = json_loads(c->json, JSON_DECODE_ANY, NULL);
    char *got = manifest_to_yaml(value);

    assert_string_equal(got, c->want);
    free(got);
    json_decref(value);
}

/* Text from pieces that mean something to YAML, one day or another. */
static json_t *random_text(struct rng *rng)
{
    static const char *const pieces[] = {
        " ",
        "  ",
        "\n",
        "\n\n",
        "\t",
        ":",
        ": ",
        "#",
        " #",
        "-",
        "- ",
        "---",
        "...",
        "?",
        "|",
        ">",
        "'",
        "\"",
        "\\",
        "\\n",
        "{",
        "}",
        "[",
        "]",
        ",",
        "&a",
        "*a",
        "!",
        "%",
        "@",
        "`",
        "=",
        "<<",
        "~",
        "null",
        "true",
        "yes",
        "n",
        "0",
        "08",
        "0x1",
        "1e5",
        ".",
        ".inf",
        "_",
        "+",
        "2001-01-01",
        "12:30",
        "abc",
        "\r",
        "\x01",
        "\x7f",
        "\xc2\x85",
        "\xc2\xa0",
        "\xe2\x80\xa8",
        "\xef\xbb\xbf",
        "\xef\xbf\xbe",
        "\xc3\xa9",
        "\xf0\x9f\x98\x80",
        "word",
        "two words",
        "/",
        "$(A)",
    };
    char text[160] = "";
    size_t n = rng_below(rng, 6), len = 0;

    for (size_t i = 0; i < n; i++) {
        const char *piece = pieces[rng_below(rng, ARRAY_SIZE(pieces))];

        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", piece);
    }
    return json_string(text);
}

static json_t *random_number(struct rng *rng)
{
    uint64_t bits = rng_next(rng);
    double real = (double)(int64_t)bits / (double)(1u << rng_below(rng, 30));

    if (rng_below(rng, 2))
        return json_integer((json_int_t)(bits >> rng_below(rng, 64)));
    return json_real(rng_below(rng, 2) ? real : (double)(bits % 10000) / 1000);
}

static json_t *random_value(struct rng *rng, int depth)
{
    uint64_t kind = rng_below(rng, depth > 0 ? 8 : 5);
    json_t *value;

    if (kind < 2)
        return random_text(rng);
    if (kind == 2)
        return random_number(rng);
    if (kind < 5)
        return rng_below(rng, 2) ? json_null() : json_boolean(rng_below(rng, 2));
    value = kind == 5 ? json_array() : json_object();
    for (uint64_t n = rng_below(rng, 5); n > 0; n--) {
        json_t *key = random_text(rng);

        if (kind == 5)
            json_array_append_new(value, random_value(rng, depth - 1));
        else
            json_object_set_new(value, json_string_value(key), random_value(rng, depth - 1));
        json_decref(key);
    }
    return value;
}

static void test_yaml_write__reads_back_as_it_was(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        struct rng rng = {seed};
        CLEANUP(manifest) *manifest = NULL;
        struct error err = {0};
        json_t *value = json_pack("[o]", random_value(&rng, 4));
        char *yaml = manifest_to_yaml(value);

        if (manifest_parse("yaml", yaml, strlen(yaml), &MANIFEST_LIMITS_DEFAULT, &manifest, &err) < 0)
            fail_msg("seed %lu: %s\n%s", (unsigned long)seed, err.text, yaml);
        if (!json_equal(value, manifest_document(manifest, 0)))
            fail_msg("seed %lu: differs\n%s", (unsigned long)seed, yaml);
        free(yaml);
        json_decref(value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_yaml_write__reads_back_as_it_was)};

    return RUN_TABLE(test_yaml_write__case, write_cases) + cmocka_run_group_tests(tests, NULL, NULL);
}
