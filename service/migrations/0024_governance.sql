-- Where businesses are made, and what their members decide about them.

-- Factories of business wallets, one for each environment; kept like the other contracts.
alter table chain_identity
  add column live_factory text,
  add column sandbox_factory text;
