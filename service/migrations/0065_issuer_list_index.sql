-- Both lists have an index of their own. In a transaction of its own: whoever reads the table may want to write it next.
drop index credential_issuer_id_id_idx;
