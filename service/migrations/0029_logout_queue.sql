-- Logouts are taken from one client after the other.
drop index logout_delivery_due_at_idx;
create index on logout_delivery (client_id, due_at) where ended_at is null;
