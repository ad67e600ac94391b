#include "test/api/integration/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/base/str.h"

#include "allocator/base/banned.h"

#define FOLDER "test/api/integration/"

static int64_t mono_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&ts, NULL);
}

void process_init(struct process *process)
{
    *process = (struct process){0};
    snprintf(process->folder, sizeof(process->folder), "/tmp/queued-test.XXXXXX");
    INVARIANT(mkdtemp(process->folder));
    snprintf(process->state, sizeof(process->state), "%s/state", process->folder);
    snprintf(process->socket, sizeof(process->socket), "%s/queued.sock", process->folder);
    snprintf(process->log, sizeof(process->log), "%s/log", process->folder);
    snprintf(process->port_file, sizeof(process->port_file), "%s/port", process->folder);
}

static void copy_file(const char *from, const char *to)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char bytes[65536];
    ssize_t n;

    INVARIANT(in >= 0 && out >= 0);
    while ((n = read(in, bytes, sizeof(bytes))) > 0)
        INVARIANT(write(out, bytes, (size_t)n) == n);
    close(in);
    close(out);
}

static void copy_tree(const char *from, const char *to)
{
    DIR *dir = opendir(from);
    struct dirent *entry;

    INVARIANT(dir && mkdir(to, 0700) == 0);
    while ((entry = readdir(dir))) {
        char source[512], target[512];
        struct stat st;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(source, sizeof(source), "%s/%s", from, entry->d_name);
        snprintf(target, sizeof(target), "%s/%s", to, entry->d_name);
        INVARIANT(lstat(source, &st) == 0);
        if (S_ISDIR(st.st_mode))
            copy_tree(source, target);
        else if (S_ISREG(st.st_mode))
            copy_file(source, target);
    }
    closedir(dir);
}

void process_copy_state(struct process *process, const struct process *from)
{
    copy_tree(from->state, process->state);
}

static void remove_tree(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char name[512];
        struct stat st;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (lstat(name, &st) == 0 && S_ISDIR(st.st_mode))
            remove_tree(name);
        else
            unlink(name);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}

/* Servers of this test program, so that a failed test leaves none behind. */
static pid_t alive[64];

static void kill_all(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(alive); i++)
        if (alive[i] > 0)
            kill(alive[i], SIGKILL);
}

static void note_alive(pid_t old, pid_t new)
{
    static bool has_handler;

    if (!has_handler)
        INVARIANT(atexit(kill_all) == 0);
    has_handler = true;
    for (size_t i = 0; i < ARRAY_SIZE(alive); i++)
        if (alive[i] == old) {
            alive[i] = new;
            return;
        }
}

/* Not fork(): copying the page tables of a sanitized program takes longer than most of the tests. */
static void spawn(struct process *process, const char *const *argv)
{
    posix_spawn_file_actions_t actions;
    int failed;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, process->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    failed = posix_spawn(&process->pid, QUEUED_BINARY, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    INVARIANT(failed == 0);
    note_alive(0, process->pid);
}

static void forget(struct process *process)
{
    note_alive(process->pid, 0);
    process->pid = 0;
}

static void read_port(struct process *process)
{
    FILE *file = fopen(process->port_file, "re");
    char text[16] = "";

    if (file && fgets(text, sizeof(text), file))
        process->port = (int)strtol(text, NULL, 10);
    if (file)
        fclose(file);
}

static bool has_ended(const struct process *process)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == process->pid;
}

bool process_start(struct process *process, const char *const *args)
{
    const char *argv[16 + PROCESS_ARGS_MAX] = {
        QUEUED_BINARY,   "--embedded", FOLDER "cluster", "--state",     process->state,     "--socket",
        process->socket, "--listen",   "127.0.0.1:0",    "--port-file", process->port_file,
    };
    int64_t until = mono_ms() + 20000;
    size_t n = 11;

    for (size_t i = 0; args && args[i]; i++)
        argv[n++] = args[i];
    unlink(process->port_file);
    spawn(process, argv);
    while (mono_ms() < until) {
        if (call(process, NULL, "GET", "/readyz", NULL, NULL, NULL) == 200) {
            read_port(process);
            return true;
        }
        if (has_ended(process))
            return false;
        pause_ms(3);
    }
    process_kill(process);
    return false;
}

