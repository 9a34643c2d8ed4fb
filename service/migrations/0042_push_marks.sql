-- Push hints look at what nobody has looked at, however much is open: at a vote once for each epoch and each collecting,
-- at an invitation once, and at what is open for a member when a device of it comes.
alter table ballot add column hinted_epoch bigint;
create index ballot_unhinted on ballot (id) where status = 'open' and hinted_epoch is distinct from epoch;
alter table business add column is_invitation_hinted boolean not null default false;
create index business_unhinted on business (address) where status = 'inviting' and not is_invitation_hinted;

-- Whatever is open is looked at once more after this, for the devices that are there.
alter table push_subscription add column is_new boolean not null default false;
alter table push_subscription alter column is_new set default true;
create index push_subscription_new on push_subscription (id) where is_new;

-- How often votes were collected anew: members who were told of a vote are told again, also where the epoch stays.
alter table ballot add column restarts int not null default 0;

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
  select 'removal:' || r.business || ':' || r.keep_nonce, m.member, r.ends_at, r.business
    from business_removal r join business_member m on m.business = r.business
    where r.answered_at is null
  union all
  select 'move:' || r.business || ':' || r.keep_nonce, m.member, r.ends_at, r.business
    from business_move r join business_member m on m.business = r.business;
