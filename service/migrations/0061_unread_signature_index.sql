-- What a business signed is asked of its wallet on the chain, never of these rows. In a transaction of its own, as the next:
-- the locks of two tables would meet those of running requests in a circle.
drop index signature_request_signed;
