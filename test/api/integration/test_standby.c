/* Servers that share a state folder and a lease: who is cut off from the API server stays up, and who leads has the
 * store for itself. The API server is a Lease and nothing else, so nobody is ever ready here. */
#include "test/support/cmocka.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/thread.h>
#include <jansson.h>

#include "allocator/base/str.h"
#include "test/api/integration/process.h"

#include "allocator/base/banned.h"

#define YAML "application/yaml"

/* Each server reaches it by a path of its own, "/0" or "/1", which can be closed. */
struct lease_server {
    struct event_base *base;
    struct evhttp *http;
    pthread_t thread;
    int port;
    atomic_bool is_away[2];
    json_t *lease; /* of the thread */
    int version;
};

struct world {
    struct lease_server api;
    struct process servers[2];
};

/* ---- the API server ---- */

static void send_json(struct evhttp_request *request, int status, const json_t *object)
{
    struct evbuffer *body = evbuffer_new();
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

    evbuffer_add_printf(body, "%s", text ? text : "{\"kind\":\"Status\",\"message\":\"no\"}");
    evhttp_send_reply(request, status, NULL, body);
    free(text);
    evbuffer_free(body);
}

static json_t *body_of(struct evhttp_request *request)
{
    struct evbuffer *input = evhttp_request_get_input_buffer(request);
    size_t len = evbuffer_get_length(input);

    return json_loadb((const char *)evbuffer_pullup(input, -1), len, 0, NULL);
}

static const char *version_in(const json_t *object)
{
    const char *version = json_string_value(json_object_get(json_object_get(object, "metadata"), "resourceVersion"));

    return version ? version : "";
}

static void write_lease(struct lease_server *api, struct evhttp_request *request)
{
    json_t *object = body_of(request);
    char version[16];

    if (strcmp(version_in(object), version_in(api->lease)) != 0) {
        send_json(request, 409, NULL);
        json_decref(object);
        return;
    }
    snprintf(version, sizeof(version), "%d", ++api->version);
    json_object_set_new(json_object_get(object, "metadata"), "resourceVersion", json_string(version));
    json_decref(api->lease);
    api->lease = object;
    send_json(request, 200, object);
}

static void on_request(struct evhttp_request *request, void *arg)
{
    struct lease_server *api = arg;
    const char *uri = evhttp_request_get_uri(request);

    if (atomic_load(&api->is_away[uri[1] == '1']))
        send_json(request, 503, NULL);
    else if (!strstr(uri, "/leases"))
        send_json(request, 404, NULL);
    else if (evhttp_request_get_command(request) != EVHTTP_REQ_GET)
        write_lease(api, request);
    else
        send_json(request, api->lease ? 200 : 404, api->lease);
}

static void *serve(void *arg)
{
    struct lease_server *api = arg;

    event_base_loop(api->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

static void api_begin(struct lease_server *api)
{
    struct sockaddr_in address = {0};
    socklen_t len = sizeof(address);
    struct evhttp_bound_socket *bound;

    evthread_use_pthreads();
    api->base = event_base_new();
    api->http = evhttp_new(api->base);
    evhttp_set_gencb(api->http, on_request, api);
    bound = evhttp_bind_socket_with_handle(api->http, "127.0.0.1", 0);
    assert_non_null(bound);
    assert_int_equal(getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &len), 0);
    api->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&api->thread, NULL, serve, api), 0);
}

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    event_base_loopbreak(arg);
}

static void api_end(struct lease_server *api)
{
    event_base_once(api->base, -1, EV_TIMEOUT, on_stop, api->base, NULL);
    pthread_join(api->thread, NULL);
    evhttp_free(api->http);
    event_base_free(api->base);
    json_decref(api->lease);
}

/* ---- servers ---- */

/* A lease of two seconds: lost after 1.6, free for others after 2. */
static void begin(struct world *world, int i)
{
    struct process *process = &world->servers[i];
    char kubeconfig[128];
    const char *const args[] = {"--kubeconfig",
                                kubeconfig,
                                "--lease",
                                "n/l",
                                "--lease-duration",
                                "2s",
                                "--state",
                                NULL,
                                "--socket",
                                process->socket,
                                "--listen",
                                "127.0.0.1:0",
                                "--port-file",
                                process->port_file,
                                NULL};
    const char *flags[ARRAY_SIZE(args)];
    FILE *file;

    snprintf(kubeconfig, sizeof(kubeconfig), "%s/config", process->folder);
    file = fopen(kubeconfig, "we");
    assert_non_null(file);
    fprintf(file,
            "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k}}], "
            "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:%d/%d'}}]}\n",
            world->api.port, i);
    fclose(file);
    memcpy(flags, args, sizeof(args));
    flags[7] = world->servers[0].state;
    process_begin(process, flags);
}

