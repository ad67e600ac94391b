-- Why: accounting outlives jobs. A row says who held how much of what from when until when; queue and user are copied
-- because the job's row goes with its time to live.

create table usage (
    job_id   integer not null,
    attempt  integer not null,
    resource text not null,
    amount   integer not null,
    queue    text not null,
    user     text not null,
    from_ms  integer not null,
    to_ms    integer, -- null: still held
    primary key (job_id, attempt, resource)
) strict, without rowid;
create index usage_open on usage (job_id) where to_ms is null; -- after a restart what is still held is looked up
