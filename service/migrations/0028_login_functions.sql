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

-- Goes on in the session of this cookie, if it is the user's and not over, under a new secret; null where there is none.
create function keep_session(
  presented_sha256 bytea, next_sha256 bytea, owner text, authenticated bigint, reached text, approval jsonb,
  now bigint, idle_since bigint, begun_since bigint
) returns uuid language plpgsql strict as $$
declare
  kept uuid;
begin
  update session set secret_sha256 = next_sha256, authenticated_at = authenticated, acr = reached, used_at = now,
    approvals = case when approvals @> approval then approvals else approvals || approval end
  where secret_sha256 = presented_sha256 and user_address = owner and ended_at is null
    and used_at > idle_since and created_at > begun_since
  returning id into kept;
  return kept;
end $$;
