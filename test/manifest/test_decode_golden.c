/* Files and what they become. decode/NAME.yaml turns into the GangJobs of decode/NAME.want; the collection of published
 * manifests that may lie beside the checkout into one line each in inventory.golden. UPDATE_GOLDEN=1 writes both anew.
 */
#include "test/support/cmocka.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test/manifest/decode_text.h"

#define CASES     "test/manifest/decode"
#define GOLDEN    "test/manifest/inventory.golden"
#define INVENTORY "../shared/inventory"

/* ---- files ---- */

static char *file_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct buf text = {0};
    char chunk[4096];
    size_t n;

    if (!file)
        return mem_strdup("");
    while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
        buf_add(&text, chunk, n);
    fclose(file);
    return text.data ? buf_take(&text) : mem_strdup("");
}

static void check_golden(const char *path, const char *got)
{
    char *want;

    if (getenv("UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "wb");

        assert_non_null(file);
        fputs(got, file);
        fclose(file);
    }
    want = file_text(path);
    if (strcmp(got, want) != 0) {
        print_error("%s differs; got:\n%s\n", path, got);
        free(want);
        fail();
    }
    free(want);
}

static int by_name(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;

    return strcmp(*left, *right);
}

/* The names of a folder's files that end in `end`, sorted; each to free(). */
static char **file_names(const char *folder, const char *end, size_t *out_n)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    char **names = NULL;
    size_t n = 0, cap = 0;

    while (dir && (entry = readdir(dir))) {
        size_t len = strlen(entry->d_name);

        if (len <= strlen(end) || strcmp(entry->d_name + len - strlen(end), end) != 0)
            continue;
        mem_grow(names, n, cap);
        names[n++] = mem_strdup(entry->d_name);
    }
    if (dir)
        closedir(dir);
    if (n > 0)
        qsort(names, n, sizeof(*names), by_name);
    *out_n = n;
    return names;
}

/* ---- our own cases ---- */

/* A canonical GangJob is submitted like any other and stays what it is. */
static void check_canonical(const json_t *gangjob)
{
    struct job_decode_options options = {0};
    json_t *documents = json_pack("[O]", gangjob), *again = NULL;
    struct job_problem problem = {0};

    if (jobs_decode(documents, &options, &again, &problem) < 0)
        fail_msg("again: %s: %s", problem.error.field, problem.error.text);
    assert_true(json_equal(json_array_get(again, 0), gangjob));
    json_decref(again);
    json_decref(documents);
}

static void decode_file(const char *path, struct buf *out)
{
    struct job_decode_options options = {.name_seed = 1, .one_job = strstr(path, "one-job") != NULL};
    CLEANUP(manifest) *manifest = NULL;
    struct job_problem problem = {0};
    json_t *documents, *gangjobs = NULL, *gangjob;
    size_t i;

    if (manifest_read_file(path, &MANIFEST_LIMITS_DEFAULT, &manifest, &problem.error) < 0)
        fail_msg("%s", problem.error.text);
    documents = documents_of(manifest);
    if (jobs_decode(documents, &options, &gangjobs, &problem) < 0)
        problem_text(manifest, &problem, out);
    json_array_foreach (gangjobs, i, gangjob) {
        char *yaml = manifest_to_yaml(gangjob);

        check_canonical(gangjob);
        buf_addf(out, "%s%s", i > 0 ? "---\n" : "", yaml);
        free(yaml);
    }
    json_decref(gangjobs);
    json_decref(documents);
}

static void test_decode_golden__case(void **state)
{
    char path[300], want[300];
    BUF got = {0};

    snprintf(path, sizeof(path), CASES "/%s", (const char *)*state);
    snprintf(want, sizeof(want), "%.*s.want", (int)(strlen(path) - strlen(".yaml")), path);
    decode_file(path, &got);
    check_golden(want, buf_str(&got));
}

static int run_cases(void)
{
    struct CMUnitTest *tests;
    size_t n;
    char **names = file_names(CASES, ".yaml", &n);
    int failed = n == 0;

    tests = mem_array(struct CMUnitTest, n + 1);
    for (size_t i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){names[i], test_decode_golden__case, NULL, NULL, names[i]};
    failed += _cmocka_run_group_tests("decode cases", tests, n, NULL, NULL);
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
    free(tests);
    return failed;
}

