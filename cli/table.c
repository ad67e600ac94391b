#include "cli/table.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "cli/text.h"
#include "queued/manifest/yaml.h"

#include "allocator/base/banned.h"

/* ---- plain tables ---- */

void table_init(struct table *table, size_t n_columns)
{
    INVARIANT(n_columns <= TABLE_COLUMNS_MAX);
    *table = (struct table){.n_columns = n_columns};
}

void table_release(struct table *table)
{
    for (size_t i = 0; i < table->n_rows; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct table){0};
}

/* n_rows counts cells while rows are filled; whole rows are printed. */
void table_add(struct table *table, struct buf *text)
{
    mem_grow(table->cells, table->n_rows, table->cap);
    table->cells[table->n_rows++] = text->data ? buf_take(text) : mem_strdup("");
}

void table_adds(struct table *table, const char *text)
{
    BUF cell = {0};

    buf_adds(&cell, text);
    table_add(table, &cell);
}

/* Widths of the columns; SIZE_MAX for one that is left out. */
static void measure(const struct table *table, bool squeeze, size_t *widths)
{
    for (size_t c = 0; c < table->n_columns; c++) {
        bool empty = true;

        widths[c] = 0;
        for (size_t i = c; i < table->n_rows; i += table->n_columns) {
            size_t width = text_width(table->cells[i], strlen(table->cells[i]));

            widths[c] = width > widths[c] ? width : widths[c];
            empty = empty && (i == c || width == 0);
        }
        if (squeeze && empty)
            widths[c] = SIZE_MAX;
    }
}

static void pad(struct buf *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_addc(out, ' ');
}

static void row_text(const struct table *table, size_t row, const size_t *widths, size_t indent, struct buf *out)
{
    bool first = true;

    pad(out, indent);
    for (size_t c = 0; c < table->n_columns; c++) {
        const char *cell = table->cells[row * table->n_columns + c];
        size_t len = strlen(cell), room;

        if (widths[c] == SIZE_MAX)
            continue;
        room = widths[c] - text_width(cell, len);
        pad(out, first ? 0 : 2);
        pad(out, table->right[c] ? room : 0);
        buf_add(out, cell, len);
        pad(out, table->right[c] ? 0 : room);
        first = false;
    }
    while (out->len > 0 && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
}

/* At most `width` characters, the last one an ellipsis when something is cut. */
static void cut(struct buf *line, size_t width)
{
    size_t at = 0, n = 0;

    if (width < 20 || text_width(buf_str(line), line->len) <= width)
        return;
    while (n < width - 1) {
        at++;
        while (((unsigned char)line->data[at] & 0xc0) == 0x80)
            at++;
        n++;
    }
    line->len = at;
    line->data[at] = '\0';
    buf_adds(line, "\xe2\x80\xa6");
}

void table_print(struct cli *cli, const struct table *table, size_t indent, bool squeeze)
{
    size_t widths[TABLE_COLUMNS_MAX];

    measure(table, squeeze, widths);
    for (size_t row = 0; row < table->n_rows / table->n_columns; row++) {
        BUF line = {0};

        row_text(table, row, widths, indent, &line);
        if (cli->is_tty)
            cut(&line, cli->width);
        fprintf(cli->out, "%s\n", buf_str(&line));
    }
}

/* ---- documents ---- */

bool is_document(const struct cli *cli)
{
    return cli->output == OUTPUT_JSON || cli->output == OUTPUT_YAML;
}

void document_print(struct cli *cli, const json_t *value)
{
    char *text =
        cli->output == OUTPUT_YAML ? manifest_to_yaml(value) : json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY);

    INVARIANT(text);
    fputs(text, cli->out);
    if (cli->output == OUTPUT_JSON)
        fputc('\n', cli->out);
    free(text);
}

/* ---- lists ---- */

static void print_names(struct cli *cli, const struct listing *listing, const json_t *items)
{
    const json_t *item;
    size_t i;

    json_array_foreach (items, i, item) {
        BUF name = {0};

        text_field(&name, item, listing->name_key);
        fprintf(cli->out, "%s/%s\n", listing->kind, buf_str(&name));
    }
}

/* RFC 4180 */
static void csv_cell(struct cli *cli, const char *text, bool first)
{
    fputs(first ? "" : ",", cli->out);
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, cli->out);
        return;
    }
    fputc('"', cli->out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', cli->out);
        fputc(*text, cli->out);
    }
    fputc('"', cli->out);
}

static void csv_title(struct cli *cli, const char *title, bool first)
{
    char lower[40];
    size_t i = 0;

    for (; title[i] && i < sizeof(lower) - 1; i++)
        lower[i] = title[i] == ' ' ? '_' : (char)(title[i] >= 'A' && title[i] <= 'Z' ? title[i] + 32 : title[i]);
    lower[i] = '\0';
    csv_cell(cli, lower, first);
}

static void print_csv(struct cli *cli, const struct listing *listing, const json_t *items)
{
    const json_t *item;
    size_t i;

    if (!args_has(&cli->args, OPT_NO_HEADERS)) {
        for (size_t c = 0; c < listing->n_columns; c++)
            csv_title(cli, listing->columns[c].title, c == 0);
        fputs("\r\n", cli->out);
    }
    json_array_foreach (items, i, item) {
        for (size_t c = 0; c < listing->n_columns; c++) {
            BUF cell = {0};

            listing->columns[c].cell(item, listing->now_ms, &cell);
            csv_cell(cli, buf_str(&cell), c == 0);
        }
        fputs("\r\n", cli->out);
    }
}

static void print_table(struct cli *cli, const struct listing *listing, const json_t *items)
{
    const struct column *shown[TABLE_COLUMNS_MAX];
    const json_t *item;
    struct table table;
    size_t n = 0, i;

    for (size_t c = 0; c < listing->n_columns; c++)
        if (!listing->columns[c].wide || cli->output == OUTPUT_WIDE)
            shown[n++] = &listing->columns[c];
    table_init(&table, n);
    for (size_t c = 0; c < n; c++) {
        table.right[c] = shown[c]->right;
        if (!args_has(&cli->args, OPT_NO_HEADERS))
            table_adds(&table, shown[c]->title);
    }
    json_array_foreach (items, i, item)
        for (size_t c = 0; c < n; c++) {
            BUF cell = {0};

            shown[c]->cell(item, listing->now_ms, &cell);
            table_add(&table, &cell);
        }
    table_print(cli, &table, 0, false);
    table_release(&table);
}

int listing_print(struct cli *cli, const struct listing *listing, const json_t *items)
{
    json_t *wrapped;

    switch (cli->output) {
    case OUTPUT_JSON:
    case OUTPUT_YAML:
        wrapped = json_pack("{s:O}", "items", items);
        document_print(cli, wrapped);
        json_decref(wrapped);
        break;
    case OUTPUT_NAME:
        print_names(cli, listing, items);
        break;
    case OUTPUT_CSV:
        print_csv(cli, listing, items);
        break;
    case OUTPUT_TABLE:
    case OUTPUT_WIDE:
        if (json_array_size(items) == 0)
            fprintf(cli->err, "%s\n", listing->nothing);
        else
            print_table(cli, listing, items);
        break;
    }
    return EXIT_OK;
}
