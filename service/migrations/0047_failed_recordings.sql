-- The block in which the chain refused what members had approved: a node that has fewer blocks cannot say why.
alter table signature_request add column failed_block bigint;
