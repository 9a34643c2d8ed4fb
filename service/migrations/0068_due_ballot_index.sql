-- Open ballots by when they expire. Where PostgreSQL had found none open, this index seemed to find those of one business as
-- well as the one by business, and each inbox and each hint was looked for among all. Now only statements that name the bound
-- may use it.
create index ballot_due_at on ballot (expires_at) where status = 'open' and expires_at >= 0;
