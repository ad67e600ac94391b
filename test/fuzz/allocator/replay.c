/* The corpus of a target, and bytes from a seeded generator, in an ordinary test run. */
#include "test/fuzz/allocator/fuzz.h"
#include "test/support/cmocka.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "allocator/base/rng.h"

#include "allocator/base/banned.h"

#define CORPUS "test/fuzz/allocator/corpus"

static void replay_file(const char *name)
{
    static uint8_t bytes[1 << 20];
    char path[512];
    FILE *file;
    size_t n;

    snprintf(path, sizeof(path), "%s/%s", CORPUS, name);
    file = fopen(path, "rb");
    assert_non_null(file);
    n = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, n);
}

static void test_fuzz__corpus(void **state)
{
    struct dirent **entries;
    int n = scandir(CORPUS, &entries, NULL, alphasort);

    (void)state;
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.')
            replay_file(entries[i]->d_name);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

static void test_fuzz__random_bytes(void **state)
{
    const char *wish = getenv("QUEUED_FUZZ_RUNS");
    uint64_t n = wish ? strtoull(wish, NULL, 10) : 300;
    uint8_t bytes[256];

    (void)state;
    for (uint64_t seed = 1; seed <= n; seed++) {
        struct rng rng = {seed};

        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (uint8_t)rng_next(&rng);
        LLVMFuzzerTestOneInput(bytes, sizeof(bytes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fuzz__corpus),
        cmocka_unit_test(test_fuzz__random_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
