#include "test/api/fake_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

struct core_watch {
    struct core *core;
    void (*changed)(void *ctx);
    void *ctx;
};

struct core *fake_core_new(void)
{
    struct core *core = mem_new(struct core);

    core->jobs = json_array();
    core->events = json_array();
    core->is_ready = true;
    return core;
}

void core_free(struct core *core)
{
    INVARIANT(!core->watch);
    for (size_t i = 0; i < core->n_replies; i++)
        json_decref(core->replies[i].body);
    json_decref(core->jobs);
    json_decref(core->events);
    json_decref(core->documents);
    json_decref(core->problems);
    free(core);
}

json_t *fake_core_add_job(struct core *core, int id, const char *name, const char *state)
{
    json_t *job = json_pack("{s:i, s:s, s:s}", "id", id, "name", name, "state", state);

    json_array_append_new(core->jobs, job);
    core->is_changed = true;
    return job;
}

static json_t *find(struct core *core, const char *name)
{
    json_t *job;
    size_t i;

    json_array_foreach (core->jobs, i, job) {
        char id[32];

        snprintf(id, sizeof(id), "%lld", (long long)json_integer_value(json_object_get(job, "id")));
        if (strcmp(id, name) == 0 || strcmp(json_string_value(json_object_get(job, "name")), name) == 0)
            return job;
    }
    return NULL;
}

void fake_core_set_state(struct core *core, int id, const char *state)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", id);
    json_object_set_new(find(core, text), "state", json_string(state));
    core->is_changed = true;
}

void fake_core_add_event(struct core *core, int id, int job, const char *type)
{
    json_array_append_new(core->events, json_pack("{s:i, s:i, s:s}", "id", id, "job", job, "type", type));
    core->is_changed = true;
}

/* ---- turns ---- */

static void answer(struct core *core, const struct fake_reply *pending)
{
    struct core_reply reply = {.body = pending->body};

    if (core->failure.code) {
        reply = (struct core_reply){.err = &core->failure, .problems = core->problems};
    }
    pending->reply(pending->ctx, &reply);
    json_decref(pending->body);
}

void core_end_turn(struct core *core)
{
    while (core->n_replies > 0 && !core->holds_replies) {
        struct fake_reply pending = core->replies[0];

        core->n_replies--;
        memmove(core->replies, core->replies + 1, core->n_replies * sizeof(core->replies[0]));
        answer(core, &pending);
    }
    if (core->is_changed && core->watch)
        core->watch->changed(core->watch->ctx);
    core->is_changed = false;
}

bool core_is_idle(const struct core *core)
{
    return core->n_replies == 0;
}

struct core_watch *core_watch_new(struct core *core, void (*changed)(void *ctx), void *ctx)
{
    struct core_watch *watch = mem_new(struct core_watch);

    INVARIANT(!core->watch);
    *watch = (struct core_watch){core, changed, ctx};
    core->watch = watch;
    return watch;
}

void core_watch_free(struct core_watch *watch)
{
    if (watch)
        watch->core->watch = NULL;
    free(watch);
}

/* ---- who ---- */

static const char *const roles[] = {"none", "viewer", "submitter", "queue-admin", "admin"};

const char *role_name(enum role role)
{
    return roles[role];
}

bool role_find(const char *name, enum role *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
        if (strcmp(roles[i], name) == 0) {
            *out = (enum role)i;
            return true;
        }
    return false;
}

int core_authenticate(struct core *core, const char *token, struct caller *out, struct error *err)
{
    enum role role;

    (void)core;
    if (!role_find(token, &role) || role == ROLE_NONE)
        return error_set(err, ERR_DENIED, "the token is not known");
    *out = (struct caller){.role = role, .name = roles[role]};
    return 0;
}

/* ---- commands ---- */

static void record(struct core *core, const struct caller *caller, const char *command, json_t *body,
                   core_reply_fn *reply, void *ctx)
{
    INVARIANT(core->n_replies < FAKE_REPLIES_MAX);
    snprintf(core->command, sizeof(core->command), "%s", command);
    snprintf(core->caller, sizeof(core->caller), "%s", caller->name);
    core->replies[core->n_replies++] = (struct fake_reply){reply, ctx, body};
}

static void keep(json_t **to, const json_t *from)
{
    json_decref(*to);
    *to = json_deep_copy(from);
}

static void copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

void core_submit(struct core *core, const struct caller *caller, const json_t *documents,
                 const struct submit_options *options, core_reply_fn *reply, void *ctx)
{
    keep(&core->documents, documents);
    copy(core->ns, sizeof(core->ns), options->ns);
    copy(core->queue, sizeof(core->queue), options->queue);
    copy(core->key, sizeof(core->key), options->idempotency_key);
    core->one_job = options->one_job;
    core->dry_run = options->dry_run;
    record(core, caller, "submit", json_pack("{s:[{s:i}]}", "jobs", "id", 1), reply, ctx);
}

