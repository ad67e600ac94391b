/* Requests that need no state: routes, roles, parameters, bodies, problem documents. Over TCP and over the Unix socket.
 */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/routes.h"
#include "test/api/fixture.h"

#include "allocator/base/banned.h"

#define JSON "Content-Type: application/json\r\n"
#define YAML "Content-Type: application/yaml\r\n"
#define ONE  "{\"documents\":[{\"kind\":\"Pod\"}]}"

static const struct request_case {
    const char *name;
    const char *token; /* NULL: the Unix socket; "": TCP without a token */
    const char *method, *target, *headers, *body;
    int want_status;
    const char *want_member, *want_value; /* of the answer's JSON */
} request_cases[] = {
    {"health needs no token", "", "GET", "/healthz", NULL, NULL, 200, "status", "ok"},
    {"readiness needs no token", "", "GET", "/readyz", NULL, NULL, 200, "status", "ready"},
    {"the version needs no token", "", "GET", "/v1/version", NULL, NULL, 200, "cluster", "{\"kind\":\"fake\"}"},
    {"everything else needs one", "", "GET", "/v1/jobs", NULL, NULL, 401, "code", "denied"},
    {"also what is not there", "", "GET", "/v1/nothing", NULL, NULL, 401, "status", "401"},
    {"also with a wrong method", "", "PUT", "/v1/jobs", NULL, NULL, 401, "title", "Unauthorized"},
    {"an unknown token", "guess", "GET", "/v1/jobs", NULL, NULL, 401, "detail", "the token is not known"},
    {"another scheme", "", "GET", "/v1/jobs", "Authorization: Basic YTpi\r\n", NULL, 401, "detail",
     "Authorization must be: Bearer TOKEN"},
    {"a viewer reads", "viewer", "GET", "/v1/jobs", NULL, NULL, 200, "items", "[]"},
    {"a viewer does not submit", "viewer", "POST", "/v1/jobs", JSON, ONE, 403, "detail",
     "this needs the role submitter; viewer has viewer"},
    {"a submitter submits", "submitter", "POST", "/v1/jobs", JSON, ONE, 201, "jobs", "[{\"id\":1}]"},
    {"a dry run creates nothing", "submitter", "POST", "/v1/jobs?dryRun=true", JSON, ONE, 200, "jobs", "[{\"id\":1}]"},
    {"a submitter does not apply", "submitter", "POST", "/v1/apply", JSON, ONE, 403, "code", "denied"},
    {"a queue administrator does not apply", "queue-admin", "POST", "/v1/apply", JSON, ONE, 403, "code", "denied"},
    {"an administrator applies", "admin", "POST", "/v1/apply", JSON, ONE, 200, "applied", "[]"},
    {"whoever opens the socket is an administrator", NULL, "POST", "/v1/apply", JSON, ONE, 200, "applied", "[]"},
    {"a token on the socket decides", NULL, "POST", "/v1/apply", JSON "Authorization: Bearer viewer\r\n", ONE, 403,
     "code", "denied"},
    {"tokens are for administrators", "queue-admin", "GET", "/v1/tokens", NULL, NULL, 403, "code", "denied"},

    {"no such path", "viewer", "GET", "/v1/nothing", NULL, NULL, 404, "detail", "there is no such path"},
    {"the root", "viewer", "GET", "/", NULL, NULL, 404, "code", "not-found"},
    {"a longer path", "viewer", "GET", "/v1/jobs/a/b", NULL, NULL, 404, "code", "not-found"},
    {"a slash at the end", "viewer", "GET", "/v1/jobs/", NULL, NULL, 404, "code", "not-found"},
    {"a wrong method", "viewer", "PUT", "/v1/jobs", NULL, NULL, 405, "detail", "this path takes POST, GET, HEAD"},
    {"an unknown method", "viewer", "BREW", "/v1/jobs/1", NULL, NULL, 405, "code", "invalid"},
    {"methods have case", "viewer", "get", "/v1/jobs", NULL, NULL, 405, "code", "invalid"},
    {"a malformed escape", "viewer", "GET", "/v1/jobs/%zz", NULL, NULL, 400, "code", "invalid"},

    {"an unknown parameter", "viewer", "GET", "/v1/jobs?colour=red", NULL, NULL, 400, "field", "colour"},
    {"a parameter of another route", "viewer", "GET", "/v1/jobs/1?limit=1", NULL, NULL, 400, "field", "limit"},
    {"a number too small", "viewer", "GET", "/v1/jobs?limit=0", NULL, NULL, 400, "detail",
     "limit must be a number from 1 to 1000"},
    {"a number too large", "viewer", "GET", "/v1/jobs?limit=1001", NULL, NULL, 400, "field", "limit"},
    {"no number", "viewer", "GET", "/v1/jobs?limit=ten", NULL, NULL, 400, "field", "limit"},
    {"a number with something behind", "viewer", "GET", "/v1/jobs?limit=1x", NULL, NULL, 400, "field", "limit"},
    {"a number that fits nowhere", "viewer", "GET", "/v1/jobs?after=99999999999999999999", NULL, NULL, 400, "field",
     "after"},
    {"an empty text", "viewer", "GET", "/v1/jobs?queue=", NULL, NULL, 400, "field", "queue"},
    {"an unknown state", "viewer", "GET", "/v1/jobs?state=bored", NULL, NULL, 400, "field", "state"},
    {"no flag", "submitter", "POST", "/v1/jobs?dryRun=perhaps", JSON, ONE, 400, "field", "dryRun"},
    {"an unknown state to wait for", "viewer", "GET", "/v1/jobs/1?waitFor=bored", NULL, NULL, 400, "field", "waitFor"},

    {"no content type", "submitter", "POST", "/v1/jobs", NULL, ONE, 415, "detail",
     "Content-Type must be application/json or application/yaml"},
    {"a form", "submitter", "POST", "/v1/jobs", "Content-Type: application/x-www-form-urlencoded\r\n", ONE, 415, "code",
     "invalid"},
    {"parameters of the content type", "submitter", "POST", "/v1/jobs",
     "Content-Type: application/json; charset=utf-8\r\n", ONE, 201, "jobs", "[{\"id\":1}]"},
    {"YAML where it is not read", "admin", "POST", "/v1/tokens", YAML, "a: b", 415, "code", "invalid"},
    {"an empty body", "submitter", "POST", "/v1/jobs", JSON, NULL, 400, "code", "invalid"},
    {"no JSON", "submitter", "POST", "/v1/jobs", JSON, "{\"documents\": [", 400, "code", "invalid"},
    {"JSON and more", "submitter", "POST", "/v1/jobs", JSON, ONE "x", 400, "code", "invalid"},
    {"a repeated key", "submitter", "POST", "/v1/jobs", JSON, "{\"documents\":[],\"documents\":[]}", 400, "code",
     "invalid"},
    {"no object", "submitter", "POST", "/v1/jobs", JSON, "[]", 400, "code", "invalid"},
    {"no object for a token", "admin", "POST", "/v1/tokens", JSON, "[]", 400, "detail", "the body must be an object"},
    {"another field", "submitter", "POST", "/v1/jobs", JSON, "{\"documents\":[{}],\"queue\":\"a\"}", 400, "field",
     "queue"},
    {"no documents", "submitter", "POST", "/v1/jobs", JSON, "{\"documents\":[]}", 400, "field", "documents"},
    {"documents of another type", "submitter", "POST", "/v1/jobs", JSON, "{\"documents\":{}}", 400, "field",
     "documents"},
    {"a document that is no object", "submitter", "POST", "/v1/jobs", JSON, "{\"documents\":[{},1]}", 400, "detail",
     "document 1 is no object"},
    {"YAML", "submitter", "POST", "/v1/jobs", YAML, "kind: Pod\n---\nkind: Job\n", 201, "jobs", "[{\"id\":1}]"},
    {"malformed YAML", "submitter", "POST", "/v1/jobs", YAML, "kind: [", 400, "code", "invalid"},
    {"YAML that is no object", "submitter", "POST", "/v1/jobs", YAML, "- a\n", 400, "code", "invalid"},
    {"a body where none is taken", "submitter", "POST", "/v1/jobs/1/cancel", JSON, "{}", 400, "detail",
     "this request takes no body"},
    {"a body on a GET", "viewer", "GET", "/v1/jobs", JSON, "{}", 400, "code", "invalid"},
    {"an empty idempotency key", "submitter", "POST", "/v1/jobs", JSON "Idempotency-Key:\r\n", ONE, 400, "field",
     "Idempotency-Key"},

    {"cancel", "submitter", "POST", "/v1/jobs/7/cancel", NULL, NULL, 200, "name", "7"},
    {"a job by namespace and name", "submitter", "POST", "/v1/jobs/a%2Fb/hold", NULL, NULL, 200, "name", "a/b"},
    {"no such job", "viewer", "GET", "/v1/jobs/nobody", NULL, NULL, 404, "detail", "there is no job nobody"},
    {"a queue", "viewer", "GET", "/v1/queues/team%20a", NULL, NULL, 200, "name", "team a"},
    {"queues", "viewer", "GET", "/v1/queues", NULL, NULL, 200, "items", "[]"},
    {"resources", "viewer", "GET", "/v1/resources", NULL, NULL, 200, "items", "[]"},
    {"devices", "viewer", "GET", "/v1/devices", NULL, NULL, 200, "items", "[]"},
    {"nodes", "viewer", "GET", "/v1/nodes", NULL, NULL, 200, "items", "[]"},
    {"strays", "admin", "GET", "/v1/strays", NULL, NULL, 200, "items", "[]"},
    {"a token is made", "admin", "POST", "/v1/tokens", JSON, "{\"role\":\"viewer\"}", 201, "token", "secret"},
    {"a token goes", "admin", "DELETE", "/v1/tokens/3", NULL, NULL, 204, NULL, NULL},
    {"a queue goes", "admin", "DELETE", "/v1/queues/a", NULL, NULL, 204, NULL, NULL},
    {"the clock", "admin", "GET", "/v1/clock", NULL, NULL, 200, "now", "2026-01-01T00:00:00.000Z"},
    {"time moves", "admin", "POST", "/v1/clock/advance", JSON, "{\"milliseconds\":1500}", 200, "now",
     "2026-01-01T00:00:01.500Z"},
    {"time does not go back", "admin", "POST", "/v1/clock/advance", JSON, "{\"milliseconds\":-1}", 400, "field",
     "milliseconds"},
    {"time moves in whole milliseconds", "admin", "POST", "/v1/clock/advance", JSON, "{\"milliseconds\":1.5}", 400,
     "field", "milliseconds"},
    {"time does not take more", "admin", "POST", "/v1/clock/advance", JSON, "{\"milliseconds\":1,\"x\":1}", 400,
     "field", "milliseconds"},
    {"the cluster is told to fail", "admin", "POST", "/v1/cluster/command", JSON, "{\"nodeDown\":\"n1\"}", 204, NULL,
     NULL},
    {"a command that it does not know", "admin", "POST", "/v1/cluster/command", JSON, "{\"bad\":1}", 400, "field",
     "bad"},
    {"only administrators tell it", "queue-admin", "POST", "/v1/cluster/command", JSON, "{}", 403, "code", "denied"},
};

