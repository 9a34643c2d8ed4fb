-- Events of a client domain's KYB endpoint are listed newest first, by kind and by whether they were delivered. The long
-- one comes first: a table is held from its own line to the end.
create index webhook_event_kyb on webhook_event (client_domain_id, kind, (delivered_at is not null), id) where channel = 'kyb';

-- Who knew a business before it moved here is found along the wallets that it left.
create index business_successor on business (successor) where status = 'moved';

-- What waits of a stream, by sequence: all of it moves to the next callback of its order, and first attempts go in order.
create index webhook_delivery_stream on webhook_delivery (stream_id, sequence);
drop index webhook_delivery_first;
