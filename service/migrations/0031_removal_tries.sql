-- A removal whose transaction was reverted is tried again, a longer while later each time.
alter table business_removal
  -- Transactions of this removal and epoch that were reverted.
  add column finish_failures integer not null default 0,
  -- When the next one goes; null unless the last one was reverted.
  add column finish_due_at bigint;
-- Those that were reverted before now are due at once.
update business_removal set finish_failures = 1, finish_due_at = 0
from chain_transaction t
where t.kind = 'business.remove' and t.status = 'reverted'
  and t.subject_id = business_removal.business || ':' || keep_nonce || ':' || finishing_epoch;
