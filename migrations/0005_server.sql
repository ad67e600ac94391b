-- Why: two servers may look at one cluster (a copy of the database, a second installation). Each deletes what carries
-- its labels and belongs to no job of its own, so those labels must say whose they are. The id is made once, here, and
-- is as old as the database: a server that is started elsewhere with the same database owns the same objects.

create table server (
    only integer primary key check (only = 1),
    id   text not null check (length(id) = 16) -- a label's value
) strict;
insert into server values (1, lower(hex(randomblob(8))));
