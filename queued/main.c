/* queued: wires configuration, log, clock, store, cluster, core, API and loop together. Nobody includes it.
 *
 * With Kubernetes a process begins on standby, with nothing but a listening API, and opens store, cluster and core when
 * it has the lease (connect.h). A leader that loses it changes nothing in the cluster any more, but keeps its books:
 * the lock on the store holds others off, so that it goes on reading and recording while the API server is away, and
 * leads again when it has the lease again. Once another leads, or wants the store, it yields: everything is closed and
 * the process begins anew, on standby, as if it had been killed and started again.
 *
 * Each turn of the loop runs the callbacks that are due and then ends the core's turn: commit, act, answer. With the
 * virtual clock a turn ends when the present instant has come to rest; time goes on only when it is told to. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "allocator/base/checked.h"
#include "allocator/base/mem.h"
#include "api/api.h"
#include "queued/clock.h"
#include "queued/cluster/embedded/embedded.h"
#include "queued/config.h"
#include "queued/connect.h"
#include "queued/core.h"
#include "queued/log.h"
#include "queued/worker.h"
#include "store/store.h"

#include "allocator/base/banned.h"

/* A second signal, or this much time, ends a stop that waits for somebody. */
enum { STOP_MS = 5000 };

/* Between two leaders: how often the one looks whether it must yield the store, and the other whether it is free. */
enum { PULSE_MS = 500 };

/* With the virtual clock, turns at one instant before we say that it never comes to rest. */
enum { SETTLE_MAX = 100000 };

struct process {
    struct config config;
    struct event_base *base;
    struct event *on_term, *on_int, *give_up, *pulse;
    struct clock *clock;
    struct connection *connection; /* to Kubernetes; NULL with the embedded cluster */
    struct store *store;
    struct cluster *cluster;
    struct worker *worker;
    struct core *core;
    struct api *api;
    int64_t begin_mono_ms;
    int port;
    bool is_leading;           /* this process may open the store and begin: core is NULL until the end of the turn */
    bool is_taken;             /* another leads, as far as we have seen */
    bool is_waiting_for_store; /* another process has it open, and we the lease */
    int wish_fd;               /* by which that one knows; or -1 */
    bool is_given;             /* the lease was given back */
    bool is_ready, is_stopping, is_late;
};

static int64_t mono_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- files ---- */

static char *state_path(const struct process *process, const char *name)
{
    BUF path = {0};

    buf_addf(&path, "%s/%s", process->config.state, name);
    return buf_take(&path);
}

/* An existing folder keeps its mode: it may be shared on purpose. What is in it is private anyway. */
static int open_state(const struct process *process, struct error *err)
{
    const char *path = process->config.state;
    struct stat st;

    if (path[0] == '\0')
        return error_field(err, "state", "--state DIR is needed: a folder for the database; see --help");
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_set(err, ERR_IO, "state folder %s: %s", path, strerror(errno));
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return error_set(err, ERR_IO, "state folder %s: is no folder", path);
    if (st.st_mode & 077)
        log_warn("state.mode", LOG_STR("path", path), LOG_STR("detail", "others may look into the state folder"));
    return 0;
}

