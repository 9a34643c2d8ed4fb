-- Apart from the making of its successor: this one waits for everybody who uses the table.
drop index kyc_order_initiated;
