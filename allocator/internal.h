/* allocator/internal.h - declarations shared by the loaders, the builder and the search; the model itself is model.h.
 */
#ifndef QUEUED_ALLOCATOR_INTERNAL_H
#define QUEUED_ALLOCATOR_INTERNAL_H

#include "allocator/model.h"

/* ---- symbols.c ---- */

void digest_quantity(struct digest *digest, const struct quantity *q);
struct symbols *symbols_new(void);
struct symbols *symbols_ref(struct symbols *symbols);
void symbols_unref(struct symbols *symbols);

static inline bool text_is(const char *a, const char *b)
{
    return __builtin_strcmp(a, b) == 0;
}

/* ---- read.c: fields of JSON objects ---- */

/* What every loader needs. Names that repeat become symbols; all other memory comes from the arena. */
struct load {
    struct arena *arena;
    struct symbols *symbols; /* NULL: symbols are copied into the arena instead */
    const struct features *features;
    bool validate; /* refuse what an API server refuses */
};
const char *load_symbol(const struct load *load, const char *text);

/* The member, or NULL when it is absent or null. */
const json_t *member(const json_t *object, const char *key);
/* Each reads one member: 0 with the fallback when absent, or -1 with the key as the field when it has another type. */
MUST_CHECK int read_text(const json_t *object, const char *key, struct arena *arena, const char *fallback,
                         const char **out, struct error *err);
MUST_CHECK int read_bool(const json_t *object, const char *key, bool *out, struct error *err);
MUST_CHECK int read_int(const json_t *object, const char *key, int64_t *out, struct error *err);
/* An array or object, NULL when absent. */
MUST_CHECK int read_array(const json_t *object, const char *key, const json_t **out, struct error *err);
MUST_CHECK int read_object(const json_t *object, const char *key, const json_t **out, struct error *err);
/* Texts of an array; items stays NULL when the member is absent, and is not NULL for an empty array. */
MUST_CHECK int read_texts(const json_t *object, const char *key, struct arena *arena, struct string_list *out,
                          struct error *err);
/* A quantity given as text or number. */
MUST_CHECK int read_quantity(const json_t *value, struct arena *arena, struct quantity *out, struct error *err);
/* The members of an object as labels, sorted by key. */
MUST_CHECK int read_labels(const json_t *object, const char *key, struct arena *arena, const struct label **out,
                           size_t *out_n, struct error *err);
/* Compact JSON text in the arena. */
const char *json_text(const json_t *value, struct arena *arena);
/* The texts of "spec.selectors[].cel.expression"; an entry is NULL when a selector has no cel. */
MUST_CHECK int read_selectors(const json_t *object, const char *key, const struct load *load, const char *const **out,
                              size_t *out_n, struct error *err);
MUST_CHECK int read_tolerations(const json_t *object, const char *key, const struct load *load,
                                const struct toleration **out, size_t *out_n, struct error *err);
MUST_CHECK int read_taints(const json_t *object, const char *key, const struct load *load, const struct taint **out,
                           size_t *out_n, struct error *err);
MUST_CHECK int read_taint(const json_t *json, const struct load *load, struct taint *out, struct error *err);
/* metadata.name; refused when missing. */
MUST_CHECK int read_name(const json_t *object, struct arena *arena, const char **out, struct error *err);

/* ---- names.c: the rules for names (section 1.5); each returns NULL or what is wrong ---- */

const char *name_problem_label(const char *name);     /* DNS label */
const char *name_problem_subdomain(const char *name); /* DNS subdomain */
const char *name_problem_driver(const char *name);
const char *name_problem_pool(const char *name);
const char *name_problem_qualified(const char *name); /* of attributes and capacities */
const char *name_problem_fully_qualified(const char *name);
const char *name_problem_label_key(const char *name); /* taint keys, binding conditions */
const char *name_problem_label_value(const char *value);
const char *name_problem_version(const char *text); /* semantic version 2.0.0 */
/* Refuse unless `problem` is NULL. */
MUST_CHECK int name_check(const char *field, const char *name, const char *problem, struct error *err);

/* ---- objects ---- */

MUST_CHECK int slice_parse(const json_t *object, const struct load *load, struct slice **out, struct error *err);
MUST_CHECK int slice_check(const struct slice *slice, const struct load *load, struct error *err);
MUST_CHECK int node_info_parse(const json_t *object, const struct load *load, struct node_info *out, struct error *err);
MUST_CHECK int class_parse(const json_t *object, const struct load *load, struct device_class *out, struct error *err);
/* `spec` of a claim: {"devices": {...}}; fields in errors start at "devices". */
MUST_CHECK int claim_spec_parse(const json_t *spec, const struct load *load, struct claim *out, struct error *err);
MUST_CHECK int claim_check(const struct claim *claim, const struct load *load, struct error *err);
/* `opaque` is the JSON text of an opaque configuration, or NULL. */
MUST_CHECK int opaque_check(const char *opaque, struct error *err);
MUST_CHECK int expression_check(const char *text, const struct load *load, struct error *err);

struct taint_rule {
    const char *name;
    bool has_selector;
    const char *driver, *pool, *device; /* NULL: any */
    struct taint taint;
};
MUST_CHECK int rule_parse(const json_t *object, const struct load *load, struct taint_rule *out, struct error *err);
MUST_CHECK int cluster_claim_parse(const json_t *object, const struct load *load, struct cluster_claim *out,
                                   struct error *err);

#endif
