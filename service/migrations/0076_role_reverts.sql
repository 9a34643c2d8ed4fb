-- The pause before the role of an issuer is requested again grows with the reverts that the operator's account of today met:
-- what a former account met, or its end, says nothing of this one.
alter table issuer add column role_reverts integer not null default 0;
