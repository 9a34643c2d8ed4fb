-- KYC orders. One row for each reference key; a later request of the same fields is the next attempt of the same order.
--
-- Every change of status is one guarded statement that also writes the history and settles the package's counters
-- (kyc/transition-store.ts), for one order or for the thousand of a batch. Open work is found by partial indexes, so
-- finished orders cost nothing.

create table kyc_batch (
  id uuid primary key,
  phase text not null check (phase in ('initiate', 'confirm')),
  root bytea not null check (length(root) = 32),
  -- The head of the audit chain is one more leaf: its hash and position, and the salt-free leaf itself follows from them.
  audit_head bytea not null check (length(audit_head) = 32),
  audit_position bigint not null,
  created_at bigint not null,
  -- Once the transaction is final.
  transaction_hash bytea,
  operator text,
  block_number bigint,
  block_time bigint
);
-- The history names the transaction, and so the batch, of every attempt.
create unique index on kyc_batch (transaction_hash) where transaction_hash is not null;
create index on kyc_batch (audit_position, id);

create table kyc_order (
  id uuid primary key,
  reference_key bytea not null unique check (length(reference_key) = 32),
  package_id uuid not null references kyc_package,
  client_domain_id uuid not null references client_domain,
  organization_id uuid not null,
  environment text not null check (environment in ('live', 'sandbox')),
  user_address text not null check (user_address ~ '^0x[0-9a-f]{40}$'),
  -- As asked, sorted, parents among them.
  required text[] not null,
  optional text[] not null,
  attempt integer not null default 1,
  status text not null
    check (status in ('PENDING', 'INITIATING', 'INITIATED', 'CONFIRMING', 'CONFIRMED', 'FAILED')),
  -- When the order reached this status.
  status_at bigint not null,
  failure_reason text,
  -- Of the newest event.
  sequence integer not null,
  callback text not null,
  expiration bigint not null,
  reference text,
  purpose text,
  return_url text,
  created_at bigint not null,
  scanned_at bigint,
  -- Validly signed results that matched nothing, in this attempt.
  mismatches integer not null default 0,
  -- Of this attempt; part of what is anchored.
  salt bytea not null check (length(salt) = 32),
  approved_at bigint,
  initiate_batch_id uuid references kyc_batch,
  confirm_batch_id uuid references kyc_batch,
  initiated_tx_hash bytea,
  confirm_tx_hash bytea,
  check ((status = 'FAILED') = (failure_reason is not null))
);
create index on kyc_order (client_domain_id, id);
create index on kyc_order (client_domain_id, status, id);
create index on kyc_order (user_address, id);
create index kyc_order_expiring on kyc_order (expiration) where status = 'PENDING';
create index kyc_order_initiating on kyc_order (approved_at) where status = 'INITIATING';
create index kyc_order_unbatched on kyc_order (approved_at) where status = 'INITIATING' and initiate_batch_id is null;
create index kyc_order_initiated on kyc_order (status_at) where status = 'INITIATED';
create index kyc_order_initiate_batch on kyc_order (initiate_batch_id)
  where status = 'INITIATING' and initiate_batch_id is not null;
create index kyc_order_confirm_batch on kyc_order (confirm_batch_id)
  where status = 'CONFIRMING' and confirm_batch_id is not null;

-- Where webhooks of this domain may go, where it lists hosts; else anywhere.
alter table client_domain add column callback_hosts text[];

-- Every status that an order reached, by its sequence number, which is that of its event too.
create table kyc_order_status (
  order_id uuid not null references kyc_order,
  sequence integer not null,
  attempt integer not null,
  status text not null,
  created_at bigint not null,
  initiated_tx_hash bytea,
  confirm_tx_hash bytea,
  failure_reason text,
  primary key (order_id, sequence)
);

-- A link that was given out for an attempt. The secret in it is stored as its hash.
create table kyc_token (
  token_sha256 bytea primary key check (length(token_sha256) = 32),
  order_id uuid not null references kyc_order,
  attempt integer not null,
  -- The link's `dl`.
  expiration bigint not null,
  -- Where the data goes as the wallet was told.
  callback text not null,
  -- The domain that was verified when it was made, else empty.
  requester text not null,
  -- Optional names that the link offers: verified when it was made.
  offered text[] not null,
  -- Made when the wallet opens it, and kept: the signature names its hash.
  request_object text,
  created_at bigint not null
);
create index on kyc_token (order_id);
create index on kyc_token (expiration);

-- What the user signed, for the receipt. No value is in it.
create table kyc_consent (
  order_id uuid not null references kyc_order,
  attempt integer not null,
  request_object text not null,
  connection text not null,
  requester text not null,
  deadline bigint not null,
  -- Concrete names, sorted, and their leaves in that order.
  fields text[] not null,
  leaves bytea[] not null,
  signature bytea not null,
  -- The digest of `Share`, and its member `data`.
  consent bytea not null check (length(consent) = 32),
  data_hash bytea not null check (length(data_hash) = 32),
  -- The order's of this attempt (the order gets another one with its next attempt): receipts outlive the attempt.
  salt bytea not null check (length(salt) = 32),
  -- Position in the batch's tree is found by the leaf; the siblings are computed from the batch's leaves.
  created_at bigint not null,
  -- When `data.transferred` was queued: from then on the organization counts as having been given these fields.
  delivered_at bigint,
  primary key (order_id, attempt)
) with (fillfactor = 75); -- room for `delivered_at` on the same page, so that the index of leaves is written once
create index kyc_consent_leaf on kyc_consent using gin (leaves);

-- The data on its way, sealed under a key of its own; gone once its event is written.
create table kyc_payload (
  order_id uuid primary key references kyc_order,
  sealed bytea not null,
  created_at bigint not null
);

-- Leaves of a batch, for receipts: 32 bytes each, in the order of the tree.
create table kyc_batch_leaves (
  batch_id uuid primary key references kyc_batch,
  leaves bytea not null
);

-- Identities that the service made for a sandbox domain, and that `svc simulate` may act for.
create table synthetic_identity (
  user_address text primary key check (user_address ~ '^0x[0-9a-f]{40}$'),
  client_domain_id uuid not null references client_domain,
  key_sealed bytea not null,
  -- Its fields with their peppers, as a wallet would hold them.
  held_sealed bytea not null,
  created_at bigint not null
);
