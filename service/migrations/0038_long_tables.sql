-- Lists are read newest first: by what they are filtered by, and from there in order.
create index data_request_status on data_request (client_domain_id, status, id);
create index signature_request_status on signature_request (client_domain_id, status, id);
create index company_record_business on company_record (business, credential_id);
drop index company_record_business_idx;
