-- Which card is kept, what its owner agreed to on the payment page, and whom a charge is told of after its mail was moved away.
-- What stands now counts as agreed to.
ALTER TABLE auto_recharges ADD COLUMN card_fingerprint text, ADD COLUMN agreed_threshold_micros bigint,
  ADD COLUMN agreed_top_up_micros bigint, ADD COLUMN former_addresses jsonb NOT NULL DEFAULT '[]';
UPDATE auto_recharges r SET
  agreed_threshold_micros = r.threshold_micros,
  agreed_top_up_micros = r.top_up_micros,
  card_fingerprint = (
    SELECT o.card_fingerprint FROM card_orders o
    WHERE o.account_id = r.account_id AND o.payment_method_id = r.payment_method_id AND o.card_fingerprint IS NOT NULL
    LIMIT 1);
CREATE INDEX auto_recharges_card ON auto_recharges (card_fingerprint) WHERE payment_method_id IS NOT NULL;

-- Since when the card of a disputed order is to be forgotten wherever it is kept; NULL: it need not be, or it is.
ALTER TABLE card_orders ADD COLUMN forget_card_since timestamptz;
UPDATE card_orders SET forget_card_since = now()
WHERE card_fingerprint IS NOT NULL AND dispute <> 'won' AND dispute NOT LIKE 'warning%';
CREATE INDEX card_orders_forget_card ON card_orders (forget_card_since) WHERE forget_card_since IS NOT NULL;
