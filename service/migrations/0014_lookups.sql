-- A stored triple is found by its opening alone.
create unique index on credential_leaf (opening);
