-- Until when the card provider takes evidence in an order's dispute. NULL: there is no dispute, or none is taken any more.
ALTER TABLE card_orders ADD COLUMN dispute_due_at timestamptz;
-- Disputes are few among orders, and /admin lists them.
CREATE INDEX card_orders_dispute ON card_orders (dispute_due_at) WHERE dispute IS NOT NULL;
