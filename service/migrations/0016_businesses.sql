-- Businesses: contract wallets with members and rules. Rows mirror the chain: charter, epoch and nonce change when a
-- transaction is final.

create table business (
  -- Of the contract wallet; known before it is deployed.
  address text primary key check (address ~ '^0x[0-9a-f]{40}$'),
  environment text not null check (environment in ('live', 'sandbox')),
  -- What its founders call it; the verified name is a field of its record.
  name text not null check (length(name) between 1 and 100),
  status text not null check (status in ('inviting', 'deploying', 'active', 'suspended', 'moved', 'lapsed')),
  creator text not null,
  -- Its founding, as members find it in their inbox.
  invitation_id text collate "C" not null unique,
  invitation_deadline bigint not null,
  salt bytea not null check (length(salt) = 32),
  -- As the contract packs it.
  charter bytea not null,
  epoch bigint not null default 0,
  nonce bigint not null default 0,
  -- Since when an issuer or the desk has vouched for its record; null before, and after it ended.
  verified_at bigint,
  registered_at bigint,
  successor text,
  created_at bigint not null
);
create index business_inviting on business (invitation_deadline) where status = 'inviting';

-- The roster as it is now, and while a business is founded, whoever is invited.
create table business_member (
  id uuid not null unique,
  business text not null references business,
  member text not null check (member ~ '^0x[0-9a-f]{40}$'),
  -- What the others call the member; personal, so sealed.
  name_sealed bytea not null,
  is_voting boolean not null,
  is_creator boolean not null,
  -- Of the invitation; null until it was signed.
  invitation_signature bytea,
  joined_at bigint not null,
  primary key (business, member)
);
create index on business_member (member);

-- Organizations that a business logged in to, released to or signed for: they see its members' names.
create table business_acquaintance (
  business text not null references business,
  organization_id uuid not null references organization,
  created_at bigint not null,
  primary key (business, organization_id)
);
