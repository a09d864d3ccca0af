-- What our own keys have paid for transactions, a row for each key and day (UTC): how many days the rest lasts follows from it.
CREATE TABLE gas_spent (
  -- CAIP-2
  network text NOT NULL,
  -- Whose key paid: on EVM chains in small letters.
  address text NOT NULL,
  day date NOT NULL,
  transactions integer NOT NULL,
  -- Those of them whose cost the chain told.
  priced integer NOT NULL,
  -- What these cost together, in the smallest unit of what pays for transactions there.
  spent numeric NOT NULL,
  PRIMARY KEY (network, address, day)
);

-- Whose key pays for it. NULL: it was sent before there was this column.
ALTER TABLE ending_transactions ADD COLUMN paid_by text;
