/* queued/config.h - what an administrator can set: one table of keys, read from a file, the environment and flags.
 *
 * A later source wins: default, then the file (--config FILE: "key = value" lines, # comments), then the environment
 * (QUEUED_MAX_CONNECTIONS for max-connections), then flags (--max-connections 100 or --max-connections=100). Help text,
 * the printed configuration and the documentation come from the same table. Unknown keys and values out of range are
 * refused where they stand. */
#ifndef QUEUED_CONFIG_H
#define QUEUED_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/error.h"
#include "allocator/base/str.h"

struct config {
    char *embedded;   /* folder or file of manifests, or "" */
    char *kubeconfig; /* file, or "" */
    char *context;    /* of the kubeconfig; "" is its current one */
    int64_t in_cluster;
    char *lease; /* "NAMESPACE/NAME", "NAME", "none", or "" for "queued" in the namespace of the context or pod */
    int64_t lease_duration_ms;
    char *state;
    char *listen; /* "ADDRESS:PORT", or "" for no TCP */
    char *socket; /* path; "" is queued.sock in the state folder, "none" is no socket */
    int64_t socket_mode;
    char *port_file;
    int64_t clock; /* an enum config_clock */
    int64_t clock_start_ms;
    int64_t log_level;  /* 0 error .. 3 debug, as enum log_level */
    int64_t log_format; /* 0 text, 1 json, as enum log_format */
    int64_t release;
    char *features;                /* "+NAME,-NAME", or "" */
    int64_t pod_groups;            /* 0 auto, 1 never, 2 always, as enum pod_groups */
    char *bind_classes;            /* "NAME,NAME", or "" */
    int64_t binds_pods;            /* 0 no, 1 yes */
    char *provisioning_class;      /* or "": no nodes are asked for */
    char *provisioning_parameters; /* "KEY=VALUE,KEY=VALUE", or "" */
    int64_t max_body_bytes;
    int64_t max_connections;
    int64_t request_timeout_ms;
    int64_t launch_timeout_ms;
    int64_t lost_node_timeout_ms; /* 0: never */
    int64_t reconcile_period_ms;
    int64_t schedule_delay_ms;
    int64_t start_delay_ms;
    int64_t crash_at;
};

enum config_clock { CONFIG_CLOCK_REAL, CONFIG_CLOCK_VIRTUAL };

/* What the command line asks for beside values. */
enum config_action { CONFIG_RUN, CONFIG_HELP, CONFIG_VERSION, CONFIG_PRINT };

/* The defaults. Every other function wants an initialised configuration. */
void config_init(struct config *config);
void config_release(struct config *config);

/* Set one key from text. Returns 0, or -1 with ERR_NOT_FOUND (no such key) or ERR_INVALID; err->field is the key. */
MUST_CHECK int config_set(struct config *config, const char *key, const char *value, struct error *err);

/* Read "key = value" lines. Failures open with "name:line: ". */
MUST_CHECK int config_parse(struct config *config, const char *name, const char *text, struct error *err);

/* All sources in their order; environ is a NULL-terminated array of "NAME=value". On CONFIG_HELP and CONFIG_VERSION
 * nothing was read. Returns 0, or -1 with words for the person who typed it. */
MUST_CHECK int config_load(struct config *config, int argc, char *const *argv, char *const *environ,
                           enum config_action *out_action, struct error *err);

/* The help text; the table of keys as Markdown (for the room's README); the values in the form that config_parse reads.
 */
void config_help_to(struct buf *out);
void config_markdown_to(struct buf *out);
void config_format_to(const struct config *config, struct buf *out);

#endif
