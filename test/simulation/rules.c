/* What must hold at every instant, by the events that the store has, the jobs that the API shows, and the objects that
 * are really in the cluster. What the server believes of the cluster is not asked. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "queued/cluster/cluster.h"
#include "store/rows.h"
#include "test/simulation/play.h"

/* An object that nobody owns may stand until the next reconciliations have removed it. */
#define STRAY_MS 600000

/* ---- moves are legal ---- */

/* Design, section 7; written down once more, apart from states.c. */
static const char *const legal_moves[] = {
    "Held Pending",       "Held Cancelled",       "Pending Held",         "Pending Admitted", "Pending Cancelled",
    "Admitted Launching", "Admitted Preempting",  "Admitted Pending",     "Admitted Failed",  "Admitted Cancelled",
    "Launching Running",  "Launching Preempting", "Launching Pending",    "Launching Failed", "Launching Cancelled",
    "Running Succeeded",  "Running Preempting",   "Running Pending",      "Running Failed",   "Running Cancelled",
    "Preempting Pending", "Preempting Failed",    "Preempting Cancelled",
};

static bool is_legal(const char *from, const char *to)
{
    char move[40];

    snprintf(move, sizeof(move), "%.15s %.15s", from, to);
    for (size_t i = 0; i < ARRAY_SIZE(legal_moves); i++)
        if (strcmp(legal_moves[i], move) == 0)
            return true;
    return false;
}

static bool is_state_live(const char *state)
{
    return !state_name_is_final(state) && strcmp(state, "Held") != 0 && strcmp(state, "Pending") != 0;
}

static void note_move(struct play *play, struct known_job *job, const struct event_row *row)
{
    const char *name = job->step->job.name;

    if (strcmp(row->from, job->state) != 0)
        rule_broken(play, "moves are legal", "%s moves from %s, but is %s", name, row->from, job->state);
    if (!is_legal(row->from, row->to))
        rule_broken(play, "moves are legal", "%s moves from %s to %s", name, row->from, row->to);
    snprintf(job->state, sizeof(job->state), "%s", row->to);
    if (strcmp(row->to, "Admitted") == 0) {
        job->n_admitted++;
        job->is_new_here = true;
        job->has_launched = false;
        job->half_open_ms = 0;
        job->n_drift = 0;
    } else if (strcmp(row->to, "Launching") == 0) {
        job->launched_ms = row->at_ms;
        job->has_launched = true;
    } else if (strcmp(row->to, "Running") == 0) {
        job->running_ms = row->at_ms;
        play->verdict->n_runs++;
    }
    if (is_state_live(row->from) && !is_state_live(row->to))
        job->left_ms = row->at_ms;
    if (state_name_is_final(row->to))
        job->ended_ms = row->at_ms;
}

struct naming {
    struct play *play;
    const char *name;
};

static struct known_job *add_job(struct play *play, int64_t id)
{
    char key[24];
    json_t *view;
    struct known_job *job;

    snprintf(key, sizeof(key), "%lld", (long long)id);
    view = core_job(play->stage.core, &stage_admin, key, NULL);
    if (!view)
        return NULL; /* its time to live was over at once */
    if (play_job_named(play, text_at(view, "name", NULL, NULL)))
        rule_broken(play, "one submission is one job", "%s was recorded twice", text_at(view, "name", NULL, NULL));
    mem_grow(play->jobs, play->n_jobs, play->cap_jobs);
    job = &play->jobs[play->n_jobs++];
    *job = (struct known_job){.id = id, .step = story_job(play->story, text_at(view, "name", NULL, NULL))};
    assert_non_null(job->step);
    snprintf(job->state, sizeof(job->state), "%s", job->step->job.is_held ? "Held" : "Pending");
    json_decref(view);
    return job;
}

static void on_event(void *ctx, const struct event_row *row)
{
    struct play *play = ctx;
    struct known_job *job = play_job(play, row->job);

    play->last_event = row->id;
    play->verdict->n_events++;
    buf_addf(&play->log, "+%.3fs %lld %s %s %s: %s\n", (double)(row->at_ms - STAGE_START_MS) / 1000,
             (long long)row->job, row->type, row->from, row->to, row->detail);
    if (!job)
        job = add_job(play, row->job);
    if (!job)
        return;
    if (row->to[0])
        note_move(play, job, row);
    if (strcmp(row->type, "Drift") == 0) {
        job->n_drift++;
        play->verdict->n_drift++;
        if ((play->is_strict || play->story->cluster.has_uuids) && !play->had_others && !play->had_slice_changes &&
            !play->had_late_calls)
            rule_broken(play, "what is allocated was planned", "%s: %s", job->step->job.name, row->detail);
    }
    if (play->is_calm && strcmp(row->type, "Ending") == 0 && strstr(row->detail, "attempt ") &&
        strstr(row->detail, " failed: ") && !strstr(row->detail, "on command"))
        rule_broken(play, "nothing fails without a cause", "%s: %s", job->step->job.name, row->detail);
}

