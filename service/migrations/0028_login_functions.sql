-- What few logins need, as functions: a statement that may need it opens no table for it until it does. Written out in
-- the statement, each costs every login the start of its part of the plan.

-- A member's place in an active business; null where there is none.
create function seat_of(business text, member text) returns jsonb language plpgsql stable strict as $$
begin
  return (select to_jsonb(seat) from business_seat as seat where seat.business = $1 and seat.member = $2);
end $$;

-- Whether there is such a place, which then stays until the end of the transaction.
create function lock_seat(business text, member text) returns boolean language plpgsql strict as $$
begin
  perform from business_seat as seat where seat.business = $1 and seat.member = $2 for share;
  return found;
end $$;

-- Spends values that count once; the kinds of those that were fresh.
create function spend_once(kinds text[], hashes bytea[], expiries bigint[]) returns text[] language plpgsql as $$
declare
  fresh_kinds text[];
begin
  if cardinality(kinds) = 0 then return kinds; end if;
  with fresh as (
    insert into used_once (kind, value_sha256, expires_at) select * from unnest(kinds, hashes, expiries)
    on conflict do nothing returning kind)
  select coalesce(array_agg(kind), '{}') into fresh_kinds from fresh;
  return fresh_kinds;
end $$;
