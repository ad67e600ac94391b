#include "queued/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/checked.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

enum { CONFIG_FILE_MAX = 1 << 20 };

enum kind { TEXT, INTEGER, OCTAL, BYTES, DURATION, CHOICE };

struct choice {
    const char *name;
    int64_t value;
};

static const struct choice clocks[] = {{"real", CONFIG_CLOCK_REAL}, {"virtual", CONFIG_CLOCK_VIRTUAL}, {NULL, 0}};
static const struct choice levels[] = {{"error", 0}, {"warn", 1}, {"info", 2}, {"debug", 3}, {NULL, 0}};
static const struct choice booleans[] = {{"false", 0}, {"true", 1}, {NULL, 0}};
static const struct choice wishes[] = {{"auto", 0}, {"never", 1}, {"always", 2}, {NULL, 0}};
static const struct choice formats[] = {{"text", 0}, {"json", 1}, {NULL, 0}};

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define KIB    INT64_C(1024)
#define AT(f)  offsetof(struct config, f)

/* One more key is one more row. Texts have a maximal length as their range. */
static const struct key {
    const char *name;
    enum kind kind;
    size_t at;
    const char *start; /* the default, as a user would write it */
    int64_t min, max;
    const struct choice *choices;
    const char *argument;
    const char *help;
} keys[] = {
    {"embedded", TEXT, AT(embedded), "", 0, 4096, NULL, "DIR",
     "manage a cluster made of the manifests in this folder or file, in place of Kubernetes"},
    {"kubeconfig", TEXT, AT(kubeconfig), "", 0, 4096, NULL, "FILE",
     "manage the cluster of this kubeconfig; KUBECONFIG of the environment is not looked at"},
    {"context", TEXT, AT(context), "", 0, 253, NULL, "NAME", "context of the kubeconfig; empty: its current one"},
    {"in-cluster", CHOICE, AT(in_cluster), "false", 0, 0, booleans, NULL,
     "manage the cluster that this process runs in, with the service account of its pod; what is done anyway in a pod "
     "when neither embedded nor kubeconfig is given"},
    {"lease", TEXT, AT(lease), "", 0, 507, NULL, "NAMESPACE/NAME",
     "Lease by which one server at a time leads; empty: queued in the namespace of the context or the pod; none: no "
     "lease, for whoever is sure that there is one server"},
    {"lease-duration", DURATION, AT(lease_duration_ms), "10s", 2 * SECOND, 5 * MINUTE, NULL, "TIME",
     "how long a server that leads must be silent until another takes over"},
    {"state", TEXT, AT(state), "", 1, 4096, NULL, "DIR",
     "folder for the database and what else must survive; created with mode 0700"},
    {"listen", TEXT, AT(listen), "127.0.0.1:7676", 0, 300, NULL, "ADDRESS:PORT",
     "serve HTTP here; port 0 lets the system choose one; empty: only the Unix socket"},
    {"socket", TEXT, AT(socket), "", 0, 100, NULL, "PATH",
     "Unix socket of the local administrator; empty: queued.sock in the state folder; none: no socket"},
    {"socket-mode", OCTAL, AT(socket_mode), "0600", 0, 0777, NULL, "MODE",
     "permissions of the Unix socket; whoever may connect is an administrator"},
    {"port-file", TEXT, AT(port_file), "", 0, 4096, NULL, "FILE",
     "write the TCP port to this file once the server is listening"},
    {"clock", CHOICE, AT(clock), "real", 0, 0, clocks, NULL,
     "virtual time stands still until POST /v1/clock/advance moves it; embedded cluster only"},
    {"clock-start", INTEGER, AT(clock_start_ms), "1767225600000", 0, INT64_C(4102444800000), NULL, "MS",
     "where virtual time begins, in milliseconds since 1970 UTC"},
    {"log-level", CHOICE, AT(log_level), "info", 0, 0, levels, NULL, "how much to log"},
    {"log-format", CHOICE, AT(log_format), "text", 0, 0, formats, NULL, "form of a log line"},
    {"release", INTEGER, AT(release), "0", 0, 99, NULL, "X", "behave as for Kubernetes 1.X; 0: what the cluster says"},
    {"features", TEXT, AT(features), "", 0, 1000, NULL, "+NAME,-NAME",
     "switch features of Dynamic Resource Allocation that the release has otherwise, by key or gate"},
    {"bind-classes", TEXT, AT(bind_classes), "", 0, 4096, NULL, "NAME,NAME",
     "device classes that queued alone allocates devices of: it writes the allocations of their claims itself"},
    {"bind-pods", CHOICE, AT(binds_pods), "false", 0, 0, booleans, NULL,
     "bind gangs whose devices are all of bind-classes in kube-scheduler's place: many times faster; for nodes where "
     "it places no others that could take their CPU or memory meanwhile"},
    {"provisioning-class", TEXT, AT(provisioning_class), "", 0, 253, NULL, "NAME",
     "ask the cluster's autoscaler for the nodes that a waiting job lacks, by ProvisioningRequests of this class; "
     "empty: "
     "never"},
    {"provisioning-parameters", TEXT, AT(provisioning_parameters), "", 0, 4096, NULL, "KEY=VALUE,KEY=VALUE",
     "what those requests tell their class beside"},
    {"pod-groups", CHOICE, AT(pod_groups), "auto", 0, 0, wishes, NULL,
     "give each gang a PodGroup, so that kube-scheduler holds it together too; auto: where the cluster has them and "
     "lets queued make them; always: a gang that cannot have one waits"},
    {"max-body-bytes", BYTES, AT(max_body_bytes), "4MiB", KIB, 64 * KIB *KIB, NULL, "SIZE",
     "largest body of a request"},
    {"max-connections", INTEGER, AT(max_connections), "512", 1, 100000, NULL, "N",
     "connections at a time; more are answered 503 and closed"},
    {"request-timeout", DURATION, AT(request_timeout_ms), "30s", 100, HOUR, NULL, "TIME",
     "time for a request to arrive whole, for a reply to be taken, and for an idle connection"},
    {"launch-timeout", DURATION, AT(launch_timeout_ms), "5m", SECOND, 24 * HOUR, NULL, "TIME",
     "time for all members of a gang to run once their gates are open"},
    {"lost-node-timeout", DURATION, AT(lost_node_timeout_ms), "5m", 0, 24 * HOUR, NULL, "TIME",
     "how long a node that does not answer is waited for to end a pod whose grace is over, until it is deleted without "
     "the node's word; 0: for ever"},
    {"reconcile-period", DURATION, AT(reconcile_period_ms), "30s", 100, 24 * HOUR, NULL, "TIME",
     "how often the cluster is compared with the store"},
    {"schedule-delay", DURATION, AT(schedule_delay_ms), "50ms", 0, HOUR, NULL, "TIME",
     "embedded cluster: from an open gate to a node"},
    {"start-delay", DURATION, AT(start_delay_ms), "100ms", 0, HOUR, NULL, "TIME",
     "embedded cluster: from a node to running"},
    {"crash-at", INTEGER, AT(crash_at), "0", 0, 1000000, NULL, "N",
     "for tests: end the process with SIGKILL before its N-th change of the cluster; 0: never"},
};

