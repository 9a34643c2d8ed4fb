-- Which transaction wrote an entry, so that the chain can tell entries that are decided from those still under way.
alter table audit_entry add column tx xid8 not null default pg_current_xact_id();
create index on audit_entry (tx);

-- The ends of the chain: the newest link, and the link below which entries past their retention were removed.
create table audit_chain (
  single boolean primary key default true check (single),
  -- Entries of older transactions are linked, or were rolled back.
  horizon xid8 not null default '0',
  head_position bigint not null default 0,
  head_hash bytea not null default decode(repeat('00', 32), 'hex'),
  head_seal bytea,
  checkpoint_position bigint not null default 0,
  checkpoint_hash bytea not null default decode(repeat('00', 32), 'hex'),
  checkpoint_seal bytea
);
insert into audit_chain default values;
