-- Open questions to the voting members of a business, and their votes.

create table ballot (
  -- The id of what is decided: a request, a login, a proposal.
  id text collate "C" primary key,
  kind text not null check (kind in ('data_request', 'signature_request', 'business_login', 'governance')),
  business text not null references business,
  -- As the contract numbers it: 1 signature, 2 data, 3 governance, 4 login.
  category smallint not null check (category between 1 and 4),
  -- What is approved; null until the first approval fixes it.
  hash bytea check (length(hash) = 32),
  -- Who asks; null where the business asks itself.
  client_domain_id uuid references client_domain,
  -- Of the business when the collecting began; votes of an earlier one are void.
  epoch bigint not null,
  -- Who may vote, and how many of them have to approve.
  voters text[] not null check (cardinality(voters) > 0),
  needed integer not null check (needed between 1 and cardinality(voters)),
  valid_until bigint not null,
  expires_at bigint not null,
  status text not null check (status in ('open', 'approved', 'refused', 'expired', 'cancelled')),
  created_at bigint not null,
  ended_at bigint,
  check ((status = 'open') = (ended_at is null))
);
create index ballot_open on ballot (business) where status = 'open';
create index ballot_due on ballot (expires_at) where status = 'open';
create index ballot_ended on ballot (ended_at) where ended_at is not null;

create table ballot_vote (
  ballot_id text collate "C" not null references ballot on delete cascade,
  epoch bigint not null,
  member text not null,
  -- Null for a refusal, which the member signed as well.
  approval bytea check (length(approval) = 65),
  refusal bytea check (length(refusal) = 65),
  created_at bigint not null,
  primary key (ballot_id, epoch, member),
  check (num_nonnulls(approval, refusal) = 1)
);
