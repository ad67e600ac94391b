#include "allocator/cel/cel.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/cel/device.h"
#include "allocator/cel/internal.h"
#include "allocator/cel/regex.h"
#include "allocator/cel/spec.h"
#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

/* ---- problems ---- */

/* The line around a byte offset, and the column within it, both from 1 and in code points. */
static struct str line_at(struct str text, size_t pos, int *out_line, int *out_column)
{
    size_t start = 0, end;

    *out_line = 1;
    for (size_t i = 0; i < pos; i++)
        if (text.ptr[i] == '\n') {
            start = i + 1;
            (*out_line)++;
        }
    for (end = start; end < text.len && text.ptr[end] != '\n';)
        end++;
    *out_column = (int)utf8_count((struct str){text.ptr + start, pos - start}) + 1;
    return (struct str){text.ptr + start, end - start};
}

#define EXCERPT_LINE 160 /* bytes of the source line that are shown */

static void make_excerpt(struct cel_problem *problem, struct str line, size_t offset)
{
    size_t from = 0, to;
    BUF out = {0};

    buf_addf(&out, "ERROR: <input>:%d:%d: %s", problem->line, problem->column, problem->text);
    /* A long line is cut around the place. */
    if (offset > EXCERPT_LINE / 2)
        from = offset - EXCERPT_LINE / 2;
    while (from > 0 && ((unsigned char)line.ptr[from] & 0xC0) == 0x80)
        from--;
    to = line.len - from > EXCERPT_LINE ? from + EXCERPT_LINE : line.len;
    while (to < line.len && ((unsigned char)line.ptr[to] & 0xC0) == 0x80)
        to++;
    buf_adds(&out, "\n | ");
    for (size_t i = from; i < to; i++)
        buf_addc(&out, line.ptr[i] == '\t' ? ' ' : line.ptr[i]);
    buf_adds(&out, "\n | ");
    for (size_t i = from; i < offset;) {
        size_t next = i;

        utf8_next(line, &next);
        buf_adds(&out, next - i > 1 ? "\uff0e" : ".");
        i = next;
    }
    buf_addc(&out, '^');
    snprintf(problem->excerpt, sizeof(problem->excerpt), "%s", buf_str(&out));
}

int cel_diagnose(struct cel_diagnosis *d, size_t pos, const char *fmt, ...)
{
    struct cel_problem *problem = d->problem;
    struct str text = d->text.len ? d->text : STR(""), line; /* an empty one may have no pointer */
    va_list args;

    if (d->failed && (pos >= d->pos || d->pos == SIZE_MAX))
        return -1;
    d->failed = true;
    d->pos = pos;
    if (!problem)
        return -1;
    *problem = (struct cel_problem){0};
    va_start(args, fmt);
    vsnprintf(problem->text, sizeof(problem->text), fmt, args);
    va_end(args);
    if (pos == SIZE_MAX || pos > text.len) {
        snprintf(problem->excerpt, sizeof(problem->excerpt), "ERROR: <input>: %s", problem->text);
        return -1;
    }
    line = line_at(text, pos, &problem->line, &problem->column);
    make_excerpt(problem, line, (size_t)(text.ptr + pos - line.ptr));
    return -1;
}

/* ---- compile ---- */

static const struct cel_variable device_variable[] = {{{"device", 6}, &cel_t_device}};

static struct cel_env env_of(const struct cel_options *options)
{
    int release = options->release ? options->release : CEL_DEFAULT_RELEASE;
    struct cel_env env = {.variables = device_variable, .n_variables = 1};

    release = release < 34 ? 34 : release > 37 ? 37 : release;
    env.release = release;
    env.parse.quoted_fields = release >= 37;
    env.attribute = release >= 37 || (release == 36 && options->list_attributes) ? &cel_t_dyn : &cel_t_any;
    return env;
}

/* The result must be a bool, or unknown as attributes are. */
static void check_result(const struct cel_env *env, const struct ast *root, struct cel_diagnosis *d)
{
    BUF text = {0};

    if (root->type->kind == env->attribute->kind || (root->type->kind == CEL_T_BOOL && !root->type->n_params))
        return;
    cel_type_format(root->type, &text);
    cel_diagnose(d, 0, "must evaluate to bool or the unknown type, not %s", buf_str(&text));
}

static int compile(struct cel_expr *expr, struct cel_diagnosis *d)
{
    struct cel_env env = env_of(&expr->options);
    uint32_t n_ids;

    expr->root = cel_parse(expr->text, &env.parse, &expr->arena, d, &n_ids);
    if (!expr->root || cel_check(&env, expr->root, &expr->arena, d) < 0 ||
        cel_validate(&env, expr->root, &expr->arena, d) < 0)
        return -1;
    check_result(&env, expr->root, d);
    if (d->failed)
        return -1;
    if (cel_plan(&env, expr->root, n_ids, &expr->arena, &expr->program, d) < 0)
        return -1;
    expr->estimate = cel_estimate(&env, expr->root, n_ids, &expr->arena);
    return 0;
}

