-- Why: what administrators apply. Amounts are whole numbers in the resource's unit (devices, bytes of a capacity or of
-- memory, thousandths of a cpu), so that sums are exact. A null limit is unlimited.

create table resource (
    name     text primary key,
    class    text, -- null: devices of any class
    selector text, -- CEL; null: all devices of the class
    capacity text  -- null: counts devices
) strict, without rowid;

create table queue (
    name   text primary key,
    parent text references queue, -- null: below the root
    weight integer not null check (weight > 0),
    state  text not null check (state in ('open', 'held', 'drained'))
) strict, without rowid;
create index queue_children on queue (parent);

-- The resource is named, not referenced: cpu, memory and pods need no row.
create table quota (
    queue     text not null references queue on delete cascade,
    resource  text not null,
    nominal   integer not null check (nominal >= 0),
    borrowing integer check (borrowing >= 0),
    lending   integer check (lending >= 0),
    primary key (queue, resource)
) strict, without rowid;

create table priority_class (
    name  text primary key,
    value integer not null
) strict, without rowid;