/* ---- published manifests ---- */

static void summary(const json_t *gangjob, struct buf *out)
{
    struct arena arena = {0};
    struct job_spec job;
    struct error err = {0};

    if (job_spec_parse(gangjob, &arena, &job, &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
    buf_addf(out, " %s/%s", job.ns, job.name);
    for (size_t g = 0; g < job.shapes[0].n_groups; g++) {
        const struct job_group *group = &job.shapes[0].groups[g];

        buf_addf(out, " %s*%zu", group->name, group->replicas);
        for (size_t c = 0; c < group->n_claims; c++)
            buf_addf(out, ":%s%s", group->claims[c].name, group->claims[c].object ? "" : "(absent)");
    }
    if (*job.queue)
        buf_addf(out, " in %s", job.queue);
    buf_addc(out, ';');
    arena_release(&arena);
}

/* What is created with kubectl beside the work, as `dra-submit --skip` leaves it out. */
static bool is_beside(const json_t *document)
{
    static const char *const kinds[] = {"Namespace",     "DeviceClass", "DeviceTaintRule", "ComputeDomain",
                                        "PriorityClass", "Workload",    "PodGroup"};
    const char *kind = json_string_value(json_object_get(document, "kind"));

    for (size_t i = 0; kind && i < ARRAY_SIZE(kinds); i++)
        if (strcmp(kinds[i], kind) == 0)
            return true;
    return false;
}

static void inventory_result(const struct manifest *manifest, bool skip_beside, struct buf *out)
{
    struct job_decode_options options = {.name_seed = 1};
    struct job_problem problem = {0};
    json_t *documents = json_array(), *gangjobs = NULL, *gangjob;
    size_t index[100], n = 0, i;

    for (i = 0; i < manifest_n_documents(manifest) && n < ARRAY_SIZE(index); i++)
        if (!skip_beside || !is_beside(manifest_document(manifest, i))) {
            json_array_append(documents, manifest_document(manifest, i));
            index[n++] = i;
        }
    if (jobs_decode(documents, &options, &gangjobs, &problem) < 0) {
        problem.document = n > 0 ? index[problem.document] : 0;
        buf_adds(out, "refused: line ");
        problem_text(manifest, &problem, out);
    } else {
        buf_adds(out, "accepted:");
        json_array_foreach (gangjobs, i, gangjob) {
            check_canonical(gangjob);
            summary(gangjob, out);
        }
    }
    buf_addc(out, '\n');
    json_decref(gangjobs);
    json_decref(documents);
}

static void inventory_line(const char *folder, const char *name, struct buf *out)
{
    CLEANUP(manifest) *manifest = NULL;
    struct error err = {0};
    char path[300];
    bool beside = false;

    snprintf(path, sizeof(path), INVENTORY "/%s/%s", folder, name);
    if (manifest_read_file(path, &MANIFEST_LIMITS_DEFAULT, &manifest, &err) < 0)
        fail_msg("%s", err.text);
    buf_addf(out, "%s/%s: ", folder, name);
    inventory_result(manifest, false, out);
    for (size_t i = 0; i < manifest_n_documents(manifest); i++)
        beside = beside || is_beside(manifest_document(manifest, i));
    if (!beside)
        return;
    buf_adds(out, "  with --skip: ");
    inventory_result(manifest, true, out);
}

static void test_decode_golden__published_manifests(void **state)
{
    static const char *const folders[] = {"workloads", "batch"};
    BUF got = {0};

    (void)state;
    if (access(INVENTORY, R_OK) != 0)
        skip();
    for (size_t f = 0; f < ARRAY_SIZE(folders); f++) {
        char folder[300], **names;
        size_t n;

        snprintf(folder, sizeof(folder), INVENTORY "/%s", folders[f]);
        names = file_names(folder, ".yaml", &n);
        for (size_t i = 0; i < n; i++) {
            inventory_line(folders[f], names[i], &got);
            free(names[i]);
        }
        free(names);
    }
    check_golden(GOLDEN, buf_str(&got));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_decode_golden__published_manifests)};

    return run_cases() + cmocka_run_group_tests(tests, NULL, NULL);
}