static const struct action_flag {
    const char *name;
    enum config_action action;
    const char *help;
} action_flags[] = {
    {"help", CONFIG_HELP, "print this text"},
    {"version", CONFIG_VERSION, "print the version"},
    {"print-config", CONFIG_PRINT, "print the configuration that all sources together give, and end"},
};

/* ---- values ---- */

static char **text_at(struct config *config, const struct key *key)
{
    return (char **)(void *)((char *)config + key->at);
}

static int64_t *number_at(struct config *config, const struct key *key)
{
    return (int64_t *)(void *)((char *)config + key->at);
}

/* "64", "64KiB"; the whole text must be used. */
static bool parse_scaled(const char *text, const struct choice *units, int64_t *out)
{
    char *end;
    int64_t number;

    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno)
        return false;
    for (const struct choice *unit = units; unit->name; unit++)
        if (strcmp(end, unit->name) == 0)
            return checked_mul(number, unit->value, out);
    return false;
}

static bool parse_octal(const char *text, int64_t *out)
{
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    *out = strtoll(text, &end, 8);
    return !errno && *end == '\0';
}

static bool parse_choice(const char *text, const struct choice *choices, int64_t *out)
{
    for (const struct choice *c = choices; c->name; c++)
        if (strcmp(text, c->name) == 0) {
            *out = c->value;
            return true;
        }
    return false;
}

