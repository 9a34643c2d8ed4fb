-- The chain that this installation settles on, the account that sends, and the transactions it has to send.
-- Amounts are in wei. Times are Unix seconds of the shared clock.

-- Remembered at the first start: another chain, or other contracts, would void everything that was settled.
create table chain_identity (
  single boolean primary key default true check (single),
  chain_id bigint not null,
  registry text,
  settlement text
);

-- The operator's key where none is configured; sealed with the master key.
create table chain_signer_key (
  name text primary key,
  sealed bytea not null,
  created_at bigint not null
);

-- One row per account that sends. Whoever gives out nonces holds its lock.
create table chain_signer (
  address text primary key,
  next_nonce bigint not null default 0,
  spend_day bigint not null default 0,
  spent_wei numeric(78) not null default 0,
  -- One process at a time looks after what was sent.
  observed_at_ms bigint not null default 0
);

create table chain_transaction (
  id bigint generated always as identity primary key,
  kind text not null,
  subject_id text not null,
  to_address text not null,
  -- Null once the transaction has been final for a while.
  data bytea,
  status text not null default 'queued' check (status in ('queued', 'sent', 'succeeded', 'reverted')),
  created_at bigint not null,
  -- Not signed before.
  due_at bigint not null,
  -- How often the chain said beforehand that it would revert.
  refusals integer not null default 0,
  signer text,
  nonce bigint,
  gas_limit bigint,
  max_fee_wei numeric(78),
  priority_fee_wei numeric(78),
  signed_at bigint,
  sent_at bigint,
  -- Where it was seen last; final with status succeeded or reverted.
  mined_hash bytea,
  mined_block_hash bytea,
  mined_block bigint,
  -- Since when the chain has counted past its nonce without it.
  foreign_since bigint,
  finished_at bigint,
  unique (kind, subject_id),
  check ((status = 'queued') = (nonce is null)),
  check ((status in ('succeeded', 'reverted')) = (finished_at is not null))
);
create unique index chain_transaction_nonce on chain_transaction (signer, nonce) where nonce is not null;
create index chain_transaction_due on chain_transaction (due_at, id) where status = 'queued';
create index chain_transaction_sent on chain_transaction (signer, nonce) where status = 'sent';
create index chain_transaction_finished on chain_transaction (finished_at) where data is not null and finished_at is not null;

-- Every signed form of a transaction: a bump of the fee makes another one with the same nonce.
create table chain_transaction_hash (
  hash bytea primary key,
  transaction_id bigint not null references chain_transaction,
  nonce bigint not null,
  -- Null once the transaction has been final for a while.
  raw bytea,
  signed_at bigint not null
);
create index on chain_transaction_hash (transaction_id);
