-- The card that paid, as its owner knows it: the network's name in the card provider's word, and the number's last four digits.
-- NULL: not paid, paid before this was kept, or its payer was erased.
ALTER TABLE card_orders ADD COLUMN card_brand text, ADD COLUMN card_last4 text;
ALTER TABLE card_orders ADD CONSTRAINT card_orders_shown_card CHECK (
  (card_brand IS NULL) = (card_last4 IS NULL) AND card_brand ~ '^[a-z_]{1,32}$' AND card_last4 ~ '^[0-9]{4}$'
) NOT VALID;
