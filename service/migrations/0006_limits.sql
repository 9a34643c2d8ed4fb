-- Tokens that processes hold in leases until the end of the epoch they were drawn in.
alter table rate_bucket
  add column epoch double precision not null default 0,
  add column outstanding double precision not null default 0,
  -- What the last statement drew.
  add column leased double precision not null default 0;
create index on rate_bucket (refilled_at);
