-- Of an order that was deleted with its user: the event goes with its body, and leaves no tombstone.
alter table webhook_event add column is_forgotten boolean not null default false;
