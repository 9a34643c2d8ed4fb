create table organization (
  id uuid primary key,
  name text not null check (length(name) between 1 and 200),
  created_at bigint not null
);

create table organization_member (
  organization_id uuid not null references organization,
  user_address text not null check (user_address ~ '^0x[0-9a-f]{40}$'),
  role text not null check (role in ('owner', 'developer', 'viewer')),
  created_at bigint not null,
  primary key (organization_id, user_address)
);

-- Where a merchant's users are: one per site and environment; the environment never changes.
create table client_domain (
  id uuid primary key,
  organization_id uuid not null references organization,
  domain text not null,
  environment text not null check (environment in ('live', 'sandbox')),
  proof_token text not null,
  -- The last check that found the proof; the domain counts as verified for seven days from it.
  proved_at bigint,
  -- Last check of the proof, and since when it has been failing without a break.
  checked_at bigint,
  failing_since bigint,
  -- When the next check is due, once proved; the lease names the process that is checking.
  check_due_at bigint,
  lease_id uuid,
  leased_until bigint,
  created_at bigint not null,
  unique (organization_id, domain, environment)
);
create index on client_domain (check_due_at) where check_due_at is not null;

create table oauth_client (
  id text primary key,
  client_domain_id uuid not null references client_domain,
  name text not null check (length(name) between 1 and 100),
  authentication_method text not null
    check (authentication_method in ('client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none')),
  redirect_uris text[] not null,
  post_logout_redirect_uris text[] not null default '{}',
  audiences text[] not null default '{}',
  backchannel_logout_uri text,
  -- Public keys of a private_key_jwt client: given here or fetched, never both.
  jwks jsonb,
  jwks_uri text,
  check ((authentication_method = 'private_key_jwt') = (jwks is not null or jwks_uri is not null)),
  check (jwks is null or jwks_uri is null),
  number_matching boolean not null default true,
  pkce_required boolean not null default true,
  dpop_required boolean not null default false,
  id_token_algorithm text not null default 'RS256' check (id_token_algorithm in ('RS256', 'ES256')),
  acr_minimum text check (acr_minimum in ('urn:svc:acr:qr', 'urn:svc:acr:qr-near', 'urn:svc:acr:same-device')),
  created_at bigint not null,
  disabled_at bigint
);
create index on oauth_client (client_domain_id);

-- At most two live secrets a client; the secret itself is shown once and never stored.
create table client_secret (
  id uuid primary key,
  client_id text not null references oauth_client,
  sha256 bytea not null check (length(sha256) = 32),
  created_at bigint not null,
  last_used_at bigint,
  revoked_at bigint
);
create index on client_secret (client_id);

-- Keys of the KYC and KYB API (scoped to a client domain) and management keys (scoped to an organization: no domain).
create table api_key (
  id text primary key,
  organization_id uuid not null references organization,
  client_domain_id uuid references client_domain,
  name text not null check (length(name) between 1 and 100),
  -- HMAC of the whole key under this installation's `api-key` key; the key itself is shown once and never stored.
  mac bytea not null check (length(mac) = 32),
  created_at bigint not null,
  last_used_at bigint,
  revoked_at bigint
);
create index on api_key (organization_id);
