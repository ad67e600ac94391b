/* What a pod takes of a node beside devices: amounts and host ports, counted as kube-scheduler counts them.
 *
 * Containers add up; sidecars (init containers that restart always) add to all that starts after them; ordinary init
 * containers run one at a time beside the sidecars before them, so the largest moment counts. Pod-level resources
 * replace the sum where they are given; the overhead comes on top. */
#include "allocator/internal.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/nodecheck.h"

#include "allocator/base/banned.h"

/* A growing sum per resource, in the arena of the result. */
struct sums {
    struct arena *arena;
    struct resource_amount *items;
    size_t n, cap;
};

static struct resource_amount *sum_of(struct sums *sums, const char *name)
{
    for (size_t i = 0; i < sums->n; i++)
        if (text_is(sums->items[i].name, name))
            return &sums->items[i];
    if (sums->n == sums->cap) {
        struct resource_amount *more = arena_array(sums->arena, struct resource_amount, sums->cap * 2 + 8);

        if (sums->n)
            memcpy(more, sums->items, sums->n * sizeof(*more));
        sums->items = more;
        sums->cap = sums->cap * 2 + 8;
    }
    sums->items[sums->n] = (struct resource_amount){name, quantity_of_int(0)};
    return &sums->items[sums->n++];
}

static void add(struct sums *into, const struct sums *from)
{
    for (size_t i = 0; i < from->n; i++) {
        struct resource_amount *sum = sum_of(into, from->items[i].name);

        sum->amount = quantity_add(&sum->amount, &from->items[i].amount, into->arena);
    }
}

static void raise(struct sums *into, const struct sums *to)
{
    for (size_t i = 0; i < to->n; i++) {
        struct resource_amount *sum = sum_of(into, to->items[i].name);

        if (quantity_cmp(&sum->amount, &to->items[i].amount) < 0)
            sum->amount = to->items[i].amount;
    }
}

struct pod_reader {
    const struct load *load;
    bool only_limits;
    struct host_port *ports;
    size_t n_ports, cap_ports;
};

/* Requests, and for resources that only have a limit, the limit; or the limits alone. */
static int read_amounts(const json_t *holder, const struct load *load, bool only_limits, struct sums *out,
                        struct error *err)
{
    const json_t *resources, *map, *value;
    const char *name;

    if (read_object(holder, "resources", &resources, err) < 0)
        return -1;
    for (int limits = 1; limits >= only_limits; limits--) {
        const char *key = limits ? "limits" : "requests";

        if (read_object(resources, key, &map, err) < 0)
            return error_in(err, "resources");
        json_object_foreach((json_t *)map, name, value)
        {
            struct resource_amount *sum = sum_of(out, load_symbol(load, name));

            if (read_quantity(value, load->arena, &sum->amount, err) < 0)
                return error_in(err, "resources.%s.%s", key, name);
            if (quantity_sign(&sum->amount) < 0) {
                error_set(err, ERR_INVALID, "must not be negative");
                return error_in(err, "resources.%s.%s", key, name);
            }
        }
    }
    return 0;
}

static int read_port(struct pod_reader *reader, const json_t *port, bool host_network, struct error *err)
{
    struct host_port out = {0};
    int64_t number = 0;

    if (read_int(port, "hostPort", &number, err) < 0 ||
        (!number && host_network && read_int(port, "containerPort", &number, err) < 0) ||
        read_text(port, "hostIP", reader->load->arena, "", &out.ip, err) < 0 ||
        read_text(port, "protocol", reader->load->arena, "TCP", &out.protocol, err) < 0)
        return -1;
    if (number <= 0)
        return 0;
    if (number > 65535)
        return error_field(err, "hostPort", "must be a port number");
    out.port = (int32_t)number;
    if (reader->n_ports == reader->cap_ports) {
        struct host_port *more = arena_array(reader->load->arena, struct host_port, reader->cap_ports * 2 + 4);

        if (reader->n_ports)
            memcpy(more, reader->ports, reader->n_ports * sizeof(*more));
        reader->ports = more;
        reader->cap_ports = reader->cap_ports * 2 + 4;
    }
    reader->ports[reader->n_ports++] = out;
    return 0;
}

static int read_ports(struct pod_reader *reader, const json_t *container, bool host_network, struct error *err)
{
    const json_t *ports, *port;
    size_t i;

    if (read_array(container, "ports", &ports, err) < 0)
        return -1;
    json_array_foreach(ports, i, port)
    {
        if (read_port(reader, port, host_network, err) < 0)
            return error_in(err, "ports[%zu]", i);
    }
    return 0;
}

