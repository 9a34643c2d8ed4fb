-- The pace of an endpoint is written with every delivery, and looked for by its age once an hour only: where no index holds
-- it, none is written with it, and its page has room for it.
alter table webhook_endpoint set (fillfactor = 50);
drop index webhook_endpoint_next_at_ms_idx;
