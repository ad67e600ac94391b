/* Did kube-scheduler do what was planned? Steering leaves it no other choice but among devices that cannot be told
 * apart (alike.h), so any other difference means that the simulation or the inventory was wrong: it is recorded,
 * counted and the gang runs on. What is shown as the placement is from here on what was done. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/lifecycle/alike.h"
#include "queued/lifecycle/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

static const json_t *results_of(const json_t *allocation)
{
    return json_object_get(json_object_get(allocation, "devices"), "results");
}

bool result_is_same_device(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"driver", "pool", "device"};

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (!json_equal(json_object_get(a, keys[i]), json_object_get(b, keys[i])))
            return false;
    return true;
}

static bool has_device(const json_t *results, const json_t *wanted)
{
    const json_t *result;
    size_t i;

    json_array_foreach (results, i, result)
        if (result_is_same_device(result, wanted))
            return true;
    return false;
}

static void add_devices(struct buf *text, const json_t *results)
{
    const json_t *result;
    size_t i;

    json_array_foreach (results, i, result) {
        const char *pool = json_text_at(result, "pool", NULL), *device = json_text_at(result, "device", NULL);

        buf_addf(text, "%s%s/%s", i ? " " : "", pool ? pool : "", device ? device : "");
    }
}

static bool is_as_planned(const json_t *planned, const json_t *real)
{
    const json_t *result;
    size_t i;

    if (json_array_size(planned) != json_array_size(real))
        return false;
    json_array_foreach (planned, i, result)
        if (!has_device(real, result))
            return false;
    return true;
}

bool allocation_is_same(const json_t *planned, const json_t *real)
{
    return is_as_planned(results_of(planned), results_of(real));
}

/* A member that has ended already has given its devices back: then there is nothing to compare. */
static const json_t *real_results(const struct launch_object *claim)
{
    return results_of(json_object_get(json_object_get(claim->observed, "status"), "allocation"));
}

static bool differs(const struct launch_object *claim)
{
    return claim->rank == RANK_CLAIM && real_results(claim) &&
           !is_as_planned(results_of(claim->planned), real_results(claim));
}

static void tell_drift(struct lifecycle *lc, struct job *job, const struct launch_object *claim)
{
    BUF text = {0};

    add_devices(&text, results_of(claim->planned));
    buf_adds(&text, ", allocated ");
    add_devices(&text, real_results(claim));
    lc->n_drift++;
    job_event(lc, job, "Drift", "claim %s: planned %s", claim->name, buf_str(&text));
}

/* Resources that are used no more stay with amount 0: their row of usage is there already. */
static void recharge(struct lifecycle *lc, struct job *job)
{
    json_t *charges = lc->options.recharge(lc->options.ctx, job);

    json_decref(job->live->charges);
    job->live->charges = charges;
    attempt_store_charges(job->live, job->id, lc->options.store);
    attempt_record_usage(lc, job);
}

/* ---- but for names ---- */

/* How many members have each claim, by its name. */
static json_t *count_users(const json_t *members)
{
    json_t *users = json_object(), *member, *claim;
    size_t m, c;

    json_array_foreach (members, m, member)
        json_array_foreach (json_object_get(member, "claims"), c, claim) {
            const char *name = json_text_at(claim, "name", NULL);

            json_object_set_new(users, name, json_integer(json_integer_value(json_object_get(users, name)) + 1));
        }
    return users;
}

/* "group node" of a member that may stand for others of its group on its node: nobody but first fit said which of
 * them gets what. One with a claim that steering pinned stands for itself, and null is returned. */
static json_t *kind_of(const struct attempt *attempt, const json_t *member, const json_t *users)
{
    const json_t *claim;
    size_t i;

    json_array_foreach (json_object_get(member, "claims"), i, claim) {
        const char *name = json_text_at(claim, "name", NULL);
        const struct launch_object *object = attempt_find(attempt, "ResourceClaim", name);

        if (object && !object->is_loose && json_integer_value(json_object_get(users, name)) == 1)
            return json_null();
    }
    return json_sprintf("%s\x1f%s", json_text_at(member, "group", NULL), json_text_at(member, "node", NULL));
}

static json_t *owner_of(size_t member, const json_t *kind, const char *pod_claim)
{
    json_t *own = json_is_null(kind) ? json_null() : json_sprintf("%s\x1f%s", json_string_value(kind), pod_claim);

    return json_pack("[I, o]", (json_int_t)member, own);
}

