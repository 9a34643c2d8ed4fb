-- Logins that a member makes for a business.

alter table login
  -- The business that the acting member chose.
  add column business text,
  -- When the other members were asked; null where the acting member's approval was enough.
  add column gathering_since bigint,
  -- What tokens say of the business that does not change with it: {domain, approved_at}.
  add column claims jsonb not null default '{}';

-- Logins that wait for other members: one for each acting member.
create table business_login (
  login_id text collate "C" primary key,
  member text not null unique,
  business text not null references business,
  -- Who asks, as every member approves it: the verified domain, or empty.
  requester text not null,
  expires_at bigint not null
);

alter table token_family add column business text;
create index token_family_business on token_family (business) where business is not null and revoked_at is null;

-- Members of businesses that may act: what a login of a business stands on for as long as it lasts.
create view business_seat as
  select business.address as business, business_member.member, business.name, business.charter, business.environment,
    business.verified_at, business_member.id as member_id, business_member.name_sealed, business_member.is_voting,
    business_member.is_creator
  from business join business_member on business_member.business = business.address
  where business.status = 'active';
