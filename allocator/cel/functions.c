/* The table of functions. Rows of one function stand in the order in which the real environment declares them: the
 * first that fits decides the static result type, and is tried first at run time. */
#include "allocator/cel/functions.h"

#include <string.h>

#include "allocator/cel/lib.h"

#include "allocator/base/banned.h"

#define T(id)     &cel_t_##id
#define N_OF(...) (sizeof((const struct cel_type *const[]){__VA_ARGS__}) / sizeof(void *))

/* Rule of cost, how operands are evaluated, implementation (NULL with a singleton), result type, parameter types. */
#define ROW(member, ovl, bind, fn, res, ...)                                                                           \
    {                                                                                                                  \
        .id = OVL_##ovl, .is_member = (member), .n_params = N_OF(__VA_ARGS__), .result = (res),                        \
        .params = {__VA_ARGS__}, .binding = CEL_BIND_##bind, .eval = (fn)                                              \
    }
#define GLOBAL(...) ROW(false, __VA_ARGS__)
#define METHOD(...) ROW(true, __VA_ARGS__)
#define NULLARY(fn, res)                                                                                               \
    {                                                                                                                  \
        .id = OVL_NONE, .result = (res), .binding = CEL_BIND_VARIADIC, .eval = (fn)                                    \
    }
/* Name, rule of cost or planning, overloads, and for a singleton its implementation and traits. */
#define FUNCTION(text, fn_id, list, ...)                                                                               \
    {                                                                                                                  \
        .name = (text), .id = FN_##fn_id, .overloads = rows_##list, .n_overloads = ARRAY_SIZE(rows_##list),            \
        __VA_ARGS__                                                                                                    \
    }

#define PLAIN(text, fn_id, list) FUNCTION(text, fn_id, list, .binding = CEL_BIND_NONE)

