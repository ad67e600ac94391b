/* With the claims where they are, a renaming exists exactly if both sides say the same when every name is replaced by
 * all that is known of what it names. A device is known by its traits and by who has it; a counter set by what it holds
 * and by the devices of the attempt that draw from it. Both sides are written down like that, sorted, and compared.
 *
 * An exchange is looked for once: the members of a kind are sorted, on either side, by what they have (in the same
 * words, but with kinds in the place of claims) and then by names, and the k-th takes the place of the k-th. */
#include "queued/lifecycle/alike.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"

#include "allocator/base/banned.h"

#define CANONICAL (JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY)

struct side {
    json_t *devices;   /* "driver pool device" -> {"traits", "uses": [text]} */
    bool is_tangled;   /* some device draws from several counter sets */
    bool is_anonymous; /* claims are known by their kind alone */
    device_traits_fn *traits;
    void *ctx;
};

static int cmp_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A new array with the texts of an array in order. */
static json_t *sorted(const json_t *texts)
{
    size_t n = json_array_size(texts);
    const char **list = mem_array(const char *, n + 1);
    json_t *out = json_array();

    for (size_t i = 0; i < n; i++)
        list[i] = json_string_value(json_array_get(texts, i));
    qsort(list, n, sizeof(*list), cmp_texts);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(out, json_string(list[i]));
    free(list);
    return out;
}

/* Takes the reference. */
static void add_canonical(json_t *texts, json_t *value)
{
    char *text = json_dumps(value, CANONICAL);

    json_array_append_new(texts, json_string(text));
    free(text);
    json_decref(value);
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value ? value : "";
}

static json_t *device_entry(struct side *side, const json_t *result)
{
    const char *driver = text(result, "driver"), *pool = text(result, "pool"), *device = text(result, "device");
    BUF key = {0};
    json_t *entry, *traits;

    buf_addf(&key, "%s\x1f%s\x1f%s", driver, pool, device);
    entry = json_object_get(side->devices, buf_str(&key));
    if (entry)
        return entry;
    traits = side->traits(side->ctx, driver, pool, device);
    if (!traits)
        traits = json_pack("{s:s}", "itself", buf_str(&key));
    side->is_tangled |= json_array_size(json_object_get(traits, "draws")) > 1;
    entry = json_pack("{s:o, s:[]}", "traits", traits, "uses");
    json_object_set_new(side->devices, buf_str(&key), entry);
    return entry;
}

/* Share ids are names as well. */
static void add_use(struct side *side, const struct claim_devices *claim, size_t i, const json_t *result)
{
    const char *request = text(result, "request");
    json_t *whose = side->is_anonymous && claim->kind ? json_string(claim->kind) : json_integer((json_int_t)i);
    json_t *use =
        json_pack("{s:o, s:s%, s:b, s:b, s:O?}", "claim", whose, "request", request, strcspn(request, "/"), "admin",
                  json_is_true(json_object_get(result, "adminAccess")), "share",
                  json_object_get(result, "shareID") != NULL, "consumes", json_object_get(result, "consumedCapacity"));

    add_canonical(json_object_get(device_entry(side, result), "uses"), use);
}

/* What draws from one set: "driver pool set" -> {"holds", "devices": [text]}. */
static json_t *set_entry(json_t *sets, const json_t *traits, const json_t *draw)
{
    BUF key = {0};
    json_t *entry;

    buf_addf(&key, "%s\x1f%s\x1f%s", text(traits, "driver"), text(traits, "pool"), text(draw, "from"));
    entry = json_object_get(sets, buf_str(&key));
    if (entry)
        return entry;
    entry = json_pack("{s:s, s:s, s:O, s:[]}", "driver", text(traits, "driver"), "pool", text(traits, "pool"), "holds",
                      json_object_get(draw, "holds"), "devices");
    json_object_set_new(sets, buf_str(&key), entry);
    return entry;
}

/* Of a device all but names; *out_set is the set that it is told apart by, NULL if it needs none. */
static json_t *device_words(const struct side *side, const json_t *device, json_t *sets, json_t **out_set)
{
    json_t *traits = json_object_get(device, "traits"), *draws = json_object_get(traits, "draws"), *nameless;
    json_t *uses = sorted(json_object_get(device, "uses"));

    *out_set = NULL;
    if (side->is_tangled || json_array_size(draws) == 0)
        return json_pack("{s:O, s:o}", "traits", traits, "uses", uses);
    *out_set = set_entry(sets, traits, json_array_get(draws, 0));
    nameless = json_deep_copy(traits);
    json_object_del(json_array_get(json_object_get(nameless, "draws"), 0), "from");
    return json_pack("{s:o, s:o}", "traits", nameless, "uses", uses);
}

static void read_side(struct side *side, const struct claim_devices *claims, size_t n, bool is_real)
{
    const json_t *result;
    size_t k;

    side->devices = json_object();
    for (size_t i = 0; i < n; i++)
        json_array_foreach (is_real ? claims[i].real : claims[i].planned, k, result)
            add_use(side, &claims[i], i, result);
}

/* The devices that need no set go to `out`. */
static json_t *read_sets(const struct side *side, json_t *out)
{
    json_t *sets = json_object(), *device, *set;
    const char *key;

    json_object_foreach (side->devices, key, device) {
        json_t *words = device_words(side, device, sets, &set);

        add_canonical(set ? json_object_get(set, "devices") : out, words);
    }
    json_object_foreach (sets, key, set)
        json_object_set_new(set, "devices", sorted(json_object_get(set, "devices")));
    return sets;
}

