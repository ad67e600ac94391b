/* One call of the port is one request, or a row of them: writing an allocation, and looking why it was refused. `send`
 * gives the next request, `answered` looks at what came back and either ends the call or makes it go on.
 *
 * What the server did not carry out (it is away, too busy, or asks to come back) is tried again here, a few times and
 * later each time, whatever it was. What may have been carried out is not: the caller must look first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "queued/cluster/kube/convert.h"
#include "queued/cluster/kube/kube_internal.h"
#include "queued/cluster/kube/status.h"
#include "queued/cluster/kube/text.h"

#include "allocator/base/banned.h"

#define FINALIZER       "resource.kubernetes.io/delete-protection"
#define MERGE_PATCH     "application/merge-patch+json"
#define STRATEGIC_PATCH "application/strategic-merge-patch+json"
#define METADATA_ALONE  "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

enum {
    TIMEOUT_MS = 30000,
    TRIES_MAX = 4,
    RETRY_MS = 250,
    RETRY_MAX_MS = 4000,
    RETRY_AFTER_MAX_MS = 10000, /* a server that asks for more gets its answer to the caller, who waits longer */
    ROUNDS_MAX = 4,             /* of reading again what others have changed meanwhile */
    LOG_BYTES_MAX = 4 << 20,
};

enum verb { VERB_CREATE, VERB_GET, VERB_REMOVE, VERB_RELEASE, VERB_UNGATE, VERB_ALLOCATE, VERB_BIND, VERB_LOGS };

struct call {
    struct kube *kube;
    struct call *prev, *next;
    enum verb verb;
    cluster_done *done;
    void *ctx;

    const char *method, *content_type; /* of the request that is sent now, as path and body are */
    char *path, *body;
    struct http_call *sent;
    struct clock_timer *timer; /* for the next try, or to answer later */
    int tries;                 /* of this request */
    int rounds;                /* of VERB_ALLOCATE: begun from writing */
    int step;                  /* of a row of requests */
    char *uid;                 /* VERB_REMOVE, VERB_RELEASE: of what is meant, or NULL */
    const char *policy;        /* VERB_REMOVE, VERB_RELEASE: what becomes of what it owns */
    bool is_now;               /* VERB_REMOVE: without grace */
    char *target;              /* path of the object that a row of requests is about */
    json_t *object;            /* VERB_CREATE, VERB_ALLOCATE: as it is sent */
    struct error why_not;      /* VERB_ALLOCATE: that was refused */
    size_t tail_lines;         /* VERB_LOGS */
    struct error refusal;      /* what is answered when the timer fires; code ERR_NONE: send then */
};

/* Steps of the rows. */
enum { ALLOCATE_WRITE, ALLOCATE_LOOK };
enum { LOGS_POD, LOGS_TEXT };
enum { UNGATE_OPEN, UNGATE_NOMINATE };
enum { RELEASE_DELETE, RELEASE_HOLD };

static void send(struct call *call);

/* ---- the life of a call ---- */

static void call_free(struct call *call)
{
    *(call->prev ? &call->prev->next : &call->kube->calls) = call->next;
    if (call->next)
        call->next->prev = call->prev;
    if (call->sent)
        http_cancel(call->sent);
    clock_timer_free(call->timer);
    json_decref(call->object);
    free(call->path);
    free(call->body);
    free(call->target);
    free(call->uid);
    free(call);
}

static void finish(struct call *call, const struct error *err, const json_t *object)
{
    cluster_done *done = call->done;
    void *ctx = call->ctx;

    call->sent = NULL; /* it has been answered */
    call_free(call);
    done(ctx, err, object);
}

static void fire(void *ctx)
{
    struct call *call = ctx;
    struct error refusal = call->refusal;

    if (refusal.code)
        finish(call, &refusal, NULL);
    else
        send(call);
}

static void fire_in(struct call *call, int64_t ms)
{
    clock_timer_set(call->timer, clock_now_ms(call->kube->options.clock) + ms);
}

static void refuse(struct call *call, const struct error *err)
{
    call->refusal = *err;
    fire_in(call, 0);
}

static struct call *call_new(struct cluster *port, enum verb verb, cluster_done *done, void *ctx)
{
    struct kube *kube = kube_of(port);
    struct call *call = mem_new(struct call);

    call->kube = kube;
    call->verb = verb;
    call->done = done;
    call->ctx = ctx;
    call->timer = clock_timer_new(kube->options.clock, fire, call);
    call->next = kube->calls;
    if (call->next)
        call->next->prev = call;
    kube->calls = call;
    return call;
}

