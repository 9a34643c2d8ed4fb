-- Lists are read newest first: by what they are filtered by, and from there in order.
create index data_request_status on data_request (client_domain_id, status, id);
create index signature_request_status on signature_request (client_domain_id, status, id);
create index company_record_business on company_record (business, credential_id);
drop index company_record_business_idx;

-- Logouts that are over go by their time, and those of a user who was deleted as soon as they are over.
alter table logout_delivery add column is_user_deleted boolean not null default false;
update logout_delivery set is_user_deleted = true where not exists (select from svc_user where address = user_address);
create index logout_delivery_ended on logout_delivery (ended_at) where ended_at is not null;
create index logout_delivery_deleted on logout_delivery (id) where is_user_deleted and ended_at is not null;

-- When a record is to be looked at: at once where it is new or the trust in its issuer was taken back, else at its end.
alter table company_record add column due_at bigint not null default 0;
update company_record set due_at = expires_at
from credential join issuer on issuer.id = issuer_id
where credential.id = credential_id and company_record.ended_at is null and credential.ended_at is null
  and distrusted_from is null;
create index company_record_due on company_record (due_at) where ended_at is null;
drop index company_record_open;

-- Everything of a user is found when the user is deleted, also what has ended.
create index token_family_of_user on token_family (user_address);
drop index token_family_user_address_idx;
create index session_of_user on session (user_address);
drop index session_user_address_idx;
create index logout_delivery_of_user on logout_delivery (user_address);
