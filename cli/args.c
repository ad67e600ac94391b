#include "cli/args.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "cli/commands.h"
#include "queued/manifest/duration.h"

#include "allocator/base/banned.h"

const struct option options[OPT_COUNT] = {
    [OPT_HELP] = {'h', "help", NULL, "explain the command"},
    [OPT_VERSION] = {0, "version", NULL, "the same as the command version"},
    [OPT_SERVER] = {'s', "server", "ADDRESS", "http://HOST:PORT, https://HOST:PORT or unix:PATH"},
    [OPT_TOKEN_FILE] = {0, "token-file", "FILE", "file with the bearer token"},
    [OPT_CONFIG] = {0, "config", "FILE", "configuration instead of the user's own"},
    [OPT_OUTPUT] = {'o', "output", "FORM", "table, wide, name, json, yaml or csv"},
    [OPT_NO_HEADERS] = {0, "no-headers", NULL, "tables without their first line"},
    [OPT_REQUEST_TIMEOUT] = {0, "request-timeout", "TIME", "give up on an answer after this time (30s)"},
    [OPT_FILE] = {'f', "file", "FILE", "one more file, as kubectl has it"},
    [OPT_NAMESPACE] = {'n', "namespace", "NAME", "namespace of documents or jobs that name none"},
    [OPT_QUEUE] = {'q', "queue", "NAME", "the queue (submit: overrides the manifests')"},
    [OPT_USER] = {'u', "user", "NAME", "jobs of this user"},
    [OPT_STATE] = {'t', "state", "STATE",
                   "jobs in this state: Held, Pending, Admitted, Launching, Running, Preempting, "
                   "Succeeded, Failed, Cancelled"},
    [OPT_LABEL] = {'l', "label", "KEY=VALUE", "jobs with this label"},
    [OPT_ALL] = {'a', "all", NULL, "also jobs that have ended"},
    [OPT_LIMIT] = {0, "limit", "N", "at most so many"},
    [OPT_ONE_JOB] = {'1', "one-job", NULL, "all workloads of the files are one gang"},
    [OPT_DRY_RUN] = {0, "dry-run", NULL, "check and predict only, submit nothing"},
    [OPT_WAIT] = {'W', "wait", NULL, "wait until the jobs have ended"},
    [OPT_SKIP] = {0, "skip", "KIND,...", "leave out documents of these kinds (Namespace, DeviceClass ...)"},
    [OPT_KEY] = {0, "idempotency-key", "TEXT", "the same key again submits nothing new"},
    [OPT_FOR] = {0, "for", "STATE", "ended (default), running, or a state's name"},
    [OPT_TIMEOUT] = {0, "timeout", "TIME", "stop waiting after this time (never)"},
    [OPT_MEMBER] = {'m', "member", "NAME", "GROUP-INDEX; the first member when absent"},
    [OPT_TAIL] = {0, "tail", "N", "the last N lines (100)"},
    [OPT_FOLLOW] = {'f', "follow", NULL, "go on printing what is new"},
    [OPT_NODE] = {'w', "node", "NAME", "of this node only"},
    [OPT_ROLE] = {'r', "role", "ROLE", "viewer, submitter (default), queue-admin or admin"},
    [OPT_QUEUES] = {'q', "queues", "NAME,...", "the queues that it may use (all)"},
};

/* ---- finding ---- */

/* Before the command is known, options of submit are taken too: `dra-submit -q team-a job.yaml`. Letters and names may
 * mean different options in different commands. */
static enum option_id option_find(const struct command *command, char letter, const char *name, size_t len)
{
    for (size_t i = 0; i < OPT_COUNT; i++) {
        bool is_it = letter ? options[i].letter == letter
                            : strlen(options[i].name) == len && strncmp(options[i].name, name, len) == 0;

        if (is_it && command_has_option(command, (enum option_id)i))
            return (enum option_id)i;
    }
    return OPT_COUNT;
}

struct parser {
    int argc;
    const char *const *argv;
    int at;
    struct args *args;
    const char *given[OPT_COUNT]; /* as the user spelt it, for messages */
    struct error *err;
};

static const struct command *effective(const struct parser *p)
{
    return p->args->command ? p->args->command : command_submit();
}

static int unknown_option(struct parser *p, const char *arg)
{
    return error_set(p->err, ERR_INVALID, "%s%s has no option %.40s", p->args->command ? "the command " : "dra-submit",
                     p->args->command ? p->args->command->name : "", arg);
}

static int store(struct parser *p, enum option_id id, const char *spelt, const char *value)
{
    struct args *args = p->args;

    if (args->values[id] && id == OPT_FILE) { /* may be repeated: files are words */
        args->words[args->n_words++] = args->values[id];
    } else if (args->values[id] && options[id].value) {
        return error_set(p->err, ERR_INVALID, "option --%s is given twice", options[id].name);
    }
    args->values[id] = value;
    p->given[id] = spelt;
    return 0;
}

