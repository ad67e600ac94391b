/* allocator/cache.h - internal: what all snapshots of one builder share and learn.
 *
 * Compiled expressions, the results of expressions per distinct set of attributes they read, and answers per question
 * and node. Everything here is only remembered, never decided: with an empty cache every answer is the same. Safe for
 * several threads; bounded in size. */
#ifndef QUEUED_ALLOCATOR_CACHE_H
#define QUEUED_ALLOCATOR_CACHE_H

#include "allocator/internal.h"

struct cache;
struct cache *cache_new(const struct features *features);
struct cache *cache_ref(struct cache *cache);
void cache_unref(struct cache *cache);
/* A number that was never given out before. */
uint64_t cache_stamp(struct cache *cache);
struct symbols *cache_symbols(struct cache *cache); /* borrowed */

/* What is looked up here: compiled expressions by text, their results by device attributes, answers by node. */
enum cache_kind { CACHE_EXPRESSIONS, CACHE_RESULTS, CACHE_ANSWERS, CACHE_KINDS };
/* How often it was asked for since the cache was made, and how often it was there. */
void cache_count(const struct cache *cache, enum cache_kind kind, uint64_t *out_asked, uint64_t *out_found);

/* ---- expressions ---- */

/* A compiled expression with its results; one reference for the caller. Never NULL: a text that does not compile gives
 * an expression whose every evaluation is an error. */
struct expression;
struct expression *cache_expression(struct cache *cache, const char *text);
void expression_unref(struct expression *expression);
/* Evaluate on a device, or remember. *out_message (may be NULL) gets the reason of an error, in the arena. */
enum selectable expression_selects(struct expression *expression, const char *driver, const struct device *device,
                                   struct arena *arena, const char **out_message);
/* The same without remembering anything: the baseline. */
enum selectable expression_evaluate(const struct expression *expression, const char *driver,
                                    const struct device *device, struct arena *arena, const char **out_message);
/* Attributes as the expression library wants them. */
struct cel_options cache_cel_options(const struct cache *cache);
const struct cel_device *device_prepare(const char *driver, const struct device *device,
                                        const struct cel_options *options, struct arena *arena);

/* ---- answers ---- */

/* Answers to one question: by node state, and by signature for nodes that look alike. */
struct memo;
struct memo *cache_memo(struct cache *cache, struct digest question);
void memo_unref(struct memo *memo);

/* A remembered choice: a pick with the offer's position on the bench, and the device itself. Small, so that an answer
 * known already touches little memory. */
struct memo_pick {
    struct pick pick;
    uint32_t index;     /* of the device in the pool */
    const char *device; /* its name */
    const struct slice *slice;
    const struct pool *pool;
    bool is_share, pins; /* pins: the allocation is usable on this node only */
    bool is_bare;        /* nothing else of the device shows in the result */
};
struct memo_answer {
    enum predict_verdict verdict; /* ALLOCATED or NO_FIT; others are not remembered */
    uint32_t n_picks;
    uint64_t steps;
    const struct memo_pick *picks;
};
/* By the node's slot and the digest of its state. The picks are copied into the arena. */
bool memo_find(struct memo *memo, uint32_t slot, struct digest state, struct arena *arena, struct memo_answer *out);
void memo_put(struct memo *memo, uint32_t slot, struct digest state, const struct memo_answer *answer);
/* By signature: only the positions of the picks mean something. */
bool memo_find_alike(struct memo *memo, struct digest signature, struct arena *arena, struct memo_answer *out);
void memo_put_alike(struct memo *memo, struct digest signature, const struct memo_answer *answer);

/* ---- what others remember ---- */

/* Whatever else is remembered per question: found, or made with make(ctx). `ref` counts one more reference and returns
 * its argument, `unref` gives one back. The result carries one reference for the caller. When there are `most` of them
 * all are forgotten. All callers pass the same functions. */
void *cache_extra(struct cache *cache, struct digest question, size_t most, void *(*make)(void *ctx), void *ctx,
                  void *(*ref)(void *extra), void (*unref)(void *extra));

#endif
