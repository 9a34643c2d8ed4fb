-- What an organization may do beyond reading: granted by the operator, on request.
create table organization_entitlement (
  organization_id uuid not null references organization,
  entitlement text not null check (entitlement in ('kyb:data-request', 'kyb:pii', 'kyb:signature')),
  granted_at bigint not null,
  primary key (organization_id, entitlement)
);

-- The answer to a call of the KYB API that named an Idempotency-Key: the same call again gets it again.
create table kyb_idempotency (
  id uuid not null unique,
  client_domain_id uuid not null references client_domain,
  key text not null,
  -- HMAC of route and body: they may hold personal data, and few bytes of them.
  request_mac bytea not null check (length(request_mac) = 32),
  -- Sealed: an answer may hold a secret.
  answer_sealed bytea,
  created_at bigint not null,
  primary key (client_domain_id, key)
);
create index on kyb_idempotency (created_at);
