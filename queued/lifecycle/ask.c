#include "queued/lifecycle/ask.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "queued/lifecycle/ask_objects.h"
#include "queued/lifecycle/internal.h"
#include "queued/log.h"

#include "allocator/base/banned.h"

#define AGAIN_FIRST_MS 60000
#define AGAIN_MAX_MS   1800000
#define MAX_CONFLICTS  3 /* then somebody else has an object of that name, and the next number is tried */

/* Stands in call_for.object for the removal of what is there. */
#define WHOLE SIZE_MAX

enum state { ASKING, ASKED, ACCEPTED, PROVISIONED, EXPIRED, FAILED, REFUSED };
static const char *const state_names[] = {
    [ASKING] = "asking",   [ASKED] = "asked",   [ACCEPTED] = "accepted", [PROVISIONED] = "provisioned",
    [EXPIRED] = "expired", [FAILED] = "failed", [REFUSED] = "refused",
};

enum made { MADE_NOT, MADE_ASKED, MADE_YES };

struct ask {
    int64_t number;
    char *name;

    /* What is there of this number, as told or answered. */
    char *anchor_uid, *request_uid;
    bool is_anchor_told, is_request_told, is_going;
    char *gone_uid; /* an anchor whose end was told: an answer that comes later does not bring it back */
    bool was_there; /* this number has been used */

    /* What is being done about it. */
    json_t *bodies; /* NULL until they are needed */
    enum made *made;
    size_t n_in_flight;
    bool is_removed; /* asked for, and not refused */
    int64_t retry_ms;
    int n_call_failures;

    enum state state, told; /* told: by an event */
    char *detail, *class_name;
    bool is_counted; /* among the failures */
    int n_failures;
    int64_t again_ms;
};

/* ---- one request of a job ---- */

static void forget_bodies(struct ask *ask)
{
    json_decref(ask->bodies);
    free(ask->made);
    ask->bodies = NULL;
    ask->made = NULL;
}

static void clear(struct ask *ask)
{
    forget_bodies(ask);
    free(ask->name);
    free(ask->anchor_uid);
    free(ask->request_uid);
    free(ask->gone_uid);
    free(ask->detail);
    free(ask->class_name);
}

void ask_free(struct ask *ask)
{
    if (!ask)
        return;
    clear(ask);
    free(ask);
}

/* Begin with this number; what is remembered of failures stays. */
static struct ask *begin(struct job *job, int64_t number)
{
    struct ask *ask = job->ask ? job->ask : mem_new(struct ask);
    int n_failures = ask->n_failures;

    clear(ask);
    *ask = (struct ask){.number = number, .n_failures = n_failures, .name = ask_name(job_name(job), job->id, number)};
    job->ask = ask;
    return ask;
}

bool ask_is_there(const struct job *job)
{
    return job->ask && (job->ask->anchor_uid || job->ask->request_uid || job->ask->n_in_flight > 0);
}

static void set_detail(struct ask *ask, enum state state, const char *detail)
{
    char *copy = mem_strdup(detail ? detail : "");

    free(ask->detail);
    ask->state = state;
    ask->detail = copy;
}

static bool is_over(const struct ask *ask)
{
    return ask->state == EXPIRED || ask->state == FAILED || ask->state == REFUSED;
}

/* ---- what the cluster tells ---- */

static const json_t *condition_of(const json_t *request, const char *type)
{
    const json_t *condition;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(request, "status"), "conditions"), i, condition) {
        const char *have = json_text_at(condition, "type", NULL);

        if (have && strcmp(have, type) == 0)
            return condition;
    }
    return NULL;
}

/* The first that is true decides. What was provisioned and has expired may have both. */
static const struct {
    const char *type;
    enum state state;
} conditions[] = {
    {"Failed", FAILED},           {"CapacityRevoked", EXPIRED}, {"BookingExpired", EXPIRED},
    {"Provisioned", PROVISIONED}, {"Accepted", ACCEPTED},
};

static void read_conditions(struct ask *ask, const json_t *request)
{
    const json_t *refusal = condition_of(request, "Provisioned"); /* false: why not, so far */

    for (size_t i = 0; i < ARRAY_SIZE(conditions); i++) {
        const json_t *condition = condition_of(request, conditions[i].type);
        const char *status = json_text_at(condition, "status", NULL);

        if (!status || strcmp(status, "True") != 0)
            continue;
        if (conditions[i].state == ACCEPTED && refusal)
            condition = refusal;
        set_detail(ask, conditions[i].state, json_text_at(condition, "message", NULL));
        return;
    }
    set_detail(ask, ASKED, json_text_at(refusal, "message", NULL));
}

