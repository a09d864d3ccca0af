-- What the keeper has read of the three protocols, one row for each five minutes: how their indices grew tells what they paid.
CREATE TABLE yield_index_samples (
  vault text NOT NULL,
  -- The time of the block that was read.
  at timestamptz NOT NULL,
  block_number bigint NOT NULL,
  -- By protocol: { "index": what a unit that was lent at the beginning is worth, as text, "utilization": 0 to 1 }; null: not read.
  protocols jsonb NOT NULL,
  PRIMARY KEY (vault, at)
);
