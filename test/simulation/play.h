/* test/simulation/play.h - a story being played on a stage, and what the rules remember of it. */
#ifndef QUEUED_TEST_PLAY_H
#define QUEUED_TEST_PLAY_H

#include <stdint.h>

#include <jansson.h>

#include "test/simulation/story.h"
#include "test/store/faulty_vfs.h"
#include "test/support/stage.h"

/* What came of it; in memory that outlives the process which plays. */
struct verdict {
    bool is_over;  /* played to its end */
    char rule[64]; /* that was broken, or "" */
    char words[900];
    size_t step; /* being played, for whoever died */
    uint64_t n_events, n_jobs, n_runs, n_crashes, n_undecided, n_unsteerable, n_drift;
};

/* A job as its events tell, told apart from what the server says of it. */
struct known_job {
    int64_t id;
    const struct step *step; /* its submission */
    bool is_acknowledged;
    bool is_dropped; /* its time to live is over */
    char state[16];
    int64_t n_admitted, launched_ms, running_ms, left_ms, ended_ms;
    bool has_launched;    /* the present attempt */
    int64_t half_open_ms; /* since when some of its gates are off; 0: none or all */
    int64_t n_drift;
    bool is_new_here; /* admitted at this instant */
};

struct play {
    const struct story *story;
    struct verdict *verdict;
    struct faults *faults; /* of the store's file system */
    struct stage stage;
    struct known_job *jobs;
    size_t n_jobs, cap_jobs;
    int64_t last_event;
    json_t *views;   /* all jobs as the API shows them at this instant: array */
    json_t *foreign; /* "Kind/ns/name" of what others put there */
    json_t *strays;  /* "Kind/ns/name" -> since when nobody's */
    bool had_late_calls, had_slice_changes, had_others;
    bool is_calm; /* all faults are over, long ago */
    /* What the allocator is known to fall short of is a broken rule, too (README.md). */
    bool is_strict;
    struct buf log;
};

/* Play it to its end; the log is what must be equal for equal stories. */
void play_story(const struct story *story, struct verdict *verdict, struct faults *faults, struct buf *out_log);

/* A rule does not hold: note it and end the process. */
void rule_broken(struct play *play, const char *rule, const char *fmt, ...) PRINTF_LIKE(3, 4) __attribute__((noreturn));

/* Rules (rules.c): at every instant, and after it all. */
void rules_at_rest(struct play *play);
void rules_at_end(struct play *play);
/* rules_devices.c, rules_quota.c, rules_waiting.c */
void rule_devices_are_given_once(struct play *play);
void rule_constraints_hold(struct play *play);
void rule_charges_are_what_is_held(struct play *play);
void rule_quota_is_kept(struct play *play);
void rule_who_waits_has_a_reason(struct play *play);

/* ---- looking ---- */

static inline int64_t play_now_ms(const struct play *play)
{
    return clock_now_ms(play->stage.clock);
}
struct known_job *play_job(struct play *play, int64_t id); /* NULL: none */
struct known_job *play_job_named(struct play *play, const char *name);
const json_t *play_view(const struct play *play, int64_t id); /* NULL: none */
bool view_is_live(const json_t *view);
bool state_name_is_final(const char *state);
/* A text below an object, or "". */
const char *text_at(const json_t *object, const char *a, const char *b, const char *c);
/* The number in the label of an object of ours; 0: it has none. */
int64_t label_number(const json_t *object, const char *label);
bool is_kind(const json_t *object, const char *kind);
const json_t *allocation_results(const json_t *claim);

/* ---- steps (steps.c) ---- */

extern const struct step_kind step_kinds[];
extern const size_t n_step_kinds;
/* Undo what steps did to the world: all nodes up, all devices well, nobody else there. */
void play_heal(struct play *play);

#endif
