/* Who holds which device, judged by the claims and slices that are in the cluster, by plain counting. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "queued/lifecycle/objects.h"
#include "test/simulation/play.h"

/* ---- the devices that are published ---- */

static void device_key(char out[160], const char *driver, const char *pool, const char *device)
{
    snprintf(out, 160, "%s/%s/%s", driver, pool, device);
}

static void result_key(char out[160], const json_t *result)
{
    device_key(out, text_at(result, "driver", NULL, NULL), text_at(result, "pool", NULL, NULL),
               text_at(result, "device", NULL, NULL));
}

/* "driver/pool/device" -> device; new reference. */
static json_t *published_devices(const struct play *play)
{
    json_t *devices = json_object(), *slice, *device;
    const char *key;
    size_t i;

    json_object_foreach (play->stage.relay.objects, key, slice) {
        const json_t *spec = json_object_get(slice, "spec");

        if (!is_kind(slice, "ResourceSlice"))
            continue;
        json_array_foreach (json_object_get(spec, "devices"), i, device) {
            char name[160];

            device_key(name, text_at(spec, "driver", NULL, NULL), text_at(spec, "pool", "name", NULL),
                       text_at(device, "name", NULL, NULL));
            json_object_set(devices, name, device);
        }
    }
    return devices;
}

static void add_to(json_t *sums, const char *key, int64_t amount)
{
    json_object_set_new(sums, key, json_integer(json_integer_value(json_object_get(sums, key)) + amount));
}

static int64_t number_of(const char *text)
{
    return strtoll(text, NULL, 10);
}

/* ---- given once ---- */

/* Counters are 1 each in these clusters. */
static void count_counters(struct play *play, json_t *sums, const json_t *device, const char *pool, const char *claim)
{
    const json_t *consumes;
    json_t *value;
    const char *counter;
    size_t i;

    json_array_foreach (json_object_get(device, "consumesCounters"), i, consumes)
        json_object_foreach (json_object_get(consumes, "counters"), counter, value) {
            char key[160];

            snprintf(key, sizeof(key), "%s/%s", pool, counter);
            if (json_object_get(sums, key))
                rule_broken(play, "devices are given once", "counter %s is taken by %s and again by %s", key,
                            json_string_value(json_object_get(sums, key)), claim);
            json_object_set_new(sums, key, json_string(claim));
        }
}

struct counting {
    json_t *devices, *holders, *counters, *bandwidth;
};

static void count_result(struct play *play, struct counting *counting, const char *claim, const json_t *result)
{
    char key[160];
    const json_t *device;

    result_key(key, result);
    device = json_object_get(counting->devices, key);
    if (json_is_true(json_object_get(device, "allowMultipleAllocations"))) {
        add_to(counting->bandwidth, key, number_of(text_at(result, "consumedCapacity", "bandwidth", NULL)));
        if (json_integer_value(json_object_get(counting->bandwidth, key)) > 100)
            rule_broken(play, "devices are given once", "%s is shared beyond its capacity, at last by %s", key, claim);
        return;
    }
    if (json_object_get(counting->holders, key))
        rule_broken(play, "devices are given once", "%s is held by %s and by %s", key,
                    json_string_value(json_object_get(counting->holders, key)), claim);
    json_object_set_new(counting->holders, key, json_string(claim));
    count_counters(play, counting->counters, device, text_at(result, "pool", NULL, NULL), claim);
}

/* A claim that queued allocates itself may meet somebody else's for a moment: the API server refuses neither, and the
 * attempt then ends before the gang runs. */
static bool may_have_rival(const struct play *play, const json_t *claim)
{
    const json_t *view = play_view(play, label_number(claim, LABEL_JOB));

    if (!json_object_get(json_object_get(json_object_get(claim, "metadata"), "annotations"), ANNOTATION_BIND))
        return false;
    return strcmp(text_at(view, "state", NULL, NULL), "Running") != 0 || json_object_get(view, "ending");
}

/* Of those of queued alone, all; else whatever must not have a rival. */
static void count_claims(struct play *play, json_t *devices, bool only_ours)
{
    struct counting counting = {devices, json_object(), json_object(), json_object()};
    const char *key;
    json_t *object, *result;
    size_t i;

    json_object_foreach (play->stage.relay.objects, key, object) {
        if (!is_kind(object, "ResourceClaim") ||
            (only_ours ? !label_number(object, LABEL_JOB) : may_have_rival(play, object)))
            continue;
        json_array_foreach (allocation_results(object), i, result)
            count_result(play, &counting, key, result);
    }
    json_decref(counting.holders);
    json_decref(counting.counters);
    json_decref(counting.bandwidth);
}

void rule_devices_are_given_once(struct play *play)
{
    json_t *devices = published_devices(play);

    count_claims(play, devices, false);
    count_claims(play, devices, true);
    json_decref(devices);
}

/* ---- what a job holds ---- */

/* How many claims a job was planned with. */
static size_t n_claims_of(const json_t *view)
{
    json_t *names = json_object(), *member, *claim;
    size_t i, k, n;

    json_array_foreach (json_object_get(json_object_get(view, "placement"), "members"), i, member)
        json_array_foreach (json_object_get(member, "claims"), k, claim)
            json_object_set_new(names, text_at(claim, "name", NULL, NULL), json_true());
    n = json_object_size(names);
    json_decref(names);
    return n;
}

