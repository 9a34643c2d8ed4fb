-- A person known to this installation: the first login or wallet session of an unseen identity is its sign-up.
create table svc_user (
  address text primary key check (address ~ '^0x[0-9a-f]{40}$'),
  created_at bigint not null
);

-- Keys that sign tokens. The next key of a purpose is published from the day the current one starts.
create table signing_key (
  kid text primary key,
  purpose text not null check (purpose in ('login-rs256', 'login-es256', 'wallet-es256')),
  public_jwk jsonb not null,
  private_sealed bytea not null,
  created_at bigint not null,
  starts_at bigint not null,
  revoked_at bigint
);
create unique index on signing_key (purpose, starts_at) where revoked_at is null;

-- A browser's session with this service, after a login in it.
create table session (
  id uuid primary key,
  secret_sha256 bytea not null unique,
  user_address text not null,
  authenticated_at bigint not null,
  acr text not null,
  created_at bigint not null,
  used_at bigint not null,
  ended_at bigint,
  -- What the user has approved in it: [{client, scope, audience, acr}]; only the same again is answered without the wallet.
  approvals jsonb not null
);

-- One attempt to log in: from the authorization request to the redeemed code. A row is written four or five times within
-- seconds, so nothing that changes is indexed and its page keeps room for the next versions. The client is checked before
-- the row is written: a reference would lock the client's one row for every login of a merchant.
create table login (
  id text primary key,
  client_id text not null,
  -- The authorization request, checked and normalised; what the code will stand for.
  request jsonb not null,
  -- waiting, claimed, approved, finished, failed
  status text not null,
  -- Why a failed one failed: declined, not_started, wrong_number, other_browser, restarted.
  failure text,
  browser_sha256 bytea not null,
  browser_network text not null,
  created_at bigint not null,
  expires_at bigint not null,
  restarts int not null default 0,
  -- For good: one code that does not rotate, for pages without JavaScript; forces number matching.
  is_static boolean not null default false,

  -- How it was opened; a login opened one way cannot be finished the other way.
  channel text,
  session_text text,
  connection text,
  claimed_by text,
  claim_sha256 text,
  digits text,
  -- A second wallet tried to claim: both sides are told.
  is_contested boolean not null default false,
  request_object text,
  acr text,
  approved_at bigint,

  session_id uuid,
  -- Found by the login id, which the code names.
  code_sha256 bytea,
  code_expires_at bigint,
  family_id uuid,
  finished_at bigint
) with (fillfactor = 40);
-- Only the purge looks for old rows.
create index on login using brin (created_at);

-- All tokens that come from one approval. Only the newest refresh token is good; its predecessor may be repeated for a moment.
-- A refresh writes no indexed column and finds room on the row's page, so no index is touched. The client and the session
-- are checked by the statement that inserts: a reference would lock the client's one row for every login of a merchant.
create table token_family (
  id uuid primary key,
  client_id text not null,
  -- Null for client_credentials.
  user_address text,
  session_id uuid,
  scope text not null,
  audience text[] not null,
  claims jsonb not null default '{}',
  acr text,
  authenticated_at bigint,
  dpop_jkt text,
  created_at bigint not null,
  -- No token of the family outlives this.
  expires_at bigint not null,
  generation int not null default 0,
  refresh_sha256 bytea,
  refresh_expires_at bigint,
  previous_sha256 bytea,
  successor_sealed bytea,
  rotated_at_ms bigint,
  revoked_at bigint,
  revoked_reason text
) with (fillfactor = 80);
create index on token_family (user_address) where revoked_at is null;
create index on token_family (session_id) where session_id is not null;

-- Pushed authorization requests (RFC 9126), used once.
create table pushed_request (
  id text primary key,
  client_id text not null references oauth_client,
  parameters jsonb not null,
  expires_at bigint not null
);

-- `jti` of client assertions and DPoP proofs and similar values that may be used once.
create table used_once (
  kind text not null,
  value_sha256 bytea not null,
  expires_at bigint not null,
  primary key (kind, value_sha256)
);
create index on used_once (expires_at);

-- Back-channel logouts to deliver (OpenID Connect Back-Channel Logout 1.0).
create table logout_delivery (
  id uuid primary key,
  client_id text not null references oauth_client,
  user_address text not null,
  session_id uuid,
  attempts int not null default 0,
  due_at bigint not null,
  leased_until bigint,
  created_at bigint not null,
  ended_at bigint,
  outcome text
);
create index on logout_delivery (due_at) where ended_at is null;
