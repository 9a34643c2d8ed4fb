-- What businesses are asked for, what they release, and what that costs.

-- Money promised to one open request: it ends once, by capturing some of it and freeing the rest.
create table ledger_hold (
  subject text collate "C" primary key,
  -- The `held` account that keeps it.
  account_id uuid not null references ledger_account,
  amount_rappen bigint not null check (amount_rappen > 0),
  captured_rappen bigint check (captured_rappen between 0 and amount_rappen),
  created_at bigint not null,
  ended_at bigint,
  check ((ended_at is null) = (captured_rappen is null))
);

create table data_request (
  id text collate "C" primary key,
  client_domain_id uuid not null references client_domain,
  organization_id uuid not null references organization,
  environment text not null check (environment in ('live', 'sandbox')),
  business text not null references business,
  purpose text not null,
  reference text,
  -- [{name, optional, naturalPersonPii, tier, cents}] as they were when it was made: what is shown, and what is charged.
  fields jsonb not null,
  quoted_rappen bigint not null check (quoted_rappen > 0),
  status text not null check (status in ('pending_approval', 'released', 'refused', 'cancelled', 'failed')),
  reason text,
  -- Of its last event.
  sequence integer not null,
  created_at bigint not null,
  expires_at bigint not null,
  -- The optional fields that go, by the first approval; null before it.
  fixed_optional text[],
  -- Enough members refused: announced at this time.
  refused_due_at bigint,
  -- Enough members approved: whoever signs takes it from here.
  approved_at bigint,
  ended_at bigint,
  check ((status = 'pending_approval') = (ended_at is null))
);
create unique index data_request_open on data_request (client_domain_id, business) where status = 'pending_approval';
create index on data_request (client_domain_id, id);
create index on data_request (organization_id, business, created_at);
create index data_request_refused on data_request (refused_due_at)
  where refused_due_at is not null and status = 'pending_approval';
create index data_request_approved on data_request (approved_at)
  where approved_at is not null and status = 'pending_approval';

-- What was released; gone 30 days later.
create table data_release (
  request_id text collate "C" primary key references data_request,
  -- As it was delivered, byte for byte; null once it was purged.
  attestation_sealed bytea,
  -- [{name, subject, leaf}] of the values in it; null once it was purged.
  leaves jsonb,
  released_at bigint not null,
  expires_at bigint not null,
  check ((attestation_sealed is null) = (leaves is null))
);
create index data_release_purge on data_release (expires_at) where attestation_sealed is not null;

-- What was paid for a release, line by line; it stays when the data is gone.
create table kyb_charge (
  id text collate "C" primary key,
  organization_id uuid not null references organization,
  environment text not null check (environment in ('live', 'sandbox')),
  client_domain_id uuid not null references client_domain,
  request_id text collate "C" not null unique references data_request,
  business text not null,
  amount_rappen bigint not null check (amount_rappen > 0),
  -- [{field, tier, cents}]
  lines jsonb not null,
  created_at bigint not null
);
create index on kyb_charge (organization_id, environment, id);
create index on kyb_charge (organization_id, business);

-- Keys that sign attestations; each is published from the day the one before it starts.
create table attestation_key (
  kid text primary key,
  public_jwk jsonb not null,
  private_sealed bytea not null,
  created_at bigint not null,
  starts_at bigint not null,
  revoked_at bigint
);
create unique index on attestation_key (starts_at) where revoked_at is null;
