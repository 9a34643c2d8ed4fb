-- What an approval leaves for good, as functions: for whoever is known, one look and nothing else.

-- The sign-up of an unseen identity and its audit entry, once. Who is being deleted at this moment is unseen: the lock
-- waits for that, and what is looked for after it is gone as well.
create function sign_up(member text, now bigint) returns void language plpgsql strict as $$
begin
  perform from svc_user where address = member for key share;
  if found then return; end if;
  insert into svc_user (address, created_at) values (member, now) on conflict do nothing;
  if found then
    insert into audit_entry (at, actor, action, subject) values (now, member, 'user.sign-up', member);
  end if;
end $$;

-- That a user logged in to an organization.
create function acquaint(organization uuid, member text, now bigint) returns void language plpgsql strict as $$
begin
  if exists (select from organization_user where organization_id = organization and user_address = member) then return; end if;
  insert into organization_user (organization_id, user_address, created_at) values (organization, member, now)
  on conflict do nothing;
end $$;

-- It was remembered when a code was redeemed: codes on their way, and sessions whose codes nobody fetched.
insert into organization_user (organization_id, user_address, created_at)
select organization_id, user_address, min(met.created_at)
from (
    select client_id, claimed_by as user_address, created_at from login
    where status in ('approved', 'finished') and claimed_by is not null
    union all
    select approval ->> 'client', user_address, created_at from session, jsonb_array_elements(approvals) as approval
    where ended_at is null
  ) as met
  join oauth_client on oauth_client.id = client_id
  join client_domain on client_domain.id = client_domain_id
group by organization_id, user_address
on conflict do nothing;
