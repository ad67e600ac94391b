#include "api/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "allocator/base/banned.h"

/* "host:port" or "[v6]:port" in two parts of `text`, which is changed. */
static bool split_address(char *text, char **host, char **port)
{
    char *colon = strrchr(text, ':');

    if (!colon || colon == text || colon[1] == '\0')
        return false;
    *colon = '\0';
    *host = text;
    *port = colon + 1;
    if (text[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        (*host)++;
    } else if (strchr(text, ':')) {
        return false;
    }
    return true;
}

static int bind_tcp(const struct addrinfo *address, int *out_port)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_storage bound;
    socklen_t len = sizeof(bound);
    int on = 1;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, address->ai_addr, address->ai_addrlen) < 0 || getsockname(fd, (struct sockaddr *)&bound, &len) < 0) {
        int reason = errno;

        close(fd);
        errno = reason;
        return -1;
    }
    *out_port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                  : ((struct sockaddr_in *)&bound)->sin_port);
    return fd;
}

int listen_tcp(const char *listen_at, int *out_fd, int *out_port, struct error *err)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found = NULL;
    char text[320], *host, *port;
    int fd, failed;

    snprintf(text, sizeof(text), "%s", listen_at);
    if (!split_address(text, &host, &port))
        return error_field(err, "listen", "listen must be ADDRESS:PORT or [ADDRESS]:PORT, not '%.100s'", listen_at);
    failed = getaddrinfo(host, port, &hints, &found);
    if (failed)
        return error_field(err, "listen", "listen on %.100s: %s", listen_at, gai_strerror(failed));
    fd = bind_tcp(found, out_port);
    freeaddrinfo(found);
    if (fd < 0)
        return error_set(err, errno == EADDRINUSE ? ERR_CONFLICT : ERR_IO, "listen on %.100s: %s", listen_at,
                         strerror(errno));
    *out_fd = fd;
    return 0;
}

/* A socket file outlives its process. Whether somebody still listens is found by knocking. */
static int clear_path(const struct sockaddr_un *address, struct error *err)
{
    struct stat st;
    int fd, failed;

    if (lstat(address->sun_path, &st) < 0)
        return 0; /* bind says what is wrong, if anything */
    if (!S_ISSOCK(st.st_mode))
        return error_set(err, ERR_CONFLICT, "%s exists and is no socket", address->sun_path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set(err, ERR_IO, "socket: %s", strerror(errno));
    failed = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? errno : 0;
    close(fd);
    if (failed != ECONNREFUSED)
        return error_set(err, ERR_CONFLICT, "%s: somebody listens there already", address->sun_path);
    unlink(address->sun_path);
    return 0;
}

int listen_unix(const char *path, unsigned mode, int *out_fd, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    mode_t before;
    int fd, failed;

    if (strlen(path) >= sizeof(address.sun_path))
        return error_field(err, "socket", "the socket's path has more than %zu bytes", sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (clear_path(&address, err) < 0)
        return -1;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set(err, ERR_IO, "socket: %s", strerror(errno));
    before = umask(0777); /* nobody may connect before the mode is set */
    failed = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || chmod(path, (mode_t)mode) < 0 ? errno : 0;
    umask(before);
    if (failed) {
        close(fd);
        return error_set(err, ERR_IO, "listen on %s: %s", path, strerror(failed));
    }
    *out_fd = fd;
    return 0;
}
