# Sources of gang fit, relative to allocator/.
set(GANG_SOURCES explain.c explain_amounts.c explain_holders.c explain_passing.c explain_problem.c explain_requests.c
  explain_summary.c
  explain_values.c gang.c gang_amounts.c gang_cells.c gang_check.c gang_classes.c gang_devices.c
  gang_elements.c gang_memo.c gang_nodes.c gang_notes.c gang_place.c gang_plan.c gang_question.c gang_replay.c gang_search.c
  gang_survey.c gang_turns.c nodefit.c pod.c score.c score_member.c score_node.c steer.c whatif.c whatif_ends.c whatif_nodes.c workload.c
  grow.c)
