-- Whether a member has voted is looked for by the vote's key, one ballot after the other: where PostgreSQL had found that a purge
-- had left no vote, it read the votes of all ballots for the hints of each business, until the table was analyzed again.
create or replace view push_notice (subject, member, ends_at, business) as
  select 'ballot:' || b.id || ':' || b.epoch || case b.restarts when 0 then '' else '.' || b.restarts end,
      v.member, b.expires_at, b.business
    from ballot b cross join lateral unnest(b.voters) as v (member)
      join business_member m on m.business = b.business and m.member = v.member
    where b.status = 'open' and (m.has_voted or m.invitation_signature is not null)
      and not exists (
        select 1 from ballot_vote o
        where o.ballot_id = b.id and o.epoch = b.epoch and o.member = v.member
        offset 0)
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

-- Emptied by purges, or as logins end, like the tables of 0075.
alter table push_sent set (vacuum_truncate = off);
alter table business_proposal set (vacuum_truncate = off);
alter table business_login set (vacuum_truncate = off);

-- Whether the values of a record that ended are gone: each was looked for every hour, for all records that ever ended.
alter table company_record add column is_emptied boolean not null default false;
drop index company_record_over;
create index company_record_over on company_record (ended_at) where ended_at is not null and not is_emptied;