/* The results of all claims of a job; new reference. NULL when one is not there, or has none (yet, or any more). */
static json_t *results_of_job(const struct play *play, int64_t id)
{
    json_t *all = json_array(), *object;
    const char *key;
    size_t n = 0;

    json_object_foreach (play->stage.relay.objects, key, object) {
        json_t *results = (json_t *)(uintptr_t)allocation_results(object);

        if (!is_kind(object, "ResourceClaim") || label_number(object, LABEL_JOB) != id)
            continue;
        if (json_array_size(results) == 0) {
            json_decref(all);
            return NULL;
        }
        json_array_extend(all, results);
        n++;
    }
    if (n == n_claims_of(play_view(play, id)))
        return all;
    json_decref(all);
    return NULL;
}

static bool is_steady(const struct play *play, const struct known_job *job)
{
    const json_t *view = play_view(play, job->id);

    return strcmp(job->state, "Running") == 0 && job->n_drift == 0 && view && !json_object_get(view, "ending") &&
           !play->had_slice_changes;
}

static void check_constraints(struct play *play, const struct known_job *job, const json_t *devices,
                              const json_t *results)
{
    const struct job_traits *traits = &job->step->job;
    const char *attribute = traits->match[0] ? traits->match : traits->distinct;
    json_t *seen = json_object(), *result;
    size_t i;

    json_array_foreach (results, i, result) {
        char key[160];
        const char *value;

        result_key(key, result);
        value = text_at(json_object_get(json_object_get(devices, key), "attributes"), attribute, "string", NULL);
        if (traits->distinct[0] && json_object_get(seen, value))
            rule_broken(play, "constraints hold", "two devices of %s have %s %s", traits->name, attribute, value);
        json_object_set_new(seen, value, json_true());
        if (traits->match[0] && json_object_size(seen) > 1)
            rule_broken(play, "constraints hold", "the devices of %s differ in %s", traits->name, attribute);
    }
    json_decref(seen);
}

void rule_constraints_hold(struct play *play)
{
    json_t *devices = NULL;

    for (size_t i = 0; i < play->n_jobs; i++) {
        const struct known_job *job = &play->jobs[i];
        json_t *results;

        if ((!job->step->job.match[0] && !job->step->job.distinct[0]) || !is_steady(play, job))
            continue;
        results = results_of_job(play, job->id);
        if (!devices)
            devices = published_devices(play);
        if (results)
            check_constraints(play, job, devices, results);
        json_decref(results);
    }
    json_decref(devices);
}

/* ---- charges ---- */

struct held {
    int64_t gpus, gpumem_gi, migs, modela, pods;
};

static void count_held(const json_t *devices, const json_t *results, struct held *held)
{
    const json_t *result;
    size_t i;

    json_array_foreach (results, i, result) {
        char key[160];
        const json_t *device;
        const char *type;

        result_key(key, result);
        device = json_object_get(devices, key);
        type = text_at(json_object_get(device, "attributes"), "type", "string", NULL);
        if (strcmp(type, "mig") == 0)
            held->migs++;
        if (strcmp(type, "gpu") != 0)
            continue;
        held->gpus++;
        held->gpumem_gi += number_of(text_at(json_object_get(device, "capacity"), "memory", "value", NULL));
        held->modela += strcmp(text_at(json_object_get(device, "attributes"), "model", "string", NULL), "A") == 0;
    }
}

static int64_t charge_of(const json_t *view, const char *resource)
{
    const json_t *charge;
    size_t i;

    json_array_foreach (json_object_get(view, "charges"), i, charge)
        if (strcmp(text_at(charge, "resource", NULL, NULL), resource) == 0)
            return json_integer_value(json_object_get(charge, "amount"));
    return 0;
}

static void check_charges(struct play *play, const struct known_job *job, const struct held *held)
{
    const struct {
        const char *resource;
        int64_t amount;
    } rows[] = {{"gpus", held->gpus},
                {"gpumem", held->gpumem_gi << 30},
                {"migs", held->migs},
                {"modela", held->modela},
                {"pods", held->pods}};
    const json_t *view = play_view(play, job->id);

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (charge_of(view, rows[i].resource) != rows[i].amount)
            rule_broken(play, "charges are what is held", "%s is charged %lld %s and holds %lld", job->step->job.name,
                        (long long)charge_of(view, rows[i].resource), rows[i].resource, (long long)rows[i].amount);
}

void rule_charges_are_what_is_held(struct play *play)
{
    json_t *devices = NULL, *object;
    const char *key;

    for (size_t i = 0; i < play->n_jobs; i++) {
        const struct known_job *job = &play->jobs[i];
        struct held held = {0};
        json_t *results = is_steady(play, job) ? results_of_job(play, job->id) : NULL;

        if (!results)
            continue;
        json_object_foreach (play->stage.relay.objects, key, object)
            held.pods += is_kind(object, "Pod") && label_number(object, LABEL_JOB) == job->id;
        if (!devices)
            devices = published_devices(play);
        count_held(devices, results, &held);
        if (held.pods ==
            json_integer_value(json_object_get(json_object_get(play_view(play, job->id), "members"), "total")))
            check_charges(play, job, &held); /* else one was taken away just now */
        json_decref(results);
    }
    json_decref(devices);
}
