-- Persons that the service made for a sandbox are known to its organization: they never log in.
insert into organization_user (organization_id, user_address, created_at)
  select organization_id, user_address, synthetic_identity.created_at
  from synthetic_identity join client_domain on client_domain.id = client_domain_id
  on conflict do nothing;
