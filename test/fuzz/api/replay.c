/* The corpus in every ordinary test run, whole, cut at every length, and with every byte changed once. */
#include "test/support/cmocka.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "allocator/base/str.h"

#include "allocator/base/banned.h"

#define CORPUS "test/fuzz/api/corpus"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_file(const char *name, struct buf *out)
{
    char path[512], bytes[4096];
    FILE *file;
    size_t n;

    snprintf(path, sizeof(path), "%s/%s", CORPUS, name);
    file = fopen(path, "re");
    assert_non_null(file);
    while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0)
        buf_add(out, bytes, n);
    fclose(file);
}

/* A copy of exactly this size, so that a read beyond the end is seen. */
static void run(const char *bytes, size_t len)
{
    uint8_t *exact = mem_zalloc(1, len ? len : 1);

    memcpy(exact, bytes, len);
    LLVMFuzzerTestOneInput(exact, len);
    free(exact);
}

static void replay(const char *name)
{
    BUF text = {0};

    read_file(name, &text);
    for (size_t len = 0; len <= text.len; len++)
        run(text.data, len);
    for (size_t i = 0; i < text.len; i++) {
        static const char other[] = {'\0', '\r', '\n', '%', '"', ':', '\xff'};
        char before = text.data[i];

        text.data[i] = other[i % sizeof(other)];
        run(text.data, text.len);
        text.data[i] = before;
    }
}

static void test_fuzz_api__corpus(void **state)
{
    DIR *dir = opendir(CORPUS);
    struct dirent *entry;
    int n = 0;

    (void)state;
    assert_non_null(dir);
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.') {
            replay(entry->d_name);
            n++;
        }
    closedir(dir);
    assert_true(n > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fuzz_api__corpus)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
