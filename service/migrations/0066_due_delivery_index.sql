-- Deliveries that are due, by when. A claim reads the queue of one endpoint after the other, by the index of those that wait.
-- Where PostgreSQL takes that index for empty, because all deliveries were held or under way when it looked, this one seemed
-- to do as well, and a claim read everybody's queue for each endpoint. Now only statements that name the bound may use it.
create index webhook_delivery_due_at on webhook_delivery (due_at_ms) where lease is null and not is_held and due_at_ms >= 0;