void process_begin(struct process *process, const char *const *args)
{
    const char *argv[PROCESS_ARGS_MAX + 2] = {QUEUED_BINARY};

    for (size_t i = 0; args[i]; i++)
        argv[i + 1] = args[i];
    spawn(process, argv);
}

int process_run(struct process *process, const char *const *args)
{
    process_begin(process, args);
    return process_wait(process);
}

int process_wait(struct process *process)
{
    int64_t until = mono_ms() + 20000;
    int status;

    if (process->pid == 0)
        return 0;
    while (!has_ended(process) && mono_ms() < until)
        pause_ms(2);
    if (!has_ended(process)) {
        process_kill(process);
        return -1000;
    }
    waitpid(process->pid, &status, 0);
    forget(process);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int process_stop(struct process *process)
{
    if (process->pid)
        kill(process->pid, SIGTERM);
    return process_wait(process);
}

void process_kill(struct process *process)
{
    if (process->pid == 0)
        return;
    kill(process->pid, SIGKILL);
    waitpid(process->pid, NULL, 0);
    forget(process);
}

void process_release(struct process *process)
{
    process_kill(process);
    remove_tree(process->folder);
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "re");
    char bytes[4096];
    size_t n;
    BUF text = {0};

    while (file && (n = fread(bytes, 1, sizeof(bytes), file)) > 0)
        buf_add(&text, bytes, n);
    if (file)
        fclose(file);
    return text.data ? buf_take(&text) : mem_strdup("");
}

bool process_logged(const struct process *process, const char *words)
{
    char *text = read_text(process->log);
    bool found = strstr(text, words) != NULL;

    free(text);
    return found;
}

void process_print_log(const struct process *process)
{
    char *text = read_text(process->log);
    size_t len = strlen(text);

    fprintf(stderr, "%s\n", len > 6000 ? text + len - 6000 : text);
    free(text);
}

char *file_text(const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s%s", FOLDER, name);
    return read_text(path);
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *ctx)
{
    buf_add(ctx, bytes, size * n);
    return size * n;
}

static struct curl_slist *headers_for(const char *token, const char *content_type, const char *more)
{
    struct curl_slist *headers = NULL;
    char header[512];

    if (token && token[0]) {
        snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
        headers = curl_slist_append(headers, header);
    }
    if (content_type) {
        snprintf(header, sizeof(header), "Content-Type: %s", content_type);
        headers = curl_slist_append(headers, header);
    }
    return more ? curl_slist_append(headers, more) : headers;
}

int call(struct process *process, const char *token, const char *method, const char *target, const char *content_type,
         const char *body, json_t **out)
{
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = headers_for(token, content_type, process->header);
    char url[1024];
    long status = 0;
    BUF answer = {0};

    snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", token ? process->port : 1, target);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    if (!token)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, process->socket);
    if (body)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 30L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    if (curl_easy_perform(curl) == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    if (out)
        *out = status ? json_loads(buf_str(&answer), JSON_DECODE_ANY, NULL) : NULL;
    return (int)status;
}

/* ---- the gang ---- */

void apply_queues(struct process *process)
{
    char *queues = file_text("queues.yaml");
    int status = call(process, NULL, "POST", "/v1/apply", "application/yaml", queues, NULL);

    if (status != 200)
        process_print_log(process);
    INVARIANT(status == 200);
    free(queues);
}

static void add_value(struct buf *out, const struct gang *gang, char letter)
{
    switch (letter) {
    case 'n':
        buf_adds(out, gang->name);
        break;
    case 'd':
        buf_adds(out, gang->duration);
        break;
    case 'e':
        buf_addf(out, "%d", gang->exit_code);
        break;
    default:
        buf_addf(out, "%d", gang->retries);
        break;
    }
}

int submit(struct process *process, const struct gang *gang)
{
    char *form = file_text("job.yaml"), *at;
    json_t *answer;
    int status;
    BUF text = {0};

    for (const char *rest = form; *rest; rest = at + 2) {
        at = strchr(rest, '%');
        if (!at) {
            buf_adds(&text, rest);
            break;
        }
        buf_add(&text, rest, (size_t)(at - rest));
        add_value(&text, gang, at[1]);
    }
    free(form);
    status = call(process, NULL, "POST", "/v1/jobs", "application/yaml", buf_str(&text), &answer);
    if (status != 201 && answer)
        json_dumpf(answer, stderr, JSON_INDENT(1));
    json_decref(answer);
    return status;
}
