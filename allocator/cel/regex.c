#include "allocator/cel/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "allocator/base/error.h"
#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/cel/regex_internal.h"

#include "allocator/base/banned.h"

#define NEST_LIMIT     1000  /* parentheses of the translation: two for each group and its repetition */
#define HEAP_LIMIT_KIB 20480 /* of one match */
#define DFA_MAX_TEXT   4096  /* bytes that the other algorithm is given */
#define DFA_WORKSPACE  4096

struct regex {
    pcre2_code *finder;   /* matches the text that Go matches */
    pcre2_code *searcher; /* matches where Go matches; the same object unless that can be had for less */
    pcre2_match_context *limits;
    /* The working memory of one match, parked here between matches. Whoever matches takes it and leaves NULL; whoever
     * finds NULL makes one, and frees it when another was parked meanwhile. */
    _Atomic(pcre2_match_data *) *parked;
};

static pcre2_compile_context *compile_context(void)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);

    INVARIANT(context != NULL);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, NEST_LIMIT);
    pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALLOW_SURROGATE_ESCAPES);
    return context;
}

/* Our translation is valid; what PCRE2 still refuses is too large, or a script that its tables do not have. */
static int compile(const struct buf *translated, pcre2_code **out, struct error *err)
{
    pcre2_compile_context *context = compile_context();
    PCRE2_UCHAR why[256];
    PCRE2_SIZE offset;
    int number;

    *out = pcre2_compile((PCRE2_SPTR)buf_str(translated), translated->len,
                         PCRE2_UTF | PCRE2_DOTALL | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE, &number, &offset,
                         context);
    pcre2_compile_context_free(context);
    if (*out)
        return 0;
    pcre2_get_error_message(number, why, sizeof(why));
    return error_set(err, ERR_LIMIT, "error parsing regexp: expression too large: %s", (const char *)why);
}

static int compile_both(struct str pattern, struct regex *regex, struct error *err)
{
    BUF exact = {0};
    BUF plain = {0};
    bool differ, ignored;

    if (regex_translate_for(pattern, true, &exact, &differ, err) < 0 || compile(&exact, &regex->finder, err) < 0)
        return -1;
    regex->searcher = regex->finder;
    if (!differ)
        return 0;
    regex->searcher = NULL;
    if (regex_translate_for(pattern, false, &plain, &ignored, err) < 0)
        return -1;
    return compile(&plain, &regex->searcher, err);
}

int regex_compile(struct str pattern, struct regex **out, struct error *err)
{
    CLEANUP(regex) *regex = mem_new(struct regex);

    if (compile_both(pattern, regex, err) < 0)
        return -1;
    regex->limits = pcre2_match_context_create(NULL);
    INVARIANT(regex->limits != NULL);
    pcre2_set_match_limit(regex->limits, REGEX_MATCH_LIMIT);
    pcre2_set_heap_limit(regex->limits, HEAP_LIMIT_KIB);
    regex->parked = mem_zalloc(1, sizeof(*regex->parked));
    *out = TAKE(regex);
    return 0;
}

void regex_free(struct regex *regex)
{
    if (!regex)
        return;
    if (regex->parked)
        pcre2_match_data_free(atomic_load(regex->parked));
    free(regex->parked);
    pcre2_match_context_free(regex->limits);
    if (regex->searcher != regex->finder)
        pcre2_code_free(regex->searcher);
    pcre2_code_free(regex->finder);
    free(regex);
}

static pcre2_match_data *take_data(const struct regex *regex)
{
    pcre2_match_data *data = atomic_exchange(regex->parked, NULL);

    if (!data)
        data = pcre2_match_data_create(1, NULL);
    INVARIANT(data != NULL);
    return data;
}

static void park_data(const struct regex *regex, pcre2_match_data *data)
{
    pcre2_match_data_free(atomic_exchange(regex->parked, data));
}

static int refuse(int status, struct error *err)
{
    PCRE2_UCHAR why[256];

    if (status <= PCRE2_ERROR_UTF8_ERR1 && status >= PCRE2_ERROR_UTF8_ERR21)
        return error_set(err, ERR_INVALID, "a text to be matched is no valid UTF-8");
    pcre2_get_error_message(status, why, sizeof(why));
    return error_set(err, ERR_LIMIT, "matching a regular expression took too long: %s", (const char *)why);
}

/* The first match from byte `at` on: 1 and the match, 0 for none, else PCRE2's error. */
static int match(const struct regex *regex, const pcre2_code *code, struct str text, size_t at, uint32_t options,
                 struct regex_match *out)
{
    pcre2_match_data *data = take_data(regex);
    PCRE2_SPTR subject = (PCRE2_SPTR)(text.ptr ? text.ptr : "");
    int status = pcre2_match(code, subject, text.len, at, options, data, regex->limits);

    if (status >= 0) { /* 0 when there are captures, for which there is no room here */
        const PCRE2_SIZE *range = pcre2_get_ovector_pointer(data);

        *out = (struct regex_match){range[0], range[1]};
    }
    park_data(regex, data);
    return status >= 0 ? 1 : status == PCRE2_ERROR_NOMATCH ? 0 : status;
}

/* Whether there is a match at all, by the algorithm that keeps all possibilities at once and never backtracks. */
static int search_breadth_first(const struct regex *regex, struct str text)
{
    pcre2_match_data *data = take_data(regex);
    int workspace[DFA_WORKSPACE];
    int status = pcre2_dfa_match(regex->searcher, (PCRE2_SPTR)text.ptr, text.len, 0, PCRE2_DFA_SHORTEST, data,
                                 regex->limits, workspace, DFA_WORKSPACE);

    park_data(regex, data);
    return status >= 0 ? 1 : status == PCRE2_ERROR_NOMATCH ? 0 : status;
}

int regex_search(const struct regex *regex, struct str text, bool *out_found, struct error *err)
{
    struct regex_match ignored;
    int status = match(regex, regex->searcher, text, 0, 0, &ignored);

    if (status == PCRE2_ERROR_MATCHLIMIT && text.len <= DFA_MAX_TEXT)
        status = search_breadth_first(regex, text);
    if (status < 0)
        return refuse(status, err);
    *out_found = status == 1;
    return 0;
}

struct regex_iterator regex_iterate(const struct regex *regex, struct str text)
{
    return (struct regex_iterator){.regex = regex, .text = text, .last_end = SIZE_MAX};
}

/* The byte behind the code point at `at`; one behind the end at the end. */
static size_t step_over(struct str text, size_t at)
{
    at++;
    while (at < text.len && ((unsigned char)text.ptr[at] & 0xC0) == 0x80)
        at++;
    return at;
}

int regex_next(struct regex_iterator *it, struct regex_match *out, struct error *err)
{
    while (it->at <= it->text.len) {
        struct regex_match found;
        bool counts;
        int status =
            match(it->regex, it->regex->finder, it->text, it->at, it->is_checked ? PCRE2_NO_UTF_CHECK : 0, &found);

        if (status < 0)
            return refuse(status, err);
        it->is_checked = true;
        if (status == 0)
            break;
        counts = found.end != it->at || found.start != it->last_end;
        it->at = found.end == it->at ? step_over(it->text, it->at) : found.end;
        it->last_end = found.end;
        if (counts) {
            *out = found;
            return 1;
        }
    }
    it->at = it->text.len + 1;
    return 0;
}
