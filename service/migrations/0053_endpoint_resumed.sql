-- What was held for an endpoint goes out in the order of its age, whatever stream it belongs to. By this time a delivery is
-- told from one of later: whole seconds, as its due time then is that of its event.
alter table kyb_endpoint add column resumed_at_ms bigint;

-- The oldest of what was held for an endpoint that has to wait for earlier events of its stream; nothing younger may pass it.
-- Only where all of those are under way, or older: one that is due later, as when it is sent again, would wait in turn
-- for what must not pass. So many of the oldest are looked at as may be under way at once: behind those nothing is taken.
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
