-- Who took an offer: the same claim again is answered alike, and everybody else is told that it is taken. It goes with what was asked.
alter table kyb_offer add column claimant text;
create index kyb_offer_claimant on kyb_offer (claimant) where claimant is not null;
