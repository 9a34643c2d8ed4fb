-- What the operator last said of the business's record, which goes before what issuers say; null where that is unknown.
alter table business add column operator_word boolean;
