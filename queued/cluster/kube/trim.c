/* What is kept of an object is a picture of the same form: an object of the picture names the members that go on, an
 * array has one picture for all its elements, KEEP takes a value whole. What the simulation reads of nodes and pods
 * stands in allocator/objects.c, demand.c, pod.c and builder.c. */
#include "queued/cluster/kube/kinds.h"

#include <stdint.h>
#include <string.h>

#include "allocator/base/banned.h"

struct picture {
    const char *key;               /* NULL ends the members */
    const struct picture *members; /* NULL: the value whole */
    bool is_list;                  /* `members` is for each element */
};

#define KEEP(key)                                                                                                      \
    {                                                                                                                  \
        key, NULL, false                                                                                               \
    }
#define OBJECT(key, of)                                                                                                \
    {                                                                                                                  \
        key, of, false                                                                                                 \
    }
#define LIST(key, of)                                                                                                  \
    {                                                                                                                  \
        key, of, true                                                                                                  \
    }
#define END                                                                                                            \
    {                                                                                                                  \
        NULL, NULL, false                                                                                              \
    }

static const struct picture condition[] = {KEEP("type"), KEEP("status"), KEEP("reason"), END};
static const struct picture port[] = {KEEP("hostPort"), KEEP("hostIP"), KEEP("containerPort"), KEEP("protocol"), END};
static const struct picture container[] = {KEEP("name"), KEEP("resources"), KEEP("restartPolicy"), LIST("ports", port),
                                           END};

static const struct picture pod_metadata[] = {
    KEEP("name"), KEEP("namespace"), KEEP("uid"), KEEP("resourceVersion"), KEEP("deletionTimestamp"), END};
static const struct picture pod_spec[] = {KEEP("nodeName"),
                                          KEEP("hostNetwork"),
                                          KEEP("overhead"),
                                          KEEP("resources"),
                                          KEEP("resourceClaims"),
                                          LIST("containers", container),
                                          LIST("initContainers", container),
                                          END};
static const struct picture pod_status[] = {KEEP("phase"), KEEP("resourceClaimStatuses"),
                                            KEEP("extendedResourceClaimStatus"), END};
static const struct picture pod[] = {OBJECT("metadata", pod_metadata), OBJECT("spec", pod_spec),
                                     OBJECT("status", pod_status), END};

static const struct picture node_metadata[] = {KEEP("name"),
                                               KEEP("uid"),
                                               KEEP("labels"),
                                               KEEP("resourceVersion"),
                                               KEEP("creationTimestamp"),
                                               KEEP("deletionTimestamp"),
                                               END};
static const struct picture node_spec[] = {KEEP("taints"), KEEP("unschedulable"), END};
static const struct picture node_status[] = {KEEP("allocatable"), KEEP("capacity"), KEEP("declaredFeatures"),
                                             LIST("conditions", condition), END};
static const struct picture node[] = {OBJECT("metadata", node_metadata), OBJECT("spec", node_spec),
                                      OBJECT("status", node_status), END};

static const struct {
    const char *kind;
    const struct picture *picture;
} pictures[] = {{"Pod", pod}, {"Node", node}};

static json_t *copied(const struct picture *picture, json_t *value);

static json_t *copied_members(const struct picture *members, const json_t *object)
{
    json_t *copy = json_object();

    for (; members->key; members++) {
        json_t *value = json_object_get(object, members->key);

        if (value)
            json_object_set_new_nocheck(copy, members->key, copied(members, value));
    }
    return copy;
}

/* A value of another form than the picture's goes through as it is: whoever reads it says what is wrong. */
static json_t *copied(const struct picture *picture, json_t *value)
{
    json_t *copy, *element;
    size_t i;

    if (!picture->members || (picture->is_list ? !json_is_array(value) : !json_is_object(value)))
        return json_incref(value);
    if (!picture->is_list)
        return copied_members(picture->members, value);
    copy = json_array();
    json_array_foreach (value, i, element) {
        json_array_append_new(copy, json_is_object(element) ? copied_members(picture->members, element)
                                                            : json_incref(element));
    }
    return copy;
}

static const struct picture *picture_of(const struct source *source)
{
    if (source->is_ours)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(pictures); i++)
        if (strcmp(pictures[i].kind, source->kind->name) == 0)
            return pictures[i].picture;
    return NULL;
}

/* Bookkeeping of those who write objects: often more than half of one. */
static json_t *without_bookkeeping(const json_t *metadata)
{
    static const char last_applied[] = "kubectl.kubernetes.io/last-applied-configuration";
    json_t *copy = json_copy((json_t *)(uintptr_t)metadata), *annotations = json_object_get(copy, "annotations");

    json_object_del(copy, "managedFields");
    if (json_object_get(annotations, last_applied)) {
        annotations = json_copy(annotations);
        json_object_del(annotations, last_applied);
        json_object_set_new_nocheck(copy, "annotations", annotations);
    }
    return copy;
}

json_t *kind_trim(const struct source *source, const char *version, json_t *object)
{
    const struct picture *picture = picture_of(source);
    const json_t *metadata = json_object_get(object, "metadata");
    json_t *copy = picture ? copied_members(picture, object) : json_copy(object);
    BUF api = {0};

    if (!picture && json_is_object(metadata))
        json_object_set_new_nocheck(copy, "metadata", without_bookkeeping(metadata));
    if (*source->kind->group)
        buf_addf(&api, "%s/", source->kind->group);
    buf_adds(&api, version);
    json_object_set_new_nocheck(copy, "apiVersion", json_string(buf_str(&api)));
    json_object_set_new_nocheck(copy, "kind", json_string(source->kind->name));
    return copy;
}
