/* What may happen in a story: one row per kind of step. `make` decides everything when the story is made, so that
 * `play` does the same whatever happened before, as far as it can. One more kind is one more row. */
#include "test/support/cmocka.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "test/simulation/play.h"

static bool set_text(struct step *step, char *text)
{
    step->text = text;
    return true;
}

static bool command_text(struct step *step, const char *fmt, ...) PRINTF_LIKE(2, 3);
static bool command_text(struct step *step, const char *fmt, ...)
{
    char words[2000];
    va_list args;

    va_start(args, fmt);
    vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    return set_text(step, mem_strdup(words));
}

static void note_answer(struct play *play, const struct stage_answer *answer)
{
    buf_addf(&play->log, "  answer: %s %s\n",
             !answer->is_told   ? "none"
             : answer->err.code ? err_code_name(answer->err.code)
                                : "done",
             answer->err.text);
}

/* May be refused: what it is about may not be there. */
static bool command(struct play *play, const char *json)
{
    struct error err = {0};
    int done = stage_command(&play->stage, json, &err);

    buf_addf(&play->log, "  command: %s\n", err.text);
    return done == 0;
}

/* Takes the object. */
static void command_put(struct play *play, json_t *object)
{
    json_t *put = json_pack("{s:o}", "putObject", object);
    char *words = json_dumps(put, JSON_COMPACT);

    command(play, words);
    free(words);
    json_decref(put);
}

/* ---- people ---- */

static bool make_submit(struct story *story, struct rng *rng, struct step *step)
{
    snprintf(step->job.name, sizeof(step->job.name), "j%zu", step->number);
    return set_text(step, job_make(story, rng, &step->job));
}

static void acknowledge(struct play *play, const struct step *step, const struct stage_answer *answer)
{
    json_t *view;
    size_t i;

    json_array_foreach (json_object_get(answer->body, "jobs"), i, view) {
        struct known_job *job = play_job(play, json_integer_value(json_object_get(view, "id")));

        if (!job)
            rule_broken(play, "what is acknowledged is stored", "%s was answered with id %lld, which has no event",
                        step->job.name, (long long)json_integer_value(json_object_get(view, "id")));
        job->is_acknowledged = true;
    }
}

/* A client that hears nothing asks again; one that is refused does not. */
static void play_submit(struct play *play, const struct step *step)
{
    const struct submit_options options = {.idempotency_key = step->job.name};
    bool is_told = false;

    for (int i = 0; i < 5 && !is_told; i++) {
        struct stage_answer answer = stage_submit(&play->stage, &stage_admin, step->text, &options);

        is_told = answer.is_told;
        note_answer(play, &answer);
        if (is_told && !answer.err.code)
            acknowledge(play, step, &answer);
        else if (is_told && play_job_named(play, step->job.name))
            rule_broken(play, "what is refused is not recorded", "%s: %s", step->job.name, answer.err.text);
        stage_answer_release(&answer);
    }
}

static const char *pick_job(const struct story *story, struct rng *rng)
{
    const char *name = NULL;
    size_t n = 0;

    for (size_t i = 0; i < story->n_steps; i++)
        if (story->steps[i].job.name[0] && one_in(rng, ++n))
            name = story->steps[i].job.name;
    return name;
}

static bool make_action(struct story *story, struct rng *rng, struct step *step)
{
    static const enum job_action actions[] = {JOB_ACTION_CANCEL,  JOB_ACTION_HOLD,    JOB_ACTION_RELEASE,
                                              JOB_ACTION_RELEASE, JOB_ACTION_REQUEUE, JOB_ACTION_REQUEUE};
    static const char *const names[] = {"cancel", "hold", "release", "requeue"};
    const char *job = pick_job(story, rng);

    if (!job)
        return false;
    snprintf(step->target, sizeof(step->target), "%s", job);
    step->n[0] = actions[pick(rng, ARRAY_SIZE(actions))];
    return command_text(step, "%s %s", names[step->n[0]], job);
}

static void play_action(struct play *play, const struct step *step)
{
    struct stage_answer answer = stage_action(&play->stage, step->target, (enum job_action)step->n[0]);

    note_answer(play, &answer);
    stage_answer_release(&answer);
}

