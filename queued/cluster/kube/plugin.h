/* queued/cluster/kube/plugin.h - credentials from a program (client.authentication.k8s.io, v1 and v1beta1).
 *
 * The program is run without a shell, in a process group of its own, with no standard input, nothing of our open files,
 * the environment of ours and what the context adds. It has 60 seconds and 1 MiB of output, and is killed beyond that,
 * with all that it started in its group. What it writes to standard error is not shown, but for the last line when it
 * fails. Loop thread only. */
#ifndef QUEUED_KUBE_PLUGIN_H
#define QUEUED_KUBE_PLUGIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/error.h"

struct event_base;
struct plugin;
struct plugin_run;

struct plugin_options {
    const char *version;      /* "client.authentication.k8s.io/v1" */
    const char *command;      /* found in PATH, or a path */
    const json_t *args;       /* list of texts, or NULL */
    const json_t *env;        /* list of {name, value}, or NULL */
    const json_t *cluster;    /* spec.cluster of KUBERNETES_EXEC_INFO, or NULL */
    const char *install_hint; /* for the message when there is no such program, or NULL */
};
/* All is copied; lists have been checked. */
struct plugin *plugin_new(const struct plugin_options *options);
void plugin_free(struct plugin *plugin);
/* Other than 60 seconds, for tests. */
void plugin_set_limit(struct plugin *plugin, int64_t limit_ms);

/* Texts are the receiver's to take (set them to NULL); what is left is wiped. A token, or a certificate and its key, or
 * both. */
struct plugin_answer {
    char *token, *certificate, *key;
    int64_t renew_ms; /* UTC, shortly before they expire; INT64_MAX: the program did not say */
};
typedef void plugin_done(void *ctx, const struct error *err, struct plugin_answer *answer);

/* Run it; `done` comes once, from the loop, with an error or an answer. NULL when it cannot be started. */
MUST_CHECK struct plugin_run *plugin_start(const struct plugin *plugin, struct event_base *base, plugin_done *done,
                                           void *ctx, struct error *err);
/* Kill it; `done` does not come. NULL is fine. */
void plugin_cancel(struct plugin_run *run);

/* Read what a program answered. For plugin.c and the fuzzer. */
MUST_CHECK int plugin_parse(const char *version, const char *bytes, size_t len, int64_t now_ms,
                            struct plugin_answer *out, struct error *err);
void plugin_answer_release(struct plugin_answer *answer);

#endif
