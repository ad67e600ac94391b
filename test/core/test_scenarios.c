/* Scenarios: a script on the virtual clock (scenarios/NAME.scn) and everything that then happened (NAME.trace beside
 * it). UPDATE_GOLDEN=1 rewrites the traces; their diff is reviewed like code. A line of a script is one of
 *
 *   # words                        kept in the trace
 *   cluster PATH                   first, if at all: manifests other than the stage's, from the root of the sources
 *   apply PATH                     queues and resources
 *   submit PATH                    manifests
 *   job NAME key=value ...         a GangJob: queue members gpus seconds exit retries priority, more=LINE (a line of
 * its spec) cancel|hold|release|requeue JOB command JSON                   for the embedded cluster restart the server
 * is killed and started again advance N                      seconds show                           all jobs, and the
 * objects that exist queues                         quota, use and share */
#include "test/support/cmocka.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "test/support/stage.h"

#define FOLDER "test/core/scenarios"

struct play {
    struct stage stage;
    bool is_open;
    struct buf trace;
};

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    BUF text = {0};
    char chunk[4096];
    size_t n;

    if (!file)
        return NULL;
    while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
        buf_add(&text, chunk, n);
    fclose(file);
    return buf_take(&text);
}

static char *must_read(const char *path)
{
    char *text = read_text(path);

    if (!text)
        fail_msg("cannot read %s", path);
    return text;
}

/* ---- lines ---- */

static void tell_answer(struct play *play, struct stage_answer *answer)
{
    json_t *problem;
    size_t i;

    if (answer->err.code && !answer->problems)
        buf_addf(&play->trace, "  refused: %s\n", answer->err.text);
    json_array_foreach (answer->problems, i, problem)
        buf_addf(&play->trace, "  refused: document %d %s: %s\n",
                 (int)json_integer_value(json_object_get(problem, "document")),
                 json_string_value(json_object_get(problem, "field")),
                 json_string_value(json_object_get(problem, "detail")));
    stage_answer_release(answer);
}

static void do_apply(struct play *play, char *rest)
{
    char *yaml = must_read(rest);
    struct stage_answer answer = stage_apply(&play->stage, yaml);

    free(yaml);
    tell_answer(play, &answer);
}

static void submit(struct play *play, const char *yaml)
{
    struct stage_answer answer = stage_submit(&play->stage, &stage_admin, yaml, NULL);

    tell_answer(play, &answer);
}

static void do_submit(struct play *play, char *rest)
{
    char *yaml = must_read(rest);

    submit(play, yaml);
    free(yaml);
}

static void set_number(struct stage_job *job, const char *key, const char *value)
{
    const struct {
        const char *key;
        int *field;
    } fields[] = {{"members", &job->members}, {"gpus", &job->gpus},       {"seconds", &job->seconds},
                  {"exit", &job->exit_code},  {"retries", &job->retries}, {"priority", &job->priority}};

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (strcmp(fields[i].key, key) == 0) {
            *fields[i].field = (int)strtol(value, NULL, 10);
            return;
        }
    fail_msg("no key %s", key);
}

static void do_job(struct play *play, char *rest)
{
    struct stage_job job = {.members = 1, .gpus = 1, .seconds = 10};
    BUF more = {0};
    char *save, *yaml;

    job.name = strtok_r(rest, " ", &save);
    for (char *word; (word = strtok_r(NULL, " ", &save));) {
        char *value = strchr(word, '=');

        if (!value)
            fail_msg("not key=value: %s", word);
        *value++ = '\0';
        if (strcmp(word, "queue") == 0)
            job.queue = value;
        else if (strcmp(word, "more") == 0) {
            buf_addf(&more, "  %s %s\n", value, save); /* the rest of the line */
            break;
        } else
            set_number(&job, word, value);
    }
    job.more = buf_str(&more);
    yaml = stage_job_yaml(&job);
    submit(play, yaml);
    free(yaml);
}

static void act(struct play *play, const char *job, enum job_action action)
{
    struct stage_answer answer = stage_action(&play->stage, job, action);

    tell_answer(play, &answer);
}
static void do_cancel(struct play *play, char *rest)
{
    act(play, rest, JOB_ACTION_CANCEL);
}
static void do_hold(struct play *play, char *rest)
{
    act(play, rest, JOB_ACTION_HOLD);
}
static void do_release(struct play *play, char *rest)
{
    act(play, rest, JOB_ACTION_RELEASE);
}
static void do_requeue(struct play *play, char *rest)
{
    act(play, rest, JOB_ACTION_REQUEUE);
}

static void do_command(struct play *play, char *rest)
{
    struct error err = {0};

    if (stage_command(&play->stage, rest, &err) < 0)
        fail_msg("%s: %s", rest, err.text);
}

