-- Webhooks: events as they were announced, and the deliveries still to be made. One engine for every channel.
--
-- An event row is written in the transaction of the change it tells of. A delivery row exists while there is something to
-- do, so finished events cost the engine nothing. Times that end in `_ms` are Unix milliseconds, others Unix seconds.

create table webhook_event (
  id text collate "C" primary key,
  -- What the events tell of, such as an order; `sequence` counts its events without a gap.
  stream_id text collate "C" not null,
  sequence integer not null check (sequence > 0),
  channel text not null check (channel in ('kyc')),
  kind text not null,
  client_domain_id uuid not null,
  -- Whose key signs.
  key_id text not null,
  url text not null,
  -- One of the two; neither in a tombstone. Personal data is stored only sealed, under a key of its own.
  body text,
  body_sealed bytea,
  is_personal boolean not null,
  created_at bigint not null,
  attempts integer not null default 0,
  delivered_at bigint,
  -- When the body goes; null once it is gone.
  purge_at bigint,
  unique (stream_id, sequence),
  check (not is_personal or body is null),
  check (num_nonnulls(body, body_sealed) = num_nonnulls(purge_at))
);
create index webhook_event_purge on webhook_event (purge_at) where purge_at is not null;

create table webhook_delivery (
  event_id text collate "C" primary key references webhook_event,
  -- Client domain and address, as a hash: what the limits are counted by.
  endpoint_id uuid not null,
  client_domain_id uuid not null,
  stream_id text collate "C" not null,
  sequence integer not null,
  -- Attempts made in this run of the schedule.
  step integer not null default 0,
  is_large boolean not null,
  -- While it is leased, the end of the lease.
  due_at_ms bigint not null,
  -- Whoever does not know it any more may not report a result.
  lease uuid
);
-- What waits and what is under way stand in indexes of their own, so that neither is in the way of the other.
create index webhook_delivery_due on webhook_delivery (due_at_ms) where lease is null;
create index webhook_delivery_waiting on webhook_delivery (endpoint_id, due_at_ms) where lease is null;
create index webhook_delivery_leased on webhook_delivery (endpoint_id) where lease is not null;
-- The first attempts of a stream go in order.
create index webhook_delivery_first on webhook_delivery (stream_id, sequence) where step = 0;

-- The pace of an endpoint that deliveries were made to lately. Written by whoever has the turn alone.
create table webhook_endpoint (
  id uuid primary key,
  -- The next attempt begins no sooner.
  next_at_ms bigint not null,
  interval_ms integer not null default 20 check (interval_ms > 0)
);
create index on webhook_endpoint (next_at_ms);

-- Processes take turns in handing out deliveries, so that limits of an endpoint hold for all of them together.
create table webhook_turn (
  single boolean primary key default true check (single),
  version bigint not null
);
insert into webhook_turn (version) values (0);

-- Every attempt and how it ended.
create table webhook_attempt (
  -- The event's id, a dot, and the number of the attempt.
  id text collate "C" primary key,
  number integer not null,
  begun_at_ms bigint not null,
  duration_ms integer not null,
  outcome text not null,
  status integer,
  -- The beginning of what the receiver said.
  answer_sealed bytea
);
create index on webhook_attempt (begun_at_ms);
