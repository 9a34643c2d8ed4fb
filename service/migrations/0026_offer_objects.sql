-- The signed request object behind an offer's link: made once, the same for everybody who opens it. Null before, and
-- once what was asked was purged.

alter table kyb_offer add column request_object text;
