-- Indexes that keep work as small as its result, however long the tables grow.

-- Foundings that came to nothing are deleted, and each of these refers to businesses.
create index business_lapsed on business (invitation_deadline) where status = 'lapsed';
create index ballot_business on ballot (business);
create index data_request_business on data_request (business);
create index signature_request_business on signature_request (business);
create index kyb_offer_business on kyb_offer (business);
create index business_login_business on business_login (business);
create index business_move_successor on business_move (successor);
-- It lists the proposals of a business as well.
create index business_proposal_of on business_proposal (business, id);

-- What is held goes out again in parts, the oldest events first.
create index webhook_delivery_held_order on webhook_delivery (endpoint_id, event_id) where is_held;
drop index webhook_delivery_held;
create index kyb_endpoint_inactive on kyb_endpoint (id) where not is_active;
