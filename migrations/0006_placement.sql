-- Why: a queue may say how the jobs in it and below it are placed, for all that do not say so themselves. What a gang was
-- placed by stays with its attempt, because the queue may say something else by the time that somebody looks.

alter table queue add column placement text -- null: as the queue above says
    check (placement in ('fragmentation', 'pack', 'spread'));
alter table attempt add column effective text; -- JSON: the placement and who said it; null: planned before this was kept
