/* queues, resources, tokens. */
#include <string.h>

#include "cli/call.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/text.h"

#include "allocator/base/banned.h"

/* Read a list and print it. */
static int show_list(struct cli *cli, const char *path, const struct listing *listing)
{
    json_t *body = NULL;
    int status = cli_get(cli, path, &body);

    if (status == EXIT_OK)
        listing_print(cli, listing, json_object_get(body, "items"));
    json_decref(body);
    return status;
}

#define FIELD_CELL(function, key)                                                                                      \
    static void function(const json_t *item, int64_t now_ms, struct buf *out)                                          \
    {                                                                                                                  \
        (void)now_ms;                                                                                                  \
        text_field(out, item, key);                                                                                    \
    }
FIELD_CELL(cell_name, "name")
FIELD_CELL(cell_class, "deviceClassName")
FIELD_CELL(cell_selector, "selector")
FIELD_CELL(cell_capacity, "capacity")
FIELD_CELL(cell_id, "id")
FIELD_CELL(cell_role, "role")

static void cell_total(const json_t *resource, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    text_amount(out, field_text(resource, "name", ""), json_object_get(resource, "total"));
}

/* ---- queues ---- */

/* A row of the table is a queue's quota of one resource; the queue's own facts stand in its first row. */
static json_t *queue_rows(const json_t *queues)
{
    json_t *rows = json_array(), *queue, *quota, *row;
    size_t i, j;

    json_array_foreach (queues, i, queue) {
        const json_t *quotas = json_object_get(queue, "quotas");

        json_array_foreach (quotas, j, quota) {
            row = json_pack("{s:O, s:O}", "queue", queue, "quota", quota);
            if (j > 0)
                json_object_set_new(row, "more", json_true());
            json_array_append_new(rows, row);
        }
        if (json_array_size(quotas) == 0)
            json_array_append_new(rows, json_pack("{s:O}", "queue", queue));
    }
    return rows;
}

static void queue_fact(const json_t *row, const char *key, struct buf *out)
{
    if (!json_is_true(json_object_get(row, "more")))
        text_field(out, json_object_get(row, "queue"), key);
}

#define QUEUE_CELL(function, key)                                                                                      \
    static void function(const json_t *row, int64_t now_ms, struct buf *out)                                           \
    {                                                                                                                  \
        (void)now_ms;                                                                                                  \
        queue_fact(row, key, out);                                                                                     \
    }
QUEUE_CELL(cell_queue, "name")
QUEUE_CELL(cell_parent, "parent")
QUEUE_CELL(cell_state, "state")
QUEUE_CELL(cell_weight, "weight")

/* "pack", "pack (research)" where a queue above says so, "-" where none does. */
static void cell_placement(const json_t *row, int64_t now_ms, struct buf *out)
{
    const json_t *queue = json_object_get(row, "queue"), *effective = json_object_get(queue, "effectivePlacement");
    const char *by = field_text(effective, "queue", NULL);

    (void)now_ms;
    if (!effective || json_is_true(json_object_get(row, "more")))
        return;
    if (!by) {
        buf_adds(out, "-");
        return;
    }
    text_field(out, effective, "placement");
    if (strcmp(by, field_text(queue, "name", "")) != 0) {
        buf_adds(out, " (");
        text_add(out, by);
        buf_addc(out, ')');
    }
}

static void cell_share(const json_t *row, int64_t now_ms, struct buf *out)
{
    const json_t *share = json_object_get(json_object_get(row, "queue"), "share");

    (void)now_ms;
    if (json_is_number(share) && !json_is_true(json_object_get(row, "more")))
        buf_addf(out, "%.3f", json_number_value(share));
}

static void cell_pending(const json_t *row, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    if (!json_is_true(json_object_get(row, "more")))
        text_field(out, json_object_get(json_object_get(row, "queue"), "jobs"), "pending");
}

static void cell_running(const json_t *row, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    if (!json_is_true(json_object_get(row, "more")))
        text_field(out, json_object_get(json_object_get(row, "queue"), "jobs"), "running");
}

/* What is null has no limit. */
static void limit(const json_t *row, const char *key, struct buf *out)
{
    const json_t *value = json_object_get(json_object_get(row, "quota"), key);

    if (json_is_null(value))
        buf_adds(out, "-");
    else if (value)
        text_amount(out, field_text(json_object_get(row, "quota"), "resource", ""), value);
}

static void cell_resource(const json_t *row, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    text_field(out, json_object_get(row, "quota"), "resource");
}

#define QUOTA_CELL(function, key)                                                                                      \
    static void function(const json_t *row, int64_t now_ms, struct buf *out)                                           \
    {                                                                                                                  \
        (void)now_ms;                                                                                                  \
        limit(row, key, out);                                                                                          \
    }
QUOTA_CELL(cell_used, "used")
QUOTA_CELL(cell_nominal, "nominal")
QUOTA_CELL(cell_borrowed, "borrowed")
QUOTA_CELL(cell_quota_capacity, "capacity")
QUOTA_CELL(cell_borrowing_limit, "borrowingLimit")
QUOTA_CELL(cell_lending_limit, "lendingLimit")

static const struct column queue_columns[] = {
    {"QUEUE", cell_queue, false, false},
    {"PARENT", cell_parent, false, false},
    {"STATE", cell_state, false, false},
    {"WEIGHT", cell_weight, true, false},
    {"SHARE", cell_share, true, false},
    {"PENDING", cell_pending, true, false},
    {"RUNNING", cell_running, true, false},
    {"RESOURCE", cell_resource, false, false},
    {"USED", cell_used, true, false},
    {"NOMINAL", cell_nominal, true, false},
    {"BORROWED", cell_borrowed, true, false},
    {"MAY BORROW", cell_borrowing_limit, true, true},
    {"MAY LEND", cell_lending_limit, true, true},
    {"CLUSTER HAS", cell_quota_capacity, true, false},
    {"PLACEMENT", cell_placement, false, false},
};

