-- What was held for an endpoint goes out in the order of its age, whatever stream it belongs to. By this time a delivery is
-- told from one of later: whole seconds, as its due time then is that of its event.
alter table kyb_endpoint add column resumed_at_ms bigint;
