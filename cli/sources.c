#include "cli/sources.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "allocator/base/mem.h"
#include "cli/commands.h"
#include "cli/text.h"

#include "allocator/base/banned.h"

/* ---- showing a place ---- */

static const char *bold(const struct cli *cli, bool on)
{
    return cli->has_color ? (on ? "\033[1m" : "\033[0m") : "";
}

#define WINDOW_BEFORE 40
#define WINDOW        110

/* The byte where the character number `column` (from 1) begins. */
static size_t byte_of(struct str line, size_t column)
{
    size_t at = 0;

    for (size_t n = 1; at < line.len && n < column; n++) {
        at++;
        while (at < line.len && ((unsigned char)line.ptr[at] & 0xc0) == 0x80)
            at++;
    }
    return at;
}

/* The line and a caret below the key at `column`; of a long line the part around it. */
static void show_line(struct cli *cli, struct str line, size_t number, size_t column)
{
    size_t first = column > WINDOW_BEFORE + 1 && line.len > WINDOW ? column - WINDOW_BEFORE : 1;
    size_t from = byte_of(line, first), to = byte_of(line, first + WINDOW), at = byte_of(line, column);
    BUF shown = {0};
    BUF marks = {0};

    if (line.len == 0)
        return;
    for (size_t i = from; i < to; i++)
        buf_addc(&shown, line.ptr[i] == '\0' ? '?' : line.ptr[i]);
    for (size_t i = first; i < column; i++)
        buf_addc(&marks, ' ');
    buf_addc(&marks, '^');
    for (at++; at < to && !strchr(":, }]\t", line.ptr[at]) && line.ptr[at]; at++)
        if (((unsigned char)line.ptr[at] & 0xc0) != 0x80)
            buf_addc(&marks, '~');
    fprintf(cli->err, "%6zu | ", number);
    line = (struct str){buf_str(&shown), shown.len};
    shown = (struct buf){0};
    text_add(&shown, line.ptr);
    fprintf(cli->err, "%s\n       | %s%s%s\n", buf_str(&shown), bold(cli, true), buf_str(&marks), bold(cli, false));
    free((char *)(uintptr_t)line.ptr);
}

/* ---- reading ---- */

/* "name:12:5: words" of the reader: show the line too. The text could not be kept, since it could not be read. */
static void show_syntax_error(struct cli *cli, const char *path, const struct error *err)
{
    const char *place = err->text + strlen(path);
    size_t line = 0, column = 0, number = 1;
    BUF text = {0};
    FILE *file;
    int c;

    if (strncmp(err->text, path, strlen(path)) != 0 || sscanf(place, ":%zu:%zu:", &line, &column) != 2)
        return;
    file = fopen(path, "rb");
    while (file && number <= line && (c = fgetc(file)) != EOF) {
        if (number == line && c != '\n' && c != '\r' && text.len < 100000)
            buf_addc(&text, (char)c);
        number += c == '\n';
    }
    if (file)
        fclose(file);
    show_line(cli, (struct str){buf_str(&text), text.len}, line, column);
}

static bool is_skipped(const struct cli *cli, const json_t *document)
{
    const char *kind = field_text(document, "kind", ""), *list = args_value(&cli->args, OPT_SKIP, "");

    while (*list) {
        size_t len = strcspn(list, ",");

        if (len > 0 && strlen(kind) == len && strncasecmp(list, kind, len) == 0)
            return true;
        list += len + (list[len] == ',');
    }
    return false;
}

/* People's manifests carry the namespace of the work along. It is no work, and to leave it out changes none of it. */
static bool is_namespace(const struct cli *cli, const json_t *document)
{
    return strcmp(cli->args.command->name, "apply") != 0 && strcmp(field_text(document, "apiVersion", ""), "v1") == 0 &&
           strcmp(field_text(document, "kind", ""), "Namespace") == 0;
}

static void note_skipped(struct cli *cli, const struct manifest *manifest, size_t i)
{
    const json_t *document = manifest_document(manifest, i);
    BUF name = {0};

    text_field(&name, json_object_get(document, "metadata"), "name");
    fprintf(cli->err, "%s:%zu: left out: %s %s\n", manifest_name(manifest), manifest_line(manifest, i, ""),
            field_text(document, "kind", ""), buf_str(&name));
}

static void take_documents(struct cli *cli, struct sources *sources, const struct manifest *manifest)
{
    for (size_t i = 0; i < manifest_n_documents(manifest); i++) {
        const json_t *document = manifest_document(manifest, i);

        if (is_skipped(cli, document) || is_namespace(cli, document)) {
            note_skipped(cli, manifest, i);
            continue;
        }
        mem_grow(sources->origins, sources->n_origins, sources->cap_origins);
        sources->origins[sources->n_origins++] = (struct origin){manifest, i};
        json_array_append(sources->documents, manifest_document(manifest, i));
    }
}

