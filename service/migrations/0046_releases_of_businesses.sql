-- Members see what their business released, the newest first.
create index kyb_charge_business on kyb_charge (business, id);
