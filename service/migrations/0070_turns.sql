-- What waits takes turns, and of each turn the oldest is read first: transactions by their kind, orders whose data is to be
-- handed over by their organization.
create index chain_transaction_turn on chain_transaction (kind, due_at, id) where status = 'queued';
create index kyc_order_hand_over on kyc_order (organization_id, status_at) where status = 'INITIATED';
