/* conformance-allocator [--plain] [--release N] [--features WHICH] [--keep FILE] PATH... - run conformance cases of the
 * allocator.
 *
 * PATH is a folder of .yaml and .jsonl files, one such file, or - for lines on standard input. One line per failing
 * case, then "N passed, N failed, N skipped". Exit status 0 only if none failed. --plain answers with the plain search
 * that mirrors the specification; --keep appends failing cases to a file as JSON lines, the smallest first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/conformance/case.h"

#include "allocator/base/banned.h"

struct run {
    struct case_options options;
    size_t n[3];
    char **failing; /* JSON lines */
    size_t n_failing;
};

static void keep(struct run *run, const json_t *object)
{
    run->failing = realloc(run->failing, (run->n_failing + 1) * sizeof(*run->failing));
    run->failing[run->n_failing++] = json_dumps(object, JSON_COMPACT);
}

static void run_case(void *ctx, const char *file, const json_t *object)
{
    struct run *run = ctx;
    const char *name = json_string_value(json_object_get(object, "name"));
    const char *slash = strrchr(file, '/');
    BUF why = {0};
    enum case_result result = case_run(object, &run->options, &why);

    run->n[result]++;
    if (result == CASE_PASSED)
        return;
    printf("%s: %s: %s: %s\n", result == CASE_FAILED ? "FAIL" : "SKIP", slash ? slash + 1 : file, name ? name : "?",
           buf_str(&why));
    if (result == CASE_FAILED)
        keep(run, object);
}

static int shorter(const void *a, const void *b)
{
    size_t x = strlen(*(char *const *)a), y = strlen(*(char *const *)b);

    return x < y ? -1 : x > y;
}

static void write_failing(struct run *run, const char *path)
{
    FILE *file = path && run->n_failing ? fopen(path, "a") : NULL;

    if (run->n_failing)
        qsort(run->failing, run->n_failing, sizeof(*run->failing), shorter);
    for (size_t i = 0; i < run->n_failing; i++) {
        if (file)
            fprintf(file, "%s\n", run->failing[i]);
        free(run->failing[i]);
    }
    free(run->failing);
    if (file)
        fclose(file);
}

static int usage(void)
{
    fprintf(
        stderr,
        "usage: conformance-allocator [--plain] [--release N] [--features exact|default|all] [--keep FILE] PATH...\n");
    return 2;
}

static bool parse_features(const char *text, struct case_options *options)
{
    static const char *const names[] = {
        [CASE_FEATURES_EXACT] = "exact", [CASE_FEATURES_DEFAULT] = "default", [CASE_FEATURES_ALL] = "all"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcmp(text, names[i]) != 0)
            continue;
        options->features = (enum case_features)i;
        return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    struct run run = {0};
    const char *kept = NULL;
    int i = 1, status = 0;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--plain") == 0)
            run.options.plain = true;
        else if (strcmp(argv[i], "--release") == 0 && i + 1 < argc)
            run.options.release = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--features") == 0 && i + 1 < argc && parse_features(argv[i + 1], &run.options))
            i++;
        else if (strcmp(argv[i], "--keep") == 0 && i + 1 < argc)
            kept = argv[++i];
        else
            return usage();
    }
    if (i == argc)
        return usage();
    for (; i < argc; i++)
        if (cases_read(argv[i], run_case, &run) < 0)
            status = 1;
    write_failing(&run, kept);
    printf("%zu passed, %zu failed, %zu skipped\n", run.n[CASE_PASSED], run.n[CASE_FAILED], run.n[CASE_SKIPPED]);
    return status || run.n[CASE_FAILED] ? 1 : 0;
}