void kube_calls_free(struct kube *kube)
{
    while (kube->calls)
        call_free(kube->calls);
}

/* ---- paths ---- */

/* The path of a kind's collection or of one object, in the version that the server has. */
static int path_of(const struct kube *kube, const char *kind_name, const char *ns, const char *name, struct buf *out,
                   struct error *err)
{
    const struct kind *kind = kind_find(kind_name ? kind_name : "");
    const char *version;

    if (!kind)
        return error_field(err, "kind", "\"%.63s\" is no kind that we know", kind_name ? kind_name : "");
    if (!kube->found)
        return error_set(err, ERR_UNAVAILABLE, "the API server has not been reached yet");
    version = discovery_version_of(kube->found, kind);
    if (!version)
        return error_set(err, ERR_NOT_FOUND, "the API server does not serve %s", kind->plural);
    kind_path(kind, version, kind->is_namespaced ? ns : NULL, name, out);
    return 0;
}

static int set_target(struct call *call, const char *kind, const char *ns, const char *name)
{
    struct error err = {0};
    BUF path = {0};

    if (path_of(call->kube, kind, ns, name, &path, &err) < 0) {
        refuse(call, &err);
        return -1;
    }
    call->target = buf_take(&path);
    return 0;
}

/* ---- what comes back ---- */

static bool is_write(const struct call *call)
{
    return strcmp(call->method, "GET") != 0;
}

/* The next request of a call. `path` and `body` are taken over; body may be NULL. */
static void request(struct call *call, const char *method, char *path, const char *content_type, char *body)
{
    free(call->path);
    free(call->body);
    call->method = method;
    call->path = path;
    call->content_type = content_type;
    call->body = body;
    call->tries = 0;
    send(call);
}

static void on_object(struct call *call, const json_t *object)
{
    finish(call, NULL, object);
}

/* What was sent, with the metadata that the server gave it: what else it filled in, the stream tells. */
static void on_created(struct call *call, const json_t *answer)
{
    json_t *object = json_copy(call->object), *metadata = json_copy(json_object_get(answer, "metadata"));

    json_object_del(metadata, "managedFields");
    if (metadata)
        json_object_set_new(object, "metadata", metadata);
    finish(call, NULL, object);
    json_decref(object);
}

/* ---- removing ---- */

static void delete (struct call *call)
{
    json_t *options =
        json_pack("{s:s, s:s, s:s}", "kind", "DeleteOptions", "apiVersion", "v1", "propagationPolicy", call->policy);

    if (call->is_now)
        json_object_set_new(options, "gracePeriodSeconds", json_integer(0));
    if (call->uid)
        json_object_set_new(options, "preconditions", json_pack("{s:s}", "uid", call->uid));
    call->step = RELEASE_DELETE;
    request(call, "DELETE", mem_strdup(call->target), NULL, json_dumps(options, JSON_COMPACT));
    json_decref(options);
}

static void on_removed(struct call *call, const json_t *object)
{
    (void)object;
    finish(call, NULL, NULL);
}

/* Take the finalizer off that keeps a claim until the controller has seen that nobody uses it: it needs two requests of
 * its 20 a second for that, and until then the devices of every gang that ended are taken. */
static void let_go(struct call *call)
{
    json_t *metadata = json_pack("{s:[s]}", "$deleteFromPrimitiveList/finalizers", FINALIZER);
    json_t *patch = json_pack("{s:o}", "metadata", metadata);

    if (call->uid)
        json_object_set_new(metadata, "uid", json_string(call->uid));
    call->step = RELEASE_HOLD;
    request(call, "PATCH", mem_strdup(call->target), STRATEGIC_PATCH, json_dumps(patch, JSON_COMPACT));
    json_decref(patch);
}

static void on_released(struct call *call, const json_t *object)
{
    if (call->step == RELEASE_HOLD)
        delete (call);
    else
        on_removed(call, object);
}

/* ---- bind mode ---- */

static const char *const result_keys[] = {"request", "driver", "pool", "device", "shareID"};

static bool is_same_result(const json_t *a, const json_t *b)
{
    for (size_t i = 0; i < ARRAY_SIZE(result_keys); i++) {
        const json_t *left = json_object_get(a, result_keys[i]), *right = json_object_get(b, result_keys[i]);

        if ((left || right) && !json_equal(left, right))
            return false;
    }
    return true;
}

