-- Issuers, the credentials they issue, and the index that answers whether a field is verified.
-- Values are kept, sealed, only until the user's wallet has collected them; afterwards hashes alone.

create table issuer (
  id uuid primary key,
  -- api: somebody else, with keys of its own; the others are built in, one for each environment at most.
  kind text not null check (kind in ('api', 'email', 'sandbox', 'demo')),
  name text not null check (length(name) between 1 and 100),
  -- How the registry on chain names it; nobody needs a key for it.
  address text not null unique check (address ~ '^0x[0-9a-f]{40}$'),
  environment text not null check (environment in ('live', 'sandbox')),
  created_at bigint not null,
  -- When the operator was asked to get the issuer's role on chain, and since when it has it.
  role_requested_at bigint,
  role_granted_at bigint,
  -- What it attested at or after this no longer counts. It only falls.
  distrusted_from bigint check (distrusted_from > 0),
  -- How much of that was handed to the chain.
  distrust_sent_from bigint
);
create unique index on issuer (kind, environment) where kind <> 'api';

create table issuer_key (
  id text primary key,
  issuer_id uuid not null references issuer,
  name text not null check (length(name) between 1 and 100),
  -- HMAC of the whole key; the key itself is shown once and never stored.
  mac bytea not null check (length(mac) = 32),
  created_at bigint not null,
  last_used_at bigint,
  revoked_at bigint
);
create index on issuer_key (issuer_id);

-- Many roots of one issuer in one transaction.
create table credential_batch (
  id uuid primary key,
  kind text not null check (kind in ('attest', 'revoke')),
  issuer_id uuid not null references issuer,
  created_at bigint not null,
  transaction_hash bytea,
  finished_at bigint
);

create table credential (
  id uuid primary key,
  issuer_id uuid not null references issuer,
  -- The issuer's; kept here so that a lookup sees nothing of the other environment.
  environment text not null check (environment in ('live', 'sandbox')),
  user_address text not null check (user_address ~ '^0x[0-9a-f]{40}$'),
  document text not null,
  root bytea not null unique check (length(root) = 32),
  -- All leaves of the tree, random ones included, 32 bytes each.
  tree bytea not null,
  -- The fields with their values and peppers; null once collected.
  values_sealed bytea,
  created_at bigint not null,
  expires_at bigint not null,
  collected_at bigint,
  attest_batch_id uuid references credential_batch,
  attest_failures integer not null default 0,
  -- Time of the block, once the transaction is final: from here on the credential counts.
  attested_at bigint,
  ended_at bigint,
  ended_reason text check (ended_reason in ('revoked', 'withdrawn', 'lapsed')),
  -- Those above were told that it no longer counts.
  invalidated_at bigint,
  check ((ended_at is null) = (ended_reason is null))
);
create index on credential (user_address);
create index on credential (issuer_id, id);
create index credential_unattested on credential (issuer_id, created_at)
  where attest_batch_id is null and ended_at is null;
create index on credential (attest_batch_id) where attested_at is null and attest_batch_id is not null;
create index credential_uncollected on credential (created_at)
  where values_sealed is not null and ended_at is null;
create index credential_countable on credential (issuer_id, attested_at) where invalidated_at is null;

-- One verified field. Its row outlives the value: it is what a stored triple is checked against.
create table credential_leaf (
  credential_id uuid not null references credential on delete cascade,
  field text not null,
  leaf bytea not null unique check (length(leaf) = 32),
  commitment bytea not null check (length(commitment) = 32),
  -- SHA-256 of value and pepper: says the same as the commitment, and is a tenth of the work to compare with.
  opening bytea not null check (length(opening) = 32),
  expires_at bigint not null,
  primary key (credential_id, field)
);

-- Every leaf with what decides whether it counts; `counts` leaves out its end, which depends on the time.
create view verified_leaf as
select
  credential_leaf.credential_id,
  credential_leaf.field,
  credential_leaf.leaf,
  credential_leaf.opening,
  credential_leaf.expires_at,
  credential.user_address,
  credential.environment,
  credential.attested_at is not null as is_attested,
  credential.ended_at is not null
    or (credential.attested_at is not null and credential.attested_at >= issuer.distrusted_from) is true as is_revoked,
  credential.attested_at is not null
    and credential.ended_at is null
    and (issuer.distrusted_from is null or credential.attested_at < issuer.distrusted_from) as counts
from credential
  join credential_leaf on credential_leaf.credential_id = credential.id
  join issuer on issuer.id = credential.issuer_id;

-- Roots to revoke on chain; they outlive the credential of a user who was deleted.
create table credential_revocation (
  root bytea primary key check (length(root) = 32),
  issuer_id uuid not null references issuer,
  created_at bigint not null,
  batch_id uuid references credential_batch,
  failures integer not null default 0
);
create index on credential_revocation (batch_id) where batch_id is not null;
create index credential_revocation_waiting on credential_revocation (issuer_id) where batch_id is null;

-- A repeated call of an issuer is answered with the credential of the first.
create table issuer_idempotency (
  issuer_id uuid not null references issuer,
  key text not null,
  -- HMAC: the body holds personal data, and few bytes of them.
  body_mac bytea not null check (length(body_mac) = 32),
  credential_id uuid not null references credential on delete cascade,
  created_at bigint not null,
  primary key (issuer_id, key)
);
create index on issuer_idempotency (created_at);
create index on issuer_idempotency (credential_id);

-- A code on its way to an address and back from the wallet.
create table email_verification (
  id uuid primary key,
  user_address text not null check (user_address ~ '^0x[0-9a-f]{40}$'),
  environment text not null check (environment in ('live', 'sandbox')),
  -- Null once it is over.
  email_sealed bytea,
  code_mac bytea not null check (length(code_mac) = 32),
  -- Until the message was handed over.
  code_sealed bytea,
  tries integer not null default 0,
  created_at bigint not null,
  expires_at bigint not null,
  -- The message: when to try next, how often it was tried, and when it was handed over.
  send_due_at bigint,
  send_attempts integer not null default 0,
  sent_at bigint,
  credential_id uuid references credential on delete set null
);
create index on email_verification (send_due_at) where send_due_at is not null;
create index on email_verification (expires_at);
create index on email_verification (user_address);
create index on email_verification (credential_id);

-- Who logged in to an organization or shared with it once: in `production` it may ask about these users alone.
create table organization_user (
  organization_id uuid not null references organization,
  user_address text not null check (user_address ~ '^0x[0-9a-f]{40}$'),
  created_at bigint not null,
  primary key (organization_id, user_address)
);
create index on organization_user (user_address);
