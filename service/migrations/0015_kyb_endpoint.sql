-- The one endpoint of a client domain for KYB events: its address and secrets are read when an event is sent, and while
-- it is quarantined its events are held.

create table kyb_endpoint (
  -- Follows from the client domain, so that an event can be queued without a look here.
  id uuid primary key,
  client_domain_id uuid not null unique references client_domain,
  url text not null,
  -- Of the newest secret; it only rises.
  secret_version integer not null check (secret_version > 0),
  is_active boolean not null default true,
  -- After a quarantine it gets few events at a time, until it has taken one.
  is_resuming boolean not null default false,
  -- Failed attempts since the last 2xx, and when the first of them began.
  failures integer not null default 0,
  failing_since_ms bigint,
  -- Those of them that the address policy refused.
  refusals integer not null default 0,
  refused_since_ms bigint,
  -- Of the newest test event: they are a stream of their own.
  test_sequence integer not null default 0,
  created_at bigint not null,
  check ((failures = 0) = (failing_since_ms is null)),
  check ((refusals = 0) = (refused_since_ms is null))
);

create table kyb_endpoint_secret (
  id uuid primary key,
  endpoint_id uuid not null references kyb_endpoint,
  version integer not null,
  secret_sealed bytea not null,
  -- Of an older secret; null while it is the newest.
  expires_at bigint,
  unique (endpoint_id, version)
);
create unique index on kyb_endpoint_secret (endpoint_id) where expires_at is null;

alter table webhook_event
  drop constraint webhook_event_channel_check,
  alter column key_id drop not null,
  alter column url drop not null,
  add check (channel in ('kyc', 'kyb')),
  -- Others go to where their endpoint is when they are sent.
  add check ((channel = 'kyc') = (key_id is not null)),
  add check ((channel = 'kyc') = (url is not null));

-- What is held waits for its endpoint alone, and stands in no index of what is to be sent.
alter table webhook_delivery add column is_held boolean not null default false;
drop index webhook_delivery_due, webhook_delivery_waiting;
create index webhook_delivery_due on webhook_delivery (due_at_ms) where lease is null and not is_held;
create index webhook_delivery_waiting on webhook_delivery (endpoint_id, due_at_ms, event_id)
  where lease is null and not is_held;
create index webhook_delivery_held on webhook_delivery (endpoint_id) where is_held;

-- The pace of an endpoint is the engine's, or slower while it resumes.
alter table webhook_endpoint drop column interval_ms;