int cel_compile(struct str text, const struct cel_options *options, struct cel_expr **out, struct cel_problem *problem)
{
    CLEANUP(cel_expr) *expr = mem_new(struct cel_expr);
    struct cel_diagnosis d = {.problem = problem};

    arena_init(&expr->arena);
    if (options)
        expr->options = *options;
    expr->text = (struct str){arena_strndup(&expr->arena, text.ptr, text.len), text.len};
    d.text = expr->text;
    if (compile(expr, &d) < 0)
        return -1;
    *out = TAKE(expr);
    return 0;
}

void cel_expr_free(struct cel_expr *expr)
{
    if (!expr)
        return;
    for (size_t i = 0; i < expr->program.n_regexes; i++)
        regex_free(expr->program.regexes[i]);
    free(expr->program.regexes);
    arena_release(&expr->arena);
    free(expr);
}

uint64_t cel_estimated_cost(const struct cel_expr *expr)
{
    return expr->estimate;
}

struct str cel_expr_text(const struct cel_expr *expr)
{
    return expr->text;
}

/* ---- evaluate ---- */

/* The real implementation unwraps an optional result before it asks for a bool. */
static struct cel_value loose_bool(struct cel_value v)
{
    for (int depth = 0; v.kind == CEL_V_OPTIONAL && v.as.content && depth < 1000; depth++)
        v = *v.as.content;
    return v;
}

#define MAX_MESSAGE 1024

/* Only the words of the failure stay in the scratch arena. */
static struct cel_result failure(const struct cel_eval *e, struct cel_value v, struct arena_mark mark)
{
    char words[MAX_MESSAGE];

    if (e->fatal)
        snprintf(words, sizeof(words), "%s", e->fatal_words);
    else if (cel_is_error(v))
        snprintf(words, sizeof(words), "%s", v.as.s);
    else
        snprintf(words, sizeof(words), "CEL result of type %s could not be converted to bool", cel_kind_name(v));
    arena_rewind(e->arena, mark);
    return (struct cel_result){CEL_ERROR, e->cost, !e->is_uncertain, arena_strdup(e->arena, words)};
}

struct cel_result cel_evaluate(const struct cel_expr *expr, const struct cel_device *device, struct arena *scratch)
{
    struct arena_mark mark = arena_mark(scratch);
    struct cel_value v;
    struct cel_eval e;

    if (device->problem)
        return (struct cel_result){CEL_ERROR, 0, true, device->problem};
    cel_eval_begin(&e, scratch, expr->program.n_slots, expr->program.n_ids,
                   expr->options.max_cost ? expr->options.max_cost : CEL_MAX_COST);
    e.device = device;
    v = cel_eval_node(&e, expr->program.root);
    if (e.fatal || loose_bool(v).kind != CEL_V_BOOL)
        return failure(&e, v, mark);
    v = loose_bool(v);
    arena_rewind(scratch, mark);
    return (struct cel_result){v.as.b ? CEL_TRUE : CEL_FALSE, e.cost, !e.is_uncertain, NULL};
}

/* ---- the language alone ---- */

int cel_spec_check(struct cel_spec *spec, struct str text, struct arena *arena, struct cel_problem *problem)
{
    struct cel_diagnosis d = {.text = text, .problem = problem};

    spec->env.is_specification = true;
    spec->env.release = CEL_DEFAULT_RELEASE;
    spec->env.attribute = &cel_t_dyn;
    spec->env.parse.quoted_fields = true;
    spec->root = cel_parse(text, &spec->env.parse, arena, &d, &spec->n_ids);
    if (!spec->root || (!spec->env.is_unchecked && cel_check(&spec->env, spec->root, arena, &d) < 0))
        return -1;
    return 0;
}

struct cel_value cel_spec_evaluate(struct cel_spec *spec, const struct cel_value *globals, struct arena *arena)
{
    struct cel_problem problem = {0};
    struct cel_diagnosis d = {.problem = &problem};
    struct cel_value v;
    struct cel_eval e;

    if (cel_plan(&spec->env, spec->root, spec->n_ids, arena, &spec->program, &d) < 0) {
        v = cel_error(arena_strdup(arena, problem.text));
    } else {
        cel_eval_begin(&e, arena, spec->program.n_slots, spec->program.n_ids, UINT64_MAX);
        e.globals = globals;
        v = cel_eval_node(&e, spec->program.root);
        if (e.fatal)
            v = cel_error(e.fatal_words);
    }
    for (size_t i = 0; i < spec->program.n_regexes; i++)
        regex_free(spec->program.regexes[i]);
    free(spec->program.regexes);
    return v;
}