static void put_request(struct job *job, const json_t *object)
{
    struct ask *ask = job->ask;
    bool is_found = !ask->request_uid && !ask->bodies; /* made before a restart: what it is, is no news */

    free(ask->request_uid);
    free(ask->class_name);
    ask->request_uid = mem_strdup(json_text_at(object, "metadata", "uid", NULL));
    ask->class_name = mem_strdup(json_text_at(object, "spec", "provisioningClassName", NULL));
    ask->was_there = true;
    read_conditions(ask, object);
    if (is_found)
        ask->told = ask->state;
}

static void put_anchor(struct ask *ask, const json_t *object)
{
    free(ask->anchor_uid);
    ask->anchor_uid = mem_strdup(json_text_at(object, "metadata", "uid", NULL));
    ask->is_going = json_text_at(object, "metadata", "deletionTimestamp", NULL) != NULL;
    ask->was_there = true;
}

/* Whoever takes away what we ask with does not want us to ask at full speed. */
static void note_loss(struct ask *ask)
{
    if (!ask->is_removed && !is_over(ask))
        set_detail(ask, FAILED, "the request was deleted");
}

static void drop_request(struct ask *ask)
{
    note_loss(ask);
    free(TAKE(ask->request_uid));
    free(TAKE(ask->class_name));
}

static void drop_anchor(struct ask *ask)
{
    note_loss(ask);
    free(ask->gone_uid);
    ask->gone_uid = TAKE(ask->anchor_uid);
    ask->is_going = false;
    forget_bodies(ask);
}

/* The job's request that an object is of, or may become of: a job whose server forgot takes up what it finds. */
static struct ask *ask_of(const struct lifecycle *lc, struct job *job, int64_t number, bool is_gone)
{
    if (job->ask && job->ask->number == number)
        return job->ask;
    if (is_gone || ask_is_there(job) || !ask_is_on(lc))
        return NULL;
    return begin(job, number);
}

static struct job *job_of(struct lifecycle *lc, const json_t *object)
{
    const char *id = json_text_at(object, "metadata", "labels", LABEL_JOB, NULL);

    return id ? job_list_find(&lc->jobs, strtoll(id, NULL, 10)) : NULL;
}

static bool is_text(const char *text, const char *wanted)
{
    return text && strcmp(text, wanted) == 0;
}

bool ask_observe(struct lifecycle *lc, const json_t *object, bool is_gone)
{
    const char *label = json_text_at(object, "metadata", "labels", LABEL_ASK, NULL);
    const char *kind = json_text_at(object, "kind", NULL), *name = json_text_at(object, "metadata", "name", NULL);
    bool is_request = is_text(kind, "ProvisioningRequest");
    struct job *job = label ? job_of(lc, object) : NULL;
    struct ask *ask;

    if (!job || !(is_request || is_text(kind, "ConfigMap")) ||
        !is_text(json_text_at(object, "metadata", "namespace", NULL), job_ns(job)))
        return false;
    ask = ask_of(lc, job, strtoll(label, NULL, 10), is_gone);
    if (!ask || !is_text(name, ask->name))
        return false;
    *(is_request ? &ask->is_request_told : &ask->is_anchor_told) = true;
    if (is_gone)
        (is_request ? drop_request : drop_anchor)(ask);
    else if (is_request)
        put_request(job, object);
    else
        put_anchor(ask, object);
    job_touch(lc, job);
    lc->options.changed(lc->options.ctx, job);
    return true;
}

void ask_stream_lost(struct job *job)
{
    if (job->ask)
        job->ask->is_anchor_told = job->ask->is_request_told = false;
}

void ask_stream_synced(struct lifecycle *lc, struct job *job)
{
    struct ask *ask = job->ask;

    if (!ask)
        return;
    if (ask->anchor_uid && !ask->is_anchor_told)
        drop_anchor(ask);
    if (ask->request_uid && !ask->is_request_told)
        drop_request(ask);
    job_touch(lc, job);
}

/* ---- what is asked of the cluster ---- */

static struct call_for call_for(const struct job *job, size_t object)
{
    return (struct call_for){job->id, -job->ask->number, object};
}

static bool may_call(struct lifecycle *lc, struct job *job)
{
    if (job->ask->retry_ms <= lifecycle_now_ms(lc))
        return true;
    job_wake_at(lc, job, job->ask->retry_ms);
    return false;
}

/* The anchor takes everything along. Without one (somebody deleted it) the request goes by itself. */
static void remove_all(struct lifecycle *lc, struct job *job)
{
    struct ask *ask = job->ask;
    const char *uid = ask->anchor_uid ? ask->anchor_uid : ask->request_uid;

    if (!uid || ask->is_removed || ask->n_in_flight > 0 || !may_call(lc, job))
        return;
    ask->is_removed = true;
    ask->n_in_flight++;
    outbox_remove(lc->options.outbox, call_for(job, WHOLE), ask->anchor_uid ? "ConfigMap" : "ProvisioningRequest",
                  job_ns(job), ask->name, uid);
}

