-- Company records: credentials (document COMPANY) whose holder is a business. Their values stay here, sealed one by one,
-- as long as the record counts: no wallet collects them, and a release opens what it takes alone.

create table company_record (
  credential_id uuid primary key references credential on delete cascade,
  business text not null references business,
  -- When the issuer looked at its sources.
  as_of bigint not null,
  -- Whether the issuer says by it that the business is what it claims to be.
  vouches boolean not null,
  -- Since when it is known here that it ended: revoked, expired, or its issuer distrusted.
  ended_at bigint
);
create index on company_record (business);
create index company_record_open on company_record (credential_id) where ended_at is null;
create index company_record_over on company_record (ended_at) where ended_at is not null;

create table company_field (
  id uuid primary key,
  credential_id uuid not null references company_record on delete cascade,
  name text not null,
  -- Which of its persons it tells of; empty for the business itself.
  subject text not null,
  leaf bytea not null unique references credential_leaf (leaf) on delete cascade,
  -- Value and pepper.
  value_sealed bytea not null,
  unique (credential_id, name, subject)
);