static int setup(void **state)
{
    struct world *world = test_calloc(1, sizeof(*world));

    api_begin(&world->api);
    process_init(&world->servers[0]);
    process_init(&world->servers[1]);
    begin(world, 0);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    process_release(&world->servers[0]);
    process_release(&world->servers[1]);
    api_end(&world->api);
    test_free(world);
    return 0;
}

static int ask(struct process *process, const char *target)
{
    return call(process, NULL, "GET", target, NULL, NULL, NULL);
}

/* The administrator's socket is there while a server has the store. */
static bool has_store(struct process *process)
{
    return ask(process, "/v1/queues") == 200;
}

static bool is_lost(struct process *process)
{
    return process_logged(process, "lease.lost");
}

static bool has_yielded(struct process *process)
{
    return process_logged(process, "server.yielded");
}

static bool is_back(struct process *process)
{
    json_t *body = NULL;
    const char *detail;
    bool is;

    (void)call(process, NULL, "GET", "/readyz", NULL, NULL, &body);
    detail = json_string_value(json_object_get(body, "detail"));
    is = detail && !strstr(detail, "could not be renewed");
    json_decref(body);
    return is;
}

static bool waits_for_store(struct process *process)
{
    return process_logged(process, "store.busy");
}

static void until(struct process *process, bool (*is)(struct process *process))
{
    struct timespec pause = {.tv_nsec = 20000000};

    for (int i = 0; i < 1000; i++) {
        if (is(process))
            return;
        nanosleep(&pause, NULL);
    }
    process_print_log(process);
    fail_msg("it did not come to that");
}

static int apply(struct process *process, const char *queue)
{
    char text[160];

    snprintf(text, sizeof(text), "{\"apiVersion\":\"queue.dra/v1\",\"kind\":\"Queue\",\"metadata\":{\"name\":\"%s\"}}",
             queue);
    return call(process, NULL, "POST", "/v1/apply", YAML, text, NULL);
}

/* ---- facts ---- */

static void test_standby__cut_off_alone_it_records_and_leads_again(void **state)
{
    struct world *world = *state;
    struct process *server = &world->servers[0];

    until(server, has_store);
    atomic_store(&world->api.is_away[0], true);
    until(server, is_lost);
    assert_int_equal(apply(server, "meanwhile"), 200);
    assert_int_equal(ask(server, "/v1/queues/meanwhile"), 200);
    assert_int_equal(ask(server, "/readyz"), 503);
    assert_int_equal(ask(server, "/healthz"), 200);
    atomic_store(&world->api.is_away[0], false);
    until(server, is_back);
    assert_false(has_yielded(server));
    assert_int_equal(process_stop(server), 0);
}

/* The one that is cut off sees nothing of the lease: it yields because the other wants the store. */
static void test_standby__cut_off_it_yields_to_who_leads_now(void **state)
{
    struct world *world = *state;
    struct process *first = &world->servers[0], *second = &world->servers[1];

    until(first, has_store);
    begin(world, 1);
    assert_int_equal(apply(first, "kept"), 200);
    atomic_store(&world->api.is_away[0], true);
    until(second, has_store);
    assert_true(has_yielded(first));
    assert_false(has_store(first));
    assert_int_equal(ask(second, "/v1/queues/kept"), 200);
    atomic_store(&world->api.is_away[0], false);
    assert_int_equal(process_stop(second), 0);
    until(first, has_store);
    assert_int_equal(process_stop(first), 0);
}

static void test_standby__frozen_it_yields_when_it_goes_on(void **state)
{
    struct world *world = *state;
    struct process *first = &world->servers[0], *second = &world->servers[1];

    until(first, has_store);
    begin(world, 1);
    kill(first->pid, SIGSTOP);
    until(second, waits_for_store);
    assert_false(has_store(second));
    kill(first->pid, SIGCONT);
    until(first, has_yielded);
    until(second, has_store);
    assert_false(has_store(first));
    assert_int_equal(process_stop(first), 0);
    assert_int_equal(process_stop(second), 0);
}

#define FACT(name) cmocka_unit_test_setup_teardown(test_standby__##name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FACT(cut_off_alone_it_records_and_leads_again),
        FACT(cut_off_it_yields_to_who_leads_now),
        FACT(frozen_it_yields_when_it_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
