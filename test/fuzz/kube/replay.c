/* The corpus of a target, whole and damaged, and bytes from a seeded generator, in an ordinary test run.
 * QUEUED_FUZZ_RUNS=N for more. */
#include "test/fuzz/kube/fuzz.h"
#include "test/support/cmocka.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "allocator/base/rng.h"

#include "allocator/base/banned.h"

#define CORPUS    "test/fuzz/kube/corpus"
#define MAX_BYTES 65536

static uint64_t n_runs(void)
{
    const char *wish = getenv("QUEUED_FUZZ_RUNS");

    return wish ? strtoull(wish, NULL, 10) : 200;
}

/* One byte here and there becomes another that matters to a scanner, and the end is cut off. */
static void try_damaged(const uint8_t *bytes, size_t n, struct rng *rng)
{
    static const char marks[] = "{}[]\",:\\ \n\x01"
                                "e9tn";
    uint8_t *copy = malloc(n ? n : 1);

    memcpy(copy, bytes, n);
    for (uint64_t k = rng_below(rng, 4); k && n; k--)
        copy[rng_below(rng, n)] = (uint8_t)marks[rng_below(rng, sizeof(marks) - 1)];
    if (n)
        copy[0] = (uint8_t)rng_next(rng);
    LLVMFuzzerTestOneInput(copy, rng_below(rng, 3) ? n : rng_below(rng, n + 1));
    free(copy);
}

static void replay_file(const char *name)
{
    uint8_t *bytes = malloc(MAX_BYTES);
    char path[512];
    FILE *file;
    size_t n;

    snprintf(path, sizeof(path), "%s/%s", CORPUS, name);
    file = fopen(path, "rb");
    assert_non_null(file);
    n = fread(bytes, 1, MAX_BYTES, file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, n);
    for (uint64_t seed = 1; seed <= n_runs(); seed++)
        try_damaged(bytes, n, &(struct rng){seed});
    free(bytes);
}

static void test_fuzz__corpus(void **state)
{
    struct dirent **entries;
    int n = scandir(CORPUS, &entries, NULL, alphasort);

    (void)state;
    assert_true(n > 2);
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.')
            replay_file(entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

static void test_fuzz__random_bytes(void **state)
{
    uint8_t bytes[256];

    (void)state;
    for (uint64_t seed = 1; seed <= n_runs(); seed++) {
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
