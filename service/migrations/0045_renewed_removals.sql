-- Where a member answered its removal by votes alone, it is still open on the chain, where there is one at a time: the
-- others may decide on it again, and the member's signature alone ends it then.
alter table business_removal
  -- The keep_nonce of a removal that was decided again.
  add column renewed_nonce bigint;

create or replace view push_notice (subject, member, ends_at, business) as
  select 'ballot:' || b.id || ':' || b.epoch || case b.restarts when 0 then '' else '.' || b.restarts end,
      v.member, b.expires_at, b.business
    from ballot b cross join lateral unnest(b.voters) as v (member)
    where b.status = 'open'
      and not exists (
        select 1 from ballot_vote o
        where o.ballot_id = b.id and o.epoch = b.epoch and o.member = v.member)
  union all
  select 'invitation:' || b.invitation_id, m.member, b.invitation_deadline, b.address
    from business b join business_member m on m.business = b.address
    where b.status = 'inviting' and m.invitation_signature is null
  union all
  select 'removal:' || r.business || ':' || r.keep_nonce
        || case when r.renewed_nonce = r.keep_nonce then ':renewed' else '' end,
      m.member, r.ends_at, r.business
    from business_removal r join business_member m on m.business = r.business
    where r.answered_at is null
  union all
  select 'move:' || r.business || ':' || r.keep_nonce, m.member, r.ends_at, r.business
    from business_move r join business_member m on m.business = r.business;
