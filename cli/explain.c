/* explain: the server's structured explanation as text that reads from the answer to the evidence:
 *
 *   who and what state, the sentence that says why; per group how many members fit, which requests lack devices and who
 *   holds them, which nodes are out and why; what blocks; what would help. */
#include <string.h>

#include "cli/call.h"
#include "cli/commands.h"
#include "cli/jobs.h"
#include "cli/table.h"
#include "cli/text.h"

#include "allocator/base/banned.h"

#define INDENT 2

/* ---- words that are wrapped ---- */

static size_t line_width(const struct cli *cli)
{
    size_t width = cli->is_tty ? cli->width : 110;

    return width < 40 ? 40 : width > 120 ? 120 : width;
}

/* A paragraph: `lead` before the first line, spaces of its width before the others. */
static void paragraph(struct cli *cli, const char *lead, const char *text)
{
    size_t indent = text_width(lead, strlen(lead)), width = line_width(cli), at = indent;
    bool first = true;

    fputs(lead, cli->out);
    while (*text) {
        size_t len = strcspn(text, " "), word = text_width(text, len);

        if (!first && at + 1 + word > width) {
            fprintf(cli->out, "\n%*s", (int)indent, "");
            at = indent;
            first = true;
        }
        fprintf(cli->out, "%s%.*s", first ? "" : " ", (int)len, text);
        at += word + !first;
        first = false;
        text += len;
        text += strspn(text, " ");
    }
    fputc('\n', cli->out);
}

/* ---- head ---- */

static const struct {
    const char *layer, *meaning;
} layers[] = {
    {"queue", "its queue lets nothing start"},
    {"quota", "quota"},
    {"order", "others go first"},
    {"devices", "devices"},
    {"launch", "it is being started"},
    {"running", "it runs"},
    {"ended", "it has ended"},
};

static void print_head(struct cli *cli, const json_t *explanation)
{
    const char *layer = field_text(explanation, "layer", "");
    bool waits = true;
    BUF head = {0};
    BUF words = {0};

    buf_adds(&head, "Job ");
    text_field(&head, explanation, "id");
    buf_addc(&head, ' ');
    text_field(&head, explanation, "name");
    buf_adds(&head, ": ");
    text_field(&head, explanation, "state");
    for (size_t i = 4; i < ARRAY_SIZE(layers); i++)
        waits = waits && strcmp(layers[i].layer, layer) != 0;
    for (size_t i = 0; waits && i < ARRAY_SIZE(layers); i++)
        if (strcmp(layers[i].layer, layer) == 0)
            buf_addf(&head, ", held up by %s", layers[i].meaning);
    if (waits && field_int(explanation, "position") > 0) {
        buf_adds(&head, ", number ");
        text_field(&head, explanation, "position");
        buf_adds(&head, " in queue ");
        text_field(&head, explanation, "queue");
    }
    fprintf(cli->out, "%s\n", buf_str(&head));
    text_field(&words, explanation, "summary");
    if (words.len > 0)
        paragraph(cli, "  ", buf_str(&words));
    buf_clear(&words);
    text_field(&words, explanation, "lastReason");
    if (words.len > 0 && waits && strcmp(buf_str(&words), field_text(explanation, "summary", "")) != 0)
        paragraph(cli, "  last attempt: ", buf_str(&words));
}

/* ---- requests ---- */

static void add_number(struct table *table, const json_t *object, const char *key)
{
    BUF cell = {0};

    text_field(&cell, object, key);
    table_add(table, &cell);
}

static void request_row(struct table *table, const json_t *request)
{
    static const char *const numbers[] = {"exist", "match", "free", "inUse", "tainted"};
    BUF cell = {0};

    text_field(&cell, request, "claim");
    buf_addc(&cell, '/');
    text_field(&cell, request, "request");
    table_add(table, &cell);
    text_field(&cell, request, "class");
    table_add(table, &cell);
    add_number(table, request, "count");
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        add_number(table, request, numbers[i]);
}

static void print_requests(struct cli *cli, const json_t *requests)
{
    static const char *const titles[] = {"REQUEST", "CLASS", "NEEDS", "EXIST", "MATCH", "FREE", "IN USE", "TAINTED"};
    const json_t *request;
    struct table table;
    size_t i;

    if (json_array_size(requests) == 0)
        return;
    table_init(&table, ARRAY_SIZE(titles));
    for (i = 0; i < ARRAY_SIZE(titles); i++) {
        table.right[i] = i >= 2;
        table_adds(&table, titles[i]);
    }
    json_array_foreach (requests, i, request)
        request_row(&table, request);
    table_print(cli, &table, 2 * INDENT, false);
    table_release(&table);
}

static void request_title(const json_t *request, struct buf *out)
{
    text_field(out, request, "claim");
    buf_addc(out, '/');
    text_field(out, request, "request");
    buf_adds(out, ": ");
}