static bool make_apply(struct story *story, struct rng *rng, struct step *step)
{
    return set_text(step, queues_change(&story->queues, rng));
}

static void play_apply(struct play *play, const struct step *step)
{
    struct stage_answer answer = stage_apply(&play->stage, step->text);

    note_answer(play, &answer);
    stage_answer_release(&answer);
}

/* ---- time ---- */

static bool make_advance(struct story *story, struct rng *rng, struct step *step)
{
    static const size_t up_to_ms[] = {200, 2000, 10000, 60000, 400000};

    (void)story;
    step->n[0] = (int64_t)(1 + pick(rng, up_to_ms[pick(rng, ARRAY_SIZE(up_to_ms))]));
    step->n[1] = one_in(rng, 2);
    return command_text(step, "%lld ms%s", (long long)step->n[0],
                        step->n[1] ? ", then the disk works, if it did not" : "");
}

static void play_advance(struct play *play, const struct step *step)
{
    stage_run(&play->stage, step->n[0]);
    if (step->n[1])
        play->faults->countdown = -1;
}

/* ---- the server's life ---- */

static bool make_crash(struct story *story, struct rng *rng, struct step *step)
{
    (void)story;
    step->n[0] = (int64_t)(1 + pick(rng, one_in(rng, 2) ? 6 : 40));
    return command_text(step, "before effect %lld", (long long)step->n[0]);
}

static void play_crash(struct play *play, const struct step *step)
{
    play->stage.crash_at = (int)step->n[0];
    stage_restart(&play->stage);
}

static bool make_plain(struct story *story, struct rng *rng, struct step *step)
{
    (void)story, (void)rng, (void)step;
    return true;
}

/* What must be the same after a restart, whether or not the cluster has been read again. */
static json_t *durable_view(struct play *play)
{
    static const char *const keys[] = {
        "id",       "name",    "namespace",         "queue",       "user",        "state",     "ending", "attempt",
        "priority", "endedAt", "startedAt",         "submittedAt", "retriesLeft", "placement", "chosen", "charges",
        "exitCode", "shape",   "effectivePlacement"};
    const struct job_filter filter = {.limit = 1000};
    json_t *all = core_jobs(play->stage.core, &stage_admin, &filter, NULL), *view, *out = json_array();
    size_t i;

    json_array_foreach (json_object_get(all, "items"), i, view) {
        json_t *kept = json_object();

        for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
            if (json_object_get(view, keys[k]))
                json_object_set(kept, keys[k], json_object_get(view, keys[k]));
        if (strcmp(text_at(view, "state", NULL, NULL), "Pending") != 0) /* that is the last round's word */
            json_object_set(kept, "reason", json_object_get(view, "reason"));
        json_array_append_new(out, kept);
    }
    json_decref(all);
    all = core_queues(play->stage.core, &stage_admin, NULL);
    json_array_foreach (json_object_get(all, "items"), i, view) {
        json_t *quota;
        size_t k;

        json_object_del(view, "share"); /* of what the cluster has, which is not known yet */
        json_object_del(view, "dominantResource");
        json_array_foreach (json_object_get(view, "quotas"), k, quota)
            json_object_del(quota, "capacity");
        json_array_append(out, view);
    }
    json_decref(all);
    return out;
}

static bool is_recording(struct play *play)
{
    json_t *status = core_status(play->stage.core);
    bool is = strncmp(text_at(status, "reason", NULL, NULL), "database", 8) != 0;

    json_decref(status);
    return is;
}

static void play_reopen(struct play *play, const struct step *step)
{
    json_t *before = durable_view(play), *after;
    /* A commit whose sync failed may stand in the log of the store all the same: then it counts after a restart. And
     * what is due waits as long as nothing can be recorded. */
    bool may_differ = play->faults->countdown == 0 || !is_recording(play);

    (void)step;
    stage_restart_unread(&play->stage);
    after = durable_view(play);
    if (!may_differ && !json_equal(before, after)) {
        char *was = json_dumps(before, JSON_COMPACT), *is = json_dumps(after, JSON_COMPACT);
        size_t same = 0;

        while (was[same] && was[same] == is[same])
            same++;
        same = same > 120 ? same - 120 : 0;
        rule_broken(play, "a restart changes nothing", "before ...%.300s\nafter ...%.300s", was + same, is + same);
    }
    json_decref(before);
    json_decref(after);
    stage_settle(&play->stage);
}

