-- Documents that businesses are asked to sign, and offers: requests that whoever scans them takes for its business.

create table signature_request (
  id text collate "C" primary key,
  client_domain_id uuid not null references client_domain,
  organization_id uuid not null references organization,
  environment text not null check (environment in ('live', 'sandbox')),
  business text not null references business,
  message_kind text not null check (message_kind in ('TEXT', 'TYPED_DATA')),
  -- Null once it was purged.
  document_sealed bytea,
  -- What is signed: EIP-191 or EIP-712.
  digest bytea not null check (length(digest) = 32),
  purpose text not null,
  status text not null check (status in ('pending_approval', 'signed', 'refused', 'expired', 'cancelled', 'failed')),
  reason text,
  -- Of its last event.
  sequence integer not null,
  created_at bigint not null,
  expires_at bigint not null,
  -- Enough members refused: announced at this time.
  refused_due_at bigint,
  -- Enough members approved: the transaction that records it, and what has to be looked at when it failed.
  approved_at bigint,
  recordings integer not null default 0,
  has_failed_recording boolean not null default false,
  transaction_hash bytea,
  signed_at bigint,
  ended_at bigint,
  check ((status = 'pending_approval') = (ended_at is null)),
  check ((status = 'signed') = (signed_at is not null))
);
create index on signature_request (client_domain_id, id);
create index on signature_request (organization_id, business, created_at);
create index signature_request_open on signature_request (business) where status = 'pending_approval';
create index signature_request_refused on signature_request (refused_due_at)
  where refused_due_at is not null and status = 'pending_approval';
create index signature_request_failed on signature_request (id) where has_failed_recording;
create index signature_request_signed on signature_request (business, digest) where status = 'signed';
create index signature_request_purge on signature_request (ended_at) where document_sealed is not null;

create table kyb_offer (
  id text collate "C" primary key,
  client_domain_id uuid not null references client_domain,
  organization_id uuid not null references organization,
  environment text not null check (environment in ('live', 'sandbox')),
  kind text not null check (kind in ('data_request', 'signature_request')),
  -- The body of the request to be; null once it was purged.
  request_sealed bytea,
  -- The verified domain of whoever asks, when it was made; empty where none was.
  requester text not null,
  created_at bigint not null,
  expires_at bigint not null,
  cancelled_at bigint,
  claimed_at bigint,
  business text references business,
  request_id text,
  check ((claimed_at is null) = (request_id is null)),
  check (claimed_at is null or cancelled_at is null)
);
create index on kyb_offer (client_domain_id, id);
create index kyb_offer_purge on kyb_offer (expires_at) where request_sealed is not null;

-- Organizations whose requests a business does not take.
create table business_block (
  business text not null references business,
  organization_id uuid not null references organization,
  created_at bigint not null,
  primary key (business, organization_id)
);
