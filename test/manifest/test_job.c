/* The view into a canonical GangJob. */
#include "test/support/cmocka.h"

#include <string.h>

#include "test/manifest/decode_text.h"

static json_t *decode_first(const char *path)
{
    struct job_decode_options options = {.name_seed = 1};
    CLEANUP(manifest) *manifest = NULL;
    struct job_problem problem = {0};
    json_t *documents, *gangjobs = NULL, *first;

    assert_int_equal(manifest_read_file(path, &MANIFEST_LIMITS_DEFAULT, &manifest, &problem.error), 0);
    documents = documents_of(manifest);
    assert_int_equal(jobs_decode(documents, &options, &gangjobs, &problem), 0);
    first = json_incref(json_array_get(gangjobs, 0));
    json_decref(gangjobs);
    json_decref(documents);
    return first;
}

static void test_job__all_fields(void **state)
{
    json_t *gangjob = decode_first("test/manifest/decode/gangjob.yaml");
    struct arena arena = {0};
    struct job_spec job;
    const struct job_group *workers;

    (void)state;
    assert_int_equal(job_spec_parse(gangjob, &arena, &job, NULL), 0);
    assert_string_equal(job.name, "big");
    assert_string_equal(job.ns, "default");
    assert_string_equal(job.queue, "research");
    assert_true(job.has_priority && job.priority == 10 && !job.priority_class);
    assert_int_equal(job.max_runtime_ms, 7200000);
    assert_int_equal(job.retries, 1);
    assert_int_equal(job.ttl_ms, 0);
    assert_true(job.hold && job.same_alternative);
    assert_int_equal(job.placement, JOB_PLACEMENT_PACK);
    assert_int_equal(job.n_depends_on, 1);
    assert_string_equal(job.depends_on[0], "prepare");
    assert_int_equal(job.n_shapes, 2);
    assert_string_equal(job.shapes[0].name, "");
    assert_string_equal(job.shapes[1].name, "two");
    assert_int_equal(job.shapes[0].n_groups, 2);
    workers = &job.shapes[0].groups[0];
    assert_int_equal(workers->replicas, 4);
    assert_int_equal(workers->min_replicas, 2);
    assert_int_equal(job.shapes[0].groups[1].min_replicas, 1);
    assert_int_equal(workers->n_claims, 3);
    assert_int_equal(workers->claims[0].source, JOB_CLAIM_OWN);
    assert_string_equal(json_string_value(json_object_get(workers->claims[0].object, "kind")), "ResourceClaimTemplate");
    assert_int_equal(workers->claims[1].source, JOB_CLAIM_SHARED);
    assert_int_equal(workers->claims[1].shared, 0);
    assert_int_equal(workers->claims[2].source, JOB_CLAIM_EXISTING);
    assert_string_equal(workers->claims[2].name, "other");
    assert_int_equal(job.n_shared, 1);
    assert_string_equal(job.shared_names[0], "scratch");
    assert_ptr_equal(job.shared[0], workers->claims[1].object);
    assert_int_equal(job.n_constraints, 2);
    assert_int_equal(job.constraints[0].kind, JOB_MATCH_ATTRIBUTE);
    assert_string_equal(job.constraints[0].key, "gpu.example.com/model");
    assert_string_equal(job.constraints[0].groups[0], "workers");
    assert_string_equal(job.constraints[0].requests[0], "gpu");
    assert_int_equal(job.constraints[1].kind, JOB_MATCH_NODE_LABEL);
    assert_true(job.constraints[1].preferred && job.constraints[1].n_groups == 0);
    arena_release(&arena);
    json_decref(gangjob);
}

static void test_job__defaults(void **state)
{
    json_t *gangjob = json_loads(
        "{\"apiVersion\":\"queue.dra/v1\",\"kind\":\"GangJob\",\"metadata\":{\"name\":\"j\"},\"spec\":{\"groups\":[{"
        "\"name\":\"g\",\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\"}]}}}]}}",
        0, NULL);
    struct arena arena = {0};
    struct job_spec job;

    (void)state;
    assert_int_equal(job_spec_parse(gangjob, &arena, &job, NULL), 0);
    assert_string_equal(job.queue, "");
    assert_null(job.priority_class);
    assert_false(job.has_priority || job.hold || job.same_alternative);
    assert_int_equal(job.max_runtime_ms, 0);
    assert_int_equal(job.ttl_ms, -1);
    assert_int_equal(job.retries, 0);
    assert_int_equal(job.shapes[0].groups[0].replicas, 1);
    assert_int_equal(job.placement, JOB_PLACEMENT_DEFAULT);
    arena_release(&arena);
    json_decref(gangjob);
}

static const struct member_case {
    const char *name;
    const char *file;
    size_t group, index;
    const char *want;
} member_cases[] = {
    {"a Job's members are its pods", "job", 0, 3, "train-3"},
    {"a JobSet's have role, job and index", "jobset", 1, 5, "loop-workers-2-1"},
    {"its single ones too", "jobset", 0, 0, "loop-driver-0-0"},
    {"pods keep their name", "pods-grouped", 1, 0, "worker-6mqbz"},
    {"a GangJob's have its group's", "gangjob", 0, 2, "big-workers-2"},
};

static void test_job__member_name(void **state)
{
    const struct member_case *c = *state;
    struct arena arena = {0};
    struct job_spec job;
    json_t *gangjob;
    BUF path = {0};
    BUF name = {0};

    buf_addf(&path, "test/manifest/decode/%s.yaml", c->file);
    gangjob = decode_first(buf_str(&path));
    assert_int_equal(job_spec_parse(gangjob, &arena, &job, NULL), 0);
    job_member_name(&job, &job.shapes[0].groups[c->group], c->index, &name);
    assert_string_equal(buf_str(&name), c->want);
    arena_release(&arena);
    json_decref(gangjob);
}

static void test_job__anything_is_refused_not_crashed_on(void **state)
{
    static const char *const texts[] = {"null",
                                        "[]",
                                        "{}",
                                        "{\"metadata\":[]}",
                                        "{\"metadata\":{},\"spec\":{}}",
                                        "{\"metadata\":{\"name\":1},\"spec\":{\"groups\":[{}]}}",
                                        "{\"metadata\":{},\"spec\":{\"groups\":[1]}}"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        json_t *gangjob = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        struct arena arena = {0};
        struct error err = {0};
        struct job_spec job;

        assert_int_equal(job_spec_parse(gangjob, &arena, &job, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        arena_release(&arena);
        json_decref(gangjob);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job__all_fields),
        cmocka_unit_test(test_job__defaults),
        cmocka_unit_test(test_job__anything_is_refused_not_crashed_on),
    };

    return RUN_TABLE(test_job__member_name, member_cases) + cmocka_run_group_tests(tests, NULL, NULL);
}
