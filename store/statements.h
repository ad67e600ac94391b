/* store/statements.h - every statement of the server, by aggregate. All are prepared when the store opens, so that a
 * mistake stops the server at its start and not at night. Read by this room only. */
#ifndef QUEUED_STORE_STATEMENTS_H
#define QUEUED_STORE_STATEMENTS_H

#define TRANSACTION_STATEMENTS(S)                                                                                      \
    S(TX_BEGIN, "begin immediate")                                                                                     \
    S(TX_COMMIT, "commit")                                                                                             \
    S(TX_ROLLBACK, "rollback")                                                                                         \
    S(PROBE_PUT, "insert into idempotency_key values ('', '', randomblob(32), hex(zeroblob(4096)), 0)")                \
    S(PROBE_DELETE, "delete from idempotency_key where user = '' and key = ''")

/* JOB_SAVE names the old state too: no row changed means that somebody else moved the job first. */
#define JOB_STATEMENTS(S)                                                                                              \
    S(JOB_INSERT,                                                                                                      \
      "insert into job (name, namespace, queue, user, submitted_ms, spec, state, ending, reason, priority,"            \
      " attempt, retries_left, failures, not_before_ms, started_ms, ended_ms, exit_code)"                              \
      " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                                                   \
    S(JOB_SAVE, "update job set state = ?3, ending = ?4, reason = ?5, priority = ?6, attempt = ?7, retries_left = ?8," \
                " failures = ?9, not_before_ms = ?10, started_ms = ?11, ended_ms = ?12, exit_code = ?13"               \
                " where id = ?1 and state = ?2")                                                                       \
    S(JOB_DELETE, "delete from job where id = ?")                                                                      \
    S(JOBS, "select id, name, namespace, queue, user, submitted_ms, spec, state, ending, reason, priority, attempt,"   \
            " retries_left, failures, not_before_ms, started_ms, ended_ms, exit_code from job order by id")            \
    S(DEPENDENCY_ADD, "insert or ignore into dependency (job_id, depends_on) values (?, ?)")                           \
    S(DEPENDENCY_MET, "delete from dependency where depends_on = ?")                                                   \
    S(DEPENDENCIES, "select job_id, depends_on from dependency order by job_id, depends_on")

#define ATTEMPT_STATEMENTS(S)                                                                                          \
    S(ATTEMPT_INSERT, "insert into attempt (job_id, number, shape, placement, chosen, charges, created_ms, effective)" \
                      " values (?, ?, ?, ?, ?, ?, ?, ?)")                                                              \
    S(ATTEMPT_GET, "select job_id, number, shape, placement, chosen, charges, created_ms, effective from attempt"      \
                   " where job_id = ? and number = ?")                                                                 \
    S(ATTEMPT_RECHARGE, "update attempt set charges = ?3 where job_id = ?1 and number = ?2")                           \
    S(ATTEMPT_PLACE, "update attempt set placement = ?3 where job_id = ?1 and number = ?2")                            \
    S(OBJECT_INSERT, "insert into launch_object (job_id, attempt, position, kind, namespace, name, body, planned)"     \
                     " values (?, ?, ?, ?, ?, ?, ?, ?)")                                                               \
    S(OBJECTS_DELETE, "delete from launch_object where job_id = ? and attempt = ?")                                    \
    S(OBJECTS, "select position, kind, namespace, name, body, planned from launch_object"                              \
               " where job_id = ? and attempt = ? order by position")

#define EVENT_STATEMENTS(S)                                                                                            \
    S(EVENT_INSERT, "insert into event (job_id, at_ms, type, from_state, to_state, detail) values (?, ?, ?, ?, ?, ?)") \
    S(EVENTS, "select id, job_id, at_ms, type, from_state, to_state, detail from event where id > ? order by id"       \
              " limit ?")                                                                                              \
    S(EVENTS_OF_JOB, "select id, job_id, at_ms, type, from_state, to_state, detail from event"                         \
                     " where job_id = ? and id > ? order by id limit ?")

#define QUEUE_STATEMENTS(S)                                                                                            \
    S(QUEUE_PUT, "insert into queue (name, parent, weight, state, placement) values (?, ?, ?, ?, ?)"                   \
                 " on conflict (name) do update set parent = excluded.parent, weight = excluded.weight,"               \
                 " state = excluded.state, placement = excluded.placement")                                            \
    S(QUEUE_DELETE, "delete from queue where name = ?")                                                                \
    S(QUEUES, "select name, parent, weight, state, placement from queue order by name")                                \
    S(QUOTA_PUT, "insert into quota (queue, resource, nominal, borrowing, lending) values (?, ?, ?, ?, ?)"             \
                 " on conflict (queue, resource) do update set nominal = excluded.nominal,"                            \
                 " borrowing = excluded.borrowing, lending = excluded.lending")                                        \
    S(QUOTAS_DELETE, "delete from quota where queue = ?")                                                              \
    S(QUOTAS, "select queue, resource, nominal, borrowing, lending from quota order by queue, resource")               \
    S(RESOURCE_PUT, "insert into resource (name, class, selector, capacity) values (?, ?, ?, ?) on conflict (name) do" \
                    " update set class = excluded.class, selector = excluded.selector, capacity = excluded.capacity")  \
    S(RESOURCES, "select name, class, selector, capacity from resource order by name")                                 \
    S(PRIORITY_PUT, "insert into priority_class (name, value) values (?, ?) on conflict (name) do update"              \
                    " set value = excluded.value")                                                                     \
    S(PRIORITIES, "select name, value from priority_class order by name")

#define USAGE_STATEMENTS(S)                                                                                            \
    S(USAGE_PUT, "insert into usage (job_id, attempt, resource, amount, queue, user, from_ms)"                         \
                 " values (?, ?, ?, ?, ?, ?, ?) on conflict (job_id, attempt, resource) do update"                     \
                 " set amount = excluded.amount")                                                                      \
    S(USAGE_CLOSE, "update usage set to_ms = ?3 where job_id = ?1 and attempt = ?2 and to_ms is null")                 \
    S(USAGE, "select job_id, attempt, resource, queue, user, amount, from_ms, to_ms from usage"                        \
             " where from_ms < ?2 and (to_ms is null or to_ms > ?1) order by job_id, attempt, resource")

#define SERVER_STATEMENTS(S) S(SERVER_ID, "select id from server")

#define TOKEN_STATEMENTS(S)                                                                                            \
    S(TOKEN_INSERT, "insert into token (name, role, queues, hash, created_ms) values (?, ?, ?, ?, ?)")                 \
    S(TOKEN_DELETE, "delete from token where id = ?")                                                                  \
    S(TOKENS, "select id, name, role, queues, hash, created_ms from token order by id")

#define KEY_STATEMENTS(S)                                                                                              \
    S(KEY_INSERT, "insert into idempotency_key (user, key, request, jobs, created_ms) values (?, ?, ?, ?, ?)")         \
    S(KEY_GET, "select user, key, request, jobs, created_ms from idempotency_key where user = ? and key = ?")          \
    S(KEYS_EXPIRE, "delete from idempotency_key where created_ms < ?")

#define STATEMENTS(S)                                                                                                  \
    TRANSACTION_STATEMENTS(S)                                                                                          \
    JOB_STATEMENTS(S)                                                                                                  \
    ATTEMPT_STATEMENTS(S)                                                                                              \
    EVENT_STATEMENTS(S)                                                                                                \
    QUEUE_STATEMENTS(S)                                                                                                \
    USAGE_STATEMENTS(S)                                                                                                \
    TOKEN_STATEMENTS(S)                                                                                                \
    KEY_STATEMENTS(S)                                                                                                  \
    SERVER_STATEMENTS(S)

#endif
