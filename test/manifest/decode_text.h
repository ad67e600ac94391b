/* test/manifest/decode_text.h - decode a text and say what came of it, for tables and goldens. */
#ifndef QUEUED_TEST_MANIFEST_DECODE_TEXT_H
#define QUEUED_TEST_MANIFEST_DECODE_TEXT_H

#include <string.h>

#include "queued/manifest/job.h"
#include "queued/manifest/yaml.h"

/* All documents as one array; a new reference. */
static inline json_t *documents_of(const struct manifest *manifest)
{
    json_t *documents = json_array();

    for (size_t i = 0; i < manifest_n_documents(manifest); i++)
        json_array_append(documents, manifest_document(manifest, i));
    return documents;
}

/* Line, field and words of a refusal: "3 spec.parallelism: ..." */
static inline void problem_text(const struct manifest *manifest, const struct job_problem *problem, struct buf *out)
{
    buf_addf(out, "%zu %s: %s", manifest_line(manifest, problem->document, problem->error.field), problem->error.field,
             problem->error.text);
}

#endif