/* ---- the store ---- */

static bool make_disk(struct story *story, struct rng *rng, struct step *step)
{
    (void)story;
    step->n[0] = one_in(rng, 3) ? -1 : (int64_t)pick(rng, 30);
    step->n[1] = one_in(rng, 2) ? SQLITE_FULL : SQLITE_IOERR_FSYNC;
    return step->n[0] < 0 ? command_text(step, "works again")
                          : command_text(step, "fails from write %lld on", (long long)step->n[0]);
}

static void play_disk(struct play *play, const struct step *step)
{
    *play->faults = (struct faults){.countdown = (int)step->n[0], .stays = true, .result = (int)step->n[1]};
}

/* ---- calls and the stream ---- */

static bool make_call_fails(struct story *story, struct rng *rng, struct step *step)
{
    static const enum err_code codes[] = {ERR_TIMEOUT, ERR_UNAVAILABLE, ERR_CONFLICT, ERR_INVALID};
    static const char *const words[] = {"refused", "lost", "late"};

    (void)story;
    step->n[0] = (int64_t)(1 + pick(rng, one_in(rng, 2) ? 4 : 15));
    step->n[1] = (int64_t)pick(rng, 3);
    /* a late call was not answered: nobody knows more of it */
    step->n[2] = step->n[1] == RELAY_LATE ? ERR_TIMEOUT : codes[pick(rng, step->n[1] == RELAY_LOSE ? 2 : 4)];
    return command_text(step, "call %lld from now is %s: %s", (long long)step->n[0], words[step->n[1]],
                        err_code_name((enum err_code)step->n[2]));
}

static void play_call_fails(struct play *play, const struct step *step)
{
    struct relay *relay = &play->stage.relay;

    relay->fail_nth = relay->n_calls + (size_t)step->n[0];
    relay->fault = (enum relay_fault)step->n[1];
    relay->code = (enum err_code)step->n[2];
    relay->late_ms = 1 + step->n[0] * 1500;
    play->had_late_calls |= relay->fault == RELAY_LATE;
}

static bool make_fail(struct story *story, struct rng *rng, struct step *step)
{
    static const char *const ops[] = {"create", "create", "remove", "ungate", "get", "allocate", "bind"};
    static const char *const errors[] = {"conflict", "invalid", "timeout", "unavailable"};
    static const char *const kinds[] = {"", "", ", \"kind\": \"Pod\"", ", \"kind\": \"ResourceClaim\"",
                                        ", \"kind\": \"ConfigMap\""};
    const char *op = ops[pick(rng, ARRAY_SIZE(ops))];
    bool is_of_any_kind = strcmp(op, "ungate") && strcmp(op, "allocate") && strcmp(op, "bind");

    (void)story;
    return command_text(step, "{\"fail\": \"%s\", \"error\": \"%s\", \"nth\": %zu%s}", op, errors[pick(rng, 4)],
                        1 + pick(rng, 4), is_of_any_kind ? kinds[pick(rng, 5)] : "");
}

static void play_command(struct play *play, const struct step *step)
{
    command(play, step->text);
}

static bool make_lose(struct story *story, struct rng *rng, struct step *step)
{
    (void)story, (void)rng;
    return command_text(step, "{\"lose\": \"stream\"}");
}

static bool make_cut(struct story *story, struct rng *rng, struct step *step)
{
    (void)story;
    step->n[0] = (int64_t)pick(rng, 30000);
    return command_text(step, "for %lld ms", (long long)step->n[0]);
}

static void play_cut(struct play *play, const struct step *step)
{
    relay_cut(&play->stage.relay, step->n[0]);
    stage_settle(&play->stage);
}

static bool make_lag(struct story *story, struct rng *rng, struct step *step)
{
    (void)story;
    step->n[0] = one_in(rng, 3) ? 0 : (int64_t)pick(rng, 4000);
    step->n[1] = one_in(rng, 3) ? 0 : (int64_t)pick(rng, 4000);
    return command_text(step, "changes are told after %lld ms, answers after %lld ms", (long long)step->n[0],
                        (long long)step->n[1]);
}

