-- The account of the operator that writes in the name of the issuer, or is to: another one has to get its role first.
alter table issuer add column role_account text check (role_account ~ '^0x[0-9a-f]{40}$');
update issuer set role_account = t.signer
from chain_transaction t
where t.kind = 'registry.role' and t.status = 'succeeded' and split_part(t.subject_id, ':', 1) = issuer.id::text;