/* The value of an option: attached, or the next argument. */
static int take_value(struct parser *p, enum option_id id, const char *spelt, const char *attached)
{
    if (!options[id].value)
        return attached ? error_set(p->err, ERR_INVALID, "option --%s takes no value", options[id].name)
                        : store(p, id, spelt, "");
    if (!attached) {
        if (p->at + 1 >= p->argc)
            return error_set(p->err, ERR_INVALID, "option %.40s needs a value: %s", spelt, options[id].value);
        attached = p->argv[++p->at];
    }
    return store(p, id, spelt, attached);
}

/* long = "--" name [ "=" value ] */
static int take_long(struct parser *p, const char *arg)
{
    const char *name = arg + 2, *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    enum option_id id = option_find(effective(p), 0, name, len);

    return id == OPT_COUNT ? unknown_option(p, arg) : take_value(p, id, arg, equals ? equals + 1 : NULL);
}

/* short = "-" flag* ( letter value? ) */
static int take_short(struct parser *p, const char *arg)
{
    for (const char *c = arg + 1; *c; c++) {
        enum option_id id = option_find(effective(p), *c, NULL, 0);
        const char *rest = c[1] == '=' ? c + 2 : c + 1;

        if (id == OPT_COUNT)
            return unknown_option(p, arg);
        if (options[id].value)
            return take_value(p, id, arg, c[1] ? rest : NULL);
        if (take_value(p, id, arg, NULL) < 0)
            return -1;
    }
    return 0;
}

static int take_word(struct parser *p, const char *word)
{
    struct args *args = p->args;
    const char *next = p->at + 1 < p->argc ? p->argv[p->at + 1] : NULL;
    size_t used = 1;

    if (!args->command && args->n_words == 0) {
        args->command = command_find(word, next, &used);
        if (args->command) {
            p->at += (int)used - 1;
            return 0;
        }
        args->command = command_submit();
    }
    args->words[args->n_words++] = word;
    return 0;
}

static int take_all(struct parser *p)
{
    bool options_over = false;

    for (; p->at < p->argc; p->at++) {
        const char *arg = p->argv[p->at];
        int rc;

        if (options_over || arg[0] != '-' || strcmp(arg, "-") == 0)
            rc = take_word(p, arg);
        else if (strcmp(arg, "--") == 0)
            rc = (options_over = true, 0);
        else
            rc = arg[1] == '-' ? take_long(p, arg) : take_short(p, arg);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* ---- checking ---- */

static int check(struct parser *p)
{
    struct args *args = p->args;
    const struct command *command = args->command;

    if (args->values[OPT_FILE]) {
        args->words[args->n_words++] = args->values[OPT_FILE];
        if (!command)
            command = args->command = command_submit();
    }
    if (!command || args_has(args, OPT_HELP) || args_has(args, OPT_VERSION))
        return 0;
    for (size_t i = 0; i < OPT_COUNT; i++)
        if (args->values[i] && !command_has_option(command, (enum option_id)i))
            return unknown_option(p, p->given[i]);
    if (args->n_words < command->min_words)
        return error_set(p->err, ERR_INVALID, "%s needs %s", command->name, command->words);
    if (args->n_words > command->max_words)
        return error_set(p->err, ERR_INVALID, "%s does not take \"%.60s\"", command->name,
                         args->words[command->max_words]);
    return 0;
}

int args_parse(int argc, const char *const *argv, struct args *out, struct error *err)
{
    struct parser parser = {.argc = argc, .argv = argv, .at = 1, .args = out, .err = err};

    *out = (struct args){.words = mem_array(const char *, (size_t)argc + 2)};
    return take_all(&parser) < 0 ? -1 : check(&parser);
}

void args_release(struct args *args)
{
    free(args->words);
    args->words = NULL;
}

/* ---- values ---- */

int args_number(const struct args *args, enum option_id id, long long min, long long max, long long *out,
                struct error *err)
{
    const char *text = args->values[id];
    long long value;
    char *end;

    if (!text)
        return 0;
    value = strtoll(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || value < min || value > max)
        return error_set(err, ERR_INVALID, "--%s: \"%.40s\" is no number from %lld to %lld", options[id].name, text,
                         min, max);
    *out = value;
    return 0;
}

int args_duration(const struct args *args, enum option_id id, int64_t *out_ms, struct error *err)
{
    const char *text = args->values[id];
    char seconds[32];

    if (!text)
        return 0;
    if (*text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 10) {
        snprintf(seconds, sizeof(seconds), "%ss", text);
        text = seconds;
    }
    if (!duration_parse(text, out_ms))
        return error_set(err, ERR_INVALID, "--%s: \"%.40s\" is no time such as 90s, 5m or 1h30m", options[id].name,
                         args->values[id]);
    return 0;
}