static void play_lag(struct play *play, const struct step *step)
{
    play->stage.relay.stream_lag_ms = step->n[0];
    play->stage.relay.answer_lag_ms = step->n[1];
}

/* ---- the cluster's bad days ---- */

static bool make_node(struct story *story, struct rng *rng, struct step *step)
{
    return command_text(step, "{\"node%s\": \"%s\"}", one_in(rng, 3) ? "Down" : "Up",
                        story->cluster.nodes[pick(rng, story->cluster.n_nodes)].name);
}

static bool make_taint(struct story *story, struct rng *rng, struct step *step)
{
    char *device = cluster_pick_device(&story->cluster, rng);

    if (one_in(rng, 2))
        command_text(step, "{\"deviceUntaint\": {%s}}", device);
    else
        command_text(step, "{\"deviceTaint\": {%s, \"effect\": \"%s\"}}", device,
                     one_in(rng, 2) ? "NoExecute" : "NoSchedule");
    free(device);
    return true;
}

static bool make_hold(struct story *story, struct rng *rng, struct step *step)
{
    (void)story;
    return command_text(step, "{\"%s\": \"schedule\"}", one_in(rng, 3) ? "hold" : "release");
}

/* The n-th of our objects that exist, or of a kind of them. */
static const json_t *nth_of_ours(struct play *play, int64_t n, const char *kind)
{
    const char *key;
    json_t *object;
    size_t count = 0, at;

    json_object_foreach (play->stage.relay.objects, key, object)
        count += label_number(object, LABEL_JOB) && (!kind || is_kind(object, kind));
    if (count == 0)
        return NULL;
    at = (size_t)n % count;
    json_object_foreach (play->stage.relay.objects, key, object)
        if (label_number(object, LABEL_JOB) && (!kind || is_kind(object, kind)) && at-- == 0)
            return object;
    return NULL;
}

static bool make_nth(struct story *story, struct rng *rng, struct step *step)
{
    (void)story;
    step->n[0] = (int64_t)pick(rng, 1000);
    step->n[1] = one_in(rng, 3) ? 1 + (int64_t)pick(rng, 3) : 137;
    return command_text(step, "number %lld of ours", (long long)step->n[0]);
}

static void play_kill(struct play *play, const struct step *step)
{
    const json_t *pod = nth_of_ours(play, step->n[0], "Pod");
    char words[300];

    if (!pod)
        return;
    snprintf(words, sizeof(words), "{\"killPod\": \"default/%s\", \"exitCode\": %lld}",
             text_at(pod, "metadata", "name", NULL), (long long)step->n[1]);
    command(play, words);
}

static void play_delete(struct play *play, const struct step *step)
{
    const json_t *object = nth_of_ours(play, step->n[0], NULL);
    char words[400];

    if (!object)
        return;
    snprintf(words, sizeof(words),
             "{\"deleteObject\": {\"kind\": \"%s\", \"namespace\": \"default\", \"name\": \"%s\"}}",
             text_at(object, "kind", NULL, NULL), text_at(object, "metadata", "name", NULL));
    command(play, words);
}

/* ---- others on the cluster ---- */

static void put(struct play *play, const char *kind, const char *name, const char *object)
{
    BUF key = {0};
    BUF words = {0};

    play->had_others = true;
    buf_addf(&key, "%s/default/%s", kind, name);
    if (json_object_get(play->stage.relay.objects, buf_str(&key)))
        return; /* ours is there already */
    json_object_set_new(play->foreign, buf_str(&key), json_true());
    buf_addf(&words, "{\"putObject\": %s}", object);
    command(play, buf_str(&words));
}

/* A pod with a claim that nobody asked us about. */
static bool make_foreign(struct story *story, struct rng *rng, struct step *step)
{
    (void)story;
    snprintf(step->target, sizeof(step->target), "f%zu", step->number);
    step->n[0] = (int64_t)(1 + pick(rng, 2));
    step->n[1] = (int64_t)(100 + pick(rng, 60000));
    return command_text(step, "%s takes %lld GPUs for %lld ms", step->target, (long long)step->n[0],
                        (long long)step->n[1]);
}