/* Order is not compared: some writers sort. */
static bool is_same_allocation(const json_t *a, const json_t *b)
{
    const json_t *left = json_object_get(json_object_get(a, "devices"), "results");
    const json_t *right = json_object_get(json_object_get(b, "devices"), "results");
    size_t i, k, n_found = 0;
    json_t *result;

    json_array_foreach (left, i, result)
        for (k = 0; k < json_array_size(right); k++)
            if (is_same_result(result, json_array_get(right, k))) {
                n_found++;
                break;
            }
    return json_array_size(left) == json_array_size(right) && n_found == json_array_size(left);
}

/* kube-scheduler compares the claim that it assumed with what it writes: without the timestamp its write is refused.
 * New reference. */
static json_t *timed(const struct kube *kube, const json_t *allocation)
{
    json_t *copy = json_deep_copy(allocation);
    char when[KUBE_TIME_SIZE];

    kube_time_format(clock_now_ms(kube->options.clock), when);
    if (!json_object_get(copy, "allocationTimestamp"))
        json_object_set_new(copy, "allocationTimestamp", json_string(when));
    return copy;
}

/* A whole status, which costs the API server less than a patch, and nobody needs to read the claim before: one that is
 * allocated cannot be allocated otherwise, and of one that is not, nothing else stands there. */
static void allocate_begin(struct call *call)
{
    BUF path = {0};

    call->rounds++;
    call->step = ALLOCATE_WRITE;
    buf_addf(&path, "%s/status", call->target);
    request(call, "PUT", buf_take(&path), NULL, json_dumps(call->object, JSON_COMPACT));
}

/* The claim as it is tells why it may not be allocated so; or that it is already. */
static void allocate_look(struct call *call, const struct error *why_not)
{
    call->why_not = *why_not;
    call->step = ALLOCATE_LOOK;
    request(call, "GET", mem_strdup(call->target), NULL, NULL);
}

static void allocate_end(struct call *call, const json_t *claim)
{
    const json_t *allocated = json_object_get(json_object_get(claim, "status"), "allocation");
    const json_t *planned = json_object_get(json_object_get(call->object, "status"), "allocation");
    bool is_same = allocated && is_same_allocation(allocated, planned);
    struct error err = {0};

    if (json_object_get(json_object_get(claim, "metadata"), "deletionTimestamp"))
        error_set(&err, ERR_CONFLICT, "the claim is being deleted");
    else if (allocated && !is_same)
        error_set(&err, ERR_CONFLICT, "the claim is allocated otherwise");
    else if (!is_same)
        err = call->why_not;
    finish(call, err.code ? &err : NULL, err.code ? NULL : claim);
}

static void on_claim(struct call *call, const json_t *claim)
{
    if (call->step == ALLOCATE_WRITE)
        finish(call, NULL, claim);
    else
        allocate_end(call, claim);
}

/* ---- starting a pod ---- */

static void open_gates(struct call *call)
{
    call->step = UNGATE_OPEN;
    request(call, "PATCH", mem_strdup(call->target), MERGE_PATCH, mem_strdup("{\"spec\":{\"schedulingGates\":null}}"));
}

/* Where it will go (KEP-5278): kube-scheduler looks at that node first, and would otherwise spend a request of its rate
 * on writing the same there. A hint: without the right to give it the pod starts all the same. */
static void nominate(struct call *call, const char *node)
{
    json_t *patch = json_pack("{s:{s:s}}", "status", "nominatedNodeName", node);
    BUF path = {0};

    buf_addf(&path, "%s/status", call->target);
    call->step = UNGATE_NOMINATE;
    request(call, "PATCH", buf_take(&path), MERGE_PATCH, json_dumps(patch, JSON_COMPACT));
    json_decref(patch);
}

static void on_pod_patched(struct call *call, const json_t *pod)
{
    if (call->step == UNGATE_NOMINATE)
        open_gates(call);
    else
        finish(call, NULL, pod);
}

/* ---- logs ---- */

/* The container that kubectl would take. */
static const char *container_of(const json_t *pod)
{
    const json_t *annotations = json_object_get(json_object_get(pod, "metadata"), "annotations");
    const char *chosen = json_string_value(json_object_get(annotations, "kubectl.kubernetes.io/default-container"));
    const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers"), *one;
    const char *first = json_string_value(json_object_get(json_array_get(containers, 0), "name"));
    size_t i;

    json_array_foreach (containers, i, one) {
        const char *name = json_string_value(json_object_get(one, "name"));

        if (chosen && name && strcmp(name, chosen) == 0)
            return chosen;
    }
    return first;
}

