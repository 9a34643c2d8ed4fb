-- Shared by every slice: the movable clock, installation keys, the audit trail, rate limits.
-- Times are Unix seconds (bigint) everywhere.

create table clock (
  single boolean primary key default true check (single),
  offset_seconds bigint not null default 0 check (offset_seconds >= 0)
);
insert into clock default values;

-- Random keys of this installation, made once; sealed with the master key.
create table installation_key (
  name text primary key,
  sealed bytea not null,
  created_at bigint not null
);

-- One row per audited act, written in the transaction that it describes; never holds personal values.
create table audit_entry (
  id bigint generated always as identity primary key,
  at bigint not null,
  actor text not null,
  action text not null,
  subject text not null,
  details jsonb not null default '{}'
);

-- The chain over audit_entry: one job appends in id order; hash = SHA-256 over the previous hash and the entry.
create table audit_link (
  position bigint primary key,
  entry_id bigint not null unique,
  hash bytea not null,
  seal bytea not null,
  sealed_at bigint not null
);

-- What is left of each shared limit; processes draw from it in leases.
create unlogged table rate_bucket (
  name text primary key,
  tokens double precision not null,
  refilled_at double precision not null
);