/* clang-format off */
static const struct cel_overload rows_not_op[] = {
    GLOBAL(NONE, NONE, NULL, T(bool), T(bool)),
};
static const struct cel_overload rows_negate_op[] = {
    GLOBAL(NONE, NONE, NULL, T(double), T(double)),
    GLOBAL(NONE, NONE, NULL, T(int), T(int)),
};
static const struct cel_overload rows_in_op[] = {
    GLOBAL(IN_LIST, NONE, NULL, T(bool), T(a), T(list_a)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(a), T(map_ab)),
};
static const struct cel_overload rows_not_strictly_false[] = {
    GLOBAL(NONE, UNARY, cel_fn_not_strictly_false, T(bool), T(bool)),
};
static const struct cel_overload rows_sort_by_associated_keys[] = {
    METHOD(LIST_SORT_BY, NONE, NULL, T(list_a), T(list_a), T(list_int)),
    METHOD(LIST_SORT_BY, NONE, NULL, T(list_a), T(list_a), T(list_uint)),
    METHOD(LIST_SORT_BY, NONE, NULL, T(list_a), T(list_a), T(list_double)),
    METHOD(LIST_SORT_BY, NONE, NULL, T(list_a), T(list_a), T(list_bool)),
    METHOD(LIST_SORT_BY, NONE, NULL, T(list_a), T(list_a), T(list_duration)),
    METHOD(LIST_SORT_BY, NONE, NULL, T(list_a), T(list_a), T(list_timestamp)),
    METHOD(LIST_SORT_BY_TEXTS, NONE, NULL, T(list_a), T(list_a), T(list_string)),
    METHOD(LIST_SORT_BY_TEXTS, NONE, NULL, T(list_a), T(list_a), T(list_bytes)),
};
static const struct cel_overload rows_not_equal_op[] = {
    GLOBAL(NOT_EQUALS, NONE, NULL, T(bool), T(a), T(a)),
};
static const struct cel_overload rows_modulo_op[] = {
    GLOBAL(NONE, NONE, NULL, T(int), T(int), T(int)),
    GLOBAL(NONE, NONE, NULL, T(uint), T(uint), T(uint)),
};
static const struct cel_overload rows_and_op[] = {
    GLOBAL(LOGICAL_AND, NONE, NULL, T(bool), T(bool), T(bool)),
};
static const struct cel_overload rows_multiply_op[] = {
    GLOBAL(NONE, NONE, NULL, T(double), T(double), T(double)),
    GLOBAL(NONE, NONE, NULL, T(int), T(int), T(int)),
    GLOBAL(NONE, NONE, NULL, T(uint), T(uint), T(uint)),
};
static const struct cel_overload rows_add_op[] = {
    GLOBAL(ADD_BYTES, NONE, NULL, T(bytes), T(bytes), T(bytes)),
    GLOBAL(NONE, NONE, NULL, T(double), T(double), T(double)),
    GLOBAL(NONE, NONE, NULL, T(duration), T(duration), T(duration)),
    GLOBAL(NONE, NONE, NULL, T(timestamp), T(duration), T(timestamp)),
    GLOBAL(NONE, NONE, NULL, T(timestamp), T(timestamp), T(duration)),
    GLOBAL(NONE, NONE, NULL, T(int), T(int), T(int)),
    GLOBAL(ADD_LIST, NONE, NULL, T(list_a), T(list_a), T(list_a)),
    GLOBAL(ADD_STRING, NONE, NULL, T(string), T(string), T(string)),
    GLOBAL(NONE, NONE, NULL, T(uint), T(uint), T(uint)),
};
static const struct cel_overload rows_subtract_op[] = {
    GLOBAL(NONE, NONE, NULL, T(double), T(double), T(double)),
    GLOBAL(NONE, NONE, NULL, T(duration), T(duration), T(duration)),
    GLOBAL(NONE, NONE, NULL, T(int), T(int), T(int)),
    GLOBAL(NONE, NONE, NULL, T(timestamp), T(timestamp), T(duration)),
    GLOBAL(NONE, NONE, NULL, T(duration), T(timestamp), T(timestamp)),
    GLOBAL(NONE, NONE, NULL, T(uint), T(uint), T(uint)),
};
static const struct cel_overload rows_divide_op[] = {
    GLOBAL(NONE, NONE, NULL, T(double), T(double), T(double)),
    GLOBAL(NONE, NONE, NULL, T(int), T(int), T(int)),
    GLOBAL(NONE, NONE, NULL, T(uint), T(uint), T(uint)),
};
static const struct cel_overload rows_less_equal_op[] = {
    GLOBAL(NONE, NONE, NULL, T(bool), T(bool), T(bool)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(int), T(int)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(int), T(double)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(int), T(uint)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(uint), T(uint)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(uint), T(double)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(uint), T(int)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(double), T(double)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(double), T(int)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(double), T(uint)),
    GLOBAL(ORDER_TEXTS, NONE, NULL, T(bool), T(string), T(string)),
    GLOBAL(ORDER_TEXTS, NONE, NULL, T(bool), T(bytes), T(bytes)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(timestamp), T(timestamp)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(duration), T(duration)),
};
static const struct cel_overload rows_less_op[] = {
    GLOBAL(NONE, NONE, NULL, T(bool), T(bool), T(bool)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(int), T(int)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(int), T(double)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(int), T(uint)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(uint), T(uint)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(uint), T(double)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(uint), T(int)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(double), T(double)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(double), T(int)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(double), T(uint)),
    GLOBAL(ORDER_TEXTS, NONE, NULL, T(bool), T(string), T(string)),
    GLOBAL(ORDER_TEXTS, NONE, NULL, T(bool), T(bytes), T(bytes)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(timestamp), T(timestamp)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(duration), T(duration)),
};
static const struct cel_overload rows_equal_op[] = {
    GLOBAL(EQUALS, NONE, NULL, T(bool), T(a), T(a)),
};
static const struct cel_overload rows_greater_equal_op[] = {
    GLOBAL(NONE, NONE, NULL, T(bool), T(bool), T(bool)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(int), T(int)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(int), T(double)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(int), T(uint)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(uint), T(uint)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(uint), T(double)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(uint), T(int)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(double), T(double)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(double), T(int)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(double), T(uint)),
    GLOBAL(ORDER_TEXTS, NONE, NULL, T(bool), T(string), T(string)),
    GLOBAL(ORDER_TEXTS, NONE, NULL, T(bool), T(bytes), T(bytes)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(timestamp), T(timestamp)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(duration), T(duration)),
};
static const struct cel_overload rows_greater_op[] = {
    GLOBAL(NONE, NONE, NULL, T(bool), T(bool), T(bool)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(int), T(int)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(int), T(double)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(int), T(uint)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(uint), T(uint)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(uint), T(double)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(uint), T(int)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(double), T(double)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(double), T(int)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(double), T(uint)),
    GLOBAL(ORDER_TEXTS, NONE, NULL, T(bool), T(string), T(string)),
    GLOBAL(ORDER_TEXTS, NONE, NULL, T(bool), T(bytes), T(bytes)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(timestamp), T(timestamp)),
    GLOBAL(NONE, NONE, NULL, T(bool), T(duration), T(duration)),
};
static const struct cel_overload rows_opt_select_op[] = {
    GLOBAL(NONE, NONE, NULL, T(optional_a), T(dyn), T(string)),
};
static const struct cel_overload rows_choice_op[] = {
    GLOBAL(CONDITIONAL, NONE, NULL, T(a), T(bool), T(a), T(a)),
};
static const struct cel_overload rows_opt_index_op[] = {
    GLOBAL(NONE, NONE, NULL, T(optional_a), T(list_a), T(int)),
    GLOBAL(NONE, NONE, NULL, T(optional_a), T(optional_list_a), T(int)),
    GLOBAL(NONE, NONE, NULL, T(optional_b), T(map_ab), T(a)),
    GLOBAL(NONE, NONE, NULL, T(optional_b), T(optional_map_ab), T(a)),
};
static const struct cel_overload rows_index_op[] = {
    GLOBAL(INDEX_LIST, NONE, NULL, T(a), T(list_a), T(int)),
    GLOBAL(INDEX_MAP, NONE, NULL, T(b), T(map_ab), T(a)),
    GLOBAL(NONE, NONE, NULL, T(optional_a), T(optional_list_a), T(int)),
    GLOBAL(NONE, NONE, NULL, T(optional_b), T(optional_map_ab), T(a)),
};
static const struct cel_overload rows_or_op[] = {
    GLOBAL(LOGICAL_OR, NONE, NULL, T(bool), T(bool), T(bool)),
};
static const struct cel_overload rows_add[] = {
    METHOD(NONE, BINARY, cel_fn_quantity_add, T(quantity), T(quantity), T(quantity)),
    METHOD(NONE, BINARY, cel_fn_quantity_add, T(quantity), T(quantity), T(int)),
};
static const struct cel_overload rows_as_approximate_float[] = {
    METHOD(NONE, UNARY, cel_fn_as_float, T(double), T(quantity)),
};
static const struct cel_overload rows_as_integer[] = {
    METHOD(NONE, UNARY, cel_fn_as_integer, T(int), T(quantity)),
};
static const struct cel_overload rows_to_bool[] = {
    GLOBAL(NONE, UNARY, cel_fn_identity, T(bool), T(bool)),
    GLOBAL(NONE, UNARY, cel_fn_to_bool, T(bool), T(string)),
};
static const struct cel_overload rows_bytes[] = {
    GLOBAL(NONE, UNARY, cel_fn_identity, T(bytes), T(bytes)),
    GLOBAL(STRING_TO_BYTES, UNARY, cel_fn_to_bytes, T(bytes), T(string)),
};
static const struct cel_overload rows_cel__map_insert[] = {
    GLOBAL(NONE, VARIADIC, cel_fn_map_insert, T(map_ab), T(map_ab), T(a), T(b)),
    GLOBAL(NONE, BINARY, cel_fn_map_insert, T(map_ab), T(map_ab), T(map_ab)),
};
static const struct cel_overload rows_char_at[] = {
    METHOD(NONE, BINARY, cel_fn_char_at, T(string), T(string), T(int)),
};
static const struct cel_overload rows_cidr[] = {
    GLOBAL(NONE, UNARY, cel_fn_cidr, T(cidr), T(string)),
};
static const struct cel_overload rows_compare_to[] = {
    METHOD(NONE, BINARY, cel_fn_quantity_compare, T(int), T(quantity), T(quantity)),
    METHOD(NONE, BINARY, cel_fn_semver_compare, T(int), T(semver), T(semver)),
};
static const struct cel_overload rows_contains[] = {
    METHOD(CONTAINS_STRING, BINARY, cel_fn_contains, T(bool), T(string), T(string)),
};
static const struct cel_overload rows_contains_c_i_d_r[] = {
    METHOD(CIDR_CONTAINS_CIDR_STRING, BINARY, cel_fn_contains_cidr, T(bool), T(cidr), T(string)),
    METHOD(NONE, BINARY, cel_fn_contains_cidr, T(bool), T(cidr), T(cidr)),
};
static const struct cel_overload rows_contains_i_p[] = {
    METHOD(CIDR_CONTAINS_IP_STRING, BINARY, cel_fn_contains_ip, T(bool), T(cidr), T(string)),
    METHOD(NONE, BINARY, cel_fn_contains_ip, T(bool), T(cidr), T(ip)),
};
static const struct cel_overload rows_distinct[] = {
    METHOD(LIST_DISTINCT, UNARY, cel_fn_distinct, T(list_a), T(list_a)),
};
static const struct cel_overload rows_double[] = {
    GLOBAL(NONE, UNARY, cel_fn_identity, T(double), T(double)),
    GLOBAL(NONE, UNARY, cel_fn_to_double, T(double), T(int)),
    GLOBAL(NONE, UNARY, cel_fn_to_double, T(double), T(string)),
    GLOBAL(NONE, UNARY, cel_fn_to_double, T(double), T(uint)),
};
static const struct cel_overload rows_duration[] = {
    GLOBAL(NONE, UNARY, cel_fn_identity, T(duration), T(duration)),
    GLOBAL(NONE, UNARY, cel_fn_to_duration, T(duration), T(string)),
};
static const struct cel_overload rows_dyn[] = {
    GLOBAL(NONE, NONE, NULL, T(dyn), T(a)),
};
static const struct cel_overload rows_ends_with[] = {
    METHOD(ENDS_WITH, BINARY, cel_fn_ends_with, T(bool), T(string), T(string)),
};
static const struct cel_overload rows_family[] = {
    METHOD(NONE, UNARY, cel_fn_ip_family, T(int), T(ip)),
};
static const struct cel_overload rows_find[] = {
    METHOD(NONE, BINARY, cel_fn_find, T(string), T(string), T(string)),
};
static const struct cel_overload rows_find_all[] = {
    METHOD(NONE, BINARY, cel_fn_find_all, T(list_string), T(string), T(string)),
    METHOD(NONE, VARIADIC, cel_fn_find_all, T(list_string), T(string), T(string), T(int)),
};
static const struct cel_overload rows_first[] = {
    METHOD(NONE, UNARY, cel_fn_first, T(optional_a), T(list_a)),
};
static const struct cel_overload rows_flatten[] = {
    METHOD(LIST_FLATTEN, UNARY, cel_fn_flatten, T(list_a), T(list_list_a)),
    METHOD(LIST_FLATTEN_INT, BINARY, cel_fn_flatten, T(list_dyn), T(list_dyn), T(int)),
};
static const struct cel_overload rows_format[] = {
    METHOD(FORMAT, VARIADIC, cel_fn_format, T(string), T(string), T(list_dyn)),
};
static const struct cel_overload rows_format_named[] = {
    GLOBAL(NONE, UNARY, cel_fn_named_format, T(optional_format), T(string)),
};
static const struct cel_overload rows_get_date[] = {
    METHOD(NONE, UNARY, cel_fn_date, T(int), T(timestamp)),
    METHOD(NONE, BINARY, cel_fn_date, T(int), T(timestamp), T(string)),
};
static const struct cel_overload rows_get_day_of_month[] = {
    METHOD(NONE, UNARY, cel_fn_day_of_month, T(int), T(timestamp)),
    METHOD(NONE, BINARY, cel_fn_day_of_month, T(int), T(timestamp), T(string)),
};
static const struct cel_overload rows_get_day_of_week[] = {
    METHOD(NONE, UNARY, cel_fn_day_of_week, T(int), T(timestamp)),
    METHOD(NONE, BINARY, cel_fn_day_of_week, T(int), T(timestamp), T(string)),
};
static const struct cel_overload rows_get_day_of_year[] = {
    METHOD(NONE, UNARY, cel_fn_day_of_year, T(int), T(timestamp)),
    METHOD(NONE, BINARY, cel_fn_day_of_year, T(int), T(timestamp), T(string)),
};
static const struct cel_overload rows_get_escaped_path[] = {
    METHOD(NONE, UNARY, cel_fn_url_path, T(string), T(url)),
};
static const struct cel_overload rows_get_full_year[] = {
    METHOD(NONE, UNARY, cel_fn_full_year, T(int), T(timestamp)),
    METHOD(NONE, BINARY, cel_fn_full_year, T(int), T(timestamp), T(string)),
};
static const struct cel_overload rows_get_host[] = {
    METHOD(NONE, UNARY, cel_fn_url_host, T(string), T(url)),
};
static const struct cel_overload rows_get_hostname[] = {
    METHOD(NONE, UNARY, cel_fn_url_hostname, T(string), T(url)),
};
static const struct cel_overload rows_get_hours[] = {
    METHOD(NONE, UNARY, cel_fn_hours, T(int), T(timestamp)),
    METHOD(NONE, BINARY, cel_fn_hours, T(int), T(timestamp), T(string)),
    METHOD(NONE, UNARY, cel_fn_hours, T(int), T(duration)),
};
static const struct cel_overload rows_get_milliseconds[] = {
    METHOD(NONE, UNARY, cel_fn_milliseconds, T(int), T(timestamp)),
    METHOD(NONE, BINARY, cel_fn_milliseconds, T(int), T(timestamp), T(string)),
    METHOD(NONE, UNARY, cel_fn_milliseconds, T(int), T(duration)),
};
static const struct cel_overload rows_get_minutes[] = {
    METHOD(NONE, UNARY, cel_fn_minutes, T(int), T(timestamp)),
    METHOD(NONE, BINARY, cel_fn_minutes, T(int), T(timestamp), T(string)),
    METHOD(NONE, UNARY, cel_fn_minutes, T(int), T(duration)),
};
static const struct cel_overload rows_get_month[] = {
    METHOD(NONE, UNARY, cel_fn_month, T(int), T(timestamp)),
    METHOD(NONE, BINARY, cel_fn_month, T(int), T(timestamp), T(string)),
};
static const struct cel_overload rows_get_port[] = {
    METHOD(NONE, UNARY, cel_fn_url_port, T(string), T(url)),
};
static const struct cel_overload rows_get_query[] = {
    METHOD(NONE, UNARY, cel_fn_url_query, T(map_string_list), T(url)),
};
static const struct cel_overload rows_get_scheme[] = {
    METHOD(NONE, UNARY, cel_fn_url_scheme, T(string), T(url)),
};
static const struct cel_overload rows_get_seconds[] = {
    METHOD(NONE, UNARY, cel_fn_seconds, T(int), T(timestamp)),
    METHOD(NONE, BINARY, cel_fn_seconds, T(int), T(timestamp), T(string)),
    METHOD(NONE, UNARY, cel_fn_seconds, T(int), T(duration)),
};
static const struct cel_overload rows_has_value[] = {
    METHOD(NONE, UNARY, cel_fn_has_value, T(bool), T(optional_a)),
};
static const struct cel_overload rows_includes_36[] = {
    METHOD(NONE, BINARY, cel_fn_includes_48, T(bool), T(dyn), T(dyn)),
};
static const struct cel_overload rows_includes_37[] = {
    METHOD(NONE, BINARY, cel_fn_includes, T(bool), T(dyn), T(dyn)),
};
static const struct cel_overload rows_index_of[] = {
    METHOD(NONE, BINARY, cel_fn_index_of, T(int), T(string), T(string)),
    METHOD(NONE, VARIADIC, cel_fn_index_of, T(int), T(string), T(string), T(int)),
    METHOD(NONE, BINARY, cel_fn_list_index_of, T(int), T(list_a), T(a)),
};
static const struct cel_overload rows_int[] = {
    GLOBAL(NONE, UNARY, cel_fn_identity, T(int), T(int)),
    GLOBAL(NONE, UNARY, cel_fn_to_int, T(int), T(double)),
    GLOBAL(NONE, UNARY, cel_fn_to_int, T(int), T(duration)),
    GLOBAL(NONE, UNARY, cel_fn_to_int, T(int), T(string)),
    GLOBAL(NONE, UNARY, cel_fn_to_int, T(int), T(timestamp)),
    GLOBAL(NONE, UNARY, cel_fn_to_int, T(int), T(uint)),
};
static const struct cel_overload rows_ip[] = {
    GLOBAL(NONE, UNARY, cel_fn_ip, T(ip), T(string)),
    METHOD(CIDR_IP, UNARY, cel_fn_cidr_ip, T(ip), T(cidr)),
};
static const struct cel_overload rows_ip_is_canonical[] = {
    GLOBAL(NONE, UNARY, cel_fn_ip_canonical, T(bool), T(string)),
};
static const struct cel_overload rows_is_c_i_d_r[] = {
    GLOBAL(NONE, UNARY, cel_fn_is_cidr, T(bool), T(string)),
};
static const struct cel_overload rows_is_global_unicast[] = {
    METHOD(NONE, UNARY, cel_fn_ip_global_unicast, T(bool), T(ip)),
};
static const struct cel_overload rows_is_greater_than[] = {
    METHOD(NONE, BINARY, cel_fn_quantity_greater, T(bool), T(quantity), T(quantity)),
    METHOD(NONE, BINARY, cel_fn_semver_greater, T(bool), T(semver), T(semver)),
};
static const struct cel_overload rows_is_i_p[] = {
    GLOBAL(NONE, UNARY, cel_fn_is_ip, T(bool), T(string)),
};
static const struct cel_overload rows_is_integer[] = {
    METHOD(NONE, UNARY, cel_fn_is_integer, T(bool), T(quantity)),
};
static const struct cel_overload rows_is_less_than[] = {
    METHOD(NONE, BINARY, cel_fn_quantity_less, T(bool), T(quantity), T(quantity)),
    METHOD(NONE, BINARY, cel_fn_semver_less, T(bool), T(semver), T(semver)),
};
static const struct cel_overload rows_is_link_local_multicast[] = {
    METHOD(NONE, UNARY, cel_fn_ip_local_multicast, T(bool), T(ip)),
};
static const struct cel_overload rows_is_link_local_unicast[] = {
    METHOD(NONE, UNARY, cel_fn_ip_local_unicast, T(bool), T(ip)),
};
static const struct cel_overload rows_is_loopback[] = {
    METHOD(NONE, UNARY, cel_fn_ip_loopback, T(bool), T(ip)),
};
static const struct cel_overload rows_is_quantity[] = {
    GLOBAL(NONE, UNARY, cel_fn_is_quantity, T(bool), T(string)),
};
static const struct cel_overload rows_is_semver[] = {
    GLOBAL(NONE, UNARY, cel_fn_is_semver, T(bool), T(string)),
    GLOBAL(NONE, BINARY, cel_fn_is_semver, T(bool), T(string), T(bool)),
};
static const struct cel_overload rows_is_sorted[] = {
    METHOD(NONE, UNARY, cel_fn_is_sorted, T(bool), T(list_int)),
    METHOD(NONE, UNARY, cel_fn_is_sorted, T(bool), T(list_uint)),
    METHOD(NONE, UNARY, cel_fn_is_sorted, T(bool), T(list_double)),
    METHOD(NONE, UNARY, cel_fn_is_sorted, T(bool), T(list_bool)),
    METHOD(NONE, UNARY, cel_fn_is_sorted, T(bool), T(list_duration)),
    METHOD(NONE, UNARY, cel_fn_is_sorted, T(bool), T(list_timestamp)),
    METHOD(NONE, UNARY, cel_fn_is_sorted, T(bool), T(list_string)),
    METHOD(NONE, UNARY, cel_fn_is_sorted, T(bool), T(list_bytes)),
};
static const struct cel_overload rows_is_u_r_l[] = {
    GLOBAL(NONE, UNARY, cel_fn_is_url, T(bool), T(string)),
};
static const struct cel_overload rows_is_unspecified[] = {
    METHOD(NONE, UNARY, cel_fn_ip_unspecified, T(bool), T(ip)),
};
static const struct cel_overload rows_join[] = {
    METHOD(NONE, UNARY, cel_fn_join, T(string), T(list_string)),
    METHOD(NONE, BINARY, cel_fn_join, T(string), T(list_string), T(string)),
};
static const struct cel_overload rows_last[] = {
    METHOD(NONE, UNARY, cel_fn_last, T(optional_a), T(list_a)),
};
static const struct cel_overload rows_last_index_of[] = {
    METHOD(NONE, BINARY, cel_fn_last_index_of, T(int), T(string), T(string)),
    METHOD(NONE, VARIADIC, cel_fn_last_index_of, T(int), T(string), T(string), T(int)),
    METHOD(NONE, BINARY, cel_fn_list_last_index_of, T(int), T(list_a), T(a)),
};
static const struct cel_overload rows_lists_range[] = {
    GLOBAL(LIST_RANGE, UNARY, cel_fn_range, T(list_int), T(int)),
};
static const struct cel_overload rows_lower_ascii[] = {
    METHOD(NONE, UNARY, cel_fn_lower_ascii, T(string), T(string)),
};
static const struct cel_overload rows_major[] = {
    METHOD(NONE, UNARY, cel_fn_major, T(int), T(semver)),
};
static const struct cel_overload rows_masked[] = {
    METHOD(NONE, UNARY, cel_fn_masked, T(cidr), T(cidr)),
};
static const struct cel_overload rows_matches[] = {
    GLOBAL(MATCHES, NONE, NULL, T(bool), T(string), T(string)),
    METHOD(MATCHES_STRING, NONE, NULL, T(bool), T(string), T(string)),
};
static const struct cel_overload rows_max[] = {
    METHOD(NONE, UNARY, cel_fn_max, T(int), T(list_int)),
    METHOD(NONE, UNARY, cel_fn_max, T(uint), T(list_uint)),
    METHOD(NONE, UNARY, cel_fn_max, T(double), T(list_double)),
    METHOD(NONE, UNARY, cel_fn_max, T(bool), T(list_bool)),
    METHOD(NONE, UNARY, cel_fn_max, T(duration), T(list_duration)),
    METHOD(NONE, UNARY, cel_fn_max, T(timestamp), T(list_timestamp)),
    METHOD(NONE, UNARY, cel_fn_max, T(string), T(list_string)),
    METHOD(NONE, UNARY, cel_fn_max, T(bytes), T(list_bytes)),
};
static const struct cel_overload rows_min[] = {
    METHOD(NONE, UNARY, cel_fn_min, T(int), T(list_int)),
    METHOD(NONE, UNARY, cel_fn_min, T(uint), T(list_uint)),
    METHOD(NONE, UNARY, cel_fn_min, T(double), T(list_double)),
    METHOD(NONE, UNARY, cel_fn_min, T(bool), T(list_bool)),
    METHOD(NONE, UNARY, cel_fn_min, T(duration), T(list_duration)),
    METHOD(NONE, UNARY, cel_fn_min, T(timestamp), T(list_timestamp)),
    METHOD(NONE, UNARY, cel_fn_min, T(string), T(list_string)),
    METHOD(NONE, UNARY, cel_fn_min, T(bytes), T(list_bytes)),
};
static const struct cel_overload rows_minor[] = {
    METHOD(NONE, UNARY, cel_fn_minor, T(int), T(semver)),
};
static const struct cel_overload rows_optional_none[] = {
    NULLARY(cel_fn_optional_none, T(optional_a)),
};
static const struct cel_overload rows_optional_of[] = {
    GLOBAL(NONE, UNARY, cel_fn_optional_of, T(optional_a), T(a)),
};
static const struct cel_overload rows_optional_of_non_zero_value[] = {
    GLOBAL(NONE, UNARY, cel_fn_optional_non_zero, T(optional_a), T(a)),
};
static const struct cel_overload rows_optional_unwrap[] = {
    GLOBAL(NONE, UNARY, cel_fn_unwrap, T(list_a), T(list_optional_a)),
};
static const struct cel_overload rows_or[] = {
    METHOD(NONE, NONE, NULL, T(optional_a), T(optional_a), T(optional_a)),
};
static const struct cel_overload rows_or_value[] = {
    METHOD(NONE, NONE, NULL, T(a), T(optional_a), T(a)),
};
static const struct cel_overload rows_patch[] = {
    METHOD(NONE, UNARY, cel_fn_patch, T(int), T(semver)),
};
static const struct cel_overload rows_prefix_length[] = {
    METHOD(NONE, UNARY, cel_fn_prefix_length, T(int), T(cidr)),
};
static const struct cel_overload rows_quantity[] = {
    GLOBAL(NONE, UNARY, cel_fn_quantity, T(quantity), T(string)),
};
static const struct cel_overload rows_replace[] = {
    METHOD(NONE, VARIADIC, cel_fn_replace, T(string), T(string), T(string), T(string)),
    METHOD(NONE, VARIADIC, cel_fn_replace, T(string), T(string), T(string), T(string), T(int)),
};
static const struct cel_overload rows_reverse[] = {
    METHOD(LIST_REVERSE, UNARY, cel_fn_reverse, T(list_a), T(list_a)),
};
static const struct cel_overload rows_semver[] = {
    GLOBAL(NONE, UNARY, cel_fn_semver, T(semver), T(string)),
    GLOBAL(NONE, BINARY, cel_fn_semver, T(semver), T(string), T(bool)),
};
static const struct cel_overload rows_sets_contains[] = {
    GLOBAL(SETS_CONTAINS, BINARY, cel_fn_sets_contains, T(bool), T(list_a), T(list_a)),
};
static const struct cel_overload rows_sets_equivalent[] = {
    GLOBAL(SETS_EQUIVALENT, BINARY, cel_fn_sets_equivalent, T(bool), T(list_a), T(list_a)),
};
static const struct cel_overload rows_sets_intersects[] = {
    GLOBAL(SETS_INTERSECTS, BINARY, cel_fn_sets_intersects, T(bool), T(list_a), T(list_a)),
};
static const struct cel_overload rows_sign[] = {
    GLOBAL(NONE, UNARY, cel_fn_sign, T(int), T(quantity)),
};
static const struct cel_overload rows_size[] = {
    GLOBAL(NONE, NONE, NULL, T(int), T(bytes)),
    METHOD(NONE, NONE, NULL, T(int), T(bytes)),
    GLOBAL(NONE, NONE, NULL, T(int), T(list_a)),
    METHOD(NONE, NONE, NULL, T(int), T(list_a)),
    GLOBAL(NONE, NONE, NULL, T(int), T(map_ab)),
    METHOD(NONE, NONE, NULL, T(int), T(map_ab)),
    GLOBAL(NONE, NONE, NULL, T(int), T(string)),
    METHOD(NONE, NONE, NULL, T(int), T(string)),
};
static const struct cel_overload rows_slice[] = {
    METHOD(LIST_SLICE, VARIADIC, cel_fn_slice, T(list_a), T(list_a), T(int), T(int)),
};
static const struct cel_overload rows_sort[] = {
    METHOD(LIST_SORT, NONE, NULL, T(list_int), T(list_int)),
    METHOD(LIST_SORT, NONE, NULL, T(list_uint), T(list_uint)),
    METHOD(LIST_SORT, NONE, NULL, T(list_double), T(list_double)),
    METHOD(LIST_SORT, NONE, NULL, T(list_bool), T(list_bool)),
    METHOD(LIST_SORT, NONE, NULL, T(list_duration), T(list_duration)),
    METHOD(LIST_SORT, NONE, NULL, T(list_timestamp), T(list_timestamp)),
    METHOD(LIST_SORT_TEXTS, NONE, NULL, T(list_string), T(list_string)),
    METHOD(LIST_SORT_TEXTS, NONE, NULL, T(list_bytes), T(list_bytes)),
};
static const struct cel_overload rows_split[] = {
    METHOD(NONE, BINARY, cel_fn_split, T(list_string), T(string), T(string)),
    METHOD(NONE, VARIADIC, cel_fn_split, T(list_string), T(string), T(string), T(int)),
};
static const struct cel_overload rows_starts_with[] = {
    METHOD(STARTS_WITH, BINARY, cel_fn_starts_with, T(bool), T(string), T(string)),
};
static const struct cel_overload rows_string[] = {
    GLOBAL(NONE, UNARY, cel_fn_identity, T(string), T(string)),
    GLOBAL(NONE, UNARY, cel_fn_to_string, T(string), T(bool)),
    GLOBAL(BYTES_TO_STRING, UNARY, cel_fn_to_string, T(string), T(bytes)),
    GLOBAL(NONE, UNARY, cel_fn_to_string, T(string), T(double)),
    GLOBAL(NONE, UNARY, cel_fn_to_string, T(string), T(duration)),
    GLOBAL(NONE, UNARY, cel_fn_to_string, T(string), T(int)),
    GLOBAL(NONE, UNARY, cel_fn_to_string, T(string), T(timestamp)),
    GLOBAL(NONE, UNARY, cel_fn_to_string, T(string), T(uint)),
    GLOBAL(NONE, UNARY, cel_fn_ip_to_string, T(string), T(ip)),
    GLOBAL(NONE, UNARY, cel_fn_cidr_to_string, T(string), T(cidr)),
};
static const struct cel_overload rows_strings_quote[] = {
    GLOBAL(QUOTE, UNARY, cel_fn_quote, T(string), T(string)),
};
static const struct cel_overload rows_sub[] = {
    METHOD(NONE, BINARY, cel_fn_quantity_sub, T(quantity), T(quantity), T(quantity)),
    METHOD(NONE, BINARY, cel_fn_quantity_sub, T(quantity), T(quantity), T(int)),
};
static const struct cel_overload rows_substring[] = {
    METHOD(NONE, BINARY, cel_fn_substring, T(string), T(string), T(int)),
    METHOD(NONE, VARIADIC, cel_fn_substring, T(string), T(string), T(int), T(int)),
};
static const struct cel_overload rows_sum[] = {
    METHOD(NONE, UNARY, cel_fn_sum_int, T(int), T(list_int)),
    METHOD(NONE, UNARY, cel_fn_sum_uint, T(uint), T(list_uint)),
    METHOD(NONE, UNARY, cel_fn_sum_double, T(double), T(list_double)),
    METHOD(NONE, UNARY, cel_fn_sum_duration, T(duration), T(list_duration)),
};
static const struct cel_overload rows_timestamp[] = {
    GLOBAL(NONE, UNARY, cel_fn_identity, T(timestamp), T(timestamp)),
    GLOBAL(NONE, UNARY, cel_fn_to_timestamp, T(timestamp), T(int)),
    GLOBAL(NONE, UNARY, cel_fn_to_timestamp, T(timestamp), T(string)),
};
static const struct cel_overload rows_trim[] = {
    METHOD(NONE, UNARY, cel_fn_trim, T(string), T(string)),
};
static const struct cel_overload rows_type[] = {
    GLOBAL(NONE, NONE, NULL, T(type_a), T(a)),
};
static const struct cel_overload rows_uint[] = {
    GLOBAL(NONE, UNARY, cel_fn_identity, T(uint), T(uint)),
    GLOBAL(NONE, UNARY, cel_fn_to_uint, T(uint), T(double)),
    GLOBAL(NONE, UNARY, cel_fn_to_uint, T(uint), T(int)),
    GLOBAL(NONE, UNARY, cel_fn_to_uint, T(uint), T(string)),
};
static const struct cel_overload rows_unwrap_opt[] = {
    METHOD(NONE, UNARY, cel_fn_unwrap, T(list_a), T(list_optional_a)),
};
static const struct cel_overload rows_upper_ascii[] = {
    METHOD(NONE, UNARY, cel_fn_upper_ascii, T(string), T(string)),
};
static const struct cel_overload rows_url[] = {
    GLOBAL(NONE, UNARY, cel_fn_url, T(url), T(string)),
};
static const struct cel_overload rows_validate[] = {
    METHOD(NONE, BINARY, cel_fn_validate, T(optional_list_string), T(format), T(string)),
};
static const struct cel_overload rows_value[] = {
    METHOD(NONE, UNARY, cel_fn_value, T(a), T(optional_a)),
};