static const struct choice no_unit[] = {{"", 1}, {NULL, 0}};
static const struct choice byte_units[] = {{"", 1}, {"KiB", KIB}, {"MiB", KIB *KIB}, {NULL, 0}};
static const struct choice time_units[] = {{"ms", 1}, {"s", SECOND}, {"m", MINUTE}, {"h", HOUR}, {NULL, 0}};

static bool parse_number(const struct key *key, const char *text, int64_t *out)
{
    switch (key->kind) {
    case INTEGER:
        return parse_scaled(text, no_unit, out);
    case BYTES:
        return parse_scaled(text, byte_units, out);
    case DURATION:
        return parse_scaled(text, time_units, out);
    case OCTAL:
        return parse_octal(text, out);
    case CHOICE:
        return parse_choice(text, key->choices, out);
    case TEXT:
        break;
    }
    return false;
}

/* The largest unit that divides the number. */
static void format_scaled(int64_t number, const struct choice *units, struct buf *out)
{
    const struct choice *best = units;

    for (const struct choice *unit = units; unit->name; unit++)
        if (number != 0 && number % unit->value == 0)
            best = unit;
    buf_addf(out, "%" PRId64 "%s", number / best->value, best->name);
}

static void format_number(const struct key *key, int64_t number, struct buf *out)
{
    switch (key->kind) {
    case INTEGER:
        format_scaled(number, no_unit, out);
        break;
    case BYTES:
        format_scaled(number, byte_units, out);
        break;
    case DURATION:
        format_scaled(number, time_units, out);
        break;
    case OCTAL:
        buf_addf(out, "0%" PRIo64, (uint64_t)number);
        break;
    case CHOICE:
        for (const struct choice *c = key->choices; c->name; c++)
            if (c->value == number)
                buf_adds(out, c->name);
        break;
    case TEXT:
        break;
    }
}

/* What a value must look like, in words. */
static void describe(const struct key *key, struct buf *out)
{
    switch (key->kind) {
    case TEXT:
        buf_addf(out, key->min > 0 ? "a text of 1 to %" PRId64 " bytes" : "a text of at most %" PRId64 " bytes",
                 key->max);
        return;
    case CHOICE:
        for (const struct choice *c = key->choices; c->name; c++)
            buf_addf(out, "%s%s", c == key->choices ? "" : " or ", c->name);
        return;
    case INTEGER:
        buf_adds(out, "a number from ");
        break;
    case OCTAL:
        buf_adds(out, "an octal number from ");
        break;
    case BYTES:
        buf_adds(out, "a size (KiB, MiB) from ");
        break;
    case DURATION:
        buf_adds(out, "a time (ms, s, m, h) from ");
        break;
    }
    format_number(key, key->min, out);
    buf_adds(out, " to ");
    format_number(key, key->max, out);
}

static int refuse(const struct key *key, const char *value, struct error *err)
{
    BUF wanted = {0};

    describe(key, &wanted);
    return error_field(err, key->name, "%s must be %s, not '%.100s'", key->name, buf_str(&wanted), value);
}

static bool text_fits(const struct key *key, const char *value)
{
    size_t len = strlen(value);

    for (const unsigned char *c = (const unsigned char *)value; *c; c++)
        if (*c < 0x20 || *c == 0x7f)
            return false;
    return len >= (size_t)key->min && len <= (size_t)key->max;
}

static int set_key(struct config *config, const struct key *key, const char *value, struct error *err)
{
    int64_t number;

    if (key->kind == TEXT) {
        if (!text_fits(key, value))
            return refuse(key, value, err);
        free(*text_at(config, key));
        *text_at(config, key) = mem_strdup(value);
        return 0;
    }
    if (!parse_number(key, value, &number))
        return refuse(key, value, err);
    if (key->kind != CHOICE && (number < key->min || number > key->max))
        return refuse(key, value, err);
    *number_at(config, key) = number;
    return 0;
}

static const struct key *key_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (str_is(name, keys[i].name))
            return &keys[i];
    return NULL;
}

int config_set(struct config *config, const char *name, const char *value, struct error *err)
{
    const struct key *key = key_find(str_of(name));

    if (!key) {
        error_field(err, name, "there is no key '%.60s'", name);
        if (err)
            err->code = ERR_NOT_FOUND;
        return -1;
    }
    return set_key(config, key, value, err);
}