static void play_foreign(struct play *play, const struct step *step)
{
    char words[1000];

    snprintf(words, sizeof(words),
             "{\"apiVersion\": \"resource.k8s.io/v1\", \"kind\": \"ResourceClaim\", \"metadata\": {\"name\": \"%s\", "
             "\"namespace\": \"default\"}, \"spec\": {\"devices\": {\"requests\": [{\"name\": \"r\", \"exactly\": "
             "{\"deviceClassName\": \"gpu\", \"count\": %lld}}]}}}",
             step->target, (long long)step->n[0]);
    put(play, "ResourceClaim", step->target, words);
    snprintf(words, sizeof(words),
             "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"%s\", \"namespace\": \"default\", "
             "\"annotations\": {\"embedded.queue.dra/duration\": \"%lldms\"}}, \"spec\": {\"containers\": [{\"name\": "
             "\"c\", \"image\": \"i\", \"resources\": {\"requests\": {\"cpu\": \"1\"}}}], \"resourceClaims\": "
             "[{\"name\": \"g\", \"resourceClaimName\": \"%s\"}]}}",
             step->target, (long long)step->n[1], step->target);
    put(play, "Pod", step->target, words);
}

/* Somebody has an object under the name that the next attempt of a job will give its own. */
static bool make_squat(struct story *story, struct rng *rng, struct step *step)
{
    const char *job = pick_job(story, rng);

    if (!job)
        return false;
    snprintf(step->target, sizeof(step->target), "%s", job);
    step->n[0] = (int64_t)pick(rng, 2);
    return command_text(step, "takes the name of the next %s of %s", step->n[0] ? "Service" : "anchor", job);
}

static void play_squat(struct play *play, const struct step *step)
{
    const struct known_job *job = play_job_named(play, step->target);
    const char *kind = step->n[0] ? "Service" : "ConfigMap";
    char name[64], words[400];

    if (!job)
        return;
    snprintf(name, sizeof(name), "%s-%lld-%lld", step->target, (long long)job->id, (long long)job->n_admitted + 1);
    snprintf(words, sizeof(words),
             "{\"apiVersion\": \"v1\", \"kind\": \"%s\", \"metadata\": {\"name\": \"%s\", \"namespace\": "
             "\"default\"}%s}",
             kind, name, step->n[0] ? ", \"spec\": {\"clusterIP\": \"None\"}" : "");
    put(play, kind, name, words);
}

/* A node gets smaller, or as it was. */
static bool make_shrink(struct story *story, struct rng *rng, struct step *step)
{
    step->n[0] = (int64_t)pick(rng, story->cluster.n_nodes);
    step->n[1] = (int64_t)pick(rng, 4);
    return command_text(step, "%s is %s", story->cluster.nodes[step->n[0]].name,
                        (const char *[]){"as at first", "small", "cordoned", "in another zone"}[step->n[1]]);
}

static void put_node(struct play *play, size_t node, int64_t how)
{
    json_t *object = json_loads(play->story->cluster.nodes[node].node, 0, NULL);
    json_t *allocatable = json_object_get(json_object_get(object, "status"), "allocatable");

    if (how == 1)
        json_object_set_new(allocatable, "cpu", json_string("2"));
    if (how == 2)
        json_object_set_new(json_object_get(object, "spec"), "unschedulable", json_true());
    if (how == 3)
        json_object_set_new(json_object_get(json_object_get(object, "metadata"), "labels"), "zone", json_string("z9"));
    command_put(play, object);
}

static void play_shrink(struct play *play, const struct step *step)
{
    play->had_others = true;
    put_node(play, (size_t)step->n[0], step->n[1]);
}

/* A driver publishes its pool anew: without its last GPU, with another model, or as at first. */
static bool make_slice(struct story *story, struct rng *rng, struct step *step)
{
    step->n[0] = (int64_t)pick(rng, story->cluster.n_nodes);
    step->n[1] = (int64_t)pick(rng, 3);
    step->n[2] = (int64_t)(2 + step->number); /* the generation */
    if (!story->cluster.nodes[step->n[0]].slice)
        return false;
    return command_text(step, "of %s: %s", story->cluster.nodes[step->n[0]].name,
                        (const char *[]){"as at first", "one GPU less", "another model"}[step->n[1]]);
}

