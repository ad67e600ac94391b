/* conformance-cel FILE... - run conformance data (JSON Lines) and say which cases fail.
 *
 *   --skipped        list the cases that are not run, with the reason
 *   --release N      run selectors as Kubernetes 1.N (34 .. 37) instead of the newest release of each case
 *
 * Exit status 0 only if no case failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/cel/case.h"

#include "allocator/base/banned.h"

struct totals {
    size_t passed, failed, skipped;
};

struct run {
    struct totals totals;
    bool lists_skipped;
    int release;
};

static const char *string_at(const json_t *line, const char *key)
{
    const char *s = json_string_value(json_object_get(line, key));

    return s ? s : "";
}

static void run_line(struct run *run, const json_t *line)
{
    const char *file = string_at(line, "file"), *section = string_at(line, "section"), *name = string_at(line, "name");
    const char *reason = case_skip_reason(file, section, name);
    enum case_verdict verdict = CASE_SKIPPED;
    BUF why = {0};

    if (!reason)
        verdict = case_run(line, run->release, &why);
    if (verdict == CASE_PASSED)
        run->totals.passed++;
    if (verdict == CASE_FAILED) {
        run->totals.failed++;
        printf("FAIL %s/%s/%s: %s\n     %s\n", file, section, name, string_at(line, "expr"), buf_str(&why));
    }
    if (verdict == CASE_SKIPPED) {
        run->totals.skipped++;
        if (run->lists_skipped)
            printf("SKIP %s/%s/%s: %s\n", file, section, name, reason ? reason : "holds for other releases only");
    }
}

static int run_file(struct run *run, const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;

    if (!file) {
        fprintf(stderr, "conformance-cel: cannot read %s\n", path);
        return -1;
    }
    while ((n = getline(&line, &cap, file)) > 0) {
        json_error_t error;
        json_t *json = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, &error);

        if (json) {
            run_line(run, json);
        } else {
            printf("FAIL %s: not JSON: %s\n", path, error.text);
            run->totals.failed++;
        }
        json_decref(json);
    }
    free(line);
    fclose(file);
    return 0;
}

int main(int argc, char **argv)
{
    struct run run = {0};
    int status = 0, n_files = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--skipped") == 0) {
            run.lists_skipped = true;
        } else if (strcmp(argv[i], "--release") == 0 && i + 1 < argc) {
            run.release = (int)strtol(argv[++i], NULL, 10);
        } else {
            n_files++;
            status |= run_file(&run, argv[i]);
        }
    }
    if (!n_files) {
        fprintf(stderr, "usage: conformance-cel [--skipped] [--release N] FILE...\n");
        return 2;
    }
    printf("%zu passed, %zu failed, %zu skipped\n", run.totals.passed, run.totals.failed, run.totals.skipped);
    return status || run.totals.failed ? 1 : 0;
}