/* "gpus/gpu: 8 devices fail the selector ..." */
static void print_excluded(struct cli *cli, const json_t *request)
{
    static const struct {
        const char *key, *one, *many;
    } reasons[] = {
        {"selector", "fails the selector", "fail the selector"},
        {"constraint", "fails the constraint", "fail the constraint"},
        {"capacity", "has too little", "have too little"},
        {"counter", "lacks what others use up of the shared counter", "lack what others use up of the shared counter"},
        {"taint", "has the taint", "have the taint"},
        {"quota", "is", "are"},
    };
    const json_t *excluded;
    size_t i;

    json_array_foreach (json_object_get(request, "excluded"), i, excluded)
        for (size_t k = 0; k < ARRAY_SIZE(reasons); k++) {
            bool one = field_int(excluded, "devices") == 1;
            BUF line = {0};

            if (!json_object_get(excluded, reasons[k].key))
                continue;
            request_title(request, &line);
            text_count(&line, field_int(excluded, "devices"), "device", "devices");
            buf_addf(&line, " %s ", one ? reasons[k].one : reasons[k].many);
            text_field(&line, excluded, reasons[k].key);
            if (json_object_get(excluded, "asked")) {
                buf_adds(&line, ": asked ");
                text_field(&line, excluded, "asked");
                buf_adds(&line, ", at most ");
                text_field(&line, excluded, "left");
                buf_adds(&line, " left");
            }
            paragraph(cli, "    - ", buf_str(&line));
        }
}

/* "gpus/gpu: held are 8 by job 1 (train), 2 by claim lab/mine, and 5 by 3 more" */
static void print_holders(struct cli *cli, const json_t *request)
{
    const json_t *holder, *more = json_object_get(request, "moreHolders");
    size_t i;
    BUF line = {0};

    request_title(request, &line);
    json_array_foreach (json_object_get(request, "holders"), i, holder) {
        bool job = json_object_get(holder, "job");

        buf_addf(&line, "%s%" JSON_INTEGER_FORMAT " by %s ", i == 0 ? "held are " : ", ", field_int(holder, "devices"),
                 job ? "job" : "claim");
        text_field(&line, holder, job ? "job" : "claim");
        if (!json_object_get(holder, "jobName"))
            continue;
        buf_adds(&line, " (");
        text_field(&line, holder, "jobName");
        buf_addc(&line, ')');
    }
    if (more)
        buf_addf(&line, ", and %" JSON_INTEGER_FORMAT " by %" JSON_INTEGER_FORMAT " more", field_int(more, "devices"),
                 field_int(more, "holders"));
    if (json_array_size(json_object_get(request, "holders")) > 0)
        paragraph(cli, "    - ", buf_str(&line));
}

/* ---- groups ---- */

static void print_node_reasons(struct cli *cli, const json_t *group)
{
    const json_t *reasons = json_object_get(group, "nodeReasons"), *reason;
    size_t i;

    json_array_foreach (reasons, i, reason) {
        BUF line = {0};

        text_count(&line, field_int(reason, "nodes"), "node", "nodes");
        if (*field_text(reason, "example", "")) {
            buf_adds(&line, " (");
            text_field(&line, reason, "example");
            buf_adds(&line, field_int(reason, "nodes") > 1 ? ", ...)" : ")");
        }
        buf_adds(&line, ": ");
        text_field(&line, reason, "reason");
        paragraph(cli, "    - ", buf_str(&line));
    }
}

static void print_group(struct cli *cli, const json_t *group)
{
    const json_t *nodes = json_object_get(group, "nodes"), *requests = json_object_get(group, "requests"), *request;
    BUF head = {0};
    size_t i;

    buf_adds(&head, "\n  Group ");
    text_field(&head, group, "name");
    buf_adds(&head, ": ");
    text_count(&head, field_int(group, "members"), "member", "members");
    if (json_object_get(group, "fit")) {
        buf_adds(&head, ", room for ");
        text_field(&head, group, "fit");
    }
    if (nodes) {
        buf_adds(&head, "; ");
        text_field(&head, nodes, "eligible");
        buf_adds(&head, " of ");
        text_count(&head, field_int(nodes, "total"), "node", "nodes");
        buf_adds(&head, " can be used");
    }
    fprintf(cli->out, "%s\n", buf_str(&head));
    print_requests(cli, requests);
    json_array_foreach (requests, i, request) {
        print_excluded(cli, request);
        print_holders(cli, request);
    }
    print_node_reasons(cli, group);
}

/* ---- what blocks, what helps ---- */

/* Of devices in use, the name says whose: "job 1 (train)". */
static void block_words(const json_t *block, struct buf *out)
{
    const char *detail = field_text(block, "detail", ""), *name = field_text(block, "name", "");

    if (strcmp(field_text(block, "kind", ""), "devices") != 0) {
        text_field(out, block, "kind");
        buf_addc(out, ' ');
    }
    text_add(out, name);
    if (!*detail)
        return;
    buf_adds(out, strcmp(field_text(block, "kind", ""), "devices") == 0 ? " " : ": ");
    text_add(out, detail);
}

