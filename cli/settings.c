#include "cli/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"

#include "allocator/base/banned.h"

#define FILE_MAX 65536

/* ---- files ---- */

static int read_small(const char *path, struct buf *out, struct error *err)
{
    FILE *file = fopen(path, "rb");
    char chunk[4096];
    size_t n;

    if (!file)
        return error_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_DENIED, "%s: %s", path, strerror(errno));
    while (out->len < FILE_MAX && (n = fread(chunk, 1, sizeof(chunk), file)) > 0)
        buf_add(out, chunk, n);
    fclose(file);
    return out->len < FILE_MAX ? 0 : error_set(err, ERR_LIMIT, "%s: larger than %d bytes", path, FILE_MAX);
}

/* Without white space at both ends; to free(). */
static char *trimmed(const char *start, const char *end)
{
    while (start < end && strchr(" \t\r\n", *start))
        start++;
    while (end > start && strchr(" \t\r\n", end[-1]))
        end--;
    return mem_strndup(start, (size_t)(end - start));
}

static void replace(char **text, char *value)
{
    free(*text);
    *text = value;
}

static int token_read(const char *path, char **out, struct error *err)
{
    BUF text = {0};
    char *token;

    if (read_small(path, &text, err) < 0)
        return error_wrap(err, "token");
    token = trimmed(buf_str(&text), buf_str(&text) + text.len);
    if (!*token || strpbrk(token, " \t\r\n")) {
        free(token);
        return error_set(err, ERR_INVALID, "token: %s must hold one token and nothing else", path);
    }
    replace(out, token);
    return 0;
}

/* ---- the user's configuration ---- */

enum key { KEY_SERVER, KEY_TOKEN_FILE, KEY_NAMESPACE, KEY_QUEUE, KEY_COUNT };
static const char *const key_names[KEY_COUNT] = {
    [KEY_SERVER] = "server", [KEY_TOKEN_FILE] = "token-file", [KEY_NAMESPACE] = "namespace", [KEY_QUEUE] = "queue"};

/* line = blank | "#" comment | key "=" value */
static int config_line(const char *path, size_t number, const char *start, const char *end, char *values[KEY_COUNT],
                       struct error *err)
{
    char *line = trimmed(start, end), *equals = strchr(line, '='), *key;
    int rc = 0;
    size_t i;

    if (*line && *line != '#') {
        key = trimmed(line, equals ? equals : line);
        for (i = 0; i < KEY_COUNT && strcmp(key_names[i], key) != 0; i++)
            continue;
        if (i < KEY_COUNT)
            replace(&values[i], trimmed(equals + 1, line + strlen(line)));
        else
            rc = error_set(err, ERR_INVALID,
                           "%s:%zu: must be KEY = VALUE with a key of server, token-file, namespace, queue", path,
                           number);
        free(key);
    }
    free(line);
    return rc;
}

static int config_read(const char *path, char *values[KEY_COUNT], struct error *err)
{
    BUF text = {0};
    const char *at, *end;

    if (read_small(path, &text, err) < 0)
        return -1;
    at = buf_str(&text);
    end = at + text.len;
    for (size_t number = 1; at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        stop = stop ? stop : end;
        if (config_line(path, number, at, stop, values, err) < 0)
            return -1;
        at = stop + 1;
    }
    return 0;
}

/* $XDG_CONFIG_HOME/dra-submit/config, or below ~/.config. */
static void config_path(const struct cli *cli, struct buf *out)
{
    const char *folder = cli->env("XDG_CONFIG_HOME"), *home = cli->env("HOME");

    if (folder && *folder)
        buf_addf(out, "%s/dra-submit/config", folder);
    else if (home && *home)
        buf_addf(out, "%s/.config/dra-submit/config", home);
}

static int config_load(const struct cli *cli, char *values[KEY_COUNT], struct error *err)
{
    const char *named = cli->args.values[OPT_CONFIG];
    BUF path = {0};

    if (named)
        return config_read(named, values, err);
    config_path(cli, &path);
    if (path.len == 0 || access(buf_str(&path), F_OK) != 0)
        return 0;
    return config_read(buf_str(&path), values, err);
}

/* ---- which server ---- */

static bool default_socket(const struct cli *cli, struct settings *out)
{
    const char *runtime = cli->env("XDG_RUNTIME_DIR");
    BUF own = {0};

    if (access("/run/queued/queued.sock", F_OK) == 0) {
        replace(&out->server, mem_strdup("unix:/run/queued/queued.sock"));
        return true;
    }
    if (!runtime || !*runtime)
        return false;
    buf_addf(&own, "unix:%s/queued.sock", runtime);
    if (access(buf_str(&own) + strlen("unix:"), F_OK) != 0)
        return false;
    replace(&out->server, buf_take(&own));
    return true;
}

static int check_address(const struct settings *settings, struct error *err)
{
    static const char *const schemes[] = {"http://", "https://", "unix:"};

    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
        if (strncmp(settings->server, schemes[i], strlen(schemes[i])) == 0 && settings->server[strlen(schemes[i])])
            return 0;
    return error_set(err, ERR_INVALID, "%s: \"%.100s\" must be http://HOST:PORT, https://HOST:PORT or unix:PATH",
                     settings->origin, settings->server);
}

static int choose_server(const struct cli *cli, const char *configured, struct settings *out, struct error *err)
{
    const char *flag = cli->args.values[OPT_SERVER], *env = cli->env("DRA_SERVER");

    out->origin = flag          ? "--server"
                  : env && *env ? "DRA_SERVER"
                  : configured  ? "the configuration"
                                : "the default socket";
    if (flag || (env && *env) || configured)
        replace(&out->server, mem_strdup(flag ? flag : env && *env ? env : configured));
    else if (!default_socket(cli, out))
        return error_set(err, ERR_IO,
                         "no server: --server, DRA_SERVER and the configuration name none, and there is no "
                         "socket /run/queued/queued.sock%s",
                         cli->env("XDG_RUNTIME_DIR") ? " or $XDG_RUNTIME_DIR/queued.sock" : "");
    return check_address(out, err);
}

/* The configured token is for the configured server: another one never sees it. */
static int choose_token(const struct cli *cli, const char *configured_server, const char *configured_file,
                        struct settings *out, struct error *err)
{
    const char *flag = cli->args.values[OPT_TOKEN_FILE], *env = cli->env("DRA_TOKEN");

    if (flag)
        return token_read(flag, &out->token, err);
    if (env && *env) {
        replace(&out->token, mem_strdup(env));
        return 0;
    }
    if (!configured_file || (configured_server && strcmp(configured_server, out->server) != 0))
        return 0;
    return token_read(configured_file, &out->token, err);
}

int settings_load(const struct cli *cli, struct settings *out, struct error *err)
{
    char *values[KEY_COUNT] = {NULL};
    int rc;

    *out = (struct settings){0};
    rc = config_load(cli, values, err);
    if (rc == 0)
        rc = choose_server(cli, values[KEY_SERVER], out, err);
    if (rc == 0)
        rc = choose_token(cli, values[KEY_SERVER], values[KEY_TOKEN_FILE], out, err);
    out->ns = values[KEY_NAMESPACE];
    out->queue = values[KEY_QUEUE];
    free(values[KEY_SERVER]);
    free(values[KEY_TOKEN_FILE]);
    if (rc < 0)
        settings_release(out);
    return rc;
}

void settings_release(struct settings *settings)
{
    free(settings->server);
    free(settings->token);
    free(settings->ns);
    free(settings->queue);
    *settings = (struct settings){0};
}
