/* The ordinary test run: every line of the seed file, cut short everywhere, and changed at random places by a seeded
 * generator. What libFuzzer once found lies in the seeds. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "allocator/base/rng.h"
#include "test/fuzz/cel-libs/fuzz.h"

#define CHANGES 150 /* of each seed */

static void replay(const char *data, size_t size)
{
    uint8_t *exact = mem_zalloc(size + 1, 1); /* of its own, so that reading beyond it is seen */

    if (size > 0)
        memcpy(exact, data, size);
    exact = mem_resize(exact, size > 0 ? size : 1, 1);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

/* Overwrite, insert, delete or repeat a few bytes. */
static void mutate(struct rng *rng, struct str from, struct buf *out)
{
    static const char alphabet[] = "0123456789.-+eEinumkKMGTP%:/[](){}|*?^$\\dwsbpLQZT \t\xc3\xa9\xe6\x97\x80\xff\x01";
    size_t at = rng_below(rng, from.len + 1), n = rng_below(rng, 6);
    size_t gone = rng_below(rng, 4) * rng_below(rng, 4);

    buf_clear(out);
    buf_add(out, from.ptr, at);
    if (rng_below(rng, 4) == 0 && at >= 4)
        buf_add(out, from.ptr + at - 4, 4);
    for (size_t i = 0; i < n; i++)
        buf_addc(out, alphabet[rng_below(rng, sizeof(alphabet) - 1)]);
    at = at + gone < from.len ? at + gone : from.len;
    buf_add(out, from.ptr + at, from.len - at);
}

static void replay_seed(struct rng *rng, struct str seed)
{
    BUF changed = {0};

    for (size_t n = 0; n <= seed.len; n++)
        replay(seed.ptr, n);
    for (int i = 0; i < CHANGES; i++) {
        mutate(rng, seed, &changed);
        replay(buf_str(&changed), changed.len);
    }
}

static void test_fuzz_cel_libs__seeds(void **state)
{
    FILE *file = fopen(SEEDS, "rb");
    struct rng rng = {1};
    char *line = NULL;
    size_t capacity = 0, n_seeds = 0;
    ssize_t n;

    (void)state;
    assert_non_null(file);
    while ((n = getline(&line, &capacity, file)) > 0) {
        replay_seed(&rng, (struct str){line, (size_t)n - (line[n - 1] == '\n')});
        n_seeds++;
    }
    free(line);
    fclose(file);
    assert_true(n_seeds > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fuzz_cel_libs__seeds)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
