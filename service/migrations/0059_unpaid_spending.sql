-- What of a day's spending went to what nobody is charged for: that has a share of its own, whatever the rest costs.
alter table chain_signer add column spent_unpaid_wei numeric(78) not null default 0;
