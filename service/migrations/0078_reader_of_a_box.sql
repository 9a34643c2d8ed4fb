-- Who has taken a box, so that this reader can take it again while its answer may have been lost.
alter table mailbox add column reader_sha256 bytea check (length(reader_sha256) = 32);