static void on_pod(struct call *call, const json_t *pod)
{
    const char *container = container_of(pod);
    BUF path = {0};

    buf_addf(&path, "%s/log?tailLines=%zu&limitBytes=%d", call->target, call->tail_lines, LOG_BYTES_MAX);
    if (container) {
        buf_adds(&path, "&container=");
        kube_escape(container, &path);
    }
    call->step = LOGS_TEXT;
    request(call, "GET", buf_take(&path), NULL, NULL);
}

static void end_with_text(struct call *call, const struct http_answer *answer)
{
    json_t *text = kube_text((struct str){answer->body, answer->len});

    finish(call, NULL, text);
    json_decref(text);
}

/* ---- answers ---- */

static const struct {
    const char *goal;
    void (*succeeded)(struct call *call, const json_t *object);
} verbs[] = {
    [VERB_CREATE] = {"create", on_created},     [VERB_GET] = {"get", on_object},
    [VERB_REMOVE] = {"delete", on_removed},     [VERB_RELEASE] = {"release", on_released},
    [VERB_UNGATE] = {"ungate", on_pod_patched}, [VERB_ALLOCATE] = {"allocate", on_claim},
    [VERB_BIND] = {"bind", on_removed},         [VERB_LOGS] = {"logs", on_pod},
};

/* Wait and try again, if that is to be. */
static bool tries_again(struct call *call, const struct http_answer *answer, const struct error *err)
{
    int64_t ms = answer->retry_after_ms;

    if (err->code != ERR_UNAVAILABLE || ++call->tries >= TRIES_MAX || ms > RETRY_AFTER_MAX_MS ||
        call->verb == VERB_LOGS)
        return false;
    if (ms < 0)
        ms = kube_backoff_ms(&call->kube->rng, call->tries, RETRY_MS, RETRY_MAX_MS);
    else
        ms += (int64_t)rng_below(&call->kube->rng, RETRY_MS); /* all of us were told the same */
    fire_in(call, ms);
    return true;
}

/* "UID in precondition: a, UID in object meta: b", or "the UID in the precondition (a) does not match the UID in record
 * (b)": an API server has both sentences, and the same code for other conflicts. */
static bool is_of_another_uid(const struct call *call, const struct http_answer *answer)
{
    return call->uid && answer->status == 409 &&
           (strstr(answer->body, "UID in precondition") || strstr(answer->body, "UID in the precondition"));
}

static bool is_removal(const struct call *call)
{
    return call->verb == VERB_REMOVE || call->verb == VERB_RELEASE;
}

/* A hint or a short cut that the server does not let us take: 4xx, but for "later". */
static bool may_do_without(const struct call *call, const struct http_answer *answer)
{
    return ((call->verb == VERB_UNGATE && call->step == UNGATE_NOMINATE) ||
            (call->verb == VERB_RELEASE && call->step == RELEASE_HOLD)) &&
           answer->status >= 400 && answer->status < 500 && answer->status != 429;
}

/* A right that is missing, but validation asks for it. */
static bool lacks_right_to_allocate(const struct call *call, const struct http_answer *answer)
{
    return call->verb == VERB_ALLOCATE && answer->status == 422 && strstr(answer->body, "resourceclaims/binding");
}

/* Because of what the claim is, or others do with it. */
static bool is_refused_by_state(const struct call *call, const struct http_answer *answer)
{
    return (answer->status == 409 && !is_of_another_uid(call, answer)) ||
           (answer->status == 422 && !lacks_right_to_allocate(call, answer));
}

/* Refusals that are what was wanted, or make a row go on. */
static bool is_excused(struct call *call, const struct http_answer *answer, const struct error *err)
{
    if (is_removal(call) && (answer->status == 404 || is_of_another_uid(call, answer))) {
        finish(call, NULL, NULL); /* it is gone; what has its name now is another */
        return true;
    }
    if (may_do_without(call, answer)) {
        call->kube->may_not_nominate |= call->verb == VERB_UNGATE && answer->status == 403;
        (call->verb == VERB_UNGATE ? open_gates : delete)(call);
        return true;
    }
    if (call->verb == VERB_ALLOCATE && call->step == ALLOCATE_WRITE && is_refused_by_state(call, answer)) {
        if (answer->status == 409 && call->rounds < ROUNDS_MAX)
            allocate_begin(call);
        else
            allocate_look(call, err);
        return true;
    }
    return false;
}

