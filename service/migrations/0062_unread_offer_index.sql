-- Offers are looked up by their id alone; no list of them is kept.
drop index kyb_offer_client_domain_id_id_idx;
