-- The wallet lists the sessions of its user.
create index on session (user_address) where ended_at is null;