/* Whether gangs go on without PodGroups then is not decided here. */
static bool has_no_right_to_pod_groups(const struct call *call, const struct http_answer *answer)
{
    return call->verb == VERB_CREATE && strcmp(strrchr(call->target, '/'), "/podgroups") == 0 &&
           status_is_no_right(answer);
}

static void on_refused(struct call *call, const struct http_answer *answer, struct error *err)
{
    if (answer->status == 0 && answer->may_be_done && is_write(call))
        err->code = ERR_TIMEOUT;
    if (call->verb == VERB_LOGS && call->step == LOGS_TEXT && answer->status == 400)
        err->code = ERR_UNAVAILABLE; /* "container is waiting to start" */
    if (lacks_right_to_allocate(call, answer))
        err->code = ERR_DENIED;
    if (is_excused(call, answer, err) || tries_again(call, answer, err))
        return;
    if (has_no_right_to_pod_groups(call, answer))
        kube_pod_groups_refused(call->kube, err);
    finish(call, err, NULL);
}

static void on_answer(void *ctx, const struct http_answer *answer)
{
    struct call *call = ctx;
    struct error err = {0};
    json_t *object;

    call->sent = NULL;
    if (answer->status == 0)
        err = answer->err;
    if (answer->status == 0 || status_check(answer, is_write(call), &err) < 0) {
        on_refused(call, answer, &err);
        return;
    }
    if (call->verb == VERB_LOGS && call->step == LOGS_TEXT) {
        end_with_text(call, answer);
        return;
    }
    object = json_loadb(answer->body, answer->len, 0, NULL);
    if (object) {
        verbs[call->verb].succeeded(call, object);
    } else {
        error_set(&err, ERR_REMOTE, "%s: the API server's answer is no JSON", verbs[call->verb].goal);
        finish(call, &err, NULL);
    }
    json_decref(object);
}

static bool may_write(const struct kube *kube)
{
    return !kube->options.may_write || kube->options.may_write(kube->options.ctx);
}

/* Of what we write ourselves we need to know no more. What answers with a Status has no metadata. */
static const char *accepted(const struct call *call)
{
    bool is_object =
        strcmp(call->method, "PATCH") == 0 || strcmp(call->method, "PUT") == 0 || call->verb == VERB_CREATE;

    return is_object ? METADATA_ALONE : NULL;
}

static void send(struct call *call)
{
    struct error err = {0};

    if (is_write(call) && !may_write(call->kube)) {
        error_set(&err, ERR_UNAVAILABLE, "this server does not lead at the moment");
        refuse(call, &err);
        return;
    }
    call->sent = http_send(call->kube->options.http, &(struct http_request){
                                                         .method = call->method,
                                                         .path = call->path,
                                                         .content_type = call->content_type,
                                                         .accept = accepted(call),
                                                         .body = call->body,
                                                         .len = call->body ? strlen(call->body) : 0,
                                                         .timeout_ms = TIMEOUT_MS,
                                                         .done = on_answer,
                                                         .ctx = call,
                                                     });
}

/* ---- the operations ---- */

/* Objects of resource.k8s.io go in the version that the server has, all others as they are written. */
static json_t *in_served_version(const struct kube *kube, const json_t *object)
{
    const struct kind *kind = kind_find(json_string_value(json_object_get(object, "kind")));

    if (strcmp(kind->group, "resource.k8s.io") != 0)
        return json_incref((json_t *)(uintptr_t)object);
    return convert_resource(object, discovery_version_of(kube->found, kind));
}

/* With the finalizer that keeps an allocated claim until its pods are gone. Whoever allocates puts it on, in an update
 * of its own: for kube-scheduler one of the 50 requests a second that it may send by default for all the pods of a
 * cluster. Takes the claim over. */
static json_t *held(json_t *claim)
{
    json_t *copy = json_deep_copy(claim), *finalizers = json_array();

    json_decref(claim);
    json_array_append_new(finalizers, json_string(FINALIZER));
    json_object_set_new(json_object_get(copy, "metadata"), "finalizers", finalizers);
    return copy;
}

void kube_create(struct cluster *port, const json_t *object, cluster_done *done, void *ctx)
{
    struct call *call = call_new(port, VERB_CREATE, done, ctx);
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const char *ns = json_string_value(json_object_get(json_object_get(object, "metadata"), "namespace"));

    if (set_target(call, kind, ns, NULL) < 0)
        return;
    call->object = in_served_version(call->kube, object);
    if (strcmp(kind, "ResourceClaim") == 0)
        call->object = held(call->object);
    request(call, "POST", mem_strdup(call->target), NULL, json_dumps(call->object, JSON_COMPACT));
}

