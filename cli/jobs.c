/* ls, show, cancel, hold, release, requeue. */
#include "cli/jobs.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/str.h"
#include "cli/call.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/text.h"

#include "allocator/base/banned.h"

/* ---- cells ---- */

static void cell_id(const json_t *job, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    text_field(out, job, "id");
}

/* The form that every command takes. */
static void cell_name(const json_t *job, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    if (strcmp(field_text(job, "namespace", "default"), "default") != 0) {
        text_field(out, job, "namespace");
        buf_addc(out, '/');
    }
    text_field(out, job, "name");
}

static void cell_members(const json_t *job, int64_t now_ms, struct buf *out)
{
    const json_t *members = json_object_get(job, "members");
    json_int_t total = field_int(members, "total"),
               done = field_int(members, "running") + field_int(members, "succeeded");

    (void)now_ms;
    if (done > 0 || strcmp(field_text(job, "state", ""), "Running") == 0)
        buf_addf(out, "%" JSON_INTEGER_FORMAT "/", done);
    buf_addf(out, "%" JSON_INTEGER_FORMAT, total);
}

static void since(const json_t *job, const char *from, const char *to, int64_t now_ms, struct buf *out)
{
    int64_t start, end;

    if (!time_parse(field_text(job, from, NULL), &start))
        return;
    text_duration(out, (time_parse(field_text(job, to, NULL), &end) ? end : now_ms) - start);
}

static void cell_age(const json_t *job, int64_t now_ms, struct buf *out)
{
    since(job, "submittedAt", "", now_ms, out);
}

static void cell_run_time(const json_t *job, int64_t now_ms, struct buf *out)
{
    since(job, "startedAt", "endedAt", now_ms, out);
}

#define FIELD_CELL(function, key)                                                                                      \
    static void function(const json_t *job, int64_t now_ms, struct buf *out)                                           \
    {                                                                                                                  \
        (void)now_ms;                                                                                                  \
        text_field(out, job, key);                                                                                     \
    }
FIELD_CELL(cell_queue, "queue")
FIELD_CELL(cell_user, "user")
FIELD_CELL(cell_state, "state")
FIELD_CELL(cell_reason, "reason")
FIELD_CELL(cell_priority, "priority")
FIELD_CELL(cell_attempt, "attempt")
FIELD_CELL(cell_shape, "shape")

static void cell_submitted(const json_t *job, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    text_time(out, field_text(job, "submittedAt", ""));
}

/* The nodes of the placement, each once. */
static void cell_nodes(const json_t *job, int64_t now_ms, struct buf *out)
{
    const json_t *members = json_object_get(json_object_get(job, "placement"), "members"), *member, *before;
    size_t i, j;

    (void)now_ms;
    json_array_foreach (members, i, member) {
        bool seen = false;

        json_array_foreach (members, j, before)
            seen = seen || (j < i && json_equal(json_object_get(before, "node"), json_object_get(member, "node")));
        if (seen)
            continue;
        buf_adds(out, out->len ? "," : "");
        text_field(out, member, "node");
    }
}

static const struct column job_columns[] = {
    {"JOB", cell_id, true, false},           {"NAME", cell_name, false, false},
    {"QUEUE", cell_queue, false, false},     {"USER", cell_user, false, false},
    {"STATE", cell_state, false, false},     {"MEMBERS", cell_members, true, false},
    {"AGE", cell_age, true, false},          {"TIME", cell_run_time, true, false},
    {"PRIORITY", cell_priority, true, true}, {"ATTEMPT", cell_attempt, true, true},
    {"SHAPE", cell_shape, false, true},      {"SUBMITTED", cell_submitted, false, true},
    {"NODES", cell_nodes, false, true},      {"REASON", cell_reason, false, false},
};

