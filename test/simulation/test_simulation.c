/* Thousands of stories (see story.h), each with the rules of rules.c checked at every instant. A story is played in a
 * process of its own kind, so that a broken invariant, a sanitizer's find or an endless loop is a result too; the story
 * is then made shorter as long as it still breaks the same rule, and printed. The room's README tells the environment
 * variables. */
#include "test/support/cmocka.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/simulation/play.h"

#define DEFAULT_SEEDS   40
#define TWICE_EVERY     4   /* of the stories one is played twice, and the logs are compared */
#define STORY_SECONDS   120 /* after which it counts as endless */
#define MAX_SHRINK_RUNS 400

/* Shared with the process that plays. */
struct board {
    struct verdict verdict;
    uint64_t seed; /* being played */
    struct faults faults;
};

struct run {
    struct board *board;
    bool is_twice;
    const size_t *keep; /* numbers of the steps, or NULL: all */
    size_t n_keep;
};

/* ---- in the process that plays ---- */

static void tell_difference(const char *a, const char *b, char out[900])
{
    size_t same = 0, line = 0;

    for (; a[same] && a[same] == b[same]; same++)
        if (a[same] == '\n')
            line = same + 1;
    snprintf(out, 900, "first: %.300s\nsecond: %.300s", a + line, b + line);
}

static void play_seed(struct board *board, uint64_t seed, const struct run *run)
{
    struct buf logs[2] = {{0}, {0}};

    for (int i = 0; i < 1 + run->is_twice; i++) {
        struct story story;

        story_make(&story, seed);
        if (run->keep)
            story_keep(&story, run->keep, run->n_keep);
        play_story(&story, &board->verdict, &board->faults, &logs[i]);
        story_release(&story);
    }
    if (run->is_twice && strcmp(buf_str(&logs[0]), buf_str(&logs[1])) != 0) {
        snprintf(board->verdict.rule, sizeof(board->verdict.rule), "equal stories give equal logs");
        tell_difference(buf_str(&logs[0]), buf_str(&logs[1]), board->verdict.words);
        _exit(1);
    }
    if (getenv("SIM_TRACE"))
        fprintf(stderr, "%s", buf_str(&logs[0]));
    buf_release(&logs[0]);
    buf_release(&logs[1]);
}

/* Seeds first .. last in one process, which ends at the first that breaks a rule. */
static void play_seeds(struct board *board, uint64_t first, uint64_t last, const struct run *run)
{
    setenv("CMOCKA_TEST_ABORT", "1", 1); /* a check of the stage that fails ends the process, too */
    faulty_vfs_install(&board->faults);
    for (uint64_t seed = first; seed <= last; seed++) {
        struct run this = *run;

        board->seed = seed;
        this.is_twice |= seed % TWICE_EVERY == 0;
        alarm(STORY_SECONDS);
        play_seed(board, seed, &this);
        alarm(0);
    }
    board->verdict.is_over = true;
}

/* ---- around it ---- */

static void name_death(struct verdict *verdict, int status)
{
    if (verdict->rule[0] || verdict->is_over)
        return;
    snprintf(verdict->words, sizeof(verdict->words), "in step %zu", verdict->step);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(verdict->rule, sizeof(verdict->rule), "a story ends");
    else
        snprintf(verdict->rule, sizeof(verdict->rule), "the server does not die");
}

/* Returns whether all held. */
static bool run_seeds(uint64_t first, uint64_t last, const struct run *run, bool is_quiet)
{
    struct board *board = run->board;
    pid_t child;
    int status;

    board->verdict.is_over = false;
    board->verdict.rule[0] = board->verdict.words[0] = '\0';
    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (is_quiet && !freopen("/dev/null", "w", stderr))
            _exit(2);
        play_seeds(board, first, last, run);
        exit(0); /* not _exit: leaks are looked for */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (board->verdict.is_over)
        snprintf(board->verdict.rule, sizeof(board->verdict.rule), "nothing leaks");
    name_death(&board->verdict, status);
    return false;
}

/* ---- shorter ---- */