/* Defaults bypass the check of ranges: "state" has none that would do for everybody. */
void config_init(struct config *config)
{
    *config = (struct config){0};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (keys[i].kind == TEXT)
            *text_at(config, &keys[i]) = mem_strdup(keys[i].start);
        else
            parse_number(&keys[i], keys[i].start, number_at(config, &keys[i]));
    }
}

void config_release(struct config *config)
{
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (keys[i].kind == TEXT)
            free(*text_at(config, &keys[i]));
    *config = (struct config){0};
}

/* ---- the file ---- */

static struct str trimmed(struct str s)
{
    while (s.len && isspace((unsigned char)s.ptr[0]))
        s.ptr++, s.len--;
    while (s.len && isspace((unsigned char)s.ptr[s.len - 1]))
        s.len--;
    return s;
}

/* line := [ key "=" value ] [ "#" comment, at the start of the line only: values may hold a # ] */
static int parse_line(struct config *config, struct str line, struct error *err)
{
    struct str left, right;
    const char *equals;
    char *key, *value;
    int result;

    line = trimmed(line);
    if (line.len == 0 || line.ptr[0] == '#')
        return 0;
    equals = memchr(line.ptr, '=', line.len);
    if (!equals)
        return error_set(err, ERR_INVALID, "'%.*s' is not of the form: key = value", line.len > 60 ? 60 : (int)line.len,
                         line.ptr);
    left = trimmed((struct str){line.ptr, (size_t)(equals - line.ptr)});
    right = trimmed((struct str){equals + 1, line.len - (size_t)(equals + 1 - line.ptr)});
    key = mem_strndup(left.ptr, left.len);
    value = mem_strndup(right.ptr, right.len);
    result = config_set(config, key, value, err);
    free(key);
    free(value);
    return result;
}

int config_parse(struct config *config, const char *name, const char *text, struct error *err)
{
    int number = 0;

    while (*text) {
        size_t len = strcspn(text, "\n");

        number++;
        if (parse_line(config, (struct str){text, len}, err) < 0)
            return error_wrap(err, "%s:%d", name, number);
        text += len + (text[len] == '\n');
    }
    return 0;
}

static int read_file(const char *path, struct buf *out, struct error *err)
{
    FILE *file = fopen(path, "re");
    char bytes[4096];
    size_t n;
    int result = 0;

    if (!file)
        return error_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    while (result == 0 && (n = fread(bytes, 1, sizeof(bytes), file)) > 0) {
        buf_add(out, bytes, n);
        if (out->len > CONFIG_FILE_MAX || memchr(bytes, '\0', n))
            result = error_set(err, ERR_INVALID, "%s: is no configuration file", path);
    }
    if (result == 0 && ferror(file))
        result = error_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    fclose(file);
    return result;
}

/* ---- environment and flags ---- */

/* Whether "NAME=value" names this key: QUEUED_MAX_BODY_BYTES is max-body-bytes. Gives the value. */
static const char *environ_value(const char *entry, const char *key)
{
    static const char prefix[] = "QUEUED_";

    if (strncmp(entry, prefix, sizeof(prefix) - 1) != 0)
        return NULL;
    entry += sizeof(prefix) - 1;
    for (; *key; key++, entry++)
        if (*entry != (*key == '-' ? '_' : toupper((unsigned char)*key)))
            return NULL;
    return *entry == '=' ? entry + 1 : NULL;
}

static const char *environ_find(char *const *environ, const char *key)
{
    const char *value = NULL;

    for (; *environ && !value; environ++)
        value = environ_value(*environ, key);
    return value;
}

static int read_environ(struct config *config, char *const *environ, struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const char *value = environ_find(environ, keys[i].name);

        if (value && set_key(config, &keys[i], value, err) < 0)
            return error_wrap(err, "environment");
    }
    return 0;
}

struct flags {
    int argc;
    char *const *argv;
    int at;
};

/* One "--name value", "--name=value" or "--name"; value is NULL for the last. */
static int next_flag(struct flags *flags, struct str *name, const char **value, struct error *err)
{
    const char *arg = flags->argv[flags->at++];
    const char *equals = strchr(arg, '=');

    if (strncmp(arg, "--", 2) != 0 || arg[2] == '\0')
        return error_set(err, ERR_INVALID, "unexpected argument '%.100s'; see --help", arg);
    *name = equals ? (struct str){arg + 2, (size_t)(equals - arg) - 2} : str_of(arg + 2);
    *value = equals ? equals + 1 : NULL;
    return 0;
}

