-- Apart from the making of its successor: both locks in one transaction would meet those of running logins in a circle.
drop index login_created_at_idx;