static void put_slice(struct play *play, size_t node, int64_t how, int64_t generation)
{
    json_t *object = json_loads(play->story->cluster.nodes[node].slice, 0, NULL);
    json_t *spec = json_object_get(object, "spec"), *devices = json_object_get(spec, "devices");

    json_object_set_new(json_object_get(spec, "pool"), "generation", json_integer(generation));
    if (how == 1)
        json_array_remove(devices, json_array_size(devices) - 1);
    if (how == 2)
        json_object_set_new(json_object_get(json_object_get(json_array_get(devices, 0), "attributes"), "model"),
                            "string", json_string("C"));
    command_put(play, object);
}

static void play_slice(struct play *play, const struct step *step)
{
    play->had_slice_changes = true;
    put_slice(play, (size_t)step->n[0], step->n[1], step->n[2]);
}

/* ---- all well again ---- */

static void remove_others(struct play *play)
{
    const char *key;
    json_t *value;

    json_object_foreach (play->foreign, key, value) {
        char kind[40] = "", words[400];
        const char *slash = strchr(key, '/'), *name = strrchr(key, '/') + 1;

        snprintf(kind, sizeof(kind), "%.*s", (int)(slash - key), key);
        snprintf(words, sizeof(words),
                 "{\"deleteObject\": {\"kind\": \"%s\", \"namespace\": \"default\", \"name\": \"%s\"}}", kind, name);
        /* of those nobody but us has any business with them */
        if (!command(play, words) && (strcmp(kind, "ConfigMap") == 0 || strcmp(kind, "Service") == 0))
            rule_broken(play, "what others have stays", "%s is not there any more", key);
    }
}

static void remove_taints(struct play *play)
{
    json_t *names = json_array(), *object, *name;
    const char *key;
    size_t i;

    json_object_foreach (play->stage.relay.objects, key, object)
        if (is_kind(object, "DeviceTaintRule"))
            json_array_append_new(names, json_string(text_at(object, "metadata", "name", NULL)));
    json_array_foreach (names, i, name) {
        char words[300];

        snprintf(words, sizeof(words), "{\"deleteObject\": {\"kind\": \"DeviceTaintRule\", \"name\": \"%s\"}}",
                 json_string_value(name));
        command(play, words);
    }
    json_decref(names);
}

void play_heal(struct play *play)
{
    play->faults->countdown = -1;
    play->stage.relay.fail_nth = 0;
    play->stage.relay.stream_lag_ms = play->stage.relay.answer_lag_ms = 0;
    stage_run(&play->stage, 60000);
    remove_others(play);
    remove_taints(play);
    for (size_t i = 0; i < play->story->cluster.n_nodes; i++) {
        put_node(play, i, 0);
        if (play->story->cluster.nodes[i].slice)
            put_slice(play, i, 0, 1000000);
    }
    command(play, "{\"release\": \"schedule\"}");
    stage_restart(&play->stage); /* of a crash that may still be planned, too */
}

const struct step_kind step_kinds[] = {
    {"submit", 10, make_submit, play_submit},
    {"person", 4, make_action, play_action},
    {"apply", 2, make_apply, play_apply},
    {"advance", 12, make_advance, play_advance},
    {"crash", 3, make_crash, play_crash},
    {"reopen", 1, make_plain, play_reopen},
    {"disk", 2, make_disk, play_disk},
    {"call", 5, make_call_fails, play_call_fails},
    {"cluster fails", 2, make_fail, play_command},
    {"cluster loses", 1, make_lose, play_command},
    {"cut", 1, make_cut, play_cut},
    {"lag", 1, make_lag, play_lag},
    {"node", 2, make_node, play_command},
    {"taint", 2, make_taint, play_command},
    {"scheduling", 1, make_hold, play_command},
    {"kill pod", 2, make_nth, play_kill},
    {"delete", 1, make_nth, play_delete},
    {"foreign", 2, make_foreign, play_foreign},
    {"squat", 1, make_squat, play_squat},
    {"node changes", 1, make_shrink, play_shrink},
    {"slice", 1, make_slice, play_slice},
};
const size_t n_step_kinds = ARRAY_SIZE(step_kinds);
