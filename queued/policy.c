/* What the cluster's own policies mean for jobs: the quotas of namespaces, and priority classes. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "queued/admission/namespace.h"
#include "queued/admission/needs.h"
#include "queued/internal.h"

#include "allocator/base/banned.h"

/* ---- priority classes ---- */

bool cluster_priority(const struct core *core, const char *name, int64_t *out)
{
    const json_t *value =
        json_object_get(json_object_get(world_kept(core->world, WORLD_PRIORITY_CLASSES), name), "value");

    if (!json_is_integer(value))
        return false;
    *out = json_integer_value(value);
    return true;
}

/* Of several defaults the cluster takes the lowest. */
const char *cluster_default_priority(const struct core *core)
{
    const json_t *class, *best = NULL;
    const char *name, *best_name = NULL;

    json_object_foreach ((json_t *)(uintptr_t)world_kept(core->world, WORLD_PRIORITY_CLASSES), name, class) {
        json_int_t value = json_integer_value(json_object_get(class, "value"));
        json_int_t lowest = json_integer_value(json_object_get(best, "value"));

        if (json_is_true(json_object_get(class, "globalDefault")) &&
            (!best || value < lowest || (value == lowest && strcmp(name, best_name) < 0))) {
            best = class;
            best_name = name;
        }
    }
    return best_name;
}

int64_t job_priority(const struct core *core, const struct job *job)
{
    const struct job_spec *spec = &job->blueprint->spec;
    int64_t value;

    if (job->priority == 0 && !spec->has_priority && spec->priority_class &&
        !book_find_priority(core->book, spec->priority_class) && cluster_priority(core, spec->priority_class, &value))
        return value;
    return job->priority;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_classes(const struct core *core, struct arena *arena, struct plan_input *input)
{
    json_t *kept = (json_t *)(uintptr_t)world_kept(core->world, WORLD_PRIORITY_CLASSES), *class;
    const char **names = arena_array(arena, const char *, json_object_size(kept)), *name, *by_default;
    size_t n = 0;

    json_object_foreach (kept, name, class)
        names[n++] = arena_strdup(arena, name);
    if (n)
        qsort(names, n, sizeof(*names), by_text);
    by_default = cluster_default_priority(core);
    input->priority_classes = names;
    input->n_priority_classes = n;
    input->default_priority_class = by_default ? arena_strdup(arena, by_default) : NULL;
}

/* ---- quotas ---- */

/* Objects of a live attempt that are still to come. */
static void add_promised(const struct job *job, struct needs *needs)
{
    for (size_t i = 0; i < job->live->n_objects; i++) {
        const struct launch_object *object = &job->live->objects[i];

        if (object->rank != RANK_ASSUMED && !object->observed)
            needs_add_object(needs, object->body);
    }
}

static void promise(const struct core *core, struct arena *arena, struct namespace_quota *quotas, size_t n)
{
    const struct job_list *jobs = lifecycle_jobs(core->lifecycle);

    for (size_t i = 0; i < jobs->n && n > 0; i++) {
        const struct job *job = jobs->items[i];
        struct needs needs = {.arena = arena, .default_priority_class = cluster_default_priority(core)};

        if ((job->state != JOB_ADMITTED && job->state != JOB_LAUNCHING) || job->ending != JOB_STATE_COUNT)
            continue;
        add_promised(job, &needs);
        for (size_t q = 0; needs.n > 0 && q < n; q++)
            if (strcmp(quotas[q].ns, job_ns(job)) == 0)
                namespace_quota_promise(&quotas[q], &needs);
    }
}

static void add_quotas(const struct core *core, struct arena *arena, struct plan_input *input)
{
    json_t *kept = (json_t *)(uintptr_t)world_kept(core->world, WORLD_QUOTAS), *object;
    struct namespace_quota *quotas = arena_array(arena, struct namespace_quota, json_object_size(kept));
    const char *key;
    size_t n = 0;

    json_object_foreach (kept, key, object)
        if (namespace_quota_parse(object, arena, &quotas[n], NULL) == 0)
            n++;
    if (n)
        qsort(quotas, n, sizeof(*quotas), namespace_quota_cmp);
    promise(core, arena, quotas, n);
    input->namespace_quotas = quotas;
    input->n_namespace_quotas = n;
}

void policies_now(const struct core *core, struct arena *arena, struct plan_input *input)
{
    input->has_pod_groups = core_pod_group(core) != NULL;
    add_classes(core, arena, input);
    add_quotas(core, arena, input);
}
