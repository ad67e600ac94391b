/* Plans and allocations: the same but for names, or not. */
#include "test/support/cmocka.h"

#include <string.h>

#include "queued/lifecycle/alike.h"

/* Devices of driver d, named "pool/device". Boards of two; cards that are cut in parts; one that is in two sets. */
#define DEVICE(pool, name, attributes, draws)                                                                          \
    "'" pool "/" name "': {'driver': 'd', 'pool': '" pool "', 'self': {" attributes "}, 'draws': [" draws "]}"
#define DRAW(set, holds, takes) "{'from': '" set "', 'holds': {'m': '" holds "'}, 'takes': {'m': '" takes "'}}"
static const char inventory[] =
    "{" DEVICE("n1", "a0", "'board': 'a'", "") ", " DEVICE("n1", "a1", "'board': 'a'", "") ", " //
    DEVICE("n1", "b0", "'board': 'b'", "") ", " DEVICE("n1", "b1", "'board': 'b'", "") ", "     //
    DEVICE("n2", "a0", "'board': 'a'", "") ", "                                                 //
    DEVICE("n1", "w0", "'part': 'whole'", DRAW("c0", "8", "8")) ", "                            //
    DEVICE("n1", "w1", "'part': 'whole'", DRAW("c1", "8", "8")) ", "                            //
    DEVICE("n1", "w2", "'part': 'whole'", DRAW("c2", "16", "8")) ", "                           //
    DEVICE("n1", "h0", "'part': 'half'", DRAW("c0", "8", "4")) ", "                             //
    DEVICE("n1", "k0", "'part': 'half'", DRAW("c0", "8", "4")) ", "                             //
    DEVICE("n1", "h1", "'part': 'half'", DRAW("c1", "8", "4")) ", "                             //
    DEVICE("n1", "k1", "'part': 'half'", DRAW("c1", "8", "4")) ", "                             //
    DEVICE("n1", "x", "'part': 'cross'", DRAW("c0", "8", "1") ", " DRAW("c1", "8", "1")) "}";

/* Claims are separated by "|", their results by blanks: request:pool/device, with =amount of a share. In
 * front of a claim of a member that others may stand for: its group, its number, and the claim ("A0g"). */
