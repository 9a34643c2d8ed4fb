-- What members of a business are told about while it is open: votes, invitations, the removal of a member, a move by the
-- operator (the last two go to everybody, as anybody concerned may end them). A new epoch voids votes, and asks anew.
create view push_notice (subject, member, ends_at) as
  select 'ballot:' || b.id || ':' || b.epoch, v.member, b.expires_at
    from ballot b cross join lateral unnest(b.voters) as v (member)
    where b.status = 'open'
      and not exists (
        select 1 from ballot_vote o
        where o.ballot_id = b.id and o.epoch = b.epoch and o.member = v.member)
  union all
  select 'invitation:' || b.invitation_id, m.member, b.invitation_deadline
    from business b join business_member m on m.business = b.address
    where b.status = 'inviting' and m.invitation_signature is null
  union all
  select 'removal:' || r.business || ':' || r.keep_nonce, m.member, r.ends_at
    from business_removal r join business_member m on m.business = r.business
    where r.answered_at is null
  union all
  select 'move:' || r.business || ':' || r.keep_nonce, m.member, r.ends_at
    from business_move r join business_member m on m.business = r.business;
