-- What one wallet leaves for whoever has its link: sealed by that wallet with a key that never comes here.
create table mailbox (
  -- The id itself is in the link alone: whoever reads this table cannot take anything.
  id_sha256 bytea primary key check (length(id_sha256) = 32),
  user_address text not null check (user_address ~ '^0x[0-9a-f]{40}$'),
  box text not null check (length(box) between 1 and 262144),
  expires_at bigint not null
);
create index on mailbox (user_address);
create index on mailbox (expires_at);
