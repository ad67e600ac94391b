/* The ordinary test run: the corpus as it is, cut short at every 16th byte, and changed at random places by a seeded
 * generator. What libFuzzer once found lies in the corpus. */
#include "test/support/cmocka.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "allocator/base/rng.h"
#include "allocator/base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const folders[] = {"test/fuzz/manifest/corpus", "test/manifest/decode"};

static void replay(const char *data, size_t size)
{
    uint8_t *exact = mem_zalloc(size + 1, 1); /* of its own, so that reading beyond it is seen */

    memcpy(exact, data, size);
    exact = mem_resize(exact, size > 0 ? size : 1, 1);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

/* Overwrite, insert, delete or repeat a few bytes. */
static void mutate(struct rng *rng, const struct buf *from, struct buf *out)
{
    static const char alphabet[] = "{}[]:,-#&*!|>'\"%@` \n\t0129azAZ._~\\/<?\xc3\xa9\x80\x01";
    size_t at = rng_below(rng, from->len + 1), n = rng_below(rng, 8);
    size_t gone = rng_below(rng, 4) * rng_below(rng, 4);

    buf_clear(out);
    buf_add(out, from->data, at);
    if (rng_below(rng, 4) == 0 && at >= 8)
        buf_add(out, from->data + at - 8, 8);
    for (size_t i = 0; i < n; i++)
        buf_addc(out, alphabet[rng_below(rng, sizeof(alphabet) - 1)]);
    at = at + gone < from->len ? at + gone : from->len;
    buf_add(out, from->data + at, from->len - at);
}

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct rng rng = {1};
    char chunk[4096];
    BUF text = {0};
    BUF changed = {0};
    size_t n;

    assert_non_null(file);
    buf_adds(&text, "");
    while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
        buf_add(&text, chunk, n);
    fclose(file);
    replay(buf_str(&text), text.len);
    for (n = 0; n < text.len; n += 16)
        replay(buf_str(&text), n);
    for (int i = 0; i < 200 && text.len > 0; i++) {
        mutate(&rng, &text, &changed);
        replay(buf_str(&changed), changed.len);
    }
}

static void test_fuzz_manifest__corpus(void **state)
{
    size_t n_files = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        DIR *dir = opendir(folders[i]);
        struct dirent *entry;
        char path[600];

        while (dir && (entry = readdir(dir))) {
            if (entry->d_name[0] == '.')
                continue;
            snprintf(path, sizeof(path), "%s/%s", folders[i], entry->d_name);
            replay_file(path);
            n_files++;
        }
        if (dir)
            closedir(dir);
    }
    assert_true(n_files > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fuzz_manifest__corpus)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