static int read_file(struct cli *cli, struct sources *sources, const char *path)
{
    struct manifest *manifest;
    struct error err = {0};
    int status;

    if (manifest_read_file(path, &MANIFEST_LIMITS_DEFAULT, &manifest, &err) < 0) {
        if (err.code == ERR_IO)
            err.code = ERR_NOT_FOUND; /* it cannot be read */
        if (err.code == ERR_NOT_FOUND && !strpbrk(path, "./"))
            error_wrap(&err, "no such command, and as a file");
        status = cli_fail(cli, &err);
        show_syntax_error(cli, path, &err);
        return status;
    }
    mem_grow(sources->manifests, sources->n_manifests, sources->cap_manifests);
    sources->manifests[sources->n_manifests++] = manifest;
    take_documents(cli, sources, manifest);
    return EXIT_OK;
}

static int is_manifest(const struct dirent *entry)
{
    static const char *const ends[] = {".yaml", ".yml", ".json"};
    size_t len = strlen(entry->d_name);

    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        if (len > strlen(ends[i]) && entry->d_name[0] != '.' &&
            strcmp(entry->d_name + len - strlen(ends[i]), ends[i]) == 0)
            return 1;
    return 0;
}

static int read_folder(struct cli *cli, struct sources *sources, const char *path)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, is_manifest, alphasort), status = EXIT_OK;
    struct error err = {0};

    if (n <= 0)
        error_set(&err, ERR_NOT_FOUND, "%s: a folder with no *.yaml, *.yml or *.json", path);
    if (n <= 0)
        status = cli_fail(cli, &err);
    for (int i = 0; i < n; i++) {
        BUF file = {0};

        buf_addf(&file, "%s/%s", path, entries[i]->d_name);
        if (status == EXIT_OK)
            status = read_file(cli, sources, buf_str(&file));
        free(entries[i]);
    }
    free(entries);
    return status;
}

int sources_read(struct cli *cli, struct sources *out)
{
    const struct args *args = &cli->args;
    int status = EXIT_OK;

    *out = (struct sources){.documents = json_array()};
    if (args->n_words == 0)
        return cli_usage(cli, "%s needs a file", args->command->name);
    for (size_t i = 0; i < args->n_words && status == EXIT_OK; i++) {
        struct stat info;
        bool folder = stat(args->words[i], &info) == 0 && S_ISDIR(info.st_mode);

        status = folder ? read_folder(cli, out, args->words[i]) : read_file(cli, out, args->words[i]);
    }
    return status;
}

void sources_release(struct sources *sources)
{
    json_decref(sources->documents);
    for (size_t i = 0; i < sources->n_manifests; i++)
        manifest_free(sources->manifests[i]);
    free(sources->manifests);
    free(sources->origins);
    *sources = (struct sources){0};
}

/* ---- the server's problems ---- */

static bool show_problem(struct cli *cli, const struct sources *sources, const json_t *problem)
{
    const json_t *document = json_object_get(problem, "document");
    size_t index = (size_t)json_integer_value(document);
    const char *field = field_text(problem, "field", "");
    struct manifest_position at;
    const struct origin *origin;
    BUF words = {0};

    if (!json_is_integer(document) || index >= sources->n_origins ||
        (strcmp(field, "spec.queue") == 0 && args_has(&cli->args, OPT_QUEUE)))
        return false; /* of no file: the queue stands on the command line */
    origin = &sources->origins[index];
    at = manifest_position(origin->manifest, origin->document, field);
    if (*field) {
        text_add(&words, field);
        buf_adds(&words, ": ");
    }
    text_field(&words, problem, "detail");
    fprintf(cli->err, "%s%s:%zu:%s %s\n", bold(cli, true), manifest_name(origin->manifest), at.line, bold(cli, false),
            buf_str(&words));
    show_line(cli, manifest_source_line(origin->manifest, at.line), at.line, at.column);
    return true;
}

int sources_problems(struct cli *cli, const struct sources *sources, const json_t *problem, const struct error *err)
{
    const json_t *problems = json_object_get(problem, "problems"), *entry;
    bool shown = false;
    size_t i;

    json_array_foreach (problems, i, entry)
        shown = show_problem(cli, sources, entry) || shown;
    return shown ? exit_code_of(err->code) : cli_fail(cli, err);
}