void kube_get(struct cluster *port, const char *kind, const char *ns, const char *name, cluster_done *done, void *ctx)
{
    struct call *call = call_new(port, VERB_GET, done, ctx);

    if (set_target(call, kind, ns, name) == 0)
        request(call, "GET", mem_strdup(call->target), NULL, NULL);
}

/* What owns others goes when they are gone. For the rest that would only be a finalizer that the garbage collector must
 * come and take off: at its default rate of 20 requests a second it would hold up every end of a gang. */
static const char *policy_of(const char *kind)
{
    return strcmp(kind, "ConfigMap") == 0 ? "Foreground" : "Background";
}

void kube_remove(struct cluster *port, const char *kind, const char *ns, const char *name, const char *uid,
                 cluster_done *done, void *ctx)
{
    struct call *call = call_new(port, VERB_REMOVE, done, ctx);

    call->uid = mem_strdup(uid);
    call->policy = policy_of(kind);
    if (set_target(call, kind, ns, name) == 0)
        delete (call);
}

void kube_erase(struct cluster *port, const char *ns, const char *pod, const char *uid, cluster_done *done, void *ctx)
{
    struct call *call = call_new(port, VERB_REMOVE, done, ctx);

    call->uid = mem_strdup(uid);
    call->policy = policy_of("Pod");
    call->is_now = true;
    if (set_target(call, "Pod", ns, pod) == 0)
        delete (call);
}

void kube_release(struct cluster *port, const char *ns, const char *claim, const char *uid, cluster_done *done,
                  void *ctx)
{
    struct call *call = call_new(port, VERB_RELEASE, done, ctx);

    call->uid = mem_strdup(uid);
    call->policy = policy_of("ResourceClaim");
    if (set_target(call, "ResourceClaim", ns, claim) == 0)
        let_go(call);
}

void kube_ungate(struct cluster *port, const char *ns, const char *pod, const char *node, cluster_done *done, void *ctx)
{
    struct call *call = call_new(port, VERB_UNGATE, done, ctx);

    if (set_target(call, "Pod", ns, pod) < 0)
        return;
    if (node && !call->kube->may_not_nominate)
        nominate(call, node);
    else
        open_gates(call);
}

void kube_allocate(struct cluster *port, const char *ns, const char *claim, const char *uid, const json_t *allocation,
                   const json_t *consumers, cluster_done *done, void *ctx)
{
    struct call *call = call_new(port, VERB_ALLOCATE, done, ctx);
    json_t *object;

    call->uid = mem_strdup(uid);
    if (set_target(call, "ResourceClaim", ns, claim) < 0)
        return;
    object = json_pack("{s:s, s:s, s:{s:s, s:s, s:s*}, s:{s:o, s:O*}}", "apiVersion", "resource.k8s.io/v1", "kind",
                       "ResourceClaim", "metadata", "name", claim, "namespace", ns, "uid", uid, "status", "allocation",
                       timed(call->kube, allocation), "reservedFor", consumers);
    call->object = in_served_version(call->kube, object);
    json_decref(object);
    allocate_begin(call);
}

void kube_bind(struct cluster *port, const char *ns, const char *pod, const char *uid, const char *node,
               cluster_done *done, void *ctx)
{
    struct call *call = call_new(port, VERB_BIND, done, ctx);
    json_t *binding;
    BUF path = {0};

    call->uid = mem_strdup(uid);
    if (set_target(call, "Pod", ns, pod) < 0)
        return;
    binding =
        json_pack("{s:s, s:s, s:{s:s, s:s*}, s:{s:s, s:s, s:s}}", "apiVersion", "v1", "kind", "Binding", "metadata",
                  "name", pod, "uid", uid, "target", "apiVersion", "v1", "kind", "Node", "name", node);
    buf_addf(&path, "%s/binding", call->target);
    request(call, "POST", buf_take(&path), NULL, json_dumps(binding, JSON_COMPACT));
    json_decref(binding);
}

void kube_logs(struct cluster *port, const char *ns, const char *pod, size_t tail_lines, cluster_done *done, void *ctx)
{
    struct call *call = call_new(port, VERB_LOGS, done, ctx);

    call->tail_lines = tail_lines;
    if (set_target(call, "Pod", ns, pod) == 0)
        request(call, "GET", mem_strdup(call->target), NULL, NULL);
}
