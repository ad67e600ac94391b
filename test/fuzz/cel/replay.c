/* The seeds in every ordinary test run: each line whole, cut at every length, and with every byte changed once. A file
 * on the command line is run as it is: a finding of libFuzzer. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "test/fuzz/cel/fuzz.h"

#include "allocator/base/banned.h"

#define SEEDS "test/fuzz/cel/seeds/expressions"

/* A copy of exactly this size, so that a read beyond the end is seen. */
static void run(const char *bytes, size_t len)
{
    uint8_t *exact = mem_zalloc(1, len ? len : 1);

    memcpy(exact, bytes, len);
    LLVMFuzzerTestOneInput(exact, len);
    free(exact);
}

static void replay(char *line, size_t n)
{
    for (size_t len = 0; len <= n; len++)
        run(line, len);
    for (size_t i = 0; i < n; i++) {
        static const char other[] = {'\0', '(', ')', '\x94', '"', '.', '\x95', '0', '\xa6', ' '};
        char before = line[i];

        line[i] = other[i % sizeof(other)];
        run(line, n);
        line[i] = before;
    }
}

static void test_fuzz_cel__seeds(void **state)
{
    FILE *file = fopen(SEEDS, "re");
    size_t cap = 0, n_lines = 0;
    char *line = NULL;
    ssize_t n;

    (void)state;
    assert_non_null(file);
    for (; (n = getline(&line, &cap, file)) > 0; n_lines++)
        replay(line, (size_t)n - (line[n - 1] == '\n'));
    assert_true(n_lines > 20);
    free(line);
    fclose(file);
}

static int run_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char bytes[4096];
    BUF text = {0};
    size_t n;

    if (!file)
        return 1;
    while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0)
        buf_add(&text, bytes, n);
    fclose(file);
    run(buf_str(&text), text.len);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fuzz_cel__seeds)};

    if (argc > 1)
        return run_file(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
