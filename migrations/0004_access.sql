-- Why: who may speak to the server, and which requests were answered already. Of a token only the SHA-256 is kept.

create table token (
    id         integer primary key autoincrement,
    name       text not null,
    role       text not null,
    queues     text, -- JSON array of queue names; null: all
    hash       blob not null unique check (length(hash) = 32),
    created_ms integer not null
) strict;

-- A repeated submission with the same key by the same user gets the first answer again.
create table idempotency_key (
    user       text not null,
    key        text not null,
    request    blob not null check (length(request) = 32), -- SHA-256 of the request: another one is a conflict
    jobs       text not null,                              -- JSON array of job ids
    created_ms integer not null,
    primary key (user, key)
) strict, without rowid;
create index idempotency_key_age on idempotency_key (created_ms);