void jobs_print(struct cli *cli, const json_t *jobs)
{
    struct listing listing = {
        .columns = job_columns,
        .n_columns = ARRAY_SIZE(job_columns),
        .kind = "job",
        .name_key = "id",
        .nothing = "no jobs",
    };

    if (args_has(&cli->args, OPT_STATE))
        listing.nothing = "no jobs in this state";
    else if (command_has_option(cli->args.command, OPT_ALL) && !args_has(&cli->args, OPT_ALL))
        listing.nothing = "no jobs are waiting or running (--all lists those that have ended)";
    if (cli->output != OUTPUT_NAME && !is_document(cli))
        listing.now_ms = cli_now_ms(cli);
    listing_print(cli, &listing, jobs);
}

void job_title(const json_t *job, struct buf *out)
{
    buf_adds(out, "job ");
    text_field(out, job, "id");
    buf_addc(out, ' ');
    text_field(out, job, "namespace");
    buf_addc(out, '/');
    text_field(out, job, "name");
}

bool job_has_ended(const json_t *job)
{
    static const char *const final[] = {"Succeeded", "Failed", "Cancelled"};

    for (size_t i = 0; i < ARRAY_SIZE(final); i++)
        if (strcmp(field_text(job, "state", ""), final[i]) == 0)
            return true;
    return false;
}

/* ---- ls ---- */

#define PAGE     "1000"
#define LIST_MAX 1000000

static void page_path(const struct cli *cli, const char *after, struct buf *out)
{
    static const struct {
        enum option_id id;
        const char *name;
    } filters[] = {{OPT_STATE, "state"},
                   {OPT_QUEUE, "queue"},
                   {OPT_USER, "user"},
                   {OPT_NAMESPACE, "namespace"},
                   {OPT_LABEL, "label"}};

    buf_adds(out, "/v1/jobs");
    for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
        url_query(out, filters[i].name, cli->args.values[filters[i].id]);
    url_query(out, "limit", PAGE);
    url_query(out, "after", after);
}

/* All pages, in order; with a limit the last so many: those are the newest. */
static int read_pages(struct cli *cli, bool all, size_t limit, json_t *jobs)
{
    BUF after = {0};
    int status;

    for (;;) {
        json_t *page = NULL, *job;
        BUF path = {0};
        size_t i;

        page_path(cli, after.len ? buf_str(&after) : NULL, &path);
        status = cli_get(cli, buf_str(&path), &page);
        if (status != EXIT_OK)
            return status;
        json_array_foreach (json_object_get(page, "items"), i, job)
            if (all || !job_has_ended(job))
                json_array_append(jobs, job);
        while (json_array_size(jobs) > limit)
            json_array_remove(jobs, 0);
        buf_clear(&after);
        text_field(&after, page, "next");
        json_decref(page);
        if (after.len == 0)
            return EXIT_OK;
    }
}

int run_ls(struct cli *cli)
{
    bool all = args_has(&cli->args, OPT_ALL) || args_has(&cli->args, OPT_STATE);
    json_t *jobs = json_array();
    long long limit = LIST_MAX;
    struct error err = {0};
    int status;

    if (args_number(&cli->args, OPT_LIMIT, 1, LIST_MAX, &limit, &err) < 0) {
        json_decref(jobs);
        return cli_usage(cli, "%s", err.text);
    }
    status = read_pages(cli, all, (size_t)limit, jobs);
    if (status == EXIT_OK)
        jobs_print(cli, jobs);
    json_decref(jobs);
    return status;
}

/* ---- show ---- */

static void fact(struct cli *cli, const char *name, struct buf *value)
{
    if (value->len > 0)
        fprintf(cli->out, "  %-12s %s\n", name, buf_str(value));
    buf_clear(value);
}

static void fact_field(struct cli *cli, const char *name, const json_t *job, const char *key)
{
    BUF value = {0};

    text_field(&value, job, key);
    fact(cli, name, &value);
}

static void fact_time(struct cli *cli, const char *name, const json_t *job, const char *key, int64_t now_ms)
{
    const char *text = field_text(job, key, NULL);
    BUF value = {0};
    int64_t ms;

    if (!text)
        return;
    text_time(&value, text);
    if (time_parse(text, &ms)) {
        buf_adds(&value, " UTC (");
        text_duration(&value, now_ms - ms);
        buf_adds(&value, " ago)");
    }
    fact(cli, name, &value);
}