/* Whole or not at all, however the process ends. */
static int write_file(const char *path, const char *text, struct error *err)
{
    BUF temporary = {0};
    int fd;
    bool is_written;

    buf_addf(&temporary, "%s.new", path);
    fd = open(buf_str(&temporary), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set(err, ERR_IO, "%s: %s", buf_str(&temporary), strerror(errno));
    is_written = write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fsync(fd) == 0;
    if (close(fd) < 0 || !is_written || rename(buf_str(&temporary), path) < 0)
        return error_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    return 0;
}

/* ---- the virtual clock ---- */

/* What is stored has times of the virtual clock. It must not go back when the server starts again, so the point that it
 * is moved to is kept beside the database before it is moved. */
static int64_t load_virtual_time(const struct process *process)
{
    char *path = state_path(process, "clock");
    FILE *file = fopen(path, "re");
    char text[32] = "";
    int64_t time_ms = 0;

    if (file) {
        if (fgets(text, sizeof(text), file))
            time_ms = strtoll(text, NULL, 10);
        fclose(file);
    }
    free(path);
    return time_ms > process->config.clock_start_ms ? time_ms : process->config.clock_start_ms;
}

static int save_virtual_time(const struct process *process, int64_t time_ms, struct error *err)
{
    char *path = state_path(process, "clock"), text[32];
    int result;

    snprintf(text, sizeof(text), "%lld\n", (long long)time_ms);
    result = write_file(path, text, err);
    free(path);
    return result;
}

/* Bring the core to rest at this instant. What waits for a timer of this instant is fired by the clock between calls.
 */
static void settle(void *ctx)
{
    struct process *process = ctx;
    int n = 0;

    do
        core_end_turn(process->core);
    while (!core_is_idle(process->core) && clock_next_ms(process->clock) > clock_now_ms(process->clock) &&
           ++n < SETTLE_MAX);
}

static int advance(void *ctx, int64_t ms, struct error *err)
{
    struct process *process = ctx;
    int64_t to_ms;

    if (!checked_add(clock_now_ms(process->clock), ms, &to_ms))
        return error_set(err, ERR_INVALID, "time would run out");
    if (save_virtual_time(process, to_ms, err) < 0)
        return -1;
    clock_advance(process->clock, to_ms, settle, process);
    return 0;
}

static int cluster_command(void *ctx, const json_t *command, struct error *err)
{
    struct process *process = ctx;

    return embedded_command(process->cluster, command, err);
}

/* ---- the worker ---- */

/* What comes back from the thread begins a turn, so the clock is read before it. */
struct errand {
    struct clock *clock;
    void (*work)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

static void errand_work(void *arg)
{
    struct errand *errand = arg;

    errand->work(errand->arg);
}

static void errand_done(void *arg)
{
    struct errand *errand = arg;

    clock_new_turn(errand->clock);
    errand->done(errand->arg);
    free(errand);
}

static void run_on_worker(void *ctx, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
    struct process *process = ctx;
    struct errand *errand = mem_new(struct errand);

    *errand = (struct errand){process->clock, work, done, arg};
    worker_run(process->worker, errand_work, errand_done, errand);
}

/* ---- wiring ---- */

static void on_manifest_warning(void *ctx, const struct error *err)
{
    (void)ctx;
    log_warn("cluster.manifest", LOG_STR("field", err->field[0] ? err->field : NULL), LOG_STR("detail", err->text));
}

static int open_embedded(struct process *process, struct error *err)
{
    const struct config *config = &process->config;
    char *state = state_path(process, "cluster");
    struct embedded_options options = {
        .manifests = config->embedded,
        .state = state,
        .release = (int)config->release,
        .features = config->features,
        .schedule_delay_ms = config->schedule_delay_ms,
        .start_delay_ms = config->start_delay_ms,
    };
    int result = embedded_new(&options, process->clock, on_manifest_warning, NULL, &process->cluster, err);

    free(state);
    return result;
}

static int open_cluster(struct process *process, struct error *err)
{
    if (!process->connection)
        return open_embedded(process, err);
    process->cluster = connection_cluster(process->connection);
    return 0;
}

static void wish_no_more(struct process *process)
{
    if (process->wish_fd >= 0)
        close(process->wish_fd);
    process->wish_fd = -1;
}

static int open_store(struct process *process, struct error *err)
{
    char *path = state_path(process, "queued.db");
    int result = store_open(path, &process->store, err);

    free(path);
    if (result < 0 && err->code == ERR_CONFLICT)
        return error_wrap(err, "state folder %s", process->config.state);
    return result;
}

static int open_core(struct process *process, struct error *err)
{
    const struct config *config = &process->config;
    struct core_options options = {
        .store = process->store,
        .cluster = process->cluster,
        .clock = process->clock,
        .release = (int)config->release,
        .features = config->features,
        .bind_classes = config->bind_classes,
        .binds_pods = config->binds_pods != 0,
        .provisioning_class = config->provisioning_class,
        .provisioning_parameters = config->provisioning_parameters,
        .pod_groups = (enum pod_groups)config->pod_groups,
        .launch_timeout_ms = config->launch_timeout_ms,
        .lost_node_timeout_ms = config->lost_node_timeout_ms,
        .reconcile_period_ms = config->reconcile_period_ms,
        .crash_at = (int)config->crash_at,
    };

    /* Virtual time stands still while there is work, so there the loop does it itself and the order of things is fixed.
     */
    if (!clock_is_virtual(process->clock)) {
        if (worker_new(process->base, &process->worker, err) < 0)
            return -1;
        options.run = run_on_worker;
        options.run_ctx = process;
    }
    return core_new(&options, &process->core, err);
}

static int write_port_file(const struct process *process, struct error *err)
{
    char text[16];

    if (process->config.port_file[0] == '\0')
        return 0;
    snprintf(text, sizeof(text), "%d\n", process->port);
    return write_file(process->config.port_file, text, err);
}

static int listen_tcp(struct process *process, struct error *err)
{
    const struct config *config = &process->config;

    if (config->listen[0] == '\0')
        return 0;
    if (api_listen_tcp(process->api, config->listen, &process->port, err) < 0)
        return -1;
    log_info("server.listening", LOG_STR("listen", config->listen), LOG_INT("port", process->port));
    return write_port_file(process, err);
}

/* The socket is in the state folder, which servers that wait for the lease may share: it belongs to the one that leads.
 */
static int listen_unix(struct process *process, struct error *err)
{
    const struct config *config = &process->config;
    char *path = config->socket[0] ? mem_strdup(config->socket) : state_path(process, "queued.sock");
    int result = 0;

    if (strcmp(config->socket, "none") != 0) {
        result = api_listen_unix(process->api, path, (unsigned)config->socket_mode, err);
        if (result == 0)
            log_info("server.listening", LOG_STR("socket", path));
    }
    free(path);
    return result;
}

/* On standby when there is no core yet. */
static void open_api(struct process *process)
{
    const struct config *config = &process->config;
    struct api_options options = {
        .base = process->base,
        .core = process->core,
        .clock = process->clock,
        .max_body_bytes = (size_t)config->max_body_bytes,
        .max_connections = (size_t)config->max_connections,
        .request_timeout_ms = config->request_timeout_ms,
        .advance = clock_is_virtual(process->clock) ? advance : NULL,
        .command = process->connection ? NULL : cluster_command,
        .ctx = process,
    };

    process->api = api_new(&options);
}

/* Everything that only the server that leads has. */
static int lead(struct process *process, struct error *err)
{
    if (open_store(process, err) < 0)
        return -1;
    process->is_waiting_for_store = false;
    wish_no_more(process);
    if (open_cluster(process, err) < 0 || open_core(process, err) < 0)
        return -1;
    if (process->api) {
        api_lead(process->api, process->core);
        return listen_unix(process, err);
    }
    open_api(process);
    return listen_unix(process, err) < 0 || listen_tcp(process, err) < 0 ? -1 : 0;
}

static void on_leads(void *ctx)
{
    struct process *process = ctx;

    process->is_leading = true;
    process->is_taken = false;
    if (process->core)
        core_not_leading(process->core, NULL);
}

static void on_waits(void *ctx, const char *reason)
{
    struct process *process = ctx;

    api_standby(process->api, reason);
}

static void on_taken(void *ctx)
{
    struct process *process = ctx;

    process->is_taken = true;
}

/* Another may lead from now on. */
static void on_lost(void *ctx, const struct error *err)
{
    struct process *process = ctx;

    log_error("lease.lost", LOG_STR("why", err->text));
    process->is_leading = process->is_waiting_for_store = false;
    wish_no_more(process);
    if (process->core)
        core_not_leading(process->core, err);
    else
        api_standby(process->api, err->text);
}

/* Who leads needs the store. */
static bool must_yield(const struct process *process)
{
    return process->core && process->connection && !process->is_leading &&
           (process->is_taken || store_is_wanted(process->store));
}

static int stand_by(struct process *process, struct error *err)
{
    struct connection_options options = {
        .base = process->base,
        .clock = process->clock,
        .config = &process->config,
        .ctx = process,
        .leads = on_leads,
        .waits = on_waits,
        .lost = on_lost,
        .taken = on_taken,
    };

    if (connection_open(&options, &process->connection, err) < 0)
        return -1;
    open_api(process);
    if (listen_tcp(process, err) < 0)
        return -1;
    connection_begin(process->connection);
    return 0;
}

static int open_all(struct process *process, struct error *err)
{
    bool is_kubernetes;

    if (open_state(process, err) < 0 || connection_is_wanted(&process->config, &is_kubernetes, err) < 0)
        return -1;
    process->clock = process->config.clock == CONFIG_CLOCK_VIRTUAL ? clock_virtual_new(load_virtual_time(process))
                                                                   : clock_real_new(process->base);
    process->is_leading = !is_kubernetes;
    if (is_kubernetes && stand_by(process, err) < 0)
        return -1;
    return process->is_leading ? lead(process, err) : 0;
}

static void on_given(void *ctx)
{
    struct process *process = ctx;

    process->is_given = true;
}

/* Last of all, when nothing of ours is open any more. */
static void give_lease_back(struct process *process)
{
    if (!process->connection)
        return;
    connection_release(process->connection, on_given, process);
    while (!process->is_given && event_base_loop(process->base, EVLOOP_ONCE) == 0)
        continue;
    connection_free(process->connection);
}

static void free_event(struct event *event)
{
    if (event)
        event_free(event);
}

/* Against the order of opening, but for the API: what it owes an answer, the core may still answer until it is gone. */
static void close_all(struct process *process)
{
    if (process->api)
        api_stop(process->api);
    worker_free(process->worker);
    core_free(process->core);
    api_free(process->api);
    if (process->cluster)
        process->cluster->ops->free(process->cluster);
    store_close(process->store);
    give_lease_back(process);
    clock_free(process->clock);
    free_event(process->on_term);
    free_event(process->on_int);
    free_event(process->give_up);
    free_event(process->pulse);
    event_base_free(process->base);
    wish_no_more(process);
}

/* ---- the loop ---- */

static void on_signal(evutil_socket_t signal_number, short what, void *arg)
{
    struct process *process = arg;
    struct timeval patience = {STOP_MS / 1000, 0};

    (void)what;
    log_info("server.stopping", LOG_INT("signal", signal_number));
    process->is_late = process->is_stopping;
    process->is_stopping = true;
    event_add(process->give_up, &patience);
    if (process->api)
        api_stop(process->api);
}

static void on_give_up(evutil_socket_t fd, short what, void *arg)
{
    struct process *process = arg;

    (void)fd, (void)what;
    process->is_late = true;
}

static void on_pulse(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg; /* a turn of the loop is all that it is for */
}

static void watch_signals(struct process *process)
{
    signal(SIGPIPE, SIG_IGN);
    process->on_term = evsignal_new(process->base, SIGTERM, on_signal, process);
    process->on_int = evsignal_new(process->base, SIGINT, on_signal, process);
    process->give_up = evtimer_new(process->base, on_give_up, process);
    process->pulse = evtimer_new(process->base, on_pulse, process);
    event_add(process->on_term, NULL);
    event_add(process->on_int, NULL);
}

static void note_ready(struct process *process)
{
    json_t *status;

    if (process->is_ready)
        return;
    status = core_status(process->core);
    process->is_ready = json_is_true(json_object_get(status, "ready"));
    if (process->is_ready)
        log_info("server.ready", LOG_INT("ms", mono_ms() - process->begin_mono_ms));
    json_decref(status);
}

static void end_turn(struct process *process)
{
    if (clock_is_virtual(process->clock))
        clock_advance(process->clock, clock_now_ms(process->clock), settle, process);
    else
        core_end_turn(process->core);
    note_ready(process);
}

/* A leader before us may have been frozen or cut off: its hold on the lease is over, that on the database is not. It
 * yields when it sees that we want it, so that we wait. */
static int wait_for_store(struct process *process, struct error *err)
{
    char *path;

    if (err->code != ERR_CONFLICT || process->store || !process->connection)
        return -1;
    path = state_path(process, "queued.db");
    if (process->wish_fd < 0)
        process->wish_fd = store_want(path);
    free(path);
    if (!process->is_waiting_for_store)
        log_warn("store.busy", LOG_STR("why", err->text));
    process->is_waiting_for_store = true;
    api_standby(process->api, err->text);
    return 0;
}

static void pulse(struct process *process)
{
    const struct timeval after = {PULSE_MS / 1000, PULSE_MS % 1000 * 1000};

    if (process->is_waiting_for_store || (process->core && process->connection && !process->is_leading))
        event_add(process->pulse, &after);
}

static int turn(struct process *process, struct error *err)
{
    int result = 0;

    if (!process->core && process->is_leading && !process->is_stopping && lead(process, err) < 0)
        result = wait_for_store(process, err);
    else if (process->core)
        end_turn(process);
    pulse(process);
    return result;
}

static bool is_over(const struct process *process)
{
    return process->is_stopping ? process->is_late || api_is_quiet(process->api) : must_yield(process);
}

static int run(struct process *process, struct error *err)
{
    int result = turn(process, err); /* whatever loading began */

    while (result == 0 && !is_over(process)) {
        event_base_loop(process->base, EVLOOP_ONCE);
        result = turn(process, err);
    }
    return result;
}

/* Returns 0 after an orderly stop, 1 when it has yielded, -1 with err. */
static int serve_once(const struct config *config, struct error *err)
{
    struct process process = {.config = *config, .begin_mono_ms = mono_ms(), .wish_fd = -1};
    int result;

    process.base = event_base_new();
    if (!process.base)
        return error_set(err, ERR_IO, "the system gives no event loop");
    watch_signals(&process);
    result = open_all(&process, err) < 0 ? -1 : run(&process, err);
    if (result == 0 && !process.is_stopping)
        result = 1;
    if (result == 0)
        log_info("server.stopped", LOG_BOOL("whole", !process.is_late));
    if (result == 1)
        log_warn("server.yielded", LOG_BOOL("taken", process.is_taken));
    close_all(&process);
    return result;
}

static int serve(struct config *config)
{
    struct error err = {0};
    int result;

    do
        result = serve_once(config, &err);
    while (result == 1);
    if (result < 0)
        log_error("server.failed", LOG_STR("field", err.field[0] ? err.field : NULL), LOG_STR("detail", err.text));
    config_release(config);
    libevent_global_shutdown();
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int print(struct config *config, enum config_action action)
{
    BUF text = {0};

    if (action == CONFIG_HELP)
        config_help_to(&text);
    else if (action == CONFIG_VERSION)
        buf_addf(&text, "queued %s\n", QUEUED_VERSION);
    else
        config_format_to(config, &text);
    config_release(config);
    return fputs(buf_str(&text), stdout) < 0 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct config config;
    enum config_action action;
    struct error err = {0};

    config_init(&config);
    if (config_load(&config, argc, argv, environ, &action, &err) < 0) {
        fprintf(stderr, "queued: %s\n", err.text);
        config_release(&config);
        return 2;
    }
    if (action != CONFIG_RUN)
        return print(&config, action);
    umask(077);
    log_setup((enum log_level)config.log_level, (enum log_format)config.log_format);
    return serve(&config);
}