static bool is_sidecar(const json_t *container)
{
    const char *policy = json_string_value(member(container, "restartPolicy"));

    return policy && text_is(policy, "Always");
}

/* One container: its requests into the sum of what runs, or into the largest moment of initialisation. */
static int count_container(struct pod_reader *reader, const json_t *container, bool is_init, bool host_network,
                           struct sums *running, struct sums *largest, struct error *err)
{
    struct sums mine = {.arena = reader->load->arena};

    if (!json_is_object(container))
        return error_set(err, ERR_INVALID, "must be an object");
    if (read_amounts(container, reader->load, reader->only_limits, &mine, err) < 0)
        return -1;
    if ((!is_init || is_sidecar(container)) && read_ports(reader, container, host_network, err) < 0)
        return -1;
    if (!is_init || is_sidecar(container)) {
        add(running, &mine);
        return 0;
    }
    add(&mine, running); /* the sidecars started before it */
    raise(largest, &mine);
    return 0;
}

static int count_containers(struct pod_reader *reader, const json_t *spec, struct sums *running, struct error *err)
{
    struct sums largest = {.arena = reader->load->arena};
    bool host_network = json_is_true(member(spec, "hostNetwork"));

    for (int is_init = 1; is_init >= 0; is_init--) {
        const char *key = is_init ? "initContainers" : "containers";
        const json_t *array, *container;
        size_t i;

        if (read_array(spec, key, &array, err) < 0)
            return -1;
        json_array_foreach(array, i, container)
        {
            if (count_container(reader, container, is_init, host_network, running, &largest, err) < 0)
                return error_in(err, "%s[%zu]", key, i);
        }
    }
    raise(running, &largest);
    return 0;
}

static bool has_sum(const struct sums *sums, const char *name)
{
    for (size_t i = 0; i < sums->n; i++)
        if (text_is(sums->items[i].name, name))
            return true;
    return false;
}

/* What is not limited is not limited by the overhead either. */
static int count_overhead(const json_t *spec, const struct load *load, bool only_limits, struct sums *running,
                          struct error *err)
{
    struct sums overhead = {.arena = load->arena}, whole = {.arena = load->arena};
    const json_t *map, *value;
    const char *name;

    if (read_amounts(spec, load, only_limits, &whole, err) < 0 || read_object(spec, "overhead", &map, err) < 0)
        return -1;
    for (size_t i = 0; i < whole.n; i++)
        sum_of(running, whole.items[i].name)->amount = whole.items[i].amount;
    json_object_foreach((json_t *)map, name, value)
    {
        if (only_limits && !has_sum(running, name))
            continue;
        if (read_quantity(value, load->arena, &sum_of(&overhead, load_symbol(load, name))->amount, err) < 0)
            return error_in(err, "overhead.%s", name);
    }
    add(running, &overhead);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct resource_amount *)a)->name, ((const struct resource_amount *)b)->name);
}

/* What all containers together take, or may take, at the largest moment. */
static int count_pod(struct pod_reader *reader, const json_t *spec, struct sums *out, struct error *err)
{
    if (!json_is_object(spec))
        return error_set(err, ERR_INVALID, "must be an object");
    if (count_containers(reader, spec, out, err) < 0 ||
        count_overhead(spec, reader->load, reader->only_limits, out, err) < 0)
        return -1;
    return 0;
}

int pod_demand_parse(const json_t *spec, struct symbols *symbols, struct arena *arena, struct pod_demand *out,
                     struct error *err)
{
    struct load load = {.arena = arena, .symbols = symbols};
    struct pod_reader reader = {.load = &load};
    struct sums running = {.arena = arena};

    *out = (struct pod_demand){0};
    if (count_pod(&reader, spec, &running, err) < 0)
        return -1;
    sum_of(&running, load_symbol(&load, "pods"))->amount = quantity_of_int(1);
    qsort(running.items, running.n, sizeof(*running.items), by_name);
    *out = (struct pod_demand){running.items, running.n, reader.ports, reader.n_ports};
    return 0;
}

int pod_resources_each(const json_t *pod, bool only_limits, struct arena *arena,
                       void (*each)(void *ctx, const char *resource, const struct quantity *amount), void *ctx,
                       struct error *err)
{
    struct load load = {.arena = arena};
    struct pod_reader reader = {.load = &load, .only_limits = only_limits};
    struct sums sums = {.arena = arena};

    if (count_pod(&reader, member(pod, "spec"), &sums, err) < 0)
        return error_in(err, "spec");
    if (sums.n)
        qsort(sums.items, sums.n, sizeof(*sums.items), by_name);
    for (size_t i = 0; i < sums.n; i++)
        each(ctx, sums.items[i].name, &sums.items[i].amount);
    return 0;
}