static void fact_state(struct cli *cli, const json_t *job, int64_t now_ms)
{
    BUF value = {0};
    BUF took = {0};

    text_field(&value, job, "state");
    cell_run_time(job, now_ms, &took);
    if (took.len > 0)
        buf_addf(&value, job_has_ended(job) ? ", ran %s" : " for %s", buf_str(&took));
    if (field_int(job, "attempt") > 1)
        buf_addf(&value, ", attempt %" JSON_INTEGER_FORMAT, field_int(job, "attempt"));
    fact(cli, "State", &value);
}

/* "2 running, 1 failed of 4 (8 were asked for)" */
static void fact_members(struct cli *cli, const json_t *job)
{
    static const char *const states[] = {"running", "succeeded", "failed"};
    const json_t *members = json_object_get(job, "members");
    BUF value = {0};

    for (size_t i = 0; i < ARRAY_SIZE(states); i++)
        if (field_int(members, states[i]) > 0)
            buf_addf(&value, "%s%" JSON_INTEGER_FORMAT " %s", value.len ? ", " : "", field_int(members, states[i]),
                     states[i]);
    buf_adds(&value, value.len ? " of " : "");
    text_field(&value, members, "total");
    if (field_int(members, "asked") > field_int(members, "total"))
        buf_addf(&value, " (%" JSON_INTEGER_FORMAT " were asked for)", field_int(members, "asked"));
    fact(cli, "Members", &value);
}

/* "h100 16, cpu 32" */
static void fact_charges(struct cli *cli, const json_t *job)
{
    const json_t *charges = json_object_get(job, "charges"), *charge;
    BUF value = {0};
    size_t i;

    json_array_foreach (charges, i, charge) {
        buf_adds(&value, i > 0 ? ", " : "");
        text_field(&value, charge, "resource");
        buf_addc(&value, ' ');
        text_amount(&value, field_text(charge, "resource", ""), json_object_get(charge, "amount"));
    }
    fact(cli, "Charged", &value);
}

static void fact_chosen(struct cli *cli, const json_t *job)
{
    const json_t *chosen = json_object_get(job, "chosen"), *one;
    BUF value = {0};
    size_t i;

    json_array_foreach (chosen, i, one) {
        text_field(&value, one, "claim");
        buf_addc(&value, '/');
        text_field(&value, one, "request");
        buf_adds(&value, " takes ");
        text_field(&value, one, "alternative");
        fact(cli, i == 0 ? "Chosen" : "", &value);
    }
}

static void fact_placing(struct cli *cli, const json_t *job)
{
    BUF value = {0};

    text_placement(&value, json_object_get(job, "effectivePlacement"));
    fact(cli, "Placing", &value);
}

static void member_devices(const json_t *member, struct buf *out)
{
    const json_t *claims = json_object_get(member, "claims"), *claim, *device;
    json_t *names = json_array();
    size_t i, j;

    json_array_foreach (claims, i, claim)
        json_array_foreach (json_object_get(claim, "devices"), j, device)
            json_array_append(names, json_object_get(device, "device"));
    text_names(out, names);
    json_decref(names);
}

static void print_placement(struct cli *cli, const json_t *job)
{
    static const char *const titles[] = {"MEMBER", "NODE", "POD", "DEVICES"};
    const json_t *members = json_object_get(json_object_get(job, "placement"), "members"), *member;
    struct table table;
    size_t i;

    if (json_array_size(members) == 0)
        return;
    fputs("\nPlacement\n", cli->out);
    table_init(&table, ARRAY_SIZE(titles));
    for (i = 0; i < ARRAY_SIZE(titles); i++)
        table_adds(&table, titles[i]);
    json_array_foreach (members, i, member) {
        BUF cell = {0};

        text_field(&cell, member, "group");
        buf_addc(&cell, '-');
        text_field(&cell, member, "index");
        table_add(&table, &cell);
        text_field(&cell, member, "node");
        table_add(&table, &cell);
        text_field(&cell, member, "pod");
        table_add(&table, &cell);
        member_devices(member, &cell);
        table_add(&table, &cell);
    }
    table_print(cli, &table, 2, true);
    table_release(&table);
}

