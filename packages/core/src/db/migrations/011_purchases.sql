-- Purchases with a card that the caller names.

-- When too many cards are declined somebody is trying stolen ones: for a while nobody can buy in this way.
CREATE TABLE purchase_brake (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  paused_until timestamptz NOT NULL
);
INSERT INTO purchase_brake (paused_until) VALUES ('epoch');

-- While a key's cap per day is held: what its owner has it at. NULL: none.
ALTER TABLE api_keys ADD COLUMN cap_afterwards_micros bigint CHECK (cap_afterwards_micros > 0);