static void read_events(struct play *play)
{
    struct error err = {0};

    for (size_t i = 0; i < play->n_jobs; i++)
        play->jobs[i].is_new_here = false;
    if (store_events_each(play->stage.store, 0, play->last_event, 1000000, on_event, play, &err) < 0)
        rule_broken(play, "the store can be read", "%s", err.text);
}

static void read_views(struct play *play)
{
    const struct job_filter filter = {.limit = 1000};
    json_t *all = core_jobs(play->stage.core, &stage_admin, &filter, NULL);

    json_decref(play->views);
    play->views = json_incref(json_object_get(all, "items"));
    json_decref(all);
}

/* ---- jobs ---- */

static void rule_no_job_is_lost(struct play *play)
{
    for (size_t i = 0; i < play->n_jobs; i++) {
        struct known_job *job = &play->jobs[i];
        const struct job_traits *traits = &job->step->job;
        bool is_due = state_name_is_final(job->state) && traits->ttl_ms >= 0 &&
                      play_now_ms(play) >= job->ended_ms + traits->ttl_ms;

        if (play_view(play, job->id))
            continue;
        if (!is_due)
            rule_broken(play, "no acknowledged job is lost", "%s (%lld, %s%s) is not there", traits->name,
                        (long long)job->id, job->state, job->is_acknowledged ? "" : ", not acknowledged");
        job->is_dropped = true;
    }
}

static void rule_views_tell_what_is_stored(struct play *play)
{
    json_t *view;
    size_t i;

    json_array_foreach (play->views, i, view) {
        const struct known_job *job = play_job(play, json_integer_value(json_object_get(view, "id")));

        if (!job)
            rule_broken(play, "views tell what is stored", "%s has no event", text_at(view, "name", NULL, NULL));
        if (strcmp(job->state, text_at(view, "state", NULL, NULL)) != 0)
            rule_broken(play, "views tell what is stored", "%s is %s by its events and %s by its view",
                        job->step->job.name, job->state, text_at(view, "state", NULL, NULL));
        if (json_integer_value(json_object_get(view, "attempt")) != job->n_admitted)
            rule_broken(play, "attempts are counted", "%s was admitted %lld times and is at attempt %lld",
                        job->step->job.name, (long long)job->n_admitted,
                        (long long)json_integer_value(json_object_get(view, "attempt")));
    }
}

static void rule_dependencies_are_kept(struct play *play)
{
    for (size_t i = 0; i < play->n_jobs; i++) {
        const char *name = play->jobs[i].step->job.depends_on;
        const struct known_job *before = name[0] ? play_job_named(play, name) : NULL;

        if (play->jobs[i].is_new_here && before && strcmp(before->state, "Succeeded") != 0)
            rule_broken(play, "dependencies are kept", "%s was admitted while %s is %s", play->jobs[i].step->job.name,
                        name, before->state);
    }
}

static void rule_only_success_succeeds(struct play *play)
{
    for (size_t i = 0; i < play->n_jobs; i++)
        if (play->jobs[i].step->job.fails && strcmp(play->jobs[i].state, "Succeeded") == 0)
            /* a shape without the failing group may have succeeded */
            if (!strstr(play->jobs[i].step->text, "alternatives:"))
                rule_broken(play, "only success succeeds", "%s has a member that fails", play->jobs[i].step->job.name);
}

static void rule_time_is_up(struct play *play)
{
    for (size_t i = 0; play->is_calm && i < play->n_jobs; i++) {
        const struct known_job *job = &play->jobs[i];
        int64_t max_ms = job->step->job.max_runtime_ms;

        if (max_ms && strcmp(job->state, "Running") == 0 && play_now_ms(play) > job->running_ms + max_ms + 60000)
            rule_broken(play, "nobody runs longer than maxRuntime", "%s runs since +%.3fs", job->step->job.name,
                        (double)(job->running_ms - STAGE_START_MS) / 1000);
    }
}

/* ---- objects ---- */

/* By its gate, or because it waits for queued to bind it. */
static bool is_held(const json_t *pod)
{
    const json_t *spec = json_object_get(pod, "spec");
    const char *scheduler = json_string_value(json_object_get(spec, "schedulerName"));

    if (scheduler && strcmp(scheduler, SCHEDULER_NAME) == 0)
        return !json_object_get(spec, "nodeName");
    return json_array_size(json_object_get(spec, "schedulingGates")) > 0;
}

static bool is_of_live_attempt(const struct play *play, const json_t *object)
{
    const json_t *view = play_view(play, label_number(object, LABEL_JOB));

    return view && view_is_live(view) &&
           json_integer_value(json_object_get(view, "attempt")) == label_number(object, LABEL_ATTEMPT);
}

