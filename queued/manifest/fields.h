/* queued/manifest/fields.h - what an object may hold, as tables: types, ranges, what is refused and why.
 *
 * One pass over a document checks it and brings it into one form: null members go (as the API server sees them),
 * numbers where a quantity stands become its text, whole reals where an integer stands become integers, what only a
 * server writes is dropped. Unknown members are refused with the closest known name beside them. Room-internal. */
#ifndef QUEUED_MANIFEST_FIELDS_H
#define QUEUED_MANIFEST_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "allocator/base/error.h"

enum field_type {
    FIELD_ANY, /* passed on as it is */
    FIELD_STRING,
    FIELD_BOOL,
    FIELD_INT,
    FIELD_DURATION, /* Go's text form, positive */
    FIELD_STRINGS,  /* list of text */
    FIELD_TEXT_MAP, /* text to text: labels and the like */
    FIELD_QUANTITY,
    FIELD_QUANTITY_MAP,
    FIELD_OBJECT,  /* by `of` */
    FIELD_OBJECTS, /* list of objects by `of` */
    FIELD_LIST,    /* list, its entries passed on */
    FIELD_MAP,     /* object, its members passed on */
};

struct fields;

struct field {
    const char *name;
    enum field_type type;
    const struct fields *of;
    int64_t min, max;          /* INT: the range, when max > min; lists: how many entries at most, when max > 0 */
    const char *const *one_of; /* STRING: NULL-terminated list of what it may be */
    const char *refused;       /* why it cannot be honoured; with one_of: why no other value can */
    bool required, dropped;
    int (*check)(json_t *value, struct error *err); /* more rules, after the type; may be NULL */
};

struct fields {
    const struct field *rows;
    size_t n;
    int (*check)(json_t *object, struct error *err); /* rules over several members; may be NULL */
};
#define FIELDS(array)                                                                                                  \
    {                                                                                                                  \
        (array), ARRAY_SIZE(array), NULL                                                                               \
    }
#define FIELDS_AND(array, function)                                                                                    \
    {                                                                                                                  \
        (array), ARRAY_SIZE(array), (function)                                                                         \
    }

/* Returns 0, or -1 with ERR_INVALID and the path below `object`. */
MUST_CHECK int fields_check(json_t *object, const struct fields *fields, struct error *err);

/* Fail for one member of a map whose key may hold dots: the path is "[key]". Always -1. */
int error_key(struct error *err, const char *key, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The closest of the names if it is close enough to be meant, else NULL. `name_of(ctx, i)` gives n names. */
const char *closest_name(const char *word, const char *(*name_of)(const void *ctx, size_t i), const void *ctx,
                         size_t n);

/* What a JSON value is, for messages: "a number". */
const char *json_kind(const json_t *value);

/* ---- tables that several kinds use (pod_fields.c, claim_fields.c) ---- */

extern const struct fields job_metadata_fields;    /* of what is submitted: name or generateName, labels, annotations */
extern const struct fields object_metadata_fields; /* of templates and claims */
extern const struct fields pod_spec_fields;
extern const struct fields pod_template_fields; /* {"metadata", "spec"} */

/* Rules over a whole pod spec: container names, claims that are named but not declared. */
MUST_CHECK int pod_spec_check(json_t *spec, struct error *err);
/* A whole ResourceClaim or ResourceClaimTemplate of any served version. */
MUST_CHECK int claim_object_check(json_t *object, struct error *err);
/* Whether `version` is one of resource.k8s.io that is read. */
bool claim_version_known(const char *version);

/* DNS-1123 label or subdomain (dots allowed), at most `max` characters. */
MUST_CHECK int field_name_check(const char *name, size_t max, bool dots, struct error *err);

#endif