static void print_blocking(struct cli *cli, const json_t *blocking)
{
    const json_t *block;
    size_t i;

    if (json_array_size(blocking) > 0)
        fputs("\n  What stands in the way\n", cli->out);
    json_array_foreach (blocking, i, block) {
        const json_t *nodes = json_object_get(block, "nodes");
        BUF line = {0};

        block_words(block, &line);
        if (json_array_size(nodes) > 0) {
            buf_adds(&line, json_array_size(nodes) == 1 ? " (node " : " (nodes ");
            text_names(&line, nodes);
            buf_addc(&line, ')');
        }
        paragraph(cli, "    - ", buf_str(&line));
    }
}

static void print_hints(struct cli *cli, const json_t *hints)
{
    const json_t *hint;
    size_t i;

    if (json_array_size(hints) > 0)
        fputs("\n  What would help\n", cli->out);
    json_array_foreach (hints, i, hint) {
        BUF line = {0};

        text_value(&line, hint);
        paragraph(cli, "    - ", buf_str(&line));
    }
}

/* "2 like gpu-3: 8 x H100, 64 cpu, 512Gi of memory" */
static void print_more_nodes(struct cli *cli, const json_t *nodes)
{
    const json_t *node, *device;
    size_t i, k;

    if (json_array_size(nodes) > 0)
        fputs("\n  Empty nodes more that would make it fit now\n", cli->out);
    json_array_foreach (nodes, i, node) {
        const char *before = ": ";
        BUF line = {0};

        text_field(&line, node, "count");
        buf_adds(&line, " like ");
        text_field(&line, node, "like");
        json_array_foreach (json_object_get(node, "devices"), k, device) {
            buf_adds(&line, before);
            text_field(&line, device, "count");
            buf_adds(&line, " x ");
            text_field(&line, device, "name");
            before = ", ";
        }
        if (json_object_get(node, "cpu")) {
            buf_adds(&line, before);
            text_field(&line, node, "cpu");
            buf_adds(&line, " cpu");
            before = ", ";
        }
        if (json_object_get(node, "memory")) {
            buf_adds(&line, before);
            text_field(&line, node, "memory");
            buf_adds(&line, " of memory");
        }
        paragraph(cli, "    - ", buf_str(&line));
    }
}

static void print_chosen(struct cli *cli, const json_t *explanation)
{
    const json_t *chosen = json_object_get(explanation, "chosen"), *one;
    size_t i;

    json_array_foreach (chosen, i, one) {
        BUF line = {0};

        text_field(&line, one, "claim");
        buf_addc(&line, '/');
        text_field(&line, one, "request");
        buf_adds(&line, " takes alternative ");
        text_field(&line, one, "alternative");
        paragraph(cli, i == 0 ? "  Chosen: " : "          ", buf_str(&line));
    }
}

/* The default goes without saying. */
static void print_placing(struct cli *cli, const json_t *effective)
{
    BUF words = {0};

    if (!effective || strcmp(field_text(effective, "from", ""), "default") == 0)
        return;
    text_placement(&words, effective);
    paragraph(cli, "  Placing: ", buf_str(&words));
}

/* "Asked for nodes: accepted (ProvisioningRequest train-3-ask-1): is being looked at" */
static void print_asked(struct cli *cli, const json_t *asked)
{
    const char *request = json_string_value(json_object_get(asked, "request"));
    const char *detail = json_string_value(json_object_get(asked, "detail"));
    BUF line = {0};

    if (!asked)
        return;
    text_field(&line, asked, "state");
    if (request && *request) {
        buf_adds(&line, " (ProvisioningRequest ");
        text_field(&line, asked, "request");
        buf_addc(&line, ')');
    }
    if (detail && *detail) {
        buf_adds(&line, ": ");
        text_field(&line, asked, "detail");
    }
    if (json_object_get(asked, "againAt")) {
        buf_adds(&line, "; again at ");
        text_field(&line, asked, "againAt");
    }
    fputc('\n', cli->out);
    paragraph(cli, "  Asked for nodes: ", buf_str(&line));
}

static void print_explanation(struct cli *cli, const json_t *explanation)
{
    const json_t *group;
    size_t i;

    print_head(cli, explanation);
    print_placing(cli, json_object_get(explanation, "effectivePlacement"));
    print_chosen(cli, explanation);
    json_array_foreach (json_object_get(explanation, "groups"), i, group)
        print_group(cli, group);
    print_blocking(cli, json_object_get(explanation, "blocking"));
    print_hints(cli, json_object_get(explanation, "hints"));
    print_more_nodes(cli, json_object_get(explanation, "wouldFitWithNodes"));
    print_asked(cli, json_object_get(explanation, "askedForNodes"));
}

int run_explain(struct cli *cli)
{
    for (size_t i = 0; i < cli->args.n_words; i++) {
        json_t *explanation = NULL;
        BUF path = {0};
        int status;

        job_path(cli, cli->args.words[i], &path);
        buf_adds(&path, "/explain");
        status = cli_get(cli, buf_str(&path), &explanation);
        if (status != EXIT_OK)
            return status;
        fputs(i > 0 && !is_document(cli) ? "\n" : "", cli->out);
        if (is_document(cli))
            document_print(cli, explanation);
        else
            print_explanation(cli, explanation);
        json_decref(explanation);
    }
    return EXIT_OK;
}
