-- Checkouts that are open are counted by the network that opened them, whichever replica it asked.
CREATE INDEX card_orders_open_checkouts ON card_orders (address_digest) WHERE kind = 'checkout' AND state = 0;