static void test_requests__answer(void **state)
{
    const struct request_case *c = *state;
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer = ask(fixture, c->token, c->method, c->target, c->headers, c->body);

    if (answer.status != c->want_status)
        print_error("%s\n", answer.body);
    assert_int_equal(answer.status, c->want_status);
    if (c->want_member)
        assert_string_equal(answer_member(&answer, c->want_member), c->want_value);
    if (answer.status >= 400)
        assert_string_equal(answer_header(&answer, "Content-Type"), "application/problem+json");
    assert_string_not_equal(answer_header(&answer, "X-Request-Id"), "");
    answer_release(&answer);
    fixture_free(fixture);
}

/* Whatever stands in a request: the answer is a problem, never silence. */
static const struct raw_case {
    const char *name;
    const char *bytes;
    int want;
} raw_cases[] = {
    {"words", "hello\r\n\r\n", 400},
    {"bare line ends", "GET /healthz HTTP/1.1\nHost: a\n\n", 400},
    {"TLS", "\x16\x03\x01\x02\x01\x01\n\n", 400},
    {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
    {"no host", "GET /healthz HTTP/1.1\r\n\r\n", 400},
    {"smuggling",
     "GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"another coding", "GET /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
    {"a malformed chunk", "POST /v1/jobs HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400},
    {"a stated length too large", "POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 65537\r\n\r\n", 413},
    {"a chunk too large", "POST /v1/jobs HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10001\r\n", 413},
    {"an expectation", "GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417},
    {"empty lines before a request", "\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", 200},
    {"an old client", "GET /healthz HTTP/1.0\r\n\r\n", 200},
    {"the form for proxies", "GET http://a/healthz HTTP/1.1\r\nHost: a\r\n\r\n", 200},
    {"a body in chunks",
     "POST /v1/jobs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer submitter\r\nContent-Type: application/json\r\n"
     "Transfer-Encoding: chunked\r\n\r\n10\r\n{\"documents\":[{}\r\n2\r\n]}\r\n0\r\n\r\n",
     201},
};

static void test_requests__raw(void **state)
{
    const struct raw_case *c = *state;
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer = ask_raw(fixture, c->bytes, strlen(c->bytes));

    assert_int_equal(answer.status, c->want);
    if (answer.status >= 400) {
        assert_string_equal(answer_header(&answer, "Content-Type"), "application/problem+json");
        assert_string_equal(answer_header(&answer, "Connection"), "close");
        assert_string_not_equal(answer_member(&answer, "detail"), "");
    }
    answer_release(&answer);
    fixture_free(fixture);
}

static void test_requests__head_is_get_without_body(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer get = ask(fixture, "viewer", "GET", "/v1/jobs", NULL, NULL);
    struct answer head = ask(fixture, "viewer", "HEAD", "/v1/jobs", NULL, NULL);

    (void)state;
    assert_int_equal(head.status, 200);
    assert_string_equal(head.body, "");
    assert_int_equal(strtol(answer_header(&head, "Content-Length"), NULL, 10), strlen(get.body));
    answer_release(&get);
    answer_release(&head);
    fixture_free(fixture);
}

static void test_requests__methods_are_named(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer = ask(fixture, "viewer", "PATCH", "/v1/queues/a", NULL, NULL);

    (void)state;
    assert_int_equal(answer.status, 405);
    assert_string_equal(answer_header(&answer, "Allow"), "GET, HEAD, DELETE");
    answer_release(&answer);
    fixture_free(fixture);
}

static void test_requests__etag_saves_the_body(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer first, second, third;
    char headers[128];

    (void)state;
    fake_core_add_job(fixture->core, 1, "a", "Pending");
    first = ask(fixture, "viewer", "GET", "/v1/jobs/1", NULL, NULL);
    snprintf(headers, sizeof(headers), "If-None-Match: \"x\", W/%s\r\n", answer_header(&first, "ETag"));
    second = ask(fixture, "viewer", "GET", "/v1/jobs/1", headers, NULL);
    assert_int_equal(second.status, 304);
    assert_string_equal(second.body, "");
    fake_core_set_state(fixture->core, 1, "Running");
    third = ask(fixture, "viewer", "GET", "/v1/jobs/1", headers, NULL);
    assert_int_equal(third.status, 200);
    answer_release(&first);
    answer_release(&second);
    answer_release(&third);
    fixture_free(fixture);
}

static void test_requests__options_reach_the_core(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer = ask(fixture, "submitter", "POST", "/v1/jobs?namespace=n&queue=q+1&oneJob&dryRun=false",
                               JSON "idempotency-key: k 1\r\n", ONE);

    (void)state;
    assert_int_equal(answer.status, 201);
    assert_string_equal(fixture->core->ns, "n");
    assert_string_equal(fixture->core->queue, "q 1");
    assert_string_equal(fixture->core->key, "k 1");
    assert_true(fixture->core->one_job);
    assert_false(fixture->core->dry_run);
    assert_string_equal(fixture->core->caller, "submitter");
    assert_int_equal(json_array_size(fixture->core->documents), 1);
    answer_release(&answer);

    answer = ask(fixture, "viewer", "GET", "/v1/jobs?state=running&limit=5&after=17", NULL, NULL);
    assert_string_equal(fixture->core->filter_state, "Running");
    assert_int_equal(fixture->core->filter.limit, 5);
    assert_int_equal(fixture->core->filter.after, 17);
    answer_release(&answer);
    fixture_free(fixture);
}

static void test_requests__problems_are_told_with_yaml_lines(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer;

    (void)state;
    error_field(&fixture->core->failure, "spec.x", "document 1: spec.x is unknown");
    fixture->core->problems =
        json_pack("[{s:i, s:s, s:s}, {s:i}]", "document", 1, "field", "spec.x", "detail", "no", "document", 9);
    answer = ask(fixture, "submitter", "POST", "/v1/jobs", YAML, "kind: Pod\n---\nkind: Job\nspec:\n  x: 1\n");
    assert_int_equal(answer.status, 400);
    assert_string_equal(answer_member(&answer, "field"), "spec.x");
    assert_string_equal(answer_member(&answer, "problems"),
                        "[{\"document\":1,\"field\":\"spec.x\",\"detail\":\"no\",\"line\":5},{\"document\":9}]");
    answer_release(&answer);
    answer = ask(fixture, "submitter", "POST", "/v1/jobs", JSON, ONE);
    assert_string_equal(answer_member(&answer, "problems"),
                        "[{\"document\":1,\"field\":\"spec.x\",\"detail\":\"no\"},{\"document\":9}]");
    answer_release(&answer);
    fixture_free(fixture);
}

static const struct failure_case {
    const char *name;
    enum err_code code;
    int want;
} failure_cases[] = {
    {"invalid", ERR_INVALID, 400}, {"not found", ERR_NOT_FOUND, 404}, {"conflict", ERR_CONFLICT, 409},
    {"limit", ERR_LIMIT, 429},     {"denied", ERR_DENIED, 403},       {"io", ERR_IO, 500},
    {"remote", ERR_REMOTE, 502},   {"timeout", ERR_TIMEOUT, 504},     {"unavailable", ERR_UNAVAILABLE, 503},
};

static void test_requests__failure_of_the_core(void **state)
{
    const struct failure_case *c = *state;
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer;

    error_set(&fixture->core->failure, c->code, "words with \xff bytes");
    answer = ask(fixture, "viewer", "GET", "/v1/jobs", NULL, NULL);
    assert_int_equal(answer.status, c->want);
    assert_string_equal(answer_member(&answer, "code"), err_code_name(c->code));
    assert_string_equal(answer_member(&answer, "detail"), "words with ? bytes");
    answer_release(&answer);
    answer = ask(fixture, "submitter", "POST", "/v1/jobs", JSON, ONE);
    assert_int_equal(answer.status, c->want);
    answer_release(&answer);
    fixture_free(fixture);
}

static void test_requests__not_ready_says_why(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer;

    (void)state;
    fixture->core->is_ready = false;
    answer = ask(fixture, "", "GET", "/readyz", NULL, NULL);
    assert_int_equal(answer.status, 503);
    assert_string_equal(answer_member(&answer, "detail"), "reading the cluster");
    answer_release(&answer);
    fixture_free(fixture);
}

static void test_requests__a_real_server_has_no_machine(void **state)
{
    struct fixture *fixture = fixture_new(&(struct fixture_options){.without_machine = true});
    struct answer answer = ask(fixture, "admin", "POST", "/v1/clock/advance", JSON, "{\"milliseconds\":1}");

    (void)state;
    assert_int_equal(answer.status, 404);
    answer_release(&answer);
    answer = ask(fixture, "admin", "POST", "/v1/cluster/command", JSON, "{}");
    assert_int_equal(answer.status, 404);
    answer_release(&answer);
    fixture_free(fixture);
}

static void test_requests__logs_are_text(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer = ask(fixture, "viewer", "GET", "/v1/jobs/1/logs?member=w-0&tail=7", NULL, NULL);

    (void)state;
    assert_string_equal(fixture->core->command, "logs 1 w-0 7");
    assert_string_equal(answer.body, "one\ntwo\n");
    assert_string_equal(answer_header(&answer, "Content-Type"), "text/plain; charset=utf-8");
    answer_release(&answer);
    fixture_free(fixture);
}

static void test_requests__metrics_are_text(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer = ask(fixture, "viewer", "GET", "/metrics", NULL, NULL);

    (void)state;
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.body, "# TYPE queued_launches_total counter\nqueued_launches_total 7\n"));
    assert_non_null(strstr(answer.body, "\nqueued_planner_last_round_seconds 0.25\n"));
    assert_non_null(strstr(answer.body, "# TYPE queued_jobs gauge\nqueued_jobs{state=\"Pending\"} 2\n"));
    assert_non_null(strstr(answer.body, "queued_ready 1\n"));
    answer_release(&answer);
    fixture_free(fixture);
}

/* Every reference of the description must lead somewhere, and every route must be in it. */
static void check_refs(const json_t *root, const json_t *value)
{
    const char *ref = json_string_value(json_object_get(value, "$ref")), *key;
    json_t *member;
    size_t i;

    if (ref) {
        assert_memory_equal(ref, "#/components/schemas/", 21);
        assert_non_null(json_object_get(json_object_get(json_object_get(root, "components"), "schemas"), ref + 21));
    }
    json_object_foreach ((json_t *)(uintptr_t)value, key, member)
        check_refs(root, member);
    json_array_foreach (value, i, member)
        check_refs(root, member);
}

static void test_requests__openapi_describes_every_route(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer = ask(fixture, "viewer", "GET", "/openapi.json", NULL, NULL);
    json_t *root = json_loads(answer.body, 0, NULL), *paths = json_object_get(root, "paths");

    (void)state;
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer_member(&answer, "openapi"), "3.1.0");
    assert_non_null(json_object_get(json_object_get(paths, "/v1/jobs"), "get"));
    assert_non_null(json_object_get(json_object_get(paths, "/v1/jobs"), "post"));
    assert_non_null(json_object_get(json_object_get(paths, "/v1/jobs/{job}/cancel"), "post"));
    check_refs(root, root);
    json_decref(root);
    answer_release(&answer);
    fixture_free(fixture);
}

static void check_standby(struct fixture *fixture, const char *token, const char *path, int status, const char *detail)
{
    struct answer answer = ask(fixture, token, "GET", path, NULL, NULL);

    assert_int_equal(answer.status, status);
    assert_string_equal(answer_member(&answer, "detail"), detail);
    answer_release(&answer);
}

static void test_requests__standby_answers_health_alone(void **state)
{
    struct fixture *fixture = fixture_new(&(struct fixture_options){.on_standby = true});

    (void)state;
    check_standby(fixture, "admin", "/v1/jobs", 503, "this server is on standby");
    api_standby(fixture->api, "another server leads: a");
    check_standby(fixture, NULL, "/healthz", 200, "");
    check_standby(fixture, "admin", "/readyz", 503, "another server leads: a");
    check_standby(fixture, "nobody", "/v1/jobs", 503, "another server leads: a");
    check_standby(fixture, "admin", "/metrics", 503, "another server leads: a");
    check_standby(fixture, NULL, "/no/such/path", 503, "another server leads: a");
    fixture_free(fixture);
}

static void test_requests__the_core_answers_when_it_leads(void **state)
{
    struct fixture *fixture = fixture_new(&(struct fixture_options){.on_standby = true});

    (void)state;
    api_standby(fixture->api, "another server leads: a");
    api_lead(fixture->api, fixture->core);
    check_standby(fixture, "admin", "/v1/jobs", 200, "");
    fixture_free(fixture);
}

/* The room's README lists every route as "METHOD /path". */
static void test_requests__readme_lists_every_route(void **state)
{
    FILE *file = fopen("api/README.md", "re");
    char bytes[4096];
    size_t n;
    BUF readme = {0};

    (void)state;
    assert_non_null(file);
    while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0)
        buf_add(&readme, bytes, n);
    fclose(file);
    for (const struct route *route = routes_all(); route->method; route++) {
        BUF name = {0};

        buf_addf(&name, "%s %s", route->method, route->path);
        if (!strstr(buf_str(&readme), buf_str(&name)))
            fail_msg("api/README.md does not list %s", buf_str(&name));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests__head_is_get_without_body),
        cmocka_unit_test(test_requests__methods_are_named),
        cmocka_unit_test(test_requests__etag_saves_the_body),
        cmocka_unit_test(test_requests__options_reach_the_core),
        cmocka_unit_test(test_requests__problems_are_told_with_yaml_lines),
        cmocka_unit_test(test_requests__not_ready_says_why),
        cmocka_unit_test(test_requests__a_real_server_has_no_machine),
        cmocka_unit_test(test_requests__logs_are_text),
        cmocka_unit_test(test_requests__metrics_are_text),
        cmocka_unit_test(test_requests__readme_lists_every_route),
        cmocka_unit_test(test_requests__openapi_describes_every_route),
        cmocka_unit_test(test_requests__standby_answers_health_alone),
        cmocka_unit_test(test_requests__the_core_answers_when_it_leads),
    };
    int failed = RUN_TABLE(test_requests__answer, request_cases);

    failed += RUN_TABLE(test_requests__raw, raw_cases);
    failed += RUN_TABLE(test_requests__failure_of_the_core, failure_cases);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
