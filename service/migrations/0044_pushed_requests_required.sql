-- A client may demand that its authorization requests come pushed alone (RFC 9126 section 6).
alter table oauth_client add column pushed_request_required boolean not null default false;
