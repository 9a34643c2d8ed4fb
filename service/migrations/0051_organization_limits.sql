-- Limits of one organization in place of the settings; null where the setting holds.
alter table organization
  add column reads_per_second integer check (reads_per_second > 0),
  add column creates_per_second integer check (creates_per_second > 0),
  add column logins_per_client_minute integer check (logins_per_client_minute > 0);
