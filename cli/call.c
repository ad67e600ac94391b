#include "cli/call.h"

#include <string.h>
#include <time.h>

#include "cli/text.h"

#include "allocator/base/banned.h"

#define REQUEST_TIMEOUT_MS 30000

struct client *cli_client(struct cli *cli, struct error *err)
{
    int64_t timeout_ms = REQUEST_TIMEOUT_MS;
    struct settings settings;

    if (cli->client)
        return cli->client;
    if (args_duration(&cli->args, OPT_REQUEST_TIMEOUT, &timeout_ms, err) < 0 || settings_load(cli, &settings, err) < 0)
        return NULL;
    cli->client = client_new(&settings, timeout_ms > 0 ? timeout_ms : 1);
    return cli->client;
}

int cli_send(struct cli *cli, const char *method, const char *path, const json_t *body, json_t **out)
{
    struct request request = {.method = method, .path = path, .body = body};
    struct response response = {0};
    struct error err = {0};
    struct client *client = cli_client(cli, &err);
    int status = EXIT_OK;

    if (!client || client_request(client, &request, &response, &err) < 0)
        status = cli_fail(cli, &err);
    else if (out && response.json)
        *out = json_incref(response.json);
    else if (out)
        *out = json_stringn(buf_str(&response.text), response.text.len);
    if (status == EXIT_OK && out && !*out) {
        error_set(&err, ERR_REMOTE, "the answer of the server cannot be read");
        status = cli_fail(cli, &err);
    }
    response_release(&response);
    return status;
}

int cli_get(struct cli *cli, const char *path, json_t **out)
{
    return cli_send(cli, "GET", path, NULL, out);
}

const char *cli_namespace(const struct cli *cli)
{
    const char *configured = cli->client ? client_settings(cli->client)->ns : NULL;

    return args_value(&cli->args, OPT_NAMESPACE, configured);
}

const char *cli_queue(const struct cli *cli)
{
    const char *configured = cli->client ? client_settings(cli->client)->queue : NULL;

    return args_value(&cli->args, OPT_QUEUE, configured);
}

void job_path(const struct cli *cli, const char *word, struct buf *out)
{
    const char *ns = cli->args.values[OPT_NAMESPACE];

    if (strncmp(word, "job/", 4) == 0)
        word += 4;
    buf_adds(out, "/v1/jobs/");
    if (ns && !strchr(word, '/') && strspn(word, "0123456789") != strlen(word)) {
        url_add(out, ns);
        url_add(out, "/");
    }
    url_add(out, word);
}

int64_t cli_now_ms(struct cli *cli)
{
    const struct request request = {.method = "GET", .path = "/v1/clock"};
    struct response response = {0};
    struct timespec now;
    int64_t ms = 0;

    if (cli->client && client_request(cli->client, &request, &response, NULL) == 0)
        ms = field_int(response.json, "milliseconds");
    response_release(&response);
    if (ms > 0)
        return ms;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
