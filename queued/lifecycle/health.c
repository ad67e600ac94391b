/* How the members of an attempt are: a diagnosis of each, and an event for each device that falls sick. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "queued/lifecycle/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

#define EVENT_UNHEALTHY "DeviceUnhealthy"

static const struct launch_object *pod_group_of(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (attempt->objects[i].rank == RANK_POD_GROUP)
            return &attempt->objects[i];
    return NULL;
}

/* The pod's claims that the attempt has created; of others nothing is known here. */
static size_t gather_claims(const struct attempt *attempt, const json_t *pod, struct diagnosed_claim *out)
{
    const json_t *entries = json_object_get(json_object_get(pod, "spec"), "resourceClaims"), *entry;
    size_t i, n = 0;

    json_array_foreach (entries, i, entry) {
        const char *name = json_text_at(entry, "resourceClaimName", NULL);
        const struct launch_object *claim = name ? attempt_find(attempt, "ResourceClaim", name) : NULL;

        if (claim)
            out[n++] = (struct diagnosed_claim){name, claim->is_there ? claim->observed : NULL};
    }
    return n;
}

bool member_diagnose(const struct attempt *attempt, const struct launch_object *pod, struct diagnosis *out)
{
    const struct launch_object *group = pod_group_of(attempt);
    size_t n = json_array_size(json_object_get(json_object_get(pod->body, "spec"), "resourceClaims"));
    struct diagnosed_claim *claims = mem_array(struct diagnosed_claim, n + 1);
    struct diagnose_input input = {.pod = pod->observed, .claims = claims, .pod_group = group ? group->observed : NULL};
    bool found;

    input.n_claims = gather_claims(attempt, pod->body, claims);
    found = diagnose(&input, out);
    free(claims);
    return found;
}

static bool is_disrupted(const json_t *pod)
{
    const json_t *condition;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(pod, "status"), "conditions"), i, condition) {
        const char *type = json_text_at(condition, "type", NULL), *status = json_text_at(condition, "status", NULL);

        if (type && status && strcmp(type, "DisruptionTarget") == 0 && strcmp(status, "True") == 0)
            return true;
    }
    return false;
}

bool object_is_going(const json_t *object)
{
    return json_text_at(object, "metadata", "deletionTimestamp", NULL) != NULL;
}

bool member_is_taken_away(const json_t *pod)
{
    return is_disrupted(pod) || object_is_going(pod);
}

void member_loss(const struct attempt *attempt, const struct launch_object *pod, struct diagnosis *out)
{
    const char *phase = json_text_at(pod->observed, "status", "phase", NULL);
    const char *reason = json_text_at(pod->observed, "status", "reason", NULL);

    out->sentence[0] = '\0';
    if (is_disrupted(pod->observed) || reason)
        (void)member_diagnose(attempt, pod, out);
    else if (member_is_taken_away(pod->observed))
        snprintf(out->sentence, sizeof(out->sentence), "it was deleted");
    else if (phase && strcmp(phase, "Failed") == 0)
        (void)member_diagnose(attempt, pod, out);
}

/* ---- devices that fall sick ---- */

struct search {
    const char *words;
    bool is_found;
};

static void look_at_event(void *ctx, const struct event_row *row)
{
    struct search *search = ctx;

    search->is_found |= strcmp(row->type, EVENT_UNHEALTHY) == 0 && strcmp(row->detail, search->words) == 0;
}

/* A server that was started again has forgotten what it told; the log of events has not. */
static bool was_told(struct lifecycle *lc, const struct job *job, const char *words)
{
    struct search search = {.words = words};

    return store_events_each(lc->options.store, job->id, 0, INT32_MAX, look_at_event, &search, NULL) == 0 &&
           search.is_found;
}

void attempt_note_health(struct lifecycle *lc, struct job *job)
{
    for (size_t i = 0; i < job->live->n_objects; i++) {
        struct launch_object *pod = &job->live->objects[i];
        char device[400], words[600];

        if (pod->rank != RANK_POD || pod->is_sick || !diagnose_health(pod->observed, device, sizeof(device)))
            continue;
        pod->is_sick = true;
        snprintf(words, sizeof(words), "member %s: %s", pod->name, device);
        if (!was_told(lc, job, words))
            job_event(lc, job, EVENT_UNHEALTHY, "%s", words);
    }
}
