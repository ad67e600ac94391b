/* wait, logs, events: what takes its time. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allocator/base/str.h"
#include "cli/call.h"
#include "cli/commands.h"
#include "cli/jobs.h"
#include "cli/table.h"
#include "cli/text.h"

#include "allocator/base/banned.h"

#define POLL_MS      1000
#define WAIT_STEP_MS 20000 /* of one request; the server answers earlier when the job gets there */
#define AWAY_MAX_MS  60000 /* how long a server may be gone */

static void pause_ms(int64_t ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

static int64_t mono_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- wait ---- */

/* Ask once, for at most `ms`. Returns EXIT_OK with the job as it is then; an error is not printed here. */
static int ask(struct cli *cli, const char *word, const char *state, int64_t ms, json_t **out, struct error *err)
{
    struct client *client = cli_client(cli, err);
    struct response response = {0};
    BUF path = {0};
    struct request request = {.method = "GET", .more_ms = ms};
    char seconds[32];
    int rc = -1;

    job_path(cli, word, &path);
    snprintf(seconds, sizeof(seconds), "%lld", (long long)(ms + 999) / 1000);
    url_query(&path, "waitFor", state);
    url_query(&path, "timeout", seconds);
    request.path = buf_str(&path);
    if (client)
        rc = client_request(client, &request, &response, err);
    if (rc == 0)
        *out = json_incref(response.json);
    response_release(&response);
    return rc;
}

static bool is_there(const json_t *job, const char *state)
{
    return job_has_ended(job) || strcasecmp(field_text(job, "state", ""), state) == 0;
}

static int report(struct cli *cli, const json_t *job, const char *state)
{
    const char *is = field_text(job, "state", "");
    bool wanted = strcasecmp(is, state) == 0, succeeded = strcmp(is, "Succeeded") == 0;
    BUF line = {0};

    job_title(job, &line);
    buf_addf(&line, ": %s", is);
    if (!wanted && !succeeded && *field_text(job, "reason", "")) {
        buf_adds(&line, ": ");
        text_field(&line, job, "reason");
    }
    if (is_document(cli))
        document_print(cli, job);
    else
        fprintf(cli->out, "%s\n", buf_str(&line));
    fflush(cli->out);
    return wanted || succeeded ? EXIT_OK : EXIT_JOB_FAILED;
}

static int timed_out(struct cli *cli, const char *word, const json_t *job)
{
    struct error err = {0};

    error_set(&err, ERR_TIMEOUT, "the time is over; job %.80s is %s", word,
              field_text(job, "state", "not known to be there"));
    return cli_fail(cli, &err);
}

/* A failure that may pass: the server restarts, or is busy for a moment. */
static bool may_pass(const struct error *err)
{
    return err->code == ERR_IO || err->code == ERR_UNAVAILABLE || err->code == ERR_TIMEOUT;
}

/* The first question is answered at once: whether there is such a job is not to be told by a long silence. */
static int64_t wait_step(int64_t timeout_ms, bool is_known)
{
    if (!is_known)
        return 0;
    return timeout_ms >= 0 && timeout_ms < WAIT_STEP_MS ? timeout_ms : WAIT_STEP_MS;
}

int job_wait(struct cli *cli, const char *word, const char *state, int64_t *timeout_ms)
{
    int64_t away_since = -1;
    bool is_known = false;

    for (;;) {
        int64_t start = mono_ms(), step = wait_step(*timeout_ms, is_known);
        json_t *job = NULL;
        struct error err = {0};
        int rc = ask(cli, word, state, step, &job, &err), status = -1;

        if (rc == 0) {
            is_known = true;
            away_since = -1;
            if (is_there(job, state))
                status = report(cli, job, state);
        } else {
            away_since = away_since < 0 ? start : away_since;
            if (!is_known || !may_pass(&err) || mono_ms() - away_since > AWAY_MAX_MS)
                status = cli_fail(cli, &err);
            else
                pause_ms(POLL_MS / 4);
        }
        if (*timeout_ms >= 0)
            *timeout_ms = *timeout_ms > mono_ms() - start ? *timeout_ms - (mono_ms() - start) : 0;
        if (status < 0 && *timeout_ms == 0)
            status = timed_out(cli, word, job);
        json_decref(job);
        if (status >= 0)
            return status;
    }
}

int run_wait(struct cli *cli)
{
    const char *state = args_value(&cli->args, OPT_FOR, "ended");
    int64_t timeout_ms = -1;
    struct error err = {0};
    int worst = EXIT_OK;

    if (args_duration(&cli->args, OPT_TIMEOUT, &timeout_ms, &err) < 0)
        return cli_usage(cli, "%s", err.text);
    for (size_t i = 0; i < cli->args.n_words; i++) {
        int status = job_wait(cli, cli->args.words[i], state, &timeout_ms);

        worst = worst == EXIT_OK ? status : worst;
    }
    return worst;
}

/* ---- events ---- */

static void event_line(struct cli *cli, const json_t *event)
{
    BUF line = {0};

    text_time(&line, field_text(event, "at", ""));
    buf_adds(&line, "  ");
    if (cli->args.n_words == 0) {
        buf_adds(&line, "job ");
        text_field(&line, event, "job");
        if (*field_text(event, "name", "")) {
            buf_addc(&line, ' ');
            text_field(&line, event, "name");
        }
        buf_adds(&line, "  ");
    }
    if (*field_text(event, "to", "")) {
        if (*field_text(event, "from", "")) {
            text_field(&line, event, "from");
            buf_adds(&line, " -> ");
        }
        text_field(&line, event, "to");
    } else {
        text_field(&line, event, "type");
    }
    if (*field_text(event, "detail", "")) {
        buf_adds(&line, ": ");
        text_field(&line, event, "detail");
    }
    fprintf(cli->out, "%s\n", buf_str(&line));
}

static void print_events(struct cli *cli, const json_t *items)
{
    const json_t *event;
    size_t i;

    json_array_foreach (items, i, event)
        if (cli->output == OUTPUT_JSON) { /* one to a line, so that it can be followed */
            char *text = json_dumps(event, JSON_COMPACT);

            fprintf(cli->out, "%s\n", text ? text : "");
            free(text);
        } else {
            event_line(cli, event);
        }
    fflush(cli->out);
}

static void events_path(struct cli *cli, struct buf *path)
{
    if (cli->args.n_words == 0) {
        buf_adds(path, "/v1/events");
        return;
    }
    job_path(cli, cli->args.words[0], path);
    buf_adds(path, "/events");
}

/* Behind which to ask on: the server says so where it left some out, else behind the last one. */
static void move_on(const json_t *page, struct buf *after)
{
    const json_t *items = json_object_get(page, "items");

    buf_clear(after);
    if (json_object_get(page, "next"))
        text_field(after, page, "next");
    else
        text_field(after, json_array_get(items, json_array_size(items) - 1), "id");
}

/* All that is there behind *after; moves it on. */
static int new_events(struct cli *cli, struct buf *after, json_t *all)
{
    for (;;) {
        json_t *page = NULL;
        const json_t *items;
        BUF path = {0};
        int status;

        events_path(cli, &path);
        url_query(&path, "limit", "1000");
        url_query(&path, "after", after->len ? buf_str(after) : NULL);
        status = cli_get(cli, buf_str(&path), &page);
        if (status != EXIT_OK)
            return status;
        items = json_object_get(page, "items");
        if (json_array_size(items) == 0 && !json_object_get(page, "next")) {
            json_decref(page);
            return EXIT_OK;
        }
        json_array_extend(all, (json_t *)(uintptr_t)items);
        move_on(page, after);
        json_decref(page);
    }
}

static bool is_over(struct cli *cli)
{
    json_t *job = NULL;
    BUF path = {0};
    bool over;

    if (cli->args.n_words == 0) /* all jobs never end */
        return false;
    job_path(cli, cli->args.words[0], &path);
    over = cli_get(cli, buf_str(&path), &job) != EXIT_OK || job_has_ended(job);
    json_decref(job);
    return over;
}

/* The state is asked before the events, so that the last ones are not missed. */
static int follow_events(struct cli *cli, struct buf *after)
{
    for (;;) {
        bool over = is_over(cli);
        json_t *items = json_array();
        int status = new_events(cli, after, items);

        print_events(cli, items);
        json_decref(items);
        if (status != EXIT_OK || over)
            return status;
        pause_ms(POLL_MS);
    }
}

int run_events(struct cli *cli)
{
    long long limit = 1000000;
    json_t *items = json_array();
    struct error err = {0};
    BUF after = {0};
    int status;

    if (args_number(&cli->args, OPT_LIMIT, 1, 1000000, &limit, &err) < 0) {
        json_decref(items);
        return cli_usage(cli, "%s", err.text);
    }
    status = new_events(cli, &after, items);
    while (json_array_size(items) > (size_t)limit)
        json_array_remove(items, 0);
    if (status == EXIT_OK && cli->output == OUTPUT_YAML)
        document_print(cli, items);
    else
        print_events(cli, items);
    json_decref(items);
    if (status == EXIT_OK && args_has(&cli->args, OPT_FOLLOW))
        status = follow_events(cli, &after);
    return status;
}

/* ---- logs ---- */

static int read_logs(struct cli *cli, const char *tail, json_t **out)
{
    BUF path = {0};

    job_path(cli, cli->args.words[0], &path);
    buf_adds(&path, "/logs");
    url_query(&path, "member", cli->args.values[OPT_MEMBER]);
    url_query(&path, "tail", tail);
    return cli_get(cli, buf_str(&path), out);
}

/* Output only grows: what is new is behind what was seen. Otherwise (another attempt) all of it is new. */
static void print_new(struct cli *cli, const json_t *text, struct buf *seen)
{
    const char *bytes = json_string_value(text);
    size_t len = json_string_length(text), old = seen->len;

    if (!bytes)
        return;
    if (len < old || memcmp(bytes, buf_str(seen), old) != 0)
        old = 0;
    fwrite(bytes + old, 1, len - old, cli->out);
    fflush(cli->out);
    buf_clear(seen);
    buf_add(seen, bytes, len);
}

int run_logs(struct cli *cli)
{
    bool follow = args_has(&cli->args, OPT_FOLLOW);
    long long lines = 100;
    struct error err = {0};
    BUF seen = {0};

    if (args_number(&cli->args, OPT_TAIL, 1, 100000, &lines, &err) < 0)
        return cli_usage(cli, "%s", err.text);
    for (;;) {
        bool over = !follow || is_over(cli);
        json_t *text = NULL;
        char tail[32];
        int status;

        snprintf(tail, sizeof(tail), "%lld", follow ? 100000 : lines);
        status = read_logs(cli, tail, &text);
        print_new(cli, text, &seen);
        json_decref(text);
        if (status != EXIT_OK || over)
            return status;
        pause_ms(POLL_MS);
    }
}