static void do_restart(struct play *play, char *rest)
{
    (void)rest;
    stage_restart(&play->stage);
}

static void do_advance(struct play *play, char *rest)
{
    stage_run(&play->stage, strtoll(rest, NULL, 10) * 1000);
}

static void do_show(struct play *play, char *rest)
{
    (void)rest;
    stage_trace(&play->stage, &play->trace);
    stage_show(&play->stage, &play->trace);
}

static void tell_quotas(struct play *play, const json_t *queue)
{
    const json_t *quota;
    size_t i;

    json_array_foreach (json_object_get(queue, "quotas"), i, quota)
        buf_addf(&play->trace, ", %s %lld of %lld", json_string_value(json_object_get(quota, "resource")),
                 (long long)json_integer_value(json_object_get(quota, "used")),
                 (long long)json_integer_value(json_object_get(quota, "nominal")));
}

static void do_queues(struct play *play, char *rest)
{
    json_t *view = core_queues(play->stage.core, &stage_admin, NULL), *queue;
    size_t i;

    (void)rest;
    stage_trace(&play->stage, &play->trace);
    json_array_foreach (json_object_get(view, "items"), i, queue) {
        buf_addf(&play->trace, "  queue %s share %.3f", json_string_value(json_object_get(queue, "name")),
                 json_real_value(json_object_get(queue, "share")));
        tell_quotas(play, queue);
        buf_addc(&play->trace, '\n');
    }
    json_decref(view);
}

static const struct {
    const char *word;
    void (*run)(struct play *play, char *rest);
} verbs[] = {
    {"apply", do_apply},     {"submit", do_submit},   {"job", do_job},         {"cancel", do_cancel},
    {"hold", do_hold},       {"release", do_release}, {"requeue", do_requeue}, {"command", do_command},
    {"restart", do_restart}, {"advance", do_advance}, {"show", do_show},       {"queues", do_queues},
};

static void run_verb(struct play *play, char *line)
{
    char *rest = strchr(line, ' ');

    if (rest)
        *rest++ = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        if (strcmp(verbs[i].word, line) == 0) {
            verbs[i].run(play, rest ? rest : line + strlen(line));
            return;
        }
    fail_msg("no such line: %s", line);
}

static void run_line(struct play *play, char *line)
{
    const char *manifests = strncmp(line, "cluster ", 8) == 0 ? line + 8 : NULL;

    buf_addf(&play->trace, "%s%s\n", line[0] == '#' ? "" : "> ", line);
    if (line[0] == '#')
        return;
    if (!play->is_open)
        stage_open(&play->stage, manifests);
    play->is_open = true;
    if (!manifests)
        run_verb(play, line);
    stage_trace(&play->stage, &play->trace);
}

static char *play_script(const char *path)
{
    struct play play = {.is_open = false};
    char *script = must_read(path), *save;

    for (char *line = strtok_r(script, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        run_line(&play, line);
    free(script);
    stage_close(&play.stage);
    return buf_take(&play.trace);
}

/* ---- golden traces ---- */

static void compare(const char *path, const char *trace)
{
    char *want;
    FILE *file;

    if (getenv("UPDATE_GOLDEN")) {
        file = fopen(path, "w");
        assert_non_null(file);
        fputs(trace, file);
        fclose(file);
        return;
    }
    want = read_text(path);
    if (!want)
        fail_msg("%s is missing: UPDATE_GOLDEN=1 writes it", path);
    if (strcmp(want, trace) != 0)
        print_message("---- %s is now:\n%s----\n", path, trace);
    assert_string_equal(trace, want);
    free(want);
}

struct scenario {
    const char *name;
    char script[128], trace[128];
};

static void test_scenario(void **state)
{
    const struct scenario *scenario = *state;
    char *trace = play_script(scenario->script);

    compare(scenario->trace, trace);
    free(trace);
}

static int is_script(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);

    return n > 4 && strcmp(entry->d_name + n - 4, ".scn") == 0;
}

int main(void)
{
    static struct scenario scenarios[100];
    struct dirent **entries;
    int n = scandir(FOLDER, &entries, is_script, alphasort), failed;

    for (int i = 0; i < n; i++) {
        size_t stem = strlen(entries[i]->d_name) - 4;

        scenarios[i].name = entries[i]->d_name;
        snprintf(scenarios[i].script, sizeof(scenarios[i].script), FOLDER "/%.90s", entries[i]->d_name);
        snprintf(scenarios[i].trace, sizeof(scenarios[i].trace), FOLDER "/%.*s.trace", (int)stem, entries[i]->d_name);
    }
    failed = run_table(test_scenario, scenarios, n > 0 ? (size_t)n : 0, sizeof(scenarios[0]), "scenarios");
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    return n > 0 ? failed : 1;
}
