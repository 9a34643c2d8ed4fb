-- Whether the company's type in a record is that of a sole proprietor: values go when the record is over, and of such a
-- business everything stays a person's. Null in a record without a type, and where it is no longer known.
alter table company_record add column is_sole_proprietor boolean;

-- A sealed value is 81 bytes longer than `["<type>","0x<pepper>"]`, and no other type is as long as this one.
update company_record set is_sole_proprietor = octet_length(value_sealed) = 81 + 73 + length('SOLE_PROPRIETOR')
from company_field
where company_field.credential_id = company_record.credential_id and name = 'BUSINESS_COMPANY_TYPE';
