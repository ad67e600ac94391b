#include "queued/classes.h"

#include <string.h>

#include "allocator/base/str.h"

#include "allocator/base/banned.h"

struct walk {
    size_t document;
    void (*each)(void *ctx, size_t document, const char *field, const char *name);
    void *ctx;
};

static void visit_class(const struct walk *walk, const json_t *holder, const char *path)
{
    const char *name = json_string_value(json_object_get(holder, "deviceClassName"));
    BUF field = {0};

    if (!name)
        return;
    buf_addf(&field, "%s.deviceClassName", path);
    walk->each(walk->ctx, walk->document, buf_str(&field), name);
}

/* A request of any version: flat, `exactly`, or `firstAvailable`. */
static void visit_request(const struct walk *walk, const json_t *request, const char *path)
{
    const json_t *alternative;
    size_t i;
    BUF inner = {0};

    visit_class(walk, request, path);
    buf_addf(&inner, "%s.exactly", path);
    visit_class(walk, json_object_get(request, "exactly"), buf_str(&inner));
    json_array_foreach(json_object_get(request, "firstAvailable"), i, alternative)
    {
        buf_clear(&inner);
        buf_addf(&inner, "%s.firstAvailable[%zu]", path, i);
        visit_class(walk, alternative, buf_str(&inner));
    }
}

static void visit_claim_spec(const struct walk *walk, const json_t *spec, const char *path)
{
    const json_t *request;
    size_t i;
    BUF inner = {0};

    json_array_foreach(json_object_get(json_object_get(spec, "devices"), "requests"), i, request)
    {
        buf_clear(&inner);
        buf_addf(&inner, "%s.devices.requests[%zu]", path, i);
        visit_request(walk, request, buf_str(&inner));
    }
}

static void visit_list(const struct walk *walk, const json_t *spec, const char *prefix, const char *key)
{
    const json_t *entry;
    size_t i;
    BUF inner = {0};

    json_array_foreach(json_object_get(spec, key), i, entry)
    {
        buf_clear(&inner);
        buf_addf(&inner, "%sspec.%s[%zu].spec", prefix, key, i);
        visit_claim_spec(walk, json_object_get(entry, "spec"), buf_str(&inner));
    }
}

static void visit_object(const struct walk *walk, const json_t *object, const char *prefix)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const json_t *spec = json_object_get(object, "spec"), *item;
    size_t i;
    BUF path = {0};

    if (!kind)
        return;
    buf_adds(&path, prefix);
    if (strcmp(kind, "ResourceClaim") == 0) {
        buf_adds(&path, "spec");
        visit_claim_spec(walk, spec, buf_str(&path));
    } else if (strcmp(kind, "ResourceClaimTemplate") == 0) {
        buf_adds(&path, "spec.spec");
        visit_claim_spec(walk, json_object_get(spec, "spec"), buf_str(&path));
    } else if (strcmp(kind, "GangJob") == 0) {
        visit_list(walk, spec, prefix, "claimTemplates");
        visit_list(walk, spec, prefix, "sharedClaims");
    } else if (strcmp(kind, "List") == 0 && prefix[0] == '\0') { /* a List in a List is refused by the decoder */
        json_array_foreach(json_object_get(object, "items"), i, item)
        {
            buf_clear(&path);
            buf_addf(&path, "items[%zu].", i);
            visit_object(walk, item, buf_str(&path));
        }
    }
}

void documents_each_class(const json_t *documents,
                          void (*each)(void *ctx, size_t document, const char *field, const char *name), void *ctx)
{
    struct walk walk = {0, each, ctx};
    const json_t *object;

    json_array_foreach(documents, walk.document, object) visit_object(&walk, object, "");
}
