/* One run of a plugin: two pipes in the loop and a short tick that looks for its end.
 *
 * The end is looked for with waitpid() on that one process: a handler of SIGCHLD would belong to the whole program, and
 * the end of its output is no sign, since what it started may hold the pipe. posix_spawn() is used because another
 * thread may be at work: nothing of ours runs between fork and exec. */
#include "queued/cluster/kube/plugin.h"

#include <ctype.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "allocator/base/checked.h"
#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/cluster/kube/access_internal.h"
#include "queued/cluster/kube/secret.h"

#include "allocator/base/banned.h"

#define MAX_OUTPUT    ((size_t)1 << 20)
#define MAX_COMPLAINT 4096 /* of standard error: its end is kept */
#define LIMIT_MS      60000
#define TICK_MS       20
#define EARLY_MS      30000 /* before the end of credentials, or a quarter of their life if that is shorter */

struct plugin {
    char *version, *command, *hint;
    char **args; /* NULL-terminated, with the command */
    char **env;  /* "NAME=value", NULL-terminated */
    int64_t limit_ms;
};

struct plugin_run {
    const struct plugin *plugin;
    plugin_done *done;
    void *ctx;
    pid_t pid; /* 0: it is gone and reaped */
    int out_fd, err_fd;
    struct event *out_event, *err_event, *tick;
    char *out; /* MAX_OUTPUT + 1 bytes at once: a growing buffer would leave copies of a token behind */
    size_t out_len;
    char complaint[MAX_COMPLAINT + 1];
    size_t complaint_len;
    int64_t due_mono_ms;
};

