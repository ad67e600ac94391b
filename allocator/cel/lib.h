/* allocator/cel/lib.h - the implementations behind the table of functions, by library. */
#ifndef QUEUED_CEL_LIB_H
#define QUEUED_CEL_LIB_H

#include "allocator/cel/eval.h"
#include "allocator/cel/functions.h"

/* The operand is no value that the function can take. */
static inline struct cel_value cel_no_overload(void)
{
    return cel_error(CEL_NO_OVERLOAD);
}

/* lib_std.c: operators and conversions */
cel_fn cel_fn_not, cel_fn_negate, cel_fn_add, cel_fn_subtract, cel_fn_multiply, cel_fn_divide, cel_fn_modulo,
    cel_fn_less, cel_fn_less_equal, cel_fn_greater, cel_fn_greater_equal, cel_fn_in, cel_fn_size,
    cel_fn_not_strictly_false, cel_fn_identity, cel_fn_type, cel_fn_to_bool, cel_fn_to_bytes, cel_fn_to_double,
    cel_fn_to_duration, cel_fn_to_int, cel_fn_to_string, cel_fn_to_timestamp, cel_fn_to_uint;

/* lib_strings.c */
cel_fn cel_fn_contains, cel_fn_starts_with, cel_fn_ends_with, cel_fn_matches, cel_fn_find, cel_fn_find_all,
    cel_fn_char_at, cel_fn_index_of, cel_fn_last_index_of, cel_fn_lower_ascii, cel_fn_upper_ascii, cel_fn_replace,
    cel_fn_split, cel_fn_substring, cel_fn_trim, cel_fn_join, cel_fn_format, cel_fn_quote;
/* A call of matches, find or findAll whose pattern was compiled beforehand. */
struct cel_value cel_call_regex(struct cel_eval *e, const struct cel_node *node, const struct cel_value *args);
/* Text of the values that the real implementation takes for a string where no type guards: strings, types and what an
 * optional holds of them. */
bool cel_loose_text(struct cel_value v, struct str *out);

/* lib_time.c */
cel_fn cel_fn_full_year, cel_fn_month, cel_fn_day_of_year, cel_fn_day_of_month, cel_fn_date, cel_fn_day_of_week,
    cel_fn_hours, cel_fn_minutes, cel_fn_seconds, cel_fn_milliseconds;

/* lib_lists.c: lists, sets, maps, optionals */
cel_fn cel_fn_slice, cel_fn_flatten, cel_fn_sort, cel_fn_sort_by, cel_fn_range, cel_fn_reverse, cel_fn_distinct,
    cel_fn_is_sorted, cel_fn_min, cel_fn_max, cel_fn_sum_int, cel_fn_sum_uint, cel_fn_sum_double, cel_fn_sum_duration,
    cel_fn_list_index_of, cel_fn_list_last_index_of, cel_fn_includes, cel_fn_includes_48, cel_fn_sets_contains,
    cel_fn_sets_equivalent, cel_fn_sets_intersects, cel_fn_map_insert, cel_fn_optional_of, cel_fn_optional_none,
    cel_fn_optional_non_zero, cel_fn_has_value, cel_fn_value, cel_fn_first, cel_fn_last, cel_fn_unwrap;

/* lib_kubernetes.c */
cel_fn cel_fn_quantity, cel_fn_is_quantity, cel_fn_sign, cel_fn_quantity_add, cel_fn_quantity_sub,
    cel_fn_quantity_greater, cel_fn_quantity_less, cel_fn_quantity_compare, cel_fn_as_float, cel_fn_as_integer,
    cel_fn_is_integer, cel_fn_semver, cel_fn_is_semver, cel_fn_major, cel_fn_minor, cel_fn_patch, cel_fn_semver_greater,
    cel_fn_semver_less, cel_fn_semver_compare, cel_fn_ip, cel_fn_is_ip, cel_fn_ip_canonical, cel_fn_ip_family,
    cel_fn_ip_unspecified, cel_fn_ip_loopback, cel_fn_ip_local_multicast, cel_fn_ip_local_unicast,
    cel_fn_ip_global_unicast, cel_fn_ip_to_string, cel_fn_cidr, cel_fn_is_cidr, cel_fn_contains_ip,
    cel_fn_contains_cidr, cel_fn_cidr_ip, cel_fn_prefix_length, cel_fn_masked, cel_fn_cidr_to_string, cel_fn_url,
    cel_fn_is_url, cel_fn_url_scheme, cel_fn_url_host, cel_fn_url_hostname, cel_fn_url_port, cel_fn_url_path,
    cel_fn_url_query, cel_fn_named_format, cel_fn_validate, cel_fn_unreachable;

#endif
