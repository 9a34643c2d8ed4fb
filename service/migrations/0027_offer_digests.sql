-- What the link of an offered document names: it stays the same after the document was purged.

alter table kyb_offer add column digest bytea check (length(digest) = 32);
