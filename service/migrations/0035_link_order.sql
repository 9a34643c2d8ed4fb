-- Links in the order in which they were given out: many are made in one second.
alter table kyc_token add column number bigint;
-- Those of before go below zero, so that the first new one is behind the last of them.
update kyc_token set number = -place
from (select token_sha256, row_number() over (order by created_at desc, ctid desc) as place from kyc_token) as earlier
where earlier.token_sha256 = kyc_token.token_sha256;
alter table kyc_token
  alter column number set not null,
  alter column number add generated always as identity;