/* What keeps members from running, or from running well. */
static void print_troubles(struct cli *cli, const json_t *job)
{
    static const char *const fields[] = {"kind", "name", "layer", "detail"};
    static const char *const titles[] = {"KIND", "NAME", "LAYER", "WHY"};
    const json_t *troubles = json_object_get(job, "troubles"), *trouble;
    struct table table;
    size_t i;

    if (json_array_size(troubles) == 0)
        return;
    fputs("\nNot well\n", cli->out);
    table_init(&table, ARRAY_SIZE(titles));
    for (i = 0; i < ARRAY_SIZE(titles); i++)
        table_adds(&table, titles[i]);
    json_array_foreach (troubles, i, trouble)
        for (size_t k = 0; k < ARRAY_SIZE(fields); k++) {
            BUF cell = {0};

            text_field(&cell, trouble, fields[k]);
            table_add(&table, &cell);
        }
    table_print(cli, &table, 2, true);
    table_release(&table);
}

/* ---- what a job asks for ---- */

static const json_t *claim_requests(const json_t *spec, const char *list, const char *name)
{
    const json_t *object;
    size_t i;

    json_array_foreach (json_object_get(spec, list), i, object) {
        const json_t *claim = json_object_get(object, "spec");

        if (strcmp(field_text(json_object_get(object, "metadata"), "name", ""), name) != 0)
            continue;
        if (json_object_get(claim, "spec"))
            claim = json_object_get(claim, "spec");
        return json_object_get(json_object_get(claim, "devices"), "requests");
    }
    return NULL;
}

/* "8 x gpu.nvidia.com" */
static void add_ask(const json_t *ask, struct buf *out)
{
    json_int_t count = field_int(ask, "count");

    if (strcmp(field_text(ask, "allocationMode", ""), "All") == 0)
        buf_adds(out, "all ");
    else
        buf_addf(out, "%" JSON_INTEGER_FORMAT " x ", count > 0 ? count : 1);
    text_field(out, ask, "deviceClassName");
}

static void add_request(const json_t *request, struct buf *out)
{
    const json_t *exactly = json_object_get(request, "exactly"), *first = json_object_get(request, "firstAvailable"),
                 *one;
    size_t i;

    if (!first) {
        add_ask(exactly ? exactly : request, out);
        return;
    }
    json_array_foreach (first, i, one) {
        buf_adds(out, i > 0 ? " or " : "");
        text_field(out, one, "name");
        buf_adds(out, " (");
        add_ask(one, out);
        buf_addc(out, ')');
    }
}

static void add_claims(const json_t *spec, const json_t *group, struct buf *out)
{
    const json_t *pod = json_object_get(json_object_get(group, "template"), "spec"), *claim, *request;
    size_t i, j;

    json_array_foreach (json_object_get(pod, "resourceClaims"), i, claim) {
        const char *template = field_text(claim, "resourceClaimTemplateName", NULL);
        const char *name = template ? template : field_text(claim, "resourceClaimName", "");
        const json_t *requests = claim_requests(spec, template ? "claimTemplates" : "sharedClaims", name);

        if (!template || !requests)
            buf_addf(out, ", %s claim %s", requests ? "shared" : "existing", name);
        json_array_foreach (requests, j, request) {
            buf_adds(out, template ? ", " : j > 0 ? " and " : ": ");
            add_request(request, out);
        }
    }
}