static const struct alike_case {
    const char *name, *planned, *real;
    bool are_alike;
} alike_cases[] = {
    {"the plan itself", "r:n1/a0 r:n1/b0", "r:n1/a0 r:n1/b0", true},
    {"in another order", "r:n1/a0 r:n1/b0", "r:n1/b0 r:n1/a0", true},
    {"members with each other's devices", "r:n1/a0 | r:n1/a1", "r:n1/a1 | r:n1/a0", true},
    {"one that the plan does not have", "r:n1/a0", "r:n1/a1", true},
    {"a pair of either board", "r:n1/a0 r:n1/b0 | r:n1/a1 r:n1/b1", "r:n1/a1 r:n1/b0 | r:n1/a0 r:n1/b1", true},
    {"another board", "r:n1/a0 r:n1/a1", "r:n1/a0 r:n1/b1", false},
    {"members that exchange boards", "r:n1/a0 | r:n1/b0", "r:n1/b0 | r:n1/a0", false},
    {"another node", "r:n1/a0", "r:n2/a0", false},
    {"a device that nobody knows", "r:n1/a0", "r:n1/new", false},
    {"an unknown one that was planned", "r:n1/new", "r:n1/new", true},
    {"one too few", "r:n1/a0 r:n1/a1", "r:n1/a0", false},
    {"one too many", "r:n1/a0", "r:n1/a0 r:n1/a1", false},
    {"requests that exchange unlike devices", "r:n1/a0 s:n1/b0", "r:n1/b0 s:n1/a0", false},
    {"an alternative by its request's name", "r/big:n1/a0", "r:n1/a1", true},
    {"two claims on one device, planned on two", "r:n1/a0=1 | r:n1/a1=1", "r:n1/a0=1 | r:n1/a0=1", false},
    {"two claims on two devices, planned on one", "r:n1/a0=1 | r:n1/a0=1", "r:n1/a0=1 | r:n1/a1=1", false},
    {"a shared device by another name", "r:n1/a0=1 | r:n1/a0=2", "r:n1/a1=1 | r:n1/a1=2", true},
    {"shares of other sizes", "r:n1/a0=1 | r:n1/a0=2", "r:n1/a0=2 | r:n1/a0=1", false},
    {"the sharers change", "r:n1/a0=1 | r:n1/a0=1 | r:n1/a1=1", "r:n1/a0=1 | r:n1/a1=1 | r:n1/a1=1", false},
    {"a whole card and halves swap cards", "r:n1/w0 | r:n1/h1 | r:n1/k1", "r:n1/w1 | r:n1/h0 | r:n1/k0", true},
    {"halves of one card, then of two", "r:n1/h0 | r:n1/k0", "r:n1/h0 | r:n1/k1", false},
    {"halves of two cards, then of one", "r:n1/h0 | r:n1/h1", "r:n1/h0 | r:n1/k0", false},
    {"halves that change places on their card", "r:n1/h0 | r:n1/k0", "r:n1/k0 | r:n1/h0", true},
    {"a card that holds more", "r:n1/w0", "r:n1/w2", false},
    {"a device of two cards keeps them where they are", "r:n1/x | r:n1/h0", "r:n1/x | r:n1/h1", false},
    {"members of a kind with unlike devices", "A0g r:n1/a0 | A1g r:n1/b0", "r:n1/b0 | r:n1/a0", true},
    {"in a ring of three", "A0g r:n1/a0 | A1g r:n1/b0 | A2g r:n1/w0", "r:n1/b0 | r:n1/w0 | r:n1/a0", true},
    {"and by another name", "A0g r:n1/a0 | A1g r:n1/b0", "r:n1/b1 | r:n1/a1", true},
    {"members of two kinds with unlike devices", "A0g r:n1/a0 | B0g r:n1/b0", "r:n1/b0 | r:n1/a0", false},
    {"not what another member has", "A0g r:n1/a0 | A1g r:n1/b0", "r:n1/b0 | r:n1/b1", false},
    {"all of what a member has", "A0g r:n1/a0 | A0h r:n1/a1 | A1g r:n1/b0 | A1h r:n1/b1",
     "r:n1/b0 | r:n1/b1 | r:n1/a0 | r:n1/a1", true},
    {"half of what a member has", "A0g r:n1/a0 | A0h r:n1/a1 | A1g r:n1/b0 | A1h r:n1/b1",
     "r:n1/b0 | r:n1/a1 | r:n1/a0 | r:n1/b1", false},
    {"the claims of a member do not change places", "A0g r:n1/a0 | A0h r:n1/b0", "r:n1/b0 | r:n1/a0", false},
    {"halves of a kind over two cards", "A0g r:n1/h0 | A1g r:n1/k0 | A2g r:n1/h1 | A3g r:n1/k1",
     "r:n1/h0 | r:n1/h1 | r:n1/k0 | r:n1/k1", true},
    {"two on one card and one on the other", "A0g r:n1/h0 | A1g r:n1/k0 | A2g r:n1/h1", "r:n1/h0 | r:n1/h1 | r:n1/k1",
     true},
    {"beside a member of another kind", "A0g r:n1/h0 | A1g r:n1/h1 | r:n1/k1", "r:n1/h1 | r:n1/h0 | r:n1/k0", true},
    {"sharers of a kind", "A0g r:n1/a0=1 | A1g r:n1/a0=1 | A2g r:n1/a1=1", "r:n1/a1=1 | r:n1/a0=1 | r:n1/a1=1", true},
    {"sharers of a kind on one device each", "A0g r:n1/a0=1 | A1g r:n1/a0=1 | A2g r:n1/a1=1",
     "r:n1/a0=1 | r:n1/a1=1 | r:n1/b0=1", false},
    {"and what is on them may change places", "r:n1/x | r:n1/h0", "r:n1/x | r:n1/k0", true},
};

