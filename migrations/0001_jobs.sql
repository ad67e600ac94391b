-- Why: a job is acknowledged only when it is durable, and a restart continues every launch from what stands here.
-- A job's changing part and its event are written together; an attempt and all objects that it may create are written
-- before the first of them is created.

create table job (
    id           integer primary key autoincrement, -- an id is never used twice: names of objects derive from it
    name         text not null,
    namespace    text not null,
    queue        text not null,
    user         text not null,
    priority     integer not null,
    submitted_ms integer not null,
    spec         text not null, -- the canonical GangJob, JSON
    state        text not null check (state in ('Held', 'Pending', 'Admitted', 'Launching', 'Running', 'Preempting',
                                                'Succeeded', 'Failed', 'Cancelled')),
    ending       text,          -- where the job goes when its attempt is gone; null while nobody ends it
    reason       text not null,
    attempt      integer not null,
    retries_left integer not null,
    failures     integer not null, -- launches in a row that failed; the delay grows with it
    not_before_ms integer not null,
    started_ms   integer not null, -- 0: not yet
    ended_ms     integer not null, -- 0: not yet
    exit_code    integer not null  -- -1: unknown
) strict;

-- A job waits for those that it depends on; a row goes when the other one has succeeded.
create table dependency (
    job_id     integer not null references job on delete cascade,
    depends_on integer not null references job on delete cascade,
    primary key (job_id, depends_on)
) strict, without rowid;
create index dependency_of on dependency (depends_on);

create table attempt (
    job_id     integer not null references job on delete cascade,
    number     integer not null,
    shape      integer not null, -- which alternative of the whole gang
    placement  text not null,    -- JSON: member -> node and devices
    chosen     text not null,    -- JSON: the alternatives of firstAvailable
    charges    text not null,    -- JSON: resource -> amount
    created_ms integer not null,
    primary key (job_id, number)
) strict, without rowid;

-- The exact objects of an attempt, in the order of creation. Kept until the attempt is gone.
create table launch_object (
    job_id    integer not null,
    attempt   integer not null,
    position  integer not null,
    kind      text not null,
    namespace text not null,
    name      text not null,
    body      text not null, -- JSON, without owner reference: the anchor's uid is known only later
    planned   text,          -- JSON: what the scheduler must decide for it (allocation of a claim, node of a pod)
    primary key (job_id, attempt, position),
    foreign key (job_id, attempt) references attempt on delete cascade
) strict, without rowid;

create table event (
    id         integer primary key autoincrement,
    job_id     integer not null references job on delete cascade,
    at_ms      integer not null,
    type       text not null,
    from_state text not null, -- empty for events that move nothing
    to_state   text not null,
    detail     text not null
) strict;
create index event_of_job on event (job_id, id); -- a job's events are read in pages