static void create(struct lifecycle *lc, struct job *job, size_t i)
{
    struct ask *ask = job->ask;
    json_t *body;

    if (ask->made[i] != MADE_NOT || !may_call(lc, job))
        return;
    body = json_deep_copy(json_array_get(ask->bodies, i));
    if (i > 0)
        json_object_set_new(json_object_get(body, "metadata"), "ownerReferences",
                            json_pack("[{s:s, s:s, s:s, s:s, s:b}]", "apiVersion", "v1", "kind", "ConfigMap", "name",
                                      ask->name, "uid", ask->anchor_uid, "blockOwnerDeletion", 1));
    ask->made[i] = MADE_ASKED;
    ask->n_in_flight++;
    outbox_create(lc->options.outbox, call_for(job, i), body);
    json_decref(body);
}

static void make_bodies(struct lifecycle *lc, struct job *job)
{
    struct ask_input input = {
        .job = job->id,
        .number = job->ask->number,
        .server = lc->options.server,
        .spec = &job->blueprint->spec,
        .version = lc->options.provisioning(lc->options.ctx),
        .class_name = lc->options.provisioning_class,
        .parameters = lc->options.provisioning_parameters,
    };

    job->ask->bodies = ask_objects(&input);
    job->ask->made = mem_array(enum made, json_array_size(job->ask->bodies));
}

/* Anchor; then all that the request refers to; then the request. */
static void create_missing(struct lifecycle *lc, struct job *job)
{
    struct ask *ask = job->ask;
    bool is_complete = true;
    size_t n;

    if (!ask->bodies)
        make_bodies(lc, job);
    n = json_array_size(ask->bodies);
    if (!ask->anchor_uid) {
        create(lc, job, 0);
        return;
    }
    for (size_t i = 1; i < n - 1; i++) {
        create(lc, job, i);
        is_complete = is_complete && ask->made[i] == MADE_YES;
    }
    if (is_complete)
        create(lc, job, n - 1);
}

/* ---- one look ---- */

bool ask_is_on(const struct lifecycle *lc)
{
    return lc->options.provisioning_class && lc->options.provisioning(lc->options.ctx);
}

static bool is_kept(const struct lifecycle *lc, const struct job *job)
{
    const struct ask *ask = job->ask;

    if (!ask_is_on(lc) || ask_obstacle(&job->blueprint->spec))
        return false;
    if (ask && ask->class_name && strcmp(ask->class_name, lc->options.provisioning_class) != 0)
        return false;
    if (job_is_live(job))
        return ask && ask->request_uid && (ask->state == PROVISIONED || ask->state == EXPIRED);
    return job->state == JOB_PENDING && job->wish != ASK_NO;
}

static int64_t again_delay_ms(int n_failures)
{
    int64_t delay = AGAIN_FIRST_MS;

    for (int i = 1; i < n_failures && delay < AGAIN_MAX_MS; i++)
        delay *= 2;
    return delay < AGAIN_MAX_MS ? delay : AGAIN_MAX_MS;
}

/* It came to nothing: it stays to be looked at until it is time to ask again. Returns whether it is. */
static bool is_time_to_ask_again(struct lifecycle *lc, struct job *job)
{
    struct ask *ask = job->ask;

    if (!ask->is_counted) {
        ask->is_counted = true;
        ask->again_ms = lifecycle_now_ms(lc) + again_delay_ms(++ask->n_failures);
    }
    if (lifecycle_now_ms(lc) >= ask->again_ms)
        return true;
    job_wake_at(lc, job, ask->again_ms);
    return false;
}

/* A number is used once: what was removed is not made again under its name. */
static bool is_used_up(const struct ask *ask)
{
    return is_over(ask) || ask->is_removed || (ask->was_there && !ask->anchor_uid && !ask->request_uid);
}

static void look_at_pending(struct lifecycle *lc, struct job *job)
{
    struct ask *ask = job->ask;

    if (ask && is_over(ask) && !is_time_to_ask_again(lc, job)) {
        if (!ask->request_uid)
            remove_all(lc, job);
        return;
    }
    if (ask && is_used_up(ask)) {
        remove_all(lc, job);
        if (ask_is_there(job))
            return;
        if (job->wish == ASK_NODES)
            begin(job, ask->number + 1);
    }
    if (job->wish != ASK_NODES || (job->ask && (job->ask->request_uid || job->ask->is_going)))
        return;
    if (!job->ask)
        begin(job, 1);
    create_missing(lc, job);
}