void core_job_action(struct core *core, const struct caller *caller, const char *job, enum job_action action,
                     core_reply_fn *reply, void *ctx)
{
    static const char *const names[] = {"cancel", "hold", "release", "requeue"};
    char command[64];

    snprintf(command, sizeof(command), "%s %s", names[action], job);
    record(core, caller, command, json_pack("{s:s}", "name", job), reply, ctx);
}

void core_apply(struct core *core, const struct caller *caller, const json_t *documents, core_reply_fn *reply,
                void *ctx)
{
    keep(&core->documents, documents);
    record(core, caller, "apply", json_pack("{s:[]}", "applied"), reply, ctx);
}

static void named(struct core *core, const struct caller *caller, const char *verb, const char *name,
                  core_reply_fn *reply, void *ctx)
{
    char command[64];

    snprintf(command, sizeof(command), "%s %s", verb, name);
    record(core, caller, command, NULL, reply, ctx);
}

void core_delete_queue(struct core *core, const struct caller *caller, const char *queue, core_reply_fn *reply,
                       void *ctx)
{
    named(core, caller, "delete-queue", queue, reply, ctx);
}

void core_create_token(struct core *core, const struct caller *caller, const json_t *request, core_reply_fn *reply,
                       void *ctx)
{
    keep(&core->documents, request);
    record(core, caller, "create-token", json_pack("{s:s}", "token", "secret"), reply, ctx);
}

void core_delete_token(struct core *core, const struct caller *caller, const char *id, core_reply_fn *reply, void *ctx)
{
    named(core, caller, "delete-token", id, reply, ctx);
}

void core_logs(struct core *core, const struct caller *caller, const char *job, const char *member, size_t tail_lines,
               core_reply_fn *reply, void *ctx)
{
    char command[64];

    snprintf(command, sizeof(command), "logs %s %s %zu", job, member ? member : "-", tail_lines);
    record(core, caller, command, json_string("one\ntwo\n"), reply, ctx);
}

/* ---- queries ---- */

static json_t *result(struct core *core, json_t *body, struct error *err)
{
    if (!core->failure.code)
        return body;
    *err = core->failure;
    json_decref(body);
    return NULL;
}

static json_t *list(struct core *core, struct error *err)
{
    return result(core, json_pack("{s:[]}", "items"), err);
}

json_t *core_jobs(struct core *core, const struct caller *caller, const struct job_filter *filter, struct error *err)
{
    (void)caller;
    core->filter = *filter;
    copy(core->filter_state, sizeof(core->filter_state), filter->state);
    return result(core, json_pack("{s:O}", "items", core->jobs), err);
}

json_t *core_job(struct core *core, const struct caller *caller, const char *job, struct error *err)
{
    json_t *found = find(core, job);

    (void)caller;
    if (!found) {
        error_set(err, ERR_NOT_FOUND, "there is no job %s", job);
        return NULL;
    }
    return result(core, json_deep_copy(found), err);
}

json_t *core_explain(struct core *core, const struct caller *caller, const char *job, struct error *err)
{
    return core_job(core, caller, job, err);
}

json_t *core_events(struct core *core, const struct caller *caller, const char *job, int64_t after, size_t limit,
                    struct error *err)
{
    json_t *items = json_array(), *event;
    size_t i;

    (void)caller;
    json_array_foreach (core->events, i, event) {
        char owner[32];

        snprintf(owner, sizeof(owner), "%lld", (long long)json_integer_value(json_object_get(event, "job")));
        if (json_integer_value(json_object_get(event, "id")) > after && json_array_size(items) < limit &&
            (!job || strcmp(job, owner) == 0))
            json_array_append(items, event);
    }
    return result(core, json_pack("{s:o}", "items", items), err);
}

json_t *core_queues(struct core *core, const struct caller *caller, struct error *err)
{
    (void)caller;
    return list(core, err);
}

json_t *core_queue(struct core *core, const struct caller *caller, const char *name, struct error *err)
{
    (void)caller;
    return result(core, json_pack("{s:s}", "name", name), err);
}

json_t *core_resources(struct core *core, struct error *err)
{
    return list(core, err);
}

json_t *core_devices(struct core *core, const struct caller *caller, struct error *err)
{
    (void)caller;
    return list(core, err);
}

json_t *core_nodes(struct core *core, const struct caller *caller, struct error *err)
{
    (void)caller;
    return list(core, err);
}

json_t *core_strays(struct core *core, const struct caller *caller, struct error *err)
{
    (void)caller;
    return list(core, err);
}

json_t *core_tokens(struct core *core, const struct caller *caller, struct error *err)
{
    (void)caller;
    return list(core, err);
}

json_t *core_status(struct core *core)
{
    return json_pack("{s:b, s:s, s:{s:s}, s:{s:i, s:i}, s:i, s:f}", "ready", core->is_ready, "reason",
                     "reading the cluster", "cluster", "kind", "fake", "jobs", "Pending", 2, "Running", 1, "launches",
                     7, "plannerSeconds", 0.25);
}
