-- When a charge of the order's card was last asked for; NULL: never. An order whose charge is not wanted any more ends only when
-- nothing that was asked for can still be on its way.
ALTER TABLE card_orders ADD COLUMN charge_asked_at timestamptz;
UPDATE card_orders SET charge_asked_at = looked_at WHERE state = 0 AND kind <> 'checkout' AND looks > 0;