/* An event for each thing that becomes of a request. */
static void tell(struct lifecycle *lc, struct job *job)
{
    struct ask *ask = job->ask;

    if (!ask || ask->told == ask->state)
        return;
    ask->told = ask->state;
    job_event(lc, job, "Nodes", "%s %s%s%s", ask->name, state_names[ask->state], ask->detail[0] ? ": " : "",
              ask->detail);
}

void ask_step(struct lifecycle *lc, struct job *job)
{
    if (!lc->is_synced)
        return;
    tell(lc, job);
    if (job->state != JOB_PENDING) {
        lc->wants_plan |= job->wish == ASK_NODES; /* now the next of its queue may ask */
        job->wish = ASK_UNKNOWN;
    }
    if (is_kept(lc, job)) {
        if (job->state == JOB_PENDING)
            look_at_pending(lc, job);
        return;
    }
    if (job->ask && ask_is_there(job))
        remove_all(lc, job);
    else if (job->ask)
        job->ask->n_failures = 0;
}

void lifecycle_wish_nodes(struct lifecycle *lc, struct job *job, enum ask_wish wish)
{
    if (job->wish == wish || !ask_is_on(lc))
        return;
    job->wish = wish;
    job_touch(lc, job);
}

/* ---- the end of a call ---- */

static void call_later(struct lifecycle *lc, struct job *job)
{
    job->ask->retry_ms = lifecycle_now_ms(lc) + backoff_ms(++job->ask->n_call_failures);
    job_wake_at(lc, job, job->ask->retry_ms);
}

static void removal_done(struct lifecycle *lc, struct job *job, const struct call_result *result)
{
    if (!result->err) /* the stream tells when all is gone */
        return;
    job->ask->is_removed = false;
    call_later(lc, job);
}

static bool is_final(enum err_code code)
{
    return code == ERR_INVALID || code == ERR_DENIED || code == ERR_LIMIT || code == ERR_NOT_FOUND;
}

static void created(struct job *job, size_t i, const json_t *object)
{
    struct ask *ask = job->ask;
    const char *uid = json_text_at(object, "metadata", "uid", NULL);

    ask->made[i] = MADE_YES;
    ask->n_call_failures = 0;
    if (i == 0 && !ask->anchor_uid && uid && !(ask->gone_uid && strcmp(uid, ask->gone_uid) == 0)) {
        put_anchor(ask, object);
        ask->is_anchor_told = true;
    }
    if (i + 1 < json_array_size(ask->bodies))
        return;
    if (!ask->request_uid && ask->anchor_uid) {
        put_request(job, object);
        ask->is_request_told = true;
    }
}

static void creation_done(struct lifecycle *lc, struct job *job, const struct call_result *result)
{
    struct ask *ask = job->ask;
    size_t i = result->target.object;
    bool is_told;

    if (!ask->made || i >= json_array_size(ask->bodies)) /* they were forgotten: its anchor is gone */
        return;
    is_told = i == 0 || i + 1 == json_array_size(ask->bodies);
    ask->made[i] = MADE_NOT;
    if (!result->err)
        created(job, i, result->object);
    else if (result->err->code == ERR_CONFLICT && !is_told)
        ask->made[i] = MADE_YES; /* by us, before the server was killed */
    else if (is_final(result->err->code) ||
             (result->err->code == ERR_CONFLICT && ask->n_call_failures >= MAX_CONFLICTS)) {
        BUF words = {0};

        buf_addf(&words, "create %s %s: %s", result->object_kind, result->name, result->err->text);
        set_detail(ask, REFUSED, buf_str(&words));
    } else
        call_later(lc, job); /* what is there already, and ours, is told by the stream */
}

void ask_call_done(struct lifecycle *lc, struct job *job, const struct call_result *result)
{
    if (!job || !job->ask || -job->ask->number != result->target.attempt)
        return; /* what came of it is told by the stream */
    if (job->ask->n_in_flight > 0)
        job->ask->n_in_flight--;
    if (result->kind == CALL_REMOVE)
        removal_done(lc, job, result);
    else
        creation_done(lc, job, result);
    job_touch(lc, job);
    lc->options.changed(lc->options.ctx, job);
}

/* ---- for people, and for the members ---- */

bool job_ask_view(const struct job *job, struct ask_view *out)
{
    const struct ask *ask = job->ask;

    if (!ask || !(ask_is_there(job) || (is_over(ask) && job->state == JOB_PENDING && job->wish == ASK_NODES)))
        return false;
    *out = (struct ask_view){
        .name = ask->request_uid ? ask->name : "",
        .state = state_names[ask->state],
        .detail = ask->detail ? ask->detail : "",
        .again_ms = ask->is_counted && !job_is_live(job) ? ask->again_ms : 0,
    };
    return true;
}

const char *job_ask_provisioned(const struct job *job)
{
    return job->ask && job->ask->request_uid && job->ask->state == PROVISIONED ? job->ask->name : NULL;
}
