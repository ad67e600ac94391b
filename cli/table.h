/* cli/table.h - rows of text in columns, and lists of objects in every form of output. */
#ifndef QUEUED_CLI_TABLE_H
#define QUEUED_CLI_TABLE_H

#include <jansson.h>

#include "allocator/base/str.h"
#include "cli/cli.h"

/* ---- plain tables ---- */

#define TABLE_COLUMNS_MAX 16

struct table {
    char **cells; /* n_rows * n_columns */
    size_t n_columns, n_rows, cap;
    bool right[TABLE_COLUMNS_MAX];
};

void table_init(struct table *table, size_t n_columns);
void table_release(struct table *table);
/* The text of a new cell, filled row by row; takes the buffer's text and leaves it empty. */
void table_add(struct table *table, struct buf *text);
void table_adds(struct table *table, const char *text);
/* Columns as wide as their widest cell, two spaces between, `indent` before; lines are cut when the output is a
 * terminal. Columns that are empty but for their title are left out when `squeeze`. */
void table_print(struct cli *cli, const struct table *table, size_t indent, bool squeeze);

/* ---- lists of objects ---- */

struct column {
    const char *title;
    void (*cell)(const json_t *item, int64_t now_ms, struct buf *out);
    bool right, wide; /* wide: only with -o wide and -o csv */
};

struct listing {
    const struct column *columns;
    size_t n_columns;
    const char *kind, *name_key; /* -o name prints kind/name */
    const char *nothing;         /* said on stderr when a table is empty */
    int64_t now_ms;
};

/* Print objects in the form that was asked for; always EXIT_OK. */
int listing_print(struct cli *cli, const struct listing *listing, const json_t *items);
/* Print a JSON value for -o json or -o yaml. */
void document_print(struct cli *cli, const json_t *value);
/* Whether the output is for programs: JSON or YAML. */
bool is_document(const struct cli *cli);

#endif
