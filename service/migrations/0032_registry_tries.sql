-- What the registry refused is sent again, a longer while later each time. Due at once: everything that waits now.
alter table credential add column attest_due_at bigint not null default 0;
alter table credential_revocation add column due_at bigint not null default 0;
alter table issuer
  -- Transactions that were reverted, and when the next one may go.
  add column role_failures integer not null default 0,
  add column role_due_at bigint not null default 0,
  add column distrust_failures integer not null default 0,
  add column distrust_due_at bigint not null default 0;
-- Roles and distrust whose one transaction was reverted before now.
update issuer set role_requested_at = null, role_failures = 1
from chain_transaction t
where t.kind = 'registry.role' and t.status = 'reverted' and t.subject_id = issuer.id::text
  and role_granted_at is null;
update issuer set distrust_sent_from = null, distrust_failures = 1
from chain_transaction t
where t.kind = 'registry.distrust' and t.status = 'reverted'
  and t.subject_id = issuer.id || ':' || distrust_sent_from;
