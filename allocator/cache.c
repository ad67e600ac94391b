#include "allocator/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/mentions.h"

#include "allocator/base/banned.h"

#define MAX_EXPRESSIONS 4096
#define MAX_RESULTS     65536 /* per expression */
#define MAX_MEMOS       128
#define MAX_ALIKE       8192 /* per memo */

/* ---- a hash table from digests to pointers ---- */

struct entry {
    struct digest key;
    void *value;
};
struct table {
    struct entry *entries; /* open addressing; value NULL is free */
    size_t size, n;
};

static struct entry *table_place(const struct table *table, struct digest key)
{
    size_t at = key.lo & (table->size - 1);

    while (table->entries[at].value && !digest_eq(table->entries[at].key, key))
        at = (at + 1) & (table->size - 1);
    return &table->entries[at];
}

static void *table_find(const struct table *table, struct digest key)
{
    return table->size ? table_place(table, key)->value : NULL;
}

static void table_put(struct table *table, struct digest key, void *value)
{
    struct table old = *table;

    if (table->n * 2 >= table->size) {
        table->size = table->size ? table->size * 2 : 64;
        table->entries = mem_array(struct entry, table->size);
        for (size_t i = 0; i < old.size; i++)
            if (old.entries[i].value)
                *table_place(table, old.entries[i].key) = old.entries[i];
        free(old.entries);
    }
    *table_place(table, key) = (struct entry){key, value};
    table->n++;
}

static void table_clear(struct table *table, void (*release)(void *value))
{
    for (size_t i = 0; i < table->size; i++)
        if (table->entries[i].value)
            release(table->entries[i].value);
    free(table->entries);
    *table = (struct table){0};
}

/* ---- how often it helps ---- */

/* Outlives the cache, as expressions and memos do that somebody still holds. */
struct tally {
    atomic_uint refs;
    atomic_uint_least64_t asked[CACHE_KINDS], found[CACHE_KINDS];
};

static struct tally *tally_ref(struct tally *tally)
{
    atomic_fetch_add_explicit(&tally->refs, 1, memory_order_relaxed);
    return tally;
}

static void tally_unref(struct tally *tally)
{
    if (atomic_fetch_sub_explicit(&tally->refs, 1, memory_order_acq_rel) == 1)
        free(tally);
}

static void count(struct tally *tally, enum cache_kind kind, bool is_found)
{
    atomic_fetch_add_explicit(&tally->asked[kind], 1, memory_order_relaxed);
    if (is_found)
        atomic_fetch_add_explicit(&tally->found[kind], 1, memory_order_relaxed);
}

/* ---- the cache ---- */

struct cache {
    atomic_uint refs;
    struct tally *tally;
    pthread_mutex_t lock; /* of the tables; each value has its own */
    struct features features;
    struct symbols *symbols;
    atomic_uint_least64_t stamp;
    struct table expressions, memos, extras;
    void (*unref_extra)(void *extra);
};

struct cache *cache_new(const struct features *features)
{
    struct cache *cache = mem_new(struct cache);

    atomic_init(&cache->refs, 1);
    atomic_init(&cache->stamp, 1);
    INVARIANT(pthread_mutex_init(&cache->lock, NULL) == 0);
    cache->features = *features;
    cache->symbols = symbols_new();
    cache->tally = tally_ref(mem_new(struct tally));
    return cache;
}

struct cache *cache_ref(struct cache *cache)
{
    atomic_fetch_add_explicit(&cache->refs, 1, memory_order_relaxed);
    return cache;
}

static void release_expression(void *value)
{
    expression_unref(value);
}

static void release_memo(void *value)
{
    memo_unref(value);
}

