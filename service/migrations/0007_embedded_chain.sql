-- The embedded chain. Its node keeps nothing: these rows are the chain, and a lost node is replayed from them.

create table embedded_chain (
  only_row boolean primary key default true check (only_row),
  -- Random, so that nothing signed here is valid anywhere else.
  chain_id bigint not null,
  genesis_time bigint not null,
  -- Holds the coin of the genesis block; pays what `dev` hands out.
  faucet_address text not null,
  faucet_key_sealed bytea not null,
  -- Where the node of the process that has the chain listens.
  ipc_path text,
  -- The state after a block as the node dumps it, so that a start replays only what came later.
  folded_block bigint,
  folded_state bytea
);

create table embedded_block (
  number bigint primary key,
  time bigint not null,
  -- Null until the node mined it for the first time.
  hash text
);

create table embedded_transaction (
  position bigint generated always as identity primary key,
  hash text not null unique,
  raw bytea not null,
  signer text not null,
  nonce bigint not null,
  -- What it can take from its signer at most.
  cost_wei numeric not null,
  block_number bigint references embedded_block,
  block_index integer,
  created_at bigint not null,
  unique (signer, nonce)
);
create index embedded_transaction_waiting on embedded_transaction (position) where block_number is null;
create index on embedded_transaction (block_number, block_index) where block_number is not null;