static const struct cel_overload rows_auth_allowed[] = {
    METHOD(NONE, UNARY, cel_fn_unreachable, T(bool), T(decision)),
};
static const struct cel_overload rows_auth_check[] = {
    METHOD(NONE, BINARY, cel_fn_unreachable, T(decision), T(path_check), T(string)),
    METHOD(NONE, BINARY, cel_fn_unreachable, T(decision), T(resource_check), T(string)),
};
static const struct cel_overload rows_auth_error[] = {
    METHOD(NONE, UNARY, cel_fn_unreachable, T(string), T(decision)),
};
static const struct cel_overload rows_auth_errored[] = {
    METHOD(NONE, UNARY, cel_fn_unreachable, T(bool), T(decision)),
};
static const struct cel_overload rows_auth_field_selector[] = {
    METHOD(NONE, BINARY, cel_fn_unreachable, T(resource_check), T(resource_check), T(string)),
};
static const struct cel_overload rows_auth_group[] = {
    METHOD(NONE, BINARY, cel_fn_unreachable, T(group_check), T(authorizer), T(string)),
};
static const struct cel_overload rows_auth_label_selector[] = {
    METHOD(NONE, BINARY, cel_fn_unreachable, T(resource_check), T(resource_check), T(string)),
};
static const struct cel_overload rows_auth_name[] = {
    METHOD(NONE, BINARY, cel_fn_unreachable, T(resource_check), T(resource_check), T(string)),
};
static const struct cel_overload rows_auth_namespace[] = {
    METHOD(NONE, BINARY, cel_fn_unreachable, T(resource_check), T(resource_check), T(string)),
};
static const struct cel_overload rows_auth_path[] = {
    METHOD(NONE, BINARY, cel_fn_unreachable, T(path_check), T(authorizer), T(string)),
};
static const struct cel_overload rows_auth_reason[] = {
    METHOD(NONE, UNARY, cel_fn_unreachable, T(string), T(decision)),
};
static const struct cel_overload rows_auth_resource[] = {
    METHOD(NONE, BINARY, cel_fn_unreachable, T(resource_check), T(group_check), T(string)),
};
static const struct cel_overload rows_auth_service_account[] = {
    METHOD(NONE, VARIADIC, cel_fn_unreachable, T(authorizer), T(authorizer), T(string), T(string)),
};
static const struct cel_overload rows_auth_subresource[] = {
    METHOD(NONE, BINARY, cel_fn_unreachable, T(resource_check), T(resource_check), T(string)),
};
/* Sorted by name, for the binary search; one name may have a row per release. */
static const struct cel_function functions[] = {
    FUNCTION("!_", OTHER, not_op, .binding = CEL_BIND_UNARY, .singleton = cel_fn_not),
    FUNCTION("-_", OTHER, negate_op, .binding = CEL_BIND_UNARY, .singleton = cel_fn_negate, .traits = CEL_CAN_NEGATE),
    FUNCTION("@in", OTHER, in_op, .binding = CEL_BIND_BINARY, .singleton = cel_fn_in),
    FUNCTION("@not_strictly_false", OTHER, not_strictly_false, .is_non_strict = true),
    FUNCTION("@sortByAssociatedKeys", OTHER, sort_by_associated_keys, .binding = CEL_BIND_BINARY, .singleton = cel_fn_sort_by, .traits = CEL_CAN_LIST),
    PLAIN("_!=_", NOT_EQUALS, not_equal_op),
    FUNCTION("_%_", OTHER, modulo_op, .binding = CEL_BIND_BINARY, .singleton = cel_fn_modulo, .traits = CEL_CAN_MODULO),
    PLAIN("_&&_", AND, and_op),
    FUNCTION("_*_", OTHER, multiply_op, .binding = CEL_BIND_BINARY, .singleton = cel_fn_multiply, .traits = CEL_CAN_MULTIPLY),
    FUNCTION("_+_", OTHER, add_op, .binding = CEL_BIND_BINARY, .singleton = cel_fn_add, .traits = CEL_CAN_ADD),
    FUNCTION("_-_", OTHER, subtract_op, .binding = CEL_BIND_BINARY, .singleton = cel_fn_subtract, .traits = CEL_CAN_SUBTRACT),
    FUNCTION("_/_", OTHER, divide_op, .binding = CEL_BIND_BINARY, .singleton = cel_fn_divide, .traits = CEL_CAN_DIVIDE),
    FUNCTION("_<=_", OTHER, less_equal_op, .binding = CEL_BIND_BINARY, .singleton = cel_fn_less_equal, .traits = CEL_CAN_COMPARE),
    FUNCTION("_<_", OTHER, less_op, .binding = CEL_BIND_BINARY, .singleton = cel_fn_less, .traits = CEL_CAN_COMPARE),
    PLAIN("_==_", EQUALS, equal_op),
    FUNCTION("_>=_", OTHER, greater_equal_op, .binding = CEL_BIND_BINARY, .singleton = cel_fn_greater_equal, .traits = CEL_CAN_COMPARE),
    FUNCTION("_>_", OTHER, greater_op, .binding = CEL_BIND_BINARY, .singleton = cel_fn_greater, .traits = CEL_CAN_COMPARE),
    PLAIN("_?._", OPT_SELECT, opt_select_op),
    PLAIN("_?_:_", CONDITIONAL, choice_op),
    PLAIN("_[?_]", OPT_INDEX, opt_index_op),
    PLAIN("_[_]", INDEX, index_op),
    PLAIN("_||_", OR, or_op),
    PLAIN("add", ONE, add),
    PLAIN("allowed", ONE, auth_allowed),
    PLAIN("asApproximateFloat", ONE, as_approximate_float),
    PLAIN("asInteger", ONE, as_integer),
    PLAIN("bool", CONVERT, to_bool),
    PLAIN("bytes", CONVERT, bytes),
    PLAIN("cel.@mapInsert", OTHER, cel__map_insert),
    PLAIN("charAt", OTHER, char_at),
    PLAIN("check", AUTHORIZE, auth_check),
    PLAIN("cidr", PARSE, cidr),
    PLAIN("compareTo", ONE, compare_to),
    FUNCTION("contains", OTHER, contains, .is_unguarded = true),
    PLAIN("containsCIDR", CONTAINS_CIDR, contains_c_i_d_r),
    PLAIN("containsIP", CONTAINS_IP, contains_i_p),
    PLAIN("distinct", OTHER, distinct),
    PLAIN("double", CONVERT, double),
    PLAIN("duration", DURATION, duration),
    FUNCTION("dyn", DYN, dyn, .binding = CEL_BIND_UNARY, .singleton = cel_fn_identity),
    FUNCTION("endsWith", OTHER, ends_with, .is_unguarded = true),
    PLAIN("error", ONE, auth_error),
    PLAIN("errored", ONE, auth_errored),
    PLAIN("family", ONE, family),
    PLAIN("fieldSelector", SELECTOR, auth_field_selector),
    PLAIN("find", FIND, find),
    PLAIN("findAll", FIND, find_all),
    PLAIN("first", OTHER, first),
    FUNCTION("flatten", OTHER, flatten, .is_unguarded = true),
    PLAIN("format", FORMAT, format),
    PLAIN("format.named", ONE, format_named),
    PLAIN("getDate", OTHER, get_date),
    PLAIN("getDayOfMonth", OTHER, get_day_of_month),
    PLAIN("getDayOfWeek", OTHER, get_day_of_week),
    PLAIN("getDayOfYear", OTHER, get_day_of_year),
    PLAIN("getEscapedPath", ONE, get_escaped_path),
    PLAIN("getFullYear", OTHER, get_full_year),
    PLAIN("getHost", ONE, get_host),
    PLAIN("getHostname", ONE, get_hostname),
    PLAIN("getHours", OTHER, get_hours),
    PLAIN("getMilliseconds", OTHER, get_milliseconds),
    PLAIN("getMinutes", OTHER, get_minutes),
    PLAIN("getMonth", OTHER, get_month),
    PLAIN("getPort", ONE, get_port),
    PLAIN("getQuery", ONE, get_query),
    PLAIN("getScheme", ONE, get_scheme),
    PLAIN("getSeconds", OTHER, get_seconds),
    PLAIN("group", ONE, auth_group),
    PLAIN("hasValue", OTHER, has_value),
    FUNCTION("includes", OTHER, includes_36, .releases = 4),
    FUNCTION("includes", INCLUDES, includes_37, .releases = 8),
    PLAIN("indexOf", TRAVERSE, index_of),
    PLAIN("int", CONVERT, int),
    PLAIN("ip", IP, ip),
    PLAIN("ip.isCanonical", CANONICAL, ip_is_canonical),
    PLAIN("isCIDR", PARSE, is_c_i_d_r),
    PLAIN("isGlobalUnicast", ONE, is_global_unicast),
    PLAIN("isGreaterThan", ONE, is_greater_than),
    PLAIN("isIP", PARSE, is_i_p),
    PLAIN("isInteger", ONE, is_integer),
    PLAIN("isLessThan", ONE, is_less_than),
    PLAIN("isLinkLocalMulticast", ONE, is_link_local_multicast),
    PLAIN("isLinkLocalUnicast", ONE, is_link_local_unicast),
    PLAIN("isLoopback", ONE, is_loopback),
    PLAIN("isQuantity", PARSE, is_quantity),
    PLAIN("isSemver", PARSE, is_semver),
    PLAIN("isSorted", TRAVERSE, is_sorted),
    PLAIN("isURL", OTHER, is_u_r_l),
    PLAIN("isUnspecified", ONE, is_unspecified),
    PLAIN("join", JOIN, join),
    PLAIN("labelSelector", SELECTOR, auth_label_selector),
    PLAIN("last", OTHER, last),
    PLAIN("lastIndexOf", TRAVERSE, last_index_of),
    PLAIN("lists.range", OTHER, lists_range),
    PLAIN("lowerAscii", SCAN_TARGET, lower_ascii),
    PLAIN("major", ONE, major),
    PLAIN("masked", ONE, masked),
    FUNCTION("matches", MATCHES, matches, .binding = CEL_BIND_BINARY, .singleton = cel_fn_matches, .traits = CEL_CAN_MATCH),
    PLAIN("max", TRAVERSE, max),
    PLAIN("min", TRAVERSE, min),
    PLAIN("minor", ONE, minor),
    PLAIN("name", ONE, auth_name),
    PLAIN("namespace", ONE, auth_namespace),
    PLAIN("optional.none", OTHER, optional_none),
    PLAIN("optional.of", OTHER, optional_of),
    PLAIN("optional.ofNonZeroValue", OTHER, optional_of_non_zero_value),
    PLAIN("optional.unwrap", OTHER, optional_unwrap),
    PLAIN("or", OR_OPTIONAL, or),
    PLAIN("orValue", OR_VALUE, or_value),
    PLAIN("patch", ONE, patch),
    PLAIN("path", ONE, auth_path),
    PLAIN("prefixLength", ONE, prefix_length),
    PLAIN("quantity", PARSE, quantity),
    PLAIN("reason", ONE, auth_reason),
    PLAIN("replace", REPLACE, replace),
    PLAIN("resource", ONE, auth_resource),
    PLAIN("reverse", OTHER, reverse),
    PLAIN("semver", PARSE, semver),
    PLAIN("serviceAccount", ONE, auth_service_account),
    PLAIN("sets.contains", OTHER, sets_contains),
    PLAIN("sets.equivalent", OTHER, sets_equivalent),
    PLAIN("sets.intersects", OTHER, sets_intersects),
    PLAIN("sign", ONE, sign),
    FUNCTION("size", OTHER, size, .binding = CEL_BIND_UNARY, .singleton = cel_fn_size, .traits = CEL_CAN_SIZE),
    PLAIN("slice", OTHER, slice),
    FUNCTION("sort", OTHER, sort, .binding = CEL_BIND_UNARY, .singleton = cel_fn_sort, .traits = CEL_CAN_LIST),
    PLAIN("split", SPLIT, split),
    FUNCTION("startsWith", OTHER, starts_with, .is_unguarded = true),
    PLAIN("string", CONVERT, string),
    PLAIN("strings.quote", OTHER, strings_quote),
    PLAIN("sub", ONE, sub),
    PLAIN("subresource", ONE, auth_subresource),
    PLAIN("substring", SCAN_TARGET, substring),
    PLAIN("sum", TRAVERSE, sum),
    PLAIN("timestamp", TIMESTAMP, timestamp),
    PLAIN("trim", SCAN_TARGET, trim),
    FUNCTION("type", CONVERT, type, .binding = CEL_BIND_UNARY, .singleton = cel_fn_type),
    PLAIN("uint", CONVERT, uint),
    PLAIN("unwrapOpt", OTHER, unwrap_opt),
    PLAIN("upperAscii", SCAN_TARGET, upper_ascii),
    PLAIN("url", SCAN, url),
    PLAIN("validate", VALIDATE, validate),
    PLAIN("value", OTHER, value),
};
/* clang-format on */