static int flag_value(struct flags *flags, struct str name, const char **value, struct error *err)
{
    if (*value)
        return 0;
    if (flags->at == flags->argc)
        return error_set(err, ERR_INVALID, "--%.*s wants a value; see --help", STR_FMT(name));
    *value = flags->argv[flags->at++];
    return 0;
}

static bool find_action(struct str name, enum config_action *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(action_flags); i++)
        if (str_is(name, action_flags[i].name)) {
            *out = action_flags[i].action;
            return true;
        }
    return false;
}

/* Both passes over the flags: the first (config NULL) finds the file and what is asked, the second sets values. */
static int read_flags(struct config *config, int argc, char *const *argv, const char **file, enum config_action *action,
                      struct error *err)
{
    struct flags flags = {argc, argv, 1};

    while (flags.at < argc) {
        const struct key *key;
        const char *value = NULL;
        struct str name;

        if (next_flag(&flags, &name, &value, err) < 0)
            return -1;
        if (!value && find_action(name, action)) {
            if (*action != CONFIG_PRINT)
                return 0;
            continue;
        }
        key = key_find(name);
        if (!key && !str_is(name, "config"))
            return error_set(err, ERR_INVALID, "there is no flag --%.*s; see --help",
                             name.len > 60 ? 60 : (int)name.len, name.ptr);
        if (flag_value(&flags, name, &value, err) < 0)
            return -1;
        if (!key)
            *file = value;
        else if (config && set_key(config, key, value, err) < 0)
            return error_wrap(err, "flag");
    }
    return 0;
}

int config_load(struct config *config, int argc, char *const *argv, char *const *environ,
                enum config_action *out_action, struct error *err)
{
    const char *file = environ_find(environ, "config");
    BUF text = {0};

    *out_action = CONFIG_RUN;
    if (read_flags(NULL, argc, argv, &file, out_action, err) < 0)
        return -1;
    if (*out_action == CONFIG_HELP || *out_action == CONFIG_VERSION)
        return 0;
    if (file && (read_file(file, &text, err) < 0 || config_parse(config, file, buf_str(&text), err) < 0))
        return -1;
    if (read_environ(config, environ, err) < 0)
        return -1;
    return read_flags(config, argc, argv, &file, out_action, err);
}

/* ---- texts ---- */

void config_help_to(struct buf *out)
{
    buf_adds(out, "queued: a batch job queue for Kubernetes accelerators\n\n"
                  "usage: queued --kubeconfig FILE --state DIR [--KEY VALUE ...]\n"
                  "       queued --embedded DIR --state DIR [--KEY VALUE ...]\n\n");
    for (size_t i = 0; i < ARRAY_SIZE(action_flags); i++)
        buf_addf(out, "  --%s\n        %s\n", action_flags[i].name, action_flags[i].help);
    buf_adds(out, "  --config FILE\n        read lines of the form: key = value\n");
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const struct key *key = &keys[i];
        BUF wanted = {0};

        describe(key, &wanted);
        buf_addf(out, "  --%s %s\n        %s", key->name, key->argument ? key->argument : buf_str(&wanted), key->help);
        if (key->start[0])
            buf_addf(out, " (default %s)", key->start);
        buf_addc(out, '\n');
    }
    buf_adds(out,
             "\nEvery key may also stand in the file, or in the environment as QUEUED_KEY (QUEUED_LOG_LEVEL=debug).\n"
             "Flags win over the environment, the environment over the file.\n");
}

void config_markdown_to(struct buf *out)
{
    buf_adds(out, "| key | value | default | what |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        BUF wanted = {0};

        describe(&keys[i], &wanted);
        buf_addf(out, "| `%s` | %s | %s%s%s | %s |\n", keys[i].name, buf_str(&wanted), keys[i].start[0] ? "`" : "",
                 keys[i].start, keys[i].start[0] ? "`" : "", keys[i].help);
    }
}

void config_format_to(const struct config *config, struct buf *out)
{
    struct config copy = *config; /* only read; the accessors want no const */

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        buf_addf(out, "# %s\n%s = ", keys[i].help, keys[i].name);
        if (keys[i].kind == TEXT)
            buf_adds(out, *text_at(&copy, &keys[i]));
        else
            format_number(&keys[i], *number_at(&copy, &keys[i]), out);
        buf_addc(out, '\n');
    }
}