static void rule_nothing_outlives_its_attempt(struct play *play)
{
    json_t *strays = json_object(), *object;
    const char *key;

    json_object_foreach (play->stage.relay.objects, key, object) {
        json_t *since = json_object_get(play->strays, key);

        if (!label_number(object, LABEL_JOB) || is_of_live_attempt(play, object))
            continue;
        if (!play->had_late_calls)
            rule_broken(play, "nothing outlives its attempt", "%s is there", key);
        if (is_kind(object, "Pod") && !is_held(object))
            rule_broken(play, "nothing outlives its attempt", "%s is there and has no gate", key);
        if (since && play_now_ms(play) - json_integer_value(since) > STRAY_MS)
            rule_broken(play, "nothing outlives its attempt", "%s is there for %d s", key, STRAY_MS / 1000);
        json_object_set_new(strays, key, json_integer(since ? json_integer_value(since) : play_now_ms(play)));
    }
    json_decref(play->strays);
    play->strays = strays;
}

static void rule_one_attempt_has_pods(struct play *play)
{
    json_t *attempts = json_object(), *object;
    const char *key;

    json_object_foreach (play->stage.relay.objects, key, object) {
        const char *job = text_at(object, "metadata", "labels", LABEL_JOB);
        const char *attempt = text_at(object, "metadata", "labels", LABEL_ATTEMPT), *other;

        if (!job[0] || !is_kind(object, "Pod") || (play->had_late_calls && is_held(object)))
            continue;
        other = json_string_value(json_object_get(attempts, job));
        if (other && strcmp(other, attempt) != 0)
            rule_broken(play, "one attempt has pods", "job %s has pods of attempts %s and %s", job, other, attempt);
        json_object_set_new(attempts, job, json_string(attempt));
    }
    json_decref(attempts);
}

static void rule_gang_opens_whole(struct play *play)
{
    for (size_t i = 0; i < play->n_jobs; i++) {
        struct known_job *job = &play->jobs[i];
        const json_t *view = play_view(play, job->id);
        size_t n_open = 0, n_shut = 0;
        const char *key;
        json_t *object;
        bool is_ending = view && json_object_get(view, "ending");

        json_object_foreach (play->stage.relay.objects, key, object)
            if (is_kind(object, "Pod") && label_number(object, LABEL_JOB) == job->id)
                *(is_held(object) ? &n_shut : &n_open) += 1;
        if (n_open && !job->has_launched)
            rule_broken(play, "a gang starts whole", "%s is %s and %zu of its pods may start", job->step->job.name,
                        job->state, n_open);
        if (n_shut && strcmp(job->state, "Running") == 0 && !is_ending)
            rule_broken(play, "a gang starts whole", "%s runs and %zu of its pods are held", job->step->job.name,
                        n_shut);
        if (n_open == 0 || n_shut == 0 || play->stage.relay.stream_lag_ms)
            job->half_open_ms = 0;
        else if (job->half_open_ms == 0)
            job->half_open_ms = play_now_ms(play);
        else if (play_now_ms(play) - job->half_open_ms > play->story->launch_timeout_ms + 400000)
            rule_broken(play, "a gang starts whole", "%s stands half open since +%.3fs", job->step->job.name,
                        (double)(job->half_open_ms - STAGE_START_MS) / 1000);
    }
}

/* ---- usage ---- */

struct reading_usage {
    struct play *play;
    json_t *open; /* ids of jobs that are charged now, as keys */
};

static void on_usage(void *ctx, const struct usage_row *row)
{
    struct reading_usage *reading = ctx;
    struct play *play = reading->play;
    const struct known_job *job = play_job(play, row->job);
    char key[24];

    if (!job)
        return;
    if (row->to_ms == 0) {
        if (!job->has_launched || !is_state_live(job->state) || row->attempt != job->n_admitted)
            rule_broken(play, "usage is charged while devices are held", "%s is %s and charged for attempt %lld",
                        job->step->job.name, job->state, (long long)row->attempt);
        /* a resource that the scheduler's other choice brought in counts from then on */
        if (row->from_ms != job->launched_ms && job->n_drift == 0)
            rule_broken(play, "usage is charged while devices are held", "%s is charged since +%.3fs",
                        job->step->job.name, (double)(row->from_ms - STAGE_START_MS) / 1000);
        snprintf(key, sizeof(key), "%lld", (long long)row->job);
        json_object_set_new(reading->open, key, json_true());
    } else if (row->attempt == job->n_admitted && is_state_live(job->state)) {
        rule_broken(play, "usage is charged while devices are held", "%s is %s and its charges are closed",
                    job->step->job.name, job->state);
    } else if (row->attempt == job->n_admitted && row->to_ms != job->left_ms) {
        rule_broken(play, "usage is charged while devices are held", "%s was charged until +%.3fs and left at +%.3fs",
                    job->step->job.name, (double)(row->to_ms - STAGE_START_MS) / 1000,
                    (double)(job->left_ms - STAGE_START_MS) / 1000);
    }
}

