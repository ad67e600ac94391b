#include "queued/cluster/kube/convert.h"

#include <stdint.h>
#include <string.h>

#include "allocator/base/str.h"

#include "allocator/base/banned.h"

/* {"name": "a", "exactly": {"deviceClassName": "b"}} becomes {"name": "a", "deviceClassName": "b"}. */
static void flatten(json_t *request)
{
    json_t *exactly = json_incref(json_object_get(request, "exactly"));

    if (json_is_object(exactly)) {
        json_object_del(request, "exactly");
        json_object_update_missing(request, exactly);
    }
    json_decref(exactly);
}

/* The ClaimSpec of a ResourceClaim, or of what a ResourceClaimTemplate makes. */
static json_t *claim_spec(json_t *object)
{
    json_t *spec = json_object_get(object, "spec");
    json_t *inner = json_object_get(spec, "spec");

    return inner ? inner : spec;
}

json_t *convert_resource(const json_t *object, const char *version)
{
    const char *given = json_string_value(json_object_get(object, "apiVersion"));
    BUF wanted = {0};
    json_t *copy, *request;
    size_t i;

    buf_addf(&wanted, "resource.k8s.io/%s", version);
    if (given && strcmp(given, buf_str(&wanted)) == 0)
        return json_incref((json_t *)(uintptr_t)object);
    copy = json_deep_copy(object);
    json_object_set_new(copy, "apiVersion", json_string(buf_str(&wanted)));
    if (strcmp(version, "v1beta1") == 0)
        json_array_foreach (json_object_get(json_object_get(claim_spec(copy), "devices"), "requests"), i, request)
            flatten(request);
    return copy;
}
