-- A member's place in an active business, bytes as hexadecimal digits; null where there is none. As JSON writes bytes of
-- itself, their form follows a setting of the server.
create or replace function seat_of(business text, member text) returns jsonb language plpgsql stable strict as $$
begin
  return (
    select to_jsonb(seat)
      || jsonb_build_object('charter', encode(charter, 'hex'), 'name_sealed', encode(name_sealed, 'hex'))
    from business_seat as seat where seat.business = $1 and seat.member = $2);
end $$;
