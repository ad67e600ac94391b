#include "test/cluster/kube/http_world.h"

#include <dirent.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

#define PATIENCE_S 8

static void write_file(const struct http_world *world, const char *name, const char *text, mode_t mode)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", world->folder, name);
    file = fopen(path, "w");
    INVARIANT(file);
    fputs(text, file);
    fclose(file);
    chmod(path, mode);
}

void http_world_write(const struct http_world *world, const char *name, const char *text)
{
    write_file(world, name, text, 0600);
}

void http_world_script(const struct http_world *world, const char *name, const char *text)
{
    write_file(world, name, text, 0700);
}

static void start_server(struct http_world *world, enum server_kind kind)
{
    static const char *const names[] = {
        [SERVER_GOOD] = "IP:127.0.0.1,DNS:localhost",
        [SERVER_OTHER_CA] = "IP:127.0.0.1",
        [SERVER_OTHER_NAME] = "DNS:api.test",
        [SERVER_EXPIRED] = "IP:127.0.0.1",
        [SERVER_NOT_YET] = "IP:127.0.0.1",
        [SERVER_PLAIN] = "IP:127.0.0.1",
    };
    const struct pki *pki = kind == SERVER_OTHER_CA ? world->other : world->pki;
    long from_s = kind == SERVER_NOT_YET ? 1800 : -1800, to_s = kind == SERVER_EXPIRED ? -60 : 3600;
    char *certificate, *key;

    pki_issue(pki, "server", names[kind], from_s, to_s, &certificate, &key);
    struct https_options options = {.base = world->base, .client_ca = pki_ca(world->pki)};
    if (kind != SERVER_PLAIN) {
        options.certificate = certificate;
        options.key = key;
    }
    world->stub = https_stub_new(&options);
    free(certificate);
    free(key);
}

void http_world_begin(struct http_world *world, enum server_kind kind)
{
    char *certificate, *key;

    *world = (struct http_world){.folder = "/tmp/queued-kube-XXXXXX"};
    INVARIANT(mkdtemp(world->folder));
    signal(SIGPIPE, SIG_IGN); /* as the server does */
    world->base = event_base_new();
    world->pki = pki_new();
    world->other = pki_new();
    start_server(world, kind);
    http_world_write(world, "ca.crt", pki_ca(world->pki));
    pki_issue(world->pki, "jane", NULL, -60, 3600, &certificate, &key);
    http_world_write(world, "client.crt", certificate);
    http_world_write(world, "client.key", key);
    free(certificate);
    free(key);
}

static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    char name[600];

    while (folder && (entry = readdir(folder))) {
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(name);
    }
    if (folder)
        closedir(folder);
    rmdir(path);
}

void http_world_end(struct http_world *world)
{
    http_free(world->http);
    access_free(world->access);
    https_stub_free(world->stub);
    pki_free(world->pki);
    pki_free(world->other);
    event_base_free(world->base);
    remove_folder(world->folder);
}

void http_world_kubeconfig(const struct http_world *world, const char *cluster, const char *user)
{
    BUF text = {0};
    bool is_plain = cluster && strcmp(cluster, "plain") == 0;

    if (!cluster)
        cluster = "certificate-authority: ca.crt";
    buf_addf(&text, "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: k\n  cluster:\n");
    buf_addf(&text, "    server: %s://127.0.0.1:%d/\n", is_plain ? "http" : "https", https_stub_port(world->stub));
    if (!is_plain)
        buf_addf(&text, "    %s\n", cluster);
    buf_addf(&text, "users:\n- name: u\n  user:\n    %s\n", user[0] ? user : "{}");
    buf_addf(&text, "contexts:\n- name: c\n  context: {cluster: k, user: u}\n");
    http_world_write(world, "config", buf_str(&text));
}

int http_world_open(struct http_world *world, const struct http_options *options, struct error *err)
{
    struct http_options all = options ? *options : (struct http_options){0};
    char path[128];

    snprintf(path, sizeof(path), "%s/config", world->folder);
    if (access_from_kubeconfig(path, NULL, &world->access, err) < 0)
        return -1;
    all.base = world->base;
    all.access = world->access;
    return http_new(&all, &world->http, err);
}

static void on_patience(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    *(bool *)arg = true;
}

static void run(struct http_world *world, const int *flag, int ms)
{
    struct timeval wait = {ms / 1000, ms % 1000 * 1000};
    struct event *patience;

    world->is_over = false;
    patience = evtimer_new(world->base, on_patience, &world->is_over);
    evtimer_add(patience, &wait);
    while ((!flag || !*flag) && !world->is_over)
        event_base_loop(world->base, EVLOOP_ONCE);
    event_free(patience);
}

void http_world_run(struct http_world *world, const int *flag)
{
    run(world, flag, PATIENCE_S * 1000);
}

void http_world_pass(struct http_world *world, int ms)
{
    run(world, NULL, ms);
}

void kept_done(void *ctx, const struct http_answer *answer)
{
    struct kept *kept = ctx;

    kept->n++;
    kept->status = answer->status;
    buf_clear(&kept->body);
    buf_add(&kept->body, answer->body, answer->len);
    kept->retry_after_ms = answer->retry_after_ms;
    kept->may_be_done = answer->may_be_done;
    kept->err = answer->err;
}

int kept_data(void *ctx, const char *bytes, size_t len, struct error *err)
{
    struct kept *kept = ctx;

    (void)err;
    buf_add(&kept->data, bytes, len);
    return 0;
}

void kept_release(struct kept *kept)
{
    buf_release(&kept->body);
    buf_release(&kept->data);
}
