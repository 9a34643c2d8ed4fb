-- A block of the embedded chain is bounded by what it may compute. What came before may compute as much as one may.
alter table embedded_transaction add column gas bigint not null default 30000000;