static int64_t now_ms(clockid_t which)
{
    struct timespec now;

    clock_gettime(which, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- what is run ---- */

static char *exec_info(const struct plugin_options *options)
{
    json_t *info = json_pack("{s:s, s:s, s:{s:b}}", "apiVersion", options->version, "kind", "ExecCredential", "spec",
                             "interactive", 0);
    BUF out = {0};
    char *text;

    INVARIANT(info);
    if (options->cluster)
        json_object_set(json_object_get(info, "spec"), "cluster", (json_t *)options->cluster);
    text = json_dumps(info, JSON_COMPACT);
    INVARIANT(text);
    buf_addf(&out, "KUBERNETES_EXEC_INFO=%s", text);
    free(text);
    json_decref(info);
    return buf_take(&out);
}

struct plugin *plugin_new(const struct plugin_options *options)
{
    struct plugin *plugin = mem_new(struct plugin);
    size_t n_args = json_array_size(options->args), n_env = json_array_size(options->env);

    plugin->version = mem_strdup(options->version);
    plugin->command = mem_strdup(options->command);
    plugin->hint = mem_strdup(options->install_hint);
    plugin->limit_ms = LIMIT_MS;
    plugin->args = mem_array(char *, n_args + 2);
    plugin->args[0] = mem_strdup(options->command);
    for (size_t i = 0; i < n_args; i++)
        plugin->args[i + 1] = mem_strdup(json_string_value(json_array_get(options->args, i)));
    plugin->env = mem_array(char *, n_env + 2);
    for (size_t i = 0; i < n_env; i++) {
        const json_t *row = json_array_get(options->env, i);
        BUF text = {0};

        buf_addf(&text, "%s=%s", json_string_value(json_object_get(row, "name")),
                 json_string_value(json_object_get(row, "value")));
        plugin->env[i] = buf_take(&text);
    }
    plugin->env[n_env] = exec_info(options);
    return plugin;
}

static void free_texts(char **texts)
{
    for (size_t i = 0; texts[i]; i++)
        secret_free(texts[i]);
    free(texts);
}

void plugin_free(struct plugin *plugin)
{
    if (!plugin)
        return;
    free(plugin->version);
    free(plugin->command);
    free(plugin->hint);
    free_texts(plugin->args);
    free_texts(plugin->env);
    free(plugin);
}

void plugin_set_limit(struct plugin *plugin, int64_t limit_ms)
{
    plugin->limit_ms = limit_ms;
}

static bool is_replaced(char *const *env, const char *row)
{
    size_t len = strcspn(row, "=") + 1;

    for (; *env; env++)
        if (strncmp(*env, row, len) == 0)
            return true;
    return false;
}

/* Our environment with the plugin's in front; the texts are borrowed, free() the list. */
static char **environment_of(const struct plugin *plugin)
{
    size_t n = 0, n_ours = 0;
    char **out;

    while (environ[n_ours])
        n_ours++;
    for (; plugin->env[n]; n++)
        continue;
    out = mem_array(char *, n + n_ours + 1);
    memcpy(out, plugin->env, n * sizeof(*out));
    for (size_t i = 0; i < n_ours; i++)
        if (!is_replaced(plugin->env, environ[i]))
            out[n++] = environ[i];
    return out;
}

static int spawn(const struct plugin *plugin, int out, int err, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    char **env = environment_of(plugin);
    sigset_t all, none;
    int r;

    sigfillset(&all);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    r = posix_spawnp(pid, plugin->command, &files, &attributes, plugin->args, env);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    free(env);
    return r;
}

/* ---- what it answers ---- */

/* "2026-01-31T12:00:00.5+01:00" to milliseconds; the fraction is left out. */
static int parse_time(const char *text, int64_t *out)
{
    struct tm date = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &date);
    int hours, minutes, n = 0;
    int64_t offset_s = 0;

    if (!rest)
        return -1;
    if (*rest == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    if (*rest == '+' || *rest == '-') {
        if (sscanf(rest + 1, "%2d:%2d%n", &hours, &minutes, &n) != 2 || n != 5 || rest[6])
            return -1;
        offset_s = (hours * 60 + minutes) * 60 * (*rest == '+' ? 1 : -1);
    } else if (strcmp(rest, "Z") != 0 && strcmp(rest, "z") != 0) {
        return -1;
    }
    *out = ((int64_t)timegm(&date) - offset_s) * 1000;
    return 0;
}

static int64_t renew_at(int64_t expires_ms, int64_t at_ms)
{
    int64_t left = expires_ms - at_ms;

    if (left <= 0)
        return at_ms + 1000; /* our clock may be wrong: the server decides */
    return expires_ms - (left / 4 < EARLY_MS ? left / 4 : EARLY_MS);
}

/* The text of a field, taken out of the JSON value, where it is wiped. */
static char *take_text(json_t *status, const char *field)
{
    const char *text = json_string_value(json_object_get(status, field));
    char *out;

    if (!text || !text[0] || strlen(text) != json_string_length(json_object_get(status, field)))
        return NULL;
    out = mem_strdup(text);
    explicit_bzero((char *)text, strlen(text));
    return out;
}

static int check_answer(const struct plugin_answer *answer, struct error *err)
{
    if (!answer->certificate != !answer->key)
        return error_set(err, ERR_INVALID, "clientCertificateData and clientKeyData go together");
    if (!answer->token && !answer->certificate)
        return error_set(err, ERR_INVALID, "there is neither a token nor a certificate in its status");
    return answer->certificate ? access_check_pair(answer->certificate, answer->key, err) : 0;
}

static int read_answer(const char *version, json_t *root, int64_t at_ms, struct plugin_answer *out, struct error *err)
{
    const char *kind = json_string_value(json_object_get(root, "kind"));
    const char *its_version = json_string_value(json_object_get(root, "apiVersion"));
    json_t *status = json_object_get(root, "status");
    const json_t *expires = json_object_get(status, "expirationTimestamp");
    int64_t expires_ms;

    out->renew_ms = INT64_MAX;
    if (!kind || strcmp(kind, "ExecCredential") != 0)
        return error_set(err, ERR_INVALID, "its output is no ExecCredential");
    if (!its_version || strcmp(its_version, version) != 0)
        return error_set(err, ERR_INVALID, "its apiVersion is not %s", version);
    out->token = take_text(status, "token");
    out->certificate = take_text(status, "clientCertificateData");
    out->key = take_text(status, "clientKeyData");
    if (check_answer(out, err) < 0)
        return -1;
    if (!expires || json_is_null(expires))
        return 0;
    if (!json_is_string(expires) || parse_time(json_string_value(expires), &expires_ms) < 0)
        return error_set(err, ERR_INVALID, "its expirationTimestamp is no time");
    out->renew_ms = renew_at(expires_ms, at_ms);
    return 0;
}

int plugin_parse(const char *version, const char *bytes, size_t len, int64_t at_ms, struct plugin_answer *out,
                 struct error *err)
{
    json_t *root = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, NULL); /* its own message quotes the text */
    int r;

    *out = (struct plugin_answer){.renew_ms = INT64_MAX};
    if (!root)
        return error_set(err, ERR_INVALID, "its output is not JSON");
    r = read_answer(version, root, at_ms, out, err);
    json_decref(root);
    if (r < 0)
        plugin_answer_release(out);
    return r;
}

void plugin_answer_release(struct plugin_answer *answer)
{
    secret_put(&answer->token, NULL);
    secret_put(&answer->certificate, NULL);
    secret_put(&answer->key, NULL);
}

/* ---- a run ---- */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void free_event(struct event **event)
{
    if (*event)
        event_free(*event);
    *event = NULL;
}

static void run_free(struct plugin_run *run)
{
    free_event(&run->out_event);
    free_event(&run->err_event);
    free_event(&run->tick);
    close_fd(&run->out_fd);
    close_fd(&run->err_fd);
    explicit_bzero(run->out, run->out_len);
    free(run->out);
    free(run);
}

/* With all of its group; what was killed ends at once, so that waiting for it does not hold the loop. */
static void run_kill(struct plugin_run *run)
{
    if (!run->pid)
        return;
    kill(-run->pid, SIGKILL);
    kill(run->pid, SIGKILL); /* if it made itself another group */
    while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    run->pid = 0;
}

void plugin_cancel(struct plugin_run *run)
{
    if (!run)
        return;
    run_kill(run);
    run_free(run);
}

static void run_fail(struct plugin_run *run, struct error *err)
{
    run_kill(run);
    error_wrap(err, "exec plugin %.200s", run->plugin->command);
    run->done(run->ctx, err, NULL);
    run_free(run);
}

/* A long word may be a token, or a part of one: it is not shown. Paths and URLs are. */
static bool is_shown(struct str word)
{
    size_t n = 0;

    if (str_starts(word, "/") || str_starts(word, "http"))
        return word.len <= 200;
    while (n < word.len && (isalnum((unsigned char)word.ptr[n]) || strchr("_.+/=-", word.ptr[n])))
        n++;
    return word.len <= 40 || (n < word.len && word.len <= 80);
}

/* The last line that is not empty, in words that may be shown. */
static void last_words(const struct plugin_run *run, struct buf *out)
{
    const char *text = run->complaint;
    size_t end = run->complaint_len, at;

    while (end && isspace((unsigned char)text[end - 1]))
        end--;
    at = end;
    while (at && text[at - 1] != '\n')
        at--;
    while (at < end) {
        struct str word = {text + at, 0};

        while (at + word.len < end && isgraph((unsigned char)word.ptr[word.len]))
            word.len++;
        if (word.len && out->len)
            buf_addc(out, ' ');
        if (word.len && is_shown(word))
            buf_add(out, word.ptr, word.len);
        else if (word.len)
            buf_adds(out, "[...]");
        at += word.len + 1;
    }
}

static int check_exit(const struct plugin_run *run, int status, struct error *err)
{
    BUF words = {0};

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    last_words(run, &words);
    if (WIFSIGNALED(status))
        error_set(err, ERR_DENIED, "ended by signal %d", WTERMSIG(status));
    else
        error_set(err, ERR_DENIED, "exit code %d", WEXITSTATUS(status));
    if (err && words.len) {
        struct error how = *err;

        error_set(err, ERR_DENIED, "%s: %.300s", how.text, buf_str(&words));
    }
    return -1;
}

static void run_end(struct plugin_run *run, int status)
{
    struct plugin_answer answer = {0};
    struct error err = {0};

    run->pid = 0;
    if (check_exit(run, status, &err) < 0 ||
        plugin_parse(run->plugin->version, run->out, run->out_len, now_ms(CLOCK_REALTIME), &answer, &err) < 0) {
        err.code = ERR_DENIED; /* to whoever asked: there are no credentials */
        run_fail(run, &err);
        return;
    }
    run->done(run->ctx, NULL, &answer);
    plugin_answer_release(&answer);
    run_free(run);
}

/* All that is there; false when it is too much. The end of the pipe ends its event. */
static bool drain_out(struct plugin_run *run)
{
    ssize_t n;

    while (run->out_fd >= 0) {
        n = read(run->out_fd, run->out + run->out_len, MAX_OUTPUT + 1 - run->out_len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n <= 0) {
            free_event(&run->out_event);
            close_fd(&run->out_fd);
            return true;
        }
        run->out_len += (size_t)n;
        if (run->out_len > MAX_OUTPUT)
            return false;
    }
    return true;
}

static void keep_end(struct plugin_run *run, const char *bytes, size_t len)
{
    size_t keep = MAX_COMPLAINT - len;

    if (run->complaint_len > keep) {
        memmove(run->complaint, run->complaint + run->complaint_len - keep, keep);
        run->complaint_len = keep;
    }
    memcpy(run->complaint + run->complaint_len, bytes, len);
    run->complaint_len += len;
}

/* In bounded steps: a plugin that complains for ever must not hold the loop. */
static void drain_err(struct plugin_run *run)
{
    char bytes[1024];
    ssize_t n;

    for (int i = 0; i < 64 && run->err_fd >= 0; i++) {
        n = read(run->err_fd, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            free_event(&run->err_event);
            close_fd(&run->err_fd);
            return;
        }
        keep_end(run, bytes, (size_t)n);
    }
}

static bool run_drain(struct plugin_run *run)
{
    struct error err = {0};

    drain_err(run);
    if (drain_out(run))
        return true;
    error_set(&err, ERR_LIMIT, "its output is larger than %zu bytes", MAX_OUTPUT);
    run_fail(run, &err);
    return false;
}

static void on_output(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    (void)run_drain(arg);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct plugin_run *run = arg;
    struct error err = {0};
    int status = 0;
    pid_t r = waitpid(run->pid, &status, WNOHANG);

    (void)fd, (void)what;
    if (r == run->pid) {
        run->pid = 0;
        if (run_drain(run))
            run_end(run, status);
    } else if (r < 0 && errno != EINTR) {
        error_set(&err, ERR_IO, "its end was taken by others: %s", strerror(errno));
        run->pid = 0;
        run_fail(run, &err);
    } else if (now_ms(CLOCK_MONOTONIC) >= run->due_mono_ms) {
        error_set(&err, ERR_TIMEOUT, "no answer in %lld ms", (long long)run->plugin->limit_ms);
        run_fail(run, &err);
    }
}

static int open_pipe(int *out_read, int *out_write, struct error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(err, ERR_IO, "pipe: %s", strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *out_read = ends[0];
    *out_write = ends[1];
    return 0;
}

static int run_spawn(struct plugin_run *run, struct error *err)
{
    const struct plugin *plugin = run->plugin;
    int out = -1, complaint = -1, r = 0;

    if (open_pipe(&run->out_fd, &out, err) < 0 || open_pipe(&run->err_fd, &complaint, err) < 0) {
        close_fd(&out);
        return -1;
    }
    r = spawn(plugin, out, complaint, &run->pid);
    close_fd(&out);
    close_fd(&complaint);
    if (!r)
        return 0;
    run->pid = 0;
    error_set(err, ERR_DENIED, "%s", strerror(r));
    if (plugin->hint && r == ENOENT)
        error_set(err, ERR_DENIED, "%s; %.300s", strerror(r), plugin->hint);
    return -1;
}

static struct event *watch(struct event_base *base, int fd, event_callback_fn run, void *ctx)
{
    static const struct timeval tick = {0, TICK_MS * 1000};
    struct event *event = event_new(base, fd, (short)(EV_PERSIST | (fd >= 0 ? EV_READ : 0)), run, ctx);

    INVARIANT(event);
    event_add(event, fd >= 0 ? NULL : &tick);
    return event;
}

struct plugin_run *plugin_start(const struct plugin *plugin, struct event_base *base, plugin_done *done, void *ctx,
                                struct error *err)
{
    struct plugin_run *run = mem_new(struct plugin_run);

    run->plugin = plugin;
    run->done = done;
    run->ctx = ctx;
    run->out_fd = run->err_fd = -1;
    run->out = mem_zalloc(MAX_OUTPUT + 2, 1);
    run->due_mono_ms = now_ms(CLOCK_MONOTONIC) + plugin->limit_ms;
    if (run_spawn(run, err) < 0) {
        error_wrap(err, "exec plugin %.200s", plugin->command);
        run_free(run);
        return NULL;
    }
    run->out_event = watch(base, run->out_fd, on_output, run);
    run->err_event = watch(base, run->err_fd, on_output, run);
    run->tick = watch(base, -1, on_tick, run);
    return run;
}