static json_t *parse(const char *quoted)
{
    char text[8192];
    json_t *value;

    assert_true(strlen(quoted) < sizeof(text));
    strncpy(text, quoted, sizeof(text));
    for (char *c = text; *c; c++)
        if (*c == '\'')
            *c = '"';
    value = json_loads(text, 0, NULL);
    assert_non_null(value);
    return value;
}

static json_t *traits_of(void *ctx, const char *driver, const char *pool, const char *device)
{
    json_t *key = json_sprintf("%s/%s", pool, device), *found = json_object_get(ctx, json_string_value(key));

    assert_string_equal(driver, "d");
    json_decref(key);
    return json_incref(found);
}

static json_t *result_of(const char *word, size_t len)
{
    size_t request = (size_t)((const char *)memchr(word, ':', len) - word), pool = request + 1, device, end;
    json_t *result;

    for (device = pool; word[device - 1] != '/' || device == pool; device++)
        continue;
    for (end = device; end < len && word[end] != '='; end++)
        continue;
    result = json_pack("{s:s%, s:s, s:s%, s:s%}", "request", word, request, "driver", "d", "pool", word + pool,
                       device - 1 - pool, "device", word + device, end - device);
    if (end < len) {
        json_object_set_new(result, "shareID", json_stringn(word, len)); /* any text */
        json_object_set_new(result, "consumedCapacity", json_pack("{s:s%}", "m", word + end + 1, len - end - 1));
    }
    return result;
}

/* An array with the results of each claim. */
static json_t *claims_of(const char *text)
{
    json_t *claims = json_pack("[[]]");

    while (*text) {
        size_t len = strcspn(text, " ");

        if (*text == '|')
            json_array_append_new(claims, json_array());
        else if (memchr(text, ':', len))
            json_array_append_new(json_array_get(claims, json_array_size(claims) - 1), result_of(text, len));
        text += len + (text[len] == ' ');
    }
    return claims;
}

/* "A0g" in front of the claims of the plan, in order. */
static void read_kinds(const char *text, struct claim_devices *claims, char kinds[][3])
{
    size_t i = 0;

    for (const char *c = text; *c; c++) {
        i += *c == '|';
        if (*c < 'A' || *c > 'Z')
            continue;
        claims[i].member = (size_t)(c[1] - '0');
        kinds[i][0] = c[0];
        kinds[i][1] = c[2];
        claims[i].kind = kinds[i];
    }
}

static void test_alike__case(void **state)
{
    const struct alike_case *c = *state;
    json_t *devices = parse(inventory), *planned = claims_of(c->planned), *real = claims_of(c->real);
    struct claim_devices claims[8];
    char kinds[8][3] = {{0}};
    size_t n = json_array_size(planned);

    assert_int_equal(n, json_array_size(real));
    for (size_t i = 0; i < n; i++)
        claims[i] = (struct claim_devices){.planned = json_array_get(planned, i), .real = json_array_get(real, i)};
    read_kinds(c->planned, claims, kinds);
    assert_int_equal(claims_are_alike(claims, n, traits_of, devices), c->are_alike);
    for (size_t i = 0; i < n; i++) /* there and back */
    {
        claims[i].planned = json_array_get(real, i);
        claims[i].real = json_array_get(planned, i);
    }
    if (!strstr(c->planned, "r/"))
        assert_int_equal(claims_are_alike(claims, n, traits_of, devices), c->are_alike);
    json_decref(devices);
    json_decref(planned);
    json_decref(real);
}

int main(void)
{
    return RUN_TABLE(test_alike__case, alike_cases);
}
