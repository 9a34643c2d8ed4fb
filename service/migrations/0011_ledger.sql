-- Money in Rappen, double entry: every movement takes from one account what it gives to another, so the sum is always zero.
-- Each organization has a live balance in CHF and one of play money for its sandbox.

create table ledger_account (
  id uuid primary key,
  organization_id uuid not null references organization,
  environment text not null check (environment in ('live', 'sandbox')),
  -- funding: the world outside, below zero by what was paid in; available; held: promised, not yet spent; spent.
  kind text not null check (kind in ('funding', 'available', 'held', 'spent')),
  balance_rappen bigint not null default 0,
  unique (organization_id, environment, kind),
  check (kind = 'funding' or balance_rappen >= 0)
);

create table ledger_movement (
  id uuid primary key,
  from_account_id uuid not null references ledger_account,
  to_account_id uuid not null references ledger_account,
  amount_rappen bigint not null check (amount_rappen > 0),
  kind text not null,
  -- What it was for; an account gives once for each, so nothing is charged twice.
  subject text not null,
  created_at bigint not null,
  check (from_account_id <> to_account_id),
  unique (from_account_id, kind, subject)
);
create index on ledger_movement (to_account_id, id);

-- A bought KYC product: so many transfers, at a price that was paid once. Its fields never change.
create table kyc_package (
  id uuid primary key,
  client_domain_id uuid not null references client_domain,
  name text not null check (length(name) between 1 and 100),
  source_key text not null unique,
  signing_key_sealed bytea not null,
  -- Shown before it is used, so that the receiver knows both when it is switched to.
  next_signing_key_sealed bytea,
  -- Null where every request names its own.
  fields text[] check (cardinality(fields) > 0),
  transfers_total integer not null check (transfers_total > 0),
  -- By open orders; and by confirmed ones.
  transfers_held integer not null default 0 check (transfers_held >= 0),
  transfers_consumed integer not null default 0 check (transfers_consumed >= 0),
  price_rappen bigint not null check (price_rappen >= 0),
  created_at bigint not null,
  check (transfers_held + transfers_consumed <= transfers_total)
);
create index on kyc_package (client_domain_id);
