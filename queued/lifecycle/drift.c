/* Did kube-scheduler do what was planned? Steering leaves it no other choice, so a difference means that the simulation
 * or the inventory was wrong: it is recorded, counted and the gang runs on. */
#include <string.h>

#include "allocator/base/str.h"
#include "queued/lifecycle/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

static const json_t *results_of(const json_t *allocation)
{
    return json_object_get(json_object_get(allocation, "devices"), "results");
}

static bool is_same_device(const json_t *a, const json_t *b)
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
        if (is_same_device(result, wanted))
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

static void check(struct lifecycle *lc, struct job *job, const struct launch_object *claim)
{
    const json_t *planned = results_of(claim->planned);
    const json_t *real = results_of(json_object_get(json_object_get(claim->observed, "status"), "allocation"));
    BUF text = {0};

    /* a member that has ended already has given its devices back: nothing to compare */
    if (!real || is_as_planned(planned, real))
        return;
    add_devices(&text, planned);
    buf_adds(&text, ", allocated ");
    add_devices(&text, real);
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

void attempt_check_allocations(struct lifecycle *lc, struct job *job)
{
    size_t n_before = lc->n_drift;

    for (size_t i = 0; i < job->live->n_objects; i++)
        if (job->live->objects[i].rank == RANK_CLAIM)
            check(lc, job, &job->live->objects[i]);
    if (lc->n_drift == n_before)
        return;
    recharge(lc, job);
    lifecycle_claims_changed(lc); /* perhaps onto devices that others of ours were to have */
}