void cache_unref(struct cache *cache)
{
    if (!cache || atomic_fetch_sub_explicit(&cache->refs, 1, memory_order_acq_rel) != 1)
        return;
    table_clear(&cache->expressions, release_expression);
    table_clear(&cache->memos, release_memo);
    table_clear(&cache->extras, cache->unref_extra);
    symbols_unref(cache->symbols);
    tally_unref(cache->tally);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

void cache_count(const struct cache *cache, enum cache_kind kind, uint64_t *out_asked, uint64_t *out_found)
{
    *out_asked = atomic_load_explicit(&cache->tally->asked[kind], memory_order_relaxed);
    *out_found = atomic_load_explicit(&cache->tally->found[kind], memory_order_relaxed);
}

uint64_t cache_stamp(struct cache *cache)
{
    return atomic_fetch_add_explicit(&cache->stamp, 1, memory_order_relaxed);
}

struct symbols *cache_symbols(struct cache *cache)
{
    return cache->symbols;
}

struct cel_options cache_cel_options(const struct cache *cache)
{
    return (struct cel_options){.release = cache->features.release,
                                .list_attributes = feature_on(&cache->features, FEATURE_LIST_ATTRIBUTES)};
}

/* ---- expressions ---- */

struct outcome {
    enum selectable selects;
    char message[]; /* of an error */
};

struct expression {
    atomic_uint refs;
    pthread_mutex_t lock;
    struct cel_expr *compiled; /* NULL: does not compile */
    char *problem;
    struct cel_options options;
    struct mentions mentions;
    struct table outcomes; /* by projection */
    struct tally *tally;
};

static void release_outcome(void *value)
{
    free(value);
}

void expression_unref(struct expression *expression)
{
    if (!expression || atomic_fetch_sub_explicit(&expression->refs, 1, memory_order_acq_rel) != 1)
        return;
    cel_expr_free(expression->compiled);
    free(expression->problem);
    table_clear(&expression->outcomes, release_outcome);
    tally_unref(expression->tally);
    pthread_mutex_destroy(&expression->lock);
    free(expression);
}

static struct expression *expression_new(struct cache *cache, const char *text)
{
    struct expression *expression = mem_new(struct expression);
    struct cel_problem problem = {0};

    atomic_init(&expression->refs, 1);
    expression->tally = tally_ref(cache->tally);
    INVARIANT(pthread_mutex_init(&expression->lock, NULL) == 0);
    expression->options = cache_cel_options(cache);
    if (cel_compile(str_of(text), &expression->options, &expression->compiled, &problem) < 0) {
        expression->compiled = NULL;
        expression->problem = mem_strdup(problem.text);
    }
    mentions_scan(text, cache->symbols, &expression->mentions);
    return expression;
}

struct expression *cache_expression(struct cache *cache, const char *text)
{
    struct digest key = {0};
    struct expression *expression;

    digest_text(&key, text, strlen(text));
    pthread_mutex_lock(&cache->lock);
    expression = table_find(&cache->expressions, key);
    count(cache->tally, CACHE_EXPRESSIONS, expression != NULL);
    if (!expression) {
        if (cache->expressions.n >= MAX_EXPRESSIONS)
            table_clear(&cache->expressions, release_expression);
        expression = expression_new(cache, text);
        table_put(&cache->expressions, key, expression);
    }
    atomic_fetch_add_explicit(&expression->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&cache->lock);
    return expression;
}

static const union cel_attribute_value *scalar_value(const struct attribute *attribute, struct arena *arena)
{
    union cel_attribute_value *value = arena_new(arena, union cel_attribute_value);

    if (attribute->kind == CEL_ATTR_INT)
        value->i = attribute->i;
    else if (attribute->kind == CEL_ATTR_BOOL)
        value->b = attribute->b;
    else
        value->s = attribute->s;
    return value;
}

const struct cel_device *device_prepare(const char *driver, const struct device *device,
                                        const struct cel_options *options, struct arena *arena)
{
    struct cel_attribute *attributes = arena_array(arena, struct cel_attribute, device->n_attributes + 1u);
    struct cel_capacity *capacities = arena_array(arena, struct cel_capacity, device->n_capacities + 1u);
    struct cel_device_spec spec = {
        .driver = str_of(driver),
        .attributes = attributes,
        .n_attributes = device->n_attributes,
        .capacities = capacities,
        .n_capacities = device->n_capacities,
        .allow_multiple_allocations = device->multi,
    };

    for (size_t i = 0; i < device->n_attributes; i++) {
        const struct attribute *a = &device->attributes[i];

        attributes[i] = (struct cel_attribute){.name = str_of(a->key),
                                               .kind = a->kind,
                                               .is_list = a->is_list,
                                               .n_values = a->n_values,
                                               .values = a->is_list ? a->list : scalar_value(a, arena)};
    }
    for (size_t i = 0; i < device->n_capacities; i++)
        capacities[i] = (struct cel_capacity){str_of(device->capacities[i].key), device->capacities[i].value};
    return cel_device_prepare(&spec, options, arena);
}

enum selectable expression_evaluate(const struct expression *expression, const char *driver,
                                    const struct device *device, struct arena *arena, const char **out_message)
{
    static const enum selectable selects[] = {
        [CEL_FALSE] = SELECT_NO, [CEL_TRUE] = SELECT_YES, [CEL_ERROR] = SELECT_ERROR};
    struct cel_result result;

    if (out_message)
        *out_message = expression->problem;
    if (!expression->compiled)
        return SELECT_ERROR;
    result = cel_evaluate(expression->compiled, device_prepare(driver, device, &expression->options, arena), arena);
    if (out_message)
        *out_message = result.message;
    return selects[result.outcome];
}

static void remember(struct expression *expression, struct digest key, enum selectable selects, const char *message)
{
    size_t len = message ? strlen(message) : 0;
    struct outcome *outcome = mem_zalloc(1, sizeof(*outcome) + len + 1);

    outcome->selects = selects;
    if (len)
        memcpy(outcome->message, message, len);
    pthread_mutex_lock(&expression->lock);
    if (expression->outcomes.n >= MAX_RESULTS)
        table_clear(&expression->outcomes, release_outcome);
    if (table_find(&expression->outcomes, key))
        free(outcome); /* another thread was faster */
    else
        table_put(&expression->outcomes, key, outcome);
    pthread_mutex_unlock(&expression->lock);
}

static bool recall(struct expression *expression, struct digest key, struct arena *arena, enum selectable *out,
                   const char **out_message)
{
    const struct outcome *outcome;

    pthread_mutex_lock(&expression->lock);
    outcome = table_find(&expression->outcomes, key);
    if (outcome) {
        *out = outcome->selects;
        if (out_message)
            *out_message = outcome->selects == SELECT_ERROR ? arena_strdup(arena, outcome->message) : NULL;
    }
    pthread_mutex_unlock(&expression->lock);
    return outcome != NULL;
}

enum selectable expression_selects(struct expression *expression, const char *driver, const struct device *device,
                                   struct arena *arena, const char **out_message)
{
    struct digest key = mentions_project(&expression->mentions, driver, device);
    struct arena_mark mark;
    const char *message;
    enum selectable selects;
    bool is_known = recall(expression, key, arena, &selects, out_message);

    count(expression->tally, CACHE_RESULTS, is_known);
    if (is_known)
        return selects;
    mark = arena_mark(arena);
    selects = expression_evaluate(expression, driver, device, arena, &message);
    remember(expression, key, selects, message);
    if (selects != SELECT_ERROR)
        arena_rewind(arena, mark);
    if (out_message)
        *out_message = message;
    return selects;
}

/* ---- memos ---- */

struct memo_place {
    struct digest state;
    struct memo_answer *answer;
};
struct memo {
    atomic_uint refs;
    struct tally *tally;
    pthread_mutex_t lock;
    struct memo_place *places; /* by node slot */
    size_t n_places;
    struct table alike;
};

static void release_answer(void *value)
{
    free(value);
}

void memo_unref(struct memo *memo)
{
    if (!memo || atomic_fetch_sub_explicit(&memo->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < memo->n_places; i++)
        free(memo->places[i].answer);
    free(memo->places);
    table_clear(&memo->alike, release_answer);
    tally_unref(memo->tally);
    pthread_mutex_destroy(&memo->lock);
    free(memo);
}

struct memo *cache_memo(struct cache *cache, struct digest question)
{
    struct memo *memo;

    pthread_mutex_lock(&cache->lock);
    memo = table_find(&cache->memos, question);
    if (!memo) {
        if (cache->memos.n >= MAX_MEMOS)
            table_clear(&cache->memos, release_memo);
        memo = mem_new(struct memo);
        atomic_init(&memo->refs, 1);
        memo->tally = tally_ref(cache->tally);
        INVARIANT(pthread_mutex_init(&memo->lock, NULL) == 0);
        table_put(&cache->memos, question, memo);
    }
    atomic_fetch_add_explicit(&memo->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&cache->lock);
    return memo;
}

void *cache_extra(struct cache *cache, struct digest question, size_t most, void *(*make)(void *ctx), void *ctx,
                  void *(*ref)(void *extra), void (*unref)(void *extra))
{
    void *extra;

    pthread_mutex_lock(&cache->lock);
    cache->unref_extra = unref;
    extra = table_find(&cache->extras, question);
    if (!extra) {
        if (cache->extras.n >= most)
            table_clear(&cache->extras, unref);
        extra = make(ctx);
        table_put(&cache->extras, question, extra);
    }
    extra = ref(extra);
    pthread_mutex_unlock(&cache->lock);
    return extra;
}

static struct memo_answer *answer_copy(const struct memo_answer *answer)
{
    struct memo_answer *copy = mem_zalloc(1, sizeof(*copy) + answer->n_picks * sizeof(*answer->picks));
    struct memo_pick *picks = (struct memo_pick *)(copy + 1);

    *copy = *answer;
    if (answer->n_picks)
        memcpy(picks, answer->picks, answer->n_picks * sizeof(*picks));
    copy->picks = picks;
    return copy;
}

static void answer_out(const struct memo_answer *answer, struct arena *arena, struct memo_answer *out)
{
    struct memo_pick *picks = arena_array(arena, struct memo_pick, answer->n_picks + 1);

    *out = *answer;
    if (answer->n_picks)
        memcpy(picks, answer->picks, answer->n_picks * sizeof(*picks));
    out->picks = picks;
}

bool memo_find(struct memo *memo, uint32_t slot, struct digest state, struct arena *arena, struct memo_answer *out)
{
    bool found;

    pthread_mutex_lock(&memo->lock);
    found = slot < memo->n_places && memo->places[slot].answer && digest_eq(memo->places[slot].state, state);
    if (found)
        answer_out(memo->places[slot].answer, arena, out);
    pthread_mutex_unlock(&memo->lock);
    count(memo->tally, CACHE_ANSWERS, found);
    return found;
}

static void places_grow(struct memo *memo, size_t slot)
{
    size_t n = memo->n_places ? memo->n_places : 64;

    while (n <= slot)
        n *= 2;
    memo->places = mem_resize(memo->places, n, sizeof(*memo->places));
    memset(memo->places + memo->n_places, 0, (n - memo->n_places) * sizeof(*memo->places));
    memo->n_places = n;
}

void memo_put(struct memo *memo, uint32_t slot, struct digest state, const struct memo_answer *answer)
{
    struct memo_answer *copy = answer_copy(answer);

    pthread_mutex_lock(&memo->lock);
    if (slot >= memo->n_places)
        places_grow(memo, slot);
    free(memo->places[slot].answer);
    memo->places[slot] = (struct memo_place){state, copy};
    pthread_mutex_unlock(&memo->lock);
}

bool memo_find_alike(struct memo *memo, struct digest signature, struct arena *arena, struct memo_answer *out)
{
    const struct memo_answer *answer;

    pthread_mutex_lock(&memo->lock);
    answer = table_find(&memo->alike, signature);
    if (answer)
        answer_out(answer, arena, out);
    pthread_mutex_unlock(&memo->lock);
    return answer != NULL;
}

void memo_put_alike(struct memo *memo, struct digest signature, const struct memo_answer *answer)
{
    pthread_mutex_lock(&memo->lock);
    if (memo->alike.n >= MAX_ALIKE)
        table_clear(&memo->alike, release_answer);
    if (!table_find(&memo->alike, signature))
        table_put(&memo->alike, signature, answer_copy(answer));
    pthread_mutex_unlock(&memo->lock);
}