static void fact_groups(struct cli *cli, const json_t *job)
{
    const json_t *spec = json_object_get(job, "spec"), *group;
    size_t i;

    json_array_foreach (json_object_get(spec, "groups"), i, group) {
        BUF value = {0};

        text_field(&value, group, "name");
        buf_adds(&value, ": ");
        text_count(&value, field_int(group, "replicas"), "member", "members");
        add_claims(spec, group, &value);
        fact(cli, i == 0 ? "Asks for" : "", &value);
    }
}

static void print_job(struct cli *cli, const json_t *job, int64_t now_ms)
{
    BUF title = {0};

    job_title(job, &title);
    title.data[0] = 'J';
    fprintf(cli->out, "%s\n", buf_str(&title));
    fact_state(cli, job, now_ms);
    fact_field(cli, "Reason", job, "reason");
    fact_field(cli, "Queue", job, "queue");
    fact_field(cli, "User", job, "user");
    fact_field(cli, "Priority", job, "priority");
    fact_time(cli, "Submitted", job, "submittedAt", now_ms);
    fact_time(cli, "Started", job, "startedAt", now_ms);
    fact_time(cli, "Ended", job, "endedAt", now_ms);
    fact_groups(cli, job);
    fact_members(cli, job);
    fact_field(cli, "Shape", job, "shape");
    fact_chosen(cli, job);
    fact_charges(cli, job);
    fact_placing(cli, job);
    fact_field(cli, "Exit code", job, "exitCode");
    if (field_int(job, "retriesLeft") > 0 && !job_has_ended(job))
        fact_field(cli, "Retries left", job, "retriesLeft");
    print_placement(cli, job);
    print_troubles(cli, job);
}

/* One job as itself, several as a list. */
int run_show(struct cli *cli)
{
    json_t *jobs = json_array(), *job;
    int status = EXIT_OK;
    int64_t now_ms;
    size_t i;

    for (i = 0; i < cli->args.n_words && status == EXIT_OK; i++) {
        BUF path = {0};

        job = NULL;
        job_path(cli, cli->args.words[i], &path);
        status = cli_get(cli, buf_str(&path), &job);
        if (status == EXIT_OK)
            json_array_append_new(jobs, job);
    }
    if (status == EXIT_OK && is_document(cli) && json_array_size(jobs) == 1) {
        document_print(cli, json_array_get(jobs, 0));
    } else if (status == EXIT_OK && cli->output != OUTPUT_TABLE) {
        jobs_print(cli, jobs);
    } else if (status == EXIT_OK) {
        now_ms = cli_now_ms(cli);
        json_array_foreach (jobs, i, job) {
            fputs(i > 0 ? "\n" : "", cli->out);
            print_job(cli, job, now_ms);
        }
    }
    json_decref(jobs);
    return status;
}

/* ---- cancel, hold, release, requeue ---- */

static int act(struct cli *cli, const char *word, const char *action)
{
    json_t *job = NULL;
    BUF path = {0};
    BUF line = {0};
    int status;

    job_path(cli, word, &path);
    buf_addf(&path, "/%s", action);
    status = cli_send(cli, "POST", buf_str(&path), NULL, &job);
    if (status == EXIT_OK && is_document(cli)) {
        document_print(cli, job);
    } else if (status == EXIT_OK && cli->output == OUTPUT_NAME) {
        text_field(&line, job, "id");
        fprintf(cli->out, "job/%s\n", buf_str(&line));
    } else if (status == EXIT_OK) {
        job_title(job, &line);
        buf_adds(&line, ": ");
        text_field(&line, job, "state");
        if (*field_text(job, "ending", "") && !job_has_ended(job)) { /* its members are being taken away first */
            buf_adds(&line, ", will be ");
            text_field(&line, job, "ending");
        }
        fprintf(cli->out, "%s\n", buf_str(&line));
    }
    json_decref(job);
    return status;
}

/* All are tried; the first failure is the exit status. */
int run_action(struct cli *cli)
{
    int worst = EXIT_OK;

    for (size_t i = 0; i < cli->args.n_words; i++) {
        int status = act(cli, cli->args.words[i], cli->args.command->name);

        worst = worst == EXIT_OK ? status : worst;
    }
    return worst;
}