static int read_queues(struct cli *cli, json_t *queues)
{
    json_t *body = NULL;
    int status;

    if (cli->args.n_words == 0) {
        status = cli_get(cli, "/v1/queues", &body);
        if (status == EXIT_OK)
            json_array_extend(queues, json_object_get(body, "items"));
        json_decref(body);
        return status;
    }
    for (size_t i = 0; i < cli->args.n_words; i++) {
        const char *word = cli->args.words[i];
        BUF path = {0};

        buf_adds(&path, "/v1/queues/");
        url_add(&path, strncmp(word, "queue/", 6) == 0 ? word + 6 : word);
        body = NULL;
        status = cli_get(cli, buf_str(&path), &body);
        if (status != EXIT_OK)
            return status;
        json_array_append_new(queues, body);
    }
    return EXIT_OK;
}

int run_queues(struct cli *cli)
{
    struct listing listing = {
        .columns = queue_columns,
        .n_columns = ARRAY_SIZE(queue_columns),
        .kind = "queue",
        .name_key = "name",
        .nothing = "no queues; an administrator makes them with dra-submit apply",
    };
    json_t *queues = json_array(), *rows;
    int status = read_queues(cli, queues);

    if (status == EXIT_OK && (is_document(cli) || cli->output == OUTPUT_NAME)) {
        listing_print(cli, &listing, queues);
    } else if (status == EXIT_OK) {
        rows = queue_rows(queues);
        listing_print(cli, &listing, rows);
        json_decref(rows);
    }
    json_decref(queues);
    return status;
}

/* ---- resources ---- */

static const struct column resource_columns[] = {
    {"RESOURCE", cell_name, false, false},     {"CLUSTER HAS", cell_total, true, false},
    {"CLASS", cell_class, false, false},       {"CAPACITY", cell_capacity, false, false},
    {"SELECTOR", cell_selector, false, false},
};

int run_resources(struct cli *cli)
{
    const struct listing listing = {
        .columns = resource_columns,
        .n_columns = ARRAY_SIZE(resource_columns),
        .kind = "resource",
        .name_key = "name",
        .nothing = "no resources",
    };

    return show_list(cli, "/v1/resources", &listing);
}

/* ---- tokens ---- */

static void cell_queues(const json_t *token, int64_t now_ms, struct buf *out)
{
    const json_t *queues = json_object_get(token, "queues");

    (void)now_ms;
    if (json_is_array(queues))
        text_value(out, queues);
    else
        buf_adds(out, "all");
}

static void cell_created(const json_t *token, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    text_time(out, field_text(token, "createdAt", ""));
}

static const struct column token_columns[] = {
    {"ID", cell_id, true, false},          {"USER", cell_name, false, false},       {"ROLE", cell_role, false, false},
    {"QUEUES", cell_queues, false, false}, {"CREATED", cell_created, false, false},
};

int run_tokens(struct cli *cli)
{
    const struct listing listing = {
        .columns = token_columns,
        .n_columns = ARRAY_SIZE(token_columns),
        .kind = "token",
        .name_key = "id",
        .nothing = "no tokens",
    };

    return show_list(cli, "/v1/tokens", &listing);
}

static json_t *names_of(const char *list)
{
    json_t *names = json_array();

    while (list && *list) {
        size_t len = strcspn(list, ",");

        if (len > 0)
            json_array_append_new(names, json_stringn(list, len));
        list += len + (list[len] == ',');
    }
    return names;
}

/* The text alone on stdout, so that it goes where it is wanted: dra-submit tokens create alice > file. */
static void print_token(struct cli *cli, const json_t *token)
{
    BUF id = {0};

    if (is_document(cli)) {
        document_print(cli, token);
        return;
    }
    text_field(&id, token, "id");
    fprintf(cli->err, "token %s for %s (%s); this is the only time that it is shown:\n", buf_str(&id),
            field_text(token, "name", ""), field_text(token, "role", ""));
    fprintf(cli->out, "%s\n", field_text(token, "token", ""));
}

int run_tokens_create(struct cli *cli)
{
    const char *queues = cli->args.values[OPT_QUEUES];
    json_t *body =
        json_pack("{s:s, s:s}", "name", cli->args.words[0], "role", args_value(&cli->args, OPT_ROLE, "submitter"));
    json_t *token = NULL;
    int status;

    if (!body)
        return cli_usage(cli, "a user's name must be UTF-8");
    if (queues)
        json_object_set_new(body, "queues", names_of(queues));
    status = cli_send(cli, "POST", "/v1/tokens", body, &token);
    if (status == EXIT_OK)
        print_token(cli, token);
    json_decref(token);
    json_decref(body);
    return status;
}

int run_tokens_delete(struct cli *cli)
{
    int worst = EXIT_OK;

    for (size_t i = 0; i < cli->args.n_words; i++) {
        const char *word = cli->args.words[i];
        BUF path = {0};
        int status;

        word += strncmp(word, "token/", 6) == 0 ? 6 : 0;
        buf_adds(&path, "/v1/tokens/");
        url_add(&path, word);
        status = cli_send(cli, "DELETE", buf_str(&path), NULL, NULL);
        if (status == EXIT_OK)
            fprintf(cli->out, "token/%s revoked\n", word);
        worst = worst == EXIT_OK ? status : worst;
    }
    return worst;
}
