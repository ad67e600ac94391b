/* api/listen.h - bound sockets, not yet listening. */
#ifndef QUEUED_API_LISTEN_H
#define QUEUED_API_LISTEN_H

#include "allocator/base/error.h"

/* Bind "ADDRESS:PORT" or "[ADDRESS]:PORT"; *out_port is the port, also when the system chose it. Returns 0 and a socket
 * to close, or -1: ERR_INVALID for the text, ERR_CONFLICT when somebody listens there, ERR_IO. */
MUST_CHECK int listen_tcp(const char *listen_at, int *out_fd, int *out_port, struct error *err);

/* Bind a Unix socket with these permissions. A socket that nobody listens on is replaced. Returns 0 and a socket to
 * close, or -1: ERR_CONFLICT when somebody listens there or the path is something else, ERR_INVALID, ERR_IO. */
MUST_CHECK int listen_unix(const char *path, unsigned mode, int *out_fd, struct error *err);

#endif
