#include "test/conformance/case.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "queued/manifest/yaml.h"

#include "allocator/base/banned.h"

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);

    return n >= k && memcmp(text + n - k, end, k) == 0;
}

static int read_yaml(const char *path, void (*each)(void *ctx, const char *file, const json_t *object), void *ctx)
{
    struct error err = {0};
    struct manifest *manifest;

    if (manifest_read_file(path, &MANIFEST_LIMITS_DEFAULT, &manifest, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    for (size_t i = 0; i < manifest_n_documents(manifest); i++)
        each(ctx, path, manifest_document(manifest, i));
    manifest_free(manifest);
    return 0;
}

static int read_lines(const char *path, void (*each)(void *ctx, const char *file, const json_t *object), void *ctx)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    char *line = NULL;
    size_t cap = 0, number = 0;
    int result = 0;

    if (!file) {
        perror(path);
        return -1;
    }
    while (getline(&line, &cap, file) > 0) {
        json_error_t error;
        json_t *object;

        number++;
        if (*line == '\n')
            continue;
        object = json_loads(line, 0, &error);
        if (!object) {
            fprintf(stderr, "%s:%zu: %s\n", path, number, error.text);
            result = -1;
            continue;
        }
        each(ctx, path, object);
        json_decref(object);
    }
    free(line);
    if (file != stdin)
        fclose(file);
    return result;
}

static int read_folder(const char *path, void (*each)(void *ctx, const char *file, const json_t *object), void *ctx)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort), result = 0;

    if (n < 0) {
        perror(path);
        return -1;
    }
    for (int i = 0; i < n; i++) {
        char full[4096];

        snprintf(full, sizeof(full), "%s/%s", path, entries[i]->d_name);
        if ((ends_with(full, ".yaml") || ends_with(full, ".jsonl")) && cases_read(full, each, ctx) < 0)
            result = -1;
        free(entries[i]);
    }
    free(entries);
    return result;
}

int cases_read(const char *path, void (*each)(void *ctx, const char *file, const json_t *object), void *ctx)
{
    struct stat info;

    if (strcmp(path, "-") == 0)
        return read_lines(path, each, ctx);
    if (stat(path, &info) < 0) {
        perror(path);
        return -1;
    }
    if (S_ISDIR(info.st_mode))
        return read_folder(path, each, ctx);
    return ends_with(path, ".jsonl") ? read_lines(path, each, ctx) : read_yaml(path, each, ctx);
}
