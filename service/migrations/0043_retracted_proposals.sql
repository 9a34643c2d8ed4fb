-- Whoever proposed something may take it back until it is decided.
alter table business_proposal drop constraint business_proposal_status_check;
alter table business_proposal add constraint business_proposal_status_check
  check (status in ('open', 'relaying', 'executed', 'refused', 'expired', 'failed', 'retracted'));
