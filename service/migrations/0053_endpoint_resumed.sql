-- What was held for an endpoint goes out in the order of its age, whatever stream it belongs to. When the endpoint was last
-- made active, in whole seconds as Unix milliseconds: what is due then or before was held, as its due time is that of its event.
alter table kyb_endpoint add column resumed_at_ms bigint;

-- The due time of a delivery that was held for an endpoint and was taken, but not tried; null for any other.
create function held_due_at(endpoint uuid, event text) returns bigint language sql stable as $$
  select webhook_event.created_at * 1000 from webhook_event join kyb_endpoint on kyb_endpoint.id = endpoint
  where webhook_event.id = event and webhook_event.created_at * 1000 <= kyb_endpoint.resumed_at_ms
$$;

-- The oldest of what was held for an endpoint that has to wait for earlier events of its stream; nothing younger may pass it.
-- Only where all of those are under way, or older: one that is due later, as when it is sent again, would wait in turn
-- for what must not pass. So many of the oldest are looked at as may be under way at once.
create function barred_delivery(endpoint uuid, resumed_at bigint, slots integer)
returns table (due_at_ms bigint, event_id text) language sql stable as $$
  select oldest.due_at_ms, oldest.event_id from (
    select held.due_at_ms, held.event_id, held.stream_id, held.sequence from webhook_delivery held
    where held.endpoint_id = endpoint and held.lease is null and not held.is_held and held.step = 0
      and held.due_at_ms <= resumed_at
    order by held.due_at_ms, held.event_id limit slots) as oldest
  cross join lateral (
    select bool_and(earlier.lease is not null
        or (earlier.due_at_ms, earlier.event_id) < (oldest.due_at_ms, oldest.event_id)) as go_first
    from webhook_delivery earlier where earlier.stream_id = oldest.stream_id
      and earlier.sequence < oldest.sequence and earlier.step = 0 and not earlier.is_held) as those
  where those.go_first
  order by oldest.due_at_ms, oldest.event_id limit 1
$$;
