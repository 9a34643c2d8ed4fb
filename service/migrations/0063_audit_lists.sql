-- The operator asks the trail about one actor or thing, newest first.
create index on audit_entry (actor, id);
create index on audit_entry (subject, id);
