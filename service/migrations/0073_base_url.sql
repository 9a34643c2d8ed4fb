-- The address under which a process was started last: tokens, links and what wallets hold name it.
create table base_url (
  single boolean primary key default true check (single),
  url text not null
);
