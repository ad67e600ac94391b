#include "allocator/features.h"

#include <string.h>

#include "allocator/base/str.h"
#include "allocator/model.h"

#include "allocator/base/banned.h"

static const struct {
    const char *key, *gate;
} names[FEATURE_COUNT] = {
#define X(name, key, gate) [FEATURE_##name] = {key, gate},
    FEATURES(X)
#undef X
};

#define GA_34 (BIT(FEATURE_ADMIN_ACCESS) | BIT(FEATURE_PRIORITIZED_LIST) | BIT(FEATURE_DEVICE_STATUS))
#define ON_36                                                                                                          \
    (GA_34 | BIT(FEATURE_PARTITIONABLE_DEVICES) | BIT(FEATURE_DEVICE_TAINTS) | BIT(FEATURE_BINDING_CONDITIONS) |       \
     BIT(FEATURE_CONSUMABLE_CAPACITY) | BIT(FEATURE_EXTENDED_RESOURCES))
#define ON_37 (ON_36 | BIT(FEATURE_DEVICE_TAINT_RULES) | BIT(FEATURE_FRACTIONAL_CAPACITY_RANGE))

/* What each release switches on by default (semantics, section 15). */
static const uint32_t defaults[] = {GA_34, GA_34, ON_36, ON_37};

struct features features_default(int release)
{
    if (release < 34)
        release = 34;
    if (release > 37)
        release = 37;
    return (struct features){.on = defaults[release - 34], .release = release};
}

int features_switch(struct features *features, const char *name, bool on, struct error *err)
{
    for (unsigned i = 0; i < FEATURE_COUNT; i++) {
        if (strcmp(name, names[i].key) != 0 && strcmp(name, names[i].gate) != 0)
            continue;
        features->on = on ? features->on | BIT(i) : features->on & ~BIT(i);
        return 0;
    }
    return error_set(err, ERR_NOT_FOUND, "no feature is called %s", name);
}

static int change_one(struct features *features, struct str change, struct error *err)
{
    char name[80];

    if (change.len < 2 || change.len >= sizeof(name) || (change.ptr[0] != '+' && change.ptr[0] != '-'))
        return error_set(err, ERR_INVALID, "'%.*s' is no change of a feature: write +NAME or -NAME",
                         (int)(change.len < 60 ? change.len : 60), change.ptr);
    memcpy(name, change.ptr + 1, change.len - 1);
    name[change.len - 1] = '\0';
    return features_switch(features, name, change.ptr[0] == '+', err);
}

int features_change(struct features *features, const char *changes, struct error *err)
{
    struct features changed = *features;

    while (*changes) {
        size_t len = strcspn(changes, ",");

        if (change_one(&changed, (struct str){changes, len}, err) < 0)
            return -1;
        changes += len + (changes[len] == ',');
    }
    *features = changed;
    return 0;
}

const char *feature_key(enum feature feature)
{
    return names[feature].key;
}

const char *feature_gate(enum feature feature)
{
    return names[feature].gate;
}

/* ---- which implementation answers, and with which habits ---- */

/* The features that decide about the variant; the others live outside of the allocator. */
#define BINDING (BIT(FEATURE_BINDING_CONDITIONS) | BIT(FEATURE_DEVICE_STATUS))
#define BASIC                                                                                                          \
    (BIT(FEATURE_ADMIN_ACCESS) | BIT(FEATURE_PRIORITIZED_LIST) | BIT(FEATURE_PARTITIONABLE_DEVICES) |                  \
     BIT(FEATURE_DEVICE_TAINTS))
#define DECIDING                                                                                                       \
    (BASIC | BINDING | BIT(FEATURE_CONSUMABLE_CAPACITY) | BIT(FEATURE_FRACTIONAL_CAPACITY_RANGE) |                     \
     BIT(FEATURE_LIST_ATTRIBUTES) | BIT(FEATURE_COMPATIBILITY_GROUPS) | BIT(FEATURE_DERIVED_ATTRIBUTES) |              \
     BIT(FEATURE_OPTIONAL_NODE_OPERATIONS))

/* Per release what each variant supports; 0: the variant is never chosen (semantics, section 0.2). */
static const uint32_t supports[][3] = {
    {0, BASIC, BASIC | BINDING | BIT(FEATURE_CONSUMABLE_CAPACITY)},
    {0, BASIC, BASIC | BINDING | BIT(FEATURE_CONSUMABLE_CAPACITY)},
    {BASIC, BASIC | BINDING | BIT(FEATURE_CONSUMABLE_CAPACITY),
     BASIC | BINDING | BIT(FEATURE_CONSUMABLE_CAPACITY) | BIT(FEATURE_LIST_ATTRIBUTES)},
    {BASIC, BASIC | BINDING | BIT(FEATURE_CONSUMABLE_CAPACITY) | BIT(FEATURE_FRACTIONAL_CAPACITY_RANGE), DECIDING},
};

/* Binding conditions count only together with the device status (one entry since 1.35). */
static uint32_t deciding(const struct features *features)
{
    uint32_t on = features->on & DECIDING;

    if ((on & BINDING) != BINDING)
        on &= ~(uint32_t)BINDING;
    return on;
}

static enum variant variant_of(const struct features *features)
{
    const uint32_t *rows = supports[features->release - 34];
    uint32_t on = deciding(features);

    for (int variant = 0; variant < 3; variant++)
        if (rows[variant] && !(on & ~rows[variant]))
            return (enum variant)variant;
    return VARIANT_NONE;
}

struct behaviour behaviour_of(const struct features *features)
{
    int release = features->release;
    enum variant variant = variant_of(features);
    bool stable = variant == VARIANT_STABLE;
    bool experimental = variant == VARIANT_EXPERIMENTAL;

    return (struct behaviour){
        .variant = variant,
        .binding_and_status = (features->on & BINDING) == BINDING,
        .permutations = stable || release <= 35,
        .uses_incomplete = release <= 34,
        .counters_in_slice = release <= 34,
        .counter_slices_everywhere = stable || release <= 36,
        .leaks_counters = release <= 36,
        .mixes_pool_names = release == 35 || release == 36,
        .distinct_per_request = release == 35 || release == 36,
        .distinct_by_identity = release <= 34,
        .alternatives_mixed_up = release <= 35,
        .shares_count = release >= 36,
        .bare_shares_count = release >= 37,
        .shares_skip_counters = release >= 36 || (release == 35 && experimental),
        .all_skips_used_up = release <= 36,
        .capacity_errors_skip = release <= 36,
        .steps_overflow = release <= 36,
        .rule_without_selector_taints = release <= 36,
        .any_taint_blocks = release <= 34,
        .copies_tolerations = release >= 35,
        .config_per_request = release <= 36,
        .config_clears = release >= 37,
        .binds_to_node = !stable && (release >= 36 || experimental),
        .knows_distinct = !stable && (release >= 36 || experimental),
    };
}
