-- When a root was attested. While the block is not final: what it is not earlier than, from the time of its batch less what
-- clocks may differ; `now` for one that is in no batch yet.
create function earliest_attested(attested_at bigint, batch uuid, now bigint) returns bigint language sql stable as $$
  select coalesce(attested_at, (select created_at - 120 from credential_batch where id = batch), now)
$$;