/* Claims of one member, by name: [member, kind of this claim or null]. */
static json_t *owners_of(const struct attempt *attempt)
{
    json_t *members = json_object_get(attempt->placement, "members"), *users = count_users(members);
    json_t *owners = json_object(), *member, *claim;
    size_t m, c;

    json_array_foreach (members, m, member) {
        json_t *kind = kind_of(attempt, member, users);

        json_array_foreach (json_object_get(member, "claims"), c, claim) {
            const char *name = json_text_at(claim, "name", NULL);

            if (json_integer_value(json_object_get(users, name)) == 1)
                json_object_set_new(owners, name, owner_of(m, kind, json_text_at(claim, "podClaim", NULL)));
        }
        json_decref(kind);
    }
    json_decref(users);
    return owners;
}

static bool is_renamed(const struct lifecycle *lc, const struct attempt *attempt)
{
    struct claim_devices *claims = mem_array(struct claim_devices, attempt->n_objects + 1);
    json_t *owners = owners_of(attempt);
    size_t n = 0;
    bool result;

    for (size_t i = 0; i < attempt->n_objects; i++) {
        const struct launch_object *claim = &attempt->objects[i];
        const json_t *owner = json_object_get(owners, claim->name);

        if (claim->rank == RANK_CLAIM && real_results(claim))
            claims[n++] = (struct claim_devices){
                .planned = results_of(claim->planned),
                .real = real_results(claim),
                .member = (size_t)json_integer_value(json_array_get(owner, 0)),
                .kind = json_string_value(json_array_get(owner, 1)),
            };
    }
    result = claims_are_alike(claims, n, lc->options.device_traits, lc->options.ctx);
    json_decref(owners);
    free(claims);
    return result;
}

/* ---- the placement that is shown ---- */

/* A request of the real allocation as the plan calls it: with the alternative that was taken. */
static const char *shown_request(const json_t *planned, const char *request)
{
    const json_t *device;
    size_t i, len = strlen(request);

    json_array_foreach (planned, i, device) {
        const char *name = json_text_at(device, "request", NULL);

        if (name && strncmp(name, request, len) == 0 && name[len] == '/')
            return name;
    }
    return request;
}

static void show_devices(json_t *claim, const json_t *results)
{
    static const char *const keys[] = {"driver", "pool", "device"};
    const json_t *planned = json_object_get(claim, "devices"), *result;
    json_t *devices = json_array();
    size_t i;

    json_array_foreach (results, i, result) {
        const char *request = json_text_at(result, "request", NULL);
        json_t *device = json_pack("{s:s}", "request", shown_request(planned, request ? request : ""));

        for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
            json_object_set(device, keys[k], json_object_get(result, keys[k]));
        json_array_append_new(devices, device);
    }
    json_object_set_new(claim, "devices", devices);
}

/* Others may hold the old value. */
static void show_real(struct lifecycle *lc, const struct job *job)
{
    json_t *placement = json_deep_copy(job->live->placement), *member, *claim;
    size_t m, c;

    json_array_foreach (json_object_get(placement, "members"), m, member)
        json_array_foreach (json_object_get(member, "claims"), c, claim) {
            const char *name = json_text_at(claim, "name", NULL);
            const struct launch_object *object = name ? attempt_find(job->live, "ResourceClaim", name) : NULL;

            if (object && differs(object))
                show_devices(claim, real_results(object));
        }
    json_decref(job->live->placement);
    job->live->placement = placement;
    attempt_store_placement(job->live, job->id, lc->options.store);
}

void attempt_check_allocations(struct lifecycle *lc, struct job *job)
{
    const struct attempt *attempt = job->live;
    size_t n_differ = 0;
    bool is_drift;

    for (size_t i = 0; i < attempt->n_objects; i++)
        n_differ += differs(&attempt->objects[i]);
    if (n_differ == 0)
        return;
    is_drift = !is_renamed(lc, attempt);
    for (size_t i = 0; i < attempt->n_objects; i++)
        if (is_drift && differs(&attempt->objects[i]))
            tell_drift(lc, job, &attempt->objects[i]);
    show_real(lc, job);
    if (is_drift)
        recharge(lc, job);
    lifecycle_claims_changed(lc); /* perhaps onto devices that others of ours were to have */
}
