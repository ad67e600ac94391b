/* queued/cluster/kube/kubeconfig_file.h - the files of a kubeconfig: entries by name, fields by table, and messages
 * that name file, line and field. For kubeconfig.c. */
#ifndef QUEUED_KUBE_KUBECONFIG_FILE_H
#define QUEUED_KUBE_KUBECONFIG_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "allocator/base/error.h"

struct manifest;

#define KUBECONFIG_MAX_FILES 64

struct file {
    struct manifest *manifest;
    char *folder; /* with its slash; "" for the working directory */
};

struct kubeconfig {
    struct file files[KUBECONFIG_MAX_FILES];
    size_t n_files;
};

/* The inner object of a named entry, and where it stands: "users[3].user". */
struct entry {
    const struct file *file;
    const json_t *value;
    char path[128];
};

/* `path`: a file, or several with ':' between. Files of a list that are not there are passed over; not all may be. */
MUST_CHECK int kubeconfig_read(struct kubeconfig *config, const char *path, struct error *err);
void kubeconfig_release(struct kubeconfig *config);
/* The first file, for messages. */
const char *kubeconfig_name(const struct kubeconfig *config);
MUST_CHECK int kubeconfig_current(const struct kubeconfig *config, const char **out, struct error *err);
/* The entry of that name in `list` ("users"), and the object in its field `inner` ("user"). Not there: out->value is
 * NULL, and no error. */
MUST_CHECK int kubeconfig_find(const struct kubeconfig *config, const char *list, const char *inner, const char *name,
                               struct entry *out, struct error *err);

enum shape { TEXT, FLAG, LIST, OBJECT, IGNORED, REFUSED };

struct rule {
    const char *field;
    enum shape shape;
    size_t offset;   /* of a const char *, bool, or const json_t * */
    const char *why; /* of REFUSED */
};

/* Put the fields of an entry into a struct, by rules that end with a NULL field. What says nothing (null, "") is as
 * good as absent; what no rule knows is refused. */
MUST_CHECK int entry_read(const struct entry *entry, const struct rule *rules, void *out, struct error *err);
MUST_CHECK int entry_check_texts(const struct entry *entry, const char *field, const json_t *list, struct error *err);
/* A path as the entry means it, relative to its file; to free(). */
char *entry_path(const struct entry *entry, const char *path);

/* Fill *err with file, line and path of a field, and the reason. Always -1. */
int entry_refuse(const struct entry *entry, const char *field, struct error *err, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* The same with the reason and the code that *err holds. */
int entry_blame(const struct entry *entry, const char *field, struct error *err);

#endif
