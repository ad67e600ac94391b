#include "allocator/gang.h"

#include "allocator/gang_internal.h"

#include "allocator/base/banned.h"

/* The plan on the cluster as it is; when there is none, on the cluster with nothing on it. */
static enum gang_verdict decide(struct gang *gang, struct placement **out)
{
    enum gs_outcome outcome;
    struct ledger *empty;

    if (gang->refusal)
        return GANG_REFUSED;
    outcome = gang_plan(gang, true, out);
    if (outcome == GS_FOUND)
        return *out ? GANG_FITS : GANG_UNDECIDED;
    if (outcome == GS_BUDGET)
        return GANG_UNDECIDED;
    if (gang->evaluation_error) {
        gang->refusal = gang->evaluation_error;
        return GANG_REFUSED;
    }
    empty = ledger_new(gang->snapshot);
    ledger_empty(empty);
    gang->ledger = empty;
    gang->is_empty = true;
    gang->steps = gang->budget;
    outcome = gang_plan(gang, false, NULL);
    gang->ledger = NULL;
    gang->is_empty = false;
    ledger_free(empty);
    /* Undecided on the empty cluster is no proof of "never". */
    return outcome == GS_NONE ? gang_passing(gang) : GANG_WAITS;
}

int gang_fit(const struct snapshot *snapshot, const struct gang_spec *spec, struct arena *arena,
             struct gang_result *out, struct error *err)
{
    struct gang gang;
    struct placement *placement = NULL;

    *out = (struct gang_result){0};
    if (gang_read(&gang, snapshot, spec, NULL, arena, err) < 0) {
        gang_release(&gang);
        return -1;
    }
    out->verdict = decide(&gang, &placement);
    out->placement = out->verdict == GANG_FITS ? placement : NULL;
    out->steps = gang.budget - gang.steps;
    out->explanation = gang_explain(&gang, out->verdict);
    gang_release(&gang);
    return 0;
}

void gang_result_release(struct gang_result *result)
{
    json_decref(result->explanation);
    result->explanation = NULL;
}

/* ---- placements as JSON ---- */

static const char *const source_names[] = {
    [GANG_CLAIM_OWN] = "own",
    [GANG_CLAIM_SHARED] = "shared",
    [GANG_CLAIM_EXISTING] = "existing",
    [GANG_CLAIM_EXTENDED] = "extended",
};

static json_t *claim_json(const struct placed_claim *claim)
{
    json_t *out = json_pack("{s:s, s:s}", "podClaim", claim->pod_claim, "source", source_names[claim->source]);

    if (claim->source == GANG_CLAIM_SHARED)
        json_object_set_new(out, "shared", json_integer((json_int_t)claim->shared));
    else
        json_object_set_new(out, "allocation", allocation_to_json(&claim->allocation, NULL, NULL));
    return out;
}

json_t *placement_to_json(const struct placement *placement, const struct gang_spec *spec)
{
    json_t *members = json_array(), *shared = json_array(), *out;

    for (size_t i = 0; i < placement->n_members; i++) {
        const struct placed_member *member = &placement->members[i];
        json_t *claims = json_array(), *one;

        for (size_t c = 0; c < member->n_claims; c++)
            json_array_append_new(claims, claim_json(&member->claims[c]));
        one = json_pack("{s:s, s:I, s:s, s:o}", "group", spec->groups[member->group].name, "index",
                        (json_int_t)member->index, "node", member->node, "claims", claims);
        if (member->turn)
            json_object_set_new(one, "turn", json_integer((json_int_t)member->turn));
        json_array_append_new(members, one);
    }
    for (size_t s = 0; s < placement->n_shared; s++)
        json_array_append_new(shared, allocation_to_json(&placement->shared[s], NULL, NULL));
    out = json_pack("{s:o, s:o, s:b}", "members", members, "shared", shared, "bindOnly", placement->bind_only);
    if (placement->needs_turns)
        json_object_set_new(out, "needsTurns", json_true());
    if (placement->bind_reason)
        json_object_set_new(out, "bindReason", json_string(placement->bind_reason));
    return out;
}