/* Leave out ever smaller parts as long as the same rule breaks. */
static size_t shrink(const struct run *run, uint64_t seed, const char *rule, size_t *keep, size_t n)
{
    size_t *less = mem_array(size_t, n + 1), n_runs = 0;

    for (size_t part = n / 2; part > 0; part = (part < n ? part : n) / 2) {
        for (size_t at = 0; at < n && n_runs < MAX_SHRINK_RUNS;) {
            size_t out = part < n - at ? part : n - at;
            struct run shorter = {.board = run->board, .is_twice = run->is_twice, .keep = less, .n_keep = n - out};

            memcpy(less, keep, at * sizeof(*keep));
            memcpy(less + at, keep + at + out, (n - at - out) * sizeof(*keep));
            n_runs++;
            if (!run_seeds(seed, seed, &shorter, true) && strcmp(run->board->verdict.rule, rule) == 0) {
                n -= out;
                memcpy(keep, less, n * sizeof(*keep));
            } else {
                at += out;
            }
        }
    }
    free(less);
    return n;
}

static void print_story(const struct run *run, uint64_t seed, const size_t *keep, size_t n)
{
    struct story story;
    BUF text = {0};

    story_make(&story, seed);
    story_keep(&story, keep, n);
    story_print(&story, &text);
    fprintf(stderr, "%s", buf_str(&text));
    fprintf(stderr, "seed %llu breaks the rule \"%s\" %s\n", (unsigned long long)seed, run->board->verdict.rule,
            run->board->verdict.words);
    fprintf(stderr, "again with: SIM_SEED=%llu SIM_STEPS=", (unsigned long long)seed);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "%s%zu", i ? "," : "", keep[i]);
    fprintf(stderr, "\n");
    story_release(&story);
}

static void report(const struct run *run, uint64_t seed)
{
    struct story story;
    struct run again = *run;
    size_t *keep, n;
    char rule[64];

    snprintf(rule, sizeof(rule), "%s", run->board->verdict.rule);
    again.is_twice |= strcmp(rule, "equal stories give equal logs") == 0;
    print_error("seed %llu breaks the rule \"%s\" %s\n", (unsigned long long)seed, rule, run->board->verdict.words);
    story_make(&story, seed);
    keep = mem_array(size_t, story.n_steps + 1);
    for (n = 0; n < story.n_steps; n++)
        keep[n] = story.steps[n].number;
    story_release(&story);
    n = shrink(&again, seed, rule, keep, n);
    again.keep = keep;
    again.n_keep = n;
    run_seeds(seed, seed, &again, false); /* once more, to tell how it ends, and aloud */
    print_story(&again, seed, keep, n);
    free(keep);
}

/* ---- tests ---- */

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

static struct board *board_new(void)
{
    struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(board != MAP_FAILED);
    return board;
}

static void play_one(const struct run *run, uint64_t seed)
{
    char *text = mem_strdup(getenv("SIM_STEPS")), *at = text;
    size_t keep[1000], n = 0;
    struct run one = *run;

    for (; at && *at && n < ARRAY_SIZE(keep); at += strspn(at, ","))
        keep[n++] = strtoul(at, &at, 10);
    if (text) {
        one.keep = keep;
        one.n_keep = n;
    }
    free(text);
    if (!run_seeds(seed, seed, &one, false))
        fail_msg("seed %llu breaks the rule \"%s\" %s", (unsigned long long)seed, run->board->verdict.rule,
                 run->board->verdict.words);
}

static void tell_totals(const struct verdict *totals)
{
    const struct {
        const char *what;
        uint64_t n;
    } rows[] = {{"jobs", totals->n_jobs},
                {"runs", totals->n_runs},
                {"events", totals->n_events},
                {"crashes", totals->n_crashes},
                {"drifts", totals->n_drift},
                {"waits that were undecided", totals->n_undecided},
                {"waits for bind mode", totals->n_unsteerable}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        print_message("%s%llu %s", i ? ", " : "", (unsigned long long)rows[i].n, rows[i].what);
    print_message("\n");
}

static void test_simulation__rules_hold_at_every_instant(void **state)
{
    struct board *board = board_new();
    struct run run = {.board = board};
    uint64_t first = number_from("SIM_FIRST", 1), n = number_from("SIM_SEEDS", DEFAULT_SEEDS), last = first + n - 1;
    size_t n_broken = 0, most = (size_t)number_from("SIM_BROKEN", 1);

    (void)state;
    if (getenv("SIM_SEED")) {
        play_one(&run, number_from("SIM_SEED", 1));
        return;
    }
    for (uint64_t seed = first; seed <= last && !run_seeds(seed, last, &run, false); seed++) {
        seed = board->seed;
        report(&run, seed);
        if (++n_broken == most)
            break;
    }
    tell_totals(&board->verdict);
    if (n_broken)
        fail_msg("%zu stories break a rule", n_broken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_simulation__rules_hold_at_every_instant)};

    return cmocka_run_group_tests_name("simulation", tests, NULL, NULL);
}
