-- Nothing reads movements by the account that they went to, and every movement of money would write this index.
drop index ledger_movement_to_account_id_id_idx;
