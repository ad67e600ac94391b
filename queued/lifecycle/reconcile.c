/* The cluster against the store, by label. What belongs to a live attempt is looked after by the attempt's own steps;
 * what has our labels and no live attempt is a stray: left by a crash, by a creation whose answer was lost, by a
 * database that was put back. Strays are deleted. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "queued/lifecycle/internal.h"
#include "queued/log.h"

#include "allocator/base/banned.h"

static bool is_same(const struct stray *stray, const char *kind, const char *ns, const char *name)
{
    return strcmp(stray->name, name) == 0 && strcmp(stray->kind, kind) == 0 && strcmp(stray->ns, ns) == 0;
}

static struct stray *find(struct lifecycle *lc, const char *kind, const char *ns, const char *name)
{
    for (size_t i = 0; i < lc->n_strays; i++)
        if (is_same(&lc->strays[i], kind, ns, name))
            return &lc->strays[i];
    return NULL;
}

static void clear(struct stray *stray)
{
    free(stray->kind);
    free(stray->ns);
    free(stray->name);
    free(stray->uid);
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

void stray_put(struct lifecycle *lc, const json_t *object)
{
    const char *kind = json_text_at(object, "kind", NULL), *name = json_text_at(object, "metadata", "name", NULL);
    const char *ns = or_empty(json_text_at(object, "metadata", "namespace", NULL));
    const char *uid = json_text_at(object, "metadata", "uid", NULL);
    struct stray *stray = find(lc, kind, ns, name);

    if (!stray) {
        mem_grow(lc->strays, lc->n_strays, lc->cap_strays);
        stray = &lc->strays[lc->n_strays++];
        *stray = (struct stray){.kind = mem_strdup(kind), .ns = mem_strdup(ns), .name = mem_strdup(name)};
    }
    free(stray->uid);
    stray->uid = mem_strdup(uid);
    stray->is_told = true;
}

void stray_drop(struct lifecycle *lc, const char *kind, const char *ns, const char *name)
{
    struct stray *stray = find(lc, kind, or_empty(ns), name);

    if (!stray)
        return;
    clear(stray);
    *stray = lc->strays[--lc->n_strays];
}

void strays_free(struct lifecycle *lc)
{
    for (size_t i = 0; i < lc->n_strays; i++)
        clear(&lc->strays[i]);
    free(lc->strays);
}

void lifecycle_reconcile(struct lifecycle *lc)
{
    if (!lc->is_synced)
        return;
    for (size_t i = 0; i < lc->n_strays; i++) {
        struct stray *stray = &lc->strays[i];

        if (stray->is_asked)
            continue;
        stray->is_asked = true;
        log_warn("stray.removed", LOG_STR("kind", stray->kind), LOG_STR("namespace", stray->ns),
                 LOG_STR("name", stray->name));
        outbox_remove(lc->options.outbox, (struct call_for){0}, stray->kind, stray->ns, stray->name, stray->uid);
    }
}
