-- Tables that purges empty, and the queue of deliveries, keep their pages for the rows to come. Where vacuum gave them back,
-- PostgreSQL found a table shorter than its indexes, which keep theirs, and nothing reads that faster than from one end to
-- the other; and each connection went on so, at every look by id, while the table filled up again, until it was analyzed.
alter table login set (vacuum_truncate = off);
alter table session set (vacuum_truncate = off);
alter table token_family set (vacuum_truncate = off);
alter table pushed_request set (vacuum_truncate = off);
alter table used_once set (vacuum_truncate = off);
alter table logout_delivery set (vacuum_truncate = off);
alter table wallet_session set (vacuum_truncate = off);
alter table rate_bucket set (vacuum_truncate = off);
alter table mailbox set (vacuum_truncate = off);
alter table email_verification set (vacuum_truncate = off);
alter table issuer_idempotency set (vacuum_truncate = off);
alter table kyc_token set (vacuum_truncate = off);
alter table kyc_payload set (vacuum_truncate = off);
alter table kyb_idempotency set (vacuum_truncate = off);
alter table ballot set (vacuum_truncate = off);
alter table ballot_vote set (vacuum_truncate = off);
alter table webhook_attempt set (vacuum_truncate = off);
alter table webhook_delivery set (vacuum_truncate = off);
alter table webhook_endpoint set (vacuum_truncate = off);
