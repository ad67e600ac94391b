/* Any bytes as a manifest: parse, look fields up, decode as jobs and as an administrator's documents, write back.
 * Whatever was accepted must hold its promises: YAML that is written reads back equal, and a canonical GangJob stays
 * what it is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/compiler.h"
#include "allocator/base/invariant.h"
#include "queued/manifest/job.h"
#include "queued/manifest/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct manifest_limits limits = {
    .max_bytes = 1 << 20, .max_depth = 50, .max_nodes = 20000, .max_documents = 50};

static void write_and_read(const json_t *value)
{
    CLEANUP(manifest) *manifest = NULL;
    struct manifest_limits wide = MANIFEST_LIMITS_DEFAULT;
    char *yaml = manifest_to_yaml(value);

    INVARIANT(manifest_parse("again", yaml, strlen(yaml), &wide, &manifest, NULL) == 0);
    INVARIANT(json_is_null(value) || json_equal(value, manifest_document(manifest, 0)));
    free(yaml);
}

static void decode_again(const json_t *gangjobs)
{
    struct job_decode_options options = {.name_seed = 1};
    json_t *again = NULL;

    INVARIANT(jobs_decode(gangjobs, &options, &again, NULL) == 0);
    INVARIANT(json_equal(again, gangjobs));
    json_decref(again);
}

static void decode(const struct manifest *manifest, const json_t *documents, bool one_job)
{
    struct job_decode_options options = {.name_seed = 1, .one_job = one_job};
    struct job_problem problem = {0};
    json_t *gangjobs = NULL;

    if (jobs_decode(documents, &options, &gangjobs, &problem) < 0) {
        INVARIANT(problem.error.code != ERR_NONE);
        (void)manifest_line(manifest, problem.document, problem.error.field);
        return;
    }
    decode_again(gangjobs);
    json_decref(gangjobs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(manifest) *manifest = NULL;
    struct error err = {0};
    json_t *documents;

    if (manifest_parse("fuzz", (const char *)data, size, &limits, &manifest, &err) < 0) {
        INVARIANT(err.code != ERR_NONE);
        return 0;
    }
    documents = json_array();
    for (size_t i = 0; i < manifest_n_documents(manifest); i++) {
        json_array_append(documents, manifest_document(manifest, i));
        (void)!admin_document_check(manifest_document(manifest, i), NULL);
        write_and_read(manifest_document(manifest, i));
    }
    decode(manifest, documents, false);
    decode(manifest, documents, true);
    json_decref(documents);
    return 0;
}
