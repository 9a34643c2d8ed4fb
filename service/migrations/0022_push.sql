-- Devices that are told when something waits for their identity (RFC 8030): an address at a push service, and the keys
-- that hints are encrypted to.
create table push_subscription (
  id uuid primary key,
  user_address text not null check (user_address ~ '^0x[0-9a-f]{40}$'),
  -- Finds a subscription again without showing where it leads.
  endpoint_sha256 bytea not null check (length(endpoint_sha256) = 32),
  -- Whoever has it can reach the device.
  subscription_sealed bytea not null,
  created_at bigint not null,
  unique (user_address, endpoint_sha256)
);

-- Hints that went out, written before they go: each at most once.
create table push_sent (
  subject text collate "C" not null,
  member text not null,
  created_at bigint not null,
  primary key (subject, member)
);
create index on push_sent (created_at);
create index on push_sent (member);
