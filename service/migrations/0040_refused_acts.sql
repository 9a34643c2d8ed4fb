-- The block in which the chain refused what members had approved, until the wallet was looked at for the reason.
alter table business_proposal add column refused_block bigint;
