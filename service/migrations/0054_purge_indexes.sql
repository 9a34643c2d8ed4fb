-- What is over is found without reading what is kept, and what belongs to a user without reading what does not.
create index on pushed_request (expires_at);
create index on wallet_session (user_address);
-- A summary of block ranges says less and less of a table whose oldest rows make room for its newest.
create index login_created on login (created_at);
