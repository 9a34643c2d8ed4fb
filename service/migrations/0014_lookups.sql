-- A stored triple is found by its opening alone.
create unique index on credential_leaf (opening);

-- Which key asked about which user, to the minute; kept as long as the audit trail, whatever becomes of the user.
create table lookup (
  key_id text not null,
  user_address text not null,
  at bigint not null,
  primary key (key_id, user_address, at)
);
create index on lookup using brin (at);