bool cel_overload_in_release(const struct cel_overload *overload, int release)
{
    return !overload->releases || overload->releases & BIT(release - 34);
}

static bool in_release(const struct cel_function *f, int release)
{
    return !f->releases || f->releases & BIT(release - 34);
}

/* format.dns1123Label() and its like: one function per named format. */
static const struct cel_function *find_format(struct str name)
{
    static const struct cel_overload row[] = {
        NULLARY(NULL, T(format)),
    };
#define FORMAT(title)                                                                                                  \
    {                                                                                                                  \
        .name = "format." #title, .overloads = row, .n_overloads = ARRAY_SIZE(row), .format_name = #title              \
    }
    static const struct cel_function formats[] = {
        FORMAT(byte),
        FORMAT(date),
        FORMAT(datetime),
        FORMAT(dns1035Label),
        FORMAT(dns1035LabelPrefix),
        FORMAT(dns1123Label),
        FORMAT(dns1123LabelPrefix),
        FORMAT(dns1123Subdomain),
        FORMAT(dns1123SubdomainPrefix),
        FORMAT(labelValue),
        FORMAT(qualifiedName),
        FORMAT(uri),
        FORMAT(uuid),
    };
#undef FORMAT

    for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
        if (str_is(name, formats[i].name))
            return &formats[i];
    return NULL;
}

const struct cel_function *cel_function_find(struct str name, int release)
{
    size_t lo = 0, hi = ARRAY_SIZE(functions);

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (str_cmp(str_of(functions[mid].name), name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < ARRAY_SIZE(functions) && str_is(name, functions[lo].name); lo++)
        if (in_release(&functions[lo], release))
            return &functions[lo];
    return str_starts(name, "format.") ? find_format(name) : NULL;
}

const struct cel_function *cel_function_all(size_t *out_n)
{
    *out_n = ARRAY_SIZE(functions);
    return functions;
}
