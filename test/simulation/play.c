#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/rows.h"
#include "test/simulation/play.h"

/* ---- looking ---- */

struct known_job *play_job(struct play *play, int64_t id)
{
    for (size_t i = 0; i < play->n_jobs; i++)
        if (play->jobs[i].id == id)
            return &play->jobs[i];
    return NULL;
}

struct known_job *play_job_named(struct play *play, const char *name)
{
    for (size_t i = 0; i < play->n_jobs; i++)
        if (strcmp(play->jobs[i].step->job.name, name) == 0)
            return &play->jobs[i];
    return NULL;
}

const json_t *play_view(const struct play *play, int64_t id)
{
    json_t *view;
    size_t i;

    json_array_foreach (play->views, i, view)
        if (json_integer_value(json_object_get(view, "id")) == id)
            return view;
    return NULL;
}

bool state_name_is_final(const char *state)
{
    return strcmp(state, "Succeeded") == 0 || strcmp(state, "Failed") == 0 || strcmp(state, "Cancelled") == 0;
}

bool view_is_live(const json_t *view)
{
    const char *state = text_at(view, "state", NULL, NULL);

    return !state_name_is_final(state) && strcmp(state, "Held") != 0 && strcmp(state, "Pending") != 0;
}

const char *text_at(const json_t *object, const char *a, const char *b, const char *c)
{
    const char *const keys[] = {a, b, c}, *text;

    for (size_t i = 0; i < ARRAY_SIZE(keys) && keys[i]; i++)
        object = json_object_get(object, keys[i]);
    text = json_string_value(object);
    return text ? text : "";
}

int64_t label_number(const json_t *object, const char *label)
{
    return strtoll(text_at(object, "metadata", "labels", label), NULL, 10);
}

bool is_kind(const json_t *object, const char *kind)
{
    return strcmp(text_at(object, "kind", NULL, NULL), kind) == 0;
}

const json_t *allocation_results(const json_t *claim)
{
    return json_object_get(json_object_get(json_object_get(json_object_get(claim, "status"), "allocation"), "devices"),
                           "results");
}

/* ---- rules that break ---- */

void rule_broken(struct play *play, const char *rule, const char *fmt, ...)
{
    va_list args;
    size_t n;

    n = (size_t)snprintf(play->verdict->words, sizeof(play->verdict->words),
                         "at +%.3fs: ", (double)(play_now_ms(play) - STAGE_START_MS) / 1000);
    va_start(args, fmt);
    vsnprintf(play->verdict->words + n, sizeof(play->verdict->words) - n, fmt, args);
    va_end(args);
    snprintf(play->verdict->rule, sizeof(play->verdict->rule), "%s", rule);
    if (getenv("SIM_TRACE"))
        fprintf(stderr, "%s", buf_str(&play->log));
    _exit(1);
}

/* ---- the stage's hooks ---- */

/* A server that cannot open its store is started again until the disk is well. */
static void before_start(void *ctx)
{
    struct play *play = ctx;

    play->faults->countdown = -1;
}

static void at_rest(void *ctx)
{
    rules_at_rest(ctx);
}

/* ---- from the first step to the end ---- */

static void write_cluster(const struct story *story, char path[64])
{
    int file;
    FILE *stream;

    snprintf(path, 64, "/tmp/queued-story-XXXXXX.yaml");
    file = mkstemps(path, 5);
    assert_true(file >= 0);
    stream = fdopen(file, "w");
    assert_non_null(stream);
    fputs(story->cluster.yaml, stream);
    fclose(stream);
}

/* How it ends: who is where and why, and what is there. */
static void log_end(struct play *play)
{
    const char *key;
    json_t *object;
    size_t i;

    json_array_foreach (play->views, i, object)
        buf_addf(&play->log, "  %s %s: %s\n", text_at(object, "name", NULL, NULL), text_at(object, "state", NULL, NULL),
                 text_at(object, "reason", NULL, NULL));
    json_object_foreach (play->stage.relay.objects, key, object)
        buf_addf(&play->log, "  has %s %s\n", key, text_at(object, "metadata", "uid", NULL));
}

void play_story(const struct story *story, struct verdict *verdict, struct faults *faults, struct buf *out_log)
{
    char path[64];
    struct play play = {.story = story,
                        .verdict = verdict,
                        .faults = faults,
                        .foreign = json_object(),
                        .is_strict = getenv("SIM_STRICT") != NULL,
                        .strays = json_object(),
                        .views = json_array()};
    const struct stage_options options = {.manifests = path,
                                          .queues = story->queues.yaml,
                                          .has_pod_groups = story->has_pod_groups,
                                          .bind_classes = story->bind_classes,
                                          .binds_pods = story->binds_pods,
                                          .planning_ms = story->planning_ms,
                                          .reconcile_period_ms = story->reconcile_period_ms,
                                          .launch_timeout_ms = story->launch_timeout_ms,
                                          .before_start = before_start,
                                          .at_rest = at_rest,
                                          .ctx = &play};

    faults->countdown = -1;
    write_cluster(story, path);
    stage_open_with(&play.stage, &options);
    play.stage.relay.stream_lag_ms = story->stream_lag_ms;
    play.stage.relay.answer_lag_ms = story->answer_lag_ms;
    for (size_t i = 0; i < story->n_steps; i++) {
        verdict->step = story->steps[i].number;
        buf_addf(&play.log, "%zu %s\n", story->steps[i].number, story->steps[i].kind->name);
        story->steps[i].kind->play(&play, &story->steps[i]);
        stage_settle(&play.stage);
    }
    verdict->step = SIZE_MAX;
    buf_adds(&play.log, "end\n");
    play_heal(&play);
    rules_at_end(&play);
    log_end(&play);
    verdict->n_jobs += play.n_jobs;
    verdict->n_crashes += (uint64_t)play.stage.n_crashes;
    stage_close(&play.stage);
    unlink(path);
    free(play.jobs);
    json_decref(play.views);
    json_decref(play.foreign);
    json_decref(play.strays);
    *out_log = play.log;
}