static void rule_usage_is_charged(struct play *play)
{
    struct reading_usage reading = {play, json_object()};
    const char *key;
    json_t *object;

    if (store_usage_each(play->stage.store, 0, INT64_MAX, on_usage, &reading, NULL) < 0)
        rule_broken(play, "the store can be read", "usage");
    json_object_foreach (play->stage.relay.objects, key, object) {
        const char *job = text_at(object, "metadata", "labels", LABEL_JOB);

        if (job[0] && is_kind(object, "ResourceClaim") && json_array_size(allocation_results(object)) &&
            !json_object_get(reading.open, job))
            rule_broken(play, "usage is charged while devices are held", "%s has devices and job %s is not charged",
                        key, job);
    }
    json_decref(reading.open);
}

/* ---- all of them ---- */

void rules_at_rest(struct play *play)
{
    static void (*const rules[])(struct play * play) = {
        rule_no_job_is_lost,
        rule_views_tell_what_is_stored,
        rule_dependencies_are_kept,
        rule_only_success_succeeds,
        rule_time_is_up,
        rule_one_attempt_has_pods,
        rule_nothing_outlives_its_attempt,
        rule_gang_opens_whole,
        rule_usage_is_charged,
        rule_devices_are_given_once,
        rule_constraints_hold,
        rule_charges_are_what_is_held,
        rule_quota_is_kept,
    };

    read_events(play);
    read_views(play);
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        rules[i](play);
}

/* ---- when all is over ---- */

#define CALM_MS  900000 /* after which no fault has any effect left */
#define CHUNK_MS 300000
#define MOST_MS  (24 * 3600000)

static bool all_have_ended(const struct play *play)
{
    for (size_t i = 0; i < play->n_jobs; i++)
        if (!state_name_is_final(play->jobs[i].state))
            return false;
    return true;
}

static void release_held(struct play *play)
{
    for (size_t i = 0; i < play->n_jobs; i++)
        if (strcmp(play->jobs[i].state, "Held") == 0) {
            struct stage_answer answer = stage_action(&play->stage, play->jobs[i].step->job.name, JOB_ACTION_RELEASE);

            stage_answer_release(&answer);
        }
}

/* Until nothing has happened for a while. */
static void come_to_rest(struct play *play)
{
    int64_t begun_ms = play_now_ms(play), quiet_ms = play_now_ms(play), last_event = play->last_event;

    while (play_now_ms(play) - quiet_ms < 2 * CHUNK_MS + STORY_NEVER_ENDS * 60000) {
        if (all_have_ended(play) && json_object_size(play->strays) == 0)
            return;
        stage_run(&play->stage, CHUNK_MS);
        play->is_calm = play_now_ms(play) - begun_ms > CALM_MS;
        if (play->last_event != last_event)
            quiet_ms = play_now_ms(play);
        last_event = play->last_event;
        if (play_now_ms(play) - begun_ms > MOST_MS)
            rule_broken(play, "all comes to rest", "things still happen after %d h", MOST_MS / 3600000);
    }
}

static void rule_nothing_is_left(struct play *play)
{
    const char *key;
    json_t *object, *devices, *device;
    size_t i;

    json_object_foreach (play->stage.relay.objects, key, object)
        if (label_number(object, LABEL_JOB))
            rule_broken(play, "nothing is left over", "%s is there", key);
    devices = core_devices(play->stage.core, &stage_admin, NULL);
    json_array_foreach (json_object_get(devices, "items"), i, device)
        if (strcmp(text_at(device, "state", NULL, NULL), "free") != 0 &&
            strcmp(text_at(device, "state", NULL, NULL), "tainted") != 0)
            rule_broken(play, "nothing is left over", "device %s/%s is %s", text_at(device, "pool", NULL, NULL),
                        text_at(device, "name", NULL, NULL), text_at(device, "state", NULL, NULL));
    json_decref(devices);
}

void rules_at_end(struct play *play)
{
    release_held(play);
    stage_run(&play->stage, 60000); /* what others had there goes, too */
    come_to_rest(play);
    rules_at_rest(play);
    for (size_t i = 0; i < play->n_jobs; i++)
        if (is_state_live(play->jobs[i].state))
            rule_broken(play, "no job is stuck", "%s is %s for ever", play->jobs[i].step->job.name,
                        play->jobs[i].state);
    rule_nothing_is_left(play);
    rule_who_waits_has_a_reason(play);
}
