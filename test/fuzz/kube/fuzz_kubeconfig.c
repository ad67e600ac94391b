/* Any bytes as a kubeconfig and as what a plugin answered. What is accepted has a server, and headers of one line each.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "allocator/base/invariant.h"
#include "queued/cluster/kube/access.h"
#include "queued/cluster/kube/plugin.h"
#include "test/fuzz/kube/fuzz.h"

#include "allocator/base/banned.h"

static void try_kubeconfig(const uint8_t *data, size_t size)
{
    struct access *access = NULL;
    struct error err = {0};
    char path[64];
    int fd = memfd_create("kubeconfig", MFD_CLOEXEC);

    INVARIANT(fd >= 0);
    INVARIANT(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (access_from_kubeconfig(path, NULL, &access, &err) < 0) {
        INVARIANT(err.code != ERR_NONE && err.text[0]);
    } else {
        INVARIANT(strncmp(access_server(access), "http", 4) == 0);
        for (const char *const *header = access_headers(access); *header; header++)
            INVARIANT(!strpbrk(*header, "\r\n"));
        access_free(access);
    }
    close(fd);
}

static void try_plugin(const uint8_t *data, size_t size)
{
    struct plugin_answer answer;

    if (plugin_parse("client.authentication.k8s.io/v1", (const char *)data, size, 0, &answer, NULL) < 0)
        return;
    INVARIANT(answer.token || (answer.certificate && answer.key));
    plugin_answer_release(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_kubeconfig(data, size);
    try_plugin(data, size);
    return 0;
}
