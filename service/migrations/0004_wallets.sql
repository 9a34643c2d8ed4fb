-- Sessions of wallets, opened by a signed `Session` message. A challenge is good for one of them.
create table wallet_session (
  token_sha256 bytea primary key,
  user_address text not null check (user_address ~ '^0x[0-9a-f]{40}$'),
  challenge_sha256 bytea not null unique,
  created_at bigint not null,
  expires_at bigint not null
);
create index on wallet_session (expires_at);
