/* submit and apply: files to the server, and its answer or its problems back to the files' lines. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cli/call.h"
#include "cli/commands.h"
#include "cli/jobs.h"
#include "cli/sources.h"
#include "cli/table.h"
#include "cli/text.h"

#include "allocator/base/banned.h"

/* A key of its own for each submission, so that sending it once more after a silent server submits nothing twice. */
static void random_key(char out[33])
{
    unsigned char bytes[16];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        memset(bytes, 0, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static int post_documents(struct cli *cli, const char *path, const struct sources *sources, const char *key,
                          json_t **out)
{
    json_t *body = json_pack("{s:O}", "documents", sources->documents);
    struct request request = {.method = "POST", .path = path, .body = body, .idempotency_key = key};
    struct response response = {0};
    struct error err = {0};
    struct client *client = cli_client(cli, &err);
    int status = EXIT_OK, rc = client ? client_request(client, &request, &response, &err) : -1;

    if (rc < 0 && client && key && err.code == ERR_TIMEOUT) { /* it may have happened: the key tells */
        response_release(&response);
        err = (struct error){0};
        rc = client_request(client, &request, &response, &err);
    }
    if (rc < 0)
        status = sources_problems(cli, sources, response.json, &err);
    else
        *out = json_incref(response.json);
    response_release(&response);
    json_decref(body);
    return status;
}

/* ---- submit ---- */

static void submit_path(const struct cli *cli, struct buf *out)
{
    buf_adds(out, "/v1/jobs");
    url_query(out, "namespace", cli_namespace(cli));
    url_query(out, "queue", cli_queue(cli));
    url_query(out, "oneJob", args_has(&cli->args, OPT_ONE_JOB) ? "true" : NULL);
    url_query(out, "dryRun", args_has(&cli->args, OPT_DRY_RUN) ? "true" : NULL);
}

/* "job 17 default/train submitted to queue vision"; why it waits nobody knows yet, but for one that is held. */
static void job_line(struct cli *cli, const json_t *job)
{
    BUF line = {0};

    job_title(job, &line);
    buf_adds(&line, " submitted to queue ");
    text_field(&line, job, "queue");
    if (strcmp(field_text(job, "state", ""), "Held") == 0)
        buf_adds(&line, ", held");
    fprintf(cli->out, "%s\n", buf_str(&line));
}

/* "default/train would be accepted by queue vision. The gang fits ..." */
static void prediction_line(struct cli *cli, const json_t *job)
{
    const json_t *effective = json_object_get(json_object_get(job, "prediction"), "effectivePlacement");
    BUF line = {0};

    text_field(&line, job, "namespace");
    buf_addc(&line, '/');
    text_field(&line, job, "name");
    buf_adds(&line, " would be accepted by queue ");
    text_field(&line, job, "queue");
    buf_adds(&line, ". ");
    text_field(&line, json_object_get(job, "prediction"), "summary");
    if (strcmp(field_text(effective, "from", "default"), "default") != 0) {
        buf_adds(&line, " Placing: ");
        text_placement(&line, effective);
        buf_addc(&line, '.');
    }
    fprintf(cli->out, "%s\n", buf_str(&line));
}

static void print_submitted(struct cli *cli, const json_t *answer)
{
    const json_t *jobs = json_object_get(answer, "jobs"), *job;
    bool dry = args_has(&cli->args, OPT_DRY_RUN);
    size_t i;

    if (is_document(cli)) {
        document_print(cli, answer);
        return;
    }
    if (cli->output != OUTPUT_TABLE && !dry) {
        jobs_print(cli, jobs);
        return;
    }
    json_array_foreach (jobs, i, job)
        (dry ? prediction_line : job_line)(cli, job);
}

static int wait_for_all(struct cli *cli, const json_t *jobs)
{
    int64_t timeout_ms = -1;
    struct error err = {0};
    const json_t *job;
    int worst = EXIT_OK;
    size_t i;

    if (args_duration(&cli->args, OPT_TIMEOUT, &timeout_ms, &err) < 0)
        return cli_usage(cli, "%s", err.text);
    json_array_foreach (jobs, i, job) {
        BUF id = {0};
        int status;

        text_field(&id, job, "id");
        status = job_wait(cli, buf_str(&id), "ended", &timeout_ms);
        worst = worst == EXIT_OK ? status : worst;
    }
    return worst;
}

static int submit(struct cli *cli, const struct sources *sources)
{
    char own_key[33];
    const char *key = args_value(&cli->args, OPT_KEY, own_key);
    struct error err = {0};
    json_t *answer = NULL;
    BUF path = {0};
    int status;

    random_key(own_key);
    if (!cli_client(cli, &err))
        return cli_fail(cli, &err);
    submit_path(cli, &path);
    status = post_documents(cli, buf_str(&path), sources, args_has(&cli->args, OPT_DRY_RUN) ? NULL : key, &answer);
    if (status == EXIT_OK) {
        print_submitted(cli, answer);
        fflush(cli->out);
    }
    if (status == EXIT_OK && args_has(&cli->args, OPT_WAIT) && !args_has(&cli->args, OPT_DRY_RUN))
        status = wait_for_all(cli, json_object_get(answer, "jobs"));
    json_decref(answer);
    return status;
}

int run_submit(struct cli *cli)
{
    struct sources sources;
    int status = sources_read(cli, &sources);

    if (status == EXIT_OK)
        status = submit(cli, &sources);
    sources_release(&sources);
    return status;
}

/* ---- apply ---- */

static void print_applied(struct cli *cli, const json_t *answer)
{
    const json_t *applied = json_object_get(answer, "applied"), *one;
    size_t i;

    if (is_document(cli)) {
        document_print(cli, answer);
        return;
    }
    json_array_foreach (applied, i, one) {
        BUF line = {0};

        text_field(&line, one, "kind");
        buf_addc(&line, '/');
        text_field(&line, one, "name");
        if (cli->output != OUTPUT_NAME) {
            buf_addc(&line, ' ');
            text_field(&line, one, "change");
        }
        fprintf(cli->out, "%s\n", buf_str(&line));
    }
}

int run_apply(struct cli *cli)
{
    struct sources sources;
    json_t *answer = NULL;
    int status = sources_read(cli, &sources);

    if (status == EXIT_OK)
        status = post_documents(cli, "/v1/apply", &sources, NULL, &answer);
    if (status == EXIT_OK)
        print_applied(cli, answer);
    json_decref(answer);
    sources_release(&sources);
    return status;
}
