-- What settlements cost us that moved nothing. Whoever signs for a payment may decide what code runs when it settles, and
-- our key pays for the gas: so it is counted against them, on all replicas.

CREATE TABLE lost_gas (
  -- CAIP-2, such as eip155:8453
  network text NOT NULL,
  payer text NOT NULL,
  -- Who was to put the payer's wallet on the chain, if somebody was.
  factory text,
  -- Settlements that failed, or whose end is not known yet.
  failures integer NOT NULL,
  -- What they cost at most.
  wei numeric NOT NULL,
  -- They are forgotten a day later.
  since timestamptz NOT NULL,
  PRIMARY KEY (network, payer)
);
CREATE INDEX lost_gas_since ON lost_gas (network, since);

-- No fee is raised above this; null: no bound of its own.
ALTER TABLE relayer_transactions ADD COLUMN max_cost_wei numeric;