static json_t *describe(const struct claim_devices *claims, size_t n, bool is_real, device_traits_fn *traits, void *ctx)
{
    struct side side = {.traits = traits, .ctx = ctx};
    json_t *out = json_array(), *sets, *set, *list;
    const char *key;

    read_side(&side, claims, n, is_real);
    sets = read_sets(&side, out);
    json_object_foreach (sets, key, set)
        add_canonical(out, json_incref(set));
    list = sorted(out);
    json_decref(side.devices);
    json_decref(sets);
    json_decref(out);
    return list;
}

static bool are_renamed(const struct claim_devices *claims, size_t n, device_traits_fn *traits, void *ctx)
{
    json_t *planned = describe(claims, n, false, traits, ctx), *real = describe(claims, n, true, traits, ctx);
    bool result = json_equal(planned, real) != 0;

    json_decref(planned);
    json_decref(real);
    return result;
}

/* ---- an exchange ---- */

/* A member on one side: what it is, what it has, and names to decide among equals. */
struct member {
    size_t first, n; /* its claims */
    struct buf kinds, has, names;
};

static int cmp_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    int order = strcmp(buf_str(&x->kinds), buf_str(&y->kinds));

    if (order == 0)
        order = strcmp(buf_str(&x->has), buf_str(&y->has));
    if (order == 0)
        order = strcmp(buf_str(&x->names), buf_str(&y->names));
    return order ? order : (x->first > y->first) - (x->first < y->first);
}

static void add_sorted(struct buf *out, json_t *texts)
{
    json_t *list = sorted(texts);
    char *dump = json_dumps(list, CANONICAL);

    buf_adds(out, dump);
    free(dump);
    json_decref(list);
    json_decref(texts);
}

/* The words are those of its devices, each with all that is on its counter set; the names begin with the set's. */
static void describe_claim(struct side *side, json_t *sets, const json_t *results, struct member *member)
{
    json_t *words = json_array(), *names = json_array(), *set;
    const json_t *result;
    size_t k;

    json_array_foreach (results, k, result) {
        json_t *device = device_entry(side, result), *self = device_words(side, device, sets, &set);
        const json_t *draw = json_array_get(json_object_get(json_object_get(device, "traits"), "draws"), 0);

        add_canonical(words, json_pack("{s:o, s:O?}", "device", self, "set", set));
        json_array_append_new(
            names, json_sprintf("%s %s %s", text(draw, "from"), text(result, "pool"), text(result, "device")));
    }
    add_sorted(&member->has, words);
    add_sorted(&member->names, names);
}

static size_t read_members(const struct claim_devices *claims, size_t n, bool is_real, device_traits_fn *traits,
                           void *ctx, struct member *out)
{
    struct side side = {.traits = traits, .ctx = ctx, .is_anonymous = true};
    json_t *rest = json_array(), *sets;
    size_t n_members = 0;

    read_side(&side, claims, n, is_real);
    sets = read_sets(&side, rest);
    for (size_t i = 0; i < n; i++) {
        if (!claims[i].kind)
            continue;
        if (i == 0 || !claims[i - 1].kind || claims[i - 1].member != claims[i].member)
            out[n_members++] = (struct member){.first = i};
        out[n_members - 1].n++;
        buf_addf(&out[n_members - 1].kinds, "%s\x1f", claims[i].kind);
        describe_claim(&side, sets, is_real ? claims[i].real : claims[i].planned, &out[n_members - 1]);
    }
    qsort(out, n_members, sizeof(*out), cmp_members);
    json_decref(side.devices);
    json_decref(sets);
    json_decref(rest);
    return n_members;
}

static void free_members(struct member *members, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_release(&members[i].kinds);
        buf_release(&members[i].has);
        buf_release(&members[i].names);
    }
    free(members);
}

/* The real devices of each member where those of the planned one stand that it stands for. */
static void exchange(struct claim_devices *claims, size_t n, device_traits_fn *traits, void *ctx)
{
    struct claim_devices *before = mem_array(struct claim_devices, n + 1);
    struct member *planned = mem_array(struct member, n + 1), *real = mem_array(struct member, n + 1);
    size_t n_members = read_members(claims, n, false, traits, ctx, planned);

    read_members(claims, n, true, traits, ctx, real); /* the same number of each kind */
    memcpy(before, claims, n * sizeof(*claims));
    for (size_t m = 0; m < n_members; m++)
        for (size_t c = 0; c < planned[m].n; c++)
            claims[planned[m].first + c].real = before[real[m].first + c].real;
    free_members(planned, n_members);
    free_members(real, n_members);
    free(before);
}

bool claims_are_alike(const struct claim_devices *claims, size_t n, device_traits_fn *traits, void *ctx)
{
    struct claim_devices *exchanged;
    bool result;

    if (are_renamed(claims, n, traits, ctx))
        return true;
    exchanged = mem_array(struct claim_devices, n + 1);
    memcpy(exchanged, claims, n * sizeof(*claims));
    exchange(exchanged, n, traits, ctx);
    result = are_renamed(exchanged, n, traits, ctx);
    free(exchanged);
    return result;
}
