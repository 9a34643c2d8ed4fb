-- Where businesses are made, and what their members decide about them.

-- Factories of business wallets, one for each environment; kept like the other contracts.
alter table chain_identity
  add column live_factory text,
  add column sandbox_factory text;

alter table business
  -- When the chain is looked at for what has become of it; null while nothing is expected to have changed.
  add column look_due_at bigint,
  -- The block as of which the row mirrors the chain.
  add column chain_block bigint not null default 0,
  -- Why everything asked of it has to end; null once that is done.
  add column stop_reason text check (stop_reason in ('business_not_verified', 'business_wallet_rotated'));
create index business_look on business (look_due_at) where look_due_at is not null;
create index business_stop on business (address) where stop_reason is not null;
create index business_inviting_creator on business (creator) where status = 'inviting';

-- Acts of governance, from the proposal to the final transaction.
create table business_proposal (
  -- Also of its ballot.
  id text collate "C" primary key,
  business text not null references business,
  operation text not null check (operation in ('changeCharter', 'moveTo', 'startRemoval', 'withdraw')),
  -- As the contract takes it (ABI).
  arguments bytea not null,
  -- Of a changed charter: what the others will call its members, by address; personal, so sealed.
  names_sealed bytea,
  -- Of a removal: whom.
  member text,
  proposer text not null,
  -- Of the wallet, when the collecting began; an act that came first makes it begin anew.
  nonce bigint not null,
  status text not null check (status in ('open', 'relaying', 'executed', 'refused', 'expired', 'failed')),
  created_at bigint not null,
  ended_at bigint
);
create index business_proposal_open on business_proposal (business) where status in ('open', 'relaying');
create index business_proposal_ended on business_proposal (ended_at) where ended_at is not null;

-- The removal of a member who seems lost, as the wallet has it.
create table business_removal (
  business text primary key references business,
  member text not null,
  -- When the member goes, Unix seconds.
  ends_at bigint not null,
  -- What the member signs to stay.
  keep_nonce bigint not null,
  -- Since when the member is known to be there; the service does not finish the removal then.
  answered_at bigint,
  -- Of the business when the service last had the removal finished.
  finishing_epoch bigint
);

-- A business that goes on in another wallet by the operator's hand, 30 days after notice to every member.
create table business_move (
  business text primary key references business,
  successor text not null references business,
  ends_at bigint not null,
  -- What a member signs to cancel it.
  keep_nonce bigint not null,
  created_at bigint not null
);

-- Up to which block events of business wallets were looked for.
create table business_watch (
  single boolean primary key default true check (single),
  block bigint not null
);
