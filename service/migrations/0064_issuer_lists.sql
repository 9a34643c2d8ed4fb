-- Issuers list their credentials of persons and their records of companies apart, so neither list reads past the other.
create index credential_of_person on credential (issuer_id, id) where document <> 'COMPANY';
create index credential_of_company on credential (issuer_id, id) where document = 'COMPANY';
